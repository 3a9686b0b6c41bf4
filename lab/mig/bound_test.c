#include "lab/mig/bound.h"

#include "base/attr.h"
#include "base/test.h"
#include "lab/mig/mig.h"

/* 723 ways to stand on an 80 GB GPU; 100 of them differ to the jobs to come. */
static void
layouts_differ_by_what_may_come(void **state)
{
    BH_CHECK_EQ("layouts", bh_mig_bound_layouts(BH_GPU_H100_80GB, &bh_mig_mixes[0]), 100);
    BH_CHECK_DONE();
}

/* Where there is nothing to choose, Erlang's formula says what is refused. */
static void
one_kind_is_erlangs(void **state)
{
    static const struct bh_mig_mix whole = { "whole", { 0, 0, 0, 0, 0, 1 } };
    static const struct {
        const char *name;
        uint32_t gpus;
        double load, accepted; /* 1 - E(gpus, load x gpus) */
    } cases[] = {
        { "one, half", 1, 0.5, 1 - 0.5 / 1.5 },
        { "one, full", 1, 1, 0.5 },
        { "two, full", 2, 1, 1 - 2.0 / 5 },
        { "three, full", 3, 1, 1 - 4.5 / 13 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        double best = bh_mig_optimum(BH_GPU_H100_80GB, &whole, cases[i].load, cases[i].gpus);
        double moving = bh_mig_moving(BH_GPU_H100_80GB, &whole, cases[i].load, cases[i].gpus);

        BH_CHECK(cases[i].name, best > cases[i].accepted - 0.0003);
        BH_CHECK(cases[i].name, best < cases[i].accepted + 0.0003);
        BH_CHECK(cases[i].name, moving > cases[i].accepted - 0.000001);
        BH_CHECK(cases[i].name, moving < cases[i].accepted + 0.000001);
    }
    BH_CHECK_DONE();
}

/* A large fleet neither overflows nor accepts less than a small one. */
static void
moving_holds_for_many(void **state)
{
    double hundred = bh_mig_moving(BH_GPU_H100_80GB, &bh_mig_mixes[1], 1, 100);
    double most = bh_mig_moving(BH_GPU_H100_80GB, &bh_mig_mixes[1], 1, BH_MIG_MOVING_GPUS_MAX);

    BH_CHECK("hundred", hundred > 0.92 && hundred < 0.94);
    BH_CHECK("four hundred", most > hundred && most < 0.98);
    BH_CHECK_DONE();
}

/* On two GPUs nothing is left to gain over Bulkhead's policy: it is within a point of the best that
 * can be in every cell, and no policy is above that. */
static void
no_policy_beats_the_optimum(void **state)
{
    for (uint32_t mix = 0; mix < BH_MIG_MIXES; mix++) {
        double best = bh_mig_optimum(BH_GPU_H100_80GB, &bh_mig_mixes[mix], 1, 2);

        for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++) {
            struct bh_mig_run run = { .model = BH_GPU_H100_80GB,
                                      .mix = &bh_mig_mixes[mix],
                                      .load = 1,
                                      .gpus = 2,
                                      .arrivals = 60000,
                                      .seed = 7,
                                      .policy = (enum bh_mig_policy)policy };
            double got = bh_mig_run_play(&run).acceptance;

            BH_CHECK(bh_mig_policy_names[policy], got < best + 0.004); /* it is a sample */
            if (policy == BH_MIG_BULKHEAD)
                BH_CHECK(bh_mig_mixes[mix].name, got > best - 0.01);
        }
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(layouts_differ_by_what_may_come),
    cmocka_unit_test(one_kind_is_erlangs),
    cmocka_unit_test(moving_holds_for_many),
    cmocka_unit_test(no_policy_beats_the_optimum),
};
BH_TEST_MAIN(tests)
