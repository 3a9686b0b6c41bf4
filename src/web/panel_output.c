/* A job's output: its last lines, and those before by a link; log.js follows it from there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "web/panel.h"
#include "web/show.h"

enum { ADDRESS_MAX = 160, MEMBERS_SHOWN = 64 };

/* How long the escape sequence at `text` is, with which programs color what they write; 0: none begins there.
 */
static size_t
output_escape_length(const char *text)
{
    size_t length = 2;

    if (text[0] != '\x1b' || text[1] == '\0')
        return 0;
    if (text[1] == '[') {
        while (text[length] >= 0x20 && text[length] <= 0x3f)
            length++;
        return text[length] >= 0x40 && text[length] <= 0x7e ? length + 1 : length;
    }
    if (text[1] != ']')
        return 2;
    while (text[length] && text[length] != '\a' && text[length] != '\x1b')
        length++;
    return text[length] == '\a' ? length + 1 : text[length] ? length + 2 : length;
}

/* The line without them; what else is not shown as it is becomes U+FFFD (web/html.h). */
static void
output_put_text(struct bh_html *html, const char *text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf shown = { .max = 256 << 10 };

    while (*text) {
        size_t escape = output_escape_length(text);

        if (escape == 0)
            bh_buf_putc(&shown, *text++);
        else
            text += strnlen(text, escape);
    }
    bh_html_text(html, bh_buf_text(&shown) ? bh_buf_text(&shown) : "");
}

static void
output_put_lines(struct bh_html *html, bh_json_value list)
{
    for (size_t i = 0; i < bh_json_count(list); i++) {
        bh_html_open(html, "span");
        output_put_text(html, bh_show_text_of(bh_json_at(list, i), "text"));
        bh_html_text(html, "\n");
        bh_html_close(html, "span");
    }
}

/* "/jobs/7?member=1&end=4711#log": without `end` the last lines. */
static void
output_put_link(struct bh_html *html, const struct bh_panel_call *call, const char *end, const char *text)
{
    char address[ADDRESS_MAX];

    snprintf(address, sizeof address, "/jobs/%" PRIu64 "?member=%" PRIu64 "%s%s#log",
             bh_show_number_of(call->data, "job"), bh_show_number_of(call->data, "member"),
             end[0] ? "&end=" : "", end);
    bh_html_open(html, "a");
    bh_html_attr(html, "href", address);
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

static void
output_put_links(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value first = bh_json_at(bh_json_get(call->data, "items"), 0);
    char before[24], address[ADDRESS_MAX];

    snprintf(before, sizeof before, "%" PRIu64, bh_show_number_of(first, "offset"));
    snprintf(address, sizeof address, "/jobs/%" PRIu64 "/log/file?member=%" PRIu64,
             bh_show_number_of(call->data, "job"), bh_show_number_of(call->data, "member"));
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "shortcuts");
    if (bh_show_truth_of(call->data, "earlier"))
        output_put_link(html, call, before, "Earlier lines");
    if (bh_page_field(call->page, "end")[0])
        output_put_link(html, call, "", "Last lines");
    bh_html_open(html, "a");
    bh_html_attr(html, "href", address);
    bh_html_text(html, "Download");
    bh_html_close(html, "a");
    bh_html_close(html, "p");
}

/* Which member's output, where there are several. */
static void
output_put_members(struct bh_html *html, const struct bh_panel_call *call)
{
    char numbers[MEMBERS_SHOWN][4];
    const char *values[MEMBERS_SHOWN];
    uint64_t gang = bh_show_number_of(call->data, "gang"), member = bh_show_number_of(call->data, "member");
    uint32_t count = gang < MEMBERS_SHOWN ? (uint32_t)gang : MEMBERS_SHOWN;
    char action[ADDRESS_MAX];

    if (count < 2)
        return;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%u", i);
        values[i] = numbers[i];
    }
    snprintf(action, sizeof action, "/jobs/%" PRIu64, bh_show_number_of(call->data, "job"));
    bh_frame_search(html, action);
    bh_html_open(html, "div");
    bh_frame_select(html, &(struct bh_select){ .id = "log-member",
                                               .label = "Member",
                                               .name = "member",
                                               .value = values[member < count ? member : 0],
                                               .values = values,
                                               .count = count });
    bh_html_close(html, "div");
    bh_frame_button(html, "plain", "Show its output");
    bh_html_close(html, "form");
}

/* What log.js shows: hidden until it can. */
static void
output_put_bar(struct bh_html *html)
{
    static const struct {
        const char *name, *label, *pressed;
    } buttons[] = { { "log-pause", "Pause output", "false" }, { "log-wrap", "Wrap lines", "false" } };

    bh_html_open(html, "div");
    bh_html_attr(html, "class", "logbar");
    bh_html_flag(html, "hidden");
    bh_frame_input(html, &(struct bh_input){ .id = "log-search",
                                             .label = "Search in these lines",
                                             .name = "log-search",
                                             .type = "search",
                                             .autocomplete = "off",
                                             .optional = true });
    for (size_t i = 0; i < BH_COUNT(buttons); i++) {
        bh_html_open(html, "button");
        bh_html_attr(html, "type", "button");
        bh_html_attr(html, "class", "plain");
        bh_html_attr(html, "id", buttons[i].name);
        bh_html_attr(html, "aria-pressed", buttons[i].pressed);
        bh_html_text(html, buttons[i].label);
        bh_html_close(html, "button");
    }
    bh_html_open(html, "span");
    bh_html_attr(html, "id", "log-state");
    bh_html_attr(html, "role", "status");
    bh_html_close(html, "span");
    bh_html_close(html, "div");
}

static void
output_attr_number(struct bh_html *html, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    bh_html_attr(html, name, text);
}

static bool
output_is_over(bh_json_value log)
{
    const char *state = bh_show_text_of(log, "state");

    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

static const char *
output_word_empty(bh_json_value log)
{
    if (bh_show_truth_of(log, "removed"))
        return "Its output was removed: logs of ended jobs are kept for log_retention_days, and as many as fit.";
    return output_is_over(log) ? "It wrote nothing." : "It has written nothing yet.";
}

void
bh_panel_output(struct bh_html *html, const struct bh_panel_call *call)
{
    bh_json_value list = bh_json_get(call->data, "items");
    bool last = !bh_page_field(call->page, "end")[0];

    output_put_members(html, call);
    output_put_bar(html);
    output_put_links(html, call);
    bh_html_open(html, "pre");
    bh_html_attr(html, "id", "log-lines");
    bh_html_attr(html, "class", "log");
    bh_html_attr(html, "tabindex", "0");
    bh_html_attr(html, "role", "region");
    bh_html_attr(html, "aria-label", "Output of the job");
    output_attr_number(html, "data-job", bh_show_number_of(call->data, "job"));
    output_attr_number(html, "data-member", bh_show_number_of(call->data, "member"));
    if (last && !output_is_over(call->data))
        output_attr_number(html, "data-follow", bh_show_number_of(call->data, "end"));
    if (bh_show_truth_of(call->data, "open"))
        bh_html_flag(html, "data-open");
    output_put_lines(html, list);
    bh_html_close(html, "pre");
    if (bh_json_count(list) > 0)
        return;
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_attr(html, "id", "log-empty");
    bh_html_text(html, output_word_empty(call->data));
    bh_html_close(html, "p");
}
