#include "api/tried.h"

#include "api/cordon.h"
#include "api/keys.h"

static const char *
target_of(struct bh_call *call)
{
    if (call->target)
        return call->target;
    return call->op->id == BH_OP_NODE_VERIFY ? bh_call_query(call, "node")
                                             : bh_cordon_target(call);
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

static struct bh_record_object
account_reset(const struct bh_call *call)
{
    const struct bh_dir_principal *principal =
        call->id ? bh_directory_principal_named(call->dir, call->id) : NULL;

    return principal ? (struct bh_record_object){ "account", principal->id.v }
                     : (struct bh_record_object){ .id = 0 };
}

static struct bh_record_object
object_of(struct bh_call *call)
{
    if (call->object.type[0])
        return call->object;
    if (call->op->id == BH_OP_KEY_SHRED)
        return tenant_shredded(call);
    if (call->op->id == BH_OP_ACCOUNT_RESET)
        return account_reset(call);
    return (struct bh_record_object){ .id = 0 };
}

struct bh_tried
bh_tried_of(struct bh_call *call)
{
    bool strangers = !call->identified && !call->caller.subject.principal.v;

    if (strangers) /* nothing that he sent is looked at */
        return (struct bh_tried){ .op = call->op->id };
    return (struct bh_tried){ .op = call->op->id, .verdict = call->verdict, .job = call->job,
                              .target = target_of(call), .verb = call->verb,
                              .tenant = call->tenant, .object = object_of(call) };
}
