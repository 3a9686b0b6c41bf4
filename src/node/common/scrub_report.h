#ifndef BH_NODE_COMMON_SCRUB_REPORT_H
#define BH_NODE_COMMON_SCRUB_REPORT_H

#include <stdint.h>

#include "base/fields.h"

/* What bulkhead-scrub says on its standard output: BH_SCRUB_PREFIX, one line of JSON, and a
 * newline.  Libraries that it loads may print before it. */

#define BH_SCRUB_PREFIX "bulkhead-scrub: "

enum bh_scrub_end {
    BH_SCRUB_END_CLEAN,      /* each sample read back as it was filled, and then zero */
    BH_SCRUB_END_UNFILLED,   /* one did not */
    BH_SCRUB_END_NO_LIBRARY, /* there is no libcuda.so.1 */
    BH_SCRUB_END_REFUSED,    /* the driver said no; `why` */
    BH_SCRUB_ENDS
};

struct bh_scrub_report {
    uint64_t bytes;        /* filled */
    uint64_t memory_bytes; /* of the device */
    uint64_t peak_mib_s;   /* of the memory, by its clock and width; 0: not known */
    uint64_t work_ns;      /* two fills and three looks */
    uint64_t samples;      /* pages read, each time */
    uint64_t residue;      /* of them, not all zero before */
    uint64_t unfilled;     /* of them, not as filled after */
    uint32_t end;          /* enum bh_scrub_end */
    char uuid[48];         /* of the device, "MIG-..." or "GPU-..." */
    char why[160];
};

extern const struct bh_fields bh_scrub_report_fields;

#endif
