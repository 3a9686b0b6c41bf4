/* The judge of node/share/share_time.h against tenants in virtual time: the turns are bulkhead-share's own,
 * the samples are taken as the driver's are.  Tenants that keep to their time slices are never reported; one
 * that ignores them is.
 *
 *   share_time_model_test [SECONDS]    of virtual time for each mix of those that keep to their turns (60) */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/test.h"
#include "node/share/share_time.h"
#include "share/time_slices.h"

enum { TENANTS_MAX = 8, US = 1000, MS = 1000 * US };
#define S UINT64_C(1000000000)
#define SAMPLE_NS (S / 6)
#define NEVER UINT64_MAX

struct tenant {
    uint32_t weight;
    uint64_t kernel_ns;
    uint64_t work_ns, rest_ns; /* about so much work, then a rest; 0: never rests */
    bool hard, cheats, sly;    /* cheats: runs whenever it likes; sly: and takes its turns as well */
    uint64_t quantum_ns;
};

struct mix {
    const char *name;
    uint64_t handover_ns; /* from the end of the last kernel to the next turn, at most */
    uint32_t count;
    struct tenant tenants[TENANTS_MAX];
};

struct runner {
    struct tenant is;
    uint32_t member;
    enum bh_time_slice slice;
    uint64_t from_ns, until_ns; /* at work */
    uint64_t left_ns, want_ns, drained_ns;
    uint32_t sampled;
    uint64_t granted_ns;
    struct bh_share_time time;
    int64_t most_ns;  /* beyond its turns */
    uint64_t told_ns; /* when it was first reported; 0: never */
};

struct world {
    const struct mix *mix;
    struct bh_time_slices *slices;
    struct runner runners[TENANTS_MAX];
    uint64_t now_ns, began_ns, sample_ns, check_ns, checked_ns, seed;
    uint32_t samples;
};

static uint64_t
below(struct world *world, uint64_t limit)
{
    world->seed ^= world->seed << 13;
    world->seed ^= world->seed >> 7;
    world->seed ^= world->seed << 17;
    return limit > 0 ? world->seed % limit : 0;
}

static bool
has_slice(const struct runner *runner)
{
    return runner->slice == BH_TIME_SLICE_OPEN || runner->slice == BH_TIME_SLICE_CONTENDED;
}

static bool
is_at_work(const struct runner *runner, uint64_t now_ns)
{
    return runner->is.cheats || (now_ns >= runner->from_ns && now_ns < runner->until_ns);
}

/* ---- what tenants do ---- */

static void
share_time_model_test_begin(struct world *world, struct runner *runner)
{
    runner->want_ns = NEVER;
    runner->left_ns = runner->is.work_ns / 2 + below(world, runner->is.work_ns);
    bh_time_slices_want(world->slices, world->now_ns, runner->member);
}

/* Its work is done for now. */
static void
share_time_model_test_rest(struct world *world, struct runner *runner)
{
    runner->until_ns = world->now_ns;
    runner->want_ns = world->now_ns + runner->is.rest_ns / 2 + below(world, runner->is.rest_ns);
    bh_time_slices_idle(world->slices, world->now_ns, runner->member);
}

static uint64_t
rests_at(const struct runner *runner)
{
    return runner->is.work_ns > 0 && !runner->is.cheats && has_slice(runner) && runner->want_ns == NEVER
               ? runner->from_ns + runner->left_ns
               : NEVER;
}

/* What was submitted ahead still runs: 3 ms of short kernels, or one that is long. */
static void
end_slice(struct world *world, struct runner *runner)
{
    uint64_t ahead_ns = runner->is.kernel_ns > 3 * MS ? 0 : 3 * MS;
    uint64_t left_ns = below(world, runner->is.kernel_ns) + below(world, ahead_ns);

    for (uint32_t i = 0; i < world->mix->count; i++)
        left_ns *= world->runners[i].is.cheats ? 2 : 1; /* that take their part of it */
    if (runner->until_ns > world->now_ns) {
        if (runner->is.work_ns > 0 && world->now_ns > runner->from_ns)
            runner->left_ns -= world->now_ns - runner->from_ns < runner->left_ns
                                   ? world->now_ns - runner->from_ns
                                   : runner->left_ns;
        runner->until_ns = world->now_ns + left_ns;
    } else {
        left_ns = 0;
    }
    runner->drained_ns = world->now_ns + left_ns + below(world, world->mix->handover_ns);
}

static void
share_time_model_test_follow(struct world *world, struct runner *runner)
{
    enum bh_time_slice slice = bh_time_slices_state(world->slices, runner->member);
    bool granted = has_slice(runner);

    if (slice == runner->slice)
        return;
    runner->slice = slice;
    if (has_slice(runner) && !granted) {
        runner->from_ns = world->now_ns + below(world, world->mix->handover_ns / 2);
        runner->until_ns = NEVER;
    } else if (slice == BH_TIME_SLICE_ENDING) {
        end_slice(world, runner);
    }
}

static void
act(struct world *world, struct runner *runner)
{
    if (runner->want_ns <= world->now_ns)
        share_time_model_test_begin(world, runner);
    if (rests_at(runner) <= world->now_ns)
        share_time_model_test_rest(world, runner);
    if (runner->drained_ns <= world->now_ns) {
        runner->drained_ns = NEVER;
        bh_time_slices_drained(world->slices, world->now_ns, runner->member);
    }
}

/* ---- what is seen ---- */

/* One process is found at work: of several whose slice of the driver's it happens to be. */
static void
share_time_model_test_sample(struct world *world)
{
    struct runner *found[TENANTS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->mix->count; i++)
        if (is_at_work(&world->runners[i], world->now_ns))
            found[count++] = &world->runners[i];
    if (count > 0)
        found[below(world, count)]->sampled++;
    world->samples++;
    world->sample_ns += SAMPLE_NS;
}

static void
check_share(struct world *world)
{
    uint64_t span_ns = world->now_ns - world->checked_ns, granted_bp[TENANTS_MAX], all_bp = 0;

    for (uint32_t i = 0; i < world->mix->count; i++) {
        uint64_t granted_ns =
            bh_time_slices_granted_ns(world->slices, world->now_ns, world->runners[i].member);

        granted_bp[i] = (granted_ns - world->runners[i].granted_ns) * 10000 / span_ns;
        all_bp += granted_bp[i];
        world->runners[i].granted_ns = granted_ns;
    }
    for (uint32_t i = 0; i < world->mix->count; i++) {
        struct runner *runner = &world->runners[i];
        const struct bh_share_time_check seen = {
            .span_ns = span_ns,
            .granted_bp = (uint32_t)granted_bp[i],
            .busy_bp = world->samples > 0 ? runner->sampled * 100 / world->samples * 100 : 0,
            .others_bp = (uint32_t)(all_bp - granted_bp[i]),
        };

        if (bh_share_time_check(&runner->time, &seen) && runner->told_ns == 0)
            runner->told_ns = world->now_ns - world->began_ns;
        if (runner->time.beyond_ns > runner->most_ns)
            runner->most_ns = runner->time.beyond_ns;
        runner->sampled = 0;
    }
    world->samples = 0;
    world->checked_ns = world->now_ns;
    world->check_ns = world->now_ns + S + below(world, 20 * MS);
}

/* ---- time ---- */

static uint64_t
next_event(const struct world *world)
{
    uint64_t next_ns = bh_time_slices_next(world->slices);

    if (next_ns <= world->now_ns) /* a hard one that has rested and waits for the others */
        next_ns = world->now_ns + 100 * US;
    next_ns = world->sample_ns < next_ns ? world->sample_ns : next_ns;
    next_ns = world->check_ns < next_ns ? world->check_ns : next_ns;
    for (uint32_t i = 0; i < world->mix->count; i++) {
        const struct runner *runner = &world->runners[i];
        const uint64_t own[] = { runner->want_ns, runner->drained_ns, rests_at(runner) };

        for (size_t k = 0; k < BH_COUNT(own); k++)
            next_ns = own[k] < next_ns ? own[k] : next_ns;
    }
    return next_ns > world->now_ns ? next_ns : world->now_ns + 1;
}

static void
share_time_model_test_step(struct world *world)
{
    world->now_ns = next_event(world);
    for (uint32_t i = 0; i < world->mix->count; i++)
        act(world, &world->runners[i]);
    bh_time_slices_tick(world->slices, world->now_ns);
    for (uint32_t i = 0; i < world->mix->count; i++)
        share_time_model_test_follow(world, &world->runners[i]);
    if (world->sample_ns <= world->now_ns)
        share_time_model_test_sample(world);
    if (world->check_ns <= world->now_ns)
        check_share(world);
}

static void
share_time_model_test_start(struct world *world, const struct mix *mix, uint64_t seed)
{
    struct bh_err err;

    *world =
        (struct world){ .mix = mix,
                        .seed = 88172645463325252u + seed * 7919,
                        .slices = bh_time_slices_new(&(struct bh_time_slices_options){ .round_ns = 0 }) };
    world->began_ns = world->now_ns = world->checked_ns = 1000 * S + below(world, S);
    world->sample_ns = (world->now_ns / SAMPLE_NS + 1) * SAMPLE_NS;
    world->check_ns = world->now_ns + S;
    for (uint32_t i = 0; i < mix->count; i++) {
        struct runner *runner = &world->runners[i];
        const struct tenant *is = &mix->tenants[i];
        const struct bh_time_slices_member member = {
            .gpus = 1, .weight = is->weight, .hard = is->hard, .quantum_ns = is->quantum_ns
        };

        *runner = (struct runner){ .is = *is, .drained_ns = NEVER };
        runner->want_ns = is->cheats && !is->sly ? NEVER : world->now_ns + below(world, 10 * MS);
        assert_int_equal(bh_time_slices_join(world->slices, world->now_ns, &member, &runner->member, &err),
                         BH_OK);
    }
}

static uint64_t seconds = 60;

static void
share_time_model_test_run(struct world *world, const struct mix *mix, uint64_t seed)
{
    share_time_model_test_start(world, mix, seed);
    while (world->now_ns < world->began_ns + seconds * S)
        share_time_model_test_step(world);
    bh_time_slices_free(world->slices);
}

/* ---- mixes ---- */

#define BUSY(weight_, kernel)                                                                                \
    {                                                                                                        \
        .weight = (weight_), .kernel_ns = (kernel)                                                           \
    }
#define BURSTS(weight_, kernel, work, rest_)                                                                 \
    {                                                                                                        \
        .weight = (weight_), .kernel_ns = (kernel), .work_ns = (work), .rest_ns = (rest_)                    \
    }
#define HARD(weight_, kernel)                                                                                \
    {                                                                                                        \
        .weight = (weight_), .kernel_ns = (kernel), .hard = true                                             \
    }
#define CHEAT(weight_)                                                                                       \
    {                                                                                                        \
        .weight = (weight_), .kernel_ns = MS, .cheats = true                                                 \
    }
#define SLY(weight_)                                                                                         \
    {                                                                                                        \
        .weight = (weight_), .kernel_ns = MS, .cheats = true, .sly = true                                    \
    }

static const struct mix honest[] = {
    { "30 and 70", 200 * US, 2, { BUSY(1260, MS), BUSY(2940, MS) } },
    { "10 and 90", 200 * US, 2, { BUSY(420, MS), BUSY(3780, MS) } },
    { "short and long", 200 * US, 2, { BUSY(2100, 50 * US), BUSY(2100, 50 * MS) } },
    { "now and then", 200 * US, 2, { BURSTS(2100, MS, 20 * MS, S), BUSY(2100, MS) } },
    { "half of the time", 200 * US, 2, { BURSTS(1050, MS, 200 * MS, S / 2), BUSY(3150, MS) } },
    { "for seconds",
      200 * US,
      4,
      { BURSTS(1050, MS, 2 * S, 2 * S), BURSTS(1050, MS, 2 * S, 2 * S), BURSTS(1050, MS, S, 3 * S),
        BUSY(1050, MS) } },
    { "seven",
      300 * US,
      7,
      { BURSTS(600, MS, 100 * MS, 300 * MS), BURSTS(600, 100 * US, 100 * MS, S),
        BURSTS(600, 10 * MS, 100 * MS, 300 * MS), BUSY(600, MS), BURSTS(600, MS, S, 300 * MS),
        BUSY(600, 20 * MS), BURSTS(600, MS, 20 * MS, 50 * MS) } },
    { "hard and not", 200 * US, 2, { HARD(1050, MS), BUSY(3150, MS) } },
    { "hard", 100 * US, 4, { HARD(1050, MS), HARD(1050, MS), HARD(1050, MS), HARD(1050, MS) } },
    { "quanta",
      200 * US,
      3,
      { { .weight = 1400, .kernel_ns = MS, .quantum_ns = 3 * S },
        { .weight = 1400, .kernel_ns = 10 * MS, .quantum_ns = 3 * S },
        { .weight = 1400, .kernel_ns = MS, .quantum_ns = 3 * S } } },
};

/* `from` to `to`: seconds until it is reported. */
static const struct {
    uint32_t from, to;
    struct mix mix;
} cheats[] = {
    { 5, 20, { "beside one", 200 * US, 2, { CHEAT(1050), BUSY(3150, MS) } } },
    { 5,
      25,
      { "beside six",
        200 * US,
        7,
        { CHEAT(600), BUSY(600, MS), BUSY(600, MS), BUSY(600, MS), BUSY(600, MS), BUSY(600, MS),
          BUSY(600, MS) } } },
    { 5, 25, { "beside bursts", 200 * US, 2, { CHEAT(1050), BURSTS(3150, MS, 200 * MS, 300 * MS) } } },
    { 5, 30, { "two of them", 200 * US, 3, { CHEAT(1050), CHEAT(1050), BUSY(2100, MS) } } },
    { 8, 60, { "a quarter, and more", 200 * US, 2, { SLY(1050), BUSY(3150, MS) } } },
    { 15, 110, { "a half, and more", 200 * US, 2, { SLY(2100), BUSY(2100, MS) } } },
};

static int64_t
most_of(const struct world *world, const char *name)
{
    int64_t most_ns = 0;

    for (uint32_t i = 0; i < world->mix->count; i++) {
        const struct runner *runner = &world->runners[i];

        if (runner->is.cheats)
            continue;
        if (runner->told_ns != 0)
            BH_CHECK_EQ(name, runner->told_ns, 0);
        most_ns = runner->most_ns > most_ns ? runner->most_ns : most_ns;
    }
    return most_ns;
}

static void
test_honest(void **state)
{
    struct world world;

    for (size_t i = 0; i < BH_COUNT(honest); i++) {
        share_time_model_test_run(&world, &honest[i], i);
        print_message("# %s: at most %.2f s of 4\n", honest[i].name,
                      (double)most_of(&world, honest[i].name) / 1e9);
    }
    BH_CHECK_DONE();
}

/* Equal tenants that never rest: the rounds of turns are as even as they can be, so that samples may
 * meet the same moment of each for long. */
static void
test_even(void **state)
{
    static const uint64_t kernels[] = { US, 100 * US, MS, 5 * MS, 20 * MS, 50 * MS };
    static const uint64_t handovers[] = { 20 * US, 200 * US, 400 * US };
    int64_t most_ns = 0;
    struct world world;

    for (uint64_t n = 0; n < 7 * BH_COUNT(kernels) * BH_COUNT(handovers); n++) {
        struct mix mix = { .name = "even", .handover_ns = handovers[n % 3], .count = 2 + n / 3 % 7 };
        int64_t seen_ns;

        for (uint32_t i = 0; i < mix.count; i++)
            mix.tenants[i] = (struct tenant)BUSY(4200 / mix.count, kernels[n / 21]);
        share_time_model_test_run(&world, &mix, n);
        seen_ns = most_of(&world, mix.name);
        most_ns = seen_ns > most_ns ? seen_ns : most_ns;
    }
    print_message("# even: at most %.2f s of 4\n", (double)most_ns / 1e9);
    BH_CHECK_DONE();
}

static void
test_cheats(void **state)
{
    struct world world;

    seconds = 120;
    for (size_t i = 0; i < BH_COUNT(cheats); i++) {
        uint64_t told_ns;

        share_time_model_test_run(&world, &cheats[i].mix, i);
        told_ns = world.runners[0].told_ns;
        print_message("# %s: told after %.1f s\n", cheats[i].mix.name, (double)told_ns / 1e9);
        BH_CHECK(cheats[i].mix.name, told_ns >= cheats[i].from * S && told_ns <= cheats[i].to * S);
        (void)most_of(&world, cheats[i].mix.name);
    }
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_honest),
        cmocka_unit_test(test_even),
        cmocka_unit_test(test_cheats),
    };
    struct bh_err err;

    if (argc > 2 || (argc == 2 && bh_parse_u64(argv[1], &seconds, &err) != BH_OK))
        return 2;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
