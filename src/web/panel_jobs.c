/* Lists of jobs: the queue and all, with the reason in the row. */
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/show.h"

/* ---- tables of jobs ---- */

static bool
jobs_has_begun(bh_json_value job)
{
    return bh_show_number_of(job, "started_ns") != 0;
}

/* When it will start, began or ended.  No span up to now: what did not change is rendered as before. */
static void
jobs_put_when(struct bh_html *html, bh_json_value job)
{
    bh_ns start = bh_show_number_of(job, "estimated_start_ns"), begun = bh_show_number_of(job, "started_ns");
    bh_ns ended = bh_show_number_of(job, "ended_ns");

    bh_html_open(html, "td");
    if (ended && begun) {
        bh_html_text(html, "ran ");
        bh_show_span(html, ended > begun ? ended - begun : 0);
    } else if (begun) {
        bh_html_text(html, "since ");
        bh_show_time(html, begun);
    } else if (start) {
        bh_html_text(html, "about ");
        bh_show_about(html, start);
    } else if (!ended) {
        bh_html_text(html, "not known");
    }
    bh_html_close(html, "td");
}

/* Why it waits, with what to do about it; the code alone beyond those of a page that the API asks about. */
static void
jobs_put_reason(struct bh_html *html, bh_json_value job)
{
    bh_json_value why = bh_json_get(job, "why");
    const char *next = bh_show_text_of(why, "next");

    if (why)
        bh_html_text(html, bh_show_text_of(why, "sentence"));
    else if (bh_show_text_of(job, "reason")[0])
        bh_html_element(html, "code", NULL, bh_show_text_of(job, "reason"));
    if (next[0])
        bh_html_element(html, "p", "note", next);
}

static bool
jobs_is_coded(bh_json_value job)
{
    return strcmp(bh_show_text_of(job, "state"), "pending") == 0 && !bh_json_get(job, "why");
}

/* How it ended, beside where it was. */
static void
jobs_put_end(struct bh_html *html, bh_json_value job)
{
    bh_json_value status = bh_json_get(job, "exit_status");

    bh_html_text(html, bh_show_text_of(job, "cause"));
    if (bh_json_kind(status) == BH_JSON_INTEGER) {
        bh_html_text(html, ", status ");
        bh_html_u64(html, bh_json_number(status, 0));
    }
    if (bh_show_text_of(job, "partitions")[0])
        bh_html_element(html, "p", "note", bh_show_text_of(job, "partitions"));
}

static void
jobs_put_where(struct bh_html *html, bh_json_value job)
{
    bh_html_open(html, "td");
    if (bh_show_number_of(job, "ended_ns"))
        jobs_put_end(html, job);
    else if (bh_json_get(job, "why") || !jobs_has_begun(job))
        jobs_put_reason(html, job);
    else
        bh_html_text(html, bh_show_text_of(job, "partitions"));
    bh_html_close(html, "td");
}

static void
jobs_put_row(struct bh_html *html, bh_json_value job)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_job(html, bh_show_number_of(job, "id"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(job, "name"));
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(job, "tenant"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(job, "user"));
    bh_show_cell(html, bh_show_text_of(job, "sku"));
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(job, "state"));
    bh_html_close(html, "td");
    jobs_put_when(html, job);
    jobs_put_where(html, job);
    bh_html_close(html, "tr");
}

/* What to do where there is no job. */
static void
jobs_put_empty(struct bh_html *html, const char *what)
{
    bh_html_open(html, "p");
    bh_html_text(html, what);
    bh_html_text(html, " ");
    bh_show_link(html, "/", "submit", "Submit one");
    bh_html_text(html, ", or: bulkhead submit job.yaml.");
    bh_html_close(html, "p");
}

static void
jobs_put_table(struct bh_html *html, const struct bh_panel_call *call, const char *caption, const char *empty)
{
    static const char *const columns[] = { "Job",   "Name", "Tenant",       "User", "SKU",
                                           "State", "When", "Where or why", NULL };
    bh_json_value list = bh_json_get(call->data, "items");
    bool coded = false;

    if (bh_json_count(list) == 0) {
        jobs_put_empty(html, empty);
        return;
    }
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "joblist");
    bh_show_table(html, caption, columns);
    for (size_t i = 0; i < bh_json_count(list); i++) {
        jobs_put_row(html, bh_json_at(list, i));
        coded = coded || jobs_is_coded(bh_json_at(list, i));
    }
    bh_show_table_end(html);
    bh_html_close(html, "div");
    if (coded)
        bh_html_element(
            html, "p", "note",
            "The first 50 jobs that wait have the reason as a sentence, the others its code: a job's own page "
            "explains it.");
}

/* ---- filters and pages ---- */

static const char *const job_filters[] = { "active", "mine", "state", "tenant" };

static void
jobs_put_parameter(struct bh_buf *address, const char *name, const char *value)
{
    if (!value[0])
        return;
    bh_buf_putc(address, memchr(address->bytes, '?', address->length) ? '&' : '?');
    bh_form_put_encoded(address, name);
    bh_buf_putc(address, '=');
    bh_form_put_encoded(address, value);
}

/* The list's address with these filters, and from that job on. */
static const char *
jobs_address(const struct bh_page *page, const char *after)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = BH_FORM_BYTES_MAX };
    const char *text = NULL;

    bh_buf_puts(&address, "/jobs");
    for (size_t i = 0; i < BH_COUNT(job_filters); i++)
        jobs_put_parameter(&address, job_filters[i], bh_page_field(page, job_filters[i]));
    jobs_put_parameter(&address, "after", after);
    if (bh_buf_text(&address))
        text = bh_arena_strdup(page->request->arena, bh_buf_text(&address));
    return text ? text : "/jobs";
}

static void
jobs_put_address(struct bh_html *html, const char *address, const char *text, bool current)
{
    bh_html_open(html, "a");
    bh_html_attr(html, "href", address);
    if (current)
        bh_html_attr(html, "aria-current", "true");
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

/* The questions that are asked most, a click each. */
static void
jobs_put_shortcuts(struct bh_html *html, const struct bh_page *page)
{
    static const struct {
        const char *address, *title;
    } shortcuts[] = { { "/jobs", "All" },
                      { "/jobs?active=true", "Not ended" },
                      { "/jobs?active=true&mine=true", "Mine" },
                      { "/jobs?state=running", "Running" },
                      { "/jobs?state=pending", "Pending" },
                      { "/jobs?state=failed", "Failed" } };
    const char *here = jobs_address(page, "");

    bh_html_open(html, "div");
    bh_html_attr(html, "class", "shortcuts");
    for (size_t i = 0; i < BH_COUNT(shortcuts); i++)
        jobs_put_address(html, shortcuts[i].address, shortcuts[i].title,
                         strcmp(here, shortcuts[i].address) == 0);
    bh_html_close(html, "div");
}

static void
jobs_put_filter(struct bh_html *html, const struct bh_page *page)
{
    static const char *const states[] = { "pending",  "starting", "running",   "suspending", "suspended",
                                          "resuming", "stopping", "completed", "failed",     "cancelled" };

    bh_frame_search(html, "/jobs");
    bh_html_open(html, "div");
    bh_frame_select(html, &(struct bh_select){ .id = "filter-state",
                                               .label = "State",
                                               .name = "state",
                                               .value = bh_page_field(page, "state"),
                                               .empty = "any",
                                               .values = states,
                                               .count = BH_COUNT(states) });
    bh_html_close(html, "div");
    bh_html_open(html, "div");
    bh_frame_input(html, &(struct bh_input){ .id = "filter-tenant",
                                             .label = "Tenant and below",
                                             .name = "tenant",
                                             .autocomplete = "off",
                                             .value = bh_page_field(page, "tenant"),
                                             .optional = true });
    bh_html_close(html, "div");
    bh_frame_checkbox(html, &(struct bh_checkbox){ .id = "filter-active",
                                                   .label = "Not ended",
                                                   .name = "active",
                                                   .checked = bh_page_field(page, "active")[0] });
    bh_frame_checkbox(html, &(struct bh_checkbox){ .id = "filter-mine",
                                                   .label = "Mine",
                                                   .name = "mine",
                                                   .checked = bh_page_field(page, "mine")[0] });
    bh_frame_button(html, "plain", "Show");
    bh_html_close(html, "form");
}

static void
jobs_put_pages(struct bh_html *html, const struct bh_panel_call *call)
{
    const char *next = bh_show_text_of(call->data, "next");
    uint64_t total = bh_show_number_of(call->data, "total");

    bh_html_open(html, "p");
    bh_html_attr(html, "class", "shortcuts");
    bh_html_open(html, "span");
    bh_html_u64(html, total);
    bh_html_text(html, total == 1 ? " job in all, by number" : " jobs in all, by number");
    bh_html_close(html, "span");
    if (bh_page_field(call->page, "after")[0])
        jobs_put_address(html, jobs_address(call->page, ""), "First page", false);
    if (next[0])
        jobs_put_address(html, jobs_address(call->page, next), "Next page", false);
    bh_html_close(html, "p");
}

void
bh_panel_queue(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_table(html, call, "Jobs that run or wait", "Nothing runs and nothing waits.");
    if (bh_show_text_of(call->data, "next")[0])
        jobs_put_address(html, "/jobs?active=true", "All that run or wait", false);
}

void
bh_panel_jobs(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_shortcuts(html, call->page);
    jobs_put_filter(html, call->page);
    jobs_put_table(html, call, "Jobs", "No job fits.");
    jobs_put_pages(html, call);
}
