#ifndef BH_DAEMON_SITE_APPLY_H
#define BH_DAEMON_SITE_APPLY_H

#include "daemon/state/core.h"
#include "daemon/state/entry.h"

/* Applying a site file: what it says against what is in force becomes a list of engine
 * events, tried as a whole on a copy of the engine before the first one is recorded.
 * So a file is applied wholly or not at all. */
struct bh_apply_plan;

/* The changes from the present site to `site` (checked by bh_site_check).
 *   BH_CONFLICT  the engine refuses a change; the message names the entry
 *   BH_RANGE     more changes than one plan holds */
BH_MUST_USE bh_rc bh_plan_make(struct bh_core *core, const struct bh_site *site,
                               struct bh_apply_plan **ret_plan, struct bh_err *err);
void bh_plan_free(struct bh_apply_plan *plan);
BH_AUTO_DEFINE(struct bh_apply_plan *, bh_plan_free)

/* The next name that the file removes: start with *cursor = 0; false at the end. */
bool bh_plan_next_removal(const struct bh_apply_plan *plan, const struct bh_core *core, uint32_t *cursor,
                          enum bh_name_kind *ret_kind, uint32_t *ret_id);

/* The engine's events that the changes are, in order, in `arena`; NULL: no room. */
const struct bh_event *bh_plan_events(const struct bh_apply_plan *plan, struct bh_arena *arena,
                                      uint32_t *ret_count);

/* Record and take every change; after a failure the batch must be aborted. */
BH_MUST_USE bh_rc bh_plan_run(struct bh_apply_plan *plan, struct bh_core *core, const struct bh_entry *entry,
                              struct bh_err *err);

/* Whether the file declares a tenant again that was removed and that the engine has not
 * let go yet. */
bool bh_site_revives(const struct bh_core *core, const struct bh_site *site);

#endif
