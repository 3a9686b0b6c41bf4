#ifndef BH_STORE_AUDIT_H
#define BH_STORE_AUDIT_H

#include "ports/store.h"

/* Walk all records and checkpoints of a store (any back end) through the auditor. */
struct bh_audit_verifier;

/* Verify the whole journal with a verifier fresh from bh_audit_verifier_init, whose frontier then shows how
 * many records were good.
 *   BH_CONFLICT  the journal was changed; see audit/verify.h
 *   failures of the store */
BH_MUST_USE bh_rc bh_store_audit(const struct bh_store *store, struct bh_audit_verifier *verifier,
                                 struct bh_err *err);

#endif
