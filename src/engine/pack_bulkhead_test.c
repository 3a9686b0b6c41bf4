/* Our own policy, for now: FGD's gain in parts, not rounded to points. */
#include "engine/pack_bulkhead.h"

#include <stdlib.h>

#include "base/test.h"

static const struct bh_pack_node node = { 10000, 10000, 0, 2, { 4200, 2100 } };
static const struct bh_pack_shape half = { 1000, 1000, 1, 2100, 1 };
static const struct bh_pack_shape whole = { 1000, 1000, 1, 4200, 1 };

static void
gains_are_in_parts(void **state)
{
    struct bh_pack_caps caps = { 1, 2 };
    struct bh_pack *pack =
        bh_pack_init(malloc(bh_pack_size(&caps)), &caps, BH_PACK_BULKHEAD);
    const struct bh_pack_host *host = bh_pack_host(pack, 0);
    uint32_t gpus;

    (void)state;
    bh_pack_set_node(pack, 0, &node);
    assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &half), 3));
    assert_true(bh_pack_expect(pack, bh_pack_shape(pack, &whole), 1));
    /* Whole jobs, a quarter, cannot use the half: 525 parts; they lose no more if it goes.
     */
    assert_int_equal(bh_pack_fragmentation(pack), 2100);
    assert_int_equal(bh_pack_bulkhead_pick(pack, host, &half, &gpus), 525);
    assert_int_equal(gpus, 2);
    assert_int_equal(bh_pack_bulkhead_score(pack, host, &half), 525);
    assert_int_equal(bh_pack_bulkhead_pick(pack, host, &whole, &gpus), 0);
    assert_int_equal(gpus, 1);
    free(pack);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gains_are_in_parts),
};
BH_TEST_MAIN(tests)
