#include "lab/load/meter.h"

#include "base/test.h"

/* A tenant that uses 4 parts from 5 to 25, in windows of 10. */
static void
test_windows(void **state)
{
    struct bh_meter *meter = bh_meter_new(2, 10);

    bh_meter_add(meter, 1, 0, 0, 4);
    bh_meter_add(meter, 1, 5, 4, 0);
    bh_meter_add(meter, 1, 25, -4, -4);
    bh_meter_close(meter, 32);
    BH_CHECK_EQ("windows", bh_meter_windows(meter), 4);
    BH_CHECK_EQ("span", bh_meter_span_ns(meter), 32);
    BH_CHECK_EQ("first", bh_meter_at(meter, 1, 0)->used, 20);
    BH_CHECK_EQ("whole", bh_meter_at(meter, 1, 1)->used, 40);
    BH_CHECK_EQ("last", bh_meter_at(meter, 1, 2)->used, 20);
    BH_CHECK_EQ("none", bh_meter_at(meter, 1, 3)->used, 0);
    BH_CHECK_EQ("wanted", bh_meter_at(meter, 1, 0)->wanted, 40);
    BH_CHECK_EQ("all used", bh_meter_total(meter, 1).used, 80);
    BH_CHECK_EQ("all wanted", bh_meter_total(meter, 1).wanted, 100);
    BH_CHECK_EQ("the other", bh_meter_total(meter, 0).wanted, 0);
    bh_meter_free(meter);
    BH_CHECK_DONE();
}

/* Long windows in parts times nanoseconds pass 2^64. */
static void
test_large(void **state)
{
    struct bh_meter *meter = bh_meter_new(1, UINT64_C(3600000000000));
    bh_part_ns want = (bh_part_ns)33600000 * UINT64_C(3600000000000);

    bh_meter_add(meter, 0, 0, 33600000, 33600000);
    bh_meter_close(meter, UINT64_C(360000000000000));
    assert_int_equal(bh_meter_windows(meter), 100);
    assert_true(bh_meter_at(meter, 0, 99)->used == want);
    assert_true(bh_meter_total(meter, 0).used == 100 * want);
    bh_meter_free(meter);
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_windows), cmocka_unit_test(test_large) };
BH_TEST_MAIN(tests)
