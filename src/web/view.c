#include "web/view.h"

#include <string.h>

#include "base/assert.h"
#include "policy/operations.h"
#include "web/headers.h"
#include "web/panel.h"
#include "web/question.h"

enum { PANELS_A_VIEW_MAX = 16, TEXT_MAX = 512 };

static const struct view {
    const char *path;
    enum bh_section section;
    const char *title, *command;
} views[BH_SITE_VIEWS] = {
#define BH_VIEW(view, path, section, title, command) { path, BH_SECTION_##section, title, command },
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

/* ---- the whole ---- */

struct view_replies {
    const struct bh_panel_row *panels[PANELS_A_VIEW_MAX];
    struct bh_api_response responses[PANELS_A_VIEW_MAX];
    uint32_t count;
};

static void
view_ask(struct bh_page *page, enum bh_site_view view, const char *id, struct view_replies *ret)
{
    for (const struct bh_panel_row *panel = bh_panel_rows(); panel->id; panel++) {
        if (panel->view != view)
            continue;
        BH_ASSERT(ret->count < PANELS_A_VIEW_MAX);
        ret->panels[ret->count] = panel;
        ret->responses[ret->count++] = bh_panel_ask(page, panel, id);
    }
}

static void
view_put(struct bh_page *page, enum bh_site_view view, const char *id, const struct view_replies *replies)
{
    BH_AUTO(bh_buf_fini) struct bh_buf title = { .max = TEXT_MAX };
    struct bh_page_frame frame = bh_page_frame(page, NULL);
    struct bh_panel_call call = { .page = page, .frame = &frame, .id = id, .now = bh_page_now(page) };
    struct bh_html html;

    bh_question_put_text(&title, views[view].title, id);
    frame.title = bh_buf_text(&title) ? bh_buf_text(&title) : views[view].path;
    bh_page_who(page, &frame);
    frame.section = views[view].section;
    frame.live = true;
    bh_page_headers(page->reply, 200, true);
    html = bh_frame_begin(&page->reply->body, &frame);
    view_put_command(&html, &views[view], id);
    for (uint32_t i = 0; i < replies->count; i++) {
        const struct bh_api_response *response = &replies->responses[i];

        call.data = response->json ? bh_json_root(response->json) : NULL;
        if (bh_panel_is_seen(response))
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
        seen += bh_panel_is_seen(&replies->responses[i]);
    return seen > 0 && (!id[0] || bh_panel_is_seen(&replies->responses[0]));
}

/* The account's page says what its user has to do first. */
static void
view_refuse(struct bh_page *page)
{
    if (bh_page_lacks_factor(page))
        bh_page_redirect(page, "/account", BH_NOTICE_NONE);
    else
        bh_page_error(page, 404);
}

static void
view_serve_whole(struct bh_page *page, enum bh_site_view view, const char *id)
{
    struct view_replies replies = { .count = 0 };

    view_ask(page, view, id, &replies);
    if (replies.responses[0].status == 401)
        bh_page_require_sign_in(page);
    else if (!view_is_there(&replies, id))
        view_refuse(page);
    else
        view_put(page, view, id, &replies);
    for (uint32_t i = 0; i < replies.count; i++)
        bh_api_response_fini(&replies.responses[i]);
}

static void
view_serve_panel(struct bh_page *page, const struct bh_panel_row *panel, const char *id)
{
    uint64_t version;
    uint32_t status = bh_panel_render(page, panel, id, &page->reply->body, &version);

    if (page->reply->body.length > 0)
        bh_page_headers(page->reply, 200, true);
    else
        bh_page_error(page, status == 401 ? 401 : 404);
}

static void
view_serve_json(struct bh_page *page, const struct bh_panel_row *panel, const char *id)
{
    struct bh_question *question;

    if (!bh_panel_question(page, panel, id, &question))
        bh_page_error(page, 400);
    else
        bh_page_forward_question(page, question);
}

void
bh_site_view_serve(struct bh_page *page, enum bh_site_view view, const char *id)
{
    const char *json = bh_page_field(page, "json"), *fragment = bh_page_field(page, "panel");
    const struct bh_panel_row *panel = bh_panel_find(view, json[0] ? json : fragment);

    if (!json[0] && !fragment[0])
        view_serve_whole(page, view, id);
    else if (!panel)
        bh_page_error(page, 404);
    else if (json[0])
        view_serve_json(page, panel, id);
    else
        view_serve_panel(page, panel, id);
}
