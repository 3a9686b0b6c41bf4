#include "daemon/authorization/grants.h"

#include <inttypes.h>
#include <string.h>

#include "model/path.h"

static bool
grants_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether an issuer vouches for the same people in both files: its name begins `text`. */
static bool
grants_same_issuer(const struct bh_site *before, const struct bh_site *after, const char *text)
{
    size_t length = text ? strcspn(text, "/") : 0;
    const struct bh_site_issuer *was = bh_sign_in_issuer(&before->sign_in, text ? text : "", length);
    const struct bh_site_issuer *is = bh_sign_in_issuer(&after->sign_in, text ? text : "", length);

    if (!text)
        return true;
    return was && is && grants_same_text(was->url, is->url) && grants_same_text(was->client_id, is->client_id)
           && grants_same_text(was->groups_claim, is->groups_claim);
}

/* Whether a name stands for the same one in both files: the same Unix user, the same person at
 * an issuer, or a service. */
static bool
grants_same_person(const struct bh_site *before, const struct bh_site *after, const char *name)
{
    const struct bh_site_principal *was = bh_site_principal_named(before, name);
    const struct bh_site_principal *is = bh_site_principal_named(after, name);

    return was && is && was->uid == is->uid && was->service == is->service && was->account == is->account
           && grants_same_text(was->identity, is->identity)
           && grants_same_issuer(before, after, is->identity);
}

/* Whether the file in force gives the same role already. */
static bool
grants_given_before(const struct bh_site *before, const struct bh_site *after,
                    const struct bh_site_binding *binding)
{
    const struct bh_site_binding *old = before->bindings.items;

    if (binding->principal && !grants_same_person(before, after, binding->principal))
        return false;
    if (!grants_same_issuer(before, after, binding->group))
        return false;
    for (uint32_t i = 0; i < before->bindings.count; i++)
        if (old[i].role == binding->role && old[i].gid == binding->gid
            && grants_same_text(old[i].principal, binding->principal)
            && grants_same_text(old[i].group, binding->group)
            && grants_same_text(old[i].tenant, binding->tenant))
            return true;
    return false;
}

/* The tenant of that path, or the nearest above it that exists; 0: the site. */
static bh_tenant_id
grants_nearest(const struct bh_directory *dir, const char *path)
{
    char above[BH_TENANT_PATH_MAX + 1];
    const struct bh_dir_tenant *tenant = NULL;
    char *slash = above;

    if (strcmp(path, "*") == 0 || strlen(path) >= sizeof above)
        return (bh_tenant_id){ 0 };
    memcpy(above, path, strlen(path) + 1);
    while (slash && !(tenant = bh_directory_tenant_named(dir, above))) {
        slash = strrchr(above, '/');
        if (slash)
            *slash = '\0';
    }
    return tenant ? tenant->id : (bh_tenant_id){ 0 };
}

static bh_rc
grants_deny(struct bh_core *core, const struct bh_command *command, const char *verb, bh_tenant_id tenant,
            struct bh_err *err)
{
    struct bh_denial denial = { verb, { .allow = false, .rule = BH_RULE_NOT_HELD }, BH_REACH_OBJECT };

    return bh_command_deny(core, command, tenant, denial, err);
}

/* A principal with break-glass rights can become an admin of the site: the first one that gains them only
 * now. */
static const char *
grants_new_break_glass(const struct bh_site *before, const struct bh_site *after)
{
    const struct bh_site_principal *principals = after->principals.items;

    for (uint32_t i = 0; i < after->principals.count; i++) {
        const struct bh_site_principal *was = bh_site_principal_named(before, principals[i].name);

        if (principals[i].break_glass
            && (!was || !was->break_glass || !grants_same_person(before, after, principals[i].name)))
            return principals[i].name;
    }
    return NULL;
}

static bh_rc
grants_check_break_glass(struct bh_core *core, const struct bh_command *command, const char *who,
                         struct bh_err *err)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    const char *lacks =
        bh_authz_not_held(dir, &command->caller.subject, BH_ROLE_ADMIN, NULL, (bh_tenant_id){ 0 });
    bh_rc rc;

    bh_catalog_put(core->catalog, dir);
    if (!lacks)
        return BH_OK;
    rc = grants_deny(core, command, lacks, (bh_tenant_id){ 0 }, err);
    if (rc != BH_DENIED)
        return rc;
    bh_err_set(err, BH_DENIED,
               "principals %.63s: you cannot let them break the glass, as you do not "
               "hold %s",
               who, lacks);
    return bh_err_hint(err, "you can grant only what you hold; an admin of the site can apply "
                            "this");
}

bh_rc
bh_grants_check_site(struct bh_core *core, const struct bh_command *command, struct bh_err *err)
{
    const struct bh_site *before = bh_catalog_site(core->catalog), *after = command->site;
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    const struct bh_site_binding *binding = after->bindings.items;
    const char *lacks = NULL, *break_glass = grants_new_break_glass(before, after);
    bh_tenant_id tenant = { 0 };
    uint32_t at;
    bh_rc rc;

    for (at = 0; at < after->bindings.count; at++, binding++) {
        if (grants_given_before(before, after, binding))
            continue;
        tenant = grants_nearest(dir, binding->tenant);
        lacks = bh_authz_not_held(dir, &command->caller.subject, binding->role, NULL, tenant);
        if (lacks)
            break;
    }
    bh_catalog_put(core->catalog, dir);
    if (!lacks)
        return break_glass ? grants_check_break_glass(core, command, break_glass, err) : BH_OK;
    rc = grants_deny(core, command, lacks, tenant, err);
    if (rc != BH_DENIED)
        return rc;
    bh_err_set(err, BH_DENIED,
               "bindings[%" PRIu32 "] %.119s: you cannot give the role %s there, "
               "as you do not hold %s",
               at, binding->tenant, bh_role_names[binding->role], lacks);
    return bh_err_hint(err, "you can grant only what you hold; one who holds it can apply "
                            "this");
}

bh_rc
bh_grants_check_token(struct bh_core *core, const struct bh_command *command, bh_principal_id owner,
                      struct bh_err *err)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    const char *scopes = command->token->scopes, *lacks = NULL;
    bh_tenant_id tenant = { 0 };
    bh_rc rc;

    for (uint32_t i = 0; i < dir->binding_count && !lacks; i++) {
        const struct bh_dir_binding *binding = &dir->bindings[i];

        if (binding->principal.v == 0 || !bh_same(binding->principal, owner))
            continue;
        tenant = binding->tenant;
        lacks = bh_authz_not_held(dir, &command->caller.subject, binding->role,
                                  scopes && scopes[0] ? scopes : NULL, tenant);
    }
    bh_catalog_put(core->catalog, dir);
    if (!lacks)
        return BH_OK;
    rc = grants_deny(core, command, lacks, tenant, err);
    if (rc != BH_DENIED)
        return rc;
    bh_err_set(err, BH_DENIED, "principal: its token would allow %s, which you do not hold", lacks);
    return bh_err_hint(err, "you can grant only what you hold; name scopes that you hold");
}
