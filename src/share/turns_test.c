#include "share/turns.h"

#include <stdlib.h>

#include "share/turns_test.h"

/* ---- a story each ---- */

static void
alone(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    BH_CHECK_EQ("shut before it wants", bh_turns_state(turns, a), BH_TURN_NONE);
    bh_turns_want(turns, 5, a);
    BH_CHECK_EQ("at once", bh_turns_state(turns, a), BH_TURN_OPEN);
    BH_CHECK_EQ("nothing will happen", bh_turns_next(turns) == UINT64_MAX, true);
    bh_turns_tick(turns, 60 * SECOND);
    BH_CHECK_EQ("for as long as it likes", bh_turns_state(turns, a), BH_TURN_OPEN);
    BH_CHECK_EQ("charged", bh_turns_used_ns(turns, a), 60 * SECOND - 5);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
hand_over(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 1 * MS, b);
    BH_CHECK_EQ("others wait", bh_turns_state(turns, a), BH_TURN_CONTENDED);
    BH_CHECK_EQ("half a turn ahead", bh_turns_next(turns), 10 * MS);
    bh_turns_tick(turns, 20 * MS);
    BH_CHECK_EQ("over", bh_turns_state(turns, a), BH_TURN_ENDING);
    BH_CHECK_EQ("not before it is drained", bh_turns_state(turns, b), BH_TURN_NONE);
    bh_turns_drained(turns, 41 * MS, a);
    BH_CHECK_EQ("then", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    BH_CHECK_EQ("the first waits", bh_turns_state(turns, a), BH_TURN_NONE);
    bh_turns_idle(turns, 42 * MS, b);
    BH_CHECK_EQ("shut, to be sure", bh_turns_state(turns, b), BH_TURN_ENDING);
    bh_turns_drained(turns, 42 * MS, b);
    BH_CHECK_EQ("no turn is kept by who is idle", bh_turns_state(turns, a), BH_TURN_OPEN);
    BH_CHECK_EQ("by the clock, to the end", bh_turns_used_ns(turns, a), 41 * MS);
    BH_CHECK_EQ("what it had", bh_turns_used_ns(turns, b), 1 * MS);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
death(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 1 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 4200 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    bh_turns_leave(turns, 1, a);
    BH_CHECK_EQ("its turn is free", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
stuck(void **state)
{
    struct bh_turns *turns = make(SECOND);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    bh_turns_tick(turns, 20 * MS + 20 * MS);
    BH_CHECK_EQ("ending", bh_turns_state(turns, a), BH_TURN_ENDING);
    bh_turns_tick(turns, 40 * MS + SECOND);
    BH_CHECK("a kernel without an end", bh_turns_is_stuck(turns, a));
    BH_CHECK_EQ("others run beside it", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_drained(turns, 5 * SECOND, a);
    BH_CHECK_EQ("charged for all of it", bh_turns_used_ns(turns, a), 5 * SECOND);
    BH_CHECK("and one of many again", !bh_turns_is_stuck(turns, a));
    bh_turns_tick(turns, 6 * SECOND);
    BH_CHECK_EQ("it pays", bh_turns_state(turns, a), BH_TURN_NONE);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* A collective of which the end of the turn cut off a part: the rest must come for it to end. */
static void
stuck_goes_on(void **state)
{
    static const struct {
        uint64_t at_ms;
        enum bh_turn turn;
    } looks[] = { { 1040, BH_TURN_CONTENDED }, { 2039, BH_TURN_CONTENDED }, { 2040, BH_TURN_ENDING },
                  { 3039, BH_TURN_ENDING },    { 3040, BH_TURN_CONTENDED }, { 4039, BH_TURN_CONTENDED } };
    struct bh_turns *turns = make(SECOND);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 3, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    bh_turns_tick(turns, 40 * MS);
    bh_turns_want(turns, 40 * MS, a);
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        BH_CHECK("it will be looked at", bh_turns_next(turns) <= looks[i].at_ms * MS + SECOND);
        bh_turns_tick(turns, looks[i].at_ms * MS);
        BH_CHECK_EQ("goes on, and is tried again", bh_turns_state(turns, a), looks[i].turn);
        BH_CHECK("told as stuck", bh_turns_is_stuck(turns, a));
        BH_CHECK_EQ("without an end", bh_turns_until_ns(turns, a), 0);
        BH_CHECK("beside the other", bh_turns_state(turns, b) != BH_TURN_NONE);
    }
    bh_turns_idle(turns, 4039 * MS, a);
    BH_CHECK_EQ("over", bh_turns_state(turns, a), BH_TURN_NONE);
    BH_CHECK("and one of many", !bh_turns_is_stuck(turns, a));
    BH_CHECK_EQ("charged for all of it", bh_turns_used_ns(turns, a), 4039 * MS);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
stuck_and_throttled(void **state)
{
    struct bh_turns *turns = make(SECOND);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    bh_turns_throttle(turns, 0, a, true);
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    for (uint64_t now = 0; now < 8 * SECOND; now += 10 * MS) {
        bh_turns_tick(turns, now);
        bh_turns_drained(turns, now, b);
        BH_CHECK("no more for being stuck",
                 !bh_turns_is_stuck(turns, a) || bh_turns_state(turns, a) == BH_TURN_ENDING);
    }
    BH_CHECK("it was", bh_turns_is_stuck(turns, a));
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* One whose processes are frozen says nothing; it is not waited for, and pays for no pause. */
static void
paused(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint64_t over = 5 * MS + BH_TURNS_PAUSE_NS, used;

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 1 * MS, b);
    bh_turns_pause(turns, 5 * MS, a);
    BH_CHECK_EQ("shut at once", bh_turns_state(turns, a), BH_TURN_ENDING);
    bh_turns_pause(turns, 20 * MS, a);
    BH_CHECK_EQ("soon over", bh_turns_next(turns), over);
    bh_turns_tick(turns, over);
    BH_CHECK_EQ("nobody says that it is drained", bh_turns_state(turns, a), BH_TURN_NONE);
    BH_CHECK("and it is not stuck", !bh_turns_is_stuck(turns, a));
    BH_CHECK_EQ("the GPU is the other's", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_want(turns, SECOND, a);
    BH_CHECK_EQ("what it wants waits", bh_turns_state(turns, a), BH_TURN_NONE);
    BH_CHECK_EQ("and hurries nobody", bh_turns_state(turns, b), BH_TURN_OPEN);
    BH_CHECK_EQ("nothing will happen", bh_turns_next(turns) == UINT64_MAX, true);
    used = bh_turns_used_ns(turns, a);
    BH_CHECK_EQ("charged to its end", used, over);
    bh_turns_resume(turns, 3600 * SECOND, a);
    BH_CHECK_EQ("back: the other has its rest", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    for (uint64_t now = 3600 * SECOND; now < 3601 * SECOND; now += MS) {
        bh_turns_tick(turns, now);
        bh_turns_drained(turns, now, a);
        bh_turns_drained(turns, now, b);
    }
    used = (bh_turns_used_ns(turns, a) - used) / MS;
    BH_CHECK("no hour is made good", used > 450 && used < 600);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* The same with one that was drained, asked for nothing, or is back before its time is over. */
static void
paused_and_drained(void **state)
{
    struct bh_turns *turns = make(SECOND);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    bh_turns_pause(turns, 2 * MS, a);
    bh_turns_drained(turns, 3 * MS, a);
    BH_CHECK_EQ("at once, then", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_idle(turns, 4 * MS, a);
    bh_turns_resume(turns, 5 * MS, a);
    BH_CHECK_EQ("it wants nothing any more", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_pause(turns, 6 * MS, b);
    bh_turns_resume(turns, 7 * MS, b);
    BH_CHECK_EQ("still ending", bh_turns_state(turns, b), BH_TURN_ENDING);
    bh_turns_tick(turns, 900 * MS);
    BH_CHECK("with the time of any other", !bh_turns_is_stuck(turns, b));
    bh_turns_tick(turns, 7 * MS + SECOND);
    BH_CHECK("and no more", bh_turns_is_stuck(turns, b));
    bh_turns_pause(turns, 2 * SECOND, b);
    bh_turns_tick(turns, 2 * SECOND + BH_TURNS_PAUSE_NS);
    BH_CHECK_EQ("what was stuck is over, too", bh_turns_state(turns, b), BH_TURN_NONE);
    BH_CHECK("and stuck no more", !bh_turns_is_stuck(turns, b));
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
gang(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 2, .weight = 2100 });
    uint32_t both = join(turns, 0, (struct bh_turns_member) { .gpus = 3, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    BH_CHECK_EQ("side by side", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_want(turns, 1, both);
    bh_turns_tick(turns, 40 * MS);
    bh_turns_drained(turns, 41 * MS, a);
    BH_CHECK_EQ("one of two is not enough", bh_turns_state(turns, both), BH_TURN_NONE);
    BH_CHECK_EQ("and is kept for it", bh_turns_state(turns, a), BH_TURN_NONE);
    bh_turns_drained(turns, 43 * MS, b);
    BH_CHECK_EQ("both", bh_turns_state(turns, both), BH_TURN_CONTENDED);
    bh_turns_idle(turns, 44 * MS, both);
    bh_turns_drained(turns, 44 * MS, both);
    BH_CHECK_EQ("again", bh_turns_state(turns, a), BH_TURN_OPEN);
    BH_CHECK_EQ("side by side again", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

#define MULTIPLEXED(parts) \
    ((struct bh_turns_member) { .gpus = 1, .weight = (parts), .quantum_ns = 30 * SECOND })

/* To that moment, a millisecond at a time; how many of them it was CONTENDED. */
static uint64_t
go_on(struct bh_turns *turns, uint32_t index, uint64_t from_ms, uint64_t to_ms)
{
    uint64_t contended = 0;

    for (uint64_t now = from_ms; now <= to_ms; now++) {
        bh_turns_tick(turns, now * MS);
        contended += bh_turns_state(turns, index) == BH_TURN_CONTENDED;
    }
    return contended;
}

/* The GPU goes from one to the other whole, and who stops for a moment keeps it. */
static void
multiplexed(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, MULTIPLEXED(1050)), b = join(turns, 0, MULTIPLEXED(1050)), c;
    uint64_t asked;

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 1 * MS, b);
    BH_CHECK_EQ("open though another waits", bh_turns_state(turns, a), BH_TURN_OPEN);
    BH_CHECK_EQ("asked after a second", bh_turns_next(turns), 1001 * MS);
    asked = go_on(turns, a, 1, 4000);
    BH_CHECK_EQ("20 ms each second", asked, 3 * 20);
    BH_CHECK_EQ("and open again", bh_turns_state(turns, a), BH_TURN_OPEN);
    go_on(turns, a, 4001, 4065);
    bh_turns_idle(turns, 4065 * MS, a);
    BH_CHECK_EQ("a rest", bh_turns_next(turns), 5065 * MS);
    bh_turns_idle(turns, 4500 * MS, a);
    BH_CHECK_EQ("is no longer when it is said twice", bh_turns_next(turns), 5065 * MS);
    BH_CHECK_EQ("it says when it is back", bh_turns_state(turns, a), BH_TURN_CONTENDED);
    bh_turns_want(turns, 4600 * MS, a);
    BH_CHECK_EQ("back in time", bh_turns_state(turns, a), BH_TURN_OPEN);
    go_on(turns, a, 4601, 5605);
    bh_turns_idle(turns, 5605 * MS, a);
    bh_turns_tick(turns, 6605 * MS);
    BH_CHECK_EQ("too long", bh_turns_state(turns, a), BH_TURN_ENDING);
    bh_turns_drained(turns, 6605 * MS, a);
    BH_CHECK_EQ("wants nothing", bh_turns_state(turns, b), BH_TURN_OPEN);
    bh_turns_want(turns, 10 * SECOND, a);
    go_on(turns, b, 10000, 24000);
    BH_CHECK_EQ("waits for a quantum", bh_turns_state(turns, a), BH_TURN_NONE);
    c = join(turns, 24 * SECOND, (struct bh_turns_member) { .gpus = 1, .weight = 1050 });
    bh_turns_want(turns, 24 * SECOND, c);
    BH_CHECK_EQ("with one of another mode as any", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    BH_CHECK("in turns of ms", bh_turns_next(turns) < 24 * SECOND + 41 * MS);
    bh_turns_idle(turns, 24 * SECOND + MS, b);
    BH_CHECK_EQ("no rest either", bh_turns_state(turns, b), BH_TURN_ENDING);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
multiplexed_at_its_end(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, MULTIPLEXED(1050)), b = join(turns, 0, MULTIPLEXED(1050));

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b); /* half a quantum: the first is ahead of nobody */
    go_on(turns, a, 0, 12900);
    BH_CHECK_EQ("open", bh_turns_state(turns, a), BH_TURN_OPEN);
    BH_CHECK_EQ("all of the last two seconds", go_on(turns, a, 13000, 14999), 2000);
    go_on(turns, a, 15000, 15000);
    BH_CHECK_EQ("over", bh_turns_state(turns, a), BH_TURN_ENDING);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* Two that never rest, for an hour; how often each was granted a turn. */
static void
play_an_hour(struct bh_turns *turns, const uint32_t at[2], uint32_t ret_grants[2])
{
    enum bh_turn before[2] = { BH_TURN_NONE, BH_TURN_NONE };

    for (uint64_t now = 0; now < 3600 * SECOND; now += 10 * MS) {
        bh_turns_tick(turns, now);
        for (int m = 0; m < 2; m++) {
            enum bh_turn turn = bh_turns_state(turns, at[m]);

            if (turn == BH_TURN_ENDING)
                bh_turns_drained(turns, now + 5 * MS, at[m]);
            turn = bh_turns_state(turns, at[m]);
            ret_grants[m] += before[m] == BH_TURN_NONE && turn != BH_TURN_NONE;
            before[m] = turn;
        }
    }
}

/* How long turns are, and what each had. */
static void
multiplexed_for_long(void **state)
{
    static const struct {
        const char *name;
        uint32_t weight[2], percent[2];
        uint64_t turn_s[2];
    } cases[] = {
        { "equal", { 1050, 1050 }, { 50, 50 }, { 30, 30 } },
        { "three to one", { 1575, 525 }, { 75, 25 }, { 45, 15 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bh_turns *turns = make(0);
        uint32_t at[2], grants[2] = { 0, 0 };

        for (int m = 0; m < 2; m++) {
            at[m] = join(turns, 0, MULTIPLEXED(cases[i].weight[m]));
            bh_turns_want(turns, 0, at[m]);
        }
        play_an_hour(turns, at, grants);
        for (int m = 0; m < 2; m++) {
            uint64_t used_s = bh_turns_used_ns(turns, at[m]) / SECOND;

            BH_CHECK(cases[i].name, used_s + 50 >= cases[i].percent[m] * 36 &&
                                        used_s <= cases[i].percent[m] * 36 + 50);
            BH_CHECK(cases[i].name, used_s <= grants[m] * cases[i].turn_s[m] &&
                                        used_s + 60 >= grants[m] * cases[i].turn_s[m]);
        }
        bh_turns_free(turns);
    }
    BH_CHECK_DONE();
}

static void
latency(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t batch = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t quick =
        join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100, .latency = true });

    (void)state;
    bh_turns_want(turns, 0, batch);
    bh_turns_want(turns, 1 * MS, quick);
    BH_CHECK_EQ("makes way at once", bh_turns_state(turns, batch), BH_TURN_ENDING);
    bh_turns_drained(turns, 2 * MS, batch);
    BH_CHECK_EQ("first", bh_turns_state(turns, quick), BH_TURN_CONTENDED);
    for (uint64_t now = 3 * MS; now < 200 * MS; now += MS)
        bh_turns_tick(turns, now);
    BH_CHECK_EQ("not for ever", bh_turns_state(turns, quick), BH_TURN_ENDING);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* First also where it had more of the GPU than the other, up to a round. */
static void
latency_that_had_more(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t batch = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t quick =
        join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100, .latency = true });

    (void)state;
    bh_turns_want(turns, 0, quick);
    bh_turns_idle(turns, 10 * MS, quick);
    bh_turns_drained(turns, 10 * MS, quick);
    bh_turns_want(turns, 10 * MS, batch);
    BH_CHECK_EQ("alone", bh_turns_state(turns, batch), BH_TURN_OPEN);
    bh_turns_want(turns, 11 * MS, quick);
    BH_CHECK_EQ("makes way at once", bh_turns_state(turns, batch), BH_TURN_ENDING);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* A hundredth of the GPU would be 0.4 ms of each round, and a hand-over costs a tenth of that. */
static void
light_beside_heavy(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t heavy = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 4200 });
    uint32_t light = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 42 });

    (void)state;
    bh_turns_want(turns, 0, heavy);
    bh_turns_want(turns, 0, light);
    bh_turns_tick(turns, 50 * MS);
    bh_turns_drained(turns, 50 * MS, heavy);
    BH_CHECK_EQ("its turn", bh_turns_state(turns, light), BH_TURN_CONTENDED);
    BH_CHECK_EQ("is no shorter", bh_turns_next(turns), 52 * MS);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* All GPUs of one that waits for several are kept for it, whichever is free first. */
static void
gang_waits_for_the_first(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 2, .weight = 2100 });
    uint32_t both = join(turns, 0, (struct bh_turns_member) { .gpus = 3, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    bh_turns_want(turns, 1, both);
    bh_turns_tick(turns, 40 * MS);
    bh_turns_drained(turns, 41 * MS, b);
    BH_CHECK_EQ("the second is kept for it", bh_turns_state(turns, b), BH_TURN_NONE);
    bh_turns_drained(turns, 43 * MS, a);
    BH_CHECK_EQ("both", bh_turns_state(turns, both), BH_TURN_CONTENDED);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
refusals(void **state)
{
    static const struct {
        const char *name;
        struct bh_turns_member member;
        bh_rc rc;
    } cases[] = {
        { "no GPU", { .weight = 1 }, BH_INVALID },
        { "no weight", { .gpus = 1 }, BH_INVALID },
        { "more than a GPU", { .gpus = 1, .weight = 4201 }, BH_INVALID },
        { "hard quanta", { .gpus = 1, .weight = 1, .hard = true, .quantum_ns = 1 }, BH_INVALID },
        { "quick quanta", { .gpus = 1, .weight = 1, .latency = true, .quantum_ns = 1 },
          BH_INVALID },
        { "a GPU", { .gpus = 1, .weight = 4200 }, BH_OK },
    };
    struct bh_turns *turns = make(0);
    struct bh_err err = { 0 };
    uint32_t index = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        BH_CHECK_EQ(cases[i].name, bh_turns_join(turns, 0, &cases[i].member, &index, &err),
                    cases[i].rc);
    for (uint32_t i = 1; i < BH_TURNS_MEMBERS_MAX; i++)
        join(turns, 0, cases[5].member);
    BH_CHECK_EQ("full", bh_turns_join(turns, 0, &cases[5].member, &index, &err), BH_FULL);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* ---- the end of a turn, for who plans for it ---- */

static void
until(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t quick, elsewhere;

    (void)state;
    BH_CHECK_EQ("no turn", bh_turns_until_ns(turns, a), 0);
    bh_turns_want(turns, 0, a);
    BH_CHECK_EQ("nobody waits", bh_turns_until_ns(turns, a), 0);
    bh_turns_want(turns, 1 * MS, b);
    BH_CHECK_EQ("as the arbiter has it", bh_turns_until_ns(turns, a), 10 * MS);
    BH_CHECK_EQ("not of who waits", bh_turns_until_ns(turns, b), 0);
    elsewhere = join(turns, 2 * MS, (struct bh_turns_member) { .gpus = 2, .weight = 1,
                                                               .latency = true });
    BH_CHECK_EQ("on another GPU", bh_turns_until_ns(turns, a), 10 * MS);
    quick = join(turns, 2 * MS, (struct bh_turns_member) { .gpus = 3, .weight = 2100,
                                                           .latency = true });
    BH_CHECK_EQ("one that may come at any time", bh_turns_until_ns(turns, a), 0);
    bh_turns_want(turns, 3 * MS, quick);
    bh_turns_drained(turns, 3 * MS, a);
    BH_CHECK_EQ("its own turn is cut by nobody", bh_turns_state(turns, quick), BH_TURN_CONTENDED);
    BH_CHECK("so it has an end", bh_turns_until_ns(turns, quick) > 3 * MS);
    bh_turns_leave(turns, 4 * MS, quick);
    bh_turns_leave(turns, 4 * MS, elsewhere);
    BH_CHECK_EQ("it is gone: the next", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    BH_CHECK_EQ("has an end", bh_turns_until_ns(turns, b), bh_turns_next(turns));
    bh_turns_tick(turns, 100 * MS);
    BH_CHECK_EQ("over", bh_turns_state(turns, b), BH_TURN_ENDING);
    BH_CHECK_EQ("nothing to plan for", bh_turns_until_ns(turns, b), 0);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* A quantum is long: nothing is submitted for the whole of it. */
static void
until_of_a_quantum(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, MULTIPLEXED(1050)), b = join(turns, 0, MULTIPLEXED(1050));

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    go_on(turns, a, 0, 14000);
    BH_CHECK_EQ("its last seconds", bh_turns_state(turns, a), BH_TURN_CONTENDED);
    BH_CHECK_EQ("no end", bh_turns_until_ns(turns, a), 0);
    bh_turns_finish(turns, 14000 * MS, a);
    BH_CHECK_EQ("nor is it given up", bh_turns_state(turns, a), BH_TURN_CONTENDED);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

static void
finished(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint64_t end;

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_finish(turns, 0, a);
    BH_CHECK_EQ("nobody waits", bh_turns_state(turns, a), BH_TURN_OPEN);
    bh_turns_want(turns, 0, b);
    bh_turns_finish(turns, 7 * MS, b);
    BH_CHECK_EQ("who has no turn", bh_turns_state(turns, b), BH_TURN_NONE);
    bh_turns_finish(turns, 7 * MS, a);
    BH_CHECK_EQ("handed over at once", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    BH_CHECK_EQ("it waits", bh_turns_state(turns, a), BH_TURN_NONE);
    BH_CHECK_EQ("charged for what it had", bh_turns_used_ns(turns, a), 7 * MS);
    end = bh_turns_until_ns(turns, b);
    BH_CHECK_EQ("half a round ahead of it", end, 24 * MS);
    bh_turns_finish(turns, 12 * MS, b);
    BH_CHECK_EQ("5 ms against 7: it goes on", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    BH_CHECK_EQ("to the same end, told anew", bh_turns_until_ns(turns, b), end + 1);
    bh_turns_tick(turns, ++end);
    BH_CHECK_EQ("ending", bh_turns_state(turns, b), BH_TURN_ENDING);
    bh_turns_finish(turns, end, b);
    BH_CHECK_EQ("what is ending is drained, not finished", bh_turns_state(turns, b),
                BH_TURN_ENDING);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* ---- what one has in the long run ---- */

/* Never more than its part, though nobody else is there. */
static void
hard(void **state)
{
    static const uint32_t weights[] = { 420, 1260, 2100, 4200 };

    (void)state;
    for (size_t i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        struct bh_turns *turns = make(0);
        uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1,
                                                               .weight = weights[i],
                                                               .hard = true });
        uint64_t used;

        bh_turns_want(turns, 0, a);
        for (uint64_t now = 0; now < 10 * SECOND; now += 100 * US) {
            bh_turns_tick(turns, now);
            if (bh_turns_state(turns, a) == BH_TURN_ENDING)
                bh_turns_drained(turns, now, a);
        }
        used = bh_turns_used_ns(turns, a) * 10000 / (10 * SECOND);
        BH_CHECK("its part", used + 75 >= weights[i] * 10000 / 4200);
        BH_CHECK("no more", used <= weights[i] * 10000 / 4200 + 75);
        bh_turns_free(turns);
    }
    BH_CHECK_DONE();
}

/* One that has rested and is kept out by another's turn waits for that: no time is due for it. */
static void
hard_that_has_rested(void **state)
{
    struct bh_turns *turns = make(SECOND);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100, .hard = true });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 0, b);
    bh_turns_tick(turns, 20 * MS);
    bh_turns_drained(turns, 20 * MS, a);
    BH_CHECK_EQ("the other's turn", bh_turns_state(turns, b), BH_TURN_CONTENDED);
    bh_turns_tick(turns, 40 * MS);
    BH_CHECK_EQ("it has rested: the turn ends", bh_turns_state(turns, b), BH_TURN_ENDING);
    bh_turns_tick(turns, 90 * MS);
    BH_CHECK_EQ("a long kernel: nothing is due", bh_turns_next(turns), 40 * MS + SECOND);
    bh_turns_drained(turns, 100 * MS, b);
    BH_CHECK_EQ("and has its turn", bh_turns_state(turns, a), BH_TURN_CONTENDED);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* As if it had a tenth of its weight, and that as a hard part; then as before. */
static void
throttled(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint64_t used, now;

    (void)state;
    bh_turns_want(turns, 0, a);
    for (now = 0; now < 40 * SECOND; now += 100 * US) {
        if (now == 10 * SECOND || now == 15 * SECOND)
            bh_turns_throttle(turns, now, a, true);
        if (now == 30 * SECOND)
            bh_turns_throttle(turns, now, a, false);
        if (now == 10 * SECOND)
            BH_CHECK("nobody else was there", bh_turns_used_ns(turns, a) >= 9999 * MS);
        if (now == 10 * SECOND || now == 30 * SECOND)
            used = bh_turns_used_ns(turns, a);
        bh_turns_tick(turns, now);
        if (bh_turns_state(turns, a) == BH_TURN_ENDING)
            bh_turns_drained(turns, now, a);
        if (now == 30 * SECOND - 100 * US) {
            used = bh_turns_used_ns(turns, a) - used;
            BH_CHECK("a twentieth of 20 s", used > 950 * MS && used < 1050 * MS);
        }
    }
    BH_CHECK("all of it again", bh_turns_used_ns(turns, a) - used > 9900 * MS);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* Who ran alone for an hour owes nothing to one that comes then; nor does that one save up
 * what it did not want. */
static void
no_debt_for_what_nobody_wanted(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint64_t now = 3600 * SECOND, before;

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_idle(turns, now, a);
    bh_turns_drained(turns, now, a);
    bh_turns_want(turns, now, b);
    bh_turns_want(turns, now, a);
    before = bh_turns_used_ns(turns, a);
    for (; now < 3602 * SECOND; now += MS) {
        bh_turns_tick(turns, now);
        if (bh_turns_state(turns, a) == BH_TURN_ENDING)
            bh_turns_drained(turns, now, a);
        if (bh_turns_state(turns, b) == BH_TURN_ENDING)
            bh_turns_drained(turns, now, b);
    }
    BH_CHECK("half of what came then", bh_turns_used_ns(turns, a) - before > 900 * MS);
    BH_CHECK("and no more", bh_turns_used_ns(turns, a) - before < 1100 * MS);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

/* Nor does one that comes back get what the other had since anybody looked last. */
static void
no_credit_for_what_was_not_charged_yet(void **state)
{
    struct bh_turns *turns = make(0);
    uint32_t a = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint32_t b = join(turns, 0, (struct bh_turns_member) { .gpus = 1, .weight = 2100 });
    uint64_t before;

    (void)state;
    bh_turns_want(turns, 0, a);
    bh_turns_want(turns, 3600 * SECOND, b);
    before = bh_turns_used_ns(turns, a);
    for (uint64_t now = 3600 * SECOND; now < 3602 * SECOND; now += MS) {
        bh_turns_tick(turns, now);
        bh_turns_drained(turns, now, a);
        bh_turns_drained(turns, now, b);
    }
    BH_CHECK("half of what came then", bh_turns_used_ns(turns, a) - before > 900 * MS);
    bh_turns_free(turns);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),    cmocka_unit_test(hand_over), cmocka_unit_test(death),
        cmocka_unit_test(stuck_goes_on), cmocka_unit_test(stuck_and_throttled),
        cmocka_unit_test(stuck),    cmocka_unit_test(paused),    cmocka_unit_test(paused_and_drained),
        cmocka_unit_test(gang),     cmocka_unit_test(latency),
        cmocka_unit_test(multiplexed),
        cmocka_unit_test(multiplexed_at_its_end),
        cmocka_unit_test(throttled),
        cmocka_unit_test(multiplexed_for_long),
        cmocka_unit_test(latency_that_had_more), cmocka_unit_test(light_beside_heavy),
        cmocka_unit_test(gang_waits_for_the_first),
        cmocka_unit_test(until), cmocka_unit_test(until_of_a_quantum), cmocka_unit_test(finished),
        cmocka_unit_test(refusals), cmocka_unit_test(hard),
        cmocka_unit_test(hard_that_has_rested),
        cmocka_unit_test(no_debt_for_what_nobody_wanted),
        cmocka_unit_test(no_credit_for_what_was_not_charged_yet),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
