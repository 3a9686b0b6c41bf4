#ifndef BH_DAEMON_BATCH_NAMES_H
#define BH_DAEMON_BATCH_NAMES_H

#include "daemon/state/core.h"
#include "daemon/state/entry.h"

/* Binding names to the log: no id is given to a name in a transaction without a record in it
 * that commits to both (audit/binding.h, docs/adr/0049-names-bound-to-the-log.md).
 *
 * The next record takes up to BH_NAMES_INLINE_MAX names along; when more wait, records of
 * their own come before it. */

enum { BH_NAMES_INLINE_MAX = 8, BH_NAMES_BYTES_MAX = 160 * BH_NAMES_INLINE_MAX };

/* Have `record`, which is about to be appended for `entry`, bind the names that wait: its
 * member names_json points into `list`.  Failures of the store. */
BH_MUST_USE bh_rc bh_names_bind(struct bh_core *core, const struct bh_entry *entry, struct bh_record *record,
                                struct bh_buf *list, struct bh_err *err);

/* The same in records of their own, of the time `ts_ns`, whose actor, decision, object and
 * request are those of `like`. */
BH_MUST_USE bh_rc bh_names_give(struct bh_core *core, const struct bh_entry *like, uint64_t ts_ns,
                                struct bh_err *err);

/* At a start: a store whose names were never bound gets them bound as they are now, in records
 * that say so; once in its life.  Part of the open transaction. */
BH_MUST_USE bh_rc bh_names_upgrade(struct bh_core *core, struct bh_err *err);

/* Records below `minimum` go: what they bound is bound again.  Part of the open transaction. */
BH_MUST_USE bh_rc bh_names_keep(struct bh_core *core, uint64_t minimum, struct bh_err *err);

#endif
