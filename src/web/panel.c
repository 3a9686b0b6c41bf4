#include "web/panel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "web/show.h"

static const struct bh_panel_row panels[] = {
#define BH_VIEW(view, path, section, title, command, extra)
#define BH_PANEL(view, id, title, question, live, function)                                                  \
    { BH_SITE_VIEW_##view, #id, title, question, BH_LIVE_##live, function },
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
    { .id = NULL },
};

const struct bh_panel_row *
bh_panel_rows(void)
{
    return panels;
}

/* ---- asking ---- */

struct bh_api_response
bh_panel_ask(struct bh_page *page, const struct bh_panel_row *panel)
{
    struct bh_question *question = bh_page_question(page, panel->question);

    return question ? bh_page_ask(page, question) : (struct bh_api_response){ .status = 400 };
}

const struct bh_panel_row *
bh_panel_find(enum bh_site_view view, const char *id)
{
    for (const struct bh_panel_row *panel = panels; panel->id; panel++)
        if (panel->view == view && strcmp(panel->id, id) == 0)
            return panel;
    return NULL;
}

/* ---- writing ---- */

/* Why there is nothing to show: what the reader asked for is wrong, or the service cannot tell now. */
static void
panel_put_refusal(struct bh_html *html, const struct bh_api_response *response)
{
    const char *error = bh_api_response_error(response), *next = bh_api_response_next(response);

    bh_html_open(html, "p");
    if (response->status != 400 && response->status != 404) {
        bh_show_unavailable(html, error[0] ? error : "the service does not answer");
    } else {
        bh_html_attr(html, "class", "notice bad");
        bh_html_attr(html, "role", "alert");
        bh_html_text(html, error[0] ? error : "what was asked for is too long");
        bh_html_text(html, next[0] ? "; " : "");
        bh_html_text(html, next);
    }
    bh_html_close(html, "p");
}

/* "jobs sensors": what live.js has the page asked again for. */
static const char *
panel_live_words(enum bh_panel_live live)
{
    static const char *const words[] = { "", "jobs", "sensors", "jobs sensors" };

    return words[live];
}

/* The panel's JSON is a click away: the page's address with ?json=. */
static void
panel_put_json_link(struct bh_html *html, const struct bh_page *page, const struct bh_panel_row *panel)
{
    BH_AUTO(bh_buf_fini) struct bh_buf address = { .max = BH_FORM_BYTES_MAX };
    const char *query = bh_page_query(page);

    bh_buf_puts(&address, bh_page_address(page));
    bh_buf_printf(&address, "?%s%sjson=%s", query, query[0] ? "&" : "", panel->id);
    if (!bh_buf_text(&address))
        return;
    bh_html_open(html, "a");
    bh_html_attr(html, "class", "json");
    bh_html_attr(html, "href", bh_buf_text(&address));
    bh_html_attr(html, "aria-label", bh_arena_printf(page->request->arena, "JSON of %s", panel->title));
    bh_html_text(html, "JSON");
    bh_html_close(html, "a");
}

uint64_t
bh_panel_version(const char *bytes, size_t length)
{
    uint64_t hash = BH_PANEL_ABSENT;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
    return hash ? hash : 1;
}

static void
panel_put_version(struct bh_html *html, uint64_t version)
{
    char text[24];

    snprintf(text, sizeof text, "%016" PRIx64, version);
    bh_html_open(html, "data");
    bh_html_attr(html, "value", text);
    bh_html_flag(html, "hidden");
    bh_html_close(html, "data");
}

/* Take back the section that was opened at `before`: its function had nothing to say. */
static uint64_t
panel_leave_out(struct bh_html *html, size_t before)
{
    html->depth--;
    html->out->length = before;
    return BH_PANEL_ABSENT;
}

uint64_t
bh_panel_put(struct bh_html *html, const struct bh_panel_call *call, const struct bh_panel_row *panel,
             const struct bh_api_response *response)
{
    size_t before = html->out->length, begin, below;
    uint64_t version;

    bh_html_open(html, "section");
    begin = html->out->length;
    bh_html_attr(html, "class", "panel");
    bh_html_attr(html, "id", panel->id);
    if (panel->live)
        bh_html_attr(html, "data-live", panel_live_words(panel->live));
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "heading");
    bh_html_element(html, "h2", NULL, panel->title);
    panel_put_json_link(html, call->page, panel);
    bh_html_close(html, "div");
    below = html->out->length;
    if (bh_api_response_is_ok(response)) {
        panel->function(html, call);
        if (html->out->length == below)
            return panel_leave_out(html, before);
    } else {
        panel_put_refusal(html, response);
    }
    version = bh_panel_version(html->out->bytes + begin, html->out->length - begin);
    if (panel->live)
        panel_put_version(html, version);
    bh_html_close(html, "section");
    return version;
}

uint32_t
bh_panel_render(struct bh_page *page, const struct bh_panel_row *panel, struct bh_buf *out,
                uint64_t *ret_version)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = bh_panel_ask(page, panel);
    struct bh_page_frame frame = bh_page_frame(page, NULL);
    const struct bh_panel_call call = { .page = page,
                                        .frame = &frame,
                                        .id = page->id,
                                        .now = bh_page_now(page),
                                        .data = response.json ? bh_json_root(response.json) : NULL };
    struct bh_html html = { .out = out };

    *ret_version = BH_PANEL_ABSENT;
    if (response.status == 401 || !bh_panel_is_seen(panel, &response))
        return response.status;
    *ret_version = bh_panel_put(&html, &call, panel, &response);
    bh_html_end(&html);
    return response.status;
}

bool
bh_panel_is_seen(const struct bh_panel_row *panel, const struct bh_api_response *response)
{
    bool asked = strstr(panel->question, "={?");

    return response->status != 403 && (response->status != 404 || asked);
}
