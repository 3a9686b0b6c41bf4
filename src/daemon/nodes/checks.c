#include "daemon/nodes/checks.h"

#include "base/log.h"
#include "base/time.h"
#include "daemon/batch/record.h"
#include "daemon/names/catalog.h"

#define PAUSE_FIRST (10 * BH_NS_PER_S)
#define PAUSE_MOST (300 * BH_NS_PER_S)

/* Where that of the node stands, or a place for it; NULL: there is none. */
static struct bh_check *
checks_find(struct bh_core *core, bh_node_id node)
{
    struct bh_check *capacity = NULL;

    for (uint32_t i = 0; i < BH_CORE_CHECKS_MAX; i++) {
        if (core->checks[i].node.v == node.v)
            return &core->checks[i];
        if (!capacity && core->checks[i].node.v == 0)
            capacity = &core->checks[i];
    }
    if (capacity)
        *capacity = (struct bh_check){ .node = node };
    return capacity;
}

/* Forget the checks of nodes that are no longer aside. */
static void
checks_forget(struct bh_core *core, const bh_node_id *aside, uint32_t count)
{
    for (uint32_t i = 0; i < BH_CORE_CHECKS_MAX; i++) {
        bool wanted = false;

        for (uint32_t n = 0; n < count; n++)
            wanted = wanted || core->checks[i].node.v == aside[n].v;
        if (!wanted)
            core->checks[i] = (struct bh_check){ .node = { 0 } };
    }
}

static bh_rc
checks_ask(struct bh_core *core, struct bh_check *check, bh_ns now, struct bh_err *err)
{
    const struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "node.check",
                                    .obj = { .type = "node", .id = check->node.v } };
    const char *name = bh_catalog_name_of(core->catalog, BH_NAME_NODE, check->node.v);
    struct bh_host_view host;

    if (core->verify_count == BH_CORE_VERIFIES_MAX || !bh_view_host(core->state.engine, check->node, &host))
        return BH_OK;
    if (!check->pause)
        bh_log(NODE_UNCHECKED, BH_STR("node", name ? name : ""), BH_U64("job", host.failed[0].v),
               BH_U64("before", host.failed[1].v));
    check->pause = !check->pause                   ? PAUSE_FIRST
                   : check->pause > PAUSE_MOST / 2 ? PAUSE_MOST
                                                   : 2 * check->pause;
    check->retry_at = now + check->pause;
    core->verifies[core->verify_count++] =
        (struct bh_verify_order){ .node = check->node, .request = core->journal.next_seq };
    return bh_core_record(core, &entry, BH_OK, err);
}

bh_rc
bh_checks_ask(struct bh_core *core, struct bh_err *err)
{
    bh_node_id aside[BH_CORE_CHECKS_MAX];
    uint32_t count = bh_view_unchecked(core->state.engine, aside, BH_CORE_CHECKS_MAX);
    bh_ns now = count || core->checks[0].node.v ? bh_time_monotonic() : 0;
    bh_rc rc = BH_OK;

    if (now)
        checks_forget(core, aside, count);
    for (uint32_t i = 0; i < count && rc == BH_OK; i++) {
        struct bh_check *check = checks_find(core, aside[i]);

        if (check && check->retry_at <= now)
            rc = checks_ask(core, check, now, err);
    }
    return rc;
}

bool
bh_checks_event(const struct bh_core *core, bh_node_id node, const struct bh_msg_verdict *verdict,
                struct bh_event *ret_event)
{
    struct bh_host_view host;

    if (verdict->lease || verdict->result == BH_CHECK_INCONCLUSIVE
        || !bh_view_host(core->state.engine, node, &host) || !host.unchecked)
        return false;
    *ret_event = (struct bh_event){
        .kind = BH_EV_CHECKED,
        .u.checked = { node, verdict->result == BH_CHECK_PASS ? BH_OUTCOME_OK : BH_OUTCOME_FAILED },
    };
    return true;
}
