#include "wire/frame.h"

#include "base/test.h"
#include "wire/message.h"

/* Every kind of field in one struct. */
struct part {
    uint32_t number;
};
struct whole {
    struct part array[2];
    uint32_t count;
    bool flag;
    uint8_t hash[2];
    uint32_t kind;
    struct bh_list list;
    struct part part;
    char str[4];
    const char *text;
    struct bh_texts texts;
};

static const char *const kind_names[] = { "zero", NULL, "two" };
static const struct bh_field part_fields[] = { BH_F(struct part, number, BH_FIELD_U32) };
static const struct bh_fields part = BH_FIELDS("part", struct part, part_fields);
static const struct bh_field whole_fields[] = {
    BH_F_ARRAY(struct whole, array, count, part, 2),
    BH_F(struct whole, flag, BH_FIELD_BOOL),
    BH_F(struct whole, hash, BH_FIELD_HEX),
    BH_F_ENUM(struct whole, kind, kind_names),
    BH_F(struct whole, list, BH_FIELD_LIST, .of = &part, .max = 3),
    BH_F(struct whole, part, BH_FIELD_STRUCT, .of = &part),
    BH_F(struct whole, str, BH_FIELD_STR),
    BH_F(struct whole, text, BH_FIELD_TEXT, .max = 5),
    BH_F(struct whole, texts, BH_FIELD_TEXTS, .max = 2),
};
static const struct bh_fields whole = BH_FIELDS("whole", struct whole, whole_fields);

/* The format, byte by byte: a change here breaks running systems. */
static const unsigned char golden[] = {
    61,   0,    0, 0, 7,   0,    BH_WIRE_VERSION,
    0,    1,    0, 0, 0,   0x78, 0x56,
    0x34, 0x12,       /* array */
    1,                /* flag */
    0xab, 0xcd,       /* hash */
    2,    0,    0, 0, /* kind */
    2,    0,    0, 0, 1,   0,    0,
    0,    2,    0, 0, 0,              /* list */
    3,    0,    0, 0,                 /* part */
    3,    0,    0, 0, 'a', 'b',  'c', /* str */
    2,    0,    0, 0, 'h', 'i',       /* text */
    2,    0,    0, 0, 1,   0,    0,
    0,    'x',  0, 0, 0,   0, /* texts */
    0,
};
enum { GOLDEN = sizeof golden - 1, AT = BH_FRAME_HEADER };

static void
test_format(void **state)
{
    const char *items[] = { "x", "" };
    struct part list[] = { { 1 }, { 2 } };
    struct whole value = { .array = { { 0x12345678 } },
                           .count = 1,
                           .flag = true,
                           .hash = { 0xab, 0xcd },
                           .kind = 2,
                           .list = { list, 2 },
                           .part = { 3 },
                           .str = "abc",
                           .text = "hi",
                           .texts = { items, 2 } };
    char memory[256];
    struct bh_buf out;

    assert_true(bh_fields_ordered(&whole));
    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_frame_encode(&out, 7, &whole, &value);
    assert_false(out.overflow);
    BH_CHECK_EQ("length", out.length, GOLDEN);
    for (size_t i = 0; i < GOLDEN && i < out.length; i++)
        if ((unsigned char)out.bytes[i] != golden[i])
            BH_CHECK_EQ("first difference at", i, -1);
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    size_t at; /* byte of `golden` to change */
    unsigned char byte;
    const char *why; /* NULL: still right */
} damage[] = {
    { "nothing", AT + 4, 0x78, NULL },
    { "array count", AT, 3, "whole.array: too many items" },
    { "hostile count", AT + 3, 0x7f, "whole.array: too many items" },
    { "bool", AT + 8, 2, "whole.flag: neither true nor false" },
    { "enum gap", AT + 11, 1, "whole.kind: no such value" },
    { "enum past end", AT + 11, 3, "whole.kind: no such value" },
    { "list count", AT + 15, 4, "whole.list: too many items" },
    { "str too long", AT + 31, 4, "whole.str: the text is too long" },
    { "str NUL", AT + 36, 0, "whole.str: the text is not UTF-8 without NUL" },
    { "str not UTF-8", AT + 35, 0xff, "whole.str: the text is not UTF-8 without NUL" },
    { "text too long", AT + 38, 6, "whole.text: the text is too long" },
    { "texts count", AT + 44, 3, "whole.texts: too many items" },
    { "texts item long", AT + 51, 1, "whole.texts: the text is too long" },
    { "texts item short", AT + 48, 0, "whole.texts: the message ends too early" },
    { "short at the end", AT + 53, 1, "whole.texts: the message ends too early" },
};

static void
test_damage(void **state)
{
    for (size_t i = 0; i < BH_COUNT(damage); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4096);
        struct bh_frame frame = { 0 };
        struct bh_err err = { 0 };
        struct whole value;
        char bytes[GOLDEN];
        size_t used = 0;
        bh_rc rc;

        memcpy(bytes, golden, GOLDEN);
        bytes[damage[i].at] = (char)damage[i].byte;
        BH_CHECK_EQ(damage[i].name, bh_frame_next(bytes, GOLDEN, &frame, &used, &err), BH_OK);
        rc = bh_frame_decode(&frame, &whole, &value, arena, &err);
        BH_CHECK_EQ(damage[i].name, rc, damage[i].why ? BH_INVALID : BH_OK);
        if (damage[i].why)
            BH_CHECK_STR(damage[i].name, err.msg, damage[i].why);
    }
    BH_CHECK_DONE();
}

static void
test_left_over(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4096);
    struct bh_frame frame = { .payload = (const char *)golden + AT, .length = GOLDEN - AT + 1 };
    struct bh_err err = { 0 };
    struct whole value;

    BH_CHECK_EQ("one byte more", bh_frame_decode(&frame, &whole, &value, arena, &err), BH_INVALID);
    BH_CHECK_STR("one byte more", err.msg, "whole: 1 bytes are left over");
    BH_CHECK_DONE();
}

static void
test_small_arena(void **state)
{
    struct bh_frame frame = { .payload = (const char *)golden + AT, .length = GOLDEN - AT };
    struct bh_err err = { 0 };
    struct whole value;

    for (size_t room = 1; room < 64; room += 8) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(room);

        BH_CHECK_EQ("too small", bh_frame_decode(&frame, &whole, &value, arena, &err), BH_FULL);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    unsigned char bytes[BH_FRAME_HEADER];
    size_t length;
    bh_rc rc;
} headers[] = {
    { "nothing", { 0 }, 0, BH_NOT_FOUND },
    { "three bytes", { 4, 0, 0 }, 3, BH_NOT_FOUND },
    { "no header fits", { 3, 0, 0, 0 }, 4, BH_INVALID },
    { "longest", { 0xfc, 0xff, 0x3f, 0, 1, 0, BH_WIRE_VERSION }, 8, BH_NOT_FOUND },
    { "one too long", { 0xfd, 0xff, 0x3f, 0, 1, 0, BH_WIRE_VERSION }, 8, BH_INVALID },
    { "hostile length", { 0xff, 0xff, 0xff, 0xff }, 4, BH_INVALID },
    { "other version", { 4, 0, 0, 0, 1, 0, BH_WIRE_VERSION + 1, 0 }, 8, BH_INVALID },
    { "empty payload", { 4, 0, 0, 0, 1, 0, BH_WIRE_VERSION, 0 }, 8, BH_OK },
};

static void
test_headers(void **state)
{
    for (size_t i = 0; i < BH_COUNT(headers); i++) {
        struct bh_frame frame = { .number = 77 };
        struct bh_err err = { 0 };
        size_t used = 0;

        BH_CHECK_EQ(headers[i].name,
                    bh_frame_next((const char *)headers[i].bytes, headers[i].length, &frame, &used, &err),
                    headers[i].rc);
        BH_CHECK_EQ(headers[i].name, frame.number, headers[i].rc == BH_OK ? 1 : 77);
    }
    BH_CHECK_DONE();
}

/* What cannot be said in a frame is refused by the sender; what can, always decodes. */
static void
test_encode_limits(void **state)
{
    const char *items[] = { "", "", "" };
    struct part list[4] = { { 0 } };
    struct {
        const char *name;
        struct whole value;
        bool fits;
    } cases[] = {
        { "bytes that are no UTF-8", { .str = { 'a', '\xff', '\xc3', 0 }, .text = "\xe2\x82" }, true },
        { "text too long", { .text = "sixsix" }, false },
        { "too many texts", { .texts = { items, 3 } }, false },
        { "list too long", { .list = { list, 4 } }, false },
        { "array too long", { .count = 3 }, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4096);
        struct bh_frame frame;
        struct bh_err err = { 0 };
        struct whole value;
        char memory[256];
        struct bh_buf out;
        size_t used;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_frame_encode(&out, 7, &whole, &cases[i].value);
        BH_CHECK_EQ(cases[i].name, out.overflow, !cases[i].fits);
        if (out.overflow)
            continue;
        assert_int_equal(bh_frame_next(out.bytes, out.length, &frame, &used, &err), BH_OK);
        assert_int_equal(bh_frame_decode(&frame, &whole, &value, arena, &err), BH_OK);
        BH_CHECK_STR(cases[i].name, value.str, "a??");
        BH_CHECK_STR(cases[i].name, value.text, "??");
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_format),      cmocka_unit_test(test_damage),  cmocka_unit_test(test_left_over),
    cmocka_unit_test(test_small_arena), cmocka_unit_test(test_headers), cmocka_unit_test(test_encode_limits),
};

BH_TEST_MAIN(tests)
