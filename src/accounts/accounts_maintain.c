#include <string.h>

#include "accounts/accounts_internal.h"
#include "accounts/oidc_refresh.h"
#include "accounts/session.h"
#include "accounts/use.h"
#include "base/log.h"

/* What is due now and then. */

/* A call without a caller: for the daemon's own changes. */
struct maintenance {
    struct bh_call call;
    struct bh_arena *arena;
};

static void
maintenance_begin(struct bh_accounts *accounts, struct maintenance *ret_maintenance)
{
    const struct bh_owner *owner = &accounts->options.owner;

    *ret_maintenance = (struct maintenance){ .arena = bh_arena_new(16 << 20) };
    ret_maintenance->call = (struct bh_call){
        .arena = ret_maintenance->arena,
        .op = bh_operation_get(BH_OP_SIGN_IN), /* open: the daemon's own */
        .dir = owner->ops->directory_get(owner->self),
        .caller = { .name = "bulkheadd", .via = BH_VIA_SYSTEM, .uid = UINT32_MAX },
    };
}

static void
maintenance_end(struct bh_accounts *accounts, struct maintenance *maintenance)
{
    const struct bh_owner *owner = &accounts->options.owner;

    owner->ops->directory_put(owner->self, maintenance->call.dir);
    bh_arena_free(maintenance->arena);
}

static bh_rc
put_uses(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    enum { USES = 256 };
    struct bh_document_put puts[USES];
    struct bh_token_use tokens[USES];
    struct bh_accounts_change change = { .verb = "use.note", .puts = puts, .uses = tokens };
    struct bh_use recorded[USES];
    struct bh_answer answer;
    const struct bh_use *use;
    uint32_t cursor = 0, count = 0;

    bh_mutex_lock(&accounts->mutex);
    while (count < USES && (use = bh_use_next(&accounts->uses, &cursor)))
        recorded[count++] = *use;
    bh_mutex_unlock(&accounts->mutex);
    for (uint32_t i = 0; i < count; i++) {
        struct bh_session session;

        if (!recorded[i].session) {
            tokens[change.use_count].at_ns = recorded[i].at_ns;
            memcpy(tokens[change.use_count++].id, recorded[i].id, sizeof recorded[i].id);
            continue;
        }
        if (bh_session_read(&accounts->documents, recorded[i].id, call->arena, &session, err) != BH_OK)
            continue;
        session.used_ns = recorded[i].at_ns;
        if (bh_session_put(&session, call->arena, &puts[change.put_count], err) == BH_OK)
            change.put_count++;
    }
    if (change.put_count + change.use_count == 0)
        return BH_OK;
    return bh_accounts_commit(accounts, call, &change, &answer, err);
}

void
bh_accounts_maintain(struct bh_accounts *accounts)
{
    struct maintenance maintenance;
    struct bh_err err;
    bh_rc rc;

    maintenance_begin(accounts, &maintenance);
    rc = put_uses(accounts, &maintenance.call, &err);
    if (rc == BH_OK || rc == BH_CONFLICT)
        rc = bh_sessions_sweep(accounts, &maintenance.call, &err);
    if (accounts->options.https.ops)
        bh_oidc_refresh(accounts, &maintenance.call);
    if (rc != BH_OK && rc != BH_CONFLICT && rc != BH_UNAVAILABLE)
        bh_log(PEOPLE_NOT_TENDED, BH_ERRLOG(&err));
    maintenance_end(accounts, &maintenance);
}
