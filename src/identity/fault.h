#ifndef BH_IDENTITY_FAULT_H
#define BH_IDENTITY_FAULT_H

#include "base/err.h"

/* Why something was refused: one code per cause, so that a test, a metric and the log
 * can tell them apart.  tables/identity_faults.tbl is the list.  Users of a browser
 * get one sentence for all of them: what exactly was wrong helps only an attacker. */
enum bh_identity_fault {
#define BH_FAULT(code, name, rc, sentence) BH_FAULT_##code,
#include "tables/identity_faults.tbl"
#undef BH_FAULT
    BH_FAULTS
};

/* "alg_none"; never NULL. */
const char *bh_fault_name(enum bh_identity_fault fault);

/* Fill `err` with the fault's sentence and return its code: BH_OK for BH_FAULT_NONE,
 * which leaves `err` untouched. */
bh_rc bh_fault_err(enum bh_identity_fault fault, struct bh_err *err);

#endif
