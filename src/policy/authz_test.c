#include "policy/authz.h"

#include "base/attr.h"
#include "base/test.h"
#include "policy/operations.h"

/* The tree: two organizations, three levels deep.
 *
 *   acme(1) - vision(2) - train(3) - deep(4)
 *           \ speech(5)
 *   other(6) - lab(7) */
/* clang-format off */
static const struct bh_dir_tenant tenants[] = {
    { { 1 }, { 0 }, "acme", BH_TENANT_ORGANIZATION, false },
    { { 2 }, { 1 }, "acme/vision", BH_TENANT_DEPARTMENT, false },
    { { 3 }, { 2 }, "acme/vision/train", BH_TENANT_TEAM, false },
    { { 4 }, { 3 }, "acme/vision/train/deep", BH_TENANT_PROJECT, false },
    { { 5 }, { 1 }, "acme/speech", BH_TENANT_DEPARTMENT, false },
    { { 6 }, { 0 }, "other", BH_TENANT_ORGANIZATION, false },
    { { 7 }, { 6 }, "other/lab", BH_TENANT_DEPARTMENT, false },
};
/* clang-format on */

static const struct bh_dir_principal principals[] = {
    { { 1 }, "alice", 1001, false, false },
    { { 2 }, "bob", 1002, false, false },
    { { 3 }, "gone", 1003, false, true },
};

static struct bh_directory
directory_with(const struct bh_dir_binding *bindings, uint32_t count)
{
    return (struct bh_directory){
        .tenants = tenants,
        .tenant_count = BH_COUNT(tenants),
        .principals = principals,
        .principal_count = BH_COUNT(principals),
        .bindings = bindings,
        .binding_count = count,
    };
}

/* ---- a second evaluator, by another road: paths instead of parents, a matrix instead
 * of rules ---- */

static const char *const matrix[BH_ROLES] = {
    [BH_ROLE_VIEWER] = "job.view tenant.view gpu.view sku.view dataset.view metrics.view",
    [BH_ROLE_DEVELOPER] = "job.view job.submit job.logs job.cancel tenant.view gpu.view "
                          "sku.view token.create token.view token.revoke usage.view "
                          "record.view dataset.view job.exec isolation.verify metrics.view",
    [BH_ROLE_OPERATOR] =
        "job.view job.submit job.logs job.cancel job.cancel.any tenant.view "
        "gpu.view sku.view usage.view site.view priority.high token.create "
        "token.view token.revoke job.move dataset.view job.exec layout.apply gpu.cordon isolation.verify metrics.view",
    [BH_ROLE_ADMIN] = "job.view job.submit job.logs job.cancel job.cancel.any tenant.view "
                      "gpu.view sku.view usage.view site.view site.apply priority.high "
                      "token.create token.view token.revoke token.any record.view job.move "
                      "account.any dataset.view key.view key.shred key.rotate "
                      "audit.prune "
                      "job.exec job.exec.any "
                      "layout.apply gpu.cordon isolation.verify metrics.view",
    [BH_ROLE_AUDITOR] = "record.view job.view tenant.view site.view gpu.view sku.view "
                        "usage.view dataset.view key.view isolation.verify metrics.view",
    [BH_ROLE_BILLING] = "usage.view tenant.view sku.view",
};

static const char *const verbs[] = {
    "job.view",      "job.submit",   "job.logs",     "job.cancel",   "job.cancel.any",   "tenant.view",
    "gpu.view",      "sku.view",     "usage.view",   "site.view",    "site.apply",       "token.any",
    "priority.high", "token.create", "token.view",   "token.revoke", "record.view",      "job.move",
    "account.any",   "dataset.view", "key.view",     "key.shred",    "key.rotate",       "audit.prune",
    "job.exec",      "job.exec.any", "layout.apply", "gpu.cordon",   "isolation.verify", "metrics.view",
    "no.such.verb",
};

static bool
in_matrix(enum bh_role role, const char *verb)
{
    const char *list = matrix[role] ? matrix[role] : "", *at = list;
    size_t length = strlen(verb);

    while ((at = strstr(at, verb))) {
        bool starts = at == list || at[-1] == ' ';

        if (starts && (at[length] == ' ' || at[length] == '\0'))
            return true;
        at += length;
    }
    return false;
}

static const char *
authz_path_of(uint32_t tenant)
{
    for (size_t i = 0; i < BH_COUNT(tenants); i++)
        if (tenants[i].id.v == tenant)
            return tenants[i].path;
    return NULL;
}

static bool
expected(const struct bh_dir_binding *binding, const char *verb, uint32_t tenant)
{
    const char *top = authz_path_of(binding->tenant.v), *at = authz_path_of(tenant);

    if (!in_matrix(binding->role, verb))
        return false;
    if (binding->tenant.v == 0)
        return true;
    return tenant != 0 && at && strncmp(top, at, strlen(top)) == 0
           && (at[strlen(top)] == '\0' || at[strlen(top)] == '/');
}

static void
check_pair(const struct bh_directory *dir, const struct bh_dir_binding *binding, const char *verb,
           uint32_t tenant)
{
    struct bh_subject alice = { .principal = { 1 }, .uid = 1001 };
    struct bh_subject bob = { .principal = { 2 }, .uid = 1002 };
    struct bh_verdict verdict = bh_authz_check(dir, &alice, verb, (bh_tenant_id){ tenant });
    char name[160];

    snprintf(name, sizeof name, "%s at %s: %s on %s", bh_role_names[binding->role],
             binding->tenant.v ? authz_path_of(binding->tenant.v) : "*", verb,
             tenant ? authz_path_of(tenant) : "the site");
    BH_CHECK_EQ(name, verdict.allow, expected(binding, verb, tenant));
    BH_CHECK_EQ(name, verdict.allow, verdict.rule != 0);
    BH_CHECK_EQ(name, bh_authz_check(dir, &bob, verb, (bh_tenant_id){ tenant }).allow, false);
}

static void
check_binding(const struct bh_dir_binding *binding)
{
    struct bh_directory dir = directory_with(binding, 1);

    for (size_t v = 0; v < BH_COUNT(verbs); v++)
        for (uint32_t tenant = 0; tenant <= BH_COUNT(tenants); tenant++)
            check_pair(&dir, binding, verbs[v], tenant);
}

static void
every_role_and_verb_over_the_tree(void **state)
{
    for (int role = BH_ROLE_VIEWER; role < BH_ROLES; role++)
        for (uint32_t at = 0; at <= BH_COUNT(tenants); at++)
            check_binding(&(struct bh_dir_binding){ (enum bh_role)role, { 1 }, 0, { at } });
    BH_CHECK_DONE();
}

static bool
in_verbs(const char *verb)
{
    for (size_t i = 0; i < BH_COUNT(verbs); i++)
        if (strcmp(verbs[i], verb) == 0)
            return true;
    return false;
}

/* The table of every role, verb and depth has a row for all that there is to grant, and each
 * operation asks for something that some role grants. */
static void
no_verb_is_left_out(void **state)
{
#define BH_GRANT(number, who, what) BH_CHECK(what, in_verbs(what));
#include "tables/roles.tbl"
#undef BH_GRANT
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);

        if (row->verb[0] && row->scope != BH_SCOPE_OWN)
            BH_CHECK(row->name, strcmp(bh_authz_role_for(row->verb), "root") != 0);
    }
    BH_CHECK_DONE();
}

/* A principal grants only what it holds: a table of who gives which role where. */
static void
a_role_is_given_by_those_who_hold_all_of_it(void **state)
{
    static const struct {
        const char *name;
        struct bh_dir_binding held;
        const char *scopes;
        enum bh_role role;
        uint32_t tenant;
        const char *lacks;
        /* clang-format off */
    } cases[] = {
        { "an admin of the site, all", { BH_ROLE_ADMIN, { 1 }, 0, { 0 } }, NULL, BH_ROLE_ADMIN, 0, NULL },
        { "and below", { BH_ROLE_ADMIN, { 1 }, 0, { 0 } }, NULL, BH_ROLE_ADMIN, 4, NULL },
        { "an auditor's", { BH_ROLE_ADMIN, { 1 }, 0, { 0 } }, NULL, BH_ROLE_AUDITOR, 0, NULL },
        { "an admin of a tenant, there", { BH_ROLE_ADMIN, { 1 }, 0, { 2 } }, NULL, BH_ROLE_ADMIN, 3, NULL },
        { "not above", { BH_ROLE_ADMIN, { 1 }, 0, { 2 } }, NULL, BH_ROLE_VIEWER, 1, "job.view" },
        { "not beside", { BH_ROLE_ADMIN, { 1 }, 0, { 2 } }, NULL, BH_ROLE_VIEWER, 5, "job.view" },
        { "not the site", { BH_ROLE_ADMIN, { 1 }, 0, { 2 } }, NULL, BH_ROLE_BILLING, 0, "usage.view" },
        { "an operator, no admin", { BH_ROLE_OPERATOR, { 1 }, 0, { 0 } }, NULL, BH_ROLE_ADMIN, 0, "site.apply" },
        { "an operator, a viewer", { BH_ROLE_OPERATOR, { 1 }, 0, { 0 } }, NULL, BH_ROLE_VIEWER, 0, NULL },
        { "a viewer, no developer", { BH_ROLE_VIEWER, { 1 }, 0, { 0 } }, NULL, BH_ROLE_DEVELOPER, 2, "job.submit" },
        { "a token, what it names", { BH_ROLE_ADMIN, { 1 }, 0, { 0 } }, "site.apply", BH_ROLE_VIEWER, 2, "job.view" },
        { "and no less", { BH_ROLE_ADMIN, { 1 }, 0, { 0 } }, "usage.view tenant.view sku.view",
          BH_ROLE_BILLING, 2, NULL },
    };
    /* clang-format on */

    struct bh_directory viewers = directory_with(&cases[9].held, 1);
    struct bh_subject viewer = { .principal = { 1 } };

    BH_CHECK("of what is scoped",
             !bh_authz_not_held(&viewers, &viewer, BH_ROLE_ADMIN, "job.view sku.view", (bh_tenant_id){ 0 }));
    BH_CHECK_STR(
        "of what is scoped too wide",
        bh_authz_not_held(&viewers, &viewer, BH_ROLE_ADMIN, "job.view job.submit", (bh_tenant_id){ 0 }),
        "job.submit");
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_directory dir = directory_with(&cases[i].held, 1);
        struct bh_subject who = { .principal = { 1 }, .scopes = cases[i].scopes };
        const char *lacks =
            bh_authz_not_held(&dir, &who, cases[i].role, NULL, (bh_tenant_id){ cases[i].tenant });

        BH_CHECK_STR(cases[i].name, lacks ? lacks : "", cases[i].lacks ? cases[i].lacks : "");
    }
    BH_CHECK_DONE();
}

static void
every_operation_is_denied_across_tenants(void **state)
{
    for (int role = BH_ROLE_VIEWER; role < BH_ROLES; role++) {
        struct bh_dir_binding binding = { (enum bh_role)role, { 1 }, 0, { 1 } };
        struct bh_directory dir = directory_with(&binding, 1);
        struct bh_subject alice = { .principal = { 1 }, .uid = 1001 };

        for (int op = 0; op < BH_OPERATIONS; op++) {
            const char *verb = bh_operation_get((enum bh_operation)op)->verb;

            if (verb[0] == '\0')
                continue;
            BH_CHECK(verb, !bh_authz_check(&dir, &alice, verb, (bh_tenant_id){ 6 }).allow);
            BH_CHECK(verb, !bh_authz_check(&dir, &alice, verb, (bh_tenant_id){ 7 }).allow);
            BH_CHECK(verb, !bh_authz_check(&dir, &alice, verb, (bh_tenant_id){ 99 }).allow);
        }
    }
    BH_CHECK_DONE();
}

/* Pairs of bindings: what two grant is exactly what either grants, in any order. */
static void
check_sum(const struct bh_dir_binding both[2], const char *verb)
{
    const struct bh_dir_binding swapped[] = { both[1], both[0] };
    struct bh_directory dir = directory_with(both, 2), other = directory_with(swapped, 2);
    struct bh_subject alice = { .principal = { 1 } };

    for (uint32_t tenant = 0; tenant <= BH_COUNT(tenants); tenant++) {
        struct bh_verdict got = bh_authz_check(&dir, &alice, verb, (bh_tenant_id){ tenant });
        struct bh_verdict turned = bh_authz_check(&other, &alice, verb, (bh_tenant_id){ tenant });

        BH_CHECK_EQ(verb, got.allow, expected(&both[0], verb, tenant) || expected(&both[1], verb, tenant));
        BH_CHECK_EQ(verb, got.rule, turned.rule);
    }
}

static void
bindings_add_up(void **state)
{
    for (int first = BH_ROLE_VIEWER; first < BH_ROLES; first++)
        for (int second = BH_ROLE_VIEWER; second < BH_ROLES; second++) {
            struct bh_dir_binding both[] = { { (enum bh_role)first, { 1 }, 0, { 2 } },
                                             { (enum bh_role)second, { 1 }, 0, { 5 } } };

            for (size_t v = 0; v < BH_COUNT(verbs); v++)
                check_sum(both, verbs[v]);
        }
    BH_CHECK_DONE();
}

static void
groups_count_for_known_principals_only(void **state)
{
    static const uint32_t gids[] = { 100, 500 };
    struct bh_dir_binding binding = { BH_ROLE_AUDITOR, { 0 }, 500, { 0 } };
    struct bh_directory dir = directory_with(&binding, 1);
    struct bh_subject member = { .principal = { 1 }, .gids = gids, .gid_count = 2 };
    struct bh_subject outsider = { .principal = { 1 }, .gids = gids, .gid_count = 1 };
    struct bh_subject nobody = { .gids = gids, .gid_count = 2 };
    struct bh_subject removed = { .principal = { 3 }, .gids = gids, .gid_count = 2 };
    struct bh_subject unknown = { .principal = { 9 }, .gids = gids, .gid_count = 2 };

    BH_CHECK("member", bh_authz_check(&dir, &member, "record.view", (bh_tenant_id){ 3 }).allow);
    BH_CHECK("no member", !bh_authz_check(&dir, &outsider, "record.view", (bh_tenant_id){ 3 }).allow);
    BH_CHECK("nobody", !bh_authz_check(&dir, &nobody, "record.view", (bh_tenant_id){ 3 }).allow);
    BH_CHECK("removed", !bh_authz_check(&dir, &removed, "record.view", (bh_tenant_id){ 3 }).allow);
    BH_CHECK("unknown", !bh_authz_check(&dir, &unknown, "record.view", (bh_tenant_id){ 3 }).allow);
    BH_CHECK_DONE();
}

static void
tokens_root_and_open_verbs(void **state)
{
    struct bh_dir_binding binding = { BH_ROLE_ADMIN, { 1 }, 0, { 0 } };
    struct bh_directory dir = directory_with(&binding, 1);
    struct bh_subject scoped = { .principal = { 1 }, .scopes = "job.view job.cancel.any" };
    struct bh_subject root = { .uid = 0, .root = true };
    struct bh_subject nobody = { .uid = 7 };
    bh_tenant_id acme = { 1 };

    BH_CHECK_EQ("in scope", bh_authz_check(&dir, &scoped, "job.view", acme).rule, 29);
    BH_CHECK_EQ("out of scope", bh_authz_check(&dir, &scoped, "job.submit", acme).rule, BH_RULE_TOKEN_SCOPE);
    BH_CHECK_EQ("a prefix of a scope", bh_authz_check(&dir, &scoped, "job.cancel", acme).allow, false);
    BH_CHECK_EQ("root", bh_authz_check(&dir, &root, "site.apply", (bh_tenant_id){ 0 }).rule,
                BH_RULE_LOCAL_ROOT);
    BH_CHECK_EQ("open", bh_authz_check(&dir, &nobody, "", acme).rule, BH_RULE_OPEN);
    BH_CHECK_EQ("nobody", bh_authz_check(&dir, &nobody, "job.view", acme).rule, BH_RULE_DEFAULT_DENY);
    BH_CHECK_DONE();
}

static void
visible_tenants_are_those_where_the_verb_is_held(void **state)
{
    struct bh_dir_binding binding = { BH_ROLE_VIEWER, { 1 }, 0, { 2 } };
    struct bh_directory dir = directory_with(&binding, 1);
    struct bh_subject alice = { .principal = { 1 } }, root = { .root = true };
    uint32_t ids[8], cursor = 0;
    bool all = true;

    BH_CHECK_EQ("three", bh_authz_visible(&dir, &alice, "job.view", ids, &all), 3);
    BH_CHECK_EQ("not all", all, false);
    BH_CHECK_EQ("first", ids[0], 2);
    BH_CHECK_EQ("last", ids[2], 4);
    BH_CHECK_EQ("none", bh_authz_visible(&dir, &alice, "job.submit", ids, &all), 0);
    BH_CHECK_EQ("root", bh_authz_visible(&dir, &root, "job.view", ids, &all), 7);
    BH_CHECK_EQ("all", all, true);
    BH_CHECK("anywhere", bh_authz_check_anywhere(&dir, &alice, "gpu.view").allow);
    BH_CHECK("nowhere", !bh_authz_check_anywhere(&dir, &alice, "site.view").allow);
    BH_CHECK("binding", bh_authz_next_binding(&dir, &alice, &cursor) == &dir.bindings[0]);
    BH_CHECK("no more", bh_authz_next_binding(&dir, &alice, &cursor) == NULL);
    BH_CHECK_DONE();
}

static void
a_hint_names_the_lowest_role(void **state)
{
    static const struct {
        const char *verb, *role;
        /* clang-format off */
    } cases[] = {
        { "job.view", "viewer" },       { "job.submit", "developer" },
        { "job.cancel.any", "operator" }, { "site.apply", "admin" },
        { "record.view", "developer" }, { "no.such.verb", "root" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_STR(cases[i].verb, bh_authz_role_for(cases[i].verb), cases[i].role);
    BH_CHECK_DONE();
}

/* The subject that it names has the verb, and is no tenant's. */
static void
a_hint_on_the_site_names_who_is_asked(void **state)
{
    BH_CHECK_STR("verify", bh_authz_site_role_for("isolation.verify"), "operator");
    BH_CHECK_STR("the log", bh_authz_site_role_for("record.view"), "auditor");
    BH_CHECK_STR("apply", bh_authz_site_role_for("site.apply"), "admin");
    for (int op = 0; op < BH_OPERATIONS; op++) {
        const struct bh_operation_row *row = bh_operation_get((enum bh_operation)op);
        const char *role = row->scope == BH_SCOPE_SITE ? bh_authz_site_role_for(row->verb) : "root";

        if (strcmp(role, "root") == 0)
            continue;
        BH_CHECK(row->name, strcmp(role, "developer") != 0);
        BH_CHECK(row->name, bh_authz_role_grants(bh_role_find(role), row->verb));
    }
    BH_CHECK_DONE();
}

static void
a_denial_says_which_role_and_where(void **state)
{
    static const struct {
        const char *name, *path, *message, *hint;
        struct bh_denial denial;
    } cases[] = {
        { "at a tenant",
          "acme",
          "eve may not use job.submit on acme",
          "the role developer allows it, bound at that tenant or above it; an admin can bind it in "
          "the site file",
          { "job.submit", { false, 0 }, BH_REACH_OBJECT } },
        { "on the site",
          NULL,
          "eve may not use isolation.verify on the site",
          "the role operator allows it, bound on the whole site (tenant \"*\"); an admin can bind it "
          "in the site file",
          { "isolation.verify", { false, 0 }, BH_REACH_OBJECT } },
        { "anywhere",
          NULL,
          "eve may not use token.create anywhere",
          "the role developer allows it, bound at any tenant; an admin can bind it in the site file",
          { "token.create", { false, 0 }, BH_REACH_ANYWHERE } },
        { "another's",
          NULL,
          "eve may not use session.own on this",
          "your own needs to be allowed in the site file; others' need the role admin on the whole site",
          { "session.own", { false, 0 }, BH_REACH_OWN } },
        { "nobody's",
          NULL,
          "eve may not use no.such.verb on the site",
          "no role allows it",
          { "no.such.verb", { false, 0 }, BH_REACH_OBJECT } },
        { "a token",
          "acme",
          "eve may not use job.submit on acme",
          "the token's scopes do not include it; create a token with it",
          { "job.submit", { false, BH_RULE_TOKEN_SCOPE }, BH_REACH_OBJECT } },
    };
    const struct bh_subject eve = { .presence.kind = BH_PRESENCE_TOKEN };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { .rc = BH_OK };

        BH_CHECK_EQ(cases[i].name, bh_authz_explain(&cases[i].denial, "eve", &eve, cases[i].path, &err),
                    BH_DENIED);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].message);
        BH_CHECK_STR(cases[i].name, err.hint, cases[i].hint);
    }
    BH_CHECK_DONE();
}

/* What is asked of a person beside a role. */
static void
verbs_ask_for_somebody_who_is_there(void **state)
{
    static const struct {
        const char *name;
        struct bh_presence presence; /* kind, level, shown, now, glass until */
        const char *scopes, *verb;
        uint32_t rule;
    } cases[] = {
        { "on the machine", { BH_PRESENCE_LOCAL, 0, 0, 100, 0 }, NULL, "site.apply", 39 },
        { "just shown", { BH_PRESENCE_SESSION, BH_LEVEL_PASSKEY, 95, 100, 0 }, NULL, "site.apply", 39 },
        { "long ago",
          { BH_PRESENCE_SESSION, BH_LEVEL_PASSKEY, 94, 100, 0 },
          NULL,
          "site.apply",
          BH_RULE_STEP_UP },
        { "in the future",
          { BH_PRESENCE_SESSION, BH_LEVEL_PASSKEY, 101, 100, 0 },
          NULL,
          "site.apply",
          BH_RULE_STEP_UP },
        { "a code is less",
          { BH_PRESENCE_SESSION, BH_LEVEL_CODE, 100, 100, 0 },
          NULL,
          "site.apply",
          BH_RULE_STEP_UP },
        { "not asked for", { BH_PRESENCE_SESSION, BH_LEVEL_NONE, 0, 100, 0 }, NULL, "site.view", 38 },
        { "asks for nothing", { BH_PRESENCE_SESSION, BH_LEVEL_NONE, 0, 100, 0 }, NULL, "token.any", 44 },
        { "a token of all", { BH_PRESENCE_TOKEN, 0, 0, 100, 0 }, NULL, "site.apply", BH_RULE_STEP_UP },
        { "a token that says so", { BH_PRESENCE_TOKEN, 0, 0, 100, 0 }, "site.apply", "site.apply", 39 },
        { "a token for others",
          { BH_PRESENCE_TOKEN, 0, 0, 100, 0 },
          "job.view",
          "site.apply",
          BH_RULE_TOKEN_SCOPE },
    };
    static const struct bh_dir_step_up step_ups[] = {
        { "site.apply", BH_LEVEL_PASSKEY, 5 },
        { "token.any", BH_LEVEL_NONE, 5 },
        { "token.any", BH_LEVEL_PASSKEY, 5 },
    };
    const struct bh_dir_binding admin = { BH_ROLE_ADMIN, { 1 }, 0, { 0 } };
    struct bh_directory dir = directory_with(&admin, 1);

    dir.step_ups = step_ups;
    dir.step_up_count = BH_COUNT(step_ups);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_subject subject = { .principal = { 1 },
                                      .presence = cases[i].presence,
                                      .scopes = cases[i].scopes };
        struct bh_verdict verdict = bh_authz_check(&dir, &subject, cases[i].verb, (bh_tenant_id){ 0 });

        BH_CHECK_EQ(cases[i].name, verdict.rule, cases[i].rule);
        BH_CHECK_EQ(cases[i].name, verdict.allow, cases[i].rule < BH_RULE_LOCAL_ROOT);
    }
    BH_CHECK_DONE();
}

/* With the glass broken: an admin of the site, for a while, in this session. */
static void
break_glass_is_an_admins_role_for_a_while(void **state)
{
    static const struct {
        const char *name;
        enum bh_presence_kind kind;
        uint64_t now_ns;
        uint32_t principal;
        const char *verb;
        uint32_t rule;
    } cases[] = {
        { "broken", BH_PRESENCE_SESSION, 99, 1, "job.cancel.any", BH_RULE_BREAK_GLASS },
        { "the hour is over", BH_PRESENCE_SESSION, 100, 1, "job.cancel.any", 0 },
        { "not for programs", BH_PRESENCE_TOKEN, 99, 1, "job.cancel.any", 0 },
        { "not what no admin may", BH_PRESENCE_SESSION, 99, 1, "no.such.verb", 0 },
        { "not for strangers", BH_PRESENCE_SESSION, 99, 0, "job.cancel.any", 0 },
    };
    struct bh_directory dir = directory_with(NULL, 0);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_subject subject = {
            .principal = { cases[i].principal },
            .presence = { .kind = cases[i].kind, .now_ns = cases[i].now_ns, .break_glass_until_ns = 100 },
        };

        BH_CHECK_EQ(cases[i].name, bh_authz_check(&dir, &subject, cases[i].verb, (bh_tenant_id){ 0 }).rule,
                    cases[i].rule);
    }
    BH_CHECK_DONE();
}

/* What is one's own takes no role, and a token that names it. */
static void
what_is_ones_own_takes_no_role(void **state)
{
    static const struct {
        const char *name;
        uint32_t principal;
        enum bh_presence_kind kind;
        const char *scopes;
        uint32_t rule;
    } cases[] = {
        { "a person", 1, BH_PRESENCE_SESSION, NULL, BH_RULE_OWN_OBJECT },
        { "on the machine", 1, BH_PRESENCE_LOCAL, NULL, BH_RULE_OWN_OBJECT },
        { "a stranger", 0, BH_PRESENCE_LOCAL, NULL, 0 },
        { "somebody who is gone", 3, BH_PRESENCE_SESSION, NULL, 0 },
        { "a token of all", 1, BH_PRESENCE_TOKEN, NULL, BH_RULE_TOKEN_SCOPE },
        { "a token for others", 1, BH_PRESENCE_TOKEN, "job.view", BH_RULE_TOKEN_SCOPE },
        { "a token that names it", 1, BH_PRESENCE_TOKEN, "account.own", BH_RULE_OWN_OBJECT },
    };
    struct bh_directory dir = directory_with(NULL, 0);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_subject subject = { .principal = { cases[i].principal },
                                      .presence = { .kind = cases[i].kind },
                                      .scopes = cases[i].scopes };

        BH_CHECK_EQ(cases[i].name, bh_authz_own(&dir, &subject, "account.own").rule, cases[i].rule);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_role_and_verb_over_the_tree),
    cmocka_unit_test(no_verb_is_left_out),
    cmocka_unit_test(a_role_is_given_by_those_who_hold_all_of_it),
    cmocka_unit_test(every_operation_is_denied_across_tenants),
    cmocka_unit_test(bindings_add_up),
    cmocka_unit_test(groups_count_for_known_principals_only),
    cmocka_unit_test(tokens_root_and_open_verbs),
    cmocka_unit_test(visible_tenants_are_those_where_the_verb_is_held),
    cmocka_unit_test(a_hint_names_the_lowest_role),
    cmocka_unit_test(a_hint_on_the_site_names_who_is_asked),
    cmocka_unit_test(a_denial_says_which_role_and_where),
    cmocka_unit_test(verbs_ask_for_somebody_who_is_there),
    cmocka_unit_test(what_is_ones_own_takes_no_role),
    cmocka_unit_test(break_glass_is_an_admins_role_for_a_while),
};
BH_TEST_MAIN(tests)
