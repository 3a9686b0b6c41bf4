#include "engine/state/slots.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static void
slots_are_found_by_id_through_any_history(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_engine *engine = bh_fixture_engine(&caps);
    uint32_t slots[200] = { 0 };
    uint32_t random = 1, live = 0;

    for (uint32_t i = 0; i < 20000; i++) {
        random = random * 1664525 + 1013904223;
        uint32_t at = (random >> 10) % BH_COUNT(slots);
        uint64_t id = (uint64_t)at * 4096 + 1; /* near each other in the index */

        assert_int_equal(bh_slot_find(engine, TABLE_JOB, id), slots[at]);
        if (slots[at]) {
            bh_slot_remove(engine, TABLE_JOB, slots[at]);
            slots[at] = 0;
            live--;
        } else {
            slots[at] = bh_slot_add(engine, TABLE_JOB, id);
            live++;
        }
        assert_int_equal(bh_slots_free(engine, TABLE_JOB), caps.jobs - live);
    }
    free(engine);
}

static void
a_freed_slot_is_used_again_first(void **state)
{
    struct bh_engine *engine = bh_fixture_engine(&BH_ENGINE_CAPS_DEFAULT);
    uint32_t a = bh_slot_add(engine, TABLE_GPU, 10), b = bh_slot_add(engine, TABLE_GPU, 11);

    bh_slot_remove(engine, TABLE_GPU, a);
    assert_int_equal(bh_slot_find(engine, TABLE_GPU, 10), 0);
    assert_int_equal(bh_slot_add(engine, TABLE_GPU, 12), a);
    assert_int_equal(bh_slot_find(engine, TABLE_GPU, 11), b);
    assert_int_equal(bh_slot_find(engine, TABLE_GPU, 0), 0);
    free(engine);
}

static void
a_job_takes_less_than_three_megabytes_in_ten_thousand(void **state)
{
    struct bh_engine_caps few = BH_ENGINE_CAPS_DEFAULT, many = few;

    many.jobs += 10000;
    assert_true(bh_engine_size(&many) - bh_engine_size(&few) < 3000000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(slots_are_found_by_id_through_any_history),
    cmocka_unit_test(a_freed_slot_is_used_again_first),
    cmocka_unit_test(a_job_takes_less_than_three_megabytes_in_ten_thousand),
};
BH_TEST_MAIN(tests)
