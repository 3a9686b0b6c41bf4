#include "base/slice.h"

#include "base/test.h"

static struct bh_slice
slice(const char *text)
{
    return (struct bh_slice){ text, strlen(text) };
}

/* The slice as text; "(none)" when it was not found. */
static const char *
slice_test_show(bool found, struct bh_slice got, char *memory, size_t size)
{
    if (!found)
        return "(none)";
    snprintf(memory, size, "%.*s", (int)got.length, got.text);
    return memory;
}

static const struct {
    const char *name, *object, *key, *value;
} gets[] = {
    { "a number", "{\"a\":1}", "a", "1" },
    { "the second", "{\"a\":1,\"b\":\"x\"}", "b", "\"x\"" },
    { "the last of many", "{\"a\":[1,{\"b\":2}],\"c\":{\"b\":3},\"b\":4}", "b", "4" },
    { "an object", "{\"a\":{\"b\":{}}}", "a", "{\"b\":{}}" },
    { "a list", "{\"a\":[[],[\"]\"]]}", "a", "[[],[\"]\"]]" },
    { "brackets in strings", "{\"x\":\"}],{\",\"a\":true}", "a", "true" },
    { "quotes in strings", "{\"x\":\"\\\"a\\\":\\\\\",\"a\":null}", "a", "null" },
    { "blanks", " { \"a\" :\n\t1 , \"b\" : [ ] } ", "b", "[ ]" },
    { "first of two", "{\"a\":1,\"a\":2}", "a", "1" },
    { "an escaped key", "{\"\\u0061\\n\":1}", "a\n", "1" },
    { "an empty key", "{\"\":1}", "", "1" },
    { "a key that begins alike", "{\"ab\":1,\"a\":2}", "a", "2" },
    { "absent", "{\"a\":1}", "b", "(none)" },
    { "in an empty object", "{}", "a", "(none)" },
    { "in a list", "[\"a\",1]", "a", "(none)" },
    { "in a string", "\"a\"", "a", "(none)" },
    { "in nothing", "", "a", "(none)" },
    { "cut in the key", "{\"a", "a", "(none)" },
    { "cut behind the key", "{\"a\"", "a", "(none)" },
    { "cut behind the colon", "{\"a\":", "a", "(none)" },
    { "cut in a string", "{\"a\":\"x", "a", "(none)" },
    { "cut behind a backslash", "{\"a\":\"x\\", "a", "(none)" },
    { "cut in an object", "{\"a\":{\"b\":1", "a", "(none)" },
    { "brackets that do not match", "{\"a\":[1}", "a", "(none)" },
    { "no colon", "{\"a\" 1}", "a", "(none)" },
    { "no comma", "{\"a\":1 \"b\":2}", "b", "(none)" },
    { "no value", "{\"a\":,\"b\":2}", "b", "(none)" },
    { "a key that is no string", "{1:2,\"b\":3}", "b", "(none)" },
};

static void
test_get(void **state)
{
    for (size_t i = 0; i < BH_COUNT(gets); i++) {
        char memory[64];
        struct bh_slice got;
        bool found = bh_slice_get(slice(gets[i].object), gets[i].key, &got);

        BH_CHECK_STR(gets[i].name, slice_test_show(found, got, memory, sizeof memory), gets[i].value);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *object, *key, *value; /* key NULL: none */
} firsts[] = {
    { "of one", "{\"job\":{\"id\":1}}", "job", "{\"id\":1}" },
    { "of two", "{\"a\":1,\"b\":2}", "a", "1" },
    { "escaped", "{\"a\\\"\":1}", "a\"", "1" },
    { "as long as fits", "{\"1234567\":1}", "1234567", "1" },
    { "too long", "{\"12345678\":1}", NULL, NULL },
    { "empty object", "{}", NULL, NULL },
    { "a list", "[1]", NULL, NULL },
    { "no value", "{\"a\"}", NULL, NULL },
};

static void
test_first_key(void **state)
{
    for (size_t i = 0; i < BH_COUNT(firsts); i++) {
        char key[8] = "", memory[64];
        struct bh_slice got = { 0 };
        bool found = bh_slice_first_key(slice(firsts[i].object), key, sizeof key, &got);

        BH_CHECK_EQ(firsts[i].name, found, firsts[i].key != NULL);
        if (!firsts[i].key)
            continue;
        BH_CHECK_STR(firsts[i].name, key, firsts[i].key);
        BH_CHECK_STR(firsts[i].name, slice_test_show(found, got, memory, sizeof memory), firsts[i].value);
    }
    BH_CHECK_DONE();
}

/* `items` joined by bars; `whole`: the array was walked to its end. */
static const struct {
    const char *name, *array, *items;
    bool whole;
} arrays[] = {
    { "empty", "[]", "", true },
    { "empty with blanks", " [ ] ", "", true },
    { "one", "[1]", "1|", true },
    { "of every kind", "[1,\"a,]\",[2,3],{\"b\":[4]},true,null,-5]",
      "1|\"a,]\"|[2,3]|{\"b\":[4]}|true|null|-5|", true },
    { "every form of number", "[-1,1.5,2E+3,2e-3]", "-1|1.5|2E+3|2e-3|", true },
    { "blanks", "[ 1 ,\n2 ]", "1|2|", true },
    { "cut behind an item", "[1,2", "1|2|", false },
    { "cut behind a comma", "[1,", "1|", false },
    { "a trailing comma", "[1,]", "1|", false },
    { "no comma", "[1 2]", "1|", false },
    { "brackets that do not match", "[1,[2},3]", "1|", false },
    { "an object", "{\"a\":1}", "", false },
    { "a string", "\"[1]\"", "", false },
};

static void
test_next_item(void **state)
{
    for (size_t i = 0; i < BH_COUNT(arrays); i++) {
        struct bh_slice array = slice(arrays[i].array), item;
        char items[128] = "";
        size_t cursor = 0, used = 0;

        while (bh_slice_next_item(array, &cursor, &item))
            used += (size_t)snprintf(items + used, sizeof items - used, "%.*s|", (int)item.length, item.text);
        BH_CHECK_STR(arrays[i].name, items, arrays[i].items);
        BH_CHECK_EQ(arrays[i].name, cursor == BH_SLICE_END, arrays[i].whole);
        BH_CHECK(arrays[i].name, !bh_slice_next_item(array, &cursor, &item));
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    bool good;
    uint64_t number;
} numbers[] = {
    { "zero", "0", true, 0 },
    { "plain", "42", true, 42 },
    { "quoted", "\"42\"", true, 42 },
    { "largest", "\"18446744073709551615\"", true, UINT64_MAX },
    { "one more", "18446744073709551616", false, 0 },
    { "negative", "-1", false, 0 },
    { "signed", "+1", false, 0 },
    { "fraction", "1.0", false, 0 },
    { "exponent", "1e3", false, 0 },
    { "zero first", "01", false, 0 },
    { "no digits", "\"\"", false, 0 },
    { "one quote", "\"", false, 0 },
    { "half quoted", "\"1", false, 0 },
    { "blanks", " 1", false, 0 },
    { "nothing", "", false, 0 },
    { "a word", "true", false, 0 },
};

static void
test_u64(void **state)
{
    for (size_t i = 0; i < BH_COUNT(numbers); i++) {
        uint64_t number = 7;

        BH_CHECK_EQ(numbers[i].name, bh_slice_u64(slice(numbers[i].text), &number), numbers[i].good);
        BH_CHECK_EQ(numbers[i].name, number, numbers[i].good ? numbers[i].number : 7);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text, *plain; /* plain NULL: refused */
} strings[] = {
    { "empty", "\"\"", "" },
    { "plain", "\"abc\"", "abc" },
    { "as long as fits", "\"1234567\"", "1234567" },
    { "too long", "\"12345678\"", NULL },
    { "short escapes", "\"\\\"\\\\\\/\\n\\t\"", "\"\\/\n\t" },
    { "more short escapes", "\"\\b\\f\\r\"", "\b\f\r" },
    { "ASCII by number", "\"\\u0041\\u006a\"", "Aj" },
    { "two bytes", "\"\\u00E9\"", "\xc3\xa9" },
    { "three bytes", "\"\\u20ac\"", "\xe2\x82\xac" },
    { "a surrogate pair", "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
    { "the last of all pairs", "\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf" },
    { "escape too long to fit", "\"12345\\u20ac\"", NULL },
    { "UTF-8", "\"\xc3\xa9\"", "\xc3\xa9" },
    { "NUL", "\"\\u0000\"", NULL },
    { "high half alone", "\"\\ud83d\"", NULL },
    { "high half and more", "\"\\ud83d\\u0041\"", NULL },
    { "low half alone", "\"\\ude00\"", NULL },
    { "unknown escape", "\"\\x41\"", NULL },
    { "bad digits", "\"\\u00g0\"", NULL },
    { "escape cut off", "\"\\u00\"", NULL },
    { "backslash at the end", "\"\\\"", NULL },
    { "raw line break", "\"a\nb\"", NULL },
    { "quote in the middle", "\"a\"b\"", NULL },
    { "no quotes", "abc", NULL },
    { "one quote", "\"", NULL },
    { "a number", "1", NULL },
    { "nothing", "", NULL },
};

static void
test_str(void **state)
{
    for (size_t i = 0; i < BH_COUNT(strings); i++) {
        char plain[8] = "";
        bool good = bh_slice_str(slice(strings[i].text), plain, sizeof plain);

        BH_CHECK_EQ(strings[i].name, good, strings[i].plain != NULL);
        if (strings[i].plain)
            BH_CHECK_STR(strings[i].name, plain, strings[i].plain);
    }
    BH_CHECK("no memory at all", !bh_slice_str(slice("\"\""), NULL, 0));
    BH_CHECK_DONE();
}

/* The deepest value that a walk steps over, and one level more. */
static void
test_depth(void **state)
{
    char text[2 * (BH_SLICE_DEPTH_MAX + 2) + 1] = "";
    size_t cursor = 0;
    struct bh_slice item;

    memset(text, '[', BH_SLICE_DEPTH_MAX + 1);
    memset(text + BH_SLICE_DEPTH_MAX + 1, ']', BH_SLICE_DEPTH_MAX + 1);
    BH_CHECK("64 levels inside", bh_slice_next_item(slice(text), &cursor, &item));
    memset(text, '[', BH_SLICE_DEPTH_MAX + 2);
    memset(text + BH_SLICE_DEPTH_MAX + 2, ']', BH_SLICE_DEPTH_MAX + 2);
    cursor = 0;
    BH_CHECK("65 levels inside", !bh_slice_next_item(slice(text), &cursor, &item));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_get), cmocka_unit_test(test_first_key), cmocka_unit_test(test_next_item),
    cmocka_unit_test(test_u64), cmocka_unit_test(test_str),       cmocka_unit_test(test_depth),
};

BH_TEST_MAIN(tests)
