#include "model/geometry.h"

#include "base/attr.h"
#include "base/test.h"

static const struct bh_profile *
geometry_test_h100(const char *name)
{
    const struct bh_profile *profile = bh_profile_find(BH_GPU_H100_80GB, name);

    assert_non_null(profile);
    return profile;
}

static void
models_are_found_by_both_names(void **state)
{
    BH_CHECK_EQ("site name", bh_model_find("H100-80GB"), BH_GPU_H100_80GB);
    BH_CHECK_EQ("product", bh_model_by_product("NVIDIA A30"), BH_GPU_A30_24GB);
    BH_CHECK_EQ("product as name", bh_model_find("NVIDIA H200"), BH_GPU_H200_141GB);
    BH_CHECK_EQ("unknown", bh_model_find("H100"), BH_GPU_MODEL_NONE);
    BH_CHECK("no facts about nothing", bh_model_facts(BH_GPU_MODEL_NONE) == NULL);
    BH_CHECK_EQ("units", bh_model_facts(BH_GPU_RTXPRO6000_96GB)->memory_units, 12);
    BH_CHECK_DONE();
}

/* Over all rows of the table. */
static void
every_profile_is_sound(void **state)
{
    uint32_t rows = 0;

    for (uint32_t model = 1; model < BH_GPU_MODELS; model++) {
        const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)model);
        uint32_t count;
        const struct bh_profile *profile = bh_profile_first((enum bh_gpu_model)model, &count);

        BH_CHECK(facts->name, count > 0 && count <= 16);
        for (; count > 0; count--, profile++, rows++) {
            uint32_t last = 31 - (uint32_t)__builtin_clz(profile->starts);

            BH_CHECK_EQ(profile->name, profile->model, model);
            BH_CHECK(profile->name, bh_profile_get(profile->id) == profile);
            BH_CHECK(profile->name, bh_profile_find((enum bh_gpu_model)model, profile->name) == profile);
            BH_CHECK(profile->name, last + profile->memory_units <= facts->memory_units);
            BH_CHECK_EQ(profile->name, profile->parts.compute * facts->compute_slices,
                        (uint64_t)BH_GPU_PARTS * profile->compute_slices);
            BH_CHECK_EQ(profile->name, profile->parts.memory * facts->memory_units,
                        (uint64_t)BH_GPU_PARTS * profile->memory_units);
        }
    }
    BH_CHECK("all rows seen", bh_profile_get((bh_profile_id){ rows + 1 }) != NULL);
    BH_CHECK("one past", bh_profile_get((bh_profile_id){ rows + 2 }) == NULL);
    BH_CHECK_DONE();
}

static void
an_empty_gpu_holds_as_many_as_the_table_says(void **state)
{
    static const struct bh_occupancy empty;

    for (uint32_t model = 1; model < BH_GPU_MODELS; model++) {
        uint32_t count;
        const struct bh_profile *profile = bh_profile_first((enum bh_gpu_model)model, &count);

        for (; count > 0; count--, profile++)
            BH_CHECK_EQ(profile->name, bh_occupancy_capacity(&empty, profile), profile->most);
    }
    BH_CHECK_DONE();
}

struct partition {
    const char *profile;
    uint32_t start;
};

/* Facts from gpu.md 1.5. */
static void
layouts_follow_the_rules_of_combination(void **state)
{
    static const struct {
        const char *name;
        struct partition partitions[8];
        struct partition next;
        bool fits;
    } cases[] = {
        { "4g and 3g are the largest pair", { { "4g.40gb", 0 } }, { "3g.40gb", 4 }, true },
        { "3g stands at 0 or 4 only", { { NULL, 0 } }, { "3g.40gb", 2 }, false },
        { "intervals do not meet", { { "2g.20gb", 2 } }, { "1g.10gb", 3 }, false },
        { "beside it is free", { { "2g.20gb", 2 } }, { "1g.10gb", 4 }, true },
        { "two 3g leave a slice and no memory",
          { { "3g.40gb", 0 }, { "3g.40gb", 4 } },
          { "1g.10gb", 6 },
          false },
        { "7 slices are spent",
          { { "4g.40gb", 0 }, { "2g.20gb", 4 }, { "1g.10gb", 6 } },
          { "1g.20gb", 6 },
          false },
        { "one with media engines", { { "1g.10gb+me", 0 } }, { "1g.10gb+me", 1 }, false },
        { "the last unit is for none of the small", { { NULL, 0 } }, { "1g.10gb", 7 }, false },
        { "a fifth 1g.20gb",
          { { "1g.20gb", 0 }, { "1g.20gb", 2 }, { "1g.20gb", 4 }, { "1g.20gb", 6 } },
          { "1g.10gb", 0 },
          false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_occupancy occupancy = { 0 };

        for (const struct partition *partition = cases[i].partitions; partition->profile; partition++)
            bh_occupancy_add(&occupancy, geometry_test_h100(partition->profile), partition->start);
        BH_CHECK_EQ(
            cases[i].name,
            bh_occupancy_fits(&occupancy, geometry_test_h100(cases[i].next.profile), cases[i].next.start),
            cases[i].fits);
    }
    BH_CHECK_DONE();
}

static void
removing_undoes_adding(void **state)
{
    struct bh_occupancy occupancy = { 0 };
    static const struct bh_occupancy empty;

    bh_occupancy_add(&occupancy, geometry_test_h100("3g.40gb"), 4);
    bh_occupancy_add(&occupancy, geometry_test_h100("1g.10gb+me"), 0);
    bh_occupancy_remove(&occupancy, geometry_test_h100("3g.40gb"), 4);
    bh_occupancy_remove(&occupancy, geometry_test_h100("1g.10gb+me"), 0);
    assert_memory_equal(&occupancy, &empty, sizeof(empty));
}

static uint64_t
broken_by(const char *profile, uint32_t start)
{
    struct bh_occupancy occupancy = { 0 };

    bh_occupancy_add(&occupancy, geometry_test_h100(profile), start);
    return bh_occupancy_fragmentation(&occupancy, BH_GPU_H100_80GB);
}

static void
fragmentation_prefers_the_edge(void **state)
{
    static const struct bh_occupancy empty;

    BH_CHECK_EQ("empty", bh_occupancy_fragmentation(&empty, BH_GPU_H100_80GB), 0);
    BH_CHECK("a small piece is best at 6", broken_by("1g.10gb", 6) < broken_by("1g.10gb", 0));
    BH_CHECK("and worst in the middle", broken_by("1g.10gb", 2) > broken_by("1g.10gb", 6));
    BH_CHECK("3g is best at 4, where 4g cannot stand", broken_by("3g.40gb", 4) < broken_by("3g.40gb", 0));
    BH_CHECK_DONE();
}

static void
a_gpu_taken_whole_takes_no_more(void **state)
{
    struct bh_occupancy whole = { .whole = true };

    BH_CHECK("no fit", !bh_occupancy_fits(&whole, geometry_test_h100("1g.10gb"), 0));
    BH_CHECK_EQ("no room", bh_occupancy_capacity(&whole, geometry_test_h100("1g.10gb")), 0);
    BH_CHECK_EQ("parts", bh_profile_parts(BH_PROFILE_WHOLE).compute, BH_GPU_PARTS);
    BH_CHECK_EQ("nothing", bh_profile_parts(BH_PROFILE_NONE).memory, 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(models_are_found_by_both_names),
    cmocka_unit_test(every_profile_is_sound),
    cmocka_unit_test(an_empty_gpu_holds_as_many_as_the_table_says),
    cmocka_unit_test(layouts_follow_the_rules_of_combination),
    cmocka_unit_test(removing_undoes_adding),
    cmocka_unit_test(fragmentation_prefers_the_edge),
    cmocka_unit_test(a_gpu_taken_whole_takes_no_more),
};
BH_TEST_MAIN(tests)
