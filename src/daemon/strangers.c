#include "daemon/strangers.h"

#include "daemon/core.h"

bool
bh_strangers_add(struct bh_strangers *strangers, uint64_t token)
{
    bool any = false;
    uint32_t at = 0;

    for (uint32_t i = 0; i < BH_STRANGERS_MAX; i++)
        any = any || strangers->items[i].times;
    for (uint32_t i = 1; token && !at && i < BH_STRANGERS_MAX; i++)
        if (!strangers->items[i].times || strangers->items[i].token == token)
            at = i;
    if (at)
        strangers->items[at].token = token;
    strangers->items[at].times++;
    return any;
}

bh_rc
bh_strangers_record(struct bh_core *core, const struct bh_strangers *strangers,
                    struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < BH_STRANGERS_MAX; i++) {
        struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                  .dec = { false, BH_RULE_NOT_SHOWN },
                                  .phase = BH_PHASE_EVENT,
                                  .verb = "sign_in.refused" };

        if (strangers->items[i].token)
            entry.obj = (struct bh_record_object){ "token", strangers->items[i].token };
        if (strangers->items[i].times)
            rc = bh_core_note_times(core, &entry, BH_UNAUTHENTICATED, strangers->items[i].times,
                                    err);
    }
    return rc;
}
