#ifndef BH_MODEL_UNMANAGED_H
#define BH_MODEL_UNMANAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Why Bulkhead changes nothing on a GPU, and what makes it. */

enum { BH_UNMANAGED_INSTANCES_MAX = 16 };

struct bh_unmanaged {
    const char *gpu, *node; /* UUID, name */
    bool in_site;           /* the site file wants it managed */
    bool allowed;           /* its node lets Bulkhead change it */
    bool scrub_off;         /* the driver does not clear what is freed */
    struct bh_unmanaged_instance {
        const char *profile;
        uint32_t start, gi;
    } instances[BH_UNMANAGED_INSTANCES_MAX]; /* that its node did not make */
    uint32_t count;                          /* of them */
};

/* Note one more; those that have no room are not named. */
void bh_unmanaged_add(struct bh_unmanaged *unmanaged, const struct bh_unmanaged_instance *one);

/* The first thing that keeps it unmanaged, and what to do, for administrators.  False, and nothing
 * put: nothing that is known keeps it. */
bool bh_unmanaged_put(const struct bh_unmanaged *unmanaged, struct bh_buf *why, struct bh_buf *fix);

#endif
