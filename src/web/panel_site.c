/* The site file: SKUs, policies, and its history with differences. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/policy_text.h"
#include "web/show.h"

enum { TEXT_MAX = 192, LINES_SHOWN_MAX = 400, LINE_MAX = 512 };

/* ---- history ---- */

static void
site_put_diff_link(struct bh_html *html, uint64_t from, uint64_t to, const char *text)
{
    char address[96];

    snprintf(address, sizeof address, "/site/diff/%llu?to=%llu", (unsigned long long)from,
             (unsigned long long)to);
    bh_html_open(html, "a");
    bh_html_attr(html, "href", address);
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

/* `older` is the revision before it; 0: it is not kept. */
static void
site_put_revision(struct bh_html *html, bh_json_value row, uint64_t older, uint64_t present)
{
    uint64_t revision = bh_show_number_of(row, "revision");

    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_html_u64(html, revision);
    if (revision == present)
        bh_html_text(html, " in force");
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_time(html, bh_show_number_of(row, "at_ns"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(row, "by")[0] ? bh_show_text_of(row, "by") : "the system");
    bh_html_open(html, "td");
    bh_html_u64(html, bh_show_number_of(row, "changes"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    if (older > 0)
        site_put_diff_link(html, older, revision, "what it changed");
    if (revision != present) {
        bh_html_text(html, older ? ", " : "");
        site_put_diff_link(html, revision, present, "until now");
    }
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

void
bh_panel_site_history(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = { "Revision", "Applied", "By", "Keys changed", "Differences", NULL };
    bh_json_value list = bh_json_get(call->data, "items");
    uint64_t present = bh_show_number_of(call->data, "present");
    size_t count = bh_json_count(list);

    if (count == 0) {
        bh_html_element(html, "p", NULL,
                        "No site file was applied yet. Start with: bulkhead apply -f site.yaml.");
        return;
    }
    bh_show_table(html, "Revisions of the site file", columns);
    for (size_t i = 0; i < count; i++) {
        uint64_t older = i + 1 < count ? bh_show_number_of(bh_json_at(list, i + 1), "revision") : 0;

        site_put_revision(html, bh_json_at(list, i), older, present);
    }
    bh_show_table_end(html);
}

/* A line of the difference: "skus[tiny]: removed", "tenants[acme]: added {...}", or a value and the new one.
 */
static void
site_put_change(struct bh_html *html, bh_json_value line)
{
    const char *text = bh_json_text(line, "");

    bh_html_open(html, "li");
    bh_html_element(html, "code",
                    strstr(text, ": added")     ? "added"
                    : strstr(text, ": removed") ? "removed"
                                                : NULL,
                    text);
    bh_html_close(html, "li");
}

void
bh_panel_site_diff(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value changes = bh_json_get(call->data, "changes");
    size_t count = bh_json_count(changes);
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "From revision %llu to %llu: %llu keys differ.",
             (unsigned long long)bh_show_number_of(call->data, "from"),
             (unsigned long long)bh_show_number_of(call->data, "to"),
             (unsigned long long)bh_show_number_of(call->data, "change_count"));
    bh_html_element(html, "p", NULL, text);
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "changes");
    for (size_t i = 0; i < count && i < LINES_SHOWN_MAX; i++)
        site_put_change(html, bh_json_at(changes, i));
    bh_html_close(html, "ul");
    if (count > LINES_SHOWN_MAX || bh_show_text_of(call->data, "changes_sha256")[0])
        bh_html_element(html, "p", "note", "More lines are left out: the command shows all.");
}

/* ---- SKUs ---- */

static void
site_put_sku_model(struct bh_html *html, bh_json_value model)
{
    bh_html_open(html, "li");
    bh_html_text(html, bh_show_text_of(model, "model"));
    bh_html_text(html, " ");
    bh_html_text(html, bh_show_text_of(model, "profile"));
    bh_html_text(html, ", ");
    bh_html_text(html, bh_show_text_of(model, "gpus"));
    bh_html_text(html, " GPU");
    bh_html_close(html, "li");
}

static void
site_put_sku(struct bh_html *html, bh_json_value sku)
{
    const char *price = bh_show_text_of(sku, "price");
    bh_json_value models = bh_json_get(sku, "models");

    bh_html_open(html, "tr");
    bh_show_cell(html, bh_show_text_of(sku, "name"));
    bh_show_cell(html, bh_show_text_of(sku, "grade"));
    bh_html_open(html, "td");
    bh_html_open(html, "ul");
    bh_html_attr(html, "class", "holders");
    for (size_t i = 0; i < bh_json_count(models); i++)
        site_put_sku_model(html, bh_json_at(models, i));
    bh_html_close(html, "ul");
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(sku, "cpu")[0] ? bh_show_text_of(sku, "cpu") : "the node's share");
    bh_show_cell(html,
                 bh_show_text_of(sku, "memory")[0] ? bh_show_text_of(sku, "memory") : "the node's share");
    bh_show_cell(html, price[0] ? price : "none");
    bh_html_close(html, "tr");
}

void
bh_panel_skus(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = {
        "SKU", "Grade", "Made of", "Cores", "Memory", "Price, hour", NULL
    };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "There is no SKU yet. An admin declares them in the site file: skus.");
        return;
    }
    bh_show_table(html, "SKUs", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        site_put_sku(html, bh_json_at(list, i));
    bh_show_table_end(html);
}

/* ---- policies ---- */

static bool
site_put_policies_of_tenants(struct bh_html *html, bh_json_value tenants, bool any)
{
    for (size_t i = 0; i < bh_json_count(tenants); i++) {
        bh_json_value policy = bh_json_get(bh_json_at(tenants, i), "policy");

        if (!policy)
            continue;
        bh_policy_text_put(html, bh_show_text_of(bh_json_at(tenants, i), "name"), policy);
        any = true;
    }
    return any;
}

void
bh_panel_policies(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value policy = bh_json_get(call->data, "policy");

    if (policy)
        bh_policy_text_put(html, "*", policy);
    if (!site_put_policies_of_tenants(html, bh_json_get(call->data, "tenants"), policy != NULL)) {
        bh_html_element(html, "p", NULL,
                        "No policy narrows what may be submitted. Declare one in the site file: policy.");
        return;
    }
    bh_frame_form(html, call->frame, "/site/policies/test");
    bh_frame_button(html, "plain", "Test them against recorded submissions");
    bh_html_close(html, "form");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, "Another site file is tested with ");
    bh_html_element(html, "code", NULL, "bulkhead policy test -f site.yaml");
    bh_html_close(html, "p");
}
