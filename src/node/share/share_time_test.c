#include "node/share/share_time.h"

#include "base/test.h"

enum { ALL = 10000 };

/* The readings of each second, in tenths of the time: the driver's samples of the lease, its time slices, the
 * others' time slices ('x' is all of it); and the second in which it is reported, 0: never. */
static const struct {
    const char *name, *busy, *granted, *others;
    uint32_t notified, busy_percent, granted_percent;
} cases[] = {
    { "keeps to its turns", "555555555555555555", "555555555555555555", "555555555555555555", 0 },
    { "alone, all is its own", "xxxxxxxxxxxxxxxxxx", "000000000000000000", "000000000000000000", 0 },
    { "in others' turns, without one", "5555555555555555", "0000000000000000", "xxxxxxxxxxxxxxxx", 9, 50, 0 },
    { "in others' turns and in its own", "88888888888888888888888", "55555555555555555555555",
      "55555555555555555555555", 0 },
    { "the same, for longer", "9999999999999999999999999", "5555555555555555555555555",
      "5555555555555555555555555", 16, 90, 50 },
    { "ten points are a chance", "44444444444444444444", "33333333333333333333", "77777777777777777777", 0 },
    { "samples that are off for seconds", "xxxxx0000xxxxx0000xxxx0000", "55555555555555555555555555",
      "55555555555555555555555555", 0 },
    { "samples that come late", "0x0x0x0x0x0x0x0x0x0x0x0x", "x0x0x0x0x0x0x0x0x0x0x0x0",
      "5555555555555555555555555", 0 },
    { "no more than others could have", "xxxxxxxxxxxxxxxxxxxx", "00000000000000000000",
      "11111111111111111111", 0 },
    { "a process now and then", "00x00000000000000x0000000", "0000000000000000000000000",
      "xxxxxxxxxxxxxxxxxxxxxxxxx", 0 },
};

static uint32_t
tenths(char letter)
{
    return letter == 'x' ? ALL : (uint32_t)(letter - '0') * ALL / 10;
}

static void
test_looks(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_share_time at = { 0 };
        uint32_t notified = 0, times = 0;

        for (uint32_t s = 0; cases[i].busy[s] != '\0'; s++) {
            const struct bh_share_time_check check = { BH_NS_PER_S, tenths(cases[i].busy[s]),
                                                       tenths(cases[i].granted[s]),
                                                       tenths(cases[i].others[s]) };

            if (!bh_share_time_check(&at, &check))
                continue;
            times++;
            notified = s + 1;
            BH_CHECK_EQ(cases[i].name, bh_share_time_busy(&at), cases[i].busy_percent);
            BH_CHECK_EQ(cases[i].name, bh_share_time_granted(&at), cases[i].granted_percent);
        }
        BH_CHECK_EQ(cases[i].name, notified, cases[i].notified);
        BH_CHECK_EQ(cases[i].name, times, cases[i].notified != 0);
    }
    BH_CHECK_DONE();
}

/* Reported once, and again when it has kept to its time slices meanwhile. */
static void
test_again(void **state)
{
    const struct bh_share_time_check out = { BH_NS_PER_S, 5000, 0, ALL };
    const struct bh_share_time_check kept = { BH_NS_PER_S, 0, 3333, ALL };
    struct bh_share_time at = { 0 };
    uint32_t notified = 0;

    for (uint32_t s = 0; s < 40; s++)
        notified += bh_share_time_check(&at, &out);
    BH_CHECK_EQ("once", notified, 1);
    for (uint32_t s = 0; s < 2000 && at.beyond_ns > 0; s++)
        BH_CHECK("no more", !bh_share_time_check(&at, &kept));
    BH_CHECK_EQ("forgotten", at.beyond_ns, 0);
    for (uint32_t s = 0; s < 40; s++)
        notified += bh_share_time_check(&at, &out);
    BH_CHECK_EQ("once more", notified, 2);
    BH_CHECK_DONE();
}

/* The driver was not asked for a while: it has no samples of all of it. */
static void
test_gap(void **state)
{
    const struct bh_share_time_check gap = { 60 * BH_NS_PER_S, ALL, 0, ALL }, none = { 0, ALL, 0, ALL };
    struct bh_share_time at = { 0 };

    BH_CHECK("a gap is no look", !bh_share_time_check(&at, &gap) && at.beyond_ns == 0);
    BH_CHECK("nor is nothing", !bh_share_time_check(&at, &none) && at.beyond_ns == 0);
    BH_CHECK_DONE();
}

/* What bulkhead-share says, in tenths of a second; at 0: nothing is known of the lease. */
static const struct {
    const char *name;
    uint32_t at, granted, now;
    bool known;
    uint32_t bp;
    bool outdated;
} states[] = {
    { "the first", 10, 5, 12, false, 0 },
    { "a second later", 20, 9, 22, true, 4000 },
    { "nothing new", 20, 9, 32, true, 4000 },
    { "nothing new for long", 20, 9, 50, false, 4000 },
    { "it speaks again", 60, 29, 62, true, 5000 },
    { "all of the time and more", 70, 40, 72, true, 10000 },
    { "another that counts anew", 80, 2, 82, false, 10000 },
    { "and goes on", 90, 12, 92, true, 10000 },
    { "its pages are outdated", 100, 13, 101, false, 0, .outdated = true },
    { "gone", 0, 0, 102, false, 0 },
    { "there again", 110, 50, 112, false, 0 },
};

static void
test_granted(void **state)
{
    const uint64_t tenth_ns = BH_NS_PER_S / 10;
    struct bh_share_granted granted = { .known = false };

    for (size_t i = 0; i < BH_COUNT(states); i++) {
        const struct bh_share_lease_state said = { .at_ns = states[i].at * tenth_ns,
                                                   .granted_ns = states[i].granted * tenth_ns,
                                                   .outdated = states[i].outdated };

        bh_share_granted_add(&granted, states[i].at > 0 ? &said : NULL, states[i].now * tenth_ns);
        BH_CHECK_EQ(states[i].name, granted.known, states[i].known);
        BH_CHECK_EQ(states[i].name, granted.bp, states[i].bp);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_looks),
    cmocka_unit_test(test_again),
    cmocka_unit_test(test_gap),
    cmocka_unit_test(test_granted),
};
BH_TEST_MAIN(tests)
