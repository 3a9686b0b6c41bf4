/* What the node makes of the driver's samples: when they are believed, and who is judged by them. */
#include <stdlib.h>

#include "base/test.h"
#include "node/job/share_busy.h"

static struct {
    bh_rc rc;
    struct bh_device_busy items[4];
    uint32_t count, asked;
    uint64_t since_us;
} driver;

static bh_rc
answer_busy(void *self, const char *gpu, struct bh_arena *arena, struct bh_device_samples *samples,
            struct bh_err *err)
{
    driver.asked++;
    driver.since_us = samples->since_us;
    samples->items = driver.items;
    samples->count = driver.count;
    return driver.rc == BH_OK ? BH_OK : bh_err_set(err, driver.rc, "no samples");
}

static const struct bh_device_ops ops = { .name = "test", .busy = answer_busy };
static struct bh_share_leases leases;
static struct bh_node node = { .device = { .ops = &ops }, .share_leases = &leases };

static int
set_up(void **state)
{
    memset(&leases, 0, sizeof leases);
    memset(&driver, 0, sizeof driver);
    leases.compared_at = bh_time_monotonic() - BH_NS_PER_S;
    return 0;
}

static void
test_asked(void **state)
{
    static const struct {
        const char *name;
        bh_rc rc;
        struct bh_device_busy items[4];
        uint32_t count;
        bool known, notified;
        /* clang-format off */
    } cases[] = {
        { "nobody is busy",       BH_OK, { { 0, 0 } }, 0, true, false },
        { "parts of a whole",     BH_OK, { { 7, 60 }, { 8, 40 } }, 2, true, false },
        { "but for rounding",     BH_OK, { { 7, 34 }, { 8, 34 }, { 9, 34 } }, 3, true, false },
        { "more than all",        BH_OK, { { 7, 100 }, { 8, 100 } }, 2, false, true },
        { "no samples",           BH_UNAVAILABLE, { { 7, 100 } }, 1, false, true },
        { "did not answer",       BH_UNCERTAIN, { { 7, 100 } }, 1, false, false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_share_busy busy;

        set_up(state);
        driver.rc = cases[i].rc;
        memcpy(driver.items, cases[i].items, sizeof driver.items);
        driver.count = cases[i].count;
        bh_share_busy_read(&node, "GPU-1", NULL, &busy);
        BH_CHECK_EQ(cases[i].name, busy.known, cases[i].known);
        BH_CHECK_EQ(cases[i].name, leases.no_samples, cases[i].notified);
        BH_CHECK_EQ(cases[i].name, bh_share_busy_percent(&busy, 7),
                    busy.known && cases[i].count > 0 ? cases[i].items[0].percent : 0);
        BH_CHECK_EQ(cases[i].name, bh_share_busy_percent(&busy, 6), 0);
    }
    BH_CHECK_DONE();
}

/* Samples from before this node knew its leases are charged to none. */
static void
test_since(void **state)
{
    uint64_t now_us = bh_time_now() / 1000;
    struct bh_share_busy busy;

    bh_share_busy_read(&node, "GPU-1", NULL, &busy);
    BH_CHECK("since the last look", driver.since_us + 900000 < now_us && driver.since_us + 5000000 > now_us);
    leases.compared_at = 0;
    bh_share_busy_read(&node, "GPU-1", NULL, &busy);
    BH_CHECK_EQ("not asked", driver.asked, 1);
    BH_CHECK("not known", !busy.known);
    BH_CHECK_DONE();
}

/* Two leases on a GPU, of which the second has turns all the time: what comes of the first. */
static void
test_judged(void **state)
{
    static const struct {
        const char *name;
        struct bh_share_granted first, second;
        uint32_t busy_percent;
        bool out;
        /* clang-format off */
    } cases[] = {
        { "without a turn",      { .known = true }, { .known = true, .bp = 10000 }, 50, true },
        { "in its turns",        { .known = true, .bp = 5000 }, { .known = true, .bp = 5000 }, 55, false },
        { "alone",               { .known = true }, { .known = true }, 100, false },
        { "its turns not known", { .known = false }, { .known = true, .bp = 10000 }, 50, false },
        { "the others' neither", { .known = true }, { .known = false, .bp = 10000 }, 50, false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_share_use uses[2] = {
            { .row = &leases.rows[0], .device = 3, .busy_percent = cases[i].busy_percent },
            { .row = &leases.rows[1] }
        };

        set_up(state);
        leases.rows[0].granted = cases[i].first;
        leases.rows[1].granted = cases[i].second;
        for (uint32_t check = 0; check < 30; check++)
            bh_share_busy_judge(&node, uses, 2);
        BH_CHECK_EQ(cases[i].name, leases.rows[0].out_of_slice, cases[i].out ? 1u << 3 : 0);
        BH_CHECK_EQ(cases[i].name, leases.rows[1].out_of_slice, 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_asked, set_up),
    cmocka_unit_test_setup(test_since, set_up),
    cmocka_unit_test_setup(test_judged, set_up),
};
BH_TEST_MAIN(tests)
