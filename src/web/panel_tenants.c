/* Tenants: what they use of what they are guaranteed and may use at most. */
#include <stdio.h>
#include <string.h>

#include "web/panel.h"
#include "web/show.h"
#include "web/svg.h"

enum { TITLE_MAX = 256 };

/* The largest figure of all: bars of one page have one scale. */
static uint64_t
tenants_scale(bh_json_value list)
{
    uint64_t most = 1;

    for (size_t i = 0; i < bh_json_count(list); i++) {
        static const char *const names[] = { "used_parts", "guarantee_parts", "limit_parts" };

        for (size_t n = 0; n < BH_COUNT(names); n++) {
            uint64_t parts = bh_show_number_of(bh_json_at(list, i), names[n]);

            most = parts > most ? parts : most;
        }
    }
    return most;
}

static void
tenants_put_bar(struct bh_html *html, bh_json_value tenant, uint64_t scale)
{
    const char *limit = bh_show_text_of(tenant, "limit");
    char title[TITLE_MAX];

    snprintf(title, sizeof title, "%.40s GPUs used, %.40s guaranteed, limit %.40s",
             bh_show_text_of(tenant, "used"), bh_show_text_of(tenant, "guarantee"),
             limit[0] ? limit : "none");
    bh_svg_put_bar(html, &(struct bh_svg_bar){
                             .title = title,
                             .used = bh_show_number_of(tenant, "used_parts"),
                             .guarantee = bh_show_number_of(tenant, "guarantee_parts"),
                             .limit = limit[0] ? bh_show_number_of(tenant, "limit_parts") : BH_SVG_NO_LIMIT,
                             .whole = scale,
                         });
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
    tenants_put_bar(html, tenant, scale);
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(tenant, "used"));
    bh_show_cell(html, bh_show_text_of(tenant, "guarantee"));
    bh_show_cell(html, limit[0] ? limit : "none");
    bh_html_open(html, "td");
    bh_html_u64(html, bh_show_number_of(tenant, "running"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_html_u64(html, bh_show_number_of(tenant, "pending"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(tenant, "boundary"));
    bh_html_close(html, "tr");
}

void
bh_panel_tenants(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Tenant",  "Share",   "Used",     "Guarantee", "Limit",
                                           "Running", "Pending", "Boundary", NULL };
    bh_json_value list = bh_json_get(call->data, "items");
    uint64_t scale = tenants_scale(list);

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "There is no tenant yet. An admin declares them: bulkhead apply -f site.yaml.");
        return;
    }
    bh_show_table(html, "Tenants", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        tenants_put_row(html, bh_json_at(list, i), scale);
    bh_show_table_end(html);
}
