#include "daemon/nodes/verdicts.h"

#include "base/log.h"
#include "daemon/batch/record.h"
#include "daemon/batch/step.h"
#include "daemon/nodes/checks.h"

bh_rc
bh_verdicts_record(struct bh_core *core, bh_node_id node, const struct bh_msg_verdict *verdict,
                   struct bh_err *err)
{
    static const bh_rc results[BH_CHECK_RESULTS] = {
        [BH_CHECK_PASS] = BH_OK, [BH_CHECK_INCONCLUSIVE] = BH_TIMEOUT, [BH_CHECK_FAIL] = BH_UNAVAILABLE
    };
    static const uint32_t tallies[BH_CHECK_RESULTS] = {
        [BH_CHECK_FAIL] = 0, [BH_CHECK_PASS] = 1, [BH_CHECK_INCONCLUSIVE] = 2
    };
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "isolation.verdict",
                              .obj = { .type = "node", .id = node.v } };
    struct bh_event event;

    for (uint32_t i = 0; verdict->request && i < BH_CORE_VERIFIES_MAX; i++) {
        struct bh_verify_order *asked = &core->verifies_asked[i];

        if (asked->request != verdict->request || asked->lease != verdict->lease
            || !bh_same(asked->node, node))
            continue;
        asked->asked_ns = 0;
        entry.req = asked->req;
        entry.tenant = asked->tenant;
        if (asked->job)
            entry.obj = (struct bh_record_object){ .type = "job", .id = asked->job };
    }
    bh_tally_count(&core->tally, BH_TALLY_VERDICTS + tallies[verdict->result]);
    if (verdict->result == BH_CHECK_INCONCLUSIVE)
        bh_log(CHECKS_INCONCLUSIVE, BH_U64("node", node.v), BH_U64("lease", verdict->lease),
               BH_STR("why", verdict->why), BH_U64("again_ns", verdict->retry_ns));
    else if (verdict->result == BH_CHECK_FAIL)
        bh_log(CHECK_FAILED, BH_U64("node", node.v), BH_U64("lease", verdict->lease),
               BH_STR("why", verdict->why));
    if (bh_checks_event(core, node, verdict, &event)) {
        if (verdict->result == BH_CHECK_PASS)
            bh_log(NODE_CHECKED, BH_U64("node", node.v));
        return bh_core_step(core, &entry, &event, err);
    }
    return bh_core_record(core, &entry, results[verdict->result], err);
}
