/* The job file as a form: what it says as YAML and as a command line, what the site says to it, and when it
 * would start, before it is submitted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/authz.h"
#include "web/effects.h"
#include "web/headers.h"
#include "web/job_form.h"
#include "web/job_text.h"
#include "web/page.h"
#include "web/question.h"
#include "web/show.h"

enum { OPTIONS_MAX = 512, LABEL_MAX = 256, ID_MAX = 48 };

/* Of more tenants the name is typed. */
#define TENANTS_QUESTION "/v1/tenants?limit=200"

/* What the API lists that can be chosen. */
struct submit_lists {
    const struct bh_api_response *who;
    struct bh_api_response tenants, skus, datasets;
};

struct submit_view {
    const struct submit_lists *lists;
    struct bh_job_form form;
    const char *once;         /* with the job it makes the key under which it is submitted once */
    const char *error, *next; /* a refusal; "" */
    const char *body;         /* the specification, where it is previewed; NULL */
    const struct bh_api_response *whatif;
};

/* ---- choices ---- */

struct submit_options {
    const char *values[OPTIONS_MAX], *labels[OPTIONS_MAX];
    uint32_t count;
};

static bh_json_value
submit_items_of(const struct bh_api_response *response)
{
    return response->json ? bh_json_get(bh_json_root(response->json), "items") : NULL;
}

/* Whether a role at `holder` ("*": the site) holds for that tenant. */
static bool
submit_is_below(const char *tenant, const char *holder)
{
    size_t length = strlen(holder);

    return strcmp(holder, "*") == 0
           || (strncmp(tenant, holder, length) == 0 && (tenant[length] == '\0' || tenant[length] == '/'));
}

static bool
submit_may(const struct bh_api_response *who, const char *tenant)
{
    bh_json_value root = who->json ? bh_json_root(who->json) : NULL, roles = bh_json_get(root, "roles");

    if (bh_show_truth_of(root, "root"))
        return true;
    for (size_t i = 0; i < bh_json_count(roles); i++) {
        bh_json_value row = bh_json_at(roles, i);
        enum bh_role role = bh_role_find(bh_show_text_of(row, "role"));

        if (role != BH_ROLES && bh_authz_role_grants(role, "job.submit")
            && submit_is_below(tenant, bh_show_text_of(row, "tenant")))
            return true;
    }
    return false;
}

static void
submit_list_tenants(const struct submit_lists *lists, struct submit_options *ret)
{
    bh_json_value list = submit_items_of(&lists->tenants);

    for (size_t i = 0; i < bh_json_count(list) && ret->count < OPTIONS_MAX; i++) {
        const char *name = bh_show_text_of(bh_json_at(list, i), "name");

        if (submit_may(lists->who, name))
            ret->labels[ret->count] = ret->values[ret->count] = name, ret->count++;
    }
}

/* "small: grade C, 1g.10gb of H100-80GB (1/7 GPU), 0.40 an hour" */
static const char *
submit_word_sku(struct bh_arena *arena, bh_json_value sku)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = LABEL_MAX };
    bh_json_value models = bh_json_get(sku, "models");
    const char *price = bh_show_text_of(sku, "price"), *copy = NULL;

    bh_buf_printf(&text, "%s: grade %s", bh_show_text_of(sku, "name"), bh_show_text_of(sku, "grade"));
    for (size_t i = 0; i < bh_json_count(models); i++) {
        bh_json_value model = bh_json_at(models, i);

        bh_buf_printf(&text, "%s %s of %s (%s GPU)", i ? " or" : ",", bh_show_text_of(model, "profile"),
                      bh_show_text_of(model, "model"), bh_show_text_of(model, "gpus"));
    }
    if (price[strspn(price, "0.")])
        bh_buf_printf(&text, ", %s an hour", price);
    if (bh_buf_text(&text))
        copy = bh_arena_strdup(arena, bh_buf_text(&text));
    return copy ? copy : bh_show_text_of(sku, "name");
}

static void
submit_list_skus(const struct submit_lists *lists, struct bh_arena *arena, struct submit_options *ret)
{
    bh_json_value list = submit_items_of(&lists->skus);

    for (size_t i = 0; i < bh_json_count(list) && ret->count < OPTIONS_MAX; i++) {
        ret->values[ret->count] = bh_show_text_of(bh_json_at(list, i), "name");
        ret->labels[ret->count++] = submit_word_sku(arena, bh_json_at(list, i));
    }
}

/* Whether its value is chosen from a list. */
static bool
submit_is_choice(const struct submit_lists *lists, const struct bh_job_field *field)
{
    if (field->kind == BH_JOB_FIELD_TENANT)
        return !lists->tenants.json || !bh_json_get(bh_json_root(lists->tenants.json), "next");
    return field->kind == BH_JOB_FIELD_CHOICE || field->kind == BH_JOB_FIELD_SKU;
}

/* ---- fields ---- */

static bool
submit_is_refused(const struct submit_view *view, uint32_t at)
{
    return view->error[0] && bh_job_form_find(view->error) == at;
}

static bool
submit_has_hint(const struct submit_view *view, uint32_t at)
{
    return bh_job_fields[at].hint || submit_is_refused(view, at);
}

/* What a field is about, and what was refused of it: what describes it to a screen reader. */
static void
submit_put_hint(struct bh_html *html, const struct submit_view *view, uint32_t at, const char *id)
{
    bool refused = submit_is_refused(view, at);

    if (!submit_has_hint(view, at))
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_attr(html, "id", id);
    if (refused) {
        bh_html_element(html, "strong", "refused", view->error);
        bh_html_text(html, view->next[0] ? ": " : "");
        bh_show_sentence(html, view->next);
        bh_html_text(html, ". ");
    }
    bh_html_text(html, bh_job_fields[at].hint ? bh_job_fields[at].hint : "");
    bh_html_close(html, "p");
}

static void
submit_put_datasets(struct bh_html *html, const struct submit_view *view)
{
    bh_json_value list = submit_items_of(&view->lists->datasets);
    uint32_t shown = 0;

    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_json_value row = bh_json_at(list, i);

        if (strcmp(bh_show_text_of(row, "may"), "nothing") == 0)
            continue;
        if (shown++ == 0) {
            bh_html_open(html, "p");
            bh_html_attr(html, "class", "note");
            bh_html_text(html, "You may use: ");
        } else {
            bh_html_text(html, ", ");
        }
        bh_html_element(html, "code", NULL, bh_show_text_of(row, "name"));
        bh_html_text(html, strstr(bh_show_text_of(row, "may"), "write") ? " (to write)" : "");
    }
    if (shown > 0)
        bh_html_close(html, "p");
}

/* The ids of a field and of what stands below it. */
struct submit_ids {
    char field[ID_MAX], hint[ID_MAX];
};

static void
submit_put_selection(struct bh_html *html, const struct bh_page *page, const struct submit_view *view,
                     uint32_t at, const struct submit_ids *ids)
{
    const struct bh_job_field *field = &bh_job_fields[at];
    struct submit_options options = { .count = 0 };

    if (field->kind == BH_JOB_FIELD_TENANT)
        submit_list_tenants(view->lists, &options);
    else if (field->kind == BH_JOB_FIELD_SKU)
        submit_list_skus(view->lists, page->request->arena, &options);
    for (uint32_t i = 0; i < field->choice_count; i++)
        options.labels[i] = options.values[i] = field->choices[i], options.count++;
    bh_frame_select(html, &(struct bh_select){ .id = ids->field,
                                               .label = field->label,
                                               .name = field->key,
                                               .value = view->form.values[at],
                                               .hint = submit_has_hint(view, at) ? ids->hint : NULL,
                                               .empty = field->choices ? NULL : "choose one",
                                               .values = options.values,
                                               .labels = options.labels,
                                               .count = options.count });
}

static void
submit_put_text(struct bh_html *html, const struct submit_view *view, uint32_t at,
                const struct submit_ids *ids)
{
    const struct bh_job_field *field = &bh_job_fields[at];
    bool lines = field->kind == BH_JOB_FIELD_WORDS || field->kind == BH_JOB_FIELD_LINES
                 || field->kind == BH_JOB_FIELD_MOUNTS;

    if (lines)
        bh_frame_textarea(html, &(struct bh_textarea){ .id = ids->field,
                                                       .label = field->label,
                                                       .name = field->key,
                                                       .value = view->form.values[at],
                                                       .hint = submit_has_hint(view, at) ? ids->hint : NULL,
                                                       .rows = 3 });
    else
        bh_frame_input(html,
                       &(struct bh_input){ .id = ids->field,
                                           .label = field->label,
                                           .name = field->key,
                                           .autocomplete = "off",
                                           .inputmode = field->kind == BH_JOB_FIELD_NUMBER ? "numeric" : NULL,
                                           .value = view->form.values[at],
                                           .hint = submit_has_hint(view, at) ? ids->hint : NULL,
                                           .optional = true });
}

static void
submit_put_field(struct bh_html *html, const struct bh_page *page, const struct submit_view *view,
                 uint32_t at)
{
    const struct bh_job_field *field = &bh_job_fields[at];
    struct submit_ids ids;

    snprintf(ids.field, sizeof ids.field, "job-%s", field->key);
    snprintf(ids.hint, sizeof ids.hint, "about-%s", field->key);
    if (field->kind == BH_JOB_FIELD_FLAG) {
        bh_frame_checkbox(html, &(struct bh_checkbox){ .id = ids.field,
                                                       .label = field->label,
                                                       .name = field->key,
                                                       .checked = view->form.values[at][0] });
        return;
    }
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "field");
    if (submit_is_choice(view->lists, field))
        submit_put_selection(html, page, view, at, &ids);
    else
        submit_put_text(html, view, at, &ids);
    submit_put_hint(html, view, at, ids.hint);
    if (field->kind == BH_JOB_FIELD_MOUNTS)
        submit_put_datasets(html, view);
    bh_html_close(html, "div");
}

/* Whether anything that is rarely said is said, or refused: then it is shown. */
static bool
submit_is_open(const struct submit_view *view)
{
    uint32_t refused = view->error[0] ? bh_job_form_find(view->error) : BH_JOB_FIELDS;

    for (uint32_t i = 0; i < BH_JOB_FIELDS; i++)
        if (bh_job_fields[i].group == BH_JOB_GROUP_MORE
            && (i == refused || (view->form.values[i][0] && !bh_job_fields[i].choices)))
            return true;
    return false;
}

static void
submit_put_group(struct bh_html *html, const struct bh_page *page, const struct submit_view *view,
                 enum bh_job_field_group group)
{
    static const char *const titles[BH_JOB_GROUPS] = { "What to run", "How", "More" };
    bool more = group == BH_JOB_GROUP_MORE;

    if (more) {
        bh_html_open(html, "details");
        if (submit_is_open(view))
            bh_html_flag(html, "open");
        bh_html_element(html, "summary", NULL, titles[group]);
    } else {
        bh_html_element(html, "h2", NULL, titles[group]);
    }
    bh_html_open(html, "div");
    bh_html_attr(html, "class", group == BH_JOB_GROUP_WHAT ? "fields one" : "fields");
    for (uint32_t i = 0; i < BH_JOB_FIELDS; i++)
        if (bh_job_fields[i].group == group)
            submit_put_field(html, page, view, i);
    bh_html_close(html, "div");
    if (more)
        bh_html_close(html, "details");
}

/* ---- the preview ---- */

static void
submit_put_button(struct bh_html *html, const char *style, const char *value, const char *label)
{
    bh_html_open(html, "button");
    bh_html_attr(html, "type", "submit");
    bh_html_attr(html, "name", "do");
    bh_html_attr(html, "value", value);
    if (style)
        bh_html_attr(html, "class", style);
    bh_html_text(html, label);
    bh_html_close(html, "button");
}

static void
submit_put_start(struct bh_html *html, bh_json_value whatif)
{
    bh_json_value job = bh_json_get(whatif, "job");
    bh_ns start = bh_show_number_of(job, "estimated_start_ns");

    bh_html_open(html, "p");
    if (strcmp(bh_show_text_of(job, "decision"), "starts") == 0) {
        bh_html_text(html, "It would start at once");
        if (bh_show_text_of(job, "gpu")[0]) {
            bh_html_text(html, ", on ");
            bh_show_gpu(html, bh_show_text_of(job, "gpu"));
        }
        bh_html_text(html, ".");
    } else {
        bh_html_text(html, "It would wait");
        if (start) {
            bh_html_text(html, ", and start about ");
            bh_show_time(html, start);
        } else {
            bh_html_text(html, "; when it starts cannot be estimated");
        }
        bh_html_text(html, ": ");
        bh_html_text(html, bh_show_text_of(job, "sentence"));
        bh_html_text(html, ".");
    }
    bh_html_close(html, "p");
    if (!bh_show_text_of(job, "next")[0] || strcmp(bh_show_text_of(job, "decision"), "starts") == 0)
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_show_sentence(html, bh_show_text_of(job, "next"));
    bh_html_close(html, "p");
}

static void
submit_put_texts(struct bh_html *html, const char *body)
{
    BH_AUTO(bh_buf_fini)
    struct bh_buf yaml = { .max = BH_JOB_TEXT_MAX }, command = { .max = BH_JOB_TEXT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *spec = NULL;
    struct bh_err err;

    if (bh_json_parse(body, strlen(body), &spec, &err) != BH_OK)
        return;
    bh_job_text_put_yaml(&yaml, bh_json_root(spec));
    bh_job_text_put_command(&command, bh_json_root(spec));
    bh_html_element(html, "h3", NULL, "As a job file");
    bh_html_element(html, "pre", "source", bh_buf_text(&yaml) ? bh_buf_text(&yaml) : "(too long)");
    bh_html_element(html, "h3", NULL, "As a command line");
    bh_html_element(html, "pre", "source", bh_buf_text(&command) ? bh_buf_text(&command) : "(too long)");
}

/* A form of its own that submits what was previewed, whatever is typed below; so the Enter key there submits
 * nothing. */
static void
submit_put_submission(struct bh_html *html, const struct submit_view *view, const struct bh_page_frame *frame)
{
    bh_frame_form(html, frame, "/submit");
    bh_frame_hidden(html, "once", view->once);
    for (uint32_t i = 0; i < BH_JOB_FIELDS; i++)
        if (view->form.values[i][0])
            bh_frame_hidden(html, bh_job_fields[i].key, view->form.values[i]);
    submit_put_button(html, NULL, "submit", "Submit");
    bh_html_close(html, "form");
}

static void
submit_put_preview(struct bh_html *html, const struct submit_view *view, const struct bh_page_frame *frame)
{
    bool known = view->whatif && bh_api_response_is_ok(view->whatif) && view->whatif->json;
    const char *why = view->whatif ? bh_api_response_error(view->whatif) : "";

    bh_html_open(html, "div");
    bh_html_attr(html, "class", "preview");
    bh_html_element(html, "h2", NULL, "Preview");
    if (known) {
        submit_put_start(html, bh_json_root(view->whatif->json));
        bh_effects_put(html, bh_json_root(view->whatif->json));
    } else if (!view->error[0]) {
        bh_html_open(html, "p");
        bh_show_unavailable(html, why[0] ? why : "the service does not say when it would start");
        bh_html_close(html, "p");
    }
    submit_put_texts(html, view->body);
    if (!view->error[0])
        submit_put_submission(html, view, frame);
    bh_html_close(html, "div");
}

/* ---- the page ---- */

static void
submit_put_error(struct bh_html *html, const struct submit_view *view)
{
    if (!view->error[0])
        return;
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "notice bad");
    bh_html_attr(html, "role", "alert");
    bh_html_element(html, "p", NULL, view->error);
    if (view->next[0])
        bh_html_element(html, "p", NULL, view->next);
    bh_html_close(html, "div");
}

static void
submit_put_page(struct bh_page *page, const struct submit_view *view, uint32_t status)
{
    struct bh_page_frame frame = bh_page_site_frame(page, BH_SECTION_SUBMIT, "Submit a job");
    struct bh_html html;

    bh_page_headers(page->reply, status, true);
    frame.times = true;
    html = bh_frame_begin(&page->reply->body, &frame);
    submit_put_error(&html, view);
    if (view->body)
        submit_put_preview(&html, view, &frame);
    bh_frame_form(&html, &frame, "/submit");
    bh_frame_hidden(&html, "once", view->once);
    for (enum bh_job_field_group group = 0; group < BH_JOB_GROUPS; group++)
        submit_put_group(&html, page, view, group);
    bh_html_open(&html, "div");
    bh_html_attr(&html, "class", "actions");
    submit_put_button(&html, view->body ? "plain" : NULL, "preview",
                      view->body ? "Preview again" : "Preview");
    bh_html_close(&html, "div");
    bh_html_close(&html, "form");
    bh_frame_end(&html, &frame);
}

static void
submit_ask_lists(struct bh_page *page, struct submit_lists *ret)
{
    ret->who = bh_page_whoami(page);
    ret->tenants = bh_page_ask(page, bh_page_question(page, TENANTS_QUESTION));
    ret->skus = bh_page_call(page, BH_GET, "/v1/skus", NULL);
    ret->datasets = bh_page_call(page, BH_GET, "/v1/datasets", NULL);
}

static void
submit_lists_fini(struct submit_lists *lists)
{
    bh_api_response_fini(&lists->tenants);
    bh_api_response_fini(&lists->skus);
    bh_api_response_fini(&lists->datasets);
}

static void
submit_show(struct bh_page *page, struct submit_view *view, uint32_t status)
{
    struct submit_lists lists;

    submit_ask_lists(page, &lists);
    view->lists = &lists;
    view->error = view->error ? view->error : "";
    view->next = view->next ? view->next : "";
    if (lists.who->status == 401)
        bh_page_require_sign_in(page);
    else
        submit_put_page(page, view, status);
    submit_lists_fini(&lists);
}

/* The form of a job that the caller sees; else an empty one. */
static void
submit_fill_like(struct bh_page *page, struct bh_job_form *form)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response job = { 0 };
    struct bh_question *question;

    page->id = bh_page_field(page, "like");
    question = page->id[0] && !strchr(page->id, '/') ? bh_page_question(page, "/v1/jobs/{id}") : NULL;
    if (question)
        job = bh_page_ask(page, question);
    bh_job_form_fill(bh_api_response_is_ok(&job) && job.json ? bh_json_get(bh_json_root(job.json), "spec")
                                                             : NULL,
                     page->request->arena, form);
}

void
bh_show_submit(struct bh_page *page)
{
    struct submit_view view = { .body = NULL };
    uint8_t random[BH_SECRET_BYTES];
    char once[BH_SECRET_TEXT];
    struct bh_err err;

    if (page->web->options.crypto->random(random, sizeof random, &err) != BH_OK) {
        bh_page_error(page, 503);
        return;
    }
    bh_secret_text(random, once);
    view.once = once;
    submit_fill_like(page, &view.form);
    submit_show(page, &view, 200);
}

/* Sent twice, as by a double click, it is the same job. */
static void
submit_send(struct bh_page *page, struct submit_view *view, const char *body)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = { .status = 503 };
    struct bh_question *question = bh_page_question(page, "/v1/jobs");
    char key[BH_SECRET_TEXT];
    const char *path = NULL;

    bh_secret_mac(view->once, body, key);
    if (question)
        response = bh_page_post(
            page, &(struct bh_page_change){ .question = question, .body = body, .idempotency_key = key });
    if (bh_api_response_is_ok(&response))
        path =
            bh_arena_printf(page->request->arena, "/jobs/%" PRIu64, bh_api_response_number(&response, "id"));
    if (path) {
        bh_page_redirect(page, path, BH_NOTICE_JOB_SUBMITTED);
        return;
    }
    view->error = bh_api_response_error(&response);
    view->error = view->error[0] ? view->error : "the service does not answer";
    view->next = bh_api_response_next(&response);
    submit_show(page, view, response.status < 400 ? 503 : response.status);
}

/* What the site says to it, and when it would start, without submitting it. */
static void
submit_preview(struct bh_page *page, struct submit_view *view, const char *body)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response dry = { .status = 503 }, whatif = { 0 };
    struct bh_question *question = bh_page_question(page, "/v1/jobs?dry_run=true");
    const char *asked = bh_arena_printf(page->request->arena, "{\"submit\":%s}", body);

    if (question)
        dry = bh_page_post(page, &(struct bh_page_change){ .question = question, .body = body });
    if (bh_api_response_is_ok(&dry) && asked)
        whatif = bh_page_call(page, BH_POST, "/v1/whatif", asked);
    if (!bh_api_response_is_ok(&dry)) {
        view->error = bh_api_response_error(&dry);
        view->error = view->error[0] ? view->error : "the service does not answer";
        view->next = bh_api_response_next(&dry);
    }
    view->body = body;
    view->whatif = &whatif;
    submit_show(page, view, 200);
}

void
bh_post_submit(struct bh_page *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = BH_JOB_TEXT_MAX };
    struct submit_view view = { .once = bh_page_field(page, "once") };
    struct bh_err err = { .rc = BH_OK };

    for (uint32_t i = 0; i < BH_JOB_FIELDS; i++)
        view.form.values[i] = bh_page_lines(page, bh_job_fields[i].key);
    if (bh_job_form_put_spec(&body, &view.form, &err) != BH_OK) {
        view.error = err.msg;
        view.next = err.hint;
        submit_show(page, &view, 400);
    } else if (strcmp(bh_page_field(page, "do"), "submit") == 0) {
        submit_send(page, &view, bh_buf_text(&body));
    } else {
        submit_preview(page, &view, bh_buf_text(&body));
    }
}
