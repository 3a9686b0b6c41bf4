#include "base/json.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/test.h"
#include "base/test_sample.h"

static bh_rc
json_test_decode(const char *text, size_t length, struct bh_arena *arena, struct bh_buf *ret_again,
                 struct bh_err *err)
{
    struct sample sample;
    bh_rc rc = bh_json_decode(text, length, &sample_fields, &sample, arena, err);

    if (rc == BH_OK)
        bh_json_encode(ret_again, &sample_fields, &sample);
    return rc;
}

/* `again` is what encoding gives back; NULL: the same text. */
static const struct {
    const char *name, *text, *again;
} accepted[] = {
    { "only what is always written", "{\"count\":0}", NULL },
    { "time is a string", "{\"at\":\"1700000000000000000\",\"count\":1}", NULL },
    { "time as a number", "{\"at\":5,\"count\":1}", "{\"at\":\"5\",\"count\":1}" },
    { "largest plain number", "{\"big\":9007199254740991,\"count\":0}", NULL },
    { "larger ones are strings", "{\"big\":\"9007199254740992\",\"count\":0}", NULL },
    { "larger one as a number", "{\"big\":9007199254740992,\"count\":0}",
      "{\"big\":\"9007199254740992\",\"count\":0}" },
    { "largest of all", "{\"big\":\"18446744073709551615\",\"count\":0}", NULL },
    { "an enum by name", "{\"colour\":\"blue\",\"count\":0}", NULL },
    { "an enum's first", "{\"colour\":\"red\",\"count\":0}", "{\"count\":0}" },
    { "largest u32", "{\"count\":4294967295}", NULL },
    { "least i32", "{\"count\":0,\"delta\":-2147483648}", NULL },
    { "largest i32", "{\"count\":0,\"delta\":2147483647}", NULL },
    { "minus zero", "{\"count\":0,\"delta\":-0}", "{\"count\":0}" },
    { "bytes in hex", "{\"count\":0,\"digest\":\"00ff10ab\"}", NULL },
    { "a truth", "{\"count\":0,\"flag\":true}", NULL },
    { "a falsehood", "{\"count\":0,\"flag\":false}", "{\"count\":0}" },
    { "a name as long as it may be", "{\"count\":0,\"name\":\"seven77\"}", NULL },
    { "a struct inside", "{\"count\":0,\"nested\":{\"id\":7,\"limit\":8}}", NULL },
    { "a required zero stays", "{\"count\":0,\"nested\":{\"id\":0,\"limit\":1}}", NULL },
    { "a struct of zeros goes", "{\"count\":0,\"nested\":{\"id\":0}}", "{\"count\":0}" },
    { "an array", "{\"count\":0,\"slots\":[{\"id\":1},{\"id\":2},{\"id\":3}]}", NULL },
    { "an empty array", "{\"count\":0,\"slots\":[]}", "{\"count\":0}" },
    { "texts", "{\"count\":0,\"tags\":[\"a\",\"\",\"\\n\"]}", NULL },
    { "a list", "{\"count\":0,\"tenants\":[{\"id\":0},{\"id\":9,\"limit\":2}]}", NULL },
    { "empty text is not no text", "{\"count\":0,\"text\":\"\"}", NULL },
    { "escapes as RFC 8785 has them", "{\"count\":0,\"text\":\"\\\"\\\\\\n\\t/\"}", NULL },
    { "escapes undone", "{\"count\":0,\"text\":\"\\u0041\\/\\u000a\"}", "{\"count\":0,\"text\":\"A/\\n\"}" },
    { "UTF-8 stands as it is", "{\"count\":0,\"text\":\"\xc3\xa9\xf0\x9f\x98\x80\"}", NULL },
    { "a surrogate pair", "{\"count\":0,\"text\":\"\\ud83d\\ude00\"}",
      "{\"count\":0,\"text\":\"\xf0\x9f\x98\x80\"}" },
    { "keys in any order, blanks", " { \"flag\" : true ,\n\"count\" : 3 } ", "{\"count\":3,\"flag\":true}" },
};

static void
test_accepted(void **state)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    for (size_t i = 0; i < BH_COUNT(accepted); i++) {
        char memory[512];
        struct bh_buf again;
        struct bh_err err = { 0 };

        bh_buf_init_fixed(&again, memory, sizeof memory);
        BH_CHECK_EQ(accepted[i].name,
                    json_test_decode(accepted[i].text, strlen(accepted[i].text), arena, &again, &err), BH_OK);
        BH_CHECK_STR(accepted[i].name, err.msg, "");
        BH_CHECK_STR(accepted[i].name, bh_buf_text(&again),
                     accepted[i].again ? accepted[i].again : accepted[i].text);
    }
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

#define BAD BH_INVALID
static const struct {
    const char *name, *text;
    bh_rc rc;
    const char *message;
} refused[] = {
    { "a number alone", "7", BAD, "not valid JSON at line 1, column 1: '[' or '{' expected near '7'" },
    { "nothing", "", BAD, "not valid JSON: the document is empty" },
    { "blanks", " \n", BAD, "not valid JSON at line 2, column 0: '[' or '{' expected near end of file" },
    { "a list at the top", "[]", BAD, "expected an object (zoo)" },
    { "text behind the end", "{}x", BAD,
      "not valid JSON at line 1, column 3: end of file expected near 'x'" },
    { "cut off", "{\"count\":", BAD,
      "not valid JSON at line 1, column 9: unexpected token near end of file" },
    { "a trailing comma", "{\"count\":1,}", BAD,
      "not valid JSON at line 1, column 12: string or '}' expected near '}'" },
    { "a duplicate key", "{\"count\":1,\n\"count\":2}", BAD,
      "not valid JSON at line 2, column 7: duplicate object key near '\"count\"'" },
    { "a duplicate key below", "{\"nested\":{\"id\":1,\"id\":1}}", BAD,
      "not valid JSON at line 1, column 22: duplicate object key near '\"id\"'" },
    { "a duplicate key in disguise", "{\"count\":1,\"\\u0063ount\":2}", BAD,
      "not valid JSON at line 1, column 23: duplicate object key near '\"\\u0063ount\"'" },
    { "an unknown key", "{\"colr\":1}", BAD, "unknown key \"colr\" in zoo" },
    { "an unknown key below", "{\"tenants\":[{\"id\":1,\"x\":2}]}", BAD,
      "tenants[0]: unknown key \"x\" in tenant" },
    { "a key that would colour terminals", "{\"\\u001b[31m\":1}", BAD, "unknown key \"?[31m\" in zoo" },
    { "a required key is missing", "{\"slots\":[{\"id\":1},{}]}", BAD, "slots[1]: \"id\" is missing" },
    { "the place of an error", "{\"tenants\":[{\"id\":1},{\"id\":2},{\"id\":3,\"limit\":true}]}", BAD,
      "tenants[2].limit: expected an integer" },
    { "the place in a struct", "{\"nested\":{\"id\":-1}}", BH_RANGE, "nested.id: must not be negative" },
    { "the place of a text", "{\"tags\":[\"a\",3]}", BAD, "tags[1]: expected a string" },
    { "truth as a number", "{\"flag\":1}", BAD, "flag: expected true or false" },
    { "null", "{\"flag\":null}", BAD, "flag: expected true or false" },
    { "negative u32", "{\"count\":-1}", BH_RANGE, "count: must not be negative" },
    { "one past u32", "{\"count\":4294967296}", BH_RANGE, "count: 4294967296 is out of range" },
    { "a fraction for u32", "{\"count\":1.0}", BAD,
      "count: fractions are not accepted; expected an integer" },
    { "an exponent", "{\"count\":1e3}", BAD, "count: fractions are not accepted; expected an integer" },
    { "a string for u32", "{\"count\":\"1\"}", BAD, "count: expected an integer" },
    { "one past i32", "{\"delta\":2147483648}", BH_RANGE, "delta: 2147483648 is out of range" },
    { "one below i32", "{\"delta\":-2147483649}", BH_RANGE, "delta: -2147483649 is out of range" },
    { "negative u64", "{\"big\":-1}", BH_RANGE, "big: must not be negative" },
    { "a fraction for u64", "{\"big\":0.5}", BAD, "big: fractions are not accepted; expected an integer" },
    { "past 2^64", "{\"big\":\"18446744073709551616\"}", BH_RANGE, "big: the number is too large" },
    { "past 2^63 as a number", "{\"big\":9223372036854775808}", BH_RANGE,
      "not valid JSON at line 1, column 26: too big integer near '9223372036854775808'" },
    { "a huge exponent", "{\"big\":1e999}", BH_RANGE,
      "not valid JSON at line 1, column 12: real number overflow near '1e999'" },
    { "digits with a sign", "{\"big\":\"+1\"}", BAD, "big: expected an integer" },
    { "digits with a zero first", "{\"big\":\"01\"}", BAD, "big: expected an integer" },
    { "a number with a zero first", "{\"big\":01}", BAD,
      "not valid JSON at line 1, column 8: invalid token near '0'" },
    { "time as words", "{\"at\":\"now\"}", BAD, "at: expected an integer" },
    { "an enum as a number", "{\"colour\":1}", BAD, "colour: expected a string" },
    { "no such name", "{\"colour\":\"mauve\"}", BAD, "colour: \"mauve\" is not one of red, green, blue" },
    { "hex too short", "{\"digest\":\"00ff10\"}", BAD, "digest: expected 4 bytes in lower-case hex" },
    { "hex in upper case", "{\"digest\":\"00FF10AB\"}", BAD, "digest: expected 4 bytes in lower-case hex" },
    { "hex that is no text", "{\"digest\":0}", BAD, "digest: expected 4 bytes in lower-case hex" },
    { "a name too long", "{\"name\":\"eight888\"}", BH_RANGE, "name: longer than 7 bytes" },
    { "a name of two lines", "{\"name\":\"a\\nb\"}", BAD,
      "name: line breaks and tabs are not accepted here" },
    { "a text too long", "{\"text\":\"seventeen letters\"}", BH_RANGE, "text: longer than 16 bytes" },
    { "an escape character", "{\"text\":\"\\u001b[2J\"}", BAD, "text: control character 0x1b" },
    { "a delete character", "{\"text\":\"\x7f\"}", BAD, "text: control character 0x7f" },
    { "a raw control character", "{\"text\":\"\x01\"}", BAD,
      "not valid JSON at line 1, column 9: control character 0x1 near '\"'" },
    { "NUL escaped", "{\"text\":\"a\\u0000b\"}", BAD,
      "not valid JSON at line 1, column 18: NUL characters are not accepted" },
    { "NUL in a key", "{\"\\u0000\":1}", BAD,
      "not valid JSON at line 1, column 9: NUL characters are not accepted" },
    { "half a surrogate pair", "{\"text\":\"\\ud800\"}", BAD,
      "not valid JSON at line 1, column 16: invalid Unicode '\\uD800' near '\"\\ud800\"'" },
    { "the other half", "{\"text\":\"\\udc00\"}", BAD,
      "not valid JSON at line 1, column 16: invalid Unicode '\\uDC00' near '\"\\udc00\"'" },
    { "a stray UTF-8 byte", "{\"text\":\"\x80\"}", BAD,
      "not valid JSON at line 1, column 9: unable to decode byte 0x80 near '\"'" },
    { "overlong UTF-8", "{\"text\":\"\xc0\xaf\"}", BAD,
      "not valid JSON at line 1, column 9: unable to decode byte 0xc0 near '\"'" },
    { "a surrogate in UTF-8", "{\"text\":\"\xed\xa0\x80\"}", BAD,
      "not valid JSON at line 1, column 9: unable to decode byte 0xed near '\"'" },
    { "a text for a list", "{\"tenants\":\"a\"}", BAD, "tenants: expected a list" },
    { "a list for a struct", "{\"nested\":[]}", BAD, "nested: expected an object (tenant)" },
    { "a number in a list of structs", "{\"tenants\":[1]}", BAD, "tenants[0]: expected an object (tenant)" },
    { "an array too long", "{\"slots\":[{\"id\":1},{\"id\":1},{\"id\":1},{\"id\":1}]}", BH_RANGE,
      "slots: more than 3 items" },
    { "too many texts", "{\"tags\":[\"\",\"\",\"\",\"\",\"\"]}", BH_RANGE, "tags: more than 4 items" },
    { "comments", "{} // no", BAD, "not valid JSON at line 1, column 4: end of file expected near '/'" },
};

static void
test_refused(void **state)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    for (size_t i = 0; i < BH_COUNT(refused); i++) {
        struct bh_err err = { 0 };
        struct sample sample;
        bh_rc rc =
            bh_json_decode(refused[i].text, strlen(refused[i].text), &sample_fields, &sample, arena, &err);

        BH_CHECK_EQ(refused[i].name, rc, refused[i].rc);
        BH_CHECK_EQ(refused[i].name, err.rc, refused[i].rc);
        BH_CHECK_STR(refused[i].name, err.msg, refused[i].message);
    }
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

/* What to do about a key that is not known. */
static const struct {
    const char *name, *text, *hint;
} unknown_keys[] = {
    { "a letter is missing", "{\"colur\":1}",
      "did you mean \"colour\"? keys are at, big, colour, count, delta, digest, flag, name, nested, "
      "slots, tags, tenants, text" },
    { "two are swapped", "{\"nmae\":1}",
      "did you mean \"name\"? keys are at, big, colour, count, delta, digest, flag, name, nested, "
      "slots, tags, tenants, text" },
    { "below", "{\"nested\":{\"limits\":1}}", "did you mean \"limit\"? keys are id, limit" },
    { "nothing like it", "{\"nested\":{\"wavelength\":1}}", "keys are id, limit" },
    { "one letter", "{\"nested\":{\"x\":1}}", "keys are id, limit" },
};

static void
test_hints(void **state)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    for (size_t i = 0; i < BH_COUNT(unknown_keys); i++) {
        struct bh_err err = { 0 };
        struct sample sample;
        bh_rc rc = bh_json_decode(unknown_keys[i].text, strlen(unknown_keys[i].text), &sample_fields, &sample,
                                  arena, &err);

        BH_CHECK_EQ(unknown_keys[i].name, rc, BH_INVALID);
        BH_CHECK_STR(unknown_keys[i].name, err.hint, unknown_keys[i].hint);
    }
    bh_arena_free(arena);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    size_t length;
    /* clang-format off */
} with_nul[] = {
    { "in a string", "[\"a\0b\"]", 7 }, { "behind a number", "[1\0]", 4 },
    { "behind a word", "[true\0]", 7 },  { "behind a blank", "[1 \0]", 5 },
    { "at the end", "[1]\0", 4 },        { "alone", "\0", 1 },
};
/* clang-format on */

static void
test_nul_byte_is_refused(void **state)
{
    for (size_t i = 0; i < BH_COUNT(with_nul); i++) {
        struct bh_json *json = NULL;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(with_nul[i].name, bh_json_parse(with_nul[i].text, with_nul[i].length, &json, &err),
                    BH_INVALID);
        BH_CHECK_STR(with_nul[i].name, err.msg, "not valid JSON: NUL characters are not accepted");
    }
    BH_CHECK_DONE();
}

/* Lists nested `depth` deep. */
static bh_rc
parse_nested(int depth, struct bh_err *err)
{
    char text[2 * 64 + 1] = "";
    struct bh_json *json = NULL;
    bh_rc rc;

    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    rc = bh_json_parse(text, strlen(text), &json, err);
    bh_json_free(json);
    return rc;
}

/* A list of `count` empty lists and objects. */
static bh_rc
parse_siblings(int count, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char memory[512];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_buf_puts(&text, "[0");
    for (int i = 0; i < count; i++)
        bh_buf_puts(&text, ",[],{}");
    bh_buf_putc(&text, ']');
    return bh_json_parse(text.bytes, text.length, &json, err);
}

static void
test_depth(void **state)
{
    static const char quoted[] = "[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"]";
    struct bh_json *json = NULL;
    struct bh_err err = { 0 };

    BH_CHECK_EQ("32 levels", parse_nested(32, &err), BH_OK);
    BH_CHECK_EQ("33 levels", parse_nested(33, &err), BH_INVALID);
    BH_CHECK_STR("33 levels", err.msg, "nested deeper than 32 levels");
    BH_CHECK_EQ("many beside each other", parse_siblings(40, &err), BH_OK);
    BH_CHECK_EQ("brackets in a string", bh_json_parse(quoted, strlen(quoted), &json, &err), BH_OK);
    bh_json_free(json);
    BH_CHECK_DONE();
}

static void
test_size(void **state)
{
    char *text = malloc(BH_JSON_BYTES_MAX + 1);
    struct bh_json *json = NULL;
    struct bh_err err = { 0 };

    assert_non_null(text);
    memset(text, ' ', BH_JSON_BYTES_MAX + 1);
    memcpy(text, "{}", 2);
    BH_CHECK_EQ("no memory at all", bh_json_parse(NULL, 0, &json, &err), BH_INVALID);
    BH_CHECK_EQ("1 MiB", bh_json_parse(text, BH_JSON_BYTES_MAX, &json, &err), BH_OK);
    bh_json_free(json);
    BH_CHECK_EQ("1 MiB + 1", bh_json_parse(text, BH_JSON_BYTES_MAX + 1, &json, &err), BH_FULL);
    BH_CHECK_STR("1 MiB + 1", err.msg, "document of 1048577 bytes is larger than 1048576");
    free(text);
    BH_CHECK_DONE();
}

/* Every arena cap from nothing up: BH_FULL until it fits, never anything else. */
static void
test_small_arena(void **state)
{
    static const char text[] = "{\"count\":0,\"tags\":[\"a\",\"b\"],\"tenants\":[{\"id\":1}],"
                               "\"text\":\"t\"}";
    size_t fits = 0;

    for (size_t cap = 0; cap <= 256; cap++) {
        struct bh_arena *arena = bh_arena_new(cap);
        struct bh_err err = { 0 };
        struct sample sample;
        bh_rc rc = bh_json_decode(text, strlen(text), &sample_fields, &sample, arena, &err);

        if (rc == BH_OK) {
            fits++;
        } else {
            BH_CHECK_EQ("too small", rc, BH_FULL);
            BH_CHECK("says where", strstr(err.msg, ": the request is too large"));
            BH_CHECK_EQ("once it fits it always does", fits, 0);
        }
        bh_arena_free(arena);
    }
    BH_CHECK("it fits at last", fits > 0);
    BH_CHECK_DONE();
}

static void
test_walk(void **state)
{
    static const char text[] = "{\"a\":[1,-2,\"3\",\"x\"],\"s\":\"t\",\"yes\":true}";
    struct bh_json *json = NULL;
    struct bh_err err = { 0 };
    bh_json_value root, list;

    assert_int_equal(bh_json_parse(text, strlen(text), &json, &err), BH_OK);
    root = bh_json_root(json);
    list = bh_json_get(root, "a");
    BH_CHECK_EQ("items", bh_json_count(list), 4);
    BH_CHECK_EQ("a number", bh_json_number(bh_json_at(list, 0), 99), 1);
    BH_CHECK_EQ("a negative number", bh_json_number(bh_json_at(list, 1), 99), 99);
    BH_CHECK_EQ("digits", bh_json_number(bh_json_at(list, 2), 99), 3);
    BH_CHECK_EQ("no digits", bh_json_number(bh_json_at(list, 3), 99), 99);
    BH_CHECK_EQ("past the end", bh_json_number(bh_json_at(list, 4), 99), 99);
    BH_CHECK_EQ("a negative integer", bh_json_integer(bh_json_at(list, 1), 99), -2);
    BH_CHECK_EQ("digits are no integer", bh_json_integer(bh_json_at(list, 2), 99), 99);
    BH_CHECK_EQ("nothing is no integer", bh_json_integer(NULL, 99), 99);
    BH_CHECK_STR("a text", bh_json_text(bh_json_get(root, "s"), "-"), "t");
    BH_CHECK_STR("no text", bh_json_text(list, "-"), "-");
    BH_CHECK("truth", bh_json_truth(bh_json_get(root, "yes")));
    BH_CHECK("no truth", !bh_json_truth(bh_json_get(root, "s")));
    BH_CHECK("absent", bh_json_get(root, "z") == NULL);
    BH_CHECK("key of a list", bh_json_get(list, "z") == NULL);
    BH_CHECK("of nothing", !bh_json_get(NULL, "z") && !bh_json_at(NULL, 0) && !bh_json_count(NULL));
    bh_json_free(json);
    bh_json_free(NULL);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    enum bh_json_kind kind;
    /* clang-format off */
} kinds[] = {
    { "object", "[{}]", BH_JSON_OBJECT },   { "list", "[[]]", BH_JSON_ARRAY },
    { "string", "[\"\"]", BH_JSON_STRING }, { "integer", "[-1]", BH_JSON_INTEGER },
    { "true", "[true]", BH_JSON_BOOL },     { "false", "[false]", BH_JSON_BOOL },
    { "null", "[null]", BH_JSON_NULL },     { "nothing", "[]", BH_JSON_NULL },
};
/* clang-format on */

static void
test_kinds(void **state)
{
    for (size_t i = 0; i < BH_COUNT(kinds); i++) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        struct bh_err err = { 0 };

        assert_int_equal(bh_json_parse(kinds[i].text, strlen(kinds[i].text), &json, &err), BH_OK);
        BH_CHECK_EQ(kinds[i].name, bh_json_kind(bh_json_at(bh_json_root(json), 0)), kinds[i].kind);
    }
    BH_CHECK_DONE();
}

static void
test_fractions_never_parse(void **state)
{
    static const char *const texts[] = { "[1.5]", "[1e3]", "{\"a\":[{\"b\":0.0}]}", "[[-1E-2]]" };

    for (size_t i = 0; i < BH_COUNT(texts); i++) {
        struct bh_json *json = NULL;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(texts[i], bh_json_parse(texts[i], strlen(texts[i]), &json, &err), BH_INVALID);
        BH_CHECK_STR(texts[i], err.msg, "fractions are not accepted");
        BH_CHECK(texts[i], json == NULL);
    }
    BH_CHECK_DONE();
}

static void
test_members_come_in_order(void **state)
{
    static const char text[] = "{\"z\":1,\"a\":2,\"m\":[{\"x\":0}]}";
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err = { 0 };
    char memory[16];
    struct bh_buf keys;
    const char *key;
    void *cursor = NULL;
    bh_json_value value = NULL;

    assert_int_equal(bh_json_parse(text, strlen(text), &json, &err), BH_OK);
    bh_buf_init_fixed(&keys, memory, sizeof memory);
    while (bh_json_next(bh_json_root(json), &cursor, &key, &value))
        bh_buf_puts(&keys, key);
    BH_CHECK_STR("keys", bh_buf_text(&keys), "zam");
    BH_CHECK_EQ("the last value", bh_json_count(value), 1);
    cursor = NULL;
    BH_CHECK("of a list", !bh_json_next(value, &cursor, &key, &value));
    BH_CHECK("of nothing", !bh_json_next(NULL, &cursor, &key, &value));
    BH_CHECK_DONE();
}

/* One text or one list of the default maximum, and one more. */
static const struct bh_field open_rows[] = {
    BH_F(struct sample, tags, BH_FIELD_TEXTS),
    BH_F(struct sample, text, BH_FIELD_TEXT),
};
static const struct bh_fields open_fields = BH_FIELDS("open", struct sample, open_rows);

static bh_rc
decode_open(struct bh_buf *text, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct sample sample;
    bh_rc rc = bh_json_decode(bh_buf_text(text), text->length, &open_fields, &sample, arena, err);

    bh_buf_fini(text);
    return rc;
}

static bh_rc
decode_long_text(int length, struct bh_err *err)
{
    struct bh_buf text;

    bh_buf_init(&text, 1 << 20);
    bh_buf_printf(&text, "{\"text\":\"%*s\"}", length, "x");
    return decode_open(&text, err);
}

static bh_rc
decode_long_list(int count, struct bh_err *err)
{
    struct bh_buf text;

    bh_buf_init(&text, 1 << 20);
    bh_buf_puts(&text, "{\"tags\":[\"\"");
    for (int i = 1; i < count; i++)
        bh_buf_puts(&text, ",\"\"");
    bh_buf_puts(&text, "]}");
    return decode_open(&text, err);
}

static void
test_default_maxima(void **state)
{
    struct bh_err err = { 0 };

    BH_CHECK_EQ("text", decode_long_text(65536, &err), BH_OK);
    BH_CHECK_EQ("longer text", decode_long_text(65537, &err), BH_RANGE);
    BH_CHECK_STR("longer text", err.msg, "text: longer than 65536 bytes");
    BH_CHECK_EQ("list", decode_long_list(1024, &err), BH_OK);
    BH_CHECK_EQ("longer list", decode_long_list(1025, &err), BH_RANGE);
    BH_CHECK_STR("longer list", err.msg, "tags: more than 1024 items");
    BH_CHECK_DONE();
}

/* Want of memory ends the program: it must never make good text look bad. */
static void
test_out_of_memory_aborts(void **state)
{
    json_malloc_t parser_malloc = NULL;
    json_free_t parser_free = NULL;
    int status = 0;
    pid_t child;

    json_get_alloc_funcs(&parser_malloc, &parser_free);
    child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        _exit(parser_malloc(PTRDIFF_MAX) == NULL ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    BH_CHECK("the child did not come back from malloc", WIFSIGNALED(status) || status != 0);
    BH_CHECK_DONE();
}

struct renamed {
    uint32_t count;
    const char *text;
};
static const struct bh_field renamed_rows[] = {
    BH_F(struct renamed, count, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F_OLD(struct renamed, count, "number", BH_FIELD_U32),
    BH_F(struct renamed, text, BH_FIELD_TEXT),
};
static const struct bh_fields renamed_fields = BH_FIELDS("renamed", struct renamed, renamed_rows);

static void
test_keys_of_before(void **state)
{
    static const struct {
        const char *name, *text;
        bh_rc rc;
    } rows[] = {
        { "its name", "{\"count\":3}", BH_OK },
        { "the one before", "{\"number\":3}", BH_OK },
        { "both", "{\"count\":3,\"number\":3}", BH_INVALID },
        { "neither", "{\"text\":\"\"}", BH_INVALID },
    };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct renamed value;
        struct bh_err err;
        bh_rc rc = bh_json_decode(rows[i].text, strlen(rows[i].text), &renamed_fields, &value, arena, &err);

        BH_CHECK_EQ(rows[i].name, rc, rows[i].rc);
        if (rc == BH_OK)
            BH_CHECK_EQ(rows[i].name, value.count, 3);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_keys_of_before),
    cmocka_unit_test(test_out_of_memory_aborts),
    cmocka_unit_test(test_kinds),
    cmocka_unit_test(test_fractions_never_parse),
    cmocka_unit_test(test_members_come_in_order),
    cmocka_unit_test(test_default_maxima),
    cmocka_unit_test(test_accepted),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_hints),
    cmocka_unit_test(test_nul_byte_is_refused),
    cmocka_unit_test(test_depth),
    cmocka_unit_test(test_size),
    cmocka_unit_test(test_small_arena),
    cmocka_unit_test(test_walk),
};

BH_TEST_MAIN(tests)
