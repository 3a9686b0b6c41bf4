#include "cli/output/output.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"

static void
output_indent(struct bh_buf *out, uint32_t depth)
{
    bh_buf_putc(out, '\n');
    for (uint32_t i = 0; i < depth * 2; i++)
        bh_buf_putc(out, ' ');
}

/* Characters that are not seen, as "\\u202e": what is read back is the same. */
static void
output_put_escaped(struct bh_buf *out, const char *text)
{
    size_t left = strlen(text);

    for (size_t bytes; left > 0 && (bytes = bh_utf8_step(text, left)) > 0; text += bytes, left -= bytes) {
        uint32_t code = bh_utf8_code(text, bytes);

        if (bh_utf8_shown_step(text, left))
            bh_buf_put(out, text, bytes);
        else if (code > 0xffff)
            bh_buf_printf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((code - 0x10000) >> 10),
                          0xdc00 + (code & 0x3ff));
        else
            bh_buf_printf(out, "\\u%04" PRIx32, code);
    }
}

static void
output_put_string(struct bh_buf *out, const char *text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf string = { .max = BH_OUTPUT_MAX };

    bh_json_put_str(&string, text);
    if (bh_buf_text(&string))
        output_put_escaped(out, string.bytes);
    else
        out->overflow = true;
}

/* What is neither array nor object, as JSON. */
static void
output_put_scalar(struct bh_buf *out, bh_json_value value)
{
    switch (bh_json_kind(value)) {
    case BH_JSON_BOOL:
        bh_buf_puts(out, bh_json_truth(value) ? "true" : "false");
        break;
    case BH_JSON_INTEGER:
        bh_buf_put_i64(out, bh_json_integer(value, 0));
        break;
    case BH_JSON_STRING:
        output_put_string(out, bh_json_text(value, ""));
        break;
    case BH_JSON_NULL:
    case BH_JSON_ARRAY:
    case BH_JSON_OBJECT:
        bh_buf_puts(out, "null");
        break;
    }
}

static void output_put_json(struct bh_buf *out, bh_json_value value, uint32_t depth);

static void
output_put_json_object(struct bh_buf *out, bh_json_value value, uint32_t depth)
{
    void *cursor = NULL;
    const char *key;
    bh_json_value member;
    bool first = true;

    bh_buf_putc(out, '{');
    while (bh_json_next(value, &cursor, &key, &member)) {
        if (!first)
            bh_buf_putc(out, ',');
        output_indent(out, depth + 1);
        output_put_string(out, key);
        bh_buf_puts(out, ": ");
        output_put_json(out, member, depth + 1);
        first = false;
    }
    if (!first)
        output_indent(out, depth);
    bh_buf_putc(out, '}');
}

static void
output_put_json_array(struct bh_buf *out, bh_json_value value, uint32_t depth)
{
    size_t count = bh_json_count(value);

    bh_buf_putc(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            bh_buf_putc(out, ',');
        output_indent(out, depth + 1);
        output_put_json(out, bh_json_at(value, i), depth + 1);
    }
    if (count > 0)
        output_indent(out, depth);
    bh_buf_putc(out, ']');
}

static void
output_put_json(struct bh_buf *out, bh_json_value value, uint32_t depth)
{
    enum bh_json_kind kind = bh_json_kind(value);

    if (kind == BH_JSON_OBJECT)
        output_put_json_object(out, value, depth);
    else if (kind == BH_JSON_ARRAY)
        output_put_json_array(out, value, depth);
    else
        output_put_scalar(out, value);
}

void
bh_output_json(struct bh_buf *out, bh_json_value value)
{
    output_put_json(out, value, 0);
    bh_buf_putc(out, '\n');
}

/* Can the string be in YAML without quotes, and stay a string? */
static bool
output_is_plain(const char *text)
{
    static const char *const words[] = { "null", "true", "false", "yes", "no", "on", "off" };
    const char *safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    size_t length = strlen(text);

    if (length == 0 || length > 80 || strspn(text, safe) != length)
        return false;
    if (strchr("0123456789-.", *text))
        return false;
    for (size_t i = 0; i < BH_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    return true;
}

static void
output_put_yaml_scalar(struct bh_buf *out, bh_json_value value)
{
    const char *text = bh_json_text(value, NULL);

    if (text && output_is_plain(text))
        bh_buf_puts(out, text);
    else
        output_put_scalar(out, value); /* YAML takes JSON's quoted strings */
}

static void output_put_yaml(struct bh_buf *out, bh_json_value value, uint32_t depth, bool in_list);

/* What follows "key:" or "-". */
static void
output_put_yaml_value(struct bh_buf *out, bh_json_value value, uint32_t depth, bool in_list)
{
    enum bh_json_kind kind = bh_json_kind(value);
    void *cursor = NULL;
    const char *key;
    bh_json_value member;
    bool empty =
        kind == BH_JSON_OBJECT ? !bh_json_next(value, &cursor, &key, &member) : bh_json_count(value) == 0;

    if (kind != BH_JSON_OBJECT && kind != BH_JSON_ARRAY) {
        bh_buf_putc(out, ' ');
        output_put_yaml_scalar(out, value);
    } else if (empty) {
        bh_buf_puts(out, kind == BH_JSON_OBJECT ? " {}" : " []");
    } else {
        output_put_yaml(out, value, depth + 1, in_list);
    }
}

/* A mapping or a list that is not empty, beginning on a new line unless it is the
 * mapping of a list's item, which begins behind the dash. */
static void
output_put_yaml(struct bh_buf *out, bh_json_value value, uint32_t depth, bool in_list)
{
    void *cursor = NULL;
    const char *key;
    bh_json_value member;
    bool behind_dash = in_list && bh_json_kind(value) == BH_JSON_OBJECT;

    while (bh_json_next(value, &cursor, &key, &member)) {
        if (behind_dash)
            bh_buf_putc(out, ' ');
        else
            output_indent(out, depth);
        behind_dash = false;
        if (output_is_plain(key))
            bh_buf_puts(out, key);
        else
            output_put_string(out, key);
        bh_buf_putc(out, ':');
        output_put_yaml_value(out, member, depth, false);
    }
    for (size_t i = 0; i < bh_json_count(value); i++) {
        output_indent(out, depth);
        bh_buf_putc(out, '-');
        output_put_yaml_value(out, bh_json_at(value, i), depth, true);
    }
}

void
bh_output_yaml(struct bh_buf *out, bh_json_value value)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_OUTPUT_MAX };

    output_put_yaml_value(&text, value, UINT32_MAX, false); /* depth + 1 is 0 */
    if (text.overflow)
        out->overflow = true;
    else /* without the blank or the line end in front */
        bh_buf_put(out, text.bytes + 1, text.length - 1);
    bh_buf_putc(out, '\n');
}

void
bh_output_list_begin(struct bh_output_list *list, struct bh_buf *out, bool yaml)
{
    *list = (struct bh_output_list){ .out = out, .yaml = yaml };
    bh_buf_puts(out, yaml ? "items:" : "{\n  \"items\": [");
}

void
bh_output_list_item(struct bh_output_list *list, bh_json_value item)
{
    if (list->yaml) {
        output_indent(list->out, 1);
        bh_buf_putc(list->out, '-');
        output_put_yaml_value(list->out, item, 1, true);
    } else {
        if (list->count > 0)
            bh_buf_putc(list->out, ',');
        output_indent(list->out, 2);
        output_put_json(list->out, item, 2);
    }
    list->count++;
}

static void
output_put_list_member(struct bh_output_list *list, const char *key, bh_json_value value)
{
    bh_buf_puts(list->out, list->yaml ? "\n" : ",\n  ");
    if (list->yaml && output_is_plain(key))
        bh_buf_puts(list->out, key);
    else
        output_put_string(list->out, key);
    bh_buf_putc(list->out, ':');
    if (list->yaml) {
        output_put_yaml_value(list->out, value, 0, false);
        return;
    }
    bh_buf_putc(list->out, ' ');
    output_put_json(list->out, value, 1);
}

void
bh_output_list_end(struct bh_output_list *list, bh_json_value page)
{
    void *cursor = NULL;
    const char *key;
    bh_json_value value;

    if (list->yaml)
        bh_buf_puts(list->out, list->count ? "" : " []");
    else
        bh_buf_puts(list->out, list->count ? "\n  ]" : "]");
    while (bh_json_next(page, &cursor, &key, &value))
        if (strcmp(key, "items") != 0)
            output_put_list_member(list, key, value);
    bh_buf_puts(list->out, list->yaml ? "\n" : "\n}\n");
}

bh_rc
bh_output_write(struct bh_buf *out, struct bh_err *err)
{
    bh_rc rc;

    if (out->overflow)
        return bh_err_set(err, BH_FULL, "the output is too large");
    /* What the server sends is not trusted with the terminal, whatever its origin. */
    if (out->length > 0)
        bh_utf8_scrub_lines((char *)(uintptr_t)bh_buf_text(out));
    rc = bh_fd_write_all(STDOUT_FILENO, out->bytes, out->length, err);
    bh_buf_clear(out);
    return rc == BH_OK ? rc : bh_err_wrap(err, "standard output");
}
