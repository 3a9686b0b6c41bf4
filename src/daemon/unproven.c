#include "daemon/unproven.h"

#include "daemon/core.h"

bool
bh_unproven_add(struct bh_unproven *unproven, uint64_t token)
{
    bool any = false;
    uint32_t at = 0;

    for (uint32_t i = 0; i < BH_UNPROVEN_MAX; i++)
        any = any || unproven->items[i].times;
    for (uint32_t i = 1; token && !at && i < BH_UNPROVEN_MAX; i++)
        if (!unproven->items[i].times || unproven->items[i].token == token)
            at = i;
    if (at)
        unproven->items[at].token = token;
    unproven->items[at].times++;
    return any;
}

bh_rc
bh_unproven_record(struct bh_core *core, const struct bh_unproven *unproven,
                   struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < BH_UNPROVEN_MAX; i++) {
        struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                  .dec = { false, BH_RULE_NOT_SHOWN },
                                  .phase = BH_PHASE_EVENT,
                                  .verb = "sign_in.refused" };

        if (unproven->items[i].token)
            entry.obj = (struct bh_record_object){ "token", unproven->items[i].token };
        if (unproven->items[i].times)
            rc = bh_core_note_times(core, &entry, BH_UNAUTHENTICATED, unproven->items[i].times,
                                    err);
    }
    return rc;
}
