/* Time slices under load: how much each gets of a GPU that several use without a pause, and what holds
 * whatever comes.  With SHOW in the environment the figures are printed. */
#include "share/time_slices.h"

#include <stdlib.h>
#include <string.h>

#include "share/time_slices_test.h"

#define HANDOFF_NS (60 * US) /* assumed: not measured on a GPU yet */

/* ---- whatever comes ---- */

enum { HISTORY_MEMBERS = 6, HISTORY_STEPS = 60000 };

struct history {
    struct bh_time_slices *slices;
    struct bh_time_slices_member member[HISTORY_MEMBERS];
    bool here[HISTORY_MEMBERS], paused[HISTORY_MEMBERS];
    uint64_t now_ns, random;
};

static uint64_t
slices_load_test_chance(struct history *history, uint64_t below)
{
    history->random = history->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (history->random >> 33) % below;
}

static void
join_any(struct history *history, uint32_t at)
{
    struct bh_time_slices_member *member = &history->member[at];
    uint32_t mode = (uint32_t)slices_load_test_chance(history, 4);

    *member = (struct bh_time_slices_member){
        .gpus = 1 + (uint32_t)slices_load_test_chance(history, 3),
        .weight = 1 + (uint32_t)slices_load_test_chance(history, 4200),
        .hard = mode == 1,
        .latency = mode == 2,
        .quantum_ns = mode == 3 ? SECOND : 0,
    };
    BH_CHECK_EQ("the first free place", slices_join(history->slices, history->now_ns, *member), at);
    history->here[at] = true;
    history->paused[at] = false;
}

static void
slices_load_test_happen(struct history *history)
{
    uint32_t at = (uint32_t)slices_load_test_chance(history, HISTORY_MEMBERS);
    uint64_t now = history->now_ns;

    for (uint32_t i = 0; i < at; i++)
        at = history->here[i] ? at : i;
    if (!history->here[at]) {
        join_any(history, at);
        return;
    }
    switch (slices_load_test_chance(history, 40)) {
    case 0:
        bh_time_slices_leave(history->slices, now, at);
        history->here[at] = false;
        return;
    case 1:
        bh_time_slices_pause(history->slices, now, at);
        history->paused[at] = true;
        return;
    case 2:
        bh_time_slices_resume(history->slices, now, at);
        history->paused[at] = false;
        return;
    case 3:
        bh_time_slices_throttle(history->slices, now, at, slices_load_test_chance(history, 2) == 0);
        return;
    case 4:
        bh_time_slices_idle(history->slices, now, at);
        return;
    case 5:
    case 6:
    case 7:
    case 8:
        bh_time_slices_want(history->slices, now, at);
        return;
    case 9:
    case 10:
    case 11:
        bh_time_slices_finish(history->slices, now, at);
        return;
    default:
        bh_time_slices_drained(history->slices, now, at);
    }
}

static bool
is_exclusive(const struct history *history)
{
    uint32_t held = 0;

    for (uint32_t i = 0; i < HISTORY_MEMBERS; i++) {
        if (!history->here[i] || bh_time_slices_state(history->slices, i) == BH_TIME_SLICE_NONE
            || bh_time_slices_is_stuck(history->slices, i))
            continue;
        if ((held & history->member[i].gpus) != 0)
            return false;
        held |= history->member[i].gpus;
    }
    return true;
}

/* Only a CONTENDED time slice has an end, it is in the future, and the arbiter keeps to it. */
static bool
keeps_to_its_ends(const struct history *history)
{
    for (uint32_t i = 0; i < HISTORY_MEMBERS; i++) {
        uint64_t end = history->here[i] ? bh_time_slices_until_ns(history->slices, i) : 0;

        if (end == 0)
            continue;
        if (bh_time_slices_state(history->slices, i) != BH_TIME_SLICE_CONTENDED || end <= history->now_ns
            || bh_time_slices_next(history->slices) > end)
            return false;
    }
    return true;
}

static void
any_history(void **state)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct history history = { .slices = slices_make(SECOND), .random = seed };
        uint64_t used = 0;

        for (int step = 0; step < HISTORY_STEPS; step++) {
            uint64_t next = bh_time_slices_next(history.slices);

            if (slices_load_test_chance(&history, 3) != 0)
                slices_load_test_happen(&history);
            else if (next != UINT64_MAX && next > history.now_ns && slices_load_test_chance(&history, 2) == 0)
                history.now_ns = next;
            else
                history.now_ns += slices_load_test_chance(&history, 30 * MS);
            bh_time_slices_tick(history.slices, history.now_ns);
            BH_CHECK("one at a time", is_exclusive(&history));
            BH_CHECK("ends hold", keeps_to_its_ends(&history));
            BH_CHECK("nothing is left that was due", bh_time_slices_next(history.slices) > history.now_ns);
        }
        for (uint32_t i = 0; i < HISTORY_MEMBERS; i++)
            used += history.here[i] ? bh_time_slices_used_ns(history.slices, i) : 0;
        BH_CHECK("and somebody worked", used > 0);
        bh_time_slices_free(history.slices);
    }
    BH_CHECK_DONE();
}

/* ---- a GPU that several use without a pause ---- */

enum { SECONDS_MAX = 1260, MINUTE_S = 60 };

/* Bounds in 0.01 points of the share. */
struct load {
    const char *name;
    uint32_t tenants, weight[7];
    uint64_t kernel_ns[7];
    uint32_t window_bp; /* 95 of 100 windows of a second are off by no more */
    uint32_t minute_bp; /* 95 of 100 windows of a minute are */
    uint32_t run_bp;    /* the whole run is */
    uint64_t seconds;
    uint32_t all_bp; /* work done by all, of what one alone would */
};

struct world {
    struct bh_time_slices *slices;
    const struct load *load;
    uint32_t index[7];
    uint64_t done_ns[7];             /* work */
    uint64_t at[SECONDS_MAX + 1][7]; /* the same, at each second */
    uint64_t now_ns, random, next_ns, seconds;
};

struct errors {
    uint32_t bp[7 * SECONDS_MAX], count;
};

static uint64_t
slices_load_test_draw(struct world *world, uint64_t below)
{
    world->random = world->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (world->random >> 33) % below;
}

static uint32_t
apart_bp(uint64_t part, uint64_t of, uint64_t want, uint64_t want_of)
{
    int64_t got = of == 0 ? 0 : (int64_t)(part * 10000 / of);

    return (uint32_t)llabs(got - (int64_t)(want * 10000 / want_of));
}

/* Of one window that ends at that second; those of a minute begin with each. */
static void
slices_load_test_measure(const struct world *world, uint64_t end, uint64_t length, struct errors *errors)
{
    const uint64_t *now = world->at[end], *before = world->at[end - length];
    uint64_t sum = 0, weights = 0;

    for (uint32_t t = 0; t < world->load->tenants; t++) {
        sum += now[t] - before[t];
        weights += world->load->weight[t];
    }
    for (uint32_t t = 0; t < world->load->tenants; t++)
        errors->bp[errors->count++] = apart_bp(now[t] - before[t], sum, world->load->weight[t], weights);
}

/* Work done in a partition of time that spans seconds counts in each for its part. */
static void
slices_load_test_work(struct world *world, uint32_t tenant, uint64_t ns)
{
    while (world->now_ns + ns >= world->next_ns && world->seconds < SECONDS_MAX) {
        uint64_t part = world->next_ns - world->now_ns;

        world->done_ns[tenant] += part;
        world->now_ns += part;
        ns -= part;
        memcpy(world->at[++world->seconds], world->done_ns, sizeof(world->done_ns));
        world->next_ns += SECOND;
    }
    world->done_ns[tenant] += ns;
    world->now_ns += ns;
}

static uint32_t
holder(const struct world *world)
{
    for (uint32_t t = 0; t < world->load->tenants; t++)
        if (bh_time_slices_state(world->slices, world->index[t]) != BH_TIME_SLICE_NONE)
            return t;
    return UINT32_MAX;
}

/* As shim/work/meter.c has it: when a kernel begins it is decided whether the next one is submitted
 * behind it, by what they take as a rule. */
static bool
one_more(const struct world *world, uint32_t tenant)
{
    uint64_t usual_ns = world->load->kernel_ns[tenant];
    uint64_t until_ns = bh_time_slices_until_ns(world->slices, world->index[tenant]);

    return world->now_ns + usual_ns + usual_ns / 2 <= until_ns;
}

/* The holder of the time slice runs kernel after kernel, until it must end, or the next one would
 * come too late in it. */
static void
slices_load_test_run(struct world *world)
{
    uint64_t end_ns = world->load->seconds * SECOND;

    while (world->now_ns < end_ns) {
        uint32_t t = holder(world);
        bool more = one_more(world, t);

        slices_load_test_work(world, t,
                              world->load->kernel_ns[t] * (70 + slices_load_test_draw(world, 61)) / 100);
        bh_time_slices_tick(world->slices, world->now_ns);
        if (more && bh_time_slices_state(world->slices, world->index[t]) != BH_TIME_SLICE_ENDING)
            continue;
        world->now_ns += HANDOFF_NS;
        bh_time_slices_finish(world->slices, world->now_ns, world->index[t]);
        bh_time_slices_drained(world->slices, world->now_ns, world->index[t]);
    }
}

static int
slices_load_test_compare(const void *a, const void *b)
{
    return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b);
}

static struct errors *
slices_load_test_windows(const struct world *world, uint64_t length)
{
    static struct errors errors;

    errors.count = 0;
    for (uint64_t end = length; end <= world->seconds; end++)
        slices_load_test_measure(world, end, length, &errors);
    qsort(errors.bp, errors.count, sizeof(errors.bp[0]), slices_load_test_compare);
    return &errors;
}

static uint32_t
percentile(const struct errors *errors, uint32_t percent)
{
    return errors->count == 0 ? 0 : errors->bp[(errors->count - 1) * percent / 100];
}

static void
check_run(const struct world *world)
{
    const struct load *load = world->load;
    uint64_t sum = 0, weights = 0;

    for (uint32_t t = 0; t < load->tenants; t++) {
        sum += world->done_ns[t];
        weights += load->weight[t];
    }
    for (uint32_t t = 0; t < load->tenants; t++)
        BH_CHECK(load->name, apart_bp(world->done_ns[t], sum, load->weight[t], weights) <= load->run_bp);
    BH_CHECK(load->name, sum * 10000 / world->now_ns >= load->all_bp);
    if (getenv("SHOW") != NULL)
        fprintf(stderr, "  run %.2f, throughput %.2f %%\n",
                apart_bp(world->done_ns[0], sum, load->weight[0], weights) / 100.0,
                (double)(sum * 10000 / world->now_ns) / 100);
}

static void
check_load(const struct load *load)
{
    static const struct {
        const char *name;
        uint64_t length;
    } spans[] = {
        { "1 s", 1 },
        { "60 s", MINUTE_S },
    };
    static struct world world;

    world = (struct world){ .slices = slices_make(0), .load = load, .random = 7, .next_ns = SECOND };
    for (uint32_t t = 0; t < load->tenants; t++)
        world.index[t] = slices_join(world.slices, 0,
                                     (struct bh_time_slices_member){ .gpus = 1, .weight = load->weight[t] });
    for (uint32_t t = 0; t < load->tenants; t++)
        bh_time_slices_want(world.slices, 0, world.index[t]);
    slices_load_test_run(&world);
    if (getenv("SHOW") != NULL)
        fprintf(stderr, "%-20s", load->name);
    for (size_t i = 0; i < 2; i++) {
        const struct errors *errors = slices_load_test_windows(&world, spans[i].length);

        BH_CHECK(load->name, percentile(errors, 95) <= (i == 0 ? load->window_bp : load->minute_bp));
        if (getenv("SHOW") != NULL && errors->count != 0)
            fprintf(stderr, "  %s: p50 %.2f p95 %.2f max %.2f", spans[i].name, percentile(errors, 50) / 100.0,
                    percentile(errors, 95) / 100.0, percentile(errors, 100) / 100.0);
    }
    check_run(&world);
    bh_time_slices_free(world.slices);
}

#define EQUAL(n)                                                                                             \
    {                                                                                                        \
        n, n, n, n, n, n, n                                                                                  \
    }
#define ANY 10000

static const struct load loads[] = {
    { "50/50, 10 us", 2, { 2100, 2100 }, EQUAL(10 * US), 100, 75, 75, 10, 9850 },
    { "50/50, 1 ms", 2, { 2100, 2100 }, EQUAL(MS), 100, 75, 75, 120, 9850 },
    { "50/50, 10 ms", 2, { 2100, 2100 }, EQUAL(10 * MS), 100, 75, 75, 120, 9850 },
    { "50/50, 50 ms", 2, { 2100, 2100 }, EQUAL(50 * MS), 500, 75, 75, 120, 9850 },
    { "50/50, 200 ms", 2, { 2100, 2100 }, EQUAL(200 * MS), ANY, 75, 75, 1260, 9850 },
    { "50/50, 700 ms", 2, { 2100, 2100 }, EQUAL(700 * MS), ANY, 75, 75, 1260, 9850 },
    { "50/50, 1 s", 2, { 2100, 2100 }, EQUAL(SECOND), ANY, 140, 75, 1260, 9850 },
    { "50/50, 1 and 50 ms", 2, { 2100, 2100 }, { MS, 50 * MS }, 500, 75, 75, 120, 9850 },
    { "50/50, 1 ms and 1 s", 2, { 2100, 2100 }, { MS, SECOND }, ANY, 200, 75, 600, 9850 },
    { "30/70, 1 ms", 2, { 1260, 2940 }, EQUAL(MS), 100, 75, 75, 120, 9850 },
    { "30/70, 10 ms", 2, { 1260, 2940 }, EQUAL(10 * MS), 100, 75, 75, 120, 9850 },
    { "30/70, 50 ms", 2, { 1260, 2940 }, EQUAL(50 * MS), 500, 75, 75, 120, 9850 },
    { "30/70, 200 ms", 2, { 1260, 2940 }, EQUAL(200 * MS), ANY, 75, 75, 1260, 9850 },
    { "30/70, 600 ms", 2, { 1260, 2940 }, EQUAL(600 * MS), ANY, 75, 75, 1260, 9850 },
    { "30/70, 1 s", 2, { 1260, 2940 }, EQUAL(SECOND), ANY, 140, 75, 1260, 9850 },
    { "10/90, 1 ms", 2, { 420, 3780 }, EQUAL(MS), 100, 75, 75, 120, 9850 },
    { "10/90, 10 ms", 2, { 420, 3780 }, EQUAL(10 * MS), 100, 75, 75, 120, 9850 },
    { "10/90, 50 ms", 2, { 420, 3780 }, EQUAL(50 * MS), 500, 75, 75, 120, 9850 },
    { "10/90, 200 ms", 2, { 420, 3780 }, EQUAL(200 * MS), ANY, 75, 75, 1260, 9850 },
    { "10/90, 500 ms", 2, { 420, 3780 }, EQUAL(500 * MS), ANY, 75, 75, 1260, 9850 },
    { "10/90, 1 s", 2, { 420, 3780 }, EQUAL(SECOND), ANY, 140, 75, 1260, 9850 },
    { "7 ways, 1 ms", 7, EQUAL(600), EQUAL(MS), 150, 75, 75, 120, 9850 },
    { "7 ways, 10 ms", 7, EQUAL(600), EQUAL(10 * MS), 100, 75, 75, 120, 9850 },
    { "7 ways, 50 ms", 7, EQUAL(600), EQUAL(50 * MS), 500, 75, 75, 120, 9850 },
    { "7 ways, 200 ms", 7, EQUAL(600), EQUAL(200 * MS), ANY, 75, 75, 1260, 9850 },
    { "7 ways, 500 ms", 7, EQUAL(600), EQUAL(500 * MS), ANY, 75, 75, 1260, 9850 },
    { "7 ways, 1 s", 7, EQUAL(600), EQUAL(SECOND), ANY, 140, 75, 1260, 9850 },
};

static void
shares(void **state)
{
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        check_load(&loads[i]);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_history),
    cmocka_unit_test(shares),
};

BH_TEST_MAIN(tests)
