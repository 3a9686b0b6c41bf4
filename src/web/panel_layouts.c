/* Layouts: what is declared for GPUs, what they have, and how the last change went. */
#include <string.h>

#include "web/panel.h"
#include "web/show.h"

static void
layouts_put_texts(struct bh_html *html, bh_json_value texts, const char *none)
{
    bh_html_open(html, "td");
    if (bh_json_count(texts) == 0)
        bh_html_text(html, none);
    for (size_t i = 0; i < bh_json_count(texts); i++) {
        if (i > 0)
            bh_html_text(html, ", ");
        bh_html_text(html, bh_json_text(bh_json_at(texts, i), ""));
    }
    bh_html_close(html, "td");
}

static bool
layouts_has(bh_json_value texts, const char *text)
{
    for (size_t i = 0; i < bh_json_count(texts); i++)
        if (strcmp(bh_json_text(bh_json_at(texts, i), ""), text) == 0)
            return true;
    return false;
}

/* What is in the first list and not in the second, each behind its sign; how many were put before and now. */
static size_t
layouts_put_missing(struct bh_html *html, bh_json_value first, bh_json_value second, const char *sign,
                    size_t before)
{
    for (size_t i = 0; i < bh_json_count(first); i++) {
        const char *text = bh_json_text(bh_json_at(first, i), "");

        if (layouts_has(second, text))
            continue;
        bh_html_text(html, before++ ? ", " : "");
        bh_html_text(html, sign);
        bh_html_text(html, text);
    }
    return before;
}

static void
layouts_put_difference(struct bh_html *html, bh_json_value row)
{
    bh_json_value declared = bh_json_get(row, "declared"), has = bh_json_get(row, "layout");
    size_t count = 0;

    bh_html_open(html, "td");
    if (bh_show_truth_of(row, "withheld")) {
        bh_show_unavailable(html, "others hold partitions of it");
    } else if (!bh_show_truth_of(row, "is_declared")) {
        bh_html_text(html, "not declared");
    } else {
        count = layouts_put_missing(html, declared, has, "missing ", count);
        count = layouts_put_missing(html, has, declared, "also ", count);
        if (count == 0)
            bh_html_text(html, "as declared");
    }
    bh_html_close(html, "td");
}

static void
layouts_put_state(struct bh_html *html, bh_json_value row)
{
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(row, "state"));
    if (bh_show_text_of(row, "failure")[0]) {
        bh_html_text(html, ": ");
        bh_html_text(html, bh_show_text_of(row, "failure"));
    }
    if (bh_show_text_of(row, "trouble")[0]) {
        bh_html_text(html, ": ");
        bh_html_text(html, bh_show_text_of(row, "trouble"));
    }
    bh_html_close(html, "td");
}

static void
layouts_put_row(struct bh_html *html, bh_json_value row)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_gpu(html, bh_show_text_of(row, "gpu"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    if (bh_show_text_of(row, "node")[0])
        bh_show_link(html, "/nodes/", bh_show_text_of(row, "node"), bh_show_text_of(row, "node"));
    else
        bh_show_unavailable(html, "its node is away");
    bh_html_close(html, "td");
    layouts_put_texts(html, bh_json_get(row, "declared"), "nothing");
    layouts_put_texts(html, bh_json_get(row, "layout"),
                      bh_show_truth_of(row, "withheld") ? "partitions of others" : "nothing");
    layouts_put_difference(html, row);
    layouts_put_state(html, row);
    bh_html_close(html, "tr");
}

static void
layouts_put_rollback(struct bh_html *html, const struct bh_panel_call *call)
{
    if (!bh_page_may(call->page, "layout.apply"))
        return;
    bh_html_open(html, "a");
    bh_html_attr(html, "class", "button plain");
    bh_html_attr(html, "href", "/layouts/rollback");
    bh_html_text(html, "Go back to the layout before, on all GPUs\xe2\x80\xa6");
    bh_html_close(html, "a");
}

void
bh_panel_layouts(struct bh_html *html, const struct bh_panel_call *call)
{
    static const char *const columns[] = {
        "GPU", "Node", "Declared", "It has", "Difference", "Change", NULL
    };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL,
                        "No GPU that Bulkhead may divide: one needs MIG and managed: true in the site file.");
        return;
    }
    bh_show_table(html, "Layouts", columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        layouts_put_row(html, bh_json_at(list, i));
    bh_show_table_end(html);
    layouts_put_rollback(html, call);
}
