#include "base/fields.h"

#include "base/test.h"
#include "base/test_sample.h"

static const struct {
    const char *name, *text;
    size_t length;
    const char *found; /* NULL: none */
} finds[] = {
    { "first", "at", 2, "at" },
    { "last", "text", 4, "text" },
    { "beginning of a name", "coun", 4, NULL },
    { "more than a name", "counts", 6, NULL },
    { "length decides", "counts", 5, "count" },
    { "NUL inside", "at\0xyz", 6, NULL },
    { "empty", "", 0, NULL },
    { "other case", "Count", 5, NULL },
};

static void
test_find(void **state)
{
    for (size_t i = 0; i < BH_COUNT(finds); i++) {
        const struct bh_field *field = bh_fields_find(&sample_fields, finds[i].text, finds[i].length);

        BH_CHECK_STR(finds[i].name, field ? field->name : "none", finds[i].found ? finds[i].found : "none");
    }
    BH_CHECK_DONE();
}

static void
test_describe(void **state)
{
    static const struct {
        struct bh_field field;
        const char *text;
    } rows[] = {
        { { .name = "a", .kind = BH_FIELD_TEXT, .doc = "what it is" }, "a: what it is" },
        { { .name = "b", .kind = BH_FIELD_U32, .doc = "many", .max = 9 }, "b: at most 9; many" },
        { { .name = "c", .kind = BH_FIELD_U32, .doc = "some", .max = 9, .flags = BH_FIELD_POSITIVE },
          "c: 1 to 9; some" },
        { { .name = "d", .kind = BH_FIELD_TEXT }, "" },
        { { .name = "e", .kind = BH_FIELD_TEXT, .doc = "more than there is room for here" },
          "e: more than there is..." },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char text[25];

        bh_field_describe(&rows[i].field, text, sizeof text);
        BH_CHECK_STR(rows[i].field.name, text, rows[i].text);
    }
    BH_CHECK_DONE();
}

/* Each breaks one rule that a description must keep. */
struct odd {
    uint32_t a, b;
    uint64_t c;
    char name[8];
    struct bh_list list;
    struct sample_tenant items[2];
};
#define NAMED(text, member, k, ...)                                                                          \
    {                                                                                                        \
        .name = text, .kind = k, .offset = offsetof(struct odd, member),                                     \
        .size = sizeof(((struct odd *)0)->member), __VA_ARGS__                                               \
    }
static const struct bh_field good[] = { NAMED("a", a, BH_FIELD_U32), NAMED("b", c, BH_FIELD_U64) };
static const struct bh_field unordered[] = { NAMED("b", b, BH_FIELD_U32), NAMED("a", a, BH_FIELD_U32) };
static const struct bh_field twice[] = { NAMED("a", a, BH_FIELD_U32), NAMED("a", b, BH_FIELD_U32) };
static const struct bh_field wrong_size[] = { NAMED("c", c, BH_FIELD_U32) };
static const struct bh_field wrong_bool[] = { NAMED("a", a, BH_FIELD_BOOL) };
static const struct bh_field no_names[] = { NAMED("a", a, BH_FIELD_ENUM) };
static const struct bh_field no_of[] = { NAMED("list", list, BH_FIELD_LIST) };
static const struct bh_field no_max[] = { NAMED("items", items, BH_FIELD_ARRAY,
                                                .of = &sample_tenant_fields) };
static const struct bh_field wrong_max[] = { NAMED("items", items, BH_FIELD_ARRAY,
                                                   .of = &sample_tenant_fields, .max = 3) };
static const struct bh_fields inner = BH_FIELDS("inner", struct sample_tenant, unordered);
static const struct bh_field bad_inside[] = { NAMED("list", list, BH_FIELD_LIST, .of = &inner) };

static const struct {
    const char *name;
    const struct bh_fields fields;
    bool ordered;
} orders[] = {
    { "good", BH_FIELDS("odd", struct odd, good), true },
    { "of every kind", BH_FIELDS("zoo", struct sample, sample_rows), true },
    { "unordered", BH_FIELDS("odd", struct odd, unordered), false },
    { "a name twice", BH_FIELDS("odd", struct odd, twice), false },
    { "32 bits for 64", BH_FIELDS("odd", struct odd, wrong_size), false },
    { "a bool of four bytes", BH_FIELDS("odd", struct odd, wrong_bool), false },
    { "an enum without names", BH_FIELDS("odd", struct odd, no_names), false },
    { "a list of nothing", BH_FIELDS("odd", struct odd, no_of), false },
    { "an array without maximum", BH_FIELDS("odd", struct odd, no_max), false },
    { "an array larger than its memory", BH_FIELDS("odd", struct odd, wrong_max), false },
    { "unordered inside", BH_FIELDS("odd", struct odd, bad_inside), false },
};

static void
test_ordered(void **state)
{
    for (size_t i = 0; i < BH_COUNT(orders); i++)
        BH_CHECK_EQ(orders[i].name, bh_fields_ordered(&orders[i].fields), orders[i].ordered);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_find), cmocka_unit_test(test_describe),
                                           cmocka_unit_test(test_ordered) };

BH_TEST_MAIN(tests)
