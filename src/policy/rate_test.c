#include "policy/rate.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/test.h"

#define START (UINT64_C(1000) * BH_NS_PER_S)

static struct bh_rates rates;

static int
rate_begin(void **state)
{
    rates = (struct bh_rates){ .per_second = {
                                   [BH_RATE_READ] = 0, [BH_RATE_CHANGE] = 5, [BH_RATE_EXPENSIVE] = 1 } };
    return 0;
}

static uint32_t
draw_all(struct bh_rate_key key, enum bh_rate_class class, bh_ns now)
{
    const struct bh_rate_request one = { class, 1 };
    uint32_t count = 0;
    bh_ns wait;

    while (count < 1000 && bh_rate_draw(&rates, &key, one, now, &wait))
        count++;
    return count;
}

static void
what_is_drawn(void **state)
{
    static const struct bh_rate_key alice = { true, 7, 1 }, root = { true, 1, BH_RATE_ADMIN },
                                    stranger = { false, 7, 1 };
    static const struct {
        const char *name;
        const struct bh_rate_key *key;
        enum bh_rate_class class;
        bh_ns at_s;
        uint32_t drawn;
    } steps[] = {
        { "no limit", &alice, BH_RATE_READ, 0, 1000 },
        { "a burst of ten seconds", &alice, BH_RATE_CHANGE, 0, 50 },
        { "then none", &alice, BH_RATE_CHANGE, 0, 0 },
        { "another class", &alice, BH_RATE_EXPENSIVE, 0, 10 },
        { "a stranger of that number", &stranger, BH_RATE_CHANGE, 0, 50 },
        { "five after a second", &alice, BH_RATE_CHANGE, 1, 5 },
        { "ten after two more", &alice, BH_RATE_CHANGE, 3, 10 },
        { "a burst at most", &alice, BH_RATE_CHANGE, 300, 50 },
        { "an administrator's", &root, BH_RATE_CHANGE, 300, 500 },
        { "a clock that went back", &alice, BH_RATE_CHANGE, 200, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(steps); i++)
        BH_CHECK_EQ(steps[i].name,
                    draw_all(*steps[i].key, steps[i].class, START + steps[i].at_s * BH_NS_PER_S),
                    steps[i].drawn);
    BH_CHECK_DONE();
}

static void
says_how_long_to_wait(void **state)
{
    const struct bh_rate_key alice = { true, 7, 1 };
    const struct bh_rate_request one = { BH_RATE_CHANGE, 1 };
    bh_ns wait = 0;

    draw_all(alice, BH_RATE_CHANGE, START);
    BH_CHECK("none left", !bh_rate_draw(&rates, &alice, one, START, &wait));
    BH_CHECK_EQ("a fifth of a second", wait, BH_NS_PER_S / 5);
    BH_CHECK("not before", !bh_rate_draw(&rates, &alice, one, START + wait - 1, &wait));
    BH_CHECK("then", bh_rate_draw(&rates, &alice, one, START + BH_NS_PER_S / 5, &wait));
    BH_CHECK_DONE();
}

/* Five a second, fifty at once: of 4 KiB each, so 20 KiB a second and 200 KiB at once. */
static void
what_is_long_draws_more(void **state)
{
    static const struct {
        const char *name;
        size_t bytes;
        bh_ns at_s, wait_ms; /* 0: it is taken */
    } steps[] = {
        { "nothing", 0, 0, 0 },
        { "an ordinary job", BH_RATE_BYTES, 0, 0 },
        { "one byte more counts twice", BH_RATE_BYTES + 1, 0, 0 },
        { "46 of the 46 that are left", 46 * BH_RATE_BYTES, 0, 0 },
        { "then the smallest waits", 0, 0, 200 },
        { "the longest waits for a full bucket", 1 << 20, 9, 1000 },
        { "and gets it", 1 << 20, 10, 0 },
        { "which is 256 for 50", 0, 10, 41400 },
        { "not before that is paid off", 0, 51, 400 },
        { "then", 0, 52, 0 },
    };
    const struct bh_rate_key alice = { true, 7, 1 };

    for (size_t i = 0; i < BH_COUNT(steps); i++) {
        bh_ns wait = 0;
        bool may = bh_rate_draw(&rates, &alice, bh_rate_change(steps[i].bytes),
                                START + steps[i].at_s * BH_NS_PER_S, &wait);

        BH_CHECK_EQ(steps[i].name, may, steps[i].wait_ms == 0);
        BH_CHECK_EQ(steps[i].name, wait, steps[i].wait_ms * BH_NS_PER_MS);
    }
    BH_CHECK_DONE();
}

/* A caller under more names than there are slots gets no more than the slots hold. */
static void
many_names_bring_no_fresh_buckets(void **state)
{
    uint64_t drawn = 0;

    for (uint64_t id = 1; id <= 3 * BH_RATE_SLOTS; id++)
        drawn += draw_all((struct bh_rate_key){ false, id, 1 }, BH_RATE_CHANGE, START);
    BH_CHECK("places and the shared one", drawn <= (BH_RATE_SLOTS + 1) * 50);
    BH_CHECK_EQ("a drained one is not forgotten",
                draw_all((struct bh_rate_key){ false, 1, 1 }, BH_RATE_CHANGE, START), 0);
    BH_CHECK_EQ("who is known has his own",
                draw_all((struct bh_rate_key){ true, 1, 1 }, BH_RATE_CHANGE, START), 50);
    BH_CHECK_EQ("full ones make room",
                draw_all((struct bh_rate_key){ false, UINT64_C(1) << 60, 1 }, BH_RATE_CHANGE,
                         START + 20 * BH_NS_PER_S),
                50);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(what_is_drawn, rate_begin),
    cmocka_unit_test_setup(says_how_long_to_wait, rate_begin),
    cmocka_unit_test_setup(what_is_long_draws_more, rate_begin),
    cmocka_unit_test_setup(many_names_bring_no_fresh_buckets, rate_begin),
};
BH_TEST_MAIN(tests)
