#ifndef BH_MODEL_DATASETS_H
#define BH_MODEL_DATASETS_H

#include "model/site.h"

/* The datasets of a site file, beside what else it says. */

/* Whether dataset number `at` is right: as bh_dataset_read has it, its name and its folder its
 * own, its tenant, and the tenants, principals and pools of its grants, in this file.  No other
 * dataset and no entry of `mounts` may lie in its folder, or it in theirs: jobs would reach it by
 * another door.
 *   BH_INVALID, BH_RANGE */
BH_MUST_USE bh_rc bh_dataset_check(const struct bh_site *site, uint32_t at, struct bh_err *err);

#endif
