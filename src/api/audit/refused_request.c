#include "api/audit/refused_request.h"

#include "api/accounts/accounts.h"
#include "api/audit/keys.h"
#include "api/nodes/cordon.h"

/* The name of what the request is about, as it was typed; NULL: none, or it says none. */
static const char *
target_of(struct bh_call *call)
{
    if (call->target)
        return call->target;
    switch ((int)call->op->id) {
    case BH_OP_TOKEN_REVOKE:
    case BH_OP_ACCOUNT_RESET:
        return call->id;
    case BH_OP_ACCOUNT_ENROL:
        return bh_accounts_target(call);
    case BH_OP_NODE_VERIFY:
        return call->query.node;
    default:
        return bh_cordon_target(call);
    }
}

static struct bh_record_object
tenant_shredded(struct bh_call *call)
{
    struct bh_shred_request request = { 0 };
    const struct bh_dir_tenant *tenant = NULL;
    struct bh_err ignored;

    if (bh_call_body(call, &bh_shred_request_fields, &request, &ignored) == BH_OK && request.tenant)
        tenant = bh_directory_tenant_named(call->dir, request.tenant);
    return tenant ? (struct bh_record_object){ "tenant", tenant->id.v }
                  : (struct bh_record_object){ .id = 0 };
}

struct bh_refused_request
bh_refused_request_of(struct bh_call *call)
{
    bool unknown_caller = !call->identified && !call->caller.subject.principal.v;
    struct bh_refused_request refused = { .op = call->op->id };

    if (unknown_caller) /* nothing that it sent is looked at */
        return refused;
    if (!call->probed) /* of what does not exist for it, nothing was decided */
        refused.verdict = call->verdict;
    refused.verb = call->verb;
    refused.job = call->job;
    refused.tenant = call->tenant;
    refused.target = target_of(call);
    refused.object = call->object;
    if (!refused.object.type[0] && call->op->id == BH_OP_KEY_SHRED)
        refused.object = tenant_shredded(call);
    return refused;
}
