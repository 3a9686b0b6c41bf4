#include "wire/frame.h"

#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"
#include "wire/message.h"

/* ---- numbers, little-endian whatever the machine is ---- */

static void
frame_put_number(struct bh_buf *out, uint64_t value, size_t width)
{
    unsigned char bytes[8];

    BH_ASSERT(width <= sizeof bytes);
    for (size_t i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    bh_buf_put(out, bytes, width);
}

static uint64_t
frame_number_at(const char *bytes, size_t width)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    uint64_t value = 0;

    for (size_t i = width; i-- > 0;)
        value = value << 8 | byte[i];
    return value;
}

static uint32_t
frame_max_of(const struct bh_field *field, uint32_t fallback)
{
    return field->max ? field->max : fallback;
}

static uint32_t
frame_load_u32(const void *place)
{
    uint32_t value;

    memcpy(&value, place, sizeof value);
    return value;
}

/* ---- encoding ---- */

static void frame_encode_fields(struct bh_buf *out, const struct bh_fields *fields,
                                const unsigned char *value);

/* Bytes that are no UTF-8 become '?': a driver's text or a message cut in the middle
 * of a character must not make a frame that the other side refuses. */
static void
frame_encode_text(struct bh_buf *out, const char *text, size_t length, size_t max)
{
    if (length > max) {
        out->overflow = true;
        return;
    }
    frame_put_number(out, length, 4);
    for (size_t at = 0; at < length;) {
        size_t step = bh_utf8_step(text + at, length - at);

        bh_buf_put(out, step ? text + at : "?", step ? step : 1);
        at += step ? step : 1;
    }
}

static void
frame_encode_texts(struct bh_buf *out, const struct bh_field *field, const struct bh_texts *texts)
{
    if (texts->count > frame_max_of(field, BH_FIELD_ITEMS_MAX)) {
        out->overflow = true;
        return;
    }
    frame_put_number(out, texts->count, 4);
    for (uint32_t i = 0; i < texts->count; i++)
        frame_encode_text(out, texts->items[i], strlen(texts->items[i]), BH_FIELD_TEXT_MAX);
}

static void
frame_encode_items(struct bh_buf *out, const struct bh_field *field, const unsigned char *items,
                   uint32_t count)
{
    if (count > frame_max_of(field, BH_FIELD_ITEMS_MAX)) {
        out->overflow = true;
        return;
    }
    frame_put_number(out, count, 4);
    for (uint32_t i = 0; i < count; i++)
        frame_encode_fields(out, field->of, items + (size_t)i * field->of->size);
}

static void
frame_encode_field(struct bh_buf *out, const struct bh_field *field, const unsigned char *value)
{
    const unsigned char *place = value + field->offset;

    switch (field->kind) {
    case BH_FIELD_BOOL:
        frame_put_number(out, *(const bool *)place, 1);
        return;
    case BH_FIELD_U32:
    case BH_FIELD_I32:
    case BH_FIELD_ENUM:
        frame_put_number(out, frame_load_u32(place), 4);
        return;
    case BH_FIELD_U64:
    case BH_FIELD_NS:
        frame_put_number(out, *(const uint64_t *)(const void *)place, 8);
        return;
    case BH_FIELD_STR:
        frame_encode_text(out, (const char *)place, strnlen((const char *)place, field->size),
                          field->size - 1);
        return;
    case BH_FIELD_TEXT: {
        const char *text = *(const char *const *)(const void *)place;

        frame_encode_text(out, text, text ? strlen(text) : 0, frame_max_of(field, BH_FIELD_TEXT_MAX));
        return;
    }
    case BH_FIELD_TEXTS:
        frame_encode_texts(out, field, (const void *)place);
        return;
    case BH_FIELD_HEX:
        bh_buf_put(out, place, field->size);
        return;
    case BH_FIELD_STRUCT:
        frame_encode_fields(out, field->of, place);
        return;
    case BH_FIELD_ARRAY:
        frame_encode_items(out, field, place, frame_load_u32(value + field->count_offset));
        return;
    case BH_FIELD_LIST: {
        const struct bh_list *list = (const void *)place;

        frame_encode_items(out, field, list->items, list->count);
        return;
    }
    case BH_FIELD_POINTER ... BH_FIELD_ROWS:
        break;
    }
    BH_ASSERT(!"a field kind that frames carry");
}

static void
frame_encode_fields(struct bh_buf *out, const struct bh_fields *fields, const unsigned char *value)
{
    for (uint32_t i = 0; i < fields->count && !out->overflow; i++)
        frame_encode_field(out, &fields->fields[i], value);
}

void
bh_frame_encode(struct bh_buf *out, uint32_t number, const struct bh_fields *fields, const void *message)
{
    size_t start = out->length, length;

    BH_ASSERT(number <= UINT16_MAX);
    frame_put_number(out, 0, 4);
    frame_put_number(out, number, 2);
    frame_put_number(out, BH_WIRE_VERSION, 2);
    frame_encode_fields(out, fields, message);
    length = out->length - start;
    if (length > BH_FRAME_MAX)
        out->overflow = true;
    if (out->overflow) {
        out->length = start;
        return;
    }
    for (size_t i = 0; i < 4; i++)
        out->bytes[start + i] = (char)((length - 4) >> (8 * i));
}

/* ---- decoding ---- */

bh_rc
bh_frame_next(const char *bytes, size_t length, struct bh_frame *ret_frame, size_t *ret_used,
              struct bh_err *err)
{
    uint64_t follows, version;

    if (length < 4)
        return bh_err_set(err, BH_NOT_FOUND, "frame is not complete");
    follows = frame_number_at(bytes, 4);
    if (follows < BH_FRAME_HEADER - 4 || follows > BH_FRAME_MAX - 4)
        return bh_err_set(err, BH_INVALID, "frame of %llu bytes, expected 4 to %d",
                          (unsigned long long)follows, BH_FRAME_MAX - 4);
    if (length < BH_FRAME_HEADER)
        return bh_err_set(err, BH_NOT_FOUND, "frame is not complete");
    version = frame_number_at(bytes + 6, 2);
    if (version != BH_WIRE_VERSION)
        return bh_err_set(err, BH_INVALID, "frame of version %llu, this program speaks %d",
                          (unsigned long long)version, BH_WIRE_VERSION);
    if (length < 4 + follows)
        return bh_err_set(err, BH_NOT_FOUND, "frame is not complete");
    *ret_frame = (struct bh_frame){ .number = (uint32_t)frame_number_at(bytes + 4, 2),
                                    .version = (uint32_t)version,
                                    .payload = bytes + BH_FRAME_HEADER,
                                    .length = follows - 4 };
    *ret_used = 4 + follows;
    return BH_OK;
}

/* What is left of a payload, and where its texts and lists go. */
struct frame_reader {
    const char *bytes;
    size_t left;
    struct bh_arena *arena;
    const struct bh_fields *fields; /* of the struct being read, for messages */
    const struct bh_field *field;
    struct bh_err *err;
};

static bh_rc frame_decode_fields(struct frame_reader *r, const struct bh_fields *fields,
                                 unsigned char *ret_value);

static bh_rc
frame_refuse(struct frame_reader *r, bh_rc rc, const char *why)
{
    return bh_err_set(r->err, rc, "%s.%s: %s", r->fields->name, r->field->name, why);
}

/* The next `length` bytes. */
static bh_rc
frame_read_bytes(struct frame_reader *r, size_t length, const char **ret_bytes)
{
    if (length > r->left)
        return frame_refuse(r, BH_INVALID, "the message ends too early");
    *ret_bytes = r->bytes;
    r->bytes += length;
    r->left -= length;
    return BH_OK;
}

static bh_rc
frame_read_number(struct frame_reader *r, size_t width, uint64_t *ret_value)
{
    const char *bytes;
    bh_rc rc = frame_read_bytes(r, width, &bytes);

    if (rc != BH_OK)
        return rc;
    *ret_value = frame_number_at(bytes, width);
    return BH_OK;
}

static bh_rc
frame_read_text(struct frame_reader *r, size_t max, const char **ret_text, size_t *ret_length)
{
    uint64_t length;
    bh_rc rc = frame_read_number(r, 4, &length);

    if (rc != BH_OK)
        return rc;
    if (length > max)
        return frame_refuse(r, BH_INVALID, "the text is too long");
    rc = frame_read_bytes(r, length, ret_text);
    if (rc != BH_OK)
        return rc;
    for (size_t at = 0, step; at < length; at += step) {
        step = bh_utf8_step(*ret_text + at, length - at);
        if (step == 0 || (*ret_text)[at] == '\0')
            return frame_refuse(r, BH_INVALID, "the text is not UTF-8 without NUL");
    }
    *ret_length = length;
    return BH_OK;
}

static bh_rc
frame_decode_bool(struct frame_reader *r, bool *ret_value)
{
    uint64_t number;
    bh_rc rc = frame_read_number(r, 1, &number);

    if (rc != BH_OK)
        return rc;
    if (number > 1)
        return frame_refuse(r, BH_INVALID, "neither true nor false");
    *ret_value = number;
    return BH_OK;
}

static bh_rc
frame_decode_number(struct frame_reader *r, unsigned char *place)
{
    const struct bh_field *field = r->field;
    bool wide = field->kind == BH_FIELD_U64 || field->kind == BH_FIELD_NS;
    uint64_t number;
    bh_rc rc = frame_read_number(r, wide ? 8 : 4, &number);

    if (rc != BH_OK)
        return rc;
    if (field->kind == BH_FIELD_ENUM && (number >= field->name_count || !field->names[number]))
        return frame_refuse(r, BH_INVALID, "no such value");
    if (wide)
        memcpy(place, &number, 8);
    else
        memcpy(place, &(uint32_t){ (uint32_t)number }, 4);
    return BH_OK;
}

static bh_rc
frame_decode_str(struct frame_reader *r, char *place)
{
    size_t length;
    const char *text;
    bh_rc rc = frame_read_text(r, r->field->size - 1, &text, &length);

    if (rc != BH_OK)
        return rc;
    memcpy(place, text, length);
    memset(place + length, 0, r->field->size - length);
    return BH_OK;
}

static bh_rc
frame_decode_text(struct frame_reader *r, size_t max, const char **place)
{
    size_t length;
    const char *text;
    char *copy;
    bh_rc rc = frame_read_text(r, max, &text, &length);

    if (rc != BH_OK)
        return rc;
    copy = bh_arena_strndup(r->arena, text, length);
    if (!copy)
        return frame_refuse(r, BH_FULL, "no room for the text");
    *place = copy;
    return BH_OK;
}

/* How many items follow.  Each takes at least a byte, so a count that the rest of the
 * message cannot hold is refused before memory is asked for. */
static bh_rc
frame_read_count(struct frame_reader *r, uint32_t *ret_count)
{
    uint64_t count;
    bh_rc rc = frame_read_number(r, 4, &count);

    if (rc != BH_OK)
        return rc;
    if (count > frame_max_of(r->field, BH_FIELD_ITEMS_MAX))
        return frame_refuse(r, BH_INVALID, "too many items");
    if (count > r->left)
        return frame_refuse(r, BH_INVALID, "the message ends too early");
    *ret_count = (uint32_t)count;
    return BH_OK;
}

static bh_rc
frame_decode_texts(struct frame_reader *r, struct bh_texts *place)
{
    const char **items;
    uint32_t count;
    bh_rc rc = frame_read_count(r, &count);

    if (rc != BH_OK)
        return rc;
    *place = (struct bh_texts){ 0 };
    if (count == 0)
        return BH_OK;
    items = bh_arena_alloc(r->arena, (size_t)count * sizeof *items);
    if (!items)
        return frame_refuse(r, BH_FULL, "no room for the list");
    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = frame_decode_text(r, BH_FIELD_TEXT_MAX, &items[i]);
    if (rc == BH_OK)
        *place = (struct bh_texts){ .items = items, .count = count };
    return rc;
}

static bh_rc
frame_decode_items(struct frame_reader *r, unsigned char *items, uint32_t count)
{
    const struct bh_fields *of = r->field->of;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = frame_decode_fields(r, of, items + (size_t)i * of->size);
    return rc;
}

static bh_rc
frame_decode_array(struct frame_reader *r, unsigned char *value)
{
    const struct bh_field *field = r->field;
    uint32_t count;
    bh_rc rc = frame_read_count(r, &count);

    if (rc != BH_OK)
        return rc;
    memset(value + field->offset, 0, field->size);
    memcpy(value + field->count_offset, &count, sizeof count);
    return frame_decode_items(r, value + field->offset, count);
}

static bh_rc
frame_decode_list(struct frame_reader *r, struct bh_list *place)
{
    void *items;
    uint32_t count;
    bh_rc rc = frame_read_count(r, &count);

    if (rc != BH_OK)
        return rc;
    *place = (struct bh_list){ 0 };
    if (count == 0)
        return BH_OK;
    items = bh_arena_alloc(r->arena, (size_t)count * r->field->of->size);
    if (!items)
        return frame_refuse(r, BH_FULL, "no room for the list");
    *place = (struct bh_list){ .items = items, .count = count };
    return frame_decode_items(r, items, count);
}

static bh_rc
frame_decode_hex(struct frame_reader *r, unsigned char *place)
{
    const char *bytes;
    bh_rc rc = frame_read_bytes(r, r->field->size, &bytes);

    if (rc != BH_OK)
        return rc;
    memcpy(place, bytes, r->field->size);
    return BH_OK;
}

static bh_rc
frame_decode_field(struct frame_reader *r, unsigned char *value)
{
    unsigned char *place = value + r->field->offset;

    switch (r->field->kind) {
    case BH_FIELD_BOOL:
        return frame_decode_bool(r, (void *)place);
    case BH_FIELD_U32:
    case BH_FIELD_I32:
    case BH_FIELD_ENUM:
    case BH_FIELD_U64:
    case BH_FIELD_NS:
        return frame_decode_number(r, place);
    case BH_FIELD_STR:
        return frame_decode_str(r, (char *)place);
    case BH_FIELD_TEXT:
        return frame_decode_text(r, frame_max_of(r->field, BH_FIELD_TEXT_MAX), (void *)place);
    case BH_FIELD_TEXTS:
        return frame_decode_texts(r, (void *)place);
    case BH_FIELD_HEX:
        return frame_decode_hex(r, place);
    case BH_FIELD_STRUCT:
        return frame_decode_fields(r, r->field->of, place);
    case BH_FIELD_ARRAY:
        return frame_decode_array(r, value);
    case BH_FIELD_LIST:
        return frame_decode_list(r, (void *)place);
    case BH_FIELD_POINTER ... BH_FIELD_ROWS:
        break;
    }
    BH_ASSERT(!"a field kind that frames carry");
    return BH_BUG;
}

static bh_rc
frame_decode_fields(struct frame_reader *r, const struct bh_fields *fields, unsigned char *ret_value)
{
    const struct bh_fields *outer = r->fields;
    const struct bh_field *outer_field = r->field;
    bh_rc rc = BH_OK;

    r->fields = fields;
    for (uint32_t i = 0; i < fields->count && rc == BH_OK; i++) {
        r->field = &fields->fields[i];
        rc = frame_decode_field(r, ret_value);
    }
    r->fields = outer;
    r->field = outer_field;
    return rc;
}

bh_rc
bh_frame_decode(const struct bh_frame *frame, const struct bh_fields *fields, void *ret_message,
                struct bh_arena *arena, struct bh_err *err)
{
    struct frame_reader reader = {
        .bytes = frame->payload, .left = frame->length, .arena = arena, .err = err
    };
    bh_rc rc;

    memset(ret_message, 0, fields->size);
    rc = frame_decode_fields(&reader, fields, ret_message);
    if (rc != BH_OK)
        return rc;
    if (reader.left > 0)
        return bh_err_set(err, BH_INVALID, "%s: %zu bytes are left over", fields->name, reader.left);
    return BH_OK;
}
