#include "base/edits.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/test.h"
#include "base/test_sample.h"

static const struct bh_edit_key keys[] = { { "tenant", "id" } };

struct lines {
    char text[1 << 16];
    size_t length;
    uint32_t count;
};

static void
edits_test_take_line(void *self, const char *text, size_t length)
{
    struct lines *lines = self;

    assert_true(length <= BH_EDIT_LINE_MAX);
    assert_true(lines->length + length + 2 < sizeof lines->text);
    memcpy(lines->text + lines->length, text, length);
    lines->length += length;
    lines->text[lines->length++] = '\n';
    lines->text[lines->length] = '\0';
    lines->count++;
}

static struct lines *
edits_test_find(const struct sample *from, const struct sample *to)
{
    static struct lines lines;
    const struct bh_edits edits = { keys, BH_COUNT(keys), edits_test_take_line, &lines };

    lines.length = lines.count = 0;
    lines.text[0] = '\0';
    bh_edits_find(&edits, &sample_fields, from, to);
    return &lines;
}

static void
scalars_show_from_and_to(void **state)
{
    struct sample from = { .at = 1, .colour = ZOO_RED, .digest = { 1 }, .text = "a b" };
    struct sample to = { .at = 2,
                         .colour = ZOO_BLUE,
                         .big = UINT64_MAX,
                         .digest = { 2 },
                         .flag = true,
                         .name = "x",
                         .text = "c" };

    BH_CHECK_STR("all kinds", edits_test_find(&from, &to)->text,
                 "at: 1 -> 2\n"
                 "big: (absent) -> 18446744073709551615\n"
                 "colour: (absent) -> blue\n" /* its first value is left out */
                 "digest: 01000000 -> 02000000\n"
                 "flag: (absent) -> true\n"
                 "name: (absent) -> x\n"
                 "text: \"a b\" -> c\n");
    BH_CHECK_DONE();
}

static void
items_are_known_by_their_keys(void **state)
{
    struct sample_tenant before[] = { { 1, 5 }, { 2, 5 }, { 3, 5 } };
    struct sample_tenant after[] = { { 3, 5 }, { 1, 7 }, { 4, 0 } };
    const char *tags[] = { "a", "b" }, *others[] = { "b", "c d" };
    struct sample from = {
        .tenants = { before, 3 }, .tags = { tags, 2 }, .slots = { { 1, 1 } }, .slot_count = 1
    };
    struct sample to = {
        .tenants = { after, 3 }, .tags = { others, 2 }, .slots = { { 1, 2 }, { 2, 0 } }, .slot_count = 2
    };

    BH_CHECK_STR("lists, arrays, texts", edits_test_find(&from, &to)->text,
                 "slots[1].limit: 1 -> 2\n"
                 "slots[2]: added\n"
                 "tags[a]: removed\n"
                 "tags[\"c d\"]: added\n"
                 "tenants[1].limit: 5 -> 7\n"
                 "tenants[2]: removed {\"id\":2,\"limit\":5}\n"
                 "tenants[4]: added\n"
                 "tenants: reordered\n");
    BH_CHECK_DONE();
}

static void
long_values_are_cut_between_characters(void **state)
{
    char text[4000];
    struct sample from = { .text = "" }, to = { .text = text };
    const char *line;

    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    line = edits_test_find(&from, &to)->text;
    BH_CHECK("cut", strlen(line) < BH_EDIT_VALUE_MAX + 40);
    BH_CHECK("says how long it is", strstr(line, "\xc3\xa4... (4000 bytes)\n"));
    BH_CHECK_DONE();
}

/* ---- no line if and only if the JSON is the same ---- */

static uint64_t seed = 88172645463325252;

static uint32_t
edits_test_draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

struct made {
    struct sample sample;
    struct sample_tenant tenants[4];
    const char *tags[3];
};

static void
edits_test_make(struct made *made)
{
    static const char *const words[] = { "", "a", "b" };

    memset(made, 0, sizeof *made);
    made->sample.flag = edits_test_draw(4) == 0;
    made->sample.colour = edits_test_draw(4) ? ZOO_RED : ZOO_GREEN;
    made->sample.nested.limit = edits_test_draw(4) == 0;
    made->sample.text = edits_test_draw(2) ? NULL : words[edits_test_draw(3)];
    made->sample.tenants = (struct bh_list){ made->tenants, edits_test_draw(5) };
    for (uint32_t i = 0; i < 4; i++)
        made->tenants[i] = (struct sample_tenant){ 1 + edits_test_draw(2), edits_test_draw(3) == 0 };
    made->sample.tags = (struct bh_texts){ made->tags, edits_test_draw(4) };
    for (uint32_t i = 0; i < 3; i++)
        made->tags[i] = words[edits_test_draw(3)];
    made->sample.slot_count = edits_test_draw(3);
    for (uint32_t i = 0; i < made->sample.slot_count; i++)
        made->sample.slots[i].id = 1 + edits_test_draw(2);
}

static void
lines_are_there_when_the_text_differs(void **state)
{
    struct bh_buf one, other;
    uint32_t same = 0;

    bh_buf_init(&one, 1 << 16);
    bh_buf_init(&other, 1 << 16);
    for (uint32_t round = 0; round < 200000; round++) {
        struct made a, b;
        bool equal;

        edits_test_make(&a);
        edits_test_make(&b);
        bh_buf_clear(&one);
        bh_buf_clear(&other);
        bh_json_encode(&one, &sample_fields, &a.sample);
        bh_json_encode(&other, &sample_fields, &b.sample);
        equal = strcmp(bh_buf_text(&one), bh_buf_text(&other)) == 0;
        same += equal;
        if ((edits_test_find(&a.sample, &b.sample)->count == 0) != equal) {
            BH_CHECK_STR("the same or not", one.bytes, other.bytes);
            break;
        }
        if (edits_test_find(&a.sample, &a.sample)->count != 0)
            BH_CHECK_STR("itself", one.bytes, "no line");
    }
    BH_CHECK("both happened", same > 10);
    bh_buf_fini(&one);
    bh_buf_fini(&other);
    BH_CHECK_DONE();
}

static void
lists_without_a_key_are_found(void **state)
{
    const struct bh_edits with = { keys, BH_COUNT(keys), NULL, NULL }, without = { 0 };

    BH_CHECK("by the table", bh_edits_known(&with, &sample_fields));
    BH_CHECK("no member called name", !bh_edits_known(&without, &sample_fields));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(scalars_show_from_and_to),
    cmocka_unit_test(items_are_known_by_their_keys),
    cmocka_unit_test(long_values_are_cut_between_characters),
    cmocka_unit_test(lines_are_there_when_the_text_differs),
    cmocka_unit_test(lists_without_a_key_are_found),
};
BH_TEST_MAIN(tests)
