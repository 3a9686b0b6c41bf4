#include "lab/mig/mig.h"

#include "base/attr.h"
#include "base/test.h"

/* Section 3.1 of the facts: what the anchors were measured with. */
static void
placements_are_those_of_the_anchors(void **state)
{
    static const struct {
        const char *profile;
        uint32_t slices, units, starts;
    } rows[BH_MIG_FLEET_PROFILES] = {
        { "1g.10gb", 1, 1, 0x7f }, { "1g.20gb", 1, 2, 0x55 }, { "2g.20gb", 2, 2, 0x15 },
        { "3g.40gb", 3, 4, 0x11 }, { "4g.40gb", 4, 4, 0x01 }, { "7g.80gb", 7, 8, 0x01 },
    };
    static const enum bh_gpu_model models[] = { BH_GPU_A100_80GB, BH_GPU_H100_80GB };

    for (size_t i = 0; i < BH_COUNT(models); i++) {
        struct bh_mig_fleet *fleet = bh_mig_fleet_new(models[i], 1, BH_MIG_FIRST_FIT, &bh_mig_mixes[0]);

        for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++) {
            const struct bh_profile *profile = bh_mig_fleet_profile(fleet, kind);

            BH_CHECK_STR(rows[kind].profile, profile->name, rows[kind].profile);
            BH_CHECK_EQ(profile->name, profile->compute_slices, rows[kind].slices);
            BH_CHECK_EQ(profile->name, profile->memory_units, rows[kind].units);
            BH_CHECK_EQ(profile->name, profile->starts, rows[kind].starts);
        }
        BH_CHECK_EQ("memory", bh_model_facts(models[i])->memory_units, 8);
        BH_CHECK_EQ("compute", bh_model_facts(models[i])->compute_slices, 7);
        bh_mig_fleet_free(fleet);
    }
    BH_CHECK_DONE();
}

/* Where a second job goes after a first on two GPUs. */
static void
policies_go_where_their_names_say(void **state)
{
    static const struct {
        enum bh_mig_policy policy;
        uint32_t first, second, gpu, start; /* kinds, and where the second goes */
        /* clang-format off */
    } cases[] = {
        { BH_MIG_ROUND_ROBIN, 0, 0, 1, 0 }, { BH_MIG_WORST_FIT, 0, 0, 1, 0 },
        { BH_MIG_FIRST_FIT, 0, 0, 0, 1 },   { BH_MIG_BEST_FIT, 3, 0, 0, 4 },
        { BH_MIG_BEST_INDEX, 4, 0, 0, 6 },  { BH_MIG_SLICE_FIT, 4, 0, 0, 6 },
        { BH_MIG_MCC, 5, 0, 1, 6 },         { BH_MIG_FRAG, 4, 0, 0, 6 },
        { BH_MIG_FRAG, 3, 4, 0, 0 },        { BH_MIG_BULKHEAD, 3, 4, 0, 0 },
        { BH_MIG_BULKHEAD, 4, 0, 0, 6 },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *name = bh_mig_policy_names[cases[i].policy];
        struct bh_mig_fleet *fleet = bh_mig_fleet_new(BH_GPU_H100_80GB, 2, cases[i].policy, &bh_mig_mixes[0]);
        struct bh_mig_placement placement;

        BH_CHECK(name, bh_mig_fleet_place(fleet, cases[i].first, &placement));
        BH_CHECK(name, bh_mig_fleet_place(fleet, cases[i].second, &placement));
        BH_CHECK_EQ(name, placement.gpu, cases[i].gpu);
        BH_CHECK_EQ(name, placement.start, cases[i].start);
        bh_mig_fleet_free(fleet);
    }
    BH_CHECK_DONE();
}

/* Whether any GPU of the fleet has room for the kind. */
static bool
has_room(const struct bh_mig_fleet *fleet, uint32_t gpus, uint32_t kind)
{
    for (uint32_t gpu = 0; gpu < gpus; gpu++)
        if (bh_occupancy_capacity(bh_mig_fleet_gpu(fleet, gpu), bh_mig_fleet_profile(fleet, kind)))
            return true;
    return false;
}

static void
no_policy_refuses_what_fits(void **state)
{
    enum { GPUS = 3, JOBS = 400, LIVE = 12 };

    for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++) {
        struct bh_mig_fleet *fleet =
            bh_mig_fleet_new(BH_GPU_H100_80GB, GPUS, (enum bh_mig_policy)policy, &bh_mig_mixes[1]);
        struct bh_mig_placement placements[LIVE];
        uint32_t kinds[LIVE], random = 12345;
        bool live[LIVE] = { false };

        for (uint32_t i = 0; i < JOBS; i++) {
            uint32_t kind = (random >> 16) % BH_MIG_FLEET_PROFILES, at = i % LIVE;
            bool room;

            random = random * 1103515245 + 12345;
            if (live[at])
                bh_mig_fleet_end(fleet, kinds[at], &placements[at]);
            room = has_room(fleet, GPUS, kind);
            kinds[at] = kind;
            live[at] = bh_mig_fleet_place(fleet, kind, &placements[at]);
            BH_CHECK_EQ(bh_mig_policy_names[policy], live[at], room);
        }
        bh_mig_fleet_free(fleet);
    }
    BH_CHECK_DONE();
}

static struct bh_mig_run
small_run(enum bh_mig_policy policy)
{
    return (struct bh_mig_run){ .model = BH_GPU_H100_80GB,
                                .mix = &bh_mig_mixes[1],
                                .policy = policy,
                                .load = 1,
                                .gpus = 50,
                                .arrivals = 4000,
                                .seed = 3 };
}

static void
a_run_depends_on_its_seed_alone(void **state)
{
    struct bh_mig_run run = small_run(BH_MIG_BULKHEAD);
    struct bh_mig_outcome once = bh_mig_run_play(&run);
    struct bh_mig_outcome again = bh_mig_run_play(&run);
    struct bh_mig_outcome other;

    BH_CHECK_EQ("same", memcmp(&once, &again, sizeof(once)), 0);
    run.policy = BH_MIG_WORST_FIT;
    other = bh_mig_run_play(&run);
    BH_CHECK_EQ("same jobs", memcmp(once.asked, other.asked, sizeof(once.asked)), 0);
    BH_CHECK("three quarters",
             once.asked[0] + once.asked[1] + once.asked[2] + once.asked[3] + once.asked[4] + once.asked[5]
                 == 3000);
    BH_CHECK("utilised", once.utilisation > 0.5 && once.utilisation < 1);
    BH_CHECK_DONE();
}

/* What the product's policy is for, on a run small enough for every build: more small
 * jobs than large ones, and as much asked for as there is. */
static void
ours_accepts_more_than_the_others_do(void **state)
{
    struct bh_mig_run run = small_run(BH_MIG_BULKHEAD);
    double ours = bh_mig_run_play(&run).acceptance;

    for (uint32_t policy = 0; policy < BH_MIG_BULKHEAD; policy++) {
        run = small_run((enum bh_mig_policy)policy);
        BH_CHECK(bh_mig_policy_names[policy], bh_mig_run_play(&run).acceptance < ours);
    }
    BH_CHECK_DONE();
}

static void
options_are_understood_or_refused(void **state)
{
    static const struct {
        const char *name, *words[4];
        int count;
        bh_rc rc;
    } cases[] = {
        { "none", { 0 }, 0, BH_OK },
        { "mix", { "--mix", "bimodal" }, 2, BH_OK },
        { "all", { "--mix", "all", "--policy", "all" }, 4, BH_OK },
        { "load", { "--load", "1.3" }, 2, BH_OK },
        { "seeds", { "--seeds", "21-40", "--json" }, 3, BH_OK },
        { "unknown mix", { "--mix", "sparse" }, 2, BH_INVALID },
        { "unknown policy", { "--policy=luck" }, 1, BH_INVALID },
        { "no load", { "--load", "0" }, 2, BH_RANGE },
        { "seeds backwards", { "--seeds", "3-2" }, 2, BH_RANGE },
        { "too many seeds", { "--seeds", "1-1001" }, 2, BH_RANGE },
        { "no GPUs", { "--gpus", "0" }, 2, BH_RANGE },
        { "bounds", { "--bounds", "--gpus", "400" }, 3, BH_OK },
        { "bounds of too many", { "--bounds", "--gpus", "401" }, 3, BH_INVALID },
        { "unknown option", { "--queue" }, 1, BH_INVALID },
        { "no value", { "--svg" }, 1, BH_INVALID },
        { "a word too many", { "uniform" }, 1, BH_INVALID },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *words[4];
        struct bh_mig_options options;
        struct bh_err err = { 0 };

        for (int k = 0; k < cases[i].count; k++)
            words[k] = cases[i].words[k];
        BH_CHECK_EQ(cases[i].name,
                    bh_mig_options_parse(cases[i].count, (char **)(uintptr_t)words, &options, &err),
                    cases[i].rc);
    }
    BH_CHECK_DONE();
}

static void
results_are_a_table_or_lines_of_json(void **state)
{
    struct bh_mig_options options = { .mixes = 1,
                                      .policies = 1u << BH_MIG_BULKHEAD | 1,
                                      .loads = { 0.5 },
                                      .load_count = 1,
                                      .seeds = { 1, 2 },
                                      .gpus = 2,
                                      .arrivals = 100,
                                      .bounds = true };
    struct bh_err err = { 0 };

    for (int json = 0; json <= 1; json++) {
        char text[4096] = "";
        FILE *out = fmemopen(text, sizeof(text) - 1, "w");
        uint32_t lines = 0;

        options.json = json;
        assert_int_equal(bh_mig_test(&options, out, &err), BH_OK);
        fclose(out);
        for (const char *at = text; (at = strchr(at, '\n')); at++)
            lines++;
        BH_CHECK_EQ("lines", lines, json ? 6 : 4); /* runs and bounds, or head and rows */
        BH_CHECK("kind", json ? text[0] == '{' : strstr(text, "mean") != NULL);
        BH_CHECK("bounds", strstr(text, "optimum") && strstr(text, "moving"));
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(placements_are_those_of_the_anchors),
    cmocka_unit_test(policies_go_where_their_names_say),
    cmocka_unit_test(no_policy_refuses_what_fits),
    cmocka_unit_test(a_run_depends_on_its_seed_alone),
    cmocka_unit_test(ours_accepts_more_than_the_others_do),
    cmocka_unit_test(options_are_understood_or_refused),
    cmocka_unit_test(results_are_a_table_or_lines_of_json),
};
BH_TEST_MAIN(tests)
