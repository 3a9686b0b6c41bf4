/* One tenant: its share, what is below it, who may do what, and what applies to it. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/num.h"
#include "model/quantity.h"
#include "web/panel.h"
#include "web/policy_text.h"
#include "web/show.h"
#include "web/svg.h"
#include "web/tenant_share.h"

enum { TITLE_MAX = 256 };

/* ---- where it stands ---- */

/* "Tenants / acme / vision": links to those above that the caller sees. */
static void
tenant_put_path(struct bh_html *html, bh_json_value tenant)
{
    const char *path = bh_show_text_of(tenant, "name"), *last = strrchr(path, '/');
    bh_json_value parents = bh_json_get(tenant, "parents");

    bh_html_open(html, "p");
    bh_html_attr(html, "class", "path");
    bh_show_link(html, "/", "tenants", "Tenants");
    for (size_t i = 0; i < bh_json_count(parents); i++) {
        const char *parent = bh_json_text(bh_json_at(parents, i), ""), *name = strrchr(parent, '/');

        bh_html_text(html, " / ");
        bh_show_link(html, "/tenants/", parent, name && i > 0 ? name + 1 : parent);
    }
    bh_html_text(html, " / ");
    bh_html_text(html, last && bh_json_count(parents) > 0 ? last + 1 : path);
    bh_html_close(html, "p");
}

static const char *
tenant_boundary_words(const char *boundary)
{
    static const struct {
        const char *name, *words;
    } rows[] = {
        { "none", "beside other tenants on a GPU by shares (grade F) or stronger" },
        { "soft", "beside other tenants on a GPU by shares (grade F) or stronger" },
        { "hard", "beside other tenants on a GPU by MIG instances (grade C) or stronger" },
        { "fortress", "on no GPU together with other tenants (grade B)" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (strcmp(rows[i].name, boundary) == 0)
            return rows[i].words;
    return "";
}

static void
tenant_put_boundary(struct bh_html *html, bh_json_value tenant)
{
    const char *boundary = bh_show_text_of(tenant, "boundary"), *words = tenant_boundary_words(boundary);

    bh_show_fact_begin(html, "Boundary");
    bh_html_text(html, boundary);
    if (words[0])
        bh_html_text(html, ": ");
    bh_html_text(html, words);
    if (bh_show_truth_of(tenant, "dedicated_nodes"))
        bh_html_text(html, "; its nodes are its own");
    bh_show_fact_end(html);
}

static void
tenant_put_facts(struct bh_html *html, bh_json_value tenant)
{
    bh_ns least = bh_show_number_of(tenant, "min_runtime_ns");
    char text[TITLE_MAX];

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    bh_show_fact(html, "Kind", bh_show_text_of(tenant, "kind"));
    tenant_put_boundary(html, tenant);
    snprintf(text, sizeof text, "%llu", (unsigned long long)bh_show_number_of(tenant, "weight"));
    bh_show_fact(html, "Weight", text);
    snprintf(text, sizeof text, "%.40s GPU-hours", bh_show_text_of(tenant, "fair_gpu_hours"));
    bh_show_fact(html, "Recent use", text);
    if (bh_show_text_of(tenant, "user_limit")[0])
        bh_show_fact(html, "Limit of one user", bh_show_text_of(tenant, "user_limit"));
    if (least > 0) {
        bh_show_fact_begin(html, "Runs before preemption");
        bh_show_span(html, least);
        bh_show_fact_end(html);
    }
    bh_html_close(html, "dl");
}

/* ---- its share ---- */

static void
tenant_put_lending(struct bh_html *html, bh_json_value tenant)
{
    uint64_t used = bh_show_number_of(tenant, "used_parts");
    uint64_t guarantee = bh_show_number_of(tenant, "guarantee_parts");

    if (guarantee <= used)
        return;
    bh_html_text(html, "; ");
    bh_show_parts(html, guarantee - used);
    bh_html_text(html, " of the guarantee not used, of which others may borrow up to ");
    bh_html_text(html, bh_show_text_of(tenant, "lending_limit"));
}

static void
tenant_put_share(struct bh_html *html, bh_json_value tenant)
{
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "share");
    bh_tenant_share_put_bar(html, tenant, bh_tenant_share_scale_of(tenant));
    bh_html_open(html, "p");
    bh_tenant_share_put_words(html, tenant);
    tenant_put_lending(html, tenant);
    bh_html_close(html, "p");
    bh_html_close(html, "div");
}

/* A quota's amount in parts, where it is in GPUs, else in partitions; BH_SVG_NO_LIMIT: there is none. */
static uint64_t
tenant_amount_of(bh_json_value quota, const char *member)
{
    bh_json_value value = bh_json_get(quota, member);
    struct bh_err unused;
    uint64_t parts;

    if (bh_json_kind(value) == BH_JSON_INTEGER)
        return bh_json_number(value, 0);
    if (bh_parse_parts(bh_json_text(value, ""), BH_GPU_PARTS, &parts, &unused) != BH_OK)
        return BH_SVG_NO_LIMIT;
    return parts;
}

static void
tenant_put_amount(struct bh_html *html, bh_json_value quota, const char *member)
{
    bh_json_value value = bh_json_get(quota, member);

    bh_html_open(html, "td");
    if (bh_json_kind(value) == BH_JSON_INTEGER)
        bh_html_u64(html, bh_json_number(value, 0));
    else
        bh_html_text(html, bh_json_text(value, "none"));
    bh_html_close(html, "td");
}

static void
tenant_put_quota(struct bh_html *html, bh_json_value quota)
{
    static const char *const members[] = { "used", "guarantee", "limit", "lending_limit" };
    const char *sku = bh_show_text_of(quota, "sku"), *model = bh_show_text_of(quota, "model");
    uint64_t used = tenant_amount_of(quota, "used"), guarantee = tenant_amount_of(quota, "guarantee");
    uint64_t limit = tenant_amount_of(quota, "limit"), most = used > guarantee ? used : guarantee;
    char title[TITLE_MAX];

    most = limit != BH_SVG_NO_LIMIT && limit > most ? limit : most;
    snprintf(title, sizeof title, "use of %.60s", sku[0] ? sku : model);
    bh_html_open(html, "tr");
    bh_show_cell(html, sku[0] ? sku : model);
    bh_html_open(html, "td");
    bh_svg_put_bar(
        html,
        &(struct bh_svg_bar){
            .title = title, .used = used, .guarantee = guarantee, .limit = limit, .whole = most ? most : 1 });
    bh_html_close(html, "td");
    for (size_t i = 0; i < BH_COUNT(members); i++)
        tenant_put_amount(html, quota, members[i]);
    bh_show_cell(html, sku[0] ? "partitions" : "GPUs");
    bh_html_close(html, "tr");
}

static void
tenant_put_quotas(struct bh_html *html, bh_json_value tenant)
{
    static const char *const columns[] = { "Of",    "Share", "Used",       "Guarantee",
                                           "Limit", "Lends", "Counted in", NULL };
    bh_json_value quotas = bh_json_get(tenant, "quotas");

    if (bh_json_count(quotas) == 0)
        return;
    bh_html_element(html, "h3", NULL, "Quotas");
    bh_show_table(html, "Quotas", columns);
    for (size_t i = 0; i < bh_json_count(quotas); i++)
        tenant_put_quota(html, bh_json_at(quotas, i));
    bh_show_table_end(html);
}

static void
tenant_put_spent(struct bh_html *html, bh_json_value budget, const char *spent, const char *of)
{
    if (!bh_show_text_of(budget, of)[0])
        return;
    bh_show_fact_begin(html, of);
    bh_html_text(html, bh_show_text_of(budget, spent));
    bh_html_text(html, " of ");
    bh_html_text(html, bh_show_text_of(budget, of));
    bh_html_text(html, " in this ");
    bh_html_text(html, bh_show_text_of(budget, "period"));
    bh_show_fact_end(html);
}

static void
tenant_put_budget(struct bh_html *html, bh_json_value tenant)
{
    bh_json_value budget = bh_json_get(tenant, "budget");

    if (!budget)
        return;
    bh_html_element(html, "h3", NULL, "Budget");
    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    tenant_put_spent(html, budget, "spent_gpu_hours", "gpu_hours");
    tenant_put_spent(html, budget, "spent_money", "money");
    bh_html_close(html, "dl");
}

/* ---- what is below and who may do what ---- */

static void
tenant_put_children(struct bh_html *html, bh_json_value tenant)
{
    bh_json_value children = bh_json_get(tenant, "children");

    if (bh_json_count(children) == 0)
        return;
    bh_html_element(html, "h3", NULL, "Tenants below");
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "plain");
    for (size_t i = 0; i < bh_json_count(children); i++) {
        bh_html_open(html, "li");
        bh_show_tenant(html, bh_json_text(bh_json_at(children, i), ""));
        bh_html_close(html, "li");
    }
    bh_html_close(html, "ul");
}

static void
tenant_put_origin(struct bh_html *html, const char *origin, const char *path)
{
    bh_html_open(html, "td");
    if (strcmp(origin, "*") == 0)
        bh_html_text(html, "the site");
    else if (strcmp(origin, path) == 0)
        bh_html_text(html, "this tenant");
    else
        bh_show_tenant(html, origin);
    bh_html_close(html, "td");
}

static void
tenant_put_member(struct bh_html *html, bh_json_value member, const char *path)
{
    const char *principal = bh_show_text_of(member, "principal"), *group = bh_show_text_of(member, "group");
    char text[TITLE_MAX];

    if (principal[0])
        snprintf(text, sizeof text, "%.200s", principal);
    else if (group[0])
        snprintf(text, sizeof text, "group %.200s", group);
    else
        snprintf(text, sizeof text, "Unix group %llu", (unsigned long long)bh_show_number_of(member, "gid"));
    bh_html_open(html, "tr");
    bh_show_cell(html, text);
    bh_show_cell(html, bh_show_text_of(member, "role"));
    tenant_put_origin(html, bh_show_text_of(member, "tenant"), path);
    bh_html_close(html, "tr");
}

static void
tenant_put_members(struct bh_html *html, bh_json_value tenant)
{
    static const char *const columns[] = { "Who", "Role", "Given at", NULL };
    bh_json_value members = bh_json_get(tenant, "members");

    if (!members)
        return;
    bh_html_element(html, "h3", NULL, "Members");
    bh_show_table(html, "Members", columns);
    for (size_t i = 0; i < bh_json_count(members); i++)
        tenant_put_member(html, bh_json_at(members, i), bh_show_text_of(tenant, "name"));
    bh_show_table_end(html);
}

static void
tenant_put_policies(struct bh_html *html, bh_json_value tenant)
{
    bh_json_value policies = bh_json_get(tenant, "policies");

    bh_html_element(html, "h3", NULL, "Policies");
    if (bh_json_count(policies) == 0) {
        bh_html_element(html, "p", "note", "No policy narrows what it may submit.");
        return;
    }
    for (size_t i = 0; i < bh_json_count(policies); i++) {
        bh_json_value row = bh_json_at(policies, i);

        bh_policy_text_put(html, bh_show_text_of(row, "tenant"), bh_json_get(row, "policy"));
    }
}

void
bh_panel_tenant(struct bh_html *html, const struct bh_panel_call *call)
{
    tenant_put_path(html, call->data);
    tenant_put_share(html, call->data);
    tenant_put_facts(html, call->data);
    tenant_put_quotas(html, call->data);
    tenant_put_budget(html, call->data);
    tenant_put_children(html, call->data);
    tenant_put_members(html, call->data);
    tenant_put_policies(html, call->data);
}

/* ---- usage ---- */

/* Part-nanoseconds as GPU-hours in two decimals; they are texts of more than 64 bits. */
static void
tenant_put_hours(struct bh_html *html, bh_json_value amount, const char *member)
{
    const unsigned __int128 hour = (unsigned __int128)3600 * 1000000000u * 4200;
    const char *digits = bh_show_text_of(amount, member);
    unsigned __int128 parts = 0;
    char text[64];

    for (; *digits >= '0' && *digits <= '9'; digits++)
        parts = parts * 10 + (unsigned)(*digits - '0');
    parts = parts * 100 / hour;
    snprintf(text, sizeof text, "%llu.%02llu", (unsigned long long)(parts / 100),
             (unsigned long long)(parts % 100));
    bh_show_cell(html, text);
}

/* Whether `path` is the tenant or directly below it. */
static bool
tenant_is_near(const char *tenant, const char *path)
{
    size_t length = strlen(tenant);

    if (strncmp(tenant, path, length) != 0)
        return false;
    return path[length] == '\0' || (path[length] == '/' && !strchr(path + length + 1, '/'));
}

void
bh_panel_tenant_usage(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Tenant",
                                           "Compute, GPU-hours",
                                           "Memory, GPU-hours",
                                           "Compute with all below",
                                           "Memory with all below",
                                           NULL };
    bh_json_value list = bh_json_get(call->data, "items");
    bool any = false;

    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value row = bh_json_at(list, i), below = bh_json_get(row, "with_below");

        if (!tenant_is_near(call->id, bh_show_text_of(row, "tenant")))
            continue;
        if (!any)
            bh_show_table(html, "Usage", columns);
        any = true;
        bh_html_open(html, "tr");
        bh_html_open(html, "td");
        bh_show_tenant(html, bh_show_text_of(row, "tenant"));
        bh_html_close(html, "td");
        tenant_put_hours(html, row, "compute_part_ns");
        tenant_put_hours(html, row, "memory_part_ns");
        tenant_put_hours(html, below, "compute_part_ns");
        tenant_put_hours(html, below, "memory_part_ns");
        bh_html_close(html, "tr");
    }
    if (any)
        bh_show_table_end(html);
    else
        bh_html_element(html, "p", NULL, "It has used no GPU yet.");
}

/* ---- datasets ---- */

static bool
tenant_may_use(bh_json_value dataset, const char *tenant)
{
    bh_json_value access = bh_json_get(dataset, "access");

    if (strcmp(bh_show_text_of(dataset, "owner"), tenant) == 0)
        return true;
    for (size_t i = 0; i < bh_json_count(access); i++)
        if (strcmp(bh_show_text_of(bh_json_at(access, i), "tenant"), tenant) == 0)
            return true;
    return false;
}

static void
tenant_put_dataset(struct bh_html *html, bh_json_value dataset)
{
    bh_html_open(html, "tr");
    bh_show_cell(html, bh_show_text_of(dataset, "name"));
    bh_show_cell(html, bh_show_text_of(dataset, "kind"));
    bh_show_cell(html, bh_show_text_of(dataset, "may"));
    bh_html_open(html, "td");
    if (bh_show_number_of(dataset, "until_ns"))
        bh_show_time(html, bh_show_number_of(dataset, "until_ns"));
    else
        bh_html_text(html, "no end");
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(dataset, "owner"));
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

void
bh_panel_tenant_datasets(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Dataset", "Kind", "Jobs may", "Until", "Owner", NULL };
    bh_json_value list = bh_json_get(call->data, "items");
    bool any = false;

    for (size_t i = 0; i < bh_json_count(list); i++) {
        if (!tenant_may_use(bh_json_at(list, i), call->id))
            continue;
        if (!any)
            bh_show_table(html, "Datasets", columns);
        any = true;
        tenant_put_dataset(html, bh_json_at(list, i));
    }
    if (any)
        bh_show_table_end(html);
    else
        bh_html_element(html, "p", NULL,
                        "It has no dataset. An admin declares them, with grants, in the site file.");
}
