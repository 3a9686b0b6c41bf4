#ifndef BH_CLI_VERIFIER_VERIFY_SAVED_H
#define BH_CLI_VERIFIER_VERIFY_SAVED_H

#include "audit/note.h"
#include "audit/verify.h"
#include "cli/verifier/verify.h"

/* Checkpoints that were kept elsewhere, with their witnesses. */

struct bh_verify_saved;

/* Open those of the command line; *ret_saved is always the caller's, to be freed.  BH_CONFLICT: one
 * is not signed, or not cosigned by as many witnesses as it needs; failures of reading. */
BH_MUST_USE bh_rc bh_verify_saved_open(const struct bh_verify_args *args, const struct bh_note_key *key,
                                       struct bh_verify_saved **ret_saved, struct bh_err *err);
void bh_verify_saved_free(struct bh_verify_saved *kept);

/* For bh_audit_verifier. */
struct bh_trusted_checkpoints bh_verify_saved_checkpoints(const struct bh_verify_saved *kept);

/* Where none was kept, the checkpoint in that file needs the witnesses. */
BH_MUST_USE bh_rc bh_verify_saved_check_own(const struct bh_verify_saved *kept, const char *path,
                                            struct bh_err *err);

#endif
