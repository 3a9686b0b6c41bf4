/* Tenants: what they use of what they are guaranteed and may use at most. */
#include <inttypes.h>

#include "web/frame.h"
#include "web/paging.h"
#include "web/panel.h"
#include "web/show.h"
#include "web/tenant_share.h"

static void
tenants_put_number(struct bh_html *html, bh_json_value tenant, const char *member)
{
    bh_html_open(html, "td");
    bh_html_u64(html, bh_show_number_of(tenant, member));
    bh_html_close(html, "td");
}

static void
tenants_put_row(struct bh_html *html, bh_json_value tenant, uint64_t scale)
{
    const char *limit = bh_show_text_of(tenant, "limit");

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(tenant, "name"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_tenant_share_put_bar(html, tenant, scale);
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(tenant, "used"));
    bh_show_cell(html, bh_show_text_of(tenant, "guarantee"));
    bh_show_cell(html, limit[0] ? limit : "none");
    tenants_put_number(html, tenant, "running");
    tenants_put_number(html, tenant, "pending");
    bh_show_cell(html, bh_show_text_of(tenant, "boundary"));
    bh_html_close(html, "tr");
}

static void
tenants_put_empty(struct bh_html *html)
{
    bh_html_element(html, "p", NULL,
                    "There is no tenant yet. An admin declares them: bulkhead apply -f site.yaml.");
}

static void
tenants_put_table(struct bh_html *html, bh_json_value list)
{
    static const char *const columns[] = { "Tenant",  "Share",   "Used",     "Guarantee", "Limit",
                                           "Running", "Pending", "Boundary", NULL };
    uint64_t scale = bh_tenant_share_scale(list);

    bh_show_table(html, "Tenants", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        tenants_put_row(html, bh_json_at(list, i), scale);
    bh_show_table_end(html);
}

static const struct bh_paging tenants_paging = {
    .path = "/tenants",
    .filters = (const char *const[]){ "tenant", NULL },
    .one = "tenant",
    .many = "tenants",
    .order = "by name",
};

static void
tenants_put_filter(struct bh_html *html, const struct bh_page *page)
{
    bh_frame_search(html, "/tenants");
    bh_html_open(html, "div");
    bh_frame_input(html, &(struct bh_input){ .id = "filter-tenant",
                                             .label = "Tenant and below",
                                             .name = "tenant",
                                             .autocomplete = "off",
                                             .value = bh_page_field(page, "tenant"),
                                             .optional = true });
    bh_html_close(html, "div");
    bh_frame_button(html, "plain", "Show");
    bh_html_close(html, "form");
}

static bool
tenants_are_filtered(const struct bh_page *page)
{
    return bh_page_field(page, "tenant")[0] || bh_page_field(page, "after")[0];
}

void
bh_panel_tenants(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0 && !tenants_are_filtered(call->page)) {
        tenants_put_empty(html);
        return;
    }
    tenants_put_filter(html, call->page);
    tenants_put_table(html, list);
    bh_paging_put(html, call, &tenants_paging);
}

/* The way to those that the overview leaves out. */
static void
tenants_put_rest(struct bh_html *html, const struct bh_panel_call *call)
{
    uint64_t total = bh_show_number_of(call->data, "total");

    if (!bh_show_text_of(call->data, "next")[0])
        return;
    bh_paging_put_link(html, "/tenants",
                       bh_arena_printf(call->page->request->arena, "All %" PRIu64 " tenants", total), false);
}

void
bh_panel_site_tenants(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");

    if (!bh_show_truth_of(call->data, "whole_site"))
        return;
    if (bh_json_count(list) == 0)
        tenants_put_empty(html);
    else
        tenants_put_table(html, list);
    tenants_put_rest(html, call);
}

/* ---- for a member: its own first ---- */

static void
tenants_put_share(struct bh_html *html, bh_json_value tenant, uint64_t scale)
{
    bh_html_open(html, "li");
    bh_show_tenant(html, bh_show_text_of(tenant, "name"));
    bh_html_text(html, ": ");
    bh_html_u64(html, bh_show_number_of(tenant, "running"));
    bh_html_text(html, " running, ");
    bh_html_u64(html, bh_show_number_of(tenant, "pending"));
    bh_html_text(html, " pending");
    bh_tenant_share_put_bar(html, tenant, scale);
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_tenant_share_put_words(html, tenant);
    bh_html_close(html, "p");
    bh_html_close(html, "li");
}

void
bh_panel_share(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");
    uint64_t scale = bh_tenant_share_scale(list);

    if (bh_show_truth_of(call->data, "whole_site"))
        return;
    if (bh_json_count(list) == 0) {
        bh_html_element(
            html, "p", NULL,
            "You are in no tenant yet. An admin gives you a role in one: bindings in the site file.");
        return;
    }
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "shares");
    for (size_t i = 0; i < bh_json_count(list); i++)
        tenants_put_share(html, bh_json_at(list, i), scale);
    bh_html_close(html, "ul");
    tenants_put_rest(html, call);
}
