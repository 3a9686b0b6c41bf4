/* Jobs: the queue with the reason in the row, lists, one job. */
#include <stdio.h>
#include <string.h>

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
    bh_show_cell(html, bh_show_text_of(job, jobs_has_begun(job) ? "partitions" : "reason"));
    bh_html_close(html, "tr");
}

static void
jobs_put_table(struct bh_html *html, const struct bh_panel_call *call, const char *caption, const char *empty)
{
    static const char *const columns[] = { "Job",   "Name", "Tenant",       "User", "SKU",
                                           "State", "When", "Where or why", NULL };
    bh_json_value list = bh_json_get(call->data, "items");

    if (bh_json_count(list) == 0) {
        bh_html_element(html, "p", NULL, empty);
        return;
    }
    bh_show_table(html, caption, columns);
    for (size_t i = 0; i < bh_json_count(list); i++)
        jobs_put_row(html, bh_json_at(list, i));
    bh_show_table_end(html);
}

void
bh_panel_queue(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_table(html, call, "Jobs that run or wait",
                   "Nothing runs and nothing waits. Submit a job: bulkhead submit job.yaml.");
}

void
bh_panel_jobs(struct bh_html *html, const struct bh_panel_call *call)
{
    jobs_put_table(html, call, "Jobs", "No job fits. Submit one: bulkhead submit job.yaml.");
}

/* ---- one job ---- */

static void
jobs_put_moment(struct bh_html *html, const char *name, bh_ns at)
{
    if (at == 0)
        return;
    bh_show_fact_begin(html, name);
    bh_show_time(html, at);
    bh_show_fact_end(html);
}

void
bh_panel_job(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value job = call->data;

    bh_html_open(html, "dl");
    bh_html_attr(html, "class", "facts");
    bh_show_fact_begin(html, "State");
    bh_show_state(html, bh_show_text_of(job, "state"));
    bh_show_fact_end(html);
    bh_show_fact_begin(html, "Tenant");
    bh_show_tenant(html, bh_show_text_of(job, "tenant"));
    bh_show_fact_end(html);
    bh_show_fact(html, "User", bh_show_text_of(job, "user"));
    bh_show_fact(html, "SKU", bh_show_text_of(job, "sku"));
    bh_show_fact(html, "Grade", bh_show_text_of(job, "grade"));
    jobs_put_moment(html, "Submitted", bh_show_number_of(job, "submitted_ns"));
    jobs_put_moment(html, "Started", bh_show_number_of(job, "started_ns"));
    jobs_put_moment(html, "Ended", bh_show_number_of(job, "ended_ns"));
    bh_show_fact(html, "Partitions", bh_show_text_of(job, "partitions"));
    bh_html_close(html, "dl");
}

void
bh_panel_why(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_html_element(html, "p", NULL, bh_show_text_of(call->data, "sentence"));
    bh_html_element(html, "p", "note", bh_show_text_of(call->data, "next"));
}
