#include "web/view.h"

#include <string.h>

#include "base/assert.h"
#include "policy/operations.h"
#include "web/headers.h"
#include "web/panel.h"
#include "web/question.h"
#include "web/show.h"

enum { PANELS_A_VIEW_MAX = 20, TEXT_MAX = 512 };

enum view_extra { EXTRA_NONE, EXTRA_HOME, EXTRA_LOG, EXTRA_PROOF };

static const struct view {
    const char *path;
    enum bh_section section;
    const char *title, *command;
    enum view_extra extra;
} views[BH_SITE_VIEWS] = {
#define BH_VIEW(view, path, section, title, command, extra)                                                  \
    { path, BH_SECTION_##section, title, command, EXTRA_##extra },
#define BH_PANEL(view, id, title, question, live, function)
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
};

enum bh_site_view
bh_site_view_find(const char *path, struct bh_arena *arena, const char **ret_id)
{
    *ret_id = "";
    for (enum bh_site_view view = 0; view < BH_SITE_VIEWS; view++) {
        struct bh_path_match match = { 0 };

        if (!bh_path_matches(views[view].path, path, &match))
            continue;
        if (match.id)
            *ret_id = bh_arena_strndup(arena, match.id, match.id_length);
        return *ret_id ? view : BH_SITE_VIEWS;
    }
    return BH_SITE_VIEWS;
}

static void
view_put_command(struct bh_html *html, const struct view *view, const char *id)
{
    BH_AUTO(bh_buf_fini) struct bh_buf command = { .max = TEXT_MAX };

    bh_question_put_text(&command, view->command, id);
    if (!bh_buf_text(&command))
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, "In a terminal: ");
    bh_html_element(html, "code", NULL, bh_buf_text(&command));
    bh_html_close(html, "p");
}

/* A person with a password alone: who learns it has the account. */
static void
view_put_nudge(struct bh_html *html, struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response account = bh_page_call(page, BH_GET, "/v1/account", NULL);
    bh_json_value root = account.json ? bh_json_root(account.json) : NULL;

    if (!bh_api_response_is_ok(&account) || !bh_show_truth_of(root, "password")
        || bh_show_truth_of(root, "totp") || bh_json_count(bh_json_get(root, "passkeys")) > 0)
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "notice");
    bh_html_text(html, "Your account has a password alone: a person who learns it has your account. ");
    bh_html_open(html, "a");
    bh_html_attr(html, "href", "/account");
    bh_html_text(html, "Add a second factor");
    bh_html_close(html, "a");
    bh_html_text(html, "; a passkey is the safest.");
    bh_html_close(html, "p");
}

/* ---- the whole ---- */

struct view_replies {
    const struct bh_panel_row *panels[PANELS_A_VIEW_MAX];
    const struct bh_api_response *answers[PANELS_A_VIEW_MAX]; /* of each panel */
    struct bh_api_response responses[PANELS_A_VIEW_MAX];      /* of each question */
    uint32_t count, questions;
};

/* The answer to a question that a panel before asked, too; NULL: none did. */
static const struct bh_api_response *
view_find_answer(const struct view_replies *replies, const char *question)
{
    for (uint32_t i = 0; i < replies->count; i++)
        if (strcmp(replies->panels[i]->question, question) == 0)
            return replies->answers[i];
    return NULL;
}

static void
view_ask(struct bh_page *page, enum bh_site_view view, struct view_replies *ret)
{
    for (const struct bh_panel_row *panel = bh_panel_rows(); panel->id; panel++) {
        const struct bh_api_response *answer = view_find_answer(ret, panel->question);

        if (panel->view != view)
            continue;
        BH_ASSERT(ret->count < PANELS_A_VIEW_MAX);
        if (!answer) {
            ret->responses[ret->questions] = bh_panel_ask(page, panel);
            answer = &ret->responses[ret->questions++];
        }
        ret->panels[ret->count] = panel;
        ret->answers[ret->count++] = answer;
    }
}

static bool
view_has_charts(const struct view_replies *replies)
{
    for (uint32_t i = 0; i < replies->count; i++)
        if (replies->panels[i]->function == bh_panel_series && bh_api_response_is_ok(replies->answers[i]))
            return true;
    return false;
}

static bool
view_is_live(const struct view_replies *replies)
{
    for (uint32_t i = 0; i < replies->count; i++)
        if (replies->panels[i]->live && bh_panel_is_seen(replies->panels[i], replies->answers[i]))
            return true;
    return false;
}

static void
view_put(struct bh_page *page, enum bh_site_view view, const struct view_replies *replies)
{
    BH_AUTO(bh_buf_fini) struct bh_buf title = { .max = TEXT_MAX };
    struct bh_page_frame frame = bh_page_frame(page, NULL);
    struct bh_panel_call call = { .page = page, .frame = &frame, .id = page->id, .now = bh_page_now(page) };
    struct bh_html html;

    bh_question_put_text(&title, views[view].title, page->id);
    frame.title = bh_buf_text(&title) ? bh_buf_text(&title) : views[view].path;
    bh_page_who(page, &frame);
    frame.section = views[view].section;
    frame.live = view_is_live(replies);
    frame.times = true;
    frame.proofs = views[view].extra == EXTRA_PROOF;
    frame.log = views[view].extra == EXTRA_LOG;
    frame.charts = view_has_charts(replies);
    bh_page_headers(page->reply, 200, true);
    html = bh_frame_begin(&page->reply->body, &frame);
    if (views[view].extra == EXTRA_HOME)
        view_put_nudge(&html, page);
    view_put_command(&html, &views[view], page->id);
    for (uint32_t i = 0; i < replies->count; i++) {
        const struct bh_api_response *response = replies->answers[i];

        call.data = response->json ? bh_json_root(response->json) : NULL;
        if (bh_panel_is_seen(replies->panels[i], response))
            bh_panel_put(&html, &call, replies->panels[i], response);
    }
    bh_frame_end(&html, &frame);
}

/* A page of one object is not there where its first panel is not seen, for the same bytes as where there
 * is no such object; nor is one of which nothing is seen. */
static bool
view_is_there(const struct view_replies *replies, const char *id)
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < replies->count; i++)
        seen += bh_panel_is_seen(replies->panels[i], replies->answers[i]);
    return seen > 0 && (!id[0] || bh_panel_is_seen(replies->panels[0], replies->answers[0]));
}

/* What the API says to all of it where it answers to nothing; else 0: there is something to show. */
static uint32_t
view_failure(const struct view_replies *replies)
{
    uint32_t status = 0;

    for (uint32_t i = 0; i < replies->count; i++) {
        const struct bh_api_response *response = replies->answers[i];

        if (bh_api_response_is_ok(response))
            return 0;
        if (status == 0 && (response->status == 429 || response->status >= 500))
            status = response->status;
    }
    return status;
}

/* Who may see nothing of the site, for want of a role or of a second factor, still has an account. */
static void
view_refuse(struct bh_page *page, enum bh_site_view view)
{
    if (views[view].extra == EXTRA_HOME || bh_page_lacks_factor(page))
        bh_page_redirect(page, "/account", BH_NOTICE_NONE);
    else
        bh_page_error(page, 404);
}

static void
view_serve_whole(struct bh_page *page, enum bh_site_view view)
{
    struct view_replies replies = { .count = 0 };

    view_ask(page, view, &replies);
    if (replies.responses[0].status == 401)
        bh_page_require_sign_in(page);
    else if (view_failure(&replies))
        bh_page_error(page, view_failure(&replies));
    else if (!view_is_there(&replies, page->id))
        view_refuse(page, view);
    else
        view_put(page, view, &replies);
    for (uint32_t i = 0; i < replies.questions; i++)
        bh_api_response_fini(&replies.responses[i]);
}

static void
view_serve_panel(struct bh_page *page, const struct bh_panel_row *panel)
{
    uint64_t version;
    uint32_t status = bh_panel_render(page, panel, &page->reply->body, &version);

    if (page->reply->body.length > 0)
        bh_page_headers(page->reply, 200, true);
    else
        bh_page_error(page, status == 401 ? 401 : 404);
}

static void
view_serve_json(struct bh_page *page, const struct bh_panel_row *panel)
{
    struct bh_question *question = bh_page_question(page, panel->question);

    if (question)
        bh_page_forward_question(page, question);
    else
        bh_page_error(page, 400);
}

void
bh_site_view_serve(struct bh_page *page, enum bh_site_view view)
{
    const char *json = bh_page_field(page, "json"), *fragment = bh_page_field(page, "panel");
    const struct bh_panel_row *panel = bh_panel_find(view, json[0] ? json : fragment);

    if (!json[0] && !fragment[0])
        view_serve_whole(page, view);
    else if (!panel)
        bh_page_error(page, 404);
    else if (json[0])
        view_serve_json(page, panel);
    else
        view_serve_panel(page, panel);
}
