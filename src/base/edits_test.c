#include "base/edits.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/test.h"
#include "base/test_zoo.h"

static const struct bh_edit_key keys[] = { { "tenant", "id" } };

struct lines {
    char text[1 << 16];
    size_t length;
    uint32_t count;
};

static void
take_line(void *self, const char *text, size_t length)
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
find(const struct zoo *from, const struct zoo *to)
{
    static struct lines lines;
    const struct bh_edits edits = { keys, BH_COUNT(keys), take_line, &lines };

    lines.length = lines.count = 0;
    lines.text[0] = '\0';
    bh_edits_find(&edits, &zoo_fields, from, to);
    return &lines;
}

static void
scalars_show_from_and_to(void **state)
{
    struct zoo from = { .at = 1, .colour = ZOO_RED, .digest = { 1 }, .text = "a b" };
    struct zoo to = { .at = 2, .colour = ZOO_BLUE, .big = UINT64_MAX, .digest = { 2 },
                      .flag = true, .name = "x", .text = "c" };

    BH_CHECK_STR("all kinds", find(&from, &to)->text,
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
    struct zoo_tenant before[] = { { 1, 5 }, { 2, 5 }, { 3, 5 } };
    struct zoo_tenant after[] = { { 3, 5 }, { 1, 7 }, { 4, 0 } };
    const char *tags[] = { "a", "b" }, *others[] = { "b", "c d" };
    struct zoo from = { .tenants = { before, 3 }, .tags = { tags, 2 },
                        .slots = { { 1, 1 } }, .slot_count = 1 };
    struct zoo to = { .tenants = { after, 3 }, .tags = { others, 2 },
                      .slots = { { 1, 2 }, { 2, 0 } }, .slot_count = 2 };

    BH_CHECK_STR("lists, arrays, texts", find(&from, &to)->text,
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
    struct zoo from = { .text = "" }, to = { .text = text };
    const char *line;

    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    line = find(&from, &to)->text;
    BH_CHECK("cut", strlen(line) < BH_EDIT_VALUE_MAX + 40);
    BH_CHECK("says how long it is", strstr(line, "\xc3\xa4... (4000 bytes)\n"));
    BH_CHECK_DONE();
}

/* ---- no line if and only if the JSON is the same ---- */

static uint64_t seed = 88172645463325252;

static uint32_t
draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

struct made {
    struct zoo zoo;
    struct zoo_tenant tenants[4];
    const char *tags[3];
};

static void
make(struct made *made)
{
    static const char *const words[] = { "", "a", "b" };

    memset(made, 0, sizeof *made);
    made->zoo.flag = draw(4) == 0;
    made->zoo.colour = draw(4) ? ZOO_RED : ZOO_GREEN;
    made->zoo.nested.limit = draw(4) == 0;
    made->zoo.text = draw(2) ? NULL : words[draw(3)];
    made->zoo.tenants = (struct bh_list){ made->tenants, draw(5) };
    for (uint32_t i = 0; i < 4; i++)
        made->tenants[i] = (struct zoo_tenant){ 1 + draw(2), draw(3) == 0 };
    made->zoo.tags = (struct bh_texts){ made->tags, draw(4) };
    for (uint32_t i = 0; i < 3; i++)
        made->tags[i] = words[draw(3)];
    made->zoo.slot_count = draw(3);
    for (uint32_t i = 0; i < made->zoo.slot_count; i++)
        made->zoo.slots[i].id = 1 + draw(2);
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

        make(&a);
        make(&b);
        bh_buf_clear(&one);
        bh_buf_clear(&other);
        bh_json_encode(&one, &zoo_fields, &a.zoo);
        bh_json_encode(&other, &zoo_fields, &b.zoo);
        equal = strcmp(bh_buf_text(&one), bh_buf_text(&other)) == 0;
        same += equal;
        if ((find(&a.zoo, &b.zoo)->count == 0) != equal) {
            BH_CHECK_STR("the same or not", one.bytes, other.bytes);
            break;
        }
        if (find(&a.zoo, &a.zoo)->count != 0)
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

    BH_CHECK("by the table", bh_edits_known(&with, &zoo_fields));
    BH_CHECK("no member called name", !bh_edits_known(&without, &zoo_fields));
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
