#include "base/json.h"

#include "base/test.h"
#include "base/test_sample.h"

/* RFC 8785, section 3.2.2.2: the two-letter escapes, \u00xx in lower case for other
 * control characters, everything else as it is. */
static const struct {
    const char *name, *text;
    size_t length;
    const char *json;
} strings[] = {
    { "empty", "", 0, "\"\"" },
    { "plain", "a b/c", 5, "\"a b/c\"" },
    { "quote and backslash", "\"\\", 2, "\"\\\"\\\\\"" },
    { "short escapes", "\b\t\n\f\r", 5, "\"\\b\\t\\n\\f\\r\"" },
    { "other control characters", "\x01\x1f", 2, "\"\\u0001\\u001f\"" },
    { "NUL", "a\0b", 3, "\"a\\u0000b\"" },
    { "delete is plain", "\x7f", 1, "\"\x7f\"" },
    { "UTF-8 is plain", "\xc2\x80\xe2\x82\xac\xf0\x9f\x98\x80", 9,
      "\"\xc2\x80\xe2\x82\xac\xf0\x9f\x98\x80\"" },
    { "a stray byte", "a\x80z", 3, "\"a\xef\xbf\xbdz\"" },
    { "overlong", "\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "cut off in a character", "a\xe2\x82\xac", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\"" },
};

static void
test_strings(void **state)
{
    for (size_t i = 0; i < BH_COUNT(strings); i++) {
        char memory[128];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_json_put_strn(&out, strings[i].text, strings[i].length);
        BH_CHECK_STR(strings[i].name, bh_buf_text(&out), strings[i].json);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    uint64_t number;
    const char *json;
} numbers[] = {
    { "zero", 0, "0" },
    { "largest plain", 9007199254740991, "9007199254740991" },
    { "first string", 9007199254740992, "\"9007199254740992\"" },
    { "largest", UINT64_MAX, "\"18446744073709551615\"" },
};

static void
test_numbers(void **state)
{
    for (size_t i = 0; i < BH_COUNT(numbers); i++) {
        char memory[64];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_json_put_u64(&out, numbers[i].number);
        BH_CHECK_STR(numbers[i].name, bh_buf_text(&out), numbers[i].json);
    }
    BH_CHECK_DONE();
}

static void
test_every_kind(void **state)
{
    const char *tags[] = { "x", "y" };
    struct sample_tenant tenants[] = { { 1, 2 }, { 3, 0 } };
    struct sample sample = {
        .at = 1,
        .big = 2,
        .colour = ZOO_BLUE,
        .count = 3,
        .delta = -4,
        .digest = { 0xde, 0xad, 0, 1 },
        .flag = true,
        .name = "name",
        .nested = { 5, 6 },
        .slots = { { 7, 8 }, { 9, 10 } },
        .slot_count = 1,
        .tags = { tags, 2 },
        .tenants = { tenants, 2 },
        .text = "text",
    };
    char memory[512];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_json_encode(&out, &sample_fields, &sample);
    BH_CHECK_STR("zoo", bh_buf_text(&out),
                 "{\"at\":\"1\",\"big\":2,\"colour\":\"blue\",\"count\":3,\"delta\":-4,"
                 "\"digest\":\"dead0001\",\"flag\":true,\"name\":\"name\","
                 "\"nested\":{\"id\":5,\"limit\":6},\"slots\":[{\"id\":7,\"limit\":8}],"
                 "\"tags\":[\"x\",\"y\"],\"tenants\":[{\"id\":1,\"limit\":2},{\"id\":3}],"
                 "\"text\":\"text\"}");
    BH_CHECK_DONE();
}

static void
test_zeros_are_left_out(void **state)
{
    struct sample sample = { 0 };
    struct sample_tenant tenant = { 0 };
    char memory[64];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_json_encode(&out, &sample_fields, &sample);
    BH_CHECK_STR("but for the flagged", bh_buf_text(&out), "{\"count\":0}");
    bh_buf_clear(&out);
    bh_json_encode(&out, &sample_tenant_fields, &tenant);
    BH_CHECK_STR("and the required", bh_buf_text(&out), "{\"id\":0}");
    BH_CHECK_DONE();
}

static void
test_writer(void **state)
{
    struct sample_tenant tenant = { 1, 2 };
    char memory[512];
    struct bh_buf out;
    struct bh_json_writer w;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    w = bh_json_begin(&out);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "s", "t\n");
    bh_json_str(&w, "none", NULL);
    bh_json_strn(&w, "part", "abcdef", 3);
    bh_json_open(&w, "list", '[');
    bh_json_u64(&w, NULL, UINT64_MAX);
    bh_json_i64(&w, NULL, -1);
    bh_json_open(&w, NULL, '{');
    bh_json_close(&w, '}');
    bh_json_open(&w, NULL, '[');
    bh_json_close(&w, ']');
    bh_json_close(&w, ']');
    bh_json_ns(&w, "at", 5);
    bh_json_bool(&w, "yes", true);
    bh_json_bool(&w, "no", false);
    bh_json_struct(&w, "tenant", &sample_tenant_fields, &tenant);
    bh_json_raw(&w, "raw", "[1,2]");
    bh_json_close(&w, '}');
    BH_CHECK_STR("document", bh_buf_text(&out),
                 "{\"s\":\"t\\n\",\"none\":\"\",\"part\":\"abc\","
                 "\"list\":[\"18446744073709551615\",-1,{},[]],\"at\":\"5\",\"yes\":true,"
                 "\"no\":false,\"tenant\":{\"id\":1,\"limit\":2},\"raw\":[1,2]}");
    BH_CHECK_EQ("all closed", w.depth, 0);
    BH_CHECK_DONE();
}

/* A buffer of any size up to what is needed overflows and stays within its bounds. */
static void
test_no_room(void **state)
{
    struct sample sample = { .at = 1, .name = "name", .text = "a\nb" };
    const size_t need = strlen("{\"at\":\"1\",\"count\":0,\"name\":\"name\",\"text\":\"a\\nb\"}");

    for (size_t size = 0; size <= need; size++) {
        char memory[64];
        struct bh_buf out;

        memset(memory, '#', sizeof memory);
        bh_buf_init_fixed(&out, memory, size);
        bh_json_encode(&out, &sample_fields, &sample);
        BH_CHECK_EQ("overflow", out.overflow, size < need);
        BH_CHECK_EQ("the byte behind", memory[size], '#');
    }
    BH_CHECK_DONE();
}

/* ---- what is only written ---- */

struct shown {
    struct bh_slice amount, json, jsons, slice;
    int64_t left;
    const char *lines, *text;
    struct bh_list rows, u64s;
    uint32_t old, null;
    const struct sample_tenant *pointer;
};
static const struct bh_field shown_rows[] = {
    BH_F(struct shown, amount, BH_FIELD_AMOUNT),
    BH_F(struct shown, json, BH_FIELD_JSON),
    BH_F(struct shown, jsons, BH_FIELD_JSONS),
    BH_F(struct shown, left, BH_FIELD_I64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct shown, lines, BH_FIELD_LINES, .flags = BH_FIELD_NULLABLE),
    BH_F(struct shown, null, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED | BH_FIELD_NULLABLE),
    BH_F(struct shown, old, BH_FIELD_U32, .flags = BH_FIELD_DEPRECATED),
    BH_F_OLD(struct shown, old, "older", BH_FIELD_U32),
    BH_F(struct shown, pointer, BH_FIELD_POINTER, .of = &sample_tenant_fields),
    BH_F(struct shown, rows, BH_FIELD_ROWS, .of = &sample_tenant_fields, .flags = BH_FIELD_REQUIRED),
    BH_F(struct shown, slice, BH_FIELD_SLICE),
    BH_F(struct shown, text, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED | BH_FIELD_NULLABLE),
    BH_F(struct shown, u64s, BH_FIELD_U64S),
};
static const struct bh_fields shown_fields = BH_FIELDS("shown", struct shown, shown_rows);

static void
test_replies(void **state)
{
    static uint64_t both[] = { 1, UINT64_MAX };
    static const struct sample_tenant tenant = { .id = 7 };
    static const struct {
        const char *name;
        struct shown value;
        const char *json;
    } rows[] = {
        { "zeros are values", { .left = 0 }, "{\"left\":0,\"null\":0,\"text\":null}" },
        { "what is not known",
          { .left = BH_UNSET, .null = BH_UNSET, .text = "" },
          "{\"null\":null,\"text\":\"\"}" },
        { "all",
          { { "null", 4 },
            { "{}", 2 },
            { "[{}]", 4 },
            { "a\nb", 1 },
            -1 - 1,
            "a\nb\n",
            "t",
            { NULL, 0 },
            { both, 2 },
            3,
            4,
            &tenant },
          "{\"amount\":null,\"json\":{},\"jsons\":[{}],\"left\":-2,\"lines\":[\"a\",\"b\"],\"null\":4,\"old\":3,"
          "\"pointer\":{\"id\":7},\"slice\":\"a\",\"text\":\"t\",\"u64s\":[1,\"18446744073709551615\"]}" },
        { "no lines are a list",
          { .left = BH_UNSET, .lines = "" },
          "{\"lines\":[],\"null\":0,\"text\":null}" },
    };

    assert_true(bh_fields_ordered(&shown_fields));
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char memory[400];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_json_encode(&out, &shown_fields, &rows[i].value);
        BH_CHECK_STR(rows[i].name, bh_buf_text(&out), rows[i].json);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replies),
    cmocka_unit_test(test_strings),
    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_every_kind),
    cmocka_unit_test(test_zeros_are_left_out),
    cmocka_unit_test(test_writer),
    cmocka_unit_test(test_no_room),
};

BH_TEST_MAIN(tests)
