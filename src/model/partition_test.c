#include "model/partition.h"

#include <string.h>

#include "base/attr.h"
#include "base/test.h"

static const enum bh_gpu_model H100 = BH_GPU_H100_80GB;
enum kind { WHOLE, SMALL, SHARE, KINDS };

static uint32_t
profile_of(enum kind kind)
{
    static const struct bh_share quarter = { 1050, 1000, BH_SHARE_HARD };

    if (kind == SMALL)
        return bh_profile_find(H100, "1g.10gb")->id.v;
    return kind == SHARE ? bh_share_profile(&quarter).v : BH_PROFILE_WHOLE.v;
}

/* A GPU is in one mode at a time: beside a partition only its own kind fits, and beside the whole
 * nothing. */
static void
kinds_never_stand_together(void **state)
{
    static const struct {
        const char *name;
        enum kind stands, wanted;
        bool fits;
    } cases[] = {
        { "the whole twice", WHOLE, WHOLE, false },
        { "an instance beside the whole", WHOLE, SMALL, false },
        { "a share beside the whole", WHOLE, SHARE, false },
        { "the whole beside an instance", SMALL, WHOLE, false },
        { "two instances", SMALL, SMALL, true },
        { "a share beside an instance", SMALL, SHARE, false },
        { "the whole beside a share", SHARE, WHOLE, false },
        { "an instance beside a share", SHARE, SMALL, false },
        { "two shares", SHARE, SHARE, true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_occupancy stands = { .share_limit = BH_GPU_PARTS }, blocked = stands;
        uint32_t there = profile_of(cases[i].stands), wanted = profile_of(cases[i].wanted);

        bh_partition_add(&stands, H100, there, 0);
        bh_partition_block(&blocked, H100, there, 0);
        BH_CHECK_EQ(cases[i].name, bh_partition_fits(&stands, H100, wanted, 1), cases[i].fits);
        BH_CHECK_EQ(cases[i].name, bh_partition_fits(&blocked, H100, wanted, 1), cases[i].fits);
        BH_CHECK_EQ(cases[i].name, bh_partition_capacity(&stands, H100, wanted) > 0, cases[i].fits);
        BH_CHECK(cases[i].name, !bh_occupancy_is_empty(&stands));
        BH_CHECK(cases[i].name, !bh_partition_fits(&stands, H100, wanted, 0));
        bh_partition_remove(&stands, H100, there, 0);
        BH_CHECK(cases[i].name, bh_occupancy_is_empty(&stands));
        BH_CHECK(cases[i].name, bh_partition_fits(&stands, H100, wanted, 0));
    }
    BH_CHECK_DONE();
}

/* Where places of two kinds are marked as taken, nothing fits. */
static void
what_is_marked_twice_takes_nothing(void **state)
{
    for (int one = 0; one < KINDS; one++)
        for (int two = 0; two < KINDS; two++)
            for (int wanted = 0; wanted < KINDS && one != two; wanted++) {
                struct bh_occupancy occupancy = { .share_limit = BH_GPU_PARTS };

                bh_partition_block(&occupancy, H100, profile_of((enum kind)one), 0);
                bh_partition_block(&occupancy, H100, profile_of((enum kind)two), 0);
                BH_CHECK_EQ("taken", bh_partition_fits(&occupancy, H100, profile_of((enum kind)wanted), 3),
                            false);
            }
    BH_CHECK_DONE();
}

static void
places_overlap_by_units_and_by_slots(void **state)
{
    uint32_t whole = profile_of(WHOLE), small = profile_of(SMALL), share = profile_of(SHARE);

    BH_CHECK("instances apart", !bh_partition_overlaps(small, 0, small, 1));
    BH_CHECK("instances on each other", bh_partition_overlaps(small, 1, small, 1));
    BH_CHECK("slots apart", !bh_partition_overlaps(share, 0, share, 1));
    BH_CHECK("one slot", bh_partition_overlaps(share, 2, share, 2));
    BH_CHECK("a share and an instance", bh_partition_overlaps(share, 0, small, 3));
    BH_CHECK("the whole and a share", bh_partition_overlaps(whole, 0, share, 3));
    BH_CHECK_DONE();
}

static void
partitions_have_names_and_models(void **state)
{
    static const struct bh_share quarter = { 1050, 950, BH_SHARE_LATENCY };
    char name[BH_PARTITION_NAME_MAX];

    bh_partition_name(H100, bh_share_profile(&quarter).v, name);
    BH_CHECK("a share", strcmp(name, "1/4:18446Mi+lat") == 0);
    bh_partition_name(H100, profile_of(SMALL), name);
    BH_CHECK("an instance", strcmp(name, "1g.10gb") == 0);
    bh_partition_name(H100, BH_PROFILE_WHOLE.v, name);
    BH_CHECK("the whole", strcmp(name, "whole") == 0);
    BH_CHECK("its own model", bh_partition_exists(H100, profile_of(SMALL)));
    BH_CHECK("another model", !bh_partition_exists(BH_GPU_A30_24GB, profile_of(SMALL)));
    BH_CHECK("any model with facts", bh_partition_exists(BH_GPU_A30_24GB, profile_of(SHARE)));
    BH_CHECK("no number", !bh_partition_exists(H100, 0) && !bh_partition_exists(H100, 1u << 30));
    BH_CHECK_EQ("slots", bh_partition_starts(profile_of(SHARE)), UINT32_MAX);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(kinds_never_stand_together),
    cmocka_unit_test(what_is_marked_twice_takes_nothing),
    cmocka_unit_test(places_overlap_by_units_and_by_slots),
    cmocka_unit_test(partitions_have_names_and_models),
};
BH_TEST_MAIN(tests)
