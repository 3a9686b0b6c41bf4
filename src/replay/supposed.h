#ifndef BH_REPLAY_SUPPOSED_H
#define BH_REPLAY_SUPPOSED_H

#include "base/err.h"
#include "engine/state/event.h"

struct bh_scenario_run;

/* What a scenario supposes with `whatif`: its present played forward twice, the second time
 * with a statement that the world never gets. */
struct bh_supposed;

/* Statements go to a copy from now on, until bh_supposed_play. */
void bh_supposed_begin(struct bh_scenario_run *run);

/* Let the event happen on the copy; notes a refusal.  Fails as bh_engine_step. */
BH_MUST_USE bh_rc bh_supposed_send(struct bh_scenario_run *run, const struct bh_event *event,
                                   struct bh_err *err);

/* Play both to their ends: the scenario can ask what is different. */
void bh_supposed_play(struct bh_scenario_run *run);

/* free(NULL) is fine. */
void bh_supposed_free(struct bh_supposed *supposed);

#endif
