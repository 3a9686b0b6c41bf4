#include "policy/authz.h"

#include <string.h>

#include "base/attr.h"
#include "policy/operations.h"

static const struct grant {
    uint32_t rule;
    enum bh_role role;
    const char *verb;
} grants[] = {
#define BH_GRANT(number, who, what) { number, BH_ROLE_##who, what },
#include "tables/roles.tbl"
#undef BH_GRANT
};

/* The rule by which `role` holds `verb`, or 0. */
static uint32_t
rule_of(enum bh_role role, const char *verb)
{
    for (size_t i = 0; i < BH_COUNT(grants); i++)
        if (grants[i].role == role && strcmp(grants[i].verb, verb) == 0)
            return grants[i].rule;
    return BH_RULE_DEFAULT_DENY;
}

static bool
in_group(const struct bh_subject *subject, uint32_t gid)
{
    for (uint32_t i = 0; i < subject->gid_count; i++)
        if (subject->gids[i] == gid)
            return true;
    return false;
}

static bool
names(const struct bh_dir_binding *binding, const struct bh_subject *subject)
{
    if (binding->principal.v != 0)
        return bh_same(binding->principal, subject->principal);
    return in_group(subject, binding->gid);
}

/* Whether the subject is somebody whose bindings count. */
static bool
is_known(const struct bh_directory *dir, const struct bh_subject *subject)
{
    const struct bh_dir_principal *principal;

    if (subject->principal.v == 0)
        return false;
    principal = bh_directory_principal(dir, subject->principal);
    return principal && !principal->gone;
}

/* What is settled before any binding is looked at; false: bindings decide. */
static bool
settled(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb,
        struct bh_verdict *ret_verdict)
{
    if (verb[0] == '\0')
        *ret_verdict = (struct bh_verdict){ true, BH_RULE_OPEN };
    else if (subject->scopes && !bh_words_contain(subject->scopes, verb))
        *ret_verdict = (struct bh_verdict){ false, BH_RULE_TOKEN_SCOPE };
    else if (subject->root)
        *ret_verdict = (struct bh_verdict){ true, BH_RULE_LOCAL_ROOT };
    else if (!is_known(dir, subject))
        *ret_verdict = (struct bh_verdict){ false, BH_RULE_DEFAULT_DENY };
    else
        return false;
    return true;
}

/* The lowest rule that a binding to the subject at or above `tenant` brings, so that
 * the order of bindings does not matter. */
static uint32_t
lowest_rule(const struct bh_directory *dir, const struct bh_subject *subject,
            const char *verb, bh_tenant_id tenant)
{
    uint32_t lowest = BH_RULE_DEFAULT_DENY;

    for (uint32_t i = 0; i < dir->binding_count; i++) {
        const struct bh_dir_binding *binding = &dir->bindings[i];
        uint32_t rule = names(binding, subject) ? rule_of(binding->role, verb) : 0;

        if (rule == 0 || (lowest != 0 && rule >= lowest))
            continue;
        if (tenant.v == 0 ? binding->tenant.v == 0
                          : bh_directory_within(dir, binding->tenant, tenant))
            lowest = rule;
    }
    return lowest;
}

struct bh_verdict
bh_authz_check(const struct bh_directory *dir, const struct bh_subject *subject,
               const char *verb, bh_tenant_id tenant)
{
    struct bh_verdict verdict;
    uint32_t rule;

    if (settled(dir, subject, verb, &verdict))
        return verdict;
    rule = lowest_rule(dir, subject, verb, tenant);
    return (struct bh_verdict){ rule != BH_RULE_DEFAULT_DENY, rule };
}

struct bh_verdict
bh_authz_check_anywhere(const struct bh_directory *dir, const struct bh_subject *subject,
                        const char *verb)
{
    struct bh_verdict verdict;

    if (settled(dir, subject, verb, &verdict))
        return verdict;
    for (uint32_t i = 0; i < dir->binding_count; i++) {
        uint32_t rule = names(&dir->bindings[i], subject)
                            ? rule_of(dir->bindings[i].role, verb) : 0;

        if (rule != 0)
            return (struct bh_verdict){ true, rule };
    }
    return (struct bh_verdict){ false, BH_RULE_DEFAULT_DENY };
}

uint32_t
bh_authz_visible(const struct bh_directory *dir, const struct bh_subject *subject,
                 const char *verb, uint32_t *ret_ids, bool *ret_all)
{
    uint32_t count = 0;

    *ret_all = bh_authz_check(dir, subject, verb, (bh_tenant_id){ 0 }).allow;
    for (uint32_t i = 0; i < dir->tenant_count; i++)
        if (*ret_all || bh_authz_check(dir, subject, verb, dir->tenants[i].id).allow)
            ret_ids[count++] = dir->tenants[i].id.v;
    return count;
}

const struct bh_dir_binding *
bh_authz_next_binding(const struct bh_directory *dir, const struct bh_subject *subject,
                      uint32_t *cursor)
{
    if (!is_known(dir, subject))
        return NULL;
    while (*cursor < dir->binding_count) {
        const struct bh_dir_binding *binding = &dir->bindings[(*cursor)++];

        if (names(binding, subject))
            return binding;
    }
    return NULL;
}

const char *
bh_authz_role_for(const char *verb)
{
    for (int role = BH_ROLE_VIEWER; role < BH_ROLES; role++)
        if (rule_of((enum bh_role)role, verb) != 0)
            return bh_role_names[role];
    return "root";
}
