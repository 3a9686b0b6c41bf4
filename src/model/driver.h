#ifndef BH_MODEL_DRIVER_H
#define BH_MODEL_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Versions of the NVIDIA driver, and which faults a version still has:
 * tables/driver_fixes.tbl. */

/* "580.159.03": branch 580, minor 159, patch 3.  "580.65" has patch 0. */
struct bh_driver_version {
    uint32_t branch, minor, patch;
};

/* BH_INVALID: not two or three numbers of at most four digits with single dots between, and
 * nothing else; `ret_version` is untouched. */
BH_MUST_USE bh_rc bh_driver_parse(const char *text, struct bh_driver_version *ret_version,
                                  struct bh_err *err);

enum bh_driver_fault {
    BH_DRIVER_REPARTITION, /* instances must not be made or destroyed beside other tenants */
    BH_DRIVER_FAULTS
};

/* Whether the driver is known to have the fix.  A text that is no version, an empty one, and a
 * branch at the end of its life do not. */
bool bh_driver_is_fixed(const char *text, enum bh_driver_fault fault);

/* "CVE-2026-24197" */
const char *bh_driver_fix_cve(enum bh_driver_fault fault);

/* "535.309.01, 580.159.03, 595.71.05": the first build of each branch with the fix. */
void bh_driver_put_fixed(struct bh_buf *out, enum bh_driver_fault fault);

#endif
