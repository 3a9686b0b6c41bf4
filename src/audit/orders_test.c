#include "audit/orders.h"

#include <stdlib.h>

#include "base/test.h"

/* Each row is a short log; which record is the first that is refused, and what is open at
 * the end. */

enum { RECORDS_MAX = 5 };
#define NONE UINT64_MAX
#define ORDER(record, place) ((uint64_t)(record) << 12 | (place))

struct line {
    const char *verb; /* NULL: no more */
    uint64_t answers;
    const char *orders;
    uint32_t version;
    bool event; /* a dataset that the start mounts */
};

static const struct row {
    const char *name;
    struct line lines[RECORDS_MAX];
    uint64_t bad;
    uint32_t open, unknown;
} rows[] = {
    { "each answered",
      { { "job.submit", 0, "-cs", 2 },
        { "node.started", ORDER(0, 2), NULL, 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 } },
      NONE,
      0,
      0 },
    { "answers order more",
      { { "job.submit", 0, "-c", 2 },
        { "node.carved", ORDER(0, 1), "s", 2 },
        { "node.started", ORDER(1, 0), NULL, 2 } },
      NONE,
      0,
      0 },
    { "one open", { { "job.submit", 0, "-cs", 2 }, { "node.started", ORDER(0, 2), NULL, 2 } }, NONE, 1, 0 },
    { "a stop waits for no answer", { { "job.cancel", 0, "-t", 2 } }, NONE, 0, 0 },
    { "unknown",
      { { "job.submit", 0, "-c", 2 },
        { "order.unknown", ORDER(0, 1), NULL, 2 },
        { "order.unknown", ORDER(0, 1), NULL, 2 } },
      NONE,
      1,
      1 },
    { "unknown, then answered",
      { { "job.submit", 0, "-c", 2 },
        { "order.unknown", ORDER(0, 1), NULL, 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 } },
      NONE,
      0,
      0 },
    { "abandoned",
      { { "job.submit", 0, "-cs", 2 }, { "order.abandoned", ORDER(0, 1), NULL, 2 } },
      NONE,
      1,
      0 },
    { "abandoned, then answered",
      { { "job.submit", 0, "-c", 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 } },
      NONE,
      0,
      0 },
    { "unknown, then abandoned",
      { { "job.submit", 0, "-c", 2 },
        { "order.unknown", ORDER(0, 1), NULL, 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 } },
      NONE,
      0,
      0 },
    { "abandoned twice",
      { { "job.submit", 0, "-c", 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 } },
      2,
      0,
      0 },
    { "unknown after it was abandoned",
      { { "job.submit", 0, "-c", 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 },
        { "order.unknown", ORDER(0, 1), NULL, 2 } },
      2,
      0,
      0 },
    { "abandoned after the answer",
      { { "job.submit", 0, "-c", 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 } },
      2,
      0,
      0 },
    { "a dataset of a start that was abandoned",
      { { "job.submit", 0, "-s", 2 },
        { "order.abandoned", ORDER(0, 1), NULL, 2 },
        { "dataset.read", ORDER(0, 1), NULL, 2, true } },
      2,
      0,
      0 },
    { "answered twice",
      { { "job.submit", 0, "-c", 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 } },
      2,
      0,
      0 },
    { "unknown after the answer",
      { { "job.submit", 0, "-c", 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 },
        { "order.unknown", ORDER(0, 1), NULL, 2 } },
      2,
      0,
      0 },
    { "no order at that place",
      { { "job.submit", 0, "-c", 2 }, { "node.carved", ORDER(0, 2), NULL, 2 } },
      1,
      1,
      0 },
    { "nothing is named", { { "job.submit", 0, "-c", 2 }, { "node.carved", 0, NULL, 2 } }, 1, 1, 0 },
    { "no order in that record",
      { { "job.submit", 0, "-c", 2 }, { "tick", 0, NULL, 2 }, { "node.carved", ORDER(1, 1), NULL, 2 } },
      2,
      1,
      0 },
    { "the answer to another question",
      { { "job.submit", 0, "-c", 2 }, { "node.started", ORDER(0, 1), NULL, 2 } },
      1,
      1,
      0 },
    { "an answer to a stop",
      { { "job.cancel", 0, "-t", 2 }, { "node.stopping", ORDER(0, 1), NULL, 2 } },
      1,
      0,
      0 },
    { "a later record's", { { "node.carved", ORDER(1, 1), NULL, 2 } }, 0, 0, 0 },
    { "its own", { { "tick", 0, NULL, 2 }, { "node.carved", ORDER(1, 0), "c", 2 } }, 1, 0, 0 },
    { "a dataset of a start",
      { { "job.submit", 0, "-cs", 2 },
        { "dataset.read", ORDER(0, 2), NULL, 2, true },
        { "dataset.write", ORDER(0, 2), NULL, 2, true },
        { "node.started", ORDER(0, 2), NULL, 2 },
        { "node.carved", ORDER(0, 1), NULL, 2 } },
      NONE,
      0,
      0 },
    { "a dataset does not answer the start",
      { { "job.submit", 0, "-s", 2 }, { "dataset.read", ORDER(0, 1), NULL, 2, true } },
      NONE,
      1,
      0 },
    { "a dataset of a carve",
      { { "job.submit", 0, "-cs", 2 }, { "dataset.read", ORDER(0, 1), NULL, 2, true } },
      1,
      2,
      0 },
    { "a dataset of a start that was answered",
      { { "job.submit", 0, "-s", 2 },
        { "node.started", ORDER(0, 1), NULL, 2 },
        { "dataset.read", ORDER(0, 1), NULL, 2, true } },
      2,
      0,
      0 },
    { "a dataset of a start that was not ordered",
      { { "tick", 0, NULL, 2 }, { "tick", 0, NULL, 2 }, { "dataset.read", ORDER(1, 1), NULL, 2, true } },
      2,
      0,
      0 },
    { "a dataset of a later start", { { "dataset.read", ORDER(1, 1), NULL, 2, true } }, 0, 0, 0 },
    { "a dataset of a start of an older record",
      { { "job.submit", 0, NULL, 1 },
        { "tick", 0, NULL, 2 },
        { "dataset.read", ORDER(0, 1), NULL, 2, true } },
      NONE,
      0,
      0 },
    { "an unknown letter", { { "job.submit", 0, "-x", 2 } }, 0, 0, 0 },
    { "the first record's first place", { { "job.submit", 0, "c", 2 } }, 0, 0, 0 },
    { "older records do not say",
      { { "job.submit", 0, NULL, 1 },
        { "node.carved", ORDER(0, 1), NULL, 1 },
        { "node.started", ORDER(0, 2), NULL, 2 },
        { "node.started", ORDER(0, 2), NULL, 2 } },
      NONE,
      0,
      0 },
    { "later ones do",
      { { "job.submit", 0, NULL, 1 }, { "tick", 0, NULL, 2 }, { "node.carved", ORDER(1, 1), NULL, 2 } },
      2,
      0,
      0 },
    { "the version goes back", { { "tick", 0, NULL, 2 }, { "tick", 0, NULL, 1 } }, 1, 0, 0 },
};

static struct bh_record
record_of(const struct line *line, uint64_t seq)
{
    bool answers = line->answers || strncmp(line->verb, "node.", 5) == 0;

    return (struct bh_record){ .seq = seq,
                               .verb = line->verb,
                               .order = line->answers,
                               .orders = line->orders,
                               .version = line->version,
                               .phase = line->event ? BH_PHASE_EVENT
                                        : answers   ? BH_PHASE_OUTCOME
                                                    : BH_PHASE_INTENT };
}

static void
each_row(void **state)
{
    struct bh_audit_orders *orders = malloc(sizeof *orders);

    assert_non_null(orders);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        uint64_t bad = NONE;

        bh_audit_orders_init(orders);
        for (uint64_t seq = 0; bad == NONE && seq < RECORDS_MAX && rows[i].lines[seq].verb; seq++) {
            struct bh_record record = record_of(&rows[i].lines[seq], seq);
            struct bh_err err;

            if (bh_audit_orders_read(orders, &record, &err) != BH_OK)
                bad = seq;
        }
        BH_CHECK_EQ(rows[i].name, bad, rows[i].bad);
        BH_CHECK_EQ(rows[i].name, orders->open, rows[i].open);
        BH_CHECK_EQ(rows[i].name, orders->unknown, rows[i].unknown);
    }
    free(orders);
    BH_CHECK_DONE();
}

static void
an_intent_answers_nothing(void **state)
{
    struct bh_audit_orders *orders = malloc(sizeof *orders);
    struct bh_record record = { .seq = 1, .order = 1, .version = 2, .phase = BH_PHASE_INTENT };
    struct bh_err err;

    assert_non_null(orders);
    bh_audit_orders_init(orders);
    BH_CHECK_EQ("intent", bh_audit_orders_read(orders, &record, &err), BH_CONFLICT);
    free(orders);
    BH_CHECK_DONE();
}

/* Many come and go, in no order; all stay distinct, however full the table is. */
static void
orders_many(void **state)
{
    enum { RECORDS = 6000, EACH = 4 };
    struct bh_audit_orders *orders = malloc(sizeof *orders);
    struct bh_err err;
    uint64_t seq = 1;

    assert_non_null(orders);
    bh_audit_orders_init(orders);
    for (; seq <= RECORDS; seq++) {
        struct bh_record record = { .seq = seq, .orders = "cccc", .version = 2 };

        assert_int_equal(bh_audit_orders_read(orders, &record, &err), BH_OK);
    }
    assert_int_equal(orders->open, RECORDS * EACH);
    for (uint64_t i = 0; i < 2 * RECORDS * EACH; i++) { /* each twice: once too often */
        uint64_t n = i % (RECORDS * EACH) * 7919 % (RECORDS * EACH);
        struct bh_record record = { .seq = seq++,
                                    .order = ORDER(1 + n / EACH, n % EACH),
                                    .phase = BH_PHASE_OUTCOME,
                                    .version = 2,
                                    .verb = "node.carved" };

        if (bh_audit_orders_read(orders, &record, &err) != (i < RECORDS * EACH ? BH_OK : BH_CONFLICT))
            fail_msg("answer %d", (int)i);
    }
    assert_int_equal(orders->open, 0);
    free(orders);
}

/* Of more than are kept, the older half is forgotten: its answers pass, others' do not. */
static void
too_many(void **state)
{
    enum { RECORDS = BH_ORDERS_OPEN_MAX + 10 };
    struct bh_audit_orders *orders = malloc(sizeof *orders);
    struct bh_record answer = {
        .seq = RECORDS + 1, .phase = BH_PHASE_OUTCOME, .version = 2, .verb = "node.started"
    };
    struct bh_err err;

    assert_non_null(orders);
    bh_audit_orders_init(orders);
    for (uint64_t seq = 1; seq <= RECORDS; seq++) {
        struct bh_record record = { .seq = seq, .orders = "s", .version = 2 };

        assert_int_equal(bh_audit_orders_read(orders, &record, &err), BH_OK);
    }
    BH_CHECK("half", orders->open > RECORDS / 3 && orders->open < RECORDS * 2 / 3);
    bh_audit_orders_close(orders);
    BH_CHECK_EQ("oldest", orders->oldest_open, orders->exact_from);
    for (int twice = 0; twice < 2; twice++) {
        answer.order = ORDER(1, 0);
        BH_CHECK_EQ("forgotten", bh_audit_orders_read(orders, &answer, &err), BH_OK);
        answer.order = ORDER(orders->exact_from, 0);
        BH_CHECK_EQ("kept", bh_audit_orders_read(orders, &answer, &err), twice ? BH_CONFLICT : BH_OK);
    }
    free(orders);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_row),
    cmocka_unit_test(an_intent_answers_nothing),
    cmocka_unit_test(orders_many),
    cmocka_unit_test(too_many),
};

BH_TEST_MAIN(tests)
