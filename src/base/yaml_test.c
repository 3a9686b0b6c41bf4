#include "base/yaml.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/test.h"

static const struct {
    const char *name, *yaml, *json;
} accepted[] = {
    { "a mapping", "a: 1\nb: x\n", "{\"a\":1,\"b\":\"x\"}" },
    { "a list", "- 1\n- [2, 3]\n- {}\n- []\n", "[1,[2,3],{},[]]" },
    { "nested", "a:\n  b:\n  - c: 1\n    d: 2\n", "{\"a\":{\"b\":[{\"c\":1,\"d\":2}]}}" },
    { "JSON is YAML", "{\"a\": [1, true, null, \"x\"]}", "{\"a\":[1,true,null,\"x\"]}" },
    { "document markers", "---\na: 1\n...\n", "{\"a\":1}" },
    { "version directive", "%YAML 1.2\n---\na: 1\n", "{\"a\":1}" },
    { "byte order mark",
      "\xef\xbb\xbf"
      "a: 1\n",
      "{\"a\":1}" },
    { "comments", "# one\na: 1 # two\n", "{\"a\":1}" },
    { "nulls", "[null, Null, NULL, ~, ]\n", "[null,null,null,null]" },
    { "a key without value", "a:\nb: 1\n", "{\"a\":null,\"b\":1}" },
    { "truths", "[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]" },
    { "YAML 1.1 truths are text", "[yes, no, on, off, y, N]", "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"N\"]" },
    { "integers", "[0, 7, -7, +7, -0]", "[0,7,-7,7,0]" },
    { "15 digits are a number", "[999999999999999]", "[999999999999999]" },
    { "16 digits are text", "[1000000000000000]", "[\"1000000000000000\"]" },
    { "amounts are text", "[0.5, 1/7, 1e3, .5, 40Gi]", "[\"0.5\",\"1/7\",\"1e3\",\".5\",\"40Gi\"]" },
    { "other bases are text", "[0x1f, 0o17, 017, 1_000]", "[\"0x1f\",\"0o17\",\"017\",\"1_000\"]" },
    { "not numbers", "[.inf, .nan, +, \"-\"]", "[\".inf\",\".nan\",\"+\",\"-\"]" },
    { "quotes make text", "['1', \"true\", 'null', '']", "[\"1\",\"true\",\"null\",\"\"]" },
    { "dates are text", "[2026-11-20, 12:30:00]", "[\"2026-11-20\",\"12:30:00\"]" },
    { "keys are always text", "1: a\ntrue: b\nnull: c\n", "{\"1\":\"a\",\"true\":\"b\",\"null\":\"c\"}" },
    { "a block text", "a: |\n  one\n  two\n", "{\"a\":\"one\\ntwo\\n\"}" },
    { "a folded text", "a: >-\n  one\n  two\n", "{\"a\":\"one two\"}" },
    { "a block text of digits", "a: |-\n  12\n", "{\"a\":\"12\"}" },
    { "escapes", "a: \"\\t\\\"\\u00e9\\\\\"\n", "{\"a\":\"\\t\\\"\xc3\xa9\\\\\"}" },
    { "a quoted merge key is a key", "'<<': 1\n", "{\"<<\":1}" },
    { "same key at two levels", "a:\n  a: 1\n", "{\"a\":{\"a\":1}}" },
    { "same key in two items", "- a: 1\n- a: 1\n", "[{\"a\":1},{\"a\":1}]" },
    { "same key after a nested map", "a:\n  x: 1\n  y: 2\nb:\n  x: 1\n",
      "{\"a\":{\"x\":1,\"y\":2},\"b\":{\"x\":1}}" },
};

static void
test_accepted(void **state)
{
    for (size_t i = 0; i < BH_COUNT(accepted); i++) {
        char memory[256];
        struct bh_buf json;
        struct bh_err err = { 0 };

        bh_buf_init_fixed(&json, memory, sizeof memory);
        BH_CHECK_EQ(accepted[i].name,
                    bh_yaml_to_json(accepted[i].yaml, strlen(accepted[i].yaml), &json, &err), BH_OK);
        BH_CHECK_STR(accepted[i].name, err.msg, "");
        BH_CHECK_STR(accepted[i].name, bh_buf_text(&json), accepted[i].json);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *yaml, *message, *hint;
} refused[] = {
    { "nothing", "", "line 1: the document is empty", "" },
    { "only a byte order mark", "\xef\xbb\xbf", "line 1: the document is empty", "" },
    { "only a comment", "# a\n", "line 1: the document is empty", "" },
    { "a text alone", "hello\n", "line 1: expected keys and values, or a list", "write `key: value`" },
    { "two documents", "a: 1\n---\nb: 2\n", "line 2: more than one document",
      "put each document into its own file" },
    { "an anchor", "a: 1\nb: &x 2\n", "line 2: anchors are not accepted",
      "write the value out where it is used" },
    { "an anchor on a mapping", "a: &x\n  b: 1\n", "line 1: anchors are not accepted",
      "write the value out where it is used" },
    { "an anchor on a list", "- &x [1]\n", "line 1: anchors are not accepted",
      "write the value out where it is used" },
    { "an alias", "a: 1\nb: *x\n", "line 2: aliases are not accepted",
      "write the value out where it is used" },
    { "a tag", "a: !!str 1\n", "line 1: tags are not accepted",
      "remove the tag; put the value in quotes to make it a string" },
    { "a local tag", "a: !thing {b: 1}\n", "line 1: tags are not accepted",
      "remove the tag; put the value in quotes to make it a string" },
    { "a tag on a list", "a: !!set [b]\n", "line 1: tags are not accepted",
      "remove the tag; put the value in quotes to make it a string" },
    { "a tag directive", "%TAG ! tag:x,2000:\n---\na: 1\n", "line 1: tags are not accepted",
      "remove the %TAG line" },
    { "a merge key", "a:\n  <<: {b: 1}\n", "line 2: merge keys are not accepted", "write the keys out" },
    { "a duplicate key", "a: 1\nb: 2\na: 3\n", "line 3: duplicate key \"a\"", "keep one of the two" },
    { "a duplicate behind a nested map", "a: {x: 1, y: 1}\nb: 2\na: 3\n", "line 3: duplicate key \"a\"",
      "keep one of the two" },
    { "a duplicate key below", "a:\n  b: 1\n  'b': 2\n", "line 3: duplicate key \"b\"",
      "keep one of the two" },
    { "a list as a key", "? [a]\n: 1\n", "line 1: a key must be plain text", "write `key: value`" },
    { "a mapping as a key", "{{a: 1}: 2}\n", "line 1: a key must be plain text", "write `key: value`" },
    { "NUL", "a: \"x\\0y\"\n", "line 1: NUL characters are not accepted", "remove \\0 from the text" },
    { "a tab as indent", "a:\n\tb: 1\n",
      "line 2, column 1: not valid YAML: found character that cannot start any token",
      "while scanning for the next token that begins at line 2, column 1; blanks indent, not tabs" },
    { "an open bracket", "a: [1\nb: 2\n",
      "line 2, column 2: not valid YAML: did not find expected ',' or ']'",
      "while parsing a flow sequence that begins at line 1, column 4; blanks indent, not tabs" },
    { "bad UTF-8", "a: 1\nb: \xff\n", "line 2, column 4: not valid YAML: invalid leading UTF-8 octet",
      "write it as UTF-8 without control characters" },
    { "a control character", "a: 1\n\nb: \x01\n",
      "line 3, column 4: not valid YAML: control characters are not allowed",
      "write it as UTF-8 without control characters" },
    { "an unknown version", "%YAML 2.0\n---\na: 1\n",
      "line 1, column 1: not valid YAML: found incompatible YAML document",
      "blanks indent, not tabs; text with `: ` or ` #` in it is quoted" },
};

static void
test_refused(void **state)
{
    for (size_t i = 0; i < BH_COUNT(refused); i++) {
        char memory[256];
        struct bh_buf json;
        struct bh_err err = { 0 };

        bh_buf_init_fixed(&json, memory, sizeof memory);
        bh_buf_puts(&json, "before");
        BH_CHECK_EQ(refused[i].name, bh_yaml_to_json(refused[i].yaml, strlen(refused[i].yaml), &json, &err),
                    BH_INVALID);
        BH_CHECK_STR(refused[i].name, err.msg, refused[i].message);
        BH_CHECK_STR(refused[i].name, err.hint, refused[i].hint);
        BH_CHECK_STR(refused[i].name, bh_buf_text(&json), "before");
    }
    BH_CHECK_DONE();
}

static bh_rc
read_nested(size_t depth, struct bh_err *err)
{
    char text[128] = "", memory[128];
    struct bh_buf json;

    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    return bh_yaml_to_json(text, strlen(text), &json, err);
}

static void
test_depth(void **state)
{
    struct bh_err err = { 0 };

    BH_CHECK_EQ("32 levels", read_nested(32, &err), BH_OK);
    BH_CHECK_EQ("33 levels", read_nested(33, &err), BH_RANGE);
    BH_CHECK_STR("33 levels", err.msg, "line 1: nested deeper than 32 levels");
    BH_CHECK_DONE();
}

/* A mapping of `count` keys, twice, so that the keys of one are forgotten. */
static bh_rc
read_keys(int count, struct bh_err *err)
{
    struct bh_buf yaml, json;
    bh_rc rc;

    bh_buf_init(&yaml, 1 << 16);
    bh_buf_init(&json, 1 << 16);
    for (int twice = 0; twice < 2; twice++) {
        bh_buf_puts(&yaml, "-\n");
        for (int i = 0; i < count; i++)
            bh_buf_printf(&yaml, "  k%d: %d\n", i, i);
    }
    rc = bh_yaml_to_json(bh_buf_text(&yaml), yaml.length, &json, err);
    bh_buf_fini(&yaml);
    bh_buf_fini(&json);
    return rc;
}

static void
test_many_keys(void **state)
{
    struct bh_err err = { 0 };

    BH_CHECK_EQ("256 keys", read_keys(256, &err), BH_OK);
    BH_CHECK_EQ("257 keys", read_keys(257, &err), BH_RANGE);
    BH_CHECK_STR("257 keys", err.msg, "line 258: more than 256 keys in one mapping");
    BH_CHECK_DONE();
}

static void
test_size(void **state)
{
    char *text = malloc(BH_JSON_BYTES_MAX + 1), memory[64];
    struct bh_buf json;
    struct bh_err err = { 0 };

    assert_non_null(text);
    memset(text, '\n', BH_JSON_BYTES_MAX + 1);
    memcpy(text, "a: 1", 4);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    BH_CHECK_EQ("no memory at all", bh_yaml_to_json(NULL, 0, &json, &err), BH_INVALID);
    BH_CHECK_EQ("1 MiB", bh_yaml_to_json(text, BH_JSON_BYTES_MAX, &json, &err), BH_OK);
    BH_CHECK_EQ("1 MiB + 1", bh_yaml_to_json(text, BH_JSON_BYTES_MAX + 1, &json, &err), BH_FULL);
    BH_CHECK_STR("1 MiB + 1", err.msg, "document of 1048577 bytes is larger than 1048576");
    free(text);
    BH_CHECK_DONE();
}

/* Every size of the output up to what is needed: refused, and nothing left behind. */
static void
test_no_room(void **state)
{
    static const char yaml[] = "a: [1, x]\nb: {c: d, e: f}\n";
    static const char json[] = "{\"a\":[1,\"x\"],\"b\":{\"c\":\"d\",\"e\":\"f\"}}";

    for (size_t size = 0; size <= strlen(json); size++) {
        bool fits = size == strlen(json);
        char memory[64];
        struct bh_buf out;
        struct bh_err err = { 0 };

        bh_buf_init_fixed(&out, memory, size);
        BH_CHECK_EQ("result", bh_yaml_to_json(yaml, strlen(yaml), &out, &err), fits ? BH_OK : BH_FULL);
        BH_CHECK_EQ("length", out.length, fits ? size : 0);
        BH_CHECK("no overflow left", !out.overflow);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_accepted),  cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
    cmocka_unit_test(test_many_keys), cmocka_unit_test(test_size),    cmocka_unit_test(test_no_room),
};

BH_TEST_MAIN(tests)
