#include "api/accounts/whoami.h"

#include "api/request/reply.h"
#include "audit/record.h"

static bh_rc
whoami_list_roles(const struct bh_call *call, struct bh_list *ret, struct bh_err *err)
{
    const struct bh_dir_binding *binding;
    struct bh_reply_who_role *roles;
    uint32_t cursor = 0;
    bh_rc rc = bh_call_alloc(call, call->dir->binding_count * sizeof *roles, &roles, err);

    if (rc != BH_OK)
        return rc;
    *ret = (struct bh_list){ roles, 0 };
    while ((binding = bh_authz_next_binding(call->dir, &call->caller.subject, &cursor))) {
        const struct bh_dir_tenant *tenant = bh_directory_tenant(call->dir, binding->tenant);

        if (binding->tenant.v && (!tenant || tenant->gone))
            continue;
        roles[ret->count++] =
            (struct bh_reply_who_role){ .gid = binding->principal.v ? (uint32_t)BH_UNSET : binding->gid,
                                        .role = bh_role_names[binding->role],
                                        .tenant = tenant ? tenant->path : "*" };
    }
    return BH_OK;
}

static const char *
via_name(uint32_t via)
{
    static const char *const names[BH_VIAS] = {
        [BH_VIA_SYSTEM] = "system",
        [BH_VIA_PEER] = "peer",
        [BH_VIA_TOKEN] = "token",
        [BH_VIA_SESSION] = "session",
        [BH_VIA_CERTIFICATE] = "certificate",
    };

    return via < BH_VIAS ? names[via] : "system";
}

bh_rc
bh_whoami_show(struct bh_call *call, struct bh_err *err)
{
    const struct bh_caller *caller = &call->caller;
    struct bh_list roles;
    bh_rc rc = whoami_list_roles(call, &roles, err);

    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, who, .name = caller->name, .principal = caller->subject.principal.v, .roles = roles,
                  .root = caller->subject.root, .scopes = caller->subject.scopes, .token = caller->token,
                  .uid = caller->via == BH_VIA_PEER ? caller->uid : (uint32_t)BH_UNSET,
                  .via = via_name(caller->via));
    return BH_OK;
}
