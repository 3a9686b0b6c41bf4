/* bulkheadd with asserts that fail: linked in place of the functions' own names (--wrap), so that the product
 * has nothing of it.  Requests with "planted" in the job's name fail in the owner thread, reads of datasets
 * by uid 0 in the worker; the rest fails while a file of that name is in the state folder. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/site/datasets.h"
#include "base/assert.h"
#include "daemon/batch/batch.h"
#include "daemon/nodes/checks.h"
#include "daemon/nodes/link.h"
#include "daemon/owner/dispatch.h"

bh_rc __real_bh_core_open(struct bh_core *core, struct bh_err *err);
bh_rc __wrap_bh_core_open(struct bh_core *core, struct bh_err *err);
bh_rc __real_bh_dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                             struct bh_answer *ret_answer, struct bh_err *err);
bh_rc __wrap_bh_dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                             struct bh_answer *ret_answer, struct bh_err *err);
bh_rc __real_bh_datasets_list(struct bh_call *call, struct bh_err *err);
bh_rc __wrap_bh_datasets_list(struct bh_call *call, struct bh_err *err);
bh_rc __real_bh_node_link_receive(struct bh_node_link *link, struct bh_err *err);
bh_rc __wrap_bh_node_link_receive(struct bh_node_link *link, struct bh_err *err);
bh_rc __real_bh_checks_ask(struct bh_core *core, struct bh_err *err);
bh_rc __wrap_bh_checks_ask(struct bh_core *core, struct bh_err *err);
bh_rc __real_bh_state_replay(struct bh_state *state, const struct bh_event *event,
                             const struct bh_decision *decisions, uint32_t count, struct bh_step *ret_step);
bh_rc __wrap_bh_state_replay(struct bh_state *state, const struct bh_event *event,
                             const struct bh_decision *decisions, uint32_t count, struct bh_step *ret_step);

static const char *state_dir;

static bool
is_planted(const char *what)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/planted-%s", state_dir, what);
    return access(path, F_OK) == 0;
}

bh_rc
__wrap_bh_core_open(struct bh_core *core, struct bh_err *err)
{
    state_dir = core->config->state_dir;
    return __real_bh_core_open(core, err);
}

bh_rc
__wrap_bh_dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                       struct bh_answer *ret_answer, struct bh_err *err)
{
    bh_rc rc = __real_bh_dispatch_run(core, command, arena, ret_answer, err);

    BH_ASSERT(rc != BH_OK || !command->spec || !command->spec->name
              || strncmp(command->spec->name, "planted", strlen("planted")) != 0);
    return rc;
}

bh_rc
__wrap_bh_datasets_list(struct bh_call *call, struct bh_err *err)
{
    BH_ASSERT(!is_planted("read") || !call->caller.subject.root);
    return __real_bh_datasets_list(call, err);
}

bh_rc
__wrap_bh_node_link_receive(struct bh_node_link *link, struct bh_err *err)
{
    BH_ASSERT(!is_planted("node"));
    return __real_bh_node_link_receive(link, err);
}

bh_rc
__wrap_bh_checks_ask(struct bh_core *core, struct bh_err *err)
{
    BH_ASSERT(!is_planted("tick"));
    return __real_bh_checks_ask(core, err);
}

bh_rc
__wrap_bh_state_replay(struct bh_state *state, const struct bh_event *event,
                       const struct bh_decision *decisions, uint32_t count, struct bh_step *ret_step)
{
    BH_ASSERT(!is_planted("replay"));
    return __real_bh_state_replay(state, event, decisions, count, ret_step);
}
