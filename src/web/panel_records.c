/* A search in the audit log: its form, and the records that match. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "identity/form.h"
#include "web/paging.h"
#include "web/record.h"
#include "web/show.h"

/* ---- the search ---- */

static void
records_put_input(struct bh_html *html, const struct bh_panel_call *call, const char *label, const char *name)
{
    bh_html_open(html, "div");
    bh_frame_input(html, &(struct bh_input){ .id = name,
                                             .label = label,
                                             .name = name,
                                             .autocomplete = "off",
                                             .value = bh_page_field(call->page, name),
                                             .length_max = 200,
                                             .optional = true });
    bh_html_close(html, "div");
}

static void
records_put_decision(struct bh_html *html, const char *chosen)
{
    static const struct {
        const char *value, *label;
    } choices[] = { { "", "any" }, { "allow", "allowed" }, { "deny", "denied" } };

    bh_html_open(html, "div");
    bh_html_open(html, "label");
    bh_html_attr(html, "for", "decision");
    bh_html_text(html, "Decision");
    bh_html_close(html, "label");
    bh_html_open(html, "select");
    bh_html_attr(html, "id", "decision");
    bh_html_attr(html, "name", "decision");
    for (size_t i = 0; i < BH_COUNT(choices); i++) {
        bh_html_open(html, "option");
        bh_html_attr(html, "value", choices[i].value);
        if (strcmp(chosen, choices[i].value) == 0)
            bh_html_flag(html, "selected");
        bh_html_text(html, choices[i].label);
        bh_html_close(html, "option");
    }
    bh_html_close(html, "select");
    bh_html_close(html, "div");
}

void
bh_panel_find_records(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_frame_search(html, "/audit");
    records_put_input(html, call, "Verb, as job.submit", "verb");
    records_put_input(html, call, "Actor: name or number", "actor");
    records_put_input(html, call, "Tenant and below it", "tenant");
    records_put_input(html, call, "Object, as job/7", "object");
    records_put_decision(html, bh_page_field(call->page, "decision"));
    records_put_input(html, call, "Since, as 2h, or a UTC moment", "since");
    records_put_input(html, call, "Until", "until");
    records_put_input(html, call, "Id of a request, token or text", "text");
    bh_html_open(html, "div");
    bh_frame_button(html, NULL, "Search");
    bh_html_open(html, "a");
    bh_html_attr(html, "href", "/audit");
    bh_html_attr(html, "class", "beside");
    bh_html_text(html, "All records");
    bh_html_close(html, "a");
    bh_html_close(html, "div");
    bh_html_close(html, "form");
}

/* ---- the records ---- */

/* What the page searches, for links to its other pages. */
static const char *const searched[] = { "verb",  "actor", "tenant", "object", "decision",
                                        "since", "until", "text",   NULL };

static bool
records_are_searched(const struct bh_page *page)
{
    for (const char *const *name = searched; *name; name++)
        if (bh_page_field(page, *name)[0])
            return true;
    return false;
}

/* A different part of what is searched. */
struct records_page {
    const char *parameter; /* "after" or "before"; NULL: neither */
    char number[24];
    bool oldest; /* first; else the newest */
};

static void
records_put_page_link(struct bh_html *html, const struct bh_panel_call *call, const struct records_page *to,
                      const char *label)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = BH_FORM_BYTES_MAX };

    bh_buf_puts(&address, "/audit");
    for (const char *const *name = searched; *name; name++)
        if (bh_page_field(call->page, *name)[0])
            bh_form_put(&address, *name, bh_page_field(call->page, *name));
    if (to->parameter)
        bh_form_put(&address, to->parameter, to->number);
    if (to->oldest)
        bh_form_put(&address, "order", "oldest");
    if (!bh_buf_text(&address))
        return;
    bh_paging_put_link(html, bh_buf_text(&address), label, false);
}

static struct records_page
records_page_at(const char *parameter, uint64_t number)
{
    struct records_page page = { .parameter = parameter, .oldest = strcmp(parameter, "after") == 0 };

    snprintf(page.number, sizeof page.number, "%" PRIu64, number);
    return page;
}

/* To both sides, and to both ends.  A page that was come to from one side has the other behind it. */
static void
records_put_pages(struct bh_html *html, const struct bh_panel_call *call)
{
    bool oldest = strcmp(bh_page_field(call->page, "order"), "oldest") == 0;
    uint64_t after = bh_show_number_in(bh_page_field(call->page, "after"));
    uint64_t before = bh_show_number_in(bh_page_field(call->page, "before"));
    uint64_t next = bh_show_number_of(call->data, "next");
    bool more = bh_json_get(call->data, "next");
    struct records_page older = { 0 }, newer = { 0 };

    if (oldest ? after > 0 : more)
        older = records_page_at("before", oldest ? after + 1 : next);
    if (oldest ? more : before > 0)
        newer = records_page_at("after", oldest ? next : before - 1);
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "pages");
    if (newer.parameter)
        records_put_page_link(html, call, &(struct records_page){ 0 }, "Newest");
    if (newer.parameter)
        records_put_page_link(html, call, &newer, "Newer");
    if (older.parameter)
        records_put_page_link(html, call, &older, "Older");
    if (older.parameter)
        records_put_page_link(html, call, &(struct records_page){ .oldest = true }, "Oldest");
    bh_html_close(html, "p");
}

/* Newest first, also where the API lists them the other way around. */
static void
records_put_rows(struct bh_html *html, const char *caption, bh_json_value list, bool reversed)
{
    static const char *const columns[] = {
        "Record", "When", "Who", "What", "Object", "Tenant", "Result", NULL
    };
    size_t count = bh_json_count(list);

    bh_show_table(html, caption, columns);
    for (size_t i = 0; i < count; i++)
        bh_record_put_row(html, bh_json_at(list, reversed ? count - 1 - i : i));
    bh_show_table_end(html);
}

void
bh_panel_records(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");
    bool oldest = strcmp(bh_page_field(call->page, "order"), "oldest") == 0;

    if (bh_json_count(list) > 0)
        records_put_rows(html, "Records", list, oldest);
    else if (bh_json_get(call->data, "next"))
        bh_html_element(html, "p", NULL,
                        "None of the 100,000 records that were looked at match. Go on to look further.");
    else if (records_are_searched(call->page))
        bh_html_element(html, "p", NULL, "No record matches that you may see. Search with less.");
    else
        bh_html_element(html, "p", NULL, "There is no record here that you may see.");
    records_put_pages(html, call);
}

/* ---- beside one of them ---- */

static void
records_put_neighbors(struct bh_html *html, const char *caption, bh_json_value list)
{
    if (bh_json_count(list) == 0)
        bh_html_element(html, "p", NULL, "There is none that you may see.");
    else
        records_put_rows(html, caption, list, false);
}

void
bh_panel_records_before(struct bh_html *html, const struct bh_panel_call *call)
{
    records_put_neighbors(html, "Records before it", bh_json_get(call->data, "items"));
}

void
bh_panel_records_after(struct bh_html *html, const struct bh_panel_call *call)
{
    records_put_neighbors(html, "Records after it", bh_json_get(call->data, "items"));
}
