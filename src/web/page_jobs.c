/* What people do with a job: cancel it, release it, have its isolation checked, read and take its output. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "web/effects.h"
#include "web/headers.h"
#include "web/live.h"
#include "web/page.h"
#include "web/question.h"
#include "web/show.h"

/* The job's own page. */
static const char *
job_page_path(const struct bh_page *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf path = { .max = BH_FORM_BYTES_MAX };
    const char *text = NULL;

    bh_buf_puts(&path, "/jobs/");
    bh_form_put_encoded(&path, page->id);
    if (bh_buf_text(&path))
        text = bh_arena_strdup(page->request->arena, bh_buf_text(&path));
    return text ? text : "/jobs";
}

/* A refusal: of a job that is not the caller's to see with the same bytes as of none. */
static void
job_page_refuse_view(struct bh_page *page, uint32_t status)
{
    if (status == 401)
        bh_page_require_sign_in(page);
    else
        bh_page_error(page, status == 429 || status >= 500 ? status : 404);
}

static void
job_page_refuse_change(struct bh_page *page, const struct bh_api_response *response)
{
    if (response->status == 401 && !response->step_up)
        bh_page_require_sign_in(page);
    else if (!response->step_up && (response->status == 403 || response->status == 409))
        bh_page_redirect(page, job_page_path(page), BH_NOTICE_JOB_CHANGED);
    else if (response->status == 404)
        bh_page_error(page, 404);
    else
        bh_page_refuse(page, response, job_page_path(page), BH_NOTICE_JOB_CHANGED);
}

/* Have the API do it, and show the job with what came of it. */
static void
job_page_change(struct bh_page *page, const char *template, enum bh_notice notice)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = { .status = 400 };
    struct bh_question *question = bh_page_question(page, template);

    if (question)
        response = bh_page_post(page, &(struct bh_page_change){ .question = question });
    if (bh_api_response_is_ok(&response))
        bh_page_redirect(page, job_page_path(page), notice);
    else
        job_page_refuse_change(page, &response);
}

/* ---- cancel ---- */

static bool
job_page_may(const struct bh_api_response *job, const char *what)
{
    bh_json_value may = bh_json_get(bh_json_root(job->json), "may");

    for (size_t i = 0; i < bh_json_count(may); i++)
        if (strcmp(bh_json_text(bh_json_at(may, i), ""), what) == 0)
            return true;
    return false;
}

static void
jobs_put_cancel_question(struct bh_html *html, bh_json_value job)
{
    bh_html_open(html, "p");
    bh_html_text(html, "Job ");
    bh_show_job(html, bh_show_number_of(job, "id"));
    if (bh_show_text_of(job, "name")[0]) {
        bh_html_text(html, ", ");
        bh_html_element(html, "strong", NULL, bh_show_text_of(job, "name"));
        bh_html_text(html, ",");
    }
    bh_html_text(html, " of ");
    bh_show_tenant(html, bh_show_text_of(job, "tenant"));
    bh_html_text(html, " is ");
    bh_show_state(html, bh_show_text_of(job, "state"));
    if (bh_show_number_of(job, "started_ns")) {
        bh_html_text(html, ", started ");
        bh_show_time(html, bh_show_number_of(job, "started_ns"));
    }
    bh_html_text(html, ". A cancelled job does not start again.");
    bh_html_close(html, "p");
}

static void
jobs_put_cancel_effects(struct bh_html *html, const struct bh_api_response *whatif)
{
    bh_html_element(html, "h2", NULL, "What happens then");
    if (bh_api_response_is_ok(whatif)) {
        bh_effects_put(html, bh_json_root(whatif->json));
        return;
    }
    bh_html_open(html, "p");
    bh_show_unavailable(html, bh_api_response_error(whatif)[0] ? bh_api_response_error(whatif)
                                                               : "the service does not answer");
    bh_html_close(html, "p");
}

static void
jobs_put_cancel_form(struct bh_html *html, const struct bh_page *page, const struct bh_page_frame *frame,
                     const char *label, bool now)
{
    bh_frame_form(html, frame, bh_page_address(page));
    if (now)
        bh_frame_hidden(html, "now", "true");
    bh_frame_button(html, "grave", label);
    bh_html_close(html, "form");
}

static void
jobs_put_cancel_page(struct bh_page *page, const struct bh_api_response *job,
                     const struct bh_api_response *whatif)
{
    bh_json_value root = bh_json_root(job->json);
    struct bh_page_frame frame = bh_page_site_frame(
        page, BH_SECTION_JOBS, bh_arena_printf(page->request->arena, "Cancel job %s?", page->id));
    struct bh_html html;

    bh_page_headers(page->reply, 200, true);
    frame.times = true;
    html = bh_frame_begin(&page->reply->body, &frame);
    jobs_put_cancel_question(&html, root);
    jobs_put_cancel_effects(&html, whatif);
    bh_html_open(&html, "div");
    bh_html_attr(&html, "class", "actions");
    bh_html_open(&html, "a");
    bh_html_attr(&html, "class", "button");
    bh_html_attr(&html, "href", job_page_path(page));
    bh_html_text(&html, "Keep it");
    bh_html_close(&html, "a");
    jobs_put_cancel_form(&html, page, &frame, "Cancel the job", false);
    if (bh_show_number_of(root, "started_ns"))
        jobs_put_cancel_form(&html, page, &frame, "Cancel at once, without its grace", true);
    bh_html_close(&html, "div");
    bh_frame_end(&html, &frame);
}

void
bh_show_job_cancel(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response job = { .status = 400 }, whatif = { 0 };
    struct bh_question *question = bh_page_question(page, "/v1/jobs/{id}");
    const char *body;

    if (question)
        job = bh_page_ask(page, question);
    if (!bh_api_response_is_ok(&job)) {
        job_page_refuse_view(page, job.status);
        return;
    }
    if (!job_page_may(&job, "cancel")) {
        bh_page_redirect(page, job_page_path(page), BH_NOTICE_JOB_CHANGED);
        return;
    }
    body = bh_arena_printf(page->request->arena, "{\"cancel\":%" PRIu64 "}",
                           bh_show_number_of(bh_json_root(job.json), "id"));
    if (body)
        whatif = bh_page_call(page, BH_POST, "/v1/whatif", body);
    jobs_put_cancel_page(page, &job, &whatif);
}

void
bh_post_job_cancel(struct bh_page *page)
{
    job_page_change(page, "/v1/jobs/{id}/cancel?now={?now}", BH_NOTICE_JOB_CANCELLED);
}

void
bh_post_job_release(struct bh_page *page)
{
    job_page_change(page, "/v1/jobs/{id}/release", BH_NOTICE_JOB_RELEASED);
}

/* ---- isolation checks ---- */

static void
jobs_put_check(struct bh_html *html, bh_json_value check)
{
    bh_html_open(html, "tr");
    bh_show_cell(html, bh_show_text_of(check, "name"));
    bh_html_open(html, "td");
    bh_show_state(html, bh_show_text_of(check, "result"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_truth_of(check, "outside") ? "from outside" : "an attempt beside it");
    bh_show_cell(html, bh_show_text_of(check, "answer"));
    bh_html_close(html, "tr");
}

static void
jobs_put_verdict(struct bh_html *html, bh_json_value verdict)
{
    static const char *const columns[] = { "Check", "Result", "How", "Answer", NULL };
    bh_json_value checks = bh_json_get(verdict, "checks");

    bh_html_open(html, "p");
    bh_show_state(html, bh_show_text_of(verdict, "result"));
    bh_html_text(html, " on ");
    bh_show_link(html, "/nodes/", bh_show_text_of(verdict, "node"), bh_show_text_of(verdict, "node"));
    bh_html_text(html, ": ");
    bh_html_u64(html, bh_show_number_of(verdict, "tried"));
    bh_html_text(html, " checks made, ");
    bh_html_u64(html, bh_show_number_of(verdict, "skipped"));
    bh_html_text(html, " do not apply here");
    if (bh_show_text_of(verdict, "why")[0]) {
        bh_html_text(html, ": ");
        bh_html_text(html, bh_show_text_of(verdict, "why"));
    }
    bh_html_close(html, "p");
    if (bh_json_count(checks) == 0)
        return;
    bh_show_table(html, "Isolation checks", columns);
    for (size_t i = 0; i < bh_json_count(checks); i++)
        jobs_put_check(html, bh_json_at(checks, i));
    bh_show_table_end(html);
}

/* The checks are in the answer alone, so it is shown at once. */
static void
jobs_put_verdicts(struct bh_page *page, bh_json_value verification)
{
    bh_json_value list = bh_json_get(verification, "verdicts");
    struct bh_page_frame frame = bh_page_site_frame(
        page, BH_SECTION_JOBS, bh_arena_printf(page->request->arena, "Isolation of job %s", page->id));
    struct bh_html html;

    bh_page_headers(page->reply, 200, true);
    html = bh_frame_begin(&page->reply->body, &frame);
    if (bh_json_count(list) == 0)
        bh_html_element(&html, "p", NULL,
                        "No node answered in time: the checks are inconclusive. Try again.");
    for (size_t i = 0; i < bh_json_count(list); i++)
        jobs_put_verdict(&html, bh_json_at(list, i));
    bh_html_open(&html, "p");
    bh_html_open(&html, "a");
    bh_html_attr(&html, "href", job_page_path(page));
    bh_html_text(&html, "Back to the job");
    bh_html_close(&html, "a");
    bh_html_close(&html, "p");
    bh_frame_end(&html, &frame);
}

void
bh_post_job_verify(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = { .status = 400 };
    struct bh_question *question = bh_page_question(page, "/v1/jobs/{id}/verify");

    if (question)
        response = bh_page_post(page, &(struct bh_page_change){ .question = question });
    if (bh_api_response_is_ok(&response) && response.json)
        jobs_put_verdicts(page, bh_json_root(response.json));
    else
        job_page_refuse_change(page, &response);
}

/* ---- output ---- */

/* What the API answers: its status, and where that is a refusal nothing of it. */
static uint32_t
job_page_forward(struct bh_page *page, const char *template)
{
    struct bh_question *question = bh_page_question(page, template);

    if (!question)
        return 404;
    bh_page_forward_question(page, question);
    if (page->reply->status >= 300) {
        bh_buf_clear(&page->reply->body);
        page->reply->header_count = 0;
    }
    return page->reply->status;
}

void
bh_show_job_log_live(struct bh_page *page)
{
    uint32_t status =
        job_page_forward(page, "/v1/jobs/{id}/logs?follow=true&member={?member}&offset={?offset}");

    if (status == 401)
        bh_live_refuse_over(page);
    else if (status == 429)
        bh_live_refuse_crowded(page, "You have too many logs open: close some.");
    else if (status >= 300)
        job_page_refuse_view(page, status);
}

void
bh_show_job_log_file(struct bh_page *page)
{
    uint32_t status = job_page_forward(page, "/v1/jobs/{id}/logs?member={?member}");
    const char *name;

    if (status >= 300) {
        job_page_refuse_view(page, status);
        return;
    }
    name = bh_arena_printf(page->request->arena, "attachment; filename=\"job-%.20s.log\"", page->id);
    bh_reply_header(page->reply, "Content-Disposition", name ? name : "attachment");
}
