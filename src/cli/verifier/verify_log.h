#ifndef BH_CLI_VERIFIER_VERIFY_LOG_H
#define BH_CLI_VERIFIER_VERIFY_LOG_H

#include "audit/note.h"
#include "cli/verifier/verify.h"

/* A log in a store, or as lines on standard input, with the checkpoints kept elsewhere.
 * BH_CONFLICT: it is not what was signed; failures of reading. */
BH_MUST_USE bh_rc bh_verify_log(const struct bh_verify_args *args, const struct bh_note_key *key,
                                struct bh_verdict_text *verdict, struct bh_err *err);

#endif
