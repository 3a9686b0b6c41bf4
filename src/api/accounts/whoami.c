#include "api/accounts/whoami.h"

#include "audit/record.h"

static void
put_bindings(struct bh_call *call, struct bh_json_writer *w)
{
    const struct bh_dir_binding *binding;
    uint32_t cursor = 0;

    bh_json_open(w, "roles", '[');
    while ((binding = bh_authz_next_binding(call->dir, &call->caller.subject, &cursor))) {
        const struct bh_dir_tenant *tenant = bh_directory_tenant(call->dir, binding->tenant);

        if (binding->tenant.v && (!tenant || tenant->gone))
            continue;
        bh_json_open(w, NULL, '{');
        if (!binding->principal.v)
            bh_json_u64(w, "gid", binding->gid);
        bh_json_str(w, "role", bh_role_names[binding->role]);
        bh_json_str(w, "tenant", tenant ? tenant->path : "*");
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
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
    struct bh_json_writer w = bh_call_writer(call);
    const struct bh_caller *caller = &call->caller;

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "name", caller->name);
    bh_json_u64(&w, "principal", caller->subject.principal.v);
    put_bindings(call, &w);
    bh_json_bool(&w, "root", caller->subject.root);
    if (caller->subject.scopes)
        bh_json_str(&w, "scopes", caller->subject.scopes);
    if (caller->token)
        bh_json_str(&w, "token", caller->token);
    if (caller->via == BH_VIA_PEER)
        bh_json_u64(&w, "uid", caller->uid);
    bh_json_str(&w, "via", via_name(caller->via));
    bh_json_close(&w, '}');
    return BH_OK;
}
