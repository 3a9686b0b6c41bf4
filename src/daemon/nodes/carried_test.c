#include "daemon/batch/batch.h"
#include "daemon/nodes/carried.h"

#include "daemon/fixture/fixture_test.h"

static void
carried_put(struct fixture *f, uint64_t job, uint64_t lease, uint64_t rx_bytes)
{
    const struct bh_carried_end end = { { .counted = true, .rx_bytes = rx_bytes }, job, lease, 3 };
    struct bh_carried_text note;

    bh_carried_text(&f->core, &end, &note);
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_carried_put(&f->core, &note, &f->err), BH_OK);
}

static struct bh_carried_row
carried_stored(struct fixture *f, enum bh_document_kind kind, uint64_t number)
{
    struct bh_carried_row row;

    assert_int_equal(bh_job_document_get(&f->core.store, kind, number, &row, &f->err), BH_OK);
    return row;
}

/* Two members of a gang and another job of the tenant end at once, later a third member. */
static void
ends_of_one_batch_add_up(void **state)
{
    struct fixture f;

    fixture_setup(&f);
    carried_put(&f, 7, 1, 10);
    carried_put(&f, 7, 2, 20);
    carried_put(&f, 8, 3, 5);
    BH_CHECK_EQ("not yet durable", carried_stored(&f, BH_DOCUMENT_CARRIED, 7).leases, 0);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    carried_put(&f, 7, 4, 100);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    BH_CHECK_EQ("leases of the job", carried_stored(&f, BH_DOCUMENT_CARRIED, 7).leases, 3);
    BH_CHECK_EQ("its bytes", carried_stored(&f, BH_DOCUMENT_CARRIED, 7).sums.rx_bytes, 130);
    BH_CHECK_EQ("the other's", carried_stored(&f, BH_DOCUMENT_CARRIED, 8).sums.rx_bytes, 5);
    BH_CHECK_EQ("the tenant's", carried_stored(&f, BH_DOCUMENT_CARRIED_TENANT, 3).sums.rx_bytes, 135);
    BH_CHECK_EQ("not a job's of its number", carried_stored(&f, BH_DOCUMENT_CARRIED, 3).leases, 0);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
sums_stop_at_the_largest(void **state)
{
    struct bh_msg_carried sum = { .rx_bytes = UINT64_MAX - 1 };

    bh_carried_add(&sum, &(struct bh_msg_carried){ .counted = true, .rx_bytes = 5, .tx_packets = 2 });
    BH_CHECK_EQ("bytes", sum.rx_bytes == UINT64_MAX, 1);
    BH_CHECK_EQ("packets", sum.tx_packets, 2);
    BH_CHECK("counted", sum.counted);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(ends_of_one_batch_add_up),
                                           cmocka_unit_test(sums_stop_at_the_largest) };
BH_TEST_MAIN(tests)
