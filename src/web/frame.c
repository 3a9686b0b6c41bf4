#include "web/frame.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "web/assets.h"

static const struct {
    const char *name, *tone, *sentence;
} notices[BH_NOTICES] = {
#define BH_NOTICE(code, name, tone, sentence) { name, tone, sentence },
#include "tables/notices.tbl"
#undef BH_NOTICE
};

const char *
bh_notice_name(enum bh_notice notice)
{
    BH_ASSERT(notice < BH_NOTICES);
    return notices[notice].name;
}

enum bh_notice
bh_notice_find(const char *name)
{
    for (enum bh_notice notice = 0; notice < BH_NOTICES; notice++)
        if (strcmp(notices[notice].name, name) == 0)
            return notice;
    return BH_NOTICE_NONE;
}

static void
frame_put_meta(struct bh_html *html, const char *name, const char *content)
{
    bh_html_open(html, "meta");
    bh_html_attr(html, "name", name);
    bh_html_attr(html, "content", content);
}

/* A reader's clock may be wrong. */
static void
frame_put_now(struct bh_html *html, bh_ns now)
{
    char text[32];
    struct bh_buf utc;

    bh_buf_init_fixed(&utc, text, sizeof text);
    bh_time_put_utc(&utc, now);
    frame_put_meta(html, "now", bh_buf_text(&utc));
}

static void
frame_put_script(struct bh_html *html, const char *name)
{
    bh_html_open(html, "script");
    bh_html_attr(html, "src", bh_asset_path(name));
    bh_html_flag(html, "defer");
    bh_html_attr(html, "blocking", "render"); /* what it shows is there at the first paint: nothing moves */
    bh_html_close(html, "script");
}

static void
frame_put_sheet(struct bh_html *html, const char *name)
{
    bh_html_open(html, "link");
    bh_html_attr(html, "rel", "stylesheet");
    bh_html_attr(html, "href", bh_asset_path(name));
}

static void
frame_put_head(struct bh_html *html, const struct bh_page_frame *frame)
{
    bh_html_open(html, "head");
    bh_html_open(html, "meta");
    bh_html_attr(html, "charset", "utf-8");
    frame_put_meta(html, "viewport", "width=device-width, initial-scale=1");
    frame_put_meta(html, "color-scheme", "light dark");
    bh_html_open(html, "title");
    bh_html_text(html, frame->title);
    bh_html_text(html, " - ");
    bh_html_text(html, frame->site);
    bh_html_close(html, "title");
    if (frame->charts)
        frame_put_sheet(html, "uPlot.min.css");
    frame_put_sheet(html, "style.css");
    bh_html_open(html, "link");
    bh_html_attr(html, "rel", "icon");
    bh_html_attr(html, "href", bh_asset_path("icon.svg"));
    if (frame->passkeys)
        frame_put_script(html, "passkey.js");
    if (frame->times && frame->now)
        frame_put_now(html, frame->now);
    if (frame->times)
        frame_put_script(html, "live.js");
    if (frame->proofs)
        frame_put_script(html, "proof.js");
    if (frame->log)
        frame_put_script(html, "log.js");
    if (frame->charts) {
        frame_put_script(html, "uPlot.iife.min.js");
        frame_put_script(html, "charts.js");
    }
    bh_html_close(html, "head");
}

static void
frame_put_navigation(struct bh_html *html, const struct bh_page_frame *frame)
{
    static const struct {
        const char *path, *title;
    } sections[BH_SECTIONS] = {
#define BH_SECTION(section, path, title, verb) [BH_SECTION_##section] = { path, title },
#include "tables/sections.tbl"
#undef BH_SECTION
    };

    bh_html_open(html, "nav");
    bh_html_attr(html, "aria-label", "Pages");
    for (enum bh_section i = BH_SECTION_NONE + 1; i < BH_SECTIONS; i++) {
        if (!(frame->sees & 1u << i))
            continue;
        bh_html_open(html, "a");
        bh_html_attr(html, "href", sections[i].path);
        if (i == frame->section)
            bh_html_attr(html, "aria-current", "page");
        bh_html_text(html, sections[i].title);
        bh_html_close(html, "a");
    }
    bh_html_close(html, "nav");
}

static void
frame_put_header(struct bh_html *html, const struct bh_page_frame *frame)
{
    bh_html_open(html, "header");
    bh_html_element(html, "span", "site", frame->site);
    if (frame->sees)
        frame_put_navigation(html, frame);
    if (frame->account) {
        bh_html_open(html, "span");
        bh_html_text(html, "signed in as ");
        bh_html_element(html, "strong", NULL, frame->account);
        bh_html_close(html, "span");
    }
    bh_html_close(html, "header");
}

/* Whether the page stays up to date, and the way to stop that; live.js shows it. */
static void
frame_put_live(struct bh_html *html)
{
    bh_html_open(html, "div");
    bh_html_attr(html, "id", "live");
    bh_html_flag(html, "hidden");
    bh_html_open(html, "span");
    bh_html_attr(html, "role", "status");
    bh_html_close(html, "span");
    bh_html_open(html, "button");
    bh_html_attr(html, "type", "button");
    bh_html_attr(html, "class", "plain");
    bh_html_attr(html, "aria-pressed", "false");
    bh_html_text(html, "Pause");
    bh_html_close(html, "button");
    bh_html_close(html, "div");
}

static void
frame_put_top(struct bh_html *html, const struct bh_page_frame *frame)
{
    bh_html_open(html, "div");
    bh_html_attr(html, "class", "top");
    bh_html_element(html, "h1", NULL, frame->title);
    if (frame->live)
        frame_put_live(html);
    bh_html_close(html, "div");
}

static void
frame_put_notice(struct bh_html *html, enum bh_notice notice)
{
    const char *tone = notices[notice].tone;

    BH_ASSERT(notice < BH_NOTICES);
    if (notice == BH_NOTICE_NONE)
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class",
                 strcmp(tone, "bad") == 0    ? "notice bad"
                 : strcmp(tone, "good") == 0 ? "notice good"
                                             : "notice");
    bh_html_attr(html, "role", strcmp(tone, "bad") == 0 ? "alert" : "status");
    bh_html_text(html, notices[notice].sentence);
    bh_html_close(html, "p");
}

struct bh_html
bh_frame_begin(struct bh_buf *out, const struct bh_page_frame *frame)
{
    struct bh_html html = bh_html_begin(out);

    bh_html_open(&html, "html");
    bh_html_attr(&html, "lang", "en");
    frame_put_head(&html, frame);
    bh_html_open(&html, "body");
    if (frame->sees)
        bh_html_attr(&html, "class", frame->narrow ? "view narrow" : "view");
    frame_put_header(&html, frame);
    bh_html_open(&html, "main");
    frame_put_top(&html, frame);
    frame_put_notice(&html, frame->notice);
    return html;
}

void
bh_frame_end(struct bh_html *html, const struct bh_page_frame *frame)
{
    bh_html_close(html, "main");
    if (frame->account && frame->csrf) {
        bh_html_open(html, "footer");
        bh_frame_form(html, frame, "/signout");
        bh_frame_button(html, "plain", "Sign out");
        bh_html_close(html, "form");
        bh_html_close(html, "footer");
    }
    bh_html_close(html, "body");
    bh_html_close(html, "html");
    bh_html_end(html);
}

void
bh_frame_hidden(struct bh_html *html, const char *name, const char *value)
{
    bh_html_open(html, "input");
    bh_html_attr(html, "type", "hidden");
    bh_html_attr(html, "name", name);
    bh_html_attr(html, "value", value);
}

void
bh_frame_form(struct bh_html *html, const struct bh_page_frame *frame, const char *action)
{
    bh_html_open(html, "form");
    bh_html_attr(html, "method", "post");
    bh_html_attr(html, "action", action);
    if (frame->csrf)
        bh_frame_hidden(html, "csrf", frame->csrf);
}

void
bh_frame_search(struct bh_html *html, const char *action)
{
    bh_html_open(html, "form");
    bh_html_attr(html, "method", "get");
    bh_html_attr(html, "action", action);
    bh_html_attr(html, "class", "search");
    bh_html_attr(html, "role", "search");
}

void
bh_frame_passkey_form(struct bh_html *html, const struct bh_page_frame *frame, const char *kind,
                      const char *action, const char *options)
{
    BH_ASSERT(frame->passkeys && frame->csrf);
    bh_html_open(html, "form");
    bh_html_attr(html, "method", "post");
    bh_html_attr(html, "action", action);
    bh_html_attr(html, "data-passkey", kind);
    bh_html_attr(html, "data-options", options);
    bh_html_flag(html, "hidden");
    bh_frame_hidden(html, "csrf", frame->csrf);
    bh_frame_hidden(html, "answer", "");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_attr(html, "role", "status");
    bh_html_close(html, "p");
}

static void
frame_put_label(struct bh_html *html, const char *id, const char *label)
{
    bh_html_open(html, "label");
    bh_html_attr(html, "for", id);
    bh_html_text(html, label);
    bh_html_close(html, "label");
}

void
bh_frame_input(struct bh_html *html, const struct bh_input *input)
{
    const struct {
        const char *name, *value;
    } attributes[] = {
        { "id", input->id },
        { "name", input->name },
        { "type", input->type ? input->type : "text" },
        { "autocomplete", input->autocomplete },
        { "inputmode", input->inputmode },
        { "value", input->value },
        { "aria-describedby", input->hint },
    };
    char digits[24];
    struct bh_buf number;

    frame_put_label(html, input->id, input->label);
    bh_html_open(html, "input");
    for (size_t i = 0; i < BH_COUNT(attributes); i++)
        if (attributes[i].value)
            bh_html_attr(html, attributes[i].name, attributes[i].value);
    bh_buf_init_fixed(&number, digits, sizeof digits);
    bh_buf_put_u64(&number, input->length_max);
    if (input->length_max > 0)
        bh_html_attr(html, "maxlength", bh_buf_text(&number));
    if (!input->optional)
        bh_html_flag(html, "required");
    if (input->focus)
        bh_html_flag(html, "autofocus");
}

static void
frame_put_option(struct bh_html *html, const char *value, const char *label, bool chosen)
{
    bh_html_open(html, "option");
    bh_html_attr(html, "value", value);
    if (chosen)
        bh_html_flag(html, "selected");
    bh_html_text(html, label);
    bh_html_close(html, "option");
}

/* A value that is not among the choices stays what it is: what came from a job file is not lost. */
void
bh_frame_select(struct bh_html *html, const struct bh_select *select)
{
    const char *value = select->value ? select->value : "";
    bool found = !value[0];

    frame_put_label(html, select->id, select->label);
    bh_html_open(html, "select");
    bh_html_attr(html, "id", select->id);
    bh_html_attr(html, "name", select->name);
    if (select->hint)
        bh_html_attr(html, "aria-describedby", select->hint);
    if (select->empty)
        frame_put_option(html, "", select->empty, !value[0]);
    for (uint32_t i = 0; i < select->count; i++) {
        bool chosen = strcmp(select->values[i], value) == 0;

        found = found || chosen;
        frame_put_option(html, select->values[i], select->labels ? select->labels[i] : select->values[i],
                         chosen);
    }
    if (!found)
        frame_put_option(html, value, value, true);
    bh_html_close(html, "select");
}

void
bh_frame_textarea(struct bh_html *html, const struct bh_textarea *textarea)
{
    char digits[24];
    struct bh_buf number;

    frame_put_label(html, textarea->id, textarea->label);
    bh_html_open(html, "textarea");
    bh_html_attr(html, "id", textarea->id);
    bh_html_attr(html, "name", textarea->name);
    bh_html_attr(html, "autocomplete", "off");
    bh_html_attr(html, "spellcheck", "false");
    bh_buf_init_fixed(&number, digits, sizeof digits);
    bh_buf_put_u64(&number, textarea->rows);
    bh_html_attr(html, "rows", bh_buf_text(&number));
    if (textarea->hint)
        bh_html_attr(html, "aria-describedby", textarea->hint);
    bh_html_text(html, "\n"); /* browsers leave the first end of line out */
    bh_html_text(html, textarea->value ? textarea->value : "");
    bh_html_close(html, "textarea");
}

void
bh_frame_checkbox(struct bh_html *html, const struct bh_checkbox *checkbox)
{
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "check");
    bh_html_open(html, "input");
    bh_html_attr(html, "id", checkbox->id);
    bh_html_attr(html, "name", checkbox->name);
    bh_html_attr(html, "type", "checkbox");
    bh_html_attr(html, "value", "true");
    if (checkbox->checked)
        bh_html_flag(html, "checked");
    frame_put_label(html, checkbox->id, checkbox->label);
    bh_html_close(html, "p");
}

void
bh_frame_button(struct bh_html *html, const char *style, const char *label)
{
    bh_html_open(html, "button");
    bh_html_attr(html, "type", "submit");
    if (style)
        bh_html_attr(html, "class", style);
    bh_html_text(html, label);
    bh_html_close(html, "button");
}

void
bh_frame_button_form(struct bh_html *html, const struct bh_page_frame *frame,
                     const struct bh_button_form *button)
{
    bh_frame_form(html, frame, button->action);
    bh_frame_hidden(html, button->name, button->value);
    bh_html_open(html, "button");
    bh_html_attr(html, "type", "submit");
    bh_html_attr(html, "class", "grave");
    bh_html_attr(html, "aria-label", button->about);
    bh_html_text(html, button->label);
    bh_html_close(html, "button");
    bh_html_close(html, "form");
}
