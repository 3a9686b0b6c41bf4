/* Records by address, and handles in buckets: the tables that know no locks. */
#include "base/test.h"

#include <pthread.h>

#include "shim/process/handles.h"
#include "shim/process/records.h"
#include "shim/process/state.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNIT (UINT64_C(2) << 20)

static const struct bh_charge_record linear = { BH_RECORD_LINEAR, 3, 77, 4096 };

static const struct {
    const char *name;
    uint64_t address;
    bool fits;
} addresses[] = {
    { "the first unit", 0, true },
    { "within a unit", 256, true },
    { "another in it", 512, true },
    { "its last word", UNIT - 256, true },
    { "the next unit", UNIT, true },
    { "the end of a node", (UINT64_C(1) << 34) - UNIT, true },
    { "the last unit", BH_RECORDS_END - UNIT, true },
    { "one past it", BH_RECORDS_END, false },
    { "the highest address", UINT64_MAX - 255, false },
    { "not aligned", UNIT + 255, false },
};

static void
addresses_keep_records(void **state)
{
    struct bh_charge_record record;

    for (size_t i = 0; i < COUNT(addresses); i++) {
        struct bh_charge_record put = linear;

        put.owner = (unsigned)i;
        BH_CHECK_EQ(addresses[i].name, bh_records_put(addresses[i].address, put, &record), addresses[i].fits);
        if (addresses[i].fits)
            BH_CHECK_EQ(addresses[i].name, record.kind, BH_RECORD_NONE);
    }
    for (size_t i = 0; i < COUNT(addresses); i++) {
        uint64_t at = addresses[i].address;

        BH_CHECK(addresses[i].name, !bh_records_take(at, 1u << BH_RECORD_ASYNC, &record));
        BH_CHECK_EQ(addresses[i].name, bh_records_take(at, 1u << BH_RECORD_LINEAR, &record),
                    addresses[i].fits);
        BH_CHECK(addresses[i].name, !bh_records_take(at, 1u << BH_RECORD_LINEAR, &record));
        if (addresses[i].fits)
            BH_CHECK(addresses[i].name, record.owner == i && record.device == 3 && record.amount == 4096);
    }
    BH_CHECK_EQ("empty", bh_records_next(0, UINT64_MAX, &record), UINT64_MAX);
    BH_CHECK_DONE();
}

/* The largest of every field comes back as it was. */
static void
fields_do_not_mix(void **state)
{
    struct bh_charge_record most = { BH_RECORD_LEAVING, 15, BH_RECORD_OWNERS_MAX - 1,
                                     (UINT64_C(1) << 43) - 1 },
                            got;

    assert_true(bh_records_put(UNIT, most, NULL));
    assert_true(bh_records_take(UNIT, 1u << BH_RECORD_LEAVING, &got));
    BH_CHECK_EQ("amount", got.amount, most.amount);
    BH_CHECK_EQ("owner", got.owner, most.owner);
    BH_CHECK_EQ("device", got.device, most.device);
    BH_CHECK_DONE();
}

static void
walks_see_all(void **state)
{
    static const uint64_t at[] = { UNIT, 3 * UNIT + 1024, 3 * UNIT + 4096, 700 * UNIT,
                                   (UINT64_C(1) << 40) + 256 };
    struct bh_charge_record record;
    uint64_t from = 0;

    for (size_t i = 0; i < COUNT(at); i++)
        assert_true(bh_records_put(at[i], linear, NULL));
    for (size_t i = 0; i < COUNT(at); i++, from++) {
        from = bh_records_next(from, UINT64_MAX, &record);
        BH_CHECK_EQ("next", from, at[i]);
    }
    BH_CHECK_EQ("no more", bh_records_next(from, UINT64_MAX, &record), UINT64_MAX);
    BH_CHECK_EQ("below", bh_records_next(2 * UNIT, 3 * UNIT + 1024, &record), UINT64_MAX);
    BH_CHECK("before", bh_records_before(702 * UNIT + 5, &record));
    BH_CHECK("turned", bh_records_change_kind(UNIT, BH_RECORD_LINEAR, BH_RECORD_MAP));
    BH_CHECK("once", !bh_records_change_kind(UNIT, BH_RECORD_LINEAR, BH_RECORD_MAP));
    BH_CHECK("replaced", bh_records_put(UNIT, linear, &record) && record.kind == BH_RECORD_MAP);
    for (size_t i = 0; i < COUNT(at); i++)
        BH_CHECK("taken", bh_records_take(at[i], 1u << BH_RECORD_LINEAR, &record));
    BH_CHECK_DONE();
}

/* By block and device; the record's place does not matter. */
static const struct {
    const char *name;
    uint64_t address;
    unsigned device;
    bool comes, edge; /* is the first one, or the last */
} counted[] = {
    { "first", 9 * UNIT + 512, 0, true, true },
    { "second", 9 * UNIT, 0, true, false },
    { "another block", 10 * UNIT, 0, true, true },
    { "another device", 9 * UNIT + 512, 15, true, true },
    { "one goes", 9 * UNIT + 512, 0, false, false },
    { "its last word", 10 * UNIT - 256, 0, false, true },
    { "first again", 9 * UNIT, 0, true, true },
    { "last again", 9 * UNIT, 0, false, true },
    { "other device's last", 9 * UNIT, 15, false, true },
    { "other block's last", 11 * UNIT - 1, 0, false, true },
};

static void
blocks_count_small_ones(void **state)
{
    bool edge = false;

    for (size_t i = 0; i < COUNT(counted); i++) {
        if (counted[i].comes)
            BH_CHECK(counted[i].name, bh_records_enter(counted[i].address, counted[i].device, &edge));
        else
            edge = bh_records_leave(counted[i].address, counted[i].device);
        BH_CHECK_EQ(counted[i].name, edge, counted[i].edge);
    }
    BH_CHECK("no such address", !bh_records_enter(BH_RECORDS_END, 0, &edge));
    BH_CHECK("nothing of ours is wrong", !bh_state_is_latched());
    BH_CHECK("none can leave", !bh_records_leave(9 * UNIT, 0) && bh_state_is_latched());
    BH_CHECK_DONE();
}

/* ---- four threads ---- */

static struct bh_handles handles;
static _Atomic uint64_t taken;

enum { THREADS = 4, ROUNDS = 20000 };

/* Each puts its own within units that all split, and all take what one of them put. */
static void *
race(void *self)
{
    uint64_t me = (uint64_t)(uintptr_t)self, word, got = 0;
    struct bh_charge_record record;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t mine = i % 64 * UNIT + me * 256, ours = (100 + i % 64) * UNIT;

        if (!bh_records_put(mine, linear, NULL))
            return (void *)(uintptr_t) "put";
        if (me == 0)
            (void)bh_records_put(ours, linear, NULL);
        got += bh_records_take(ours, 1u << BH_RECORD_LINEAR, &record);
        if (!bh_records_take(mine, 1u << BH_RECORD_LINEAR, &record))
            return (void *)(uintptr_t) "take";
        if (!bh_handles_put(&handles, i * THREADS + me, me + 1)
            || !bh_handles_find(&handles, i * THREADS + me, &word) || word != me + 1
            || !bh_handles_take(&handles, i * THREADS + me, &word) || word != me + 1)
            return (void *)(uintptr_t) "handle";
    }
    atomic_fetch_add(&taken, got);
    return NULL;
}

static void
threads_do_not_meet(void **state)
{
    pthread_t thread[THREADS];
    uint64_t left = 0, word, handle, at = 0;
    struct bh_charge_record record;

    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, race, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *bad;

        pthread_join(thread[i], &bad);
        BH_CHECK_STR("a thread", bad == NULL ? "well" : bad, "well");
    }
    for (uint64_t from = 0; (from = bh_records_next(from, UINT64_MAX, &record)) != UINT64_MAX; from++)
        left++;
    BH_CHECK("one taker each", taken <= ROUNDS && taken + left <= ROUNDS);
    BH_CHECK("no handle is left", !bh_handles_next(&handles, &at, &handle, &word));
    BH_CHECK_DONE();
}

static void
handles_are_listed(void **state)
{
    uint64_t at = 0, handle, word, sum = 0;

    for (uint64_t i = 0; i < 5000; i++)
        assert_true(bh_handles_put(&handles, i, i));
    BH_CHECK("again", bh_handles_put(&handles, 17, 18));
    while (bh_handles_next(&handles, &at, &handle, &word))
        sum += word;
    BH_CHECK_EQ("all of them, once", sum, 4999 * 5000 / 2 + 1);
    BH_CHECK("not there", !bh_handles_find(&handles, 5000, &word));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(addresses_keep_records), cmocka_unit_test(fields_do_not_mix),
    cmocka_unit_test(walks_see_all),          cmocka_unit_test(threads_do_not_meet),
    cmocka_unit_test(handles_are_listed),     cmocka_unit_test(blocks_count_small_ones),
};

BH_TEST_MAIN(tests)
