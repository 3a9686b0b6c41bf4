#include "audit/items.h"

#include <string.h>

#include "base/test.h"

/* A kind for the test: {"n":5}. */
static bool
items_read_number(struct bh_slice item, void *ret)
{
    struct bh_slice value;

    return bh_slice_get(item, "n", &value) && bh_slice_u64(value, ret);
}

static void
items_put_number(struct bh_buf *list, const void *item)
{
    const uint64_t *number = item;

    bh_item_begin(list);
    bh_buf_puts(list, "{\"n\":");
    bh_buf_put_u64(list, *number);
    bh_buf_putc(list, '}');
}

static const struct bh_item_kind kind = { items_read_number, items_put_number };

static void
one_way(void **state)
{
    static const struct {
        const char *what, *text;
        uint64_t sum;
        bool good;
        /* clang-format off */
    } rows[] = {
        { "one", "[{\"n\":5}]", 5, true },
        { "three", "[{\"n\":5},{\"n\":6},{\"n\":7}]", 18, true },
        { "none", "[]", 0, false },
        { "no list", "{\"n\":5}", 0, false },
        { "a blank", "[{\"n\": 5}]", 0, false },
        { "a member more", "[{\"m\":1,\"n\":5}]", 0, false },
        { "another's member", "[{\"m\":5}]", 0, false },
        { "a bad one behind a good one", "[{\"n\":5},{\"n\":05}]", 5, false },
        { "longer than an item may be", "[{\"n\":5,\"x\":\"" "0123456789012345678901234567890123456789"
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
          "\"}]", 0, false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_slice list = { rows[i].text, strlen(rows[i].text) };
        uint64_t number, sum = 0;
        size_t cursor = 0;

        while (bh_items_next(&kind, list, &cursor, &number))
            sum += number;
        BH_CHECK_EQ(rows[i].what, sum, rows[i].sum);
        BH_CHECK_EQ(rows[i].what, bh_items_are_list(&kind, list, &number), rows[i].good);
    }
    BH_CHECK_DONE();
}

static void
writes_a_list(void **state)
{
    static const uint64_t numbers[] = { 5, 6 };
    char memory[64];
    struct bh_buf list;

    bh_buf_init_fixed(&list, memory, sizeof memory);
    bh_buf_putc(&list, '[');
    for (size_t i = 0; i < BH_COUNT(numbers); i++)
        items_put_number(&list, &numbers[i]);
    bh_buf_putc(&list, ']');
    BH_CHECK_STR("list", bh_buf_text(&list), "[{\"n\":5},{\"n\":6}]");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_way),
    cmocka_unit_test(writes_a_list),
};
BH_TEST_MAIN(tests)
