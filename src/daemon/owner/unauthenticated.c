#include "daemon/owner/unauthenticated.h"

#include "daemon/batch/record.h"
#include "daemon/state/core.h"

bool
bh_unauthenticated_add(struct bh_unauthenticated *unauthenticated, uint64_t token)
{
    bool any = false;
    uint32_t at = 0;

    for (uint32_t i = 0; i < BH_UNAUTHENTICATED_MAX; i++)
        any = any || unauthenticated->items[i].times;
    for (uint32_t i = 1; token && !at && i < BH_UNAUTHENTICATED_MAX; i++)
        if (!unauthenticated->items[i].times || unauthenticated->items[i].token == token)
            at = i;
    if (at)
        unauthenticated->items[at].token = token;
    unauthenticated->items[at].times++;
    return any;
}

bh_rc
bh_unauthenticated_record(struct bh_core *core, const struct bh_unauthenticated *unauthenticated,
                          struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < BH_UNAUTHENTICATED_MAX; i++) {
        struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                  .dec = { false, BH_RULE_NOT_SHOWN },
                                  .phase = BH_PHASE_EVENT,
                                  .verb = "sign_in.refused" };

        if (unauthenticated->items[i].token)
            entry.obj = (struct bh_record_object){ "token", unauthenticated->items[i].token };
        if (unauthenticated->items[i].times)
            rc = bh_core_record_times(core, &entry, BH_UNAUTHENTICATED, unauthenticated->items[i].times, err);
    }
    return rc;
}
