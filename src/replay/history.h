#ifndef BH_REPLAY_HISTORY_H
#define BH_REPLAY_HISTORY_H

#include "api/state/state.h"

/* What happened, as the journal would hold it: each event and its decisions as JSON,
 * with the digest of the state that they led to. */
struct bh_history;

/* An empty history; free(NULL) is fine. */
struct bh_history *bh_history_new(void);
void bh_history_free(struct bh_history *history);
BH_AUTO_DEFINE(struct bh_history *, bh_history_free)

/* How many records there are; the next one's number is one more. */
uint32_t bh_history_count(const struct bh_history *history);

/* One more record: the event, and what the step in `state` decided because of it.
 * BH_FULL: more than a scenario should need. */
BH_MUST_USE bh_rc bh_history_add(struct bh_history *history, const struct bh_event *event,
                                 const struct bh_step *step, const struct bh_state *state,
                                 struct bh_err *err);

/* Apply all records to an empty state, as they were decided.
 * BH_BUG: a record does not apply, or leads to a different digest; the message says which. */
BH_MUST_USE bh_rc bh_history_replay(const struct bh_history *history, struct bh_state *state,
                                    struct bh_err *err);

#endif
