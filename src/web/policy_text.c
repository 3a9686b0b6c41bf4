#include "web/policy_text.h"

#include <string.h>

#include "model/policy.h"
#include "web/show.h"

static void
policy_text_put_item(struct bh_html *html, bh_json_value value)
{
    if (bh_json_kind(value) == BH_JSON_INTEGER)
        bh_html_u64(html, bh_json_number(value, 0));
    else if (bh_json_kind(value) == BH_JSON_BOOL)
        bh_html_text(html, bh_json_truth(value) ? "yes" : "no");
    else if (bh_json_get(value, "sku")) {
        bh_html_text(html, bh_show_text_of(value, "partitions"));
        bh_html_text(html, " of ");
        bh_html_text(html, bh_show_text_of(value, "sku"));
    } else {
        bh_html_text(html, bh_json_text(value, ""));
    }
}

static void
policy_text_put_value(struct bh_html *html, bh_json_value value)
{
    if (bh_json_kind(value) != BH_JSON_ARRAY) {
        policy_text_put_item(html, value);
        return;
    }
    for (size_t i = 0; i < bh_json_count(value); i++) {
        if (i > 0)
            bh_html_text(html, ", ");
        policy_text_put_item(html, bh_json_at(value, i));
    }
}

static void
policy_text_put_entry(struct bh_html *html, const char *key, bh_json_value value)
{
    const struct bh_field *field = bh_fields_find(&bh_site_policy_fields, key, strlen(key));

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_html_element(html, "code", NULL, key);
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    policy_text_put_value(html, value);
    bh_html_close(html, "td");
    bh_html_element(html, "td", "note", field && field->doc ? field->doc : "");
    bh_html_close(html, "tr");
}

void
bh_policy_text_put(struct bh_html *html, const char *tenant, bh_json_value policy)
{
    static const char *const columns[] = { "Entry", "Allows", "What it is for", NULL };
    bool of_site = strcmp(tenant, "*") == 0;
    void *cursor = NULL;
    bh_json_value value;
    const char *key;

    bh_html_open(html, "p");
    bh_html_text(html, "Declared at ");
    if (of_site)
        bh_html_text(html, "the site");
    else
        bh_show_tenant(html, tenant);
    bh_html_close(html, "p");
    bh_show_table(html, of_site ? "Policy of the site" : tenant, columns);
    while (bh_json_next(policy, &cursor, &key, &value))
        policy_text_put_entry(html, key, value);
    bh_show_table_end(html);
}
