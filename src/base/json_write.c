#include "base/json.h"

#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"

#define JSON_INTEGER_MAX ((UINT64_C(1) << 53) - 1)

/* A character that cannot stand in JSON as it is; a byte that is no UTF-8 becomes
 * U+FFFD, so that what was written can always be read. */
static void
write_put_escaped(struct bh_buf *out, unsigned char c)
{
    static const char *const shorts[] = { ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f",
                                          ['\r'] = "\\r", ['"'] = "\\\"", ['\\'] = "\\\\" };

    if (c >= 0x80)
        bh_buf_puts(out, "\xef\xbf\xbd");
    else if (c < BH_COUNT(shorts) && shorts[c])
        bh_buf_puts(out, shorts[c]);
    else
        bh_buf_printf(out, "\\u%04x", c);
}

/* Whether the byte stands for itself, and is a character of its own. */
static bool
write_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void
write_put_escaped_text(struct bh_buf *out, const char *text, size_t length)
{
    size_t start = 0;

    bh_buf_putc(out, '"');
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t step = c >= 0x80 ? bh_utf8_step(text + i, length - i) : write_is_plain(c);

        i += step;
        if (step > 0)
            continue;
        bh_buf_put(out, text + start, i - start);
        write_put_escaped(out, c);
        start = ++i;
    }
    bh_buf_put(out, text + start, length - start);
    bh_buf_putc(out, '"');
}

void
bh_json_put_strn(struct bh_buf *out, const char *text, size_t length)
{
    size_t plain = 0;
    char *at;

    while (plain < length && write_is_plain((unsigned char)text[plain]))
        plain++;
    if (plain < length) {
        write_put_escaped_text(out, text, length);
        return;
    }
    at = bh_buf_extend(out, length + 2);
    if (!at)
        return;
    at[0] = at[length + 1] = '"';
    if (length > 0)
        memcpy(at + 1, text, length);
}

void
bh_json_put_str(struct bh_buf *out, const char *text)
{
    bh_json_put_strn(out, text, strlen(text));
}

void
bh_json_put_u64(struct bh_buf *out, uint64_t value)
{
    if (value <= JSON_INTEGER_MAX) {
        bh_buf_put_u64(out, value);
        return;
    }
    bh_buf_putc(out, '"');
    bh_buf_put_u64(out, value);
    bh_buf_putc(out, '"');
}

static uint32_t
write_load_u32(const void *position)
{
    uint32_t value;

    memcpy(&value, position, sizeof value);
    return value;
}

static uint64_t
write_load_u64(const void *position)
{
    uint64_t value;

    memcpy(&value, position, sizeof value);
    return value;
}

static bool write_all_zero(const struct bh_fields *fields, const unsigned char *base);

static bool
json_is_zero(const struct bh_field *field, const unsigned char *base)
{
    const unsigned char *position = base + field->offset;

    switch (field->kind) {
    case BH_FIELD_ARRAY:
        return write_load_u32(base + field->count_offset) == 0;
    case BH_FIELD_LIST:
    case BH_FIELD_ROWS:
        return ((const struct bh_list *)(const void *)position)->count == 0;
    case BH_FIELD_TEXTS:
        return ((const struct bh_texts *)(const void *)position)->count == 0;
    case BH_FIELD_STR:
        return position[0] == '\0';
    case BH_FIELD_U64S:
        return ((const struct bh_list *)(const void *)position)->count == 0;
    case BH_FIELD_SLICE:
    case BH_FIELD_JSON:
    case BH_FIELD_JSONS:
    case BH_FIELD_AMOUNT:
        return ((const struct bh_slice *)(const void *)position)->text == NULL;
    case BH_FIELD_BOOL:
    case BH_FIELD_U32:
    case BH_FIELD_I32:
    case BH_FIELD_U64:
    case BH_FIELD_NS:
    case BH_FIELD_I64:
    case BH_FIELD_ENUM:
    case BH_FIELD_TEXT:
    case BH_FIELD_LINES:
    case BH_FIELD_POINTER:
    case BH_FIELD_HEX:
        for (uint32_t i = 0; i < field->size; i++)
            if (position[i])
                return false;
        return true;
    case BH_FIELD_STRUCT:
        return write_all_zero(field->of, position);
    }
    return false;
}

static bool
write_all_zero(const struct bh_fields *fields, const unsigned char *base)
{
    for (uint32_t i = 0; i < fields->count; i++)
        if (!json_is_zero(&fields->fields[i], base))
            return false;
    return true;
}

/* Of a NULLABLE field: pointers come first in what has one. */
static bool
write_is_unset(const struct bh_field *field, const unsigned char *position)
{
    static const unsigned char unset[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    static const unsigned char null[sizeof(void *)] = { 0 };
    bool number = field->kind == BH_FIELD_U32 || field->kind == BH_FIELD_I32 || field->kind == BH_FIELD_U64
                  || field->kind == BH_FIELD_NS || field->kind == BH_FIELD_I64;

    return number ? memcmp(position, unset, field->size) == 0 : memcmp(position, null, sizeof null) == 0;
}

static bool
write_is_left_out(const struct bh_field *field, const unsigned char *base)
{
    if (field->flags & BH_FIELD_INPUT || field->kind == BH_FIELD_ROWS)
        return true;
    if (field->flags & (BH_FIELD_ALWAYS | BH_FIELD_REQUIRED))
        return false;
    return field->flags & BH_FIELD_NULLABLE ? write_is_unset(field, base + field->offset)
                                            : json_is_zero(field, base);
}

static void
write_put_items(struct bh_buf *out, const struct bh_fields *of, const unsigned char *items, uint32_t count)
{
    bh_buf_putc(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            bh_buf_putc(out, ',');
        bh_json_encode(out, of, items + (size_t)i * of->size);
    }
    bh_buf_putc(out, ']');
}

static void
json_put_texts(struct bh_buf *out, const struct bh_texts *texts)
{
    bh_buf_putc(out, '[');
    for (uint32_t i = 0; i < texts->count; i++) {
        if (i > 0)
            bh_buf_putc(out, ',');
        bh_json_put_str(out, texts->items[i]);
    }
    bh_buf_putc(out, ']');
}

static void
write_put_numbers(struct bh_buf *out, const struct bh_list *list)
{
    const uint64_t *numbers = list->items;

    bh_buf_putc(out, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        if (i > 0)
            bh_buf_putc(out, ',');
        bh_json_put_u64(out, numbers[i]);
    }
    bh_buf_putc(out, ']');
}

static void
write_put_lines(struct bh_buf *out, const char *line)
{
    const char *before = "";

    bh_buf_putc(out, '[');
    for (size_t length; line && *line; line += length + (line[length] == '\n')) {
        length = strcspn(line, "\n");
        bh_buf_puts(out, before);
        bh_json_put_strn(out, line, length);
        before = ",";
    }
    bh_buf_putc(out, ']');
}

static void
json_put_number(struct bh_buf *out, const struct bh_field *field, const unsigned char *position)
{
    if (field->kind == BH_FIELD_U32) {
        bh_buf_put_u64(out, write_load_u32(position));
    } else if (field->kind == BH_FIELD_I32) {
        bh_buf_put_i64(out, (int32_t)write_load_u32(position));
    } else if (field->kind == BH_FIELD_I64) {
        bh_buf_put_i64(out, (int64_t)write_load_u64(position));
    } else if (field->kind == BH_FIELD_NS) {
        bh_buf_putc(out, '"');
        bh_buf_put_u64(out, write_load_u64(position));
        bh_buf_putc(out, '"');
    } else {
        bh_json_put_u64(out, write_load_u64(position));
    }
}

static void
write_put_enum(struct bh_buf *out, const struct bh_field *field, const unsigned char *position)
{
    uint32_t value = write_load_u32(position);

    BH_ASSERT(value < field->name_count && field->names[value]);
    bh_json_put_str(out, field->names[value]);
}

static void
json_put_text(struct bh_buf *out, const unsigned char *position)
{
    const char *text;

    memcpy(&text, position, sizeof text);
    bh_json_put_str(out, text ? text : "");
}

static void
write_put_field(struct bh_buf *out, const struct bh_field *field, const unsigned char *base)
{
    const unsigned char *position = base + field->offset;
    const struct bh_slice *slice = (const struct bh_slice *)(const void *)position;

    if (field->flags & BH_FIELD_NULLABLE && write_is_unset(field, position)) {
        bh_buf_puts(out, "null");
        return;
    }
    switch (field->kind) {
    case BH_FIELD_BOOL:
        bh_buf_puts(out, *position ? "true" : "false");
        break;
    case BH_FIELD_U32:
    case BH_FIELD_I32:
    case BH_FIELD_U64:
    case BH_FIELD_NS:
    case BH_FIELD_I64:
        json_put_number(out, field, position);
        break;
    case BH_FIELD_U64S:
        write_put_numbers(out, (const struct bh_list *)(const void *)position);
        break;
    case BH_FIELD_SLICE:
        bh_json_put_strn(out, slice->text, slice->length);
        break;
    case BH_FIELD_JSON:
    case BH_FIELD_JSONS:
    case BH_FIELD_AMOUNT:
        bh_buf_put(out, slice->text, slice->length);
        break;
    case BH_FIELD_ENUM:
        write_put_enum(out, field, position);
        break;
    case BH_FIELD_STR:
        bh_json_put_strn(out, (const char *)position, strnlen((const char *)position, field->size));
        break;
    case BH_FIELD_TEXT:
        json_put_text(out, position);
        break;
    case BH_FIELD_TEXTS:
        json_put_texts(out, (const struct bh_texts *)(const void *)position);
        break;
    case BH_FIELD_HEX:
        bh_buf_putc(out, '"');
        bh_buf_put_hex(out, position, field->size);
        bh_buf_putc(out, '"');
        break;
    case BH_FIELD_STRUCT:
        bh_json_encode(out, field->of, position);
        break;
    case BH_FIELD_LINES:
        write_put_lines(out, *(const char *const *)(const void *)position);
        break;
    case BH_FIELD_POINTER:
        bh_json_encode(out, field->of, *(const void *const *)(const void *)position);
        break;
    case BH_FIELD_ARRAY:
        BH_ASSERT(write_load_u32(base + field->count_offset) <= field->max);
        write_put_items(out, field->of, position, write_load_u32(base + field->count_offset));
        break;
    case BH_FIELD_LIST: {
        const struct bh_list *list = (const struct bh_list *)(const void *)position;

        write_put_items(out, field->of, list->items, list->count);
        break;
    }
    case BH_FIELD_ROWS: /* written before */
        break;
    }
}

struct bh_json_writer
bh_json_begin(struct bh_buf *out)
{
    return (struct bh_json_writer){ .out = out };
}

static void
json_put_key(struct bh_json_writer *w, const char *key)
{
    uint64_t bit = UINT64_C(1) << w->depth;

    if (w->filled & bit)
        bh_buf_putc(w->out, ',');
    w->filled |= bit;
    if (!key)
        return;
    bh_json_put_str(w->out, key);
    bh_buf_putc(w->out, ':');
}

/* The comma before it and the colon behind it, at once: keys of descriptions need no escape. */
static void
write_put_name(struct bh_json_writer *w, const char *name)
{
    const uint64_t bit = UINT64_C(1) << w->depth;
    const size_t length = strlen(name), comma = w->filled & bit ? 1 : 0;
    char *at = bh_buf_extend(w->out, comma + length + 3);

    w->filled |= bit;
    if (!at)
        return;
    memcpy(at, ",", comma);
    at[comma] = '"';
    memcpy(at + comma + 1, name, length);
    memcpy(at + comma + 1 + length, "\":", 2);
}

static void
write_put_members(struct bh_json_writer *w, const struct bh_fields *fields, const unsigned char *value)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        if (write_is_left_out(&fields->fields[i], value))
            continue;
        write_put_name(w, fields->fields[i].name);
        write_put_field(w->out, &fields->fields[i], value);
    }
}

void
bh_json_encode(struct bh_buf *out, const struct bh_fields *fields, const void *value)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_buf_putc(out, '{');
    write_put_members(&w, fields, value);
    bh_buf_putc(out, '}');
}

void
bh_json_members(struct bh_json_writer *w, const struct bh_fields *fields, const void *value)
{
    write_put_members(w, fields, value);
}

void
bh_json_open(struct bh_json_writer *w, const char *key, char bracket)
{
    BH_ASSERT(bracket == '{' || bracket == '[');
    BH_ASSERT(w->depth < 62);
    json_put_key(w, key);
    bh_buf_putc(w->out, bracket);
    w->depth++;
    w->filled &= ~(UINT64_C(1) << w->depth);
}

void
bh_json_close(struct bh_json_writer *w, char bracket)
{
    BH_ASSERT(w->depth > 0);
    w->depth--;
    bh_buf_putc(w->out, bracket);
}

void
bh_json_str(struct bh_json_writer *w, const char *key, const char *text)
{
    json_put_key(w, key);
    bh_json_put_str(w->out, text ? text : "");
}

void
bh_json_strn(struct bh_json_writer *w, const char *key, const char *text, size_t length)
{
    json_put_key(w, key);
    bh_json_put_strn(w->out, text, length);
}

void
bh_json_u64(struct bh_json_writer *w, const char *key, uint64_t value)
{
    json_put_key(w, key);
    bh_json_put_u64(w->out, value);
}

void
bh_json_i64(struct bh_json_writer *w, const char *key, int64_t value)
{
    json_put_key(w, key);
    bh_buf_put_i64(w->out, value);
}

void
bh_json_ns(struct bh_json_writer *w, const char *key, uint64_t value)
{
    json_put_key(w, key);
    bh_buf_putc(w->out, '"');
    bh_buf_put_u64(w->out, value);
    bh_buf_putc(w->out, '"');
}

void
bh_json_bool(struct bh_json_writer *w, const char *key, bool value)
{
    json_put_key(w, key);
    bh_buf_puts(w->out, value ? "true" : "false");
}

void
bh_json_struct(struct bh_json_writer *w, const char *key, const struct bh_fields *fields, const void *value)
{
    json_put_key(w, key);
    bh_json_encode(w->out, fields, value);
}

void
bh_json_raw(struct bh_json_writer *w, const char *key, const char *text)
{
    json_put_key(w, key);
    bh_buf_puts(w->out, text);
}
