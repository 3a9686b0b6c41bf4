#ifndef BH_CLI_VERIFIER_VERIFY_PROOF_H
#define BH_CLI_VERIFIER_VERIFY_PROOF_H

#include "audit/note.h"
#include "cli/verifier/verify.h"

/* A proof with its record.  BH_CONFLICT: it does not hold; BH_INVALID: it is none. */
BH_MUST_USE bh_rc bh_verify_proof(const struct bh_verify_args *args, const struct bh_note_key *key,
                                  struct bh_verdict_text *verdict, struct bh_err *err);

/* Two checkpoints; the hashes that prove it are on standard input, one a line.
 * BH_CONFLICT: the second does not continue the first, or is not signed. */
BH_MUST_USE bh_rc bh_verify_consistency(const struct bh_verify_args *args, const struct bh_note_key *key,
                                        struct bh_verdict_text *verdict, struct bh_err *err);

#endif
