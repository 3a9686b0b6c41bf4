#include "base/json.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "base/num.h"

/* jansson reports a lack of memory as a syntax error, which would call a good journal record bad: when malloc
 * fails, so does the program. */
static void *
json_malloc_or_abort(size_t bytes)
{
    void *memory = malloc(bytes);

    BH_ASSERT(memory || bytes == 0);
    return memory;
}

__attribute__((constructor)) static void
json_use_malloc_or_abort(void)
{
    json_set_alloc_funcs(json_malloc_or_abort, free);
}

/* Where in the document decoding stands, for messages. */
/* What a mistyped key is compared with, and how many letters it may be off. */
enum { KEY_SHOWN_MAX = 48 };

struct position {
    const struct position *up;
    const char *key; /* NULL: an array item */
    uint32_t index;
};

struct decoder {
    struct bh_arena *arena;
    struct bh_err *err;
};

static void
json_put_position(struct bh_buf *out, const struct position *at)
{
    if (!at)
        return;
    json_put_position(out, at->up);
    if (!at->key) {
        bh_buf_printf(out, "[%" PRIu32 "]", at->index);
        return;
    }
    if (out->length)
        bh_buf_putc(out, '.');
    bh_buf_puts(out, at->key);
}

static bh_rc json_fail(struct decoder *d, const struct position *at, bh_rc rc, const char *format, ...)
    BH_PRINTF(4, 5);

static bh_rc
json_fail(struct decoder *d, const struct position *at, bh_rc rc, const char *format, ...)
{
    char memory[160], message[200];
    struct bh_buf where;
    const char *text;
    va_list args;

    bh_buf_init_fixed(&where, memory, sizeof memory);
    json_put_position(&where, at);
    text = bh_buf_text(&where);
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (text && text[0])
        return bh_err_set(d->err, rc, "%s: %s", text, message);
    return bh_err_set(d->err, rc, "%s", message);
}

/* Nesting beyond the limit is refused before the parser recurses into it. */
static bool
json_too_deep(const char *text, size_t length)
{
    uint32_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        if (c == '"')
            in_string = true;
        else if ((c == '{' || c == '[') && ++depth > BH_JSON_DEPTH_MAX)
            return true;
        else if ((c == '}' || c == ']') && depth > 0)
            depth--;
    }
    return false;
}

static bh_rc
json_refuse_syntax(const json_error_t *why, struct bh_err *err)
{
    enum json_error_code code = json_error_code(why);
    bool nul = code == json_error_null_character || code == json_error_null_byte_in_key;

    bh_err_set(err, code == json_error_numeric_overflow ? BH_RANGE : BH_INVALID,
               "not valid JSON at line %d, column %d: %s", why->line, why->column,
               nul ? "NUL characters are not accepted" : why->text);
    return bh_err_hint(err, "keys and texts stand in double quotes, entries have a comma between "
                            "them and none after the last");
}

static bh_rc
json_load(const char *text, size_t length, json_t **ret_root, struct bh_err *err)
{
    json_error_t why;
    json_t *root;

    if (length > BH_JSON_BYTES_MAX)
        return bh_err_set(err, BH_FULL, "document of %zu bytes is larger than %d", length, BH_JSON_BYTES_MAX);
    if (length == 0)
        return bh_err_set(err, BH_INVALID, "not valid JSON: the document is empty");
    /* jansson passes over a NUL that follows a number or a word */
    if (memchr(text, '\0', length))
        return bh_err_set(err, BH_INVALID, "not valid JSON: NUL characters are not accepted");
    if (json_too_deep(text, length))
        return bh_err_set(err, BH_INVALID, "nested deeper than %d levels", BH_JSON_DEPTH_MAX);
    root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return json_refuse_syntax(&why, err);
    *ret_root = root;
    return BH_OK;
}

static bh_rc json_decode_object(struct decoder *d, const json_t *json, const struct bh_fields *fields,
                                void *ret_struct, const struct position *at);

static bh_rc
json_decode_u64(struct decoder *d, const json_t *json, uint64_t *ret_value, const struct position *at)
{
    if (json_is_integer(json)) {
        json_int_t value = json_integer_value(json);

        if (value < 0)
            return json_fail(d, at, BH_RANGE, "must not be negative");
        *ret_value = (uint64_t)value;
        return BH_OK;
    }
    if (json_is_string(json)) {
        bh_rc rc = bh_parse_u64(json_string_value(json), ret_value, d->err);

        if (rc == BH_OK)
            return rc;
        return json_fail(d, at, rc, rc == BH_RANGE ? "the number is too large" : "expected an integer");
    }
    if (json_is_real(json))
        return json_fail(d, at, BH_INVALID, "fractions are not accepted; expected an integer");
    return json_fail(d, at, BH_INVALID, "expected an integer");
}

static bh_rc
json_decode_32(struct decoder *d, const json_t *json, const struct bh_field *field, unsigned char *position,
               const struct position *at)
{
    bool is_signed = field->kind == BH_FIELD_I32;
    json_int_t value;

    if (json_is_real(json))
        return json_fail(d, at, BH_INVALID, "fractions are not accepted; expected an integer");
    if (!json_is_integer(json))
        return json_fail(d, at, BH_INVALID, "expected an integer");
    value = json_integer_value(json);
    if (!is_signed && value < 0)
        return json_fail(d, at, BH_RANGE, "must not be negative");
    if (value > (is_signed ? INT32_MAX : (json_int_t)UINT32_MAX) || (is_signed && value < INT32_MIN))
        return json_fail(d, at, BH_RANGE, "%lld is out of range", (long long)value);
    if (value == 0 && (field->flags & BH_FIELD_POSITIVE))
        return json_fail(d, at, BH_RANGE, "must be at least 1");
    memcpy(position, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
    return BH_OK;
}

static bh_rc
json_decode_enum(struct decoder *d, const json_t *json, const struct bh_field *field, unsigned char *position,
                 const struct position *at)
{
    char memory[120];
    struct bh_buf choices;

    if (!json_is_string(json))
        return json_fail(d, at, BH_INVALID, "expected a string");
    bh_buf_init_fixed(&choices, memory, sizeof memory);
    for (uint32_t i = 0; i < field->name_count; i++) {
        if (!field->names[i])
            continue;
        if (strcmp(field->names[i], json_string_value(json)) == 0) {
            memcpy(position, &i, sizeof i);
            return BH_OK;
        }
        bh_buf_printf(&choices, "%s%s", choices.length ? ", " : "", field->names[i]);
    }
    choices.overflow = false;
    choices.length = choices.length < sizeof memory ? choices.length : sizeof memory - 1;
    return json_fail(d, at, BH_INVALID, "\"%.40s\" is not one of %s", json_string_value(json),
                     bh_buf_text(&choices));
}

/* Control characters never enter: they could forge lines in logs and tables. */
static bh_rc
json_check_text(struct decoder *d, const json_t *json, size_t max, const struct position *at)
{
    const unsigned char *text;

    if (!json_is_string(json))
        return json_fail(d, at, BH_INVALID, "expected a string");
    if (json_string_length(json) > max)
        return json_fail(d, at, BH_RANGE, "longer than %zu bytes", max);
    text = (const unsigned char *)json_string_value(json);
    for (; *text; text++)
        if ((*text < 0x20 && *text != '\n' && *text != '\t') || *text == 0x7f)
            return json_fail(d, at, BH_INVALID, "control character 0x%02x", *text);
    return BH_OK;
}

static bh_rc
json_decode_str(struct decoder *d, const json_t *json, const struct bh_field *field, unsigned char *position,
                const struct position *at)
{
    bh_rc rc = json_check_text(d, json, field->size - 1, at);

    if (rc != BH_OK)
        return rc;
    if (strpbrk(json_string_value(json), "\n\t"))
        return json_fail(d, at, BH_INVALID, "line breaks and tabs are not accepted here");
    memcpy(position, json_string_value(json), json_string_length(json) + 1);
    return BH_OK;
}

static bh_rc
json_decode_text(struct decoder *d, const json_t *json, size_t max, const char **ret_text,
                 const struct position *at)
{
    bh_rc rc = json_check_text(d, json, max ? max : BH_FIELD_TEXT_MAX, at);

    if (rc != BH_OK)
        return rc;
    *ret_text = bh_arena_strdup(d->arena, json_string_value(json));
    return *ret_text ? BH_OK : json_fail(d, at, BH_FULL, "the request is too large");
}

/* An amount may be written without quotes where it is whole. */
static bh_rc
json_decode_amount(struct decoder *d, const json_t *json, const struct bh_field *field, const char **ret_text,
                   const struct position *at)
{
    if (!(field->flags & BH_FIELD_NUMBERS) || !json_is_integer(json))
        return json_decode_text(d, json, field->max, ret_text, at);
    if (json_integer_value(json) < 0)
        return json_fail(d, at, BH_RANGE, "must not be negative");
    *ret_text = bh_arena_printf(d->arena, "%lld", (long long)json_integer_value(json));
    return *ret_text ? BH_OK : json_fail(d, at, BH_FULL, "the request is too large");
}

static bh_rc
json_check_array(struct decoder *d, const json_t *json, uint32_t max, const struct position *at)
{
    if (!json_is_array(json))
        return json_fail(d, at, BH_INVALID, "expected a list");
    if (json_array_size(json) > (max ? max : BH_FIELD_ITEMS_MAX))
        return json_fail(d, at, BH_RANGE, "more than %" PRIu32 " items",
                         max ? max : (uint32_t)BH_FIELD_ITEMS_MAX);
    return BH_OK;
}

static bh_rc
json_decode_texts(struct decoder *d, const json_t *json, const struct bh_field *field,
                  struct bh_texts *ret_texts, const struct position *at)
{
    bh_rc rc = json_check_array(d, json, field->max, at);
    size_t count = json_array_size(json);
    const char **items;

    if (rc != BH_OK)
        return rc;
    items = bh_arena_alloc(d->arena, (count + 1) * sizeof *items);
    if (!items)
        return json_fail(d, at, BH_FULL, "the request is too large");
    for (uint32_t i = 0; i < count && rc == BH_OK; i++) {
        struct position here = { .up = at, .index = i };

        rc = json_decode_text(d, json_array_get(json, i), 0, &items[i], &here);
    }
    *ret_texts = (struct bh_texts){ items, (uint32_t)count };
    return rc;
}

static bh_rc
json_decode_items(struct decoder *d, const json_t *json, const struct bh_fields *of, void *ret_items,
                  const struct position *at)
{
    unsigned char *item = ret_items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < json_array_size(json) && rc == BH_OK; i++, item += of->size) {
        struct position here = { .up = at, .index = i };

        rc = json_decode_object(d, json_array_get(json, i), of, item, &here);
    }
    return rc;
}

static bh_rc
json_decode_list(struct decoder *d, const json_t *json, const struct bh_field *field,
                 struct bh_list *ret_list, const struct position *at)
{
    bh_rc rc = json_check_array(d, json, field->max, at);
    size_t count = rc == BH_OK ? json_array_size(json) : 0;

    if (rc != BH_OK)
        return rc;
    ret_list->items = bh_arena_alloc(d->arena, count * field->of->size + 1);
    if (!ret_list->items)
        return json_fail(d, at, BH_FULL, "the request is too large");
    ret_list->count = (uint32_t)count;
    return json_decode_items(d, json, field->of, ret_list->items, at);
}

static bh_rc
json_decode_array(struct decoder *d, const json_t *json, const struct bh_field *field, unsigned char *base,
                  const struct position *at)
{
    bh_rc rc = json_check_array(d, json, field->max, at);
    uint32_t count = rc == BH_OK ? (uint32_t)json_array_size(json) : 0;

    if (rc != BH_OK)
        return rc;
    memcpy(base + field->count_offset, &count, sizeof count);
    return json_decode_items(d, json, field->of, base + field->offset, at);
}

static bh_rc
json_decode_hex(struct decoder *d, const json_t *json, const struct bh_field *field, unsigned char *position,
                const struct position *at)
{
    if (!json_is_string(json) || json_string_length(json) != 2 * field->size
        || !bh_parse_hex(json_string_value(json), position, field->size))
        return json_fail(d, at, BH_INVALID, "expected %" PRIu32 " bytes in lower-case hex", field->size);
    return BH_OK;
}

static bh_rc
json_decode_field(struct decoder *d, const json_t *json, const struct bh_field *field, unsigned char *base,
                  const struct position *at)
{
    unsigned char *position = base + field->offset;

    switch (field->kind) {
    case BH_FIELD_BOOL:
        if (!json_is_boolean(json))
            return json_fail(d, at, BH_INVALID, "expected true or false");
        *(bool *)(void *)position = json_is_true(json);
        return BH_OK;
    case BH_FIELD_U32:
    case BH_FIELD_I32:
        return json_decode_32(d, json, field, position, at);
    case BH_FIELD_U64:
    case BH_FIELD_NS:
        return json_decode_u64(d, json, (uint64_t *)(void *)position, at);
    case BH_FIELD_ENUM:
        return json_decode_enum(d, json, field, position, at);
    case BH_FIELD_STR:
        return json_decode_str(d, json, field, position, at);
    case BH_FIELD_TEXT:
        return json_decode_amount(d, json, field, (const char **)(void *)position, at);
    case BH_FIELD_TEXTS:
        return json_decode_texts(d, json, field, (struct bh_texts *)(void *)position, at);
    case BH_FIELD_HEX:
        return json_decode_hex(d, json, field, position, at);
    case BH_FIELD_STRUCT:
        return json_decode_object(d, json, field->of, position, at);
    case BH_FIELD_ARRAY:
        return json_decode_array(d, json, field, base, at);
    case BH_FIELD_LIST:
        return json_decode_list(d, json, field, (struct bh_list *)(void *)position, at);
    case BH_FIELD_POINTER ... BH_FIELD_ROWS:
        break;
    }
    return json_fail(d, at, BH_BUG, "a field of its kind is only written");
}

static bh_rc
json_hint_field(struct decoder *d, const struct bh_field *field)
{
    char text[sizeof d->err->hint];

    bh_field_describe(field, text, sizeof text);
    return bh_err_hint(d->err, "%s", text);
}

/* Whether the member is given, under its name or one that it had before. */
static uint32_t
json_count_given(const json_t *json, const struct bh_fields *fields, const struct bh_field *field)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fields->count; i++)
        count += fields->fields[i].offset == field->offset && json_object_get(json, fields->fields[i].name);
    return count;
}

static bh_rc
json_check_required(struct decoder *d, const json_t *json, const struct bh_fields *fields,
                    const struct position *at)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct bh_field *field = &fields->fields[i];

        if (!(field->flags & BH_FIELD_REQUIRED) || json_count_given(json, fields, field))
            continue;
        (void)json_fail(d, at, BH_INVALID, "\"%s\" is missing", field->name);
        return json_hint_field(d, field);
    }
    return BH_OK;
}

static bh_rc
json_refuse_key(struct decoder *d, const char *key, const struct bh_fields *fields, const struct position *at)
{
    char memory[sizeof d->err->hint] = "";
    struct bh_nearest nearest = { 0 };
    struct bh_buf hint;
    uint32_t i = 0;

    (void)json_fail(d, at, BH_INVALID, "unknown key \"%.60s\" in %s", key, fields->name);
    for (uint32_t n = 0; n < fields->count; n++)
        if (!(fields->fields[n].flags & BH_FIELD_INPUT))
            bh_nearest_try(&nearest, key, fields->fields[n].name);
    bh_buf_init_fixed(&hint, memory, sizeof memory);
    if (nearest.word)
        bh_buf_printf(&hint, "did you mean \"%s\"? ", nearest.word);
    bh_buf_puts(&hint, "keys are");
    for (; i < fields->count && hint.length + KEY_SHOWN_MAX < sizeof memory; i++)
        bh_buf_printf(&hint, "%s %.32s", i ? "," : "", fields->fields[i].name);
    if (i < fields->count)
        bh_buf_printf(&hint, " and %u more", fields->count - i);
    return bh_err_hint(d->err, "%s", bh_buf_text(&hint) ? bh_buf_text(&hint) : "");
}

static bh_rc
json_decode_object(struct decoder *d, const json_t *json, const struct bh_fields *fields, void *ret_struct,
                   const struct position *at)
{
    const char *key;
    json_t *value;

    if (!json_is_object(json))
        return json_fail(d, at, BH_INVALID, "expected an object (%s)", fields->name);
    memset(ret_struct, 0, fields->size);
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        const struct bh_field *field = bh_fields_find(fields, key, strlen(key));
        struct position here = { .up = at, .key = key };
        bh_rc rc;

        if (!field)
            return json_refuse_key(d, key, fields, at);
        here.key = field->name;
        if (field->flags & BH_FIELD_INPUT && json_count_given(json, fields, field) > 1)
            return json_fail(d, at, BH_INVALID, "\"%.60s\" is given under its new name, too", key);
        rc = json_decode_field(d, value, field, ret_struct, &here);
        if (rc != BH_OK && !d->err->hint[0])
            return json_hint_field(d, field);
        if (rc != BH_OK)
            return rc;
    }
    return json_check_required(d, json, fields, at);
}

bh_rc
bh_json_decode(const char *text, size_t length, const struct bh_fields *fields, void *ret_struct,
               struct bh_arena *arena, struct bh_err *err)
{
    struct decoder d = { .arena = arena, .err = err };
    json_t *root;
    bh_rc rc = json_load(text, length, &root, err);

    if (rc != BH_OK)
        return rc;
    rc = json_decode_object(&d, root, fields, ret_struct, NULL);
    json_decref(root);
    return rc;
}

struct bh_json {
    json_t root;
};

/* Whether a number with a fraction or an exponent stands anywhere. */
static bool
json_holds_real(const json_t *json)
{
    const char *key;
    json_t *value;

    for (size_t i = 0; i < json_array_size(json); i++)
        if (json_holds_real(json_array_get(json, i)))
            return true;
    json_object_foreach((json_t *)(uintptr_t)json, key, value) if (json_holds_real(value)) return true;
    return json_is_real(json);
}

bh_rc
bh_json_parse(const char *text, size_t length, struct bh_json **ret_json, struct bh_err *err)
{
    json_t *root;
    bh_rc rc = json_load(text, length, &root, err);

    if (rc != BH_OK)
        return rc;
    if (json_holds_real(root)) {
        json_decref(root);
        return bh_err_set(err, BH_INVALID, "fractions are not accepted");
    }
    *ret_json = (struct bh_json *)root;
    return BH_OK;
}

void
bh_json_free(struct bh_json *json)
{
    if (json)
        json_decref(&json->root);
}

bh_json_value
bh_json_root(const struct bh_json *json)
{
    return json;
}

bh_json_value
bh_json_get(bh_json_value object, const char *key)
{
    return object ? json_object_get(object, key) : NULL;
}

size_t
bh_json_count(bh_json_value array)
{
    return array ? json_array_size(array) : 0;
}

bh_json_value
bh_json_at(bh_json_value array, size_t index)
{
    return json_array_get(array, index);
}

const char *
bh_json_text(bh_json_value value, const char *fallback)
{
    return value && json_is_string((const json_t *)value) ? json_string_value(value) : fallback;
}

uint64_t
bh_json_number(bh_json_value value, uint64_t fallback)
{
    struct bh_err err;
    uint64_t number;

    if (!value)
        return fallback;
    if (json_is_integer((const json_t *)value) && json_integer_value(value) >= 0)
        return (uint64_t)json_integer_value(value);
    if (json_is_string((const json_t *)value)
        && bh_parse_u64(json_string_value(value), &number, &err) == BH_OK)
        return number;
    return fallback;
}

bool
bh_json_truth(bh_json_value value)
{
    return value && json_is_true((const json_t *)value);
}

int64_t
bh_json_integer(bh_json_value value, int64_t fallback)
{
    return value && json_is_integer((const json_t *)value) ? json_integer_value(value) : fallback;
}

enum bh_json_kind
bh_json_kind(bh_json_value value)
{
    static const enum bh_json_kind kinds[] = {
        [JSON_OBJECT] = BH_JSON_OBJECT,   [JSON_ARRAY] = BH_JSON_ARRAY, [JSON_STRING] = BH_JSON_STRING,
        [JSON_INTEGER] = BH_JSON_INTEGER, [JSON_TRUE] = BH_JSON_BOOL,   [JSON_FALSE] = BH_JSON_BOOL,
        [JSON_NULL] = BH_JSON_NULL,
    };

    return value ? kinds[json_typeof((const json_t *)value)] : BH_JSON_NULL;
}

bool
bh_json_next(bh_json_value object, void **cursor, const char **ret_key, bh_json_value *ret_value)
{
    json_t *json = (json_t *)(uintptr_t)object;

    if (!json || !json_is_object(json))
        return false;
    *cursor = *cursor ? json_object_iter_next(json, *cursor) : json_object_iter(json);
    if (!*cursor)
        return false;
    *ret_key = json_object_iter_key(*cursor);
    *ret_value = json_object_iter_value(*cursor);
    return true;
}
