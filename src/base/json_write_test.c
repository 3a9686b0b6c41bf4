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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_strings),    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_every_kind), cmocka_unit_test(test_zeros_are_left_out),
    cmocka_unit_test(test_writer),     cmocka_unit_test(test_no_room),
};

BH_TEST_MAIN(tests)
