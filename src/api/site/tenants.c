#include "api/site/tenants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/documents/revision.h"
#include "api/request/amounts.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "base/time.h"
#include "policy/authz.h"

enum { PAGE_DEFAULT = 100 };

/* Tenants of the directory, and what the engine says of each. */
struct tenant_page {
    const struct bh_dir_tenant **named;
    struct bh_tenant_view *views; /* settings.tenant.v 0: unknown */
    uint32_t count;
};

static void
tenants_ask(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct tenant_page *page = self;

    for (uint32_t i = 0; i < page->count; i++)
        if (!bh_view_tenant(engine, page->named[i]->id, now_ns, &page->views[i]))
            page->views[i].settings.tenant.v = 0;
}

/* GPUs of a model, or partitions of a SKU, as JSON; null where there is no limit. */
static struct bh_slice
tenants_amount(enum bh_quota_scope scope, uint64_t amount, char text[BH_AMOUNT_SIZE])
{
    char gpus[BH_AMOUNT_SIZE];

    if (amount == BH_UNLIMITED)
        return bh_reply_slice("null");
    if (scope == BH_QUOTA_MODEL)
        snprintf(text, BH_AMOUNT_SIZE, "\"%s\"", bh_gpus_text(amount, gpus));
    else
        snprintf(text, BH_AMOUNT_SIZE, "%" PRIu64, amount);
    return bh_reply_slice(text);
}

/* The quotas of a tenant, while its row is written. */
struct tenant_quotas {
    struct bh_reply_tenant_quota rows[BH_TENANT_QUOTAS_MAX];
    char texts[BH_TENANT_QUOTAS_MAX][4][BH_AMOUNT_SIZE];
};

static void
tenants_fill_quota(const struct bh_call *call, const struct bh_tenant_view *view, uint32_t at,
                   struct tenant_quotas *ret)
{
    const struct bh_tenant_quota *quota = &view->settings.quotas[at];
    const struct bh_dir_sku *sku = bh_directory_sku(call->dir, (bh_sku_id){ quota->of });
    bool of_sku = quota->scope == BH_QUOTA_SKU;

    ret->rows[at] = (struct bh_reply_tenant_quota){
        .guarantee = tenants_amount(quota->scope, quota->guarantee, ret->texts[at][0]),
        .lending_limit = tenants_amount(quota->scope, quota->guarantee - quota->withhold, ret->texts[at][1]),
        .limit = tenants_amount(quota->scope, quota->limit, ret->texts[at][2]),
        .model = of_sku ? NULL : bh_model_facts((enum bh_gpu_model)quota->of)->name,
        .sku = !of_sku ? NULL
               : sku   ? sku->name
                       : "",
        .used = tenants_amount(quota->scope, view->quota_used[at], ret->texts[at][3]),
    };
}

static enum bh_boundary
tenants_boundary_of(const struct bh_ev_tenant *settings)
{
    return settings->boundary == BH_BOUNDARY_UNSET ? bh_boundary_default(settings->kind) : settings->boundary;
}

/* What only GET of one tenant says. */
struct tenant_whole {
    struct bh_texts children, parents;
    struct bh_list members, policies; /* `members` without items: none that the caller may see */
};

/* As a row of a list, or, with `whole`, as the reply. */
static void
tenants_put_tenant(struct bh_call *call, struct bh_rows *rows, const struct bh_dir_tenant *named,
                   const struct bh_tenant_view *view, const struct tenant_whole *whole)
{
    const struct bh_ev_tenant *settings = &view->settings;
    const struct bh_budget *budget = &settings->budget;
    uint64_t spent_s = (uint64_t)(view->spent_gpu / BH_GPU_PARTS / BH_NS_PER_S);
    const struct bh_reply_tenant_budget spending = {
        .gpu_hours = bh_decimal_text(budget->gpu_s, 3600, BH_AMOUNT_TEXT),
        .money = bh_decimal_text(budget->money, BH_MONEY_UNIT, BH_AMOUNT_TEXT),
        .period = bh_period_names[budget->period],
        .spent_gpu_hours = bh_decimal_text(spent_s, 3600, BH_AMOUNT_TEXT),
        .spent_money = bh_decimal_text(view->spent_money, BH_MONEY_UNIT, BH_AMOUNT_TEXT),
    };
    struct tenant_quotas quotas;
    struct bh_reply_tenant_shown row = {
        .boundary = bh_boundary_names[tenants_boundary_of(settings)],
        .budget = budget->period == BH_PERIOD_NONE ? NULL : &spending,
        .dedicated_nodes = settings->dedicated_nodes,
        .fair_gpu_hours = bh_decimal_text(view->fair, 3600, BH_AMOUNT_TEXT),
        .guarantee = bh_gpus_text(settings->guarantee, BH_AMOUNT_TEXT),
        .guarantee_parts = settings->guarantee,
        .id = named->id.v,
        .kind = bh_tenant_kind_names[settings->kind],
        .lending_limit = bh_gpus_text(settings->guarantee - settings->withhold, BH_AMOUNT_TEXT),
        .limit = bh_gpus_text(settings->limit, BH_AMOUNT_TEXT),
        .limit_parts = settings->limit == BH_UNLIMITED ? (uint64_t)BH_UNSET : settings->limit,
        .min_runtime_ns = settings->min_runtime_ns,
        .name = named->path,
        .pending = view->pending,
        .quotas = { quotas.rows, settings->quota_count },
        .running = view->running,
        .used = bh_gpus_text(view->used, BH_AMOUNT_TEXT),
        .used_parts = view->used,
        .user_limit = settings->user_limit ? bh_gpus_text(settings->user_limit, BH_AMOUNT_TEXT) : NULL,
        .weight = settings->weight,
    };

    for (uint32_t i = 0; i < settings->quota_count; i++)
        tenants_fill_quota(call, view, i, &quotas);
    if (!whole) {
        (void)bh_rows_put(rows, &row);
        return;
    }
    row.children = whole->children;
    row.members = whole->members;
    row.parents = whole->parents;
    row.policies = whole->policies;
    bh_reply_put(call, &bh_reply_tenant_shown_fields, &row);
}

/* ---- list ---- */

/* The end of a path and then '/' come before all else: a tenant stands before those below it, and these
 * before its neighbors. */
static int
tenants_rank(char c)
{
    return c == '/' ? 1 : (unsigned char)c;
}

static int
tenants_compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return tenants_rank(*a) - tenants_rank(*b);
}

static int
tenants_compare(const void *a, const void *b)
{
    const struct bh_dir_tenant *const *left = a, *const *right = b;

    return tenants_compare_paths((*left)->path, (*right)->path);
}

/* All that the caller sees and asks for, by path. */
static bh_rc
tenants_select(struct bh_call *call, struct tenant_page *ret, bool *ret_whole_site, struct bh_err *err)
{
    const struct bh_directory *dir = call->dir;
    struct bh_visible visible;
    bh_rc rc = bh_visible_find(call, "tenant.view", &visible, err);

    if (rc != BH_OK)
        return rc;
    *ret_whole_site = visible.all;
    if (call->query.tenant)
        rc = bh_visible_narrow(call, call->query.tenant, &visible, err);
    if (rc == BH_OK)
        rc = bh_call_alloc(call, (dir->tenant_count + 1) * sizeof(void *), &ret->named, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < dir->tenant_count; i++)
        if (!dir->tenants[i].gone && bh_visible_has(&visible, dir->tenants[i].id.v))
            ret->named[ret->count++] = &dir->tenants[i];
    qsort(ret->named, ret->count, sizeof(void *), tenants_compare);
    return BH_OK;
}

/* Cut down to the page behind the cursor, the number of a tenant, which may be gone by now. */
static bh_rc
tenants_cut(const struct bh_call *call, struct tenant_page *page, bool *ret_more, struct bh_err *err)
{
    const struct bh_query *query = &call->query;
    uint64_t limit = query->given.limit ? query->limit : PAGE_DEFAULT;
    bool known = query->after <= UINT32_MAX;
    const struct bh_dir_tenant *after =
        known ? bh_directory_tenant(call->dir, (bh_tenant_id){ (uint32_t)query->after }) : NULL;

    if (limit == 0)
        return bh_err_set(err, BH_RANGE, "limit: must be at least 1");
    if (query->given.after && !after)
        return bh_err_set(err, BH_INVALID, "after: %" PRIu64 " is no cursor of a list of tenants",
                          query->after);
    while (after && page->count > 0 && tenants_compare_paths(page->named[0]->path, after->path) <= 0)
        page->named++, page->count--;
    *ret_more = page->count > limit;
    if (*ret_more)
        page->count = (uint32_t)limit;
    return BH_OK;
}

static bh_rc
tenants_read_page(struct bh_call *call, struct tenant_page *page, struct bh_reply_tenant_list *ret_end,
                  struct bh_err *err)
{
    bool more;
    bh_rc rc = tenants_select(call, page, &ret_end->whole_site, err);

    if (rc != BH_OK)
        return rc;
    ret_end->total = page->count;
    rc = tenants_cut(call, page, &more, err);
    if (rc != BH_OK)
        return rc;
    if (more)
        ret_end->next = bh_arena_printf(call->arena, "%" PRIu32, page->named[page->count - 1]->id.v);
    rc = bh_call_alloc(call, (page->count + 1) * sizeof *page->views, &page->views, err);
    return rc == BH_OK ? bh_call_ask(call, tenants_ask, page, err) : rc;
}

bh_rc
bh_tenants_list(struct bh_call *call, struct bh_err *err)
{
    struct bh_reply_tenant_list end = { .next = NULL };
    struct tenant_page page = { .count = 0 };
    struct bh_rows rows;
    bh_rc rc = tenants_read_page(call, &page, &end, err);

    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_tenant_list_fields);
    for (uint32_t i = 0; i < page.count; i++)
        if (page.views[i].settings.tenant.v)
            tenants_put_tenant(call, &rows, page.named[i], &page.views[i], NULL);
    bh_rows_end(&rows, &end);
    return BH_OK;
}

/* ---- one tenant ---- */

static bool
tenants_is_shown_child(const struct bh_dir_tenant *tenant, bh_tenant_id parent,
                       const struct bh_visible *visible)
{
    return !tenant->gone && bh_same(tenant->parent, parent) && bh_visible_has(visible, tenant->id.v);
}

static bh_rc
tenants_list_children(struct bh_call *call, const struct bh_dir_tenant *parent,
                      const struct bh_visible *visible, struct bh_texts *ret, struct bh_err *err)
{
    const struct bh_directory *dir = call->dir;
    const char **paths;
    uint32_t count = 0;
    bh_rc rc = bh_call_alloc(call, (dir->tenant_count + 1) * sizeof *paths, &paths, err);

    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < dir->tenant_count; i++)
        if (tenants_is_shown_child(&dir->tenants[i], parent->id, visible))
            paths[count++] = dir->tenants[i].path;
    *ret = (struct bh_texts){ paths, count };
    return BH_OK;
}

static bh_rc
tenants_list_parents(struct bh_call *call, const struct bh_dir_tenant *tenant,
                     const struct bh_visible *visible, struct bh_texts *ret, struct bh_err *err)
{
    const char **paths;
    uint32_t count = call->dir->tenant_count, first = count;
    bh_rc rc = bh_call_alloc(call, (count + 1) * sizeof *paths, &paths, err);

    if (rc != BH_OK)
        return rc;
    while (first > 0 && (tenant = bh_directory_tenant(call->dir, tenant->parent)))
        if (bh_visible_has(visible, tenant->id.v))
            paths[--first] = tenant->path;
    *ret = (struct bh_texts){ paths + first, count - first };
    return BH_OK;
}

static const char *
tenants_path_of(const struct bh_call *call, bh_tenant_id id)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(call->dir, id);

    return tenant ? tenant->path : "*";
}

static const char *
tenants_group_name(const struct bh_directory *dir, uint32_t id)
{
    for (uint32_t i = 0; i < dir->group_count; i++)
        if (dir->groups[i].id == id)
            return dir->groups[i].name;
    return NULL;
}

static struct bh_reply_tenant_member
tenants_member_of(const struct bh_call *call, const struct bh_dir_binding *binding)
{
    const struct bh_dir_principal *principal = bh_directory_principal(call->dir, binding->principal);
    bool unix_group = !binding->principal.v && !binding->group;

    return (struct bh_reply_tenant_member){
        .gid = unix_group ? binding->gid : (uint32_t)BH_UNSET,
        .group = binding->group ? tenants_group_name(call->dir, binding->group) : NULL,
        .principal = principal ? principal->name : NULL,
        .role = bh_role_names[binding->role],
        .tenant = tenants_path_of(call, binding->tenant),
    };
}

/* Who may do what in a tenant is a matter of the site file where it is said: of the tenant, or of one above.
 */
static bool
tenants_is_shown_binding(const struct bh_call *call, const struct bh_dir_binding *binding,
                         bh_tenant_id tenant)
{
    return bh_directory_within(call->dir, binding->tenant, tenant)
           && bh_authz_check(call->dir, &call->caller.subject, "site.view", binding->tenant).allow;
}

static bh_rc
tenants_list_members(struct bh_call *call, bh_tenant_id tenant, struct bh_list *ret, struct bh_err *err)
{
    const struct bh_directory *dir = call->dir;
    struct bh_reply_tenant_member *members;
    uint32_t count = 0;
    bh_rc rc = bh_call_alloc(call, (dir->binding_count + 1) * sizeof *members, &members, err);

    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < dir->binding_count; i++)
        if (tenants_is_shown_binding(call, &dir->bindings[i], tenant))
            members[count++] = tenants_member_of(call, &dir->bindings[i]);
    *ret = (struct bh_list){ count ? members : NULL, count };
    return BH_OK;
}

/* Policies as JSON, from the site's down to the tenant's own. */
struct tenant_policies {
    struct bh_reply_tenant_policy *rows;
    uint32_t count;
};

static bh_rc
tenants_add_policy(struct bh_call *call, const char *tenant, const struct bh_site_policy *policy,
                   struct tenant_policies *ret, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf json = { .max = BH_JSON_BYTES_MAX };
    const char *text;

    if (bh_site_policy_empty(policy))
        return BH_OK;
    bh_json_encode(&json, &bh_site_policy_fields, policy);
    text = bh_buf_text(&json) ? bh_arena_strdup(call->arena, bh_buf_text(&json)) : NULL;
    if (!text)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    ret->rows[ret->count++] = (struct bh_reply_tenant_policy){ bh_reply_slice(text), tenant };
    return BH_OK;
}

static bool
tenants_path_is_within(const char *above, const char *path)
{
    size_t length = strlen(above);

    return strncmp(above, path, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static bh_rc
tenants_list_policies(struct bh_call *call, const char *path, struct tenant_policies *ret, struct bh_err *err)
{
    const struct bh_site_tenant *tenants;
    struct bh_site site;
    bh_rc rc = bh_revision_present_site(&call->api->options.store, call->arena, &site, err);

    if (rc == BH_OK)
        rc = bh_call_alloc(call, (site.tenants.count + 1) * sizeof *ret->rows, &ret->rows, err);
    if (rc != BH_OK)
        return rc;
    rc = tenants_add_policy(call, "*", &site.policy, ret, err);
    tenants = site.tenants.items;
    /* parents are declared before their children */
    for (uint32_t i = 0; i < site.tenants.count && rc == BH_OK; i++)
        if (tenants_path_is_within(tenants[i].name, path))
            rc = tenants_add_policy(call, tenants[i].name, &tenants[i].policy, ret, err);
    return rc;
}

/* The tenant at the call's path; one that the caller may not see is not there. */
static bh_rc
tenants_find(struct bh_call *call, struct bh_visible *ret_visible, const struct bh_dir_tenant **ret_tenant,
             struct bh_err *err)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant_named(call->dir, call->id);
    bh_rc rc = bh_visible_find(call, "tenant.view", ret_visible, err);

    if (rc != BH_OK)
        return rc;
    if (tenant && bh_visible_has(ret_visible, tenant->id.v)) {
        *ret_tenant = tenant;
        return BH_OK;
    }
    call->probed = tenant != NULL;
    bh_err_set(err, BH_NOT_FOUND, "no tenant %.119s that you may see", call->id);
    return bh_err_hint(err, "`bulkhead tenant` lists those you may see");
}

struct tenant_asked {
    bh_tenant_id id;
    struct bh_tenant_view view;
    bool known;
};

static void
ask_tenant(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct tenant_asked *asked = self;

    asked->known = bh_view_tenant(engine, asked->id, now_ns, &asked->view);
}

bh_rc
bh_tenants_get(struct bh_call *call, struct bh_err *err)
{
    const struct bh_dir_tenant *tenant;
    struct tenant_policies policies = { .count = 0 };
    struct tenant_whole whole = { 0 };
    struct tenant_asked asked;
    struct bh_visible visible;
    bh_rc rc = tenants_find(call, &visible, &tenant, err);

    if (rc != BH_OK)
        return rc;
    asked.id = tenant->id;
    rc = bh_call_ask(call, ask_tenant, &asked, err);
    if (rc == BH_OK && !asked.known)
        rc = bh_err_set(err, BH_NOT_FOUND, "tenant %.119s is not in force yet", call->id);
    if (rc == BH_OK)
        rc = tenants_list_children(call, tenant, &visible, &whole.children, err);
    if (rc == BH_OK)
        rc = tenants_list_parents(call, tenant, &visible, &whole.parents, err);
    if (rc == BH_OK)
        rc = tenants_list_members(call, tenant->id, &whole.members, err);
    if (rc == BH_OK)
        rc = tenants_list_policies(call, tenant->path, &policies, err);
    if (rc != BH_OK)
        return rc;
    whole.policies = (struct bh_list){ policies.rows, policies.count };
    tenants_put_tenant(call, NULL, tenant, &asked.view, &whole);
    return BH_OK;
}
