#ifndef BH_LAB_OPENB_EXPECTED_H
#define BH_LAB_OPENB_EXPECTED_H

#include "lab/openb/run.h"

/* What FGD's artifact measured: expected/analysis_allo_discrete.csv. */

/* Does the artifact have a policy like this? */
bool bh_openb_expected_has(enum bh_pack_policy policy);

/* The points of one run of the artifact, from the file's folder `data`.  BH_NOT_FOUND: no
 * such run; BH_INVALID: a malformed line. */
BH_MUST_USE bh_rc bh_openb_expected_read(const char *data, const struct bh_openb_name *name,
                                         double ret_point[BH_OPENB_POINTS], struct bh_err *err);

#endif
