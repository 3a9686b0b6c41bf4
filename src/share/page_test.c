/* The accounting words under many processes that are killed at any moment. */
#include "bulkhead/share_page.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"

enum { CAP = 1000, DEVICES = 2, RACERS = 4, KILLS = 150 };

static struct bh_share_usage *usage;

static int
set_up(void **state)
{
    usage = mmap(NULL, sizeof(*usage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return usage == MAP_FAILED ? -1 : 0;
}

static int
tear_down(void **state)
{
    return munmap(usage, sizeof(*usage));
}

static void
page_test_words(void **state)
{
    static const struct {
        const char *name;
        uint32_t units;
        int32_t difference;
        uint32_t slot;
        uint64_t sequence;
    } cases[] = {
        { "nothing", 0, 0, 0, 0 },
        { "a unit", 1, 1, 0, 1 },
        { "a unit back", 0, -1, 0, 2 },
        { "all of two tebibytes", BH_SHARE_UNITS_MAX, BH_SHARE_UNITS_MAX, 511, 8191 },
        { "all of it back", 0, -BH_SHARE_UNITS_MAX, 511, 8191 },
        { "a long sequence", 5, -3, 7, UINT64_C(0xfffffffffff) },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t total =
            bh_share_total_pack(cases[i].units, cases[i].difference, cases[i].slot, cases[i].sequence);
        uint64_t held = bh_share_held_pack(cases[i].units, cases[i].sequence);

        BH_CHECK_EQ(cases[i].name, bh_share_units(total), cases[i].units);
        BH_CHECK_EQ(cases[i].name, bh_share_difference(total), cases[i].difference);
        BH_CHECK_EQ(cases[i].name, bh_share_slot_of(total), cases[i].slot);
        BH_CHECK_EQ(cases[i].name, bh_share_units(held), cases[i].units);
        BH_CHECK_EQ(cases[i].name, (total ^ held) & 0x1fff, 0);
    }
    BH_CHECK_DONE();
}

static void
one_process(void **state)
{
    BH_CHECK("all", bh_share_change(usage, 0, 3, CAP, CAP));
    BH_CHECK("no more", !bh_share_change(usage, 0, 4, 1, CAP));
    BH_CHECK("another device", bh_share_change(usage, 1, 4, 1, CAP));
    BH_CHECK("not what another has", !bh_share_change(usage, 0, 4, -1, CAP));
    BH_CHECK("some back", bh_share_change(usage, 0, 3, -10, CAP));
    BH_CHECK("then there is room", bh_share_change(usage, 0, 4, 10, CAP));
    BH_CHECK("a smaller cap takes nothing away", bh_share_change(usage, 0, 4, -10, 5));
    BH_CHECK("and gives nothing", !bh_share_change(usage, 0, 4, 1, 5));
    BH_CHECK_EQ("used", bh_share_used(usage, 0), CAP - 10);
    BH_CHECK_EQ("held", bh_share_held(usage, 0, 3), CAP - 10);
    for (int i = 0; i < 20000; i++)
        BH_CHECK("past the short sequence", bh_share_change(usage, 1, 4, i % 2 ? -1 : 1, CAP));
    BH_CHECK_EQ("exact", bh_share_held(usage, 1, 4), 1);
    BH_CHECK_DONE();
}

/* Killed between the two words: the next change settles it. */
static void
killed_between(void **state)
{
    uint64_t next = bh_share_total_pack(7, 7, 9, 1);

    atomic_store(&usage->total[0].word, next);
    BH_CHECK_EQ("not settled", bh_share_units(atomic_load(&usage->slot[9].held[0])), 0);
    BH_CHECK("the next one", bh_share_change(usage, 0, 1, 1, CAP));
    BH_CHECK_EQ("settles", bh_share_units(atomic_load(&usage->slot[9].held[0])), 7);
    bh_share_settle(usage, 0, next);
    BH_CHECK_EQ("once", bh_share_units(atomic_load(&usage->slot[9].held[0])), 7);
    BH_CHECK("reaped", bh_share_change(usage, 0, 9, -7, CAP));
    BH_CHECK_EQ("to the unit", bh_share_used(usage, 0), 1);
    BH_CHECK_DONE();
}

static void
page_test_race(uint32_t slot, uint64_t random)
{
    assert_int_not_equal(nice(10), -1); /* the killer comes first */
    for (;;) {
        uint32_t device = (uint32_t)(random >> 40) % DEVICES;
        int32_t units = (int32_t)(random >> 50) % 300;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if ((random >> 60) % 2 == 0)
            units = -units;
        bh_share_change(usage, device, slot, units, CAP);
    }
}

static pid_t
page_test_begin(uint32_t slot, uint64_t random)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        page_test_race(slot, random);
    return pid;
}

static void
page_test_reap(pid_t pid, uint32_t slot)
{
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (uint32_t d = 0; d < DEVICES; d++)
        assert_true(bh_share_change(usage, d, slot, -(int32_t)bh_share_held(usage, d, slot), CAP));
}

static void
page_test_storm(void **state)
{
    pid_t pids[RACERS];

    for (uint32_t i = 0; i < RACERS; i++)
        pids[i] = page_test_begin(i, i * 77 + 1);
    for (uint32_t k = 0; k < KILLS; k++) {
        uint32_t victim = (k * 7) % RACERS;

        bh_time_sleep(k % 5 * 200000);
        for (uint32_t d = 0; d < DEVICES; d++)
            BH_CHECK("never above the cap", bh_share_used(usage, d) <= CAP);
        kill(pids[victim], SIGKILL);
        page_test_reap(pids[victim], victim);
        pids[victim] = page_test_begin(victim, k);
    }
    for (uint32_t i = 0; i < RACERS; i++) {
        kill(pids[i], SIGKILL);
        page_test_reap(pids[i], i);
    }
    for (uint32_t d = 0; d < DEVICES; d++)
        BH_CHECK_EQ("nothing is left", bh_share_used(usage, d), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(page_test_words),
    cmocka_unit_test_setup_teardown(one_process, set_up, tear_down),
    cmocka_unit_test_setup_teardown(killed_between, set_up, tear_down),
    cmocka_unit_test_setup_teardown(page_test_storm, set_up, tear_down),
};

BH_TEST_MAIN(tests)
