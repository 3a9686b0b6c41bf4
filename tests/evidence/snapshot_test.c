/* The engine's bytes are its state.  At every step of a short history, and at random
 * steps of a long one, a copy of the block goes on beside the engine that was never
 * touched: it decides the same, orders the same, refuses the same, and its digest is the
 * same after each step.  Copies are taken over as they are (bh_engine_adopt), replay the
 * recorded decisions instead of deciding, or stand in a larger block (bh_engine_grow).
 *
 *   snapshot_test [steps [seed]] */

#include <stdlib.h>

#include "base/test.h"
#include "tests/evidence/play.h"

enum { BESIDE = 24, EVERY_STEP = 1200, TOGETHER = 40 };

static uint64_t steps_wanted = 20000, seed_wanted = 1;

enum way { WAY_ADOPT, WAY_REPLAY, WAY_GROW, WAYS };

struct beside {
    struct bh_engine *engine;
    enum way way;
    uint64_t until;
};

struct snapshots {
    struct bh_engine *engine, *relay;
    struct beside beside[BESIDE];
    struct bh_play play;
    struct bh_step step;
    struct bh_event event;
    bh_rc rc;
    uint64_t digest, answer, random, taken;
};

static uint32_t
draw(struct snapshots *all, uint32_t below)
{
    all->random = all->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((all->random >> 33) % below);
}

/* Spoil the old block, so that code that still reads it fails. */
static struct bh_engine *
moved(struct bh_engine *engine)
{
    struct bh_engine_caps caps = bh_engine_caps(engine);
    struct bh_engine *next = bh_play_copy(engine, NULL);

    assert_non_null(next);
    memset(engine, 0xa5, bh_engine_size(&caps));
    free(engine);
    return next;
}

static void
take(struct snapshots *all, struct beside *beside)
{
    struct bh_engine_caps caps = bh_engine_caps(all->engine);

    free(beside->engine);
    caps.jobs += 1 + draw(all, 50);
    caps.leases += 1 + draw(all, 50);
    caps.partitions += draw(all, 50);
    beside->way = (enum way)(all->taken++ % WAYS);
    beside->engine = bh_play_copy(all->engine, beside->way == WAY_GROW ? &caps : NULL);
    assert_non_null(beside->engine);
    assert_true(bh_play_digest(beside->engine) == bh_play_digest(all->engine));
    beside->until = all->play.seq + TOGETHER;
}

/* The same event for another engine: the answer and what follows must be the same. */
static void
follow(struct snapshots *all, struct bh_engine *engine, bool replay)
{
    static struct bh_step step;
    bh_rc rc;

    if (replay && all->rc != BH_OK)
        return; /* what was refused is not in the journal */
    rc = replay ? bh_engine_replay(engine, &all->event, all->step.decisions, all->step.decision_count, &step)
                : bh_engine_step(engine, &all->event, &step);
    if (replay)
        assert_int_equal(rc, BH_OK);
    else
        assert_true(bh_play_answer(rc, &step) == all->answer);
    assert_true(bh_play_digest(engine) == all->digest);
}

static void
play_one(struct snapshots *all)
{
    bh_play_next(&all->play, all->engine, &all->event);
    all->rc = bh_engine_step(all->engine, &all->event, &all->step);
    bh_play_took(&all->play, &all->event, all->rc, &all->step);
    all->answer = bh_play_answer(all->rc, &all->step);
    all->digest = bh_play_digest(all->engine);
    for (uint32_t i = 0; i < BESIDE; i++)
        if (all->beside[i].engine)
            follow(all, all->beside[i].engine, all->beside[i].way == WAY_REPLAY);
}

static struct snapshots *
open_all(uint64_t seed)
{
    struct snapshots *all = calloc(1, sizeof(*all));
    struct bh_engine_caps caps = bh_play_caps();

    assert_non_null(all);
    all->engine = bh_play_engine(&caps);
    all->relay = bh_play_engine(&caps);
    all->random = seed;
    bh_play_begin(&all->play, seed);
    return all;
}

static void
close_all(struct snapshots *all)
{
    for (uint32_t i = 0; i < BESIDE; i++)
        free(all->beside[i].engine);
    free(all->relay);
    free(all->engine);
    free(all);
}

static void
a_copy_of_every_step_goes_on_the_same(void **state)
{
    struct snapshots *all = open_all(seed_wanted);

    for (uint64_t i = 0; i < EVERY_STEP; i++) {
        play_one(all);
        take(all, &all->beside[i % BESIDE]);
    }
    assert_int_equal(all->taken, EVERY_STEP);
    close_all(all);
}

static void
an_engine_that_moves_at_every_step_decides_the_same(void **state)
{
    struct snapshots *all = open_all(seed_wanted + 1);

    for (uint64_t i = 0; i < EVERY_STEP; i++) {
        play_one(all);
        all->relay = moved(all->relay);
        follow(all, all->relay, false);
    }
    close_all(all);
}

static void
copies_of_a_long_history_go_on_the_same(void **state)
{
    struct snapshots *all = open_all(seed_wanted + 2);

    for (uint64_t i = 0; i < steps_wanted; i++) {
        struct beside *beside = &all->beside[draw(all, BESIDE)];

        play_one(all);
        if (beside->engine && all->play.seq >= beside->until) {
            free(beside->engine);
            beside->engine = NULL;
        }
        if (!beside->engine && draw(all, 40) == 0)
            take(all, beside);
    }
    fprintf(stderr, "# %llu steps, %llu copies\n", (unsigned long long)all->play.seq,
            (unsigned long long)all->taken);
    assert_true(all->taken > steps_wanted / 100);
    close_all(all);
}

/* What is no block of this build is not taken over. */
static void
other_bytes_are_refused(void **state)
{
    struct snapshots *all = open_all(1);
    struct bh_engine_caps caps = bh_play_caps();
    size_t length = bh_engine_size(&caps);
    char *bytes = (char *)all->engine;

    assert_null(bh_engine_adopt(bytes, length - 1));
    assert_null(bh_engine_adopt(bytes, 8));
    assert_null(bh_engine_adopt(bytes + 8, length - 8));
    for (size_t i = 0; i < 20; i++) { /* magic, length, layout */
        bytes[i] ^= 1;
        assert_null(bh_engine_adopt(bytes, length));
        bytes[i] ^= 1;
    }
    assert_non_null(bh_engine_adopt(bytes, length));
    close_all(all);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_of_every_step_goes_on_the_same),
        cmocka_unit_test(an_engine_that_moves_at_every_step_decides_the_same),
        cmocka_unit_test(copies_of_a_long_history_go_on_the_same),
        cmocka_unit_test(other_bytes_are_refused),
    };

    if (argc > 1)
        steps_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
