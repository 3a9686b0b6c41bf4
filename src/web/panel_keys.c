/* The keys that texts of people are sealed with. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "web/panel.h"
#include "web/show.h"

static void
keys_put_row(struct bh_html *html, bh_json_value key)
{
    const char *tenant = bh_show_text_of(key, "tenant"), *month = bh_show_text_of(key, "month");
    char object[40];

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    snprintf(object, sizeof object, "key/%" PRIu64, bh_show_number_of(key, "id"));
    bh_show_search(html, "object", object, object + 4);
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(key, "kind"));
    bh_html_open(html, "td");
    if (strcmp(tenant, "*") == 0)
        bh_html_text(html, "the site");
    else
        bh_show_tenant(html, tenant);
    bh_html_close(html, "td");
    bh_show_cell(html, month[0] ? month : "all");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(key, "created_ns"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_html_text(html, bh_show_text_of(key, "state"));
    if (bh_show_number_of(key, "shredded_ns")) {
        bh_html_text(html, " ");
        bh_show_time(html, bh_show_number_of(key, "shredded_ns"));
    }
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

void
bh_panel_keys(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Key", "Kind", "Tenant", "Month", "Made", "State", NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    bh_html_element(html, "p", "note",
                    "Texts of people are sealed with these. Destroying one erases its texts for good, and "
                    "leaves the log as it is: bulkhead key shred TENANT.");
    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL, "There is no key yet: one is made with the first text.");
        return;
    }
    bh_show_table(html, "Keys", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        keys_put_row(html, bh_json_at(list, i));
    bh_show_table_end(html);
}
