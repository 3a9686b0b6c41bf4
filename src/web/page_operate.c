#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/headers.h"
#include "web/page.h"
#include "web/panel_forecast.h"
#include "web/question.h"
#include "web/show.h"

/* What operators do: cordon, uncordon and drain; roll a layout back; move jobs; verify a node; test
 * policies.  What ends or moves something asks again first, with what will happen. */

enum { BODY_MAX_BYTES = 4096, DENIALS_SHOWN_MAX = 200 };

/* ---- pages ---- */

/* A page of this room; close it with operate_end. */
static struct bh_html
operate_begin(struct bh_page *page, struct bh_page_frame *frame, enum bh_section section, const char *title)
{
    *frame = bh_page_frame(page, NULL);
    bh_page_who(page, frame);
    frame->title = title;
    frame->section = section;
    frame->times = true;
    bh_page_headers(page->reply, 200, true);
    return bh_frame_begin(&page->reply->body, frame);
}

static void
operate_put_back(struct bh_html *html, const char *path)
{
    bh_html_open(html, "p");
    bh_html_open(html, "a");
    bh_html_attr(html, "href", path);
    bh_html_text(html, "Back, and change nothing");
    bh_html_close(html, "a");
    bh_html_close(html, "p");
}

/* The API refused: to /again where a factor is asked for, else a page with what it said. */
static void
operate_refuse(struct bh_page *page, const struct bh_api_response *response, const char *back)
{
    bh_json_value error = response->json ? bh_json_get(bh_json_root(response->json), "error") : NULL;
    struct bh_page_frame frame;
    struct bh_html html;

    if (response->status == 401 && !response->step_up) {
        bh_page_require_sign_in(page);
        return;
    }
    if (response->step_up || response->status == 404) {
        bh_page_refuse(page, response, back, BH_NOTICE_GONE);
        return;
    }
    html = operate_begin(page, &frame, BH_SECTION_OVERVIEW, "Not done");
    page->reply->status = response->status;
    bh_html_open(&html, "p");
    bh_html_attr(&html, "class", "notice bad");
    bh_html_attr(&html, "role", "alert");
    bh_html_text(&html, bh_json_text(bh_json_get(error, "message"), "the service does not answer"));
    bh_html_close(&html, "p");
    bh_html_open(&html, "p");
    bh_show_sentence(&html, bh_json_text(bh_json_get(error, "next"), ""));
    bh_html_close(&html, "p");
    operate_put_back(&html, back);
    bh_frame_end(&html, &frame);
}

/* ---- cordon, uncordon, drain ---- */

/* The page of what is held, encoded; NULL: there is none such. */
static const char *
operate_path_of(struct bh_page *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf path = { .max = BH_FORM_BYTES_MAX };
    const char *folder = bh_page_field(page, "folder"), *target = bh_page_field(page, "target");

    if ((strcmp(folder, "/gpus/") != 0 && strcmp(folder, "/nodes/") != 0) || !target[0])
        return NULL;
    bh_buf_puts(&path, folder);
    bh_form_put_path(&path, target);
    return bh_buf_text(&path) ? bh_arena_strdup(page->request->arena, bh_buf_text(&path)) : NULL;
}

/* Have the API hold the target, or ask what that would do: `flag` is a member that is true, or NULL. */
static struct bh_api_response
operate_send(struct bh_page *page, const char *path, const char *key, const char *flag)
{
    const char *reason = bh_page_field(page, "reason");
    char memory[BODY_MAX_BYTES];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, key, bh_page_field(page, "target"));
    if (flag)
        bh_json_bool(&w, flag, true);
    if (reason[0])
        bh_json_str(&w, "reason", reason);
    bh_json_close(&w, '}');
    if (!bh_buf_text(&body))
        return (struct bh_api_response){ .status = 400 };
    return bh_page_call(page, BH_POST, path, memory);
}

static const struct operate_verb {
    const char *verb, *path, *flag;
    enum bh_notice done;
} operate_verbs[] = {
    { "cordon", "/v1/cordon", NULL, BH_NOTICE_CORDONED },
    { "uncordon", "/v1/uncordon", NULL, BH_NOTICE_UNCORDONED },
    { "clear", "/v1/uncordon", "clear_fault", BH_NOTICE_CLEARED },
    { "drain", "/v1/drain", NULL, BH_NOTICE_DRAINING },
    { "drain_now", "/v1/drain", "now", BH_NOTICE_DRAINING },
};

void
bh_post_hold(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = { 0 };
    const char *back = operate_path_of(page), *verb = bh_page_field(page, "verb");
    size_t i = 0;

    while (i < BH_COUNT(operate_verbs) && strcmp(operate_verbs[i].verb, verb) != 0)
        i++;
    if (!back || i == BH_COUNT(operate_verbs)) {
        bh_page_error(page, 400);
        return;
    }
    response = operate_send(page, operate_verbs[i].path, "target", operate_verbs[i].flag);
    if (bh_api_response_is_ok(&response))
        bh_page_redirect(page, back, operate_verbs[i].done);
    else
        operate_refuse(page, &response, back);
}

/* ---- what a drain would do ---- */

static const char *
operate_change_words(const char *kind)
{
    static const struct {
        const char *kind, *words;
    } rows[] = {
        { "cancelled", "ends" },
        { "suspended", "is suspended" },
        { "requeued", "is stopped and queued again" },
        { "never", "no longer starts" },
        { "later", "starts later" },
        { "earlier", "starts earlier" },
        { "starts", "starts, which it otherwise would not" },
        { "spared", "is no longer preempted" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (strcmp(rows[i].kind, kind) == 0)
            return rows[i].words;
    return kind;
}

static void
operate_put_change(struct bh_html *html, bh_json_value change)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_job(html, bh_show_number_of(change, "job"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(change, "tenant"));
    bh_html_close(html, "td");
    bh_show_cell(html, operate_change_words(bh_show_text_of(change, "kind")));
    bh_html_open(html, "td");
    if (bh_show_number_of(change, "after_ns"))
        bh_show_time(html, bh_show_number_of(change, "after_ns"));
    bh_html_close(html, "td");
    bh_html_close(html, "tr");
}

static void
operate_put_effect(struct bh_html *html, const struct bh_api_response *response, const char *nothing)
{
    static const char *const columns[] = { "Job", "Tenant", "What happens to it", "When", NULL };
    bh_json_value answer = response->json ? bh_json_root(response->json) : NULL;
    bh_json_value changes = bh_json_get(answer, "changes"), error = bh_json_get(answer, "error");

    if (!bh_api_response_is_ok(response)) {
        bh_html_open(html, "p");
        bh_show_unavailable(html, bh_json_text(bh_json_get(error, "message"), "the service does not answer"));
        bh_html_close(html, "p");
        return;
    }
    if (bh_json_count(changes) == 0) {
        bh_html_element(html, "p", NULL, nothing);
        return;
    }
    bh_show_table(html, "What would happen", columns);
    for (size_t i = 0; i < bh_json_count(changes); i++)
        operate_put_change(html, bh_json_at(changes, i));
    bh_show_table_end(html);
    bh_html_element(html, "p", "note", bh_show_text_of(answer, "assumption"));
}

struct operate_drain {
    const char *verb, *heading, *nothing, *button;
};

static void
operate_put_drain(struct bh_html *html, struct bh_page *page, const struct bh_page_frame *frame,
                  const struct operate_drain *drain, const struct bh_api_response *effect)
{
    bh_html_element(html, "h2", NULL, drain->heading);
    operate_put_effect(html, effect, drain->nothing);
    bh_frame_form(html, frame, "/hold");
    bh_frame_hidden(html, "verb", drain->verb);
    bh_frame_hidden(html, "folder", bh_page_field(page, "folder"));
    bh_frame_hidden(html, "target", bh_page_field(page, "target"));
    bh_frame_button(html, "grave", drain->button);
    bh_html_close(html, "form");
}

void
bh_show_hold(struct bh_page *page)
{
    static const struct operate_drain gentle = { "drain", "Wait until what runs has ended",
                                                 "No job would start later or end.", "Drain" };
    static const struct operate_drain now = { "drain_now", "End or queue again what runs, by its contract",
                                              "Nothing runs there, and no job would start later.",
                                              "Drain at once" };
    BH_AUTO(bh_api_response_fini) struct bh_api_response waits = { 0 };
    BH_AUTO(bh_api_response_fini) struct bh_api_response ends = { 0 };
    const char *back = operate_path_of(page);
    struct bh_page_frame frame;
    struct bh_html html;

    if (!back) {
        bh_page_error(page, 404);
        return;
    }
    waits = operate_send(page, "/v1/whatif", "drain", NULL);
    if (waits.status == 401 || waits.status == 403 || waits.status == 404) {
        if (waits.status == 401)
            bh_page_require_sign_in(page);
        else
            bh_page_error(page, 404);
        return;
    }
    ends = operate_send(page, "/v1/whatif", "drain", "now");
    html = operate_begin(page, &frame,
                         strcmp(bh_page_field(page, "folder"), "/nodes/") == 0 ? BH_SECTION_NODES
                                                                               : BH_SECTION_GPUS,
                         bh_arena_printf(page->request->arena, "Drain %s", bh_page_field(page, "target")));
    operate_put_drain(&html, page, &frame, &gentle, &waits);
    operate_put_drain(&html, page, &frame, &now, &ends);
    operate_put_back(&html, back);
    bh_frame_end(&html, &frame);
}

/* ---- layouts ---- */

void
bh_show_rollback(struct bh_page *page)
{
    struct bh_page_frame frame;
    struct bh_html html;

    if (!bh_page_may(page, "layout.apply")) {
        bh_page_error(page, 404);
        return;
    }
    html = operate_begin(page, &frame, BH_SECTION_SITE, "Go back to the layout before");
    bh_html_element(
        &html, "p", NULL,
        "What was declared before the last change is declared again. MIG instances that it does not "
        "name are destroyed as soon as no job holds them; no job ends for it.");
    bh_frame_form(&html, &frame, "/layouts/rollback");
    bh_frame_button(&html, "grave", "Go back");
    bh_html_close(&html, "form");
    operate_put_back(&html, "/site");
    bh_frame_end(&html, &frame);
}

void
bh_post_rollback(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = bh_page_call(page, BH_POST, "/v1/layouts/rollback", NULL);

    if (bh_api_response_is_ok(&response))
        bh_page_redirect(page, "/site", BH_NOTICE_ROLLED_BACK);
    else
        operate_refuse(page, &response, "/site");
}

/* ---- moves ---- */

void
bh_show_defrag(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = bh_page_call(page, BH_GET, "/v1/defrag", NULL);
    bh_json_value plan = response.json ? bh_json_get(bh_json_root(response.json), "plan") : NULL;
    struct bh_page_frame frame;
    struct bh_html html;

    if (response.status == 401) {
        bh_page_require_sign_in(page);
        return;
    }
    if (!plan || !bh_page_may(page, "job.move")) {
        bh_page_redirect(page, "/forecast", BH_NOTICE_PLAN_GONE);
        return;
    }
    html = operate_begin(page, &frame, BH_SECTION_FORECAST, "Move jobs");
    bh_html_element(
        &html, "p", NULL,
        "Each of these jobs is stopped by its contract and starts again in its new place; what it had "
        "not written is lost.");
    bh_defrag_plan_put(&html, plan);
    bh_frame_form(&html, &frame, "/defrag");
    bh_frame_hidden(&html, "token", bh_show_text_of(plan, "token"));
    bh_frame_button(&html, "grave", "Move them");
    bh_html_close(&html, "form");
    operate_put_back(&html, "/forecast");
    bh_frame_end(&html, &frame);
}

void
bh_post_defrag(struct bh_page *page)
{
    const struct bh_page_member members[] = { { "token", bh_page_field(page, "token") }, { NULL, NULL } };
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = bh_page_call_with(page, BH_POST, "/v1/defrag", members);

    if (bh_api_response_is_ok(&response))
        bh_page_redirect(page, "/forecast", BH_NOTICE_MOVING);
    else
        operate_refuse(page, &response, "/forecast");
}

/* Nothing is kept of it: the plan is made anew from what there is, each time. */
void
bh_post_decline(struct bh_page *page)
{
    bh_page_redirect(page, "/forecast", BH_NOTICE_DECLINED);
}

/* ---- isolation ---- */

void
bh_post_verify(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = { 0 };
    BH_AUTO(bh_buf_fini) struct bh_buf path = { .max = BH_FORM_BYTES_MAX };
    const char *node = bh_page_field(page, "node"), *back;
    struct bh_question question = { .parameters = { .count = 0 } };

    bh_buf_puts(&path, "/nodes/");
    bh_form_put_path(&path, node);
    back = bh_buf_text(&path) ? bh_arena_strdup(page->request->arena, bh_buf_text(&path)) : NULL;
    if (!back || !node[0]) {
        bh_page_error(page, 400);
        return;
    }
    if (!bh_question_fill("/v1/verify?node={id}", node, NULL, NULL, &question)) {
        bh_page_error(page, 400);
        return;
    }
    response = bh_page_post(page, &(struct bh_page_change){ &question, NULL, NULL });
    if (bh_api_response_is_ok(&response))
        bh_page_redirect(page, back, BH_NOTICE_VERIFIED);
    else
        operate_refuse(page, &response, back);
}

/* ---- policies ---- */

static void
operate_put_denial(struct bh_html *html, bh_json_value denial)
{
    bh_html_open(html, "tr");
    bh_html_open(html, "td");
    bh_show_job(html, bh_show_number_of(denial, "job"));
    bh_html_close(html, "td");
    bh_html_open(html, "td");
    bh_show_tenant(html, bh_show_text_of(denial, "tenant"));
    bh_html_close(html, "td");
    bh_show_cell(html, bh_show_text_of(denial, "user"));
    bh_show_cell(html, bh_show_text_of(denial, "entry"));
    bh_show_cell(html, bh_show_text_of(denial, "sentence"));
    bh_html_close(html, "tr");
}

static void
operate_put_test(struct bh_html *html, bh_json_value answer)
{
    static const char *const columns[] = { "Job", "Tenant", "User", "Entry", "Why", NULL };
    bh_json_value items = bh_json_get(answer, "items");
    size_t count = bh_json_count(items);
    char text[160];

    snprintf(text, sizeof text, "Of %llu recorded submissions the policies in force deny %llu.",
             (unsigned long long)bh_show_number_of(answer, "tested"),
             (unsigned long long)bh_show_number_of(answer, "denied"));
    bh_html_element(html, "p", NULL, text);
    if (count == 0)
        return;
    bh_show_table(html, "Denied submissions", columns);
    for (size_t i = 0; i < count && i < DENIALS_SHOWN_MAX; i++)
        operate_put_denial(html, bh_json_at(items, i));
    bh_show_table_end(html);
}

void
bh_post_policy_test(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = bh_page_call(page, BH_POST, "/v1/policy/test", "{}");
    struct bh_page_frame frame;
    struct bh_html html;

    if (!bh_api_response_is_ok(&response)) {
        operate_refuse(page, &response, "/site");
        return;
    }
    html = operate_begin(page, &frame, BH_SECTION_SITE, "Policies against recorded submissions");
    operate_put_test(&html, bh_json_root(response.json));
    bh_html_open(&html, "p");
    bh_html_attr(&html, "class", "note");
    bh_html_text(&html, "In a terminal: ");
    bh_html_element(&html, "code", NULL, "bulkhead policy test");
    bh_html_close(&html, "p");
    operate_put_back(&html, "/site");
    bh_frame_end(&html, &frame);
}
