#include "web/html.h"

#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"

static const char small_digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
static const char small_dash[] = "abcdefghijklmnopqrstuvwxyz-";

static bool
html_is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (**names == *name && strcmp(name, *names) == 0)
            return true;
    return false;
}

static void
html_put_escaped_char(struct bh_buf *out, const char *at, size_t step)
{
    switch (*at) {
    case '&':
        bh_buf_puts(out, "&amp;");
        break;
    case '<':
        bh_buf_puts(out, "&lt;");
        break;
    case '>':
        bh_buf_puts(out, "&gt;");
        break;
    case '"':
        bh_buf_puts(out, "&quot;");
        break;
    case '\'':
        bh_buf_puts(out, "&#39;");
        break;
    default:
        bh_buf_put(out, at, step);
    }
}

/* How many bytes from here on are as they are: most texts are nothing else. */
static size_t
html_plain_length(const char *text, size_t left)
{
    size_t length = 0;

    while (length < left && text[length] >= 0x20 && text[length] < 0x7f && text[length] != '&'
           && text[length] != '<' && text[length] != '>' && text[length] != '"' && text[length] != '\'')
        length++;
    return length;
}

static void
html_put_escaped(struct bh_buf *out, const char *text, size_t left)
{
    size_t step;

    for (; left > 0; text += step, left -= step) {
        unsigned char c = (unsigned char)*text;

        step = html_plain_length(text, left);
        if (step > 0) {
            bh_buf_put(out, text, step);
            continue;
        }
        step = c == '\n' || c == '\t' ? 1 : bh_utf8_shown_step(text, left);
        if (step == 0) {
            bh_buf_puts(out, "\xef\xbf\xbd");
            step = bh_utf8_step(text, left);
            step = step ? step : 1;
        } else {
            html_put_escaped_char(out, text, step);
        }
    }
}

static void
html_end_tag(struct bh_html *html)
{
    if (html->in_tag)
        bh_buf_putc(html->out, '>');
    html->in_tag = false;
}

struct bh_html
bh_html_begin(struct bh_buf *out)
{
    bh_buf_puts(out, "<!doctype html>\n");
    return (struct bh_html){ .out = out };
}

/* A new line before what stands in a block of its own: for readers of the source, and
 * for tests that compare it. */
static bool
html_is_block(const char *element)
{
    static const char *const blocks[] = { "html",   "head",   "body",     "meta",     "link",    "title",
                                          "main",   "header", "footer",   "script",   "h1",      "h2",
                                          "p",      "form",   "section",  "ul",       "ol",      "li",
                                          "dl",     "dt",     "dd",       "div",      "table",   "tr",
                                          "nav",    "label",  "input",    "button",   "article", "tbody",
                                          "select", "option", "textarea", "fieldset", "details", "summary",
                                          "pre",    NULL };

    return html_is_one_of(element, blocks);
}

void
bh_html_open(struct bh_html *html, const char *element)
{
    static const char *const voids[] = { "input", "img", "link", "meta", NULL };

    BH_ASSERT(element[0] && element[strspn(element, small_digits)] == '\0');
    html_end_tag(html);
    if (html_is_block(element) && html->out->length > 0 && html->out->bytes[html->out->length - 1] != '\n')
        bh_buf_putc(html->out, '\n');
    bh_buf_putc(html->out, '<');
    bh_buf_puts(html->out, element);
    html->in_tag = true;
    if (html_is_one_of(element, voids))
        return;
    BH_ASSERT(html->depth < BH_HTML_DEPTH_MAX);
    html->open[html->depth++] = element;
}

/* A path of this site: "//host" would be another's, and so would "/\host". */
static bool
html_is_allowed(const char *name, const char *value)
{
    static const char *const urls[] = { "href", "src", "action", NULL };

    if (!html_is_one_of(name, urls))
        return true;
    if (strcmp(name, "src") == 0 && strncmp(value, "data:image/svg+xml;", 19) == 0)
        return true;
    return value[0] == '/' && value[1] != '/' && !strchr(value, '\\');
}

void
bh_html_flag(struct bh_html *html, const char *name)
{
    BH_ASSERT(html->in_tag);
    BH_ASSERT(name[0] && name[strspn(name, small_dash)] == '\0');
    BH_ASSERT(strncmp(name, "on", 2) != 0 && strcmp(name, "style") != 0);
    bh_buf_putc(html->out, ' ');
    bh_buf_puts(html->out, name);
}

void
bh_html_attr(struct bh_html *html, const char *name, const char *value)
{
    bh_html_flag(html, name);
    BH_ASSERT(html_is_allowed(name, value));
    bh_buf_puts(html->out, "=\"");
    html_put_escaped(html->out, value, strlen(value));
    bh_buf_putc(html->out, '"');
}

void
bh_html_text(struct bh_html *html, const char *text)
{
    bh_html_part(html, text, strlen(text));
}

void
bh_html_part(struct bh_html *html, const char *text, size_t length)
{
    static const char *const empty[] = { "script", "style", NULL };

    BH_ASSERT(html->depth > 0 && !html_is_one_of(html->open[html->depth - 1], empty));
    html_end_tag(html);
    html_put_escaped(html->out, text, length);
}

void
bh_html_u64(struct bh_html *html, uint64_t number)
{
    html_end_tag(html);
    bh_buf_put_u64(html->out, number);
}

void
bh_html_close(struct bh_html *html, const char *element)
{
    BH_ASSERT(html->depth > 0 && strcmp(html->open[html->depth - 1], element) == 0);
    html_end_tag(html);
    html->depth--;
    bh_buf_puts(html->out, "</");
    bh_buf_puts(html->out, element);
    bh_buf_putc(html->out, '>');
    if (html_is_block(element))
        bh_buf_putc(html->out, '\n');
}

void
bh_html_element(struct bh_html *html, const char *element, const char *class, const char *text)
{
    bh_html_open(html, element);
    if (class)
        bh_html_attr(html, "class", class);
    bh_html_text(html, text);
    bh_html_close(html, element);
}

void
bh_html_link_away(struct bh_html *html, const char *url, const char *text)
{
    if (strncmp(url, "https://", 8) != 0) {
        bh_html_text(html, text);
        return;
    }
    bh_html_open(html, "a");
    bh_html_attr(html, "rel", "noreferrer");
    bh_buf_puts(html->out, " href=\"");
    html_put_escaped(html->out, url, strlen(url));
    bh_buf_putc(html->out, '"');
    bh_html_text(html, text);
    bh_html_close(html, "a");
}

void
bh_html_end(struct bh_html *html)
{
    BH_ASSERT(html->depth == 0 && !html->in_tag);
}
