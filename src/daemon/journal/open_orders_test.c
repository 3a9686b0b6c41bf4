#include "daemon/journal/open_orders.h"

#include "base/test.h"

#define ORDER(record, place) ((uint64_t)(record) << 12 | (place))

/* Each row is a short log; which orders are open at its end. */
static const struct row {
    const char *name;
    struct line {
        const char *verb; /* NULL: no more */
        uint64_t answers;
        const char *orders;
    } lines[4];
    uint64_t open[3]; /* 0: no more */
} rows[] = {
    { "given", { { "job.submit", 0, "-cs" } }, { ORDER(1, 1), ORDER(1, 2) } },
    { "a stop is none", { { "job.cancel", 0, "-t" } }, { 0 } },
    { "answered", { { "job.submit", 0, "-cs" }, { "node.carved", ORDER(1, 1) } }, { ORDER(1, 2) } },
    { "unknown is no answer",
      { { "job.submit", 0, "-c" }, { "order.unknown", ORDER(1, 1) } },
      { ORDER(1, 1) } },
    { "abandoned", { { "job.submit", 0, "-c" }, { "order.abandoned", ORDER(1, 1) } }, { 0 } },
    { "answered late",
      { { "job.submit", 0, "-c" }, { "order.abandoned", ORDER(1, 1) }, { "node.carved", ORDER(1, 1) } },
      { 0 } },
    { "an answer that orders",
      { { "job.submit", 0, "-c" }, { "node.carved", ORDER(1, 1), "s" } },
      { ORDER(2, 0) } },
    { "the answer to an order from before", { { "node.carved", ORDER(0, 7) } }, { 0 } },
};

static void
each_row(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_open_orders orders = { 0 };
        uint32_t expected = 0;

        for (uint32_t l = 0; l < 4 && rows[i].lines[l].verb; l++) {
            const struct line *line = &rows[i].lines[l];
            struct bh_record record = { .seq = l + 1,
                                        .verb = line->verb,
                                        .order = line->answers,
                                        .orders = line->orders,
                                        .ts_ns = l,
                                        .phase = line->answers ? BH_PHASE_OUTCOME : BH_PHASE_INTENT };

            bh_open_orders_read(&orders, &record);
        }
        for (uint32_t n = 0; n < orders.count; n++)
            if (!orders.items[n].done)
                BH_CHECK_EQ(rows[i].name, orders.items[n].number, rows[i].open[expected++]);
        BH_CHECK_EQ(rows[i].name, rows[i].open[expected], 0);
        bh_open_orders_fini(&orders);
    }
    BH_CHECK_DONE();
}

/* What was answered makes room for what comes. */
static void
bounded(void **state)
{
    struct bh_open_orders orders = { 0 };

    for (uint64_t seq = 1; seq < 100000; seq++) {
        struct bh_record given = { .seq = 2 * seq, .verb = "job.submit", .orders = "c" };
        struct bh_record answer = {
            .seq = 2 * seq + 1, .verb = "node.carved", .phase = BH_PHASE_OUTCOME, .order = ORDER(2 * seq, 0)
        };

        bh_open_orders_read(&orders, &given);
        bh_open_orders_read(&orders, &answer);
    }
    assert_true(orders.capacity <= 64);
    bh_open_orders_reset(&orders);
    bh_open_orders_add(&orders, 9, 1);
    bh_open_orders_add(&orders, 5, 1);
    bh_open_orders_add(&orders, 9, 1);
    assert_int_equal(orders.count, 2);
    assert_int_equal(orders.items[0].number, 5);
    bh_open_orders_fini(&orders);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_row),
    cmocka_unit_test(bounded),
};

BH_TEST_MAIN(tests)
