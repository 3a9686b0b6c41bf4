#include "policy/authz.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/nearest.h"
#include "model/path.h"
#include "policy/operations.h"

/* No tree that a path can name is deeper: a name and a slash are two bytes. */
enum { ABOVE_MAX = BH_TENANT_PATH_MAX / 2 + 1, VERB_SHOWN_MAX = 32 };

static const struct grant {
    uint32_t rule;
    enum bh_role role;
    const char *verb;
    size_t length;
} grants[] = {
#define BH_GRANT(number, who, what) { number, BH_ROLE_##who, what, sizeof(what) - 1 },
#include "tables/roles.tbl"
#undef BH_GRANT
};

static const struct {
    enum bh_role role;
    const char *verb;
} site_roles[] = {
#define BH_SITE_ROLE(who, what) { BH_ROLE_##who, what },
#include "tables/site_roles.tbl"
#undef BH_SITE_ROLE
};

/* The rule by which `role` holds `verb`, or 0. */
static uint32_t
authz_rule_of(enum bh_role role, const char *verb)
{
    for (size_t i = 0; i < BH_COUNT(grants); i++)
        if (grants[i].role == role && strcmp(grants[i].verb, verb) == 0)
            return grants[i].rule;
    return BH_RULE_DEFAULT_DENY;
}

static bool
authz_names(const struct bh_dir_binding *binding, const struct bh_subject *subject)
{
    if (binding->principal.v != 0)
        return bh_same(binding->principal, subject->principal);
    for (uint32_t i = 0; binding->group && i < subject->group_count; i++)
        if (subject->groups[i] == binding->group)
            return true;
    for (uint32_t i = 0; !binding->group && i < subject->gid_count; i++)
        if (subject->gids[i] == binding->gid)
            return true;
    return false;
}

/* Whether the subject's bindings count. */
static bool
authz_is_known(const struct bh_directory *dir, const struct bh_subject *subject)
{
    const struct bh_dir_principal *principal;

    if (subject->principal.v == 0)
        return false;
    principal = bh_directory_principal(dir, subject->principal);
    return principal && !principal->gone;
}

/* What is settled before any binding is looked at; false: bindings decide. */
static bool
authz_is_decided(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb,
                 struct bh_verdict *ret_verdict)
{
    if (verb[0] == '\0')
        *ret_verdict = (struct bh_verdict){ true, BH_RULE_OPEN };
    else if (subject->scopes && !bh_words_contain(subject->scopes, verb))
        *ret_verdict = (struct bh_verdict){ false, BH_RULE_TOKEN_SCOPE };
    else if (subject->root)
        *ret_verdict = (struct bh_verdict){ true, BH_RULE_LOCAL_ROOT };
    else if (!authz_is_known(dir, subject))
        *ret_verdict = (struct bh_verdict){ false, BH_RULE_DEFAULT_DENY };
    else
        return false;
    return true;
}

/* One question over all bindings, with what is the same for each of them found once. */
struct authz_search {
    const struct bh_subject *subject;
    uint32_t rules[BH_ROLES];             /* by which rule a role holds the verb; 0: not */
    uint64_t gid_filter[4], group_filter; /* of the caller's groups, by their lowest bits */
    bool anywhere;                        /* wherever it is bound */
    bh_tenant_id above[ABOVE_MAX];        /* the object's tenant and those above it */
    uint32_t above_count;                 /* 0: the site as a whole */
};

static void
authz_begin(struct authz_search *search, const struct bh_subject *subject, const char *verb)
{
    size_t length = strlen(verb); /* few verbs are as long */

    *search = (struct authz_search){ .subject = subject };
    for (size_t i = 0; i < BH_COUNT(grants); i++)
        if (grants[i].length == length && search->rules[grants[i].role] == 0
            && memcmp(grants[i].verb, verb, length) == 0)
            search->rules[grants[i].role] = grants[i].rule;
    for (uint32_t i = 0; i < subject->gid_count; i++)
        search->gid_filter[subject->gids[i] >> 6 & 3] |= UINT64_C(1) << (subject->gids[i] & 63);
    for (uint32_t i = 0; i < subject->group_count; i++)
        search->group_filter |= UINT64_C(1) << (subject->groups[i] & 63);
}

/* Whether the binding may name the caller, at a glance: most do not. */
static bool
authz_may_name(const struct authz_search *search, const struct bh_dir_binding *binding)
{
    if (binding->principal.v != 0)
        return bh_same(binding->principal, search->subject->principal);
    if (binding->group != 0)
        return search->group_filter >> (binding->group & 63) & 1;
    return search->gid_filter[binding->gid >> 6 & 3] >> (binding->gid & 63) & 1;
}

/* The tenant, and those above it in a tree that may be damaged. */
static void
authz_climb(struct authz_search *search, const struct bh_directory *dir, bh_tenant_id tenant)
{
    while (tenant.v != 0 && search->above_count < ABOVE_MAX) {
        const struct bh_dir_tenant *at = bh_directory_tenant(dir, tenant);

        search->above[search->above_count++] = tenant;
        tenant = at ? at->parent : (bh_tenant_id){ 0 };
    }
}

static bool
authz_covers(const struct authz_search *search, const struct bh_dir_binding *binding)
{
    if (binding->tenant.v == 0 || search->anywhere)
        return true;
    for (uint32_t i = 0; i < search->above_count; i++)
        if (bh_same(search->above[i], binding->tenant))
            return true;
    return false;
}

/* The lowest rule that a binding brings, so that the order of bindings does not matter.
 * What is cheap is asked first: to search the caller's groups comes last. */
static struct bh_verdict
authz_lowest_rule(const struct authz_search *search, const struct bh_directory *dir)
{
    uint32_t lowest = BH_RULE_DEFAULT_DENY;

    for (uint32_t i = 0; i < dir->binding_count; i++) {
        const struct bh_dir_binding *binding = &dir->bindings[i];
        uint32_t rule;

        BH_ASSERT(binding->role < BH_ROLES);
        rule = search->rules[binding->role];
        if (rule == 0 || (lowest != 0 && rule >= lowest) || !authz_may_name(search, binding))
            continue;
        if (authz_covers(search, binding) && authz_names(binding, search->subject))
            lowest = rule;
    }
    return (struct bh_verdict){ lowest != BH_RULE_DEFAULT_DENY, lowest };
}

/* Whether the caller is there as surely as the verb asks. */
static bool
authz_is_present(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb)
{
    const struct bh_presence *presence = &subject->presence;
    const struct bh_dir_step_up *asked;

    if (presence->kind == BH_PRESENCE_LOCAL)
        return true;
    asked = bh_directory_step_up(dir, verb);
    if (!asked || asked->level == BH_LEVEL_NONE)
        return true;
    if (presence->kind == BH_PRESENCE_TOKEN)
        return subject->scopes != NULL; /* they name it: that was settled before */
    return presence->level >= asked->level && presence->shown_ns <= presence->now_ns
           && presence->now_ns - presence->shown_ns <= asked->within_ns;
}

/* With break-glass, what an admin of the site holds, where no binding gives it. */
static struct bh_verdict
authz_or_break_glass(const struct bh_subject *subject, const char *verb, struct bh_verdict verdict)
{
    const struct bh_presence *presence = &subject->presence;

    if (verdict.allow || presence->kind != BH_PRESENCE_SESSION
        || presence->now_ns >= presence->break_glass_until_ns || authz_rule_of(BH_ROLE_ADMIN, verb) == 0)
        return verdict;
    return (struct bh_verdict){ true, BH_RULE_BREAK_GLASS };
}

static struct bh_verdict
authz_unless_absent(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb,
                    struct bh_verdict verdict)
{
    if (verdict.allow && !authz_is_present(dir, subject, verb))
        return (struct bh_verdict){ false, BH_RULE_STEP_UP };
    return verdict;
}

static struct bh_verdict
authz_finish(const struct authz_search *search, const struct bh_directory *dir, const char *verb)
{
    struct bh_verdict verdict = authz_or_break_glass(search->subject, verb, authz_lowest_rule(search, dir));

    return authz_unless_absent(dir, search->subject, verb, verdict);
}

struct bh_verdict
bh_authz_check(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb,
               bh_tenant_id tenant)
{
    struct bh_verdict verdict;
    struct authz_search search;

    if (authz_is_decided(dir, subject, verb, &verdict))
        return verdict;
    authz_begin(&search, subject, verb);
    authz_climb(&search, dir, tenant);
    return authz_finish(&search, dir, verb);
}

struct bh_verdict
bh_authz_check_anywhere(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb)
{
    struct bh_verdict verdict;
    struct authz_search search;

    if (authz_is_decided(dir, subject, verb, &verdict))
        return verdict;
    authz_begin(&search, subject, verb);
    search.anywhere = true;
    return authz_finish(&search, dir, verb);
}

struct bh_verdict
bh_authz_own(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb)
{
    struct bh_verdict own = { true, BH_RULE_OWN_OBJECT };

    if (subject->scopes ? !bh_words_contain(subject->scopes, verb)
                        : subject->presence.kind == BH_PRESENCE_TOKEN)
        return (struct bh_verdict){ false, BH_RULE_TOKEN_SCOPE };
    if (!authz_is_known(dir, subject))
        return (struct bh_verdict){ false, BH_RULE_DEFAULT_DENY };
    return authz_unless_absent(dir, subject, verb, own);
}

const char *
bh_authz_not_held(const struct bh_directory *dir, const struct bh_subject *subject, enum bh_role role,
                  const char *scopes, bh_tenant_id tenant)
{
    for (size_t i = 0; i < BH_COUNT(grants); i++)
        if (grants[i].role == role && (!scopes || bh_words_contain(scopes, grants[i].verb))
            && !bh_authz_check(dir, subject, grants[i].verb, tenant).allow)
            return grants[i].verb;
    return NULL;
}

uint32_t
bh_authz_visible(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb,
                 uint32_t *ret_ids, bool *ret_all)
{
    uint32_t count = 0;

    *ret_all = bh_authz_check(dir, subject, verb, (bh_tenant_id){ 0 }).allow;
    for (uint32_t i = 0; i < dir->tenant_count; i++)
        if (*ret_all || bh_authz_check(dir, subject, verb, dir->tenants[i].id).allow)
            ret_ids[count++] = dir->tenants[i].id.v;
    return count;
}

const struct bh_dir_binding *
bh_authz_next_binding(const struct bh_directory *dir, const struct bh_subject *subject, uint32_t *cursor)
{
    if (!authz_is_known(dir, subject))
        return NULL;
    while (*cursor < dir->binding_count) {
        const struct bh_dir_binding *binding = &dir->bindings[(*cursor)++];

        if (authz_names(binding, subject))
            return binding;
    }
    return NULL;
}

const char *
bh_authz_role_for(const char *verb)
{
    for (int role = BH_ROLE_VIEWER; role < BH_ROLES; role++)
        if (authz_rule_of((enum bh_role)role, verb) != 0)
            return bh_role_names[role];
    return "root";
}

const char *
bh_authz_site_role_for(const char *verb)
{
    for (size_t i = 0; i < BH_COUNT(site_roles); i++)
        if (strcmp(site_roles[i].verb, verb) == 0)
            return bh_role_names[site_roles[i].role];
    return bh_authz_role_for(verb);
}

void
bh_authz_hint_verb(const char *verb, struct bh_err *err)
{
    char memory[sizeof err->hint] = "";
    struct bh_nearest nearest = { 0 };
    struct bh_buf hint;
    const char *between = "";

    bh_buf_init_fixed(&hint, memory, sizeof memory);
    for (size_t i = 0; i < BH_COUNT(grants); i++)
        bh_nearest_try(&nearest, verb, grants[i].verb);
    if (nearest.word)
        bh_buf_printf(&hint, "did you mean %s? ", nearest.word);
    bh_buf_puts(&hint, "a developer has ");
    for (size_t i = 0; i < BH_COUNT(grants); i++) {
        if (grants[i].role != BH_ROLE_DEVELOPER)
            continue;
        if (hint.length + VERB_SHOWN_MAX > sizeof memory) {
            bh_buf_puts(&hint, " ...");
            break;
        }
        bh_buf_printf(&hint, "%s%s", between, grants[i].verb);
        between = " ";
    }
    (void)bh_err_hint(err, "%s", bh_buf_text(&hint) ? bh_buf_text(&hint) : "");
}

bool
bh_authz_role_grants(enum bh_role role, const char *verb)
{
    return authz_rule_of(role, verb) != BH_RULE_DEFAULT_DENY;
}

bh_rc
bh_authz_refuse_step_up(const char *verb, struct bh_err *err)
{
    bh_err_set(err, BH_UNAUTHENTICATED, "%s needs a recent second factor", verb);
    return bh_err_hint(
        err,
        "show one with `bulkhead login --again` or on the account page; a token needs %s among its scopes",
        verb);
}

/* The hint of a denial by BH_RULE_TOKEN_SCOPE: a token names too little, a session has shown too
 * little. */
static const char *
authz_scope_hint(const struct bh_subject *subject)
{
    if (subject->presence.kind == BH_PRESENCE_SESSION)
        return "this session has shown no second factor yet: add one with `bulkhead account totp` "
               "or on the account page, or show it with `bulkhead login --again`";
    return "the token's scopes do not include it; create a token with it";
}

/* Which role, and where: one that is bound elsewhere does not help. */
static bh_rc
authz_hint_role(const struct bh_denial *denial, const char *path, struct bh_err *err)
{
    const char *role = bh_authz_role_for(denial->verb);

    if (denial->reach == BH_REACH_OWN)
        return bh_err_hint(
            err,
            "your own needs to be allowed in the site file; others' need the role admin on the whole site");
    if (strcmp(role, "root") == 0)
        return bh_err_hint(err, "no role allows it");
    if (denial->reach == BH_REACH_ANYWHERE)
        return bh_err_hint(err,
                           "the role %s allows it, bound at any tenant; an admin can bind it "
                           "in the site file",
                           role);
    if (!path)
        return bh_err_hint(err,
                           "the role %s allows it, bound on the whole site (tenant \"*\"); an "
                           "admin can bind it in the site file",
                           bh_authz_site_role_for(denial->verb));
    return bh_err_hint(err,
                       "the role %s allows it, bound at that tenant or above it; an admin can "
                       "bind it in the site file",
                       role);
}

bh_rc
bh_authz_explain(const struct bh_denial *denial, const char *caller, const struct bh_subject *subject,
                 const char *path, struct bh_err *err)
{
    if (denial->verdict.rule == BH_RULE_STEP_UP)
        return bh_authz_refuse_step_up(denial->verb, err);
    if (denial->reach == BH_REACH_ANYWHERE)
        bh_err_set(err, BH_DENIED, "%s may not use %s anywhere", caller, denial->verb);
    else if (denial->reach == BH_REACH_OWN)
        bh_err_set(err, BH_DENIED, "%s may not use %s on this", caller, denial->verb);
    else
        bh_err_set(err, BH_DENIED, "%s may not use %s on %s", caller, denial->verb, path ? path : "the site");
    if (denial->verdict.rule == BH_RULE_TOKEN_SCOPE)
        return bh_err_hint(err, "%s", authz_scope_hint(subject));
    return authz_hint_role(denial, path, err);
}
