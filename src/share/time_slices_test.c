#include "share/time_slices.h"

#include <stdlib.h>

#include "share/time_slices_test.h"

static struct bh_time_slices *slices; /* of the case that runs */

static uint32_t
slices_add(uint32_t gpus, uint32_t weight)
{
    return slices_join(slices, 0, (struct bh_time_slices_member){ .gpus = gpus, .weight = weight });
}

/* ---- a case each ---- */

static void
alone(void)
{
    uint32_t a = slices_add(1, 2100);

    BH_CHECK_EQ("shut before it wants", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    bh_time_slices_want(slices, 5, a);
    BH_CHECK_EQ("at once", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("nothing will happen", bh_time_slices_next(slices) == UINT64_MAX, true);
    bh_time_slices_tick(slices, 60 * SECOND);
    BH_CHECK_EQ("for as long as it likes", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("charged", bh_time_slices_used_ns(slices, a), 60 * SECOND - 5);
}

static void
hand_over(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 1 * MS, b);
    BH_CHECK_EQ("others wait", bh_time_slices_state(slices, a), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("half a time slice ahead", bh_time_slices_next(slices), 10 * MS);
    bh_time_slices_tick(slices, 20 * MS);
    BH_CHECK_EQ("over", bh_time_slices_state(slices, a), BH_TIME_SLICE_ENDING);
    BH_CHECK_EQ("not before it is drained", bh_time_slices_state(slices, b), BH_TIME_SLICE_NONE);
    bh_time_slices_drained(slices, 41 * MS, a);
    BH_CHECK_EQ("then", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("the first waits", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    bh_time_slices_idle(slices, 42 * MS, b);
    BH_CHECK_EQ("shut, to be sure", bh_time_slices_state(slices, b), BH_TIME_SLICE_ENDING);
    bh_time_slices_drained(slices, 42 * MS, b);
    BH_CHECK_EQ("no idle one keeps a time slice", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("by the clock, to the end", bh_time_slices_used_ns(slices, a), 41 * MS);
    BH_CHECK_EQ("what it used", bh_time_slices_used_ns(slices, b), 1 * MS);
}

static void
death(void)
{
    uint32_t a = slices_add(1, 1), b = slices_add(1, 4200);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_leave(slices, 1, a);
    BH_CHECK_EQ("its time slice is free", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
}

static void
stuck(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_tick(slices, 20 * MS + 20 * MS);
    BH_CHECK_EQ("ending", bh_time_slices_state(slices, a), BH_TIME_SLICE_ENDING);
    bh_time_slices_tick(slices, 40 * MS + SECOND);
    BH_CHECK("a kernel without an end", bh_time_slices_is_stuck(slices, a));
    BH_CHECK_EQ("others run beside it", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    bh_time_slices_drained(slices, 5 * SECOND, a);
    BH_CHECK_EQ("charged for all of it", bh_time_slices_used_ns(slices, a), 5 * SECOND);
    BH_CHECK("and one of many again", !bh_time_slices_is_stuck(slices, a));
    bh_time_slices_tick(slices, 6 * SECOND);
    BH_CHECK_EQ("it pays", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
}

/* A collective of which the end of the time slice cut off a part: the rest must come for it to end. */
static void
stuck_goes_on(void)
{
    static const struct {
        uint64_t at_ms;
        enum bh_time_slice slice;
    } looks[] = { { 1040, BH_TIME_SLICE_CONTENDED }, { 2039, BH_TIME_SLICE_CONTENDED },
                  { 2040, BH_TIME_SLICE_ENDING },    { 3039, BH_TIME_SLICE_ENDING },
                  { 3040, BH_TIME_SLICE_CONTENDED }, { 4039, BH_TIME_SLICE_CONTENDED } };
    uint32_t a = slices_add(3, 2100), b = slices_add(1, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_tick(slices, 40 * MS);
    bh_time_slices_want(slices, 40 * MS, a);
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        BH_CHECK("it will be looked at", bh_time_slices_next(slices) <= looks[i].at_ms * MS + SECOND);
        bh_time_slices_tick(slices, looks[i].at_ms * MS);
        BH_CHECK_EQ("goes on, and is tried again", bh_time_slices_state(slices, a), looks[i].slice);
        BH_CHECK("reported as stuck", bh_time_slices_is_stuck(slices, a));
        BH_CHECK_EQ("without an end", bh_time_slices_until_ns(slices, a), 0);
        BH_CHECK("beside the other", bh_time_slices_state(slices, b) != BH_TIME_SLICE_NONE);
    }
    bh_time_slices_idle(slices, 4039 * MS, a);
    BH_CHECK_EQ("over", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    BH_CHECK("and one of many", !bh_time_slices_is_stuck(slices, a));
    BH_CHECK_EQ("charged for all of it", bh_time_slices_used_ns(slices, a), 4039 * MS);
}

static void
stuck_and_throttled(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);

    bh_time_slices_throttle(slices, 0, a, true);
    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    for (uint64_t now = 0; now < 8 * SECOND; now += 10 * MS) {
        bh_time_slices_tick(slices, now);
        bh_time_slices_drained(slices, now, b);
        BH_CHECK("no more for being stuck", !bh_time_slices_is_stuck(slices, a)
                                                || bh_time_slices_state(slices, a) == BH_TIME_SLICE_ENDING);
    }
    BH_CHECK("it was", bh_time_slices_is_stuck(slices, a));
}

/* One whose processes are frozen says nothing; it is not waited for, and pays for no pause. */
static void
slices_paused(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);
    uint64_t over = 5 * MS + BH_TIME_SLICES_PAUSE_NS, used;

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 1 * MS, b);
    bh_time_slices_pause(slices, 5 * MS, a);
    BH_CHECK_EQ("shut at once", bh_time_slices_state(slices, a), BH_TIME_SLICE_ENDING);
    bh_time_slices_pause(slices, 20 * MS, a);
    BH_CHECK_EQ("soon over", bh_time_slices_next(slices), over);
    bh_time_slices_tick(slices, over);
    BH_CHECK_EQ("none reports that it is drained", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    BH_CHECK("and it is not stuck", !bh_time_slices_is_stuck(slices, a));
    BH_CHECK_EQ("the GPU is the other's", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    bh_time_slices_want(slices, SECOND, a);
    BH_CHECK_EQ("what it wants waits", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    BH_CHECK_EQ("and ends no other's", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("nothing will happen", bh_time_slices_next(slices) == UINT64_MAX, true);
    used = bh_time_slices_used_ns(slices, a);
    BH_CHECK_EQ("charged to its end", used, over);
    bh_time_slices_resume(slices, 3600 * SECOND, a);
    BH_CHECK_EQ("back: the other has its rest", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    for (uint64_t now = 3600 * SECOND; now < 3601 * SECOND; now += MS) {
        bh_time_slices_tick(slices, now);
        bh_time_slices_drained(slices, now, a);
        bh_time_slices_drained(slices, now, b);
    }
    used = (bh_time_slices_used_ns(slices, a) - used) / MS;
    BH_CHECK("no hour is made good", used > 450 && used < 600);
}

/* The same with one that was drained, asked for nothing, or is back before its time is over. */
static void
paused_and_drained(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_pause(slices, 2 * MS, a);
    bh_time_slices_drained(slices, 3 * MS, a);
    BH_CHECK_EQ("at once, then", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    bh_time_slices_idle(slices, 4 * MS, a);
    bh_time_slices_resume(slices, 5 * MS, a);
    BH_CHECK_EQ("it wants nothing any more", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    bh_time_slices_pause(slices, 6 * MS, b);
    bh_time_slices_resume(slices, 7 * MS, b);
    BH_CHECK_EQ("still ending", bh_time_slices_state(slices, b), BH_TIME_SLICE_ENDING);
    bh_time_slices_tick(slices, 900 * MS);
    BH_CHECK("with the time of any other", !bh_time_slices_is_stuck(slices, b));
    bh_time_slices_tick(slices, 7 * MS + SECOND);
    BH_CHECK("and no more", bh_time_slices_is_stuck(slices, b));
    bh_time_slices_pause(slices, 2 * SECOND, b);
    bh_time_slices_tick(slices, 2 * SECOND + BH_TIME_SLICES_PAUSE_NS);
    BH_CHECK_EQ("what was stuck is over, too", bh_time_slices_state(slices, b), BH_TIME_SLICE_NONE);
    BH_CHECK("and stuck no more", !bh_time_slices_is_stuck(slices, b));
}

static void
gang(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(2, 2100), both = slices_add(3, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    BH_CHECK_EQ("side by side", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    bh_time_slices_want(slices, 1, both);
    bh_time_slices_tick(slices, 40 * MS);
    bh_time_slices_drained(slices, 41 * MS, a);
    BH_CHECK_EQ("one of two is not enough", bh_time_slices_state(slices, both), BH_TIME_SLICE_NONE);
    BH_CHECK_EQ("and is kept for it", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    bh_time_slices_drained(slices, 43 * MS, b);
    BH_CHECK_EQ("both", bh_time_slices_state(slices, both), BH_TIME_SLICE_CONTENDED);
    bh_time_slices_idle(slices, 44 * MS, both);
    bh_time_slices_drained(slices, 44 * MS, both);
    BH_CHECK_EQ("again", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("side by side again", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
}

#define MULTIPLEXED(parts)                                                                                   \
    ((struct bh_time_slices_member){ .gpus = 1, .weight = (parts), .quantum_ns = 30 * SECOND })

/* To that moment, a millisecond at a time; how many of them it was CONTENDED. */
static uint64_t
slices_advance(uint32_t index, uint64_t from_ms, uint64_t to_ms)
{
    uint64_t contended = 0;

    for (uint64_t now = from_ms; now <= to_ms; now++) {
        bh_time_slices_tick(slices, now * MS);
        contended += bh_time_slices_state(slices, index) == BH_TIME_SLICE_CONTENDED;
    }
    return contended;
}

/* The GPU goes from one to the other whole, and one that stops for a moment keeps it. */
static void
multiplexed(void)
{
    uint32_t a = slices_join(slices, 0, MULTIPLEXED(1050)), b = slices_join(slices, 0, MULTIPLEXED(1050)), c;
    uint64_t asked;

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 1 * MS, b);
    BH_CHECK_EQ("open though another waits", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("asked after a second", bh_time_slices_next(slices), 1001 * MS);
    asked = slices_advance(a, 1, 4000);
    BH_CHECK_EQ("20 ms each second", asked, 3 * 20);
    BH_CHECK_EQ("and open again", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    slices_advance(a, 4001, 4065);
    bh_time_slices_idle(slices, 4065 * MS, a);
    BH_CHECK_EQ("a rest", bh_time_slices_next(slices), 5065 * MS);
    bh_time_slices_idle(slices, 4500 * MS, a);
    BH_CHECK_EQ("is no longer when it is called twice", bh_time_slices_next(slices), 5065 * MS);
    BH_CHECK_EQ("it says when it is back", bh_time_slices_state(slices, a), BH_TIME_SLICE_CONTENDED);
    bh_time_slices_want(slices, 4600 * MS, a);
    BH_CHECK_EQ("back in time", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    slices_advance(a, 4601, 5605);
    bh_time_slices_idle(slices, 5605 * MS, a);
    bh_time_slices_tick(slices, 6605 * MS);
    BH_CHECK_EQ("too long", bh_time_slices_state(slices, a), BH_TIME_SLICE_ENDING);
    bh_time_slices_drained(slices, 6605 * MS, a);
    BH_CHECK_EQ("wants nothing", bh_time_slices_state(slices, b), BH_TIME_SLICE_OPEN);
    bh_time_slices_want(slices, 10 * SECOND, a);
    slices_advance(b, 10000, 24000);
    BH_CHECK_EQ("waits for a quantum", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    c = slices_join(slices, 24 * SECOND, (struct bh_time_slices_member){ .gpus = 1, .weight = 1050 });
    bh_time_slices_want(slices, 24 * SECOND, c);
    BH_CHECK_EQ("with one of another mode as any", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    BH_CHECK("in time slices of ms", bh_time_slices_next(slices) < 24 * SECOND + 41 * MS);
    bh_time_slices_idle(slices, 24 * SECOND + MS, b);
    BH_CHECK_EQ("no rest either", bh_time_slices_state(slices, b), BH_TIME_SLICE_ENDING);
}

static void
multiplexed_at_its_end(void)
{
    uint32_t a = slices_join(slices, 0, MULTIPLEXED(1050)), b = slices_join(slices, 0, MULTIPLEXED(1050));

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b); /* half a quantum: the first is ahead of none */
    slices_advance(a, 0, 12900);
    BH_CHECK_EQ("open", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    BH_CHECK_EQ("all of the last two seconds", slices_advance(a, 13000, 14999), 2000);
    slices_advance(a, 15000, 15000);
    BH_CHECK_EQ("over", bh_time_slices_state(slices, a), BH_TIME_SLICE_ENDING);
}

/* Two that never rest, for an hour; how often each was granted a time slice. */
static void
play_an_hour(const uint32_t at[2], uint32_t ret_grants[2])
{
    enum bh_time_slice before[2] = { BH_TIME_SLICE_NONE, BH_TIME_SLICE_NONE };

    for (uint64_t now = 0; now < 3600 * SECOND; now += 10 * MS) {
        bh_time_slices_tick(slices, now);
        for (int m = 0; m < 2; m++) {
            enum bh_time_slice slice = bh_time_slices_state(slices, at[m]);

            if (slice == BH_TIME_SLICE_ENDING)
                bh_time_slices_drained(slices, now + 5 * MS, at[m]);
            slice = bh_time_slices_state(slices, at[m]);
            ret_grants[m] += before[m] == BH_TIME_SLICE_NONE && slice != BH_TIME_SLICE_NONE;
            before[m] = slice;
        }
    }
}

/* How long time slices are, and the time each used. */
static void
multiplexed_for_long(void **state)
{
    static const struct {
        const char *name;
        uint32_t weight[2], percent[2];
        uint64_t slice_s[2];
    } cases[] = {
        { "equal", { 1050, 1050 }, { 50, 50 }, { 30, 30 } },
        { "three to one", { 1575, 525 }, { 75, 25 }, { 45, 15 } },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t at[2], grants[2] = { 0, 0 };

        slices = slices_make(0);
        for (int m = 0; m < 2; m++) {
            at[m] = slices_join(slices, 0, MULTIPLEXED(cases[i].weight[m]));
            bh_time_slices_want(slices, 0, at[m]);
        }
        play_an_hour(at, grants);
        for (int m = 0; m < 2; m++) {
            uint64_t used_s = bh_time_slices_used_ns(slices, at[m]) / SECOND;

            BH_CHECK(cases[i].name,
                     used_s + 50 >= cases[i].percent[m] * 36 && used_s <= cases[i].percent[m] * 36 + 50);
            BH_CHECK(cases[i].name, used_s <= grants[m] * cases[i].slice_s[m]
                                        && used_s + 60 >= grants[m] * cases[i].slice_s[m]);
        }
        bh_time_slices_free(slices);
    }
    BH_CHECK_DONE();
}

static void
latency(void)
{
    uint32_t batch = slices_add(1, 2100);
    uint32_t quick =
        slices_join(slices, 0, (struct bh_time_slices_member){ .gpus = 1, .weight = 2100, .latency = true });

    bh_time_slices_want(slices, 0, batch);
    bh_time_slices_want(slices, 1 * MS, quick);
    BH_CHECK_EQ("makes way at once", bh_time_slices_state(slices, batch), BH_TIME_SLICE_ENDING);
    bh_time_slices_drained(slices, 2 * MS, batch);
    BH_CHECK_EQ("first", bh_time_slices_state(slices, quick), BH_TIME_SLICE_CONTENDED);
    for (uint64_t now = 3 * MS; now < 200 * MS; now += MS)
        bh_time_slices_tick(slices, now);
    BH_CHECK_EQ("not for ever", bh_time_slices_state(slices, quick), BH_TIME_SLICE_ENDING);
}

/* First also where it used more of the GPU than the other, up to a round. */
static void
latency_that_was_granted_more(void)
{
    uint32_t batch = slices_add(1, 2100);
    uint32_t quick =
        slices_join(slices, 0, (struct bh_time_slices_member){ .gpus = 1, .weight = 2100, .latency = true });

    bh_time_slices_want(slices, 0, quick);
    bh_time_slices_idle(slices, 10 * MS, quick);
    bh_time_slices_drained(slices, 10 * MS, quick);
    bh_time_slices_want(slices, 10 * MS, batch);
    BH_CHECK_EQ("alone", bh_time_slices_state(slices, batch), BH_TIME_SLICE_OPEN);
    bh_time_slices_want(slices, 11 * MS, quick);
    BH_CHECK_EQ("makes way at once", bh_time_slices_state(slices, batch), BH_TIME_SLICE_ENDING);
}

/* A hundredth of the GPU would be 0.4 ms of each round, and a hand-over costs a tenth of that. */
static void
light_beside_heavy(void)
{
    uint32_t heavy = slices_add(1, 4200), light = slices_add(1, 42);

    bh_time_slices_want(slices, 0, heavy);
    bh_time_slices_want(slices, 0, light);
    bh_time_slices_tick(slices, 50 * MS);
    bh_time_slices_drained(slices, 50 * MS, heavy);
    BH_CHECK_EQ("its time slice", bh_time_slices_state(slices, light), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("is no shorter", bh_time_slices_next(slices), 52 * MS);
}

/* All GPUs of one that waits for several are kept for it, whichever is free first. */
static void
gang_waits_for_the_first(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(2, 2100), both = slices_add(3, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_want(slices, 1, both);
    bh_time_slices_tick(slices, 40 * MS);
    bh_time_slices_drained(slices, 41 * MS, b);
    BH_CHECK_EQ("the second is kept for it", bh_time_slices_state(slices, b), BH_TIME_SLICE_NONE);
    bh_time_slices_drained(slices, 43 * MS, a);
    BH_CHECK_EQ("both", bh_time_slices_state(slices, both), BH_TIME_SLICE_CONTENDED);
}

static void
refusals(void)
{
    static const struct {
        const char *name;
        struct bh_time_slices_member member;
        bh_rc rc;
    } cases[] = {
        { "no GPU", { .weight = 1 }, BH_INVALID },
        { "no weight", { .gpus = 1 }, BH_INVALID },
        { "more than a GPU", { .gpus = 1, .weight = 4201 }, BH_INVALID },
        { "hard quanta", { .gpus = 1, .weight = 1, .hard = true, .quantum_ns = 1 }, BH_INVALID },
        { "quick quanta", { .gpus = 1, .weight = 1, .latency = true, .quantum_ns = 1 }, BH_INVALID },
        { "a GPU", { .gpus = 1, .weight = 4200 }, BH_OK },
    };
    struct bh_err err = { 0 };
    uint32_t index = 7;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        BH_CHECK_EQ(cases[i].name, bh_time_slices_join(slices, 0, &cases[i].member, &index, &err),
                    cases[i].rc);
    for (uint32_t i = 1; i < BH_TIME_SLICES_MEMBERS_MAX; i++)
        slices_join(slices, 0, cases[5].member);
    BH_CHECK_EQ("full", bh_time_slices_join(slices, 0, &cases[5].member, &index, &err), BH_FULL);
}

/* ---- the end of a time slice, for its holder ---- */

static void
until(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);
    uint32_t quick, elsewhere;

    BH_CHECK_EQ("no time slice", bh_time_slices_until_ns(slices, a), 0);
    bh_time_slices_want(slices, 0, a);
    BH_CHECK_EQ("none waits", bh_time_slices_until_ns(slices, a), 0);
    bh_time_slices_want(slices, 1 * MS, b);
    BH_CHECK_EQ("as the arbiter has it", bh_time_slices_until_ns(slices, a), 10 * MS);
    BH_CHECK_EQ("not of one that waits", bh_time_slices_until_ns(slices, b), 0);
    elsewhere = slices_join(slices, 2 * MS,
                            (struct bh_time_slices_member){ .gpus = 2, .weight = 1, .latency = true });
    BH_CHECK_EQ("on another GPU", bh_time_slices_until_ns(slices, a), 10 * MS);
    quick = slices_join(slices, 2 * MS,
                        (struct bh_time_slices_member){ .gpus = 3, .weight = 2100, .latency = true });
    BH_CHECK_EQ("one that may come at any time", bh_time_slices_until_ns(slices, a), 0);
    bh_time_slices_want(slices, 3 * MS, quick);
    bh_time_slices_drained(slices, 3 * MS, a);
    BH_CHECK_EQ("no other cuts its own time slice", bh_time_slices_state(slices, quick),
                BH_TIME_SLICE_CONTENDED);
    BH_CHECK("so it has an end", bh_time_slices_until_ns(slices, quick) > 3 * MS);
    bh_time_slices_leave(slices, 4 * MS, quick);
    bh_time_slices_leave(slices, 4 * MS, elsewhere);
    BH_CHECK_EQ("it is gone: the next", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("has an end", bh_time_slices_until_ns(slices, b), bh_time_slices_next(slices));
    bh_time_slices_tick(slices, 100 * MS);
    BH_CHECK_EQ("over", bh_time_slices_state(slices, b), BH_TIME_SLICE_ENDING);
    BH_CHECK_EQ("nothing to plan for", bh_time_slices_until_ns(slices, b), 0);
}

/* A quantum is long: nothing is submitted for the whole of it. */
static void
until_of_a_quantum(void)
{
    uint32_t a = slices_join(slices, 0, MULTIPLEXED(1050)), b = slices_join(slices, 0, MULTIPLEXED(1050));

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    slices_advance(a, 0, 14000);
    BH_CHECK_EQ("its last seconds", bh_time_slices_state(slices, a), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("no end", bh_time_slices_until_ns(slices, a), 0);
    bh_time_slices_finish(slices, 14000 * MS, a);
    BH_CHECK_EQ("nor is it given up", bh_time_slices_state(slices, a), BH_TIME_SLICE_CONTENDED);
}

static void
finished(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);
    uint64_t end;

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_finish(slices, 0, a);
    BH_CHECK_EQ("none waits", bh_time_slices_state(slices, a), BH_TIME_SLICE_OPEN);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_finish(slices, 7 * MS, b);
    BH_CHECK_EQ("the one without a time slice", bh_time_slices_state(slices, b), BH_TIME_SLICE_NONE);
    bh_time_slices_finish(slices, 7 * MS, a);
    BH_CHECK_EQ("handed over at once", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("it waits", bh_time_slices_state(slices, a), BH_TIME_SLICE_NONE);
    BH_CHECK_EQ("charged for what it used", bh_time_slices_used_ns(slices, a), 7 * MS);
    end = bh_time_slices_until_ns(slices, b);
    BH_CHECK_EQ("half a round ahead of it", end, 24 * MS);
    bh_time_slices_finish(slices, 12 * MS, b);
    BH_CHECK_EQ("5 ms against 7: it goes on", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    BH_CHECK_EQ("to the same end, announced anew", bh_time_slices_until_ns(slices, b), end + 1);
    bh_time_slices_tick(slices, ++end);
    BH_CHECK_EQ("ending", bh_time_slices_state(slices, b), BH_TIME_SLICE_ENDING);
    bh_time_slices_finish(slices, end, b);
    BH_CHECK_EQ("what is ending is drained, not finished", bh_time_slices_state(slices, b),
                BH_TIME_SLICE_ENDING);
}

/* ---- what one has in the long run ---- */

/* Never more than its part, though no other is there. */
static void
hard(void **state)
{
    static const uint32_t weights[] = { 420, 1260, 2100, 4200 };

    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        uint32_t a;
        uint64_t used;

        slices = slices_make(0);
        a = slices_join(slices, 0,
                        (struct bh_time_slices_member){ .gpus = 1, .weight = weights[i], .hard = true });
        bh_time_slices_want(slices, 0, a);
        for (uint64_t now = 0; now < 10 * SECOND; now += 100 * US) {
            bh_time_slices_tick(slices, now);
            if (bh_time_slices_state(slices, a) == BH_TIME_SLICE_ENDING)
                bh_time_slices_drained(slices, now, a);
        }
        used = bh_time_slices_used_ns(slices, a) * 10000 / (10 * SECOND);
        BH_CHECK("its part", used + 75 >= weights[i] * 10000 / 4200);
        BH_CHECK("no more", used <= weights[i] * 10000 / 4200 + 75);
        bh_time_slices_free(slices);
    }
    BH_CHECK_DONE();
}

/* One that has rested and is kept out by another's time slice waits for that: no time is due for it. */
static void
hard_that_has_rested(void)
{
    uint32_t a =
        slices_join(slices, 0, (struct bh_time_slices_member){ .gpus = 1, .weight = 2100, .hard = true });
    uint32_t b = slices_add(1, 2100);

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 0, b);
    bh_time_slices_tick(slices, 20 * MS);
    bh_time_slices_drained(slices, 20 * MS, a);
    BH_CHECK_EQ("the other's time slice", bh_time_slices_state(slices, b), BH_TIME_SLICE_CONTENDED);
    bh_time_slices_tick(slices, 40 * MS);
    BH_CHECK_EQ("it has rested: the time slice ends", bh_time_slices_state(slices, b), BH_TIME_SLICE_ENDING);
    bh_time_slices_tick(slices, 90 * MS);
    BH_CHECK_EQ("a long kernel: nothing is due", bh_time_slices_next(slices), 40 * MS + SECOND);
    bh_time_slices_drained(slices, 100 * MS, b);
    BH_CHECK_EQ("and has its time slice", bh_time_slices_state(slices, a), BH_TIME_SLICE_CONTENDED);
}

/* As if it had a tenth of its weight, and that as a hard part; then as before. */
static void
throttled(void)
{
    uint32_t a = slices_add(1, 2100);
    uint64_t used, now;

    bh_time_slices_want(slices, 0, a);
    for (now = 0; now < 40 * SECOND; now += 100 * US) {
        if (now == 10 * SECOND || now == 15 * SECOND)
            bh_time_slices_throttle(slices, now, a, true);
        if (now == 30 * SECOND)
            bh_time_slices_throttle(slices, now, a, false);
        if (now == 10 * SECOND)
            BH_CHECK("no other was there", bh_time_slices_used_ns(slices, a) >= 9999 * MS);
        if (now == 10 * SECOND || now == 30 * SECOND)
            used = bh_time_slices_used_ns(slices, a);
        bh_time_slices_tick(slices, now);
        if (bh_time_slices_state(slices, a) == BH_TIME_SLICE_ENDING)
            bh_time_slices_drained(slices, now, a);
        if (now == 30 * SECOND - 100 * US) {
            used = bh_time_slices_used_ns(slices, a) - used;
            BH_CHECK("a twentieth of 20 s", used > 950 * MS && used < 1050 * MS);
        }
    }
    BH_CHECK("all of it again", bh_time_slices_used_ns(slices, a) - used > 9900 * MS);
}

/* One that ran alone for an hour owes nothing to one that comes then; nor does that one save up
 * what it did not want. */
static void
no_debt_for_what_none_wanted(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);
    uint64_t now = 3600 * SECOND, before;

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_idle(slices, now, a);
    bh_time_slices_drained(slices, now, a);
    bh_time_slices_want(slices, now, b);
    bh_time_slices_want(slices, now, a);
    before = bh_time_slices_used_ns(slices, a);
    for (; now < 3602 * SECOND; now += MS) {
        bh_time_slices_tick(slices, now);
        if (bh_time_slices_state(slices, a) == BH_TIME_SLICE_ENDING)
            bh_time_slices_drained(slices, now, a);
        if (bh_time_slices_state(slices, b) == BH_TIME_SLICE_ENDING)
            bh_time_slices_drained(slices, now, b);
    }
    BH_CHECK("half of what came then", bh_time_slices_used_ns(slices, a) - before > 900 * MS);
    BH_CHECK("and no more", bh_time_slices_used_ns(slices, a) - before < 1100 * MS);
}

/* Nor does one that comes back get what the other used since the last charge. */
static void
no_credit_for_what_was_not_charged_yet(void)
{
    uint32_t a = slices_add(1, 2100), b = slices_add(1, 2100);
    uint64_t before;

    bh_time_slices_want(slices, 0, a);
    bh_time_slices_want(slices, 3600 * SECOND, b);
    before = bh_time_slices_used_ns(slices, a);
    for (uint64_t now = 3600 * SECOND; now < 3602 * SECOND; now += MS) {
        bh_time_slices_tick(slices, now);
        bh_time_slices_drained(slices, now, a);
        bh_time_slices_drained(slices, now, b);
    }
    BH_CHECK("half of what came then", bh_time_slices_used_ns(slices, a) - before > 900 * MS);
}

struct slices_case {
    void (*body)(void);
    uint64_t stuck_ns;
};

static void
run_case(void **state)
{
    const struct slices_case *one = *state;

    slices = slices_make(one->stuck_ns);
    one->body();
    bh_time_slices_free(slices);
    BH_CHECK_DONE();
}

#define CASE(name, stuck)                                                                                    \
    {                                                                                                        \
#name, run_case, NULL, NULL, &(struct slices_case)                                                   \
        {                                                                                                    \
            name, stuck                                                                                      \
        }                                                                                                    \
    }

static const struct CMUnitTest tests[] = {
    CASE(alone, 0),
    CASE(hand_over, 0),
    CASE(death, 0),
    CASE(stuck_goes_on, SECOND),
    CASE(stuck_and_throttled, SECOND),
    CASE(stuck, SECOND),
    CASE(slices_paused, 0),
    CASE(paused_and_drained, SECOND),
    CASE(gang, 0),
    CASE(latency, 0),
    CASE(multiplexed, 0),
    CASE(multiplexed_at_its_end, 0),
    CASE(throttled, 0),
    cmocka_unit_test(multiplexed_for_long),
    CASE(latency_that_was_granted_more, 0),
    CASE(light_beside_heavy, 0),
    CASE(gang_waits_for_the_first, 0),
    CASE(until, 0),
    CASE(until_of_a_quantum, 0),
    CASE(finished, 0),
    CASE(refusals, 0),
    cmocka_unit_test(hard),
    CASE(hard_that_has_rested, SECOND),
    CASE(no_debt_for_what_none_wanted, 0),
    CASE(no_credit_for_what_was_not_charged_yet, 0),
};

BH_TEST_MAIN(tests)
