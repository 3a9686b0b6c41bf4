/* Lists of jobs: the queue and all, with the reason in the row. */
#include <string.h>

#include "base/attr.h"
#include "web/paging.h"
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
    if (ended) {
        bh_html_text(html, "ended ");
        bh_show_time(html, ended);
    } else if (begun) {
        bh_html_text(html, "since ");
        bh_show_time(html, begun);
    } else if (start) {
        bh_html_text(html, "about ");
        bh_show_about(html, start);
    } else {
        bh_html_text(html, "not known");
    }
    if (ended && begun) {
        bh_html_open(html, "p");
        bh_html_attr(html, "class", "note");
        bh_html_text(html, "ran ");
        bh_show_span(html, ended > begun ? ended - begun : 0);
        bh_html_close(html, "p");
    }
    bh_html_close(html, "td");
}

/* How much a row says: BRIEF leaves to the job's own page what to do, and where it was. */
enum jobs_detail { JOBS_BRIEF, JOBS_FULL };

static void
jobs_put_note(struct bh_html *html, enum jobs_detail detail, const char *note)
{
    if (detail == JOBS_BRIEF || !note[0])
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_show_sentence(html, note);
    bh_html_close(html, "p");
}

/* Why it waits, with what to do about it; the code alone beyond those of a page that the API asks about. */
static void
jobs_put_reason(struct bh_html *html, bh_json_value job, enum jobs_detail detail)
{
    bh_json_value why = bh_json_get(job, "why");

    if (why)
        bh_html_text(html, bh_show_text_of(why, "sentence"));
    else if (bh_show_text_of(job, "reason")[0])
        bh_html_element(html, "code", NULL, bh_show_text_of(job, "reason"));
    jobs_put_note(html, detail, bh_show_text_of(why, "next"));
}

static bool
jobs_is_coded(bh_json_value job)
{
    return strcmp(bh_show_text_of(job, "state"), "pending") == 0 && !bh_json_get(job, "why");
}

/* How it ended, beside where it was. */
static void
jobs_put_end(struct bh_html *html, bh_json_value job, enum jobs_detail detail)
{
    bh_json_value status = bh_json_get(job, "exit_status");

    bh_html_text(html, bh_show_text_of(job, "cause"));
    if (bh_json_kind(status) == BH_JSON_INTEGER) {
        bh_html_text(html, ", status ");
        bh_html_u64(html, bh_json_number(status, 0));
    }
    if (detail == JOBS_BRIEF || !bh_show_text_of(job, "partitions")[0])
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_show_partitions(html, job);
    bh_html_close(html, "p");
}

static void
jobs_put_where(struct bh_html *html, bh_json_value job, enum jobs_detail detail)
{
    bh_html_open(html, "td");
    if (bh_show_number_of(job, "ended_ns"))
        jobs_put_end(html, job, detail);
    else if (bh_json_get(job, "why") || (!jobs_has_begun(job) && !bh_show_text_of(job, "partitions")[0]))
        jobs_put_reason(html, job, detail);
    else
        bh_show_partitions(html, job);
    bh_html_close(html, "td");
}

static void
jobs_put_row(struct bh_html *html, bh_json_value job, enum jobs_detail detail)
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
    jobs_put_where(html, job, detail);
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

/* What a list of jobs is called, and what it says where there is none. */
struct jobs_list {
    const char *caption, *empty;
    enum jobs_detail detail;
};

static void
jobs_put_table(struct bh_html *html, const struct bh_panel_call *call, const struct jobs_list *shown)
{
    static const char *const columns[] = { "Job",   "Name", "Tenant",       "User", "SKU",
                                           "State", "When", "Where or why", NULL };
    bh_json_value list = bh_json_get(call->data, "items");
    bool coded = false;

    if (bh_json_count(list) == 0) {
        jobs_put_empty(html, shown->empty);
        return;
    }
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "joblist");
    bh_show_table(html, shown->caption, columns);
    for (size_t i = 0; i < bh_json_count(list); i++) {
        jobs_put_row(html, bh_json_at(list, i), shown->detail);
        coded = coded || jobs_is_coded(bh_json_at(list, i));
    }
    bh_show_table_end(html);
    bh_html_close(html, "div");
    if (coded)
        jobs_put_note(html, shown->detail,
                      "The first 50 jobs that wait have the reason as a sentence, the others its code: a "
                      "job's own page explains it.");
}

/* ---- filters and pages ---- */

static const struct bh_paging jobs_paging = {
    .path = "/jobs",
    .filters = (const char *const[]){ "active", "ended", "gpu", "mine", "order", "state", "tenant", NULL },
    .one = "job",
    .many = "jobs",
    .order = "by number",
    .newest = true,
};

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
                      { "/jobs?state=failed", "Failed" },
                      { "/jobs?ended=true", "Ended" } };
    const char *here = bh_paging_address(&jobs_paging, page, "");

    bh_html_open(html, "div");
    bh_html_attr(html, "class", "shortcuts");
    for (size_t i = 0; i < BH_COUNT(shortcuts); i++)
        bh_paging_put_link(html, shortcuts[i].address, shortcuts[i].title,
                           strcmp(here, shortcuts[i].address) == 0);
    bh_html_close(html, "div");
}

static void
jobs_put_filter(struct bh_html *html, const struct bh_page *page)
{
    static const char *const states[] = { "pending",  "starting", "running",   "suspending", "suspended",
                                          "resuming", "stopping", "completed", "failed",     "cancelled" };

    static const char *const kept[] = { "ended", "gpu", "order" }; /* of the link that led here */

    bh_frame_search(html, "/jobs");
    for (size_t i = 0; i < BH_COUNT(kept); i++)
        if (bh_page_field(page, kept[i])[0])
            bh_frame_hidden(html, kept[i], bh_page_field(page, kept[i]));
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

/* Of a GPU the API looks at so many jobs and does not count. */
static void
jobs_put_gpu_pages(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "shortcuts");
    bh_html_open(html, "span");
    bh_html_text(html, "Those among the next 1,000 jobs that hold a partition of ");
    bh_show_gpu(html, bh_page_field(call->page, "gpu"));
    bh_html_text(html, ", or did in their last run");
    bh_html_close(html, "span");
    bh_paging_put_links(html, call, &jobs_paging);
    bh_html_close(html, "p");
}

static void
jobs_put_pages(struct bh_html *html, const struct bh_panel_call *call)
{
    if (bh_json_get(call->data, "total"))
        bh_paging_put(html, call, &jobs_paging);
    else
        jobs_put_gpu_pages(html, call);
}

/* ---- of one tenant ---- */

/* A list of the tenant's jobs and of those below it. */
static void
jobs_put_tenant_link(struct bh_html *html, const struct bh_panel_call *call, const char *filter,
                     const char *text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = BH_FORM_BYTES_MAX };

    bh_buf_puts(&address, "/jobs");
    bh_buf_puts(&address, filter);
    bh_form_put(&address, "tenant", call->id);
    if (!bh_buf_text(&address))
        return;
    bh_html_open(html, "p");
    bh_paging_put_link(html, bh_buf_text(&address), text, false);
    bh_html_close(html, "p");
}

void
bh_panel_tenant_queue(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_table(html, call,
                   &(struct jobs_list){ "Jobs that run or wait", "Nothing of it runs or waits.", JOBS_FULL });
    if (bh_show_text_of(call->data, "next")[0])
        jobs_put_tenant_link(html, call, "?active=true", "All that run or wait");
}

void
bh_panel_tenant_ended(struct bh_html *html, const struct bh_panel_call *call)
{
    if (bh_json_count(bh_json_get(call->data, "items")) == 0) {
        bh_html_element(html, "p", NULL, "No job of it has ended yet.");
        return;
    }
    jobs_put_table(html, call, &(struct jobs_list){ "Jobs that ended", "", JOBS_FULL });
    jobs_put_tenant_link(html, call, "?ended=true", "All its jobs that ended");
}

void
bh_panel_site_queue(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_table(
        html, call,
        &(struct jobs_list){ "Jobs that run or wait", "Nothing runs and nothing waits.", JOBS_BRIEF });
    if (bh_show_text_of(call->data, "next")[0])
        bh_paging_put_link(html, "/jobs?active=true", "All that run or wait", false);
}

void
bh_panel_jobs(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_shortcuts(html, call->page);
    jobs_put_filter(html, call->page);
    jobs_put_table(html, call, &(struct jobs_list){ "Jobs", "No job fits.", JOBS_FULL });
    jobs_put_pages(html, call);
}
