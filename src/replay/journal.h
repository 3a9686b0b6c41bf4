#ifndef BH_REPLAY_JOURNAL_H
#define BH_REPLAY_JOURNAL_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Replay the journal in a store from its first record, with the decisions that were
 * recorded, beside a daemon that may run.  Prints how many records there are, whether
 * the state had the recorded digest at each snapshot, and the digest in the end.
 *   BH_CONFLICT  a record is missing or does not apply, a snapshot's digest differs
 *   BH_INVALID   something that is no record
 *   and what opening and reading the store may say
 * `options` (NULL: none) may stop behind the record `until`, and suppose a change there
 * (replay/suppose.h), whose consequences are printed, with its failures. */
struct bh_journal_options {
    uint64_t until;     /* the last record that is replayed; UINT64_MAX: all */
    const char *whatif; /* NULL: nothing is supposed */
};
BH_MUST_USE bh_rc bh_journal_replay(const char *path, const struct bh_journal_options *options, FILE *out,
                                    struct bh_err *err);

#endif
