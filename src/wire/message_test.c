#include "wire/message.h"

#include "base/test.h"
#include "wire/frame.h"
#include "wire/fill_test.h"

static const struct {
    const char *name;
    uint32_t number;
    size_t size;
} table[] = {
#define BH_MESSAGE(id, number, type, from, doc) { #id, number, sizeof(type) },
#include "tables/messages.tbl"
#undef BH_MESSAGE
};

enum { FRAME_MOST = 16384 };

/* One message of every kind, empty or full, as bytes. */
static size_t
encoded(const struct bh_fields *fields, uint32_t number, const void *message, char *ret_bytes)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, ret_bytes, FRAME_MOST);
    bh_frame_encode(&out, number, fields, message);
    assert_false(out.overflow);
    return out.length;
}

static void
test_table(void **state)
{
    for (size_t i = 0; i < BH_COUNT(table); i++) {
        const struct bh_fields *fields = bh_message_fields(table[i].number);

        BH_CHECK(table[i].name, fields != NULL);
        if (!fields)
            continue;
        BH_CHECK_EQ(table[i].name, fields->size, table[i].size);
        BH_CHECK(table[i].name, bh_fields_ordered(fields));
        BH_CHECK_STR(table[i].name, bh_message_name(table[i].number), fields->name);
    }
    BH_CHECK("number 0", bh_message_fields(0) == NULL);
    BH_CHECK("a gap", bh_message_fields(31) == NULL);
    BH_CHECK("past the end", bh_message_fields(UINT32_MAX) == NULL);
    BH_CHECK_STR("past the end", bh_message_name(65536), "unknown message");
    BH_CHECK_DONE();
}

/* Decoding gives the same struct, and all its frames' beginnings are refused. */
static void
check_round_trip(const char *name, uint32_t number, const void *message, bool cut)
{
    const struct bh_fields *fields = bh_message_fields(number);
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    unsigned char got[sizeof(struct bh_msg_start) + sizeof(struct bh_msg_inventory)];
    char bytes[FRAME_MOST], again[FRAME_MOST];
    size_t length = encoded(fields, number, message, bytes), used = 0;
    struct bh_err err = { 0 };
    struct bh_frame frame = { 0 };

    assert_true(fields->size <= sizeof got);
    BH_CHECK_EQ(name, bh_frame_next(bytes, length, &frame, &used, &err), BH_OK);
    BH_CHECK_EQ(name, used, length);
    BH_CHECK_EQ(name, frame.number, number);
    BH_CHECK_EQ(name, bh_frame_decode(&frame, fields, got, arena, &err), BH_OK);
    BH_CHECK(name, wire_same(fields, message, got));
    BH_CHECK_EQ(name, encoded(fields, number, got, again), length);
    BH_CHECK(name, memcmp(bytes, again, length) == 0);
    for (size_t n = 0; cut && n < frame.length; n++) {
        struct bh_frame shorter = frame;

        shorter.length = n;
        BH_CHECK_EQ(name, bh_frame_decode(&shorter, fields, got, arena, &err), BH_INVALID);
        bh_arena_reset(arena);
    }
    for (size_t n = 0; n < length; n++)
        BH_CHECK_EQ(name, bh_frame_next(bytes, n, &frame, &used, &err), BH_NOT_FOUND);
}

static void
test_round_trip(void **state)
{
    for (size_t i = 0; i < BH_COUNT(table); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
        void *message = bh_arena_alloc(arena, table[i].size);
        uint64_t seed = i;

        check_round_trip(table[i].name, table[i].number, message, true);
        wire_fill(bh_message_fields(table[i].number), message, arena, &seed);
        check_round_trip(table[i].name, table[i].number, message, true);
    }
    BH_CHECK_DONE();
}

/* Every bit of every full message turned over, one at a time: either it decodes, and
 * then to something that encodes again, or it is refused.  Sanitizers watch. */
static void
flip_bits(uint32_t number, char *bytes, size_t length)
{
    const struct bh_fields *fields = bh_message_fields(number);
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    char again[2 * FRAME_MOST];

    for (size_t bit = 0; bit < length * 8; bit++) {
        struct bh_err err = { 0 };
        struct bh_frame frame;
        size_t used;

        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        if (bh_frame_next(bytes, length, &frame, &used, &err) == BH_OK) {
            void *message = bh_arena_alloc(arena, fields->size);

            if (bh_frame_decode(&frame, fields, message, arena, &err) == BH_OK)
                BH_CHECK_EQ(fields->name, encoded(fields, frame.number, message, again), used);
            else
                BH_CHECK(fields->name, err.msg[0] != '\0');
        }
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        bh_arena_reset(arena);
    }
}

static void
test_bit_flips(void **state)
{
    for (size_t i = 0; i < BH_COUNT(table); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
        const struct bh_fields *fields = bh_message_fields(table[i].number);
        void *message = bh_arena_alloc(arena, table[i].size);
        char bytes[FRAME_MOST];
        uint64_t seed = 99 + i;

        wire_fill(fields, message, arena, &seed);
        flip_bits(table[i].number, bytes, encoded(fields, table[i].number, message, bytes));
    }
    BH_CHECK_DONE();
}

/* ---- the version ---- */

/* What the bytes of all messages depend on: names, kinds and sizes, in order (FNV-1a). */
static uint64_t
message_test_mix(uint64_t shape, const char *text, uint32_t number)
{
    for (const char *at = text; *at; at++)
        shape = (shape ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    for (uint32_t byte = 0; byte < 4; byte++)
        shape = (shape ^ (number >> 8 * byte & 0xff)) * UINT64_C(0x100000001b3);
    return shape;
}

static uint64_t
shape_of(uint64_t shape, const struct bh_fields *fields)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct bh_field *field = &fields->fields[i];

        shape = message_test_mix(shape, field->name, field->kind);
        for (uint32_t n = 0; n < field->name_count; n++)
            shape = message_test_mix(shape, field->names[n] ? field->names[n] : "", n);
        if (field->kind == BH_FIELD_HEX)
            shape = message_test_mix(shape, "bytes", field->size);
        if (field->of)
            shape = shape_of(shape, field->of);
    }
    return shape;
}

/* bulkheadd and bulkhead-node are upgraded one after the other: builds whose messages differ
 * must not take each other's frames, and say so. */
static void
test_version(void **state)
{
    static const struct {
        uint32_t version;
        uint64_t shape;
    } known = { 12, UINT64_C(0xa2665cfc35c43963) };
    uint64_t shape = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < BH_COUNT(table); i++)
        shape = shape_of(message_test_mix(shape, table[i].name, table[i].number),
                         bh_message_fields(table[i].number));
    BH_CHECK_EQ("messages changed: raise BH_WIRE_VERSION, put it and `shape` here", known.shape, shape);
    BH_CHECK_EQ("BH_WIRE_VERSION", known.version, BH_WIRE_VERSION);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_version),
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_round_trip),
    cmocka_unit_test(test_bit_flips),
};

BH_TEST_MAIN(tests)
