#ifndef BH_CLI_VERIFIER_VERIFY_EXPORT_H
#define BH_CLI_VERIFIER_VERIFY_EXPORT_H

#include "audit/note.h"
#include "cli/verifier/verify.h"

/* An exported log, with the checkpoints kept elsewhere.  BH_CONFLICT: it is not what was
 * signed; BH_NOT_FOUND: a file is missing; failures of reading. */
BH_MUST_USE bh_rc bh_verify_export(const struct bh_verify_args *args, const struct bh_note_key *key,
                                   struct bh_verdict_text *verdict, struct bh_err *err);

#endif
