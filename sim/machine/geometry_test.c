#include "base/test.h"

#include "sim/machine/geometry.h"
#include "sim/machine/partition.h"

static unsigned
fill(struct sim_state *state, struct sim_gpu *gpu, uint32_t index, nvmlReturn_t *ret_last)
{
    const struct sim_profile *profile = sim_profile_at(gpu->model, index);
    unsigned made = 0;
    uint64_t birth;

    for (;;) {
        uint32_t start = sim_gi_last_start(gpu, profile);

        *ret_last = start == SIM_NO_ID ? NVML_ERROR_INSUFFICIENT_RESOURCES
                                       : sim_gi_create(state, gpu, index, start, &birth);
        if (*ret_last != NVML_SUCCESS)
            return made;
        made++;
    }
}

/* Every profile of every board fits as often as its row says, never more, and
 * never on top of itself. */
static void
test_fill_up(void **unused)
{
    static struct sim_state state;
    const struct sim_profile *profile;
    nvmlReturn_t last;
    uint64_t birth;

    for (uint32_t model = 0; sim_model_at(model) != NULL; model++)
        for (uint32_t i = 0; (profile = sim_profile_at(model, i)) != NULL; i++) {
            struct sim_gpu gpu = { .model = model, .mig_current = 1 };

            BH_CHECK_EQ(profile->name, sim_gi_capacity(&gpu, profile), profile->most);
            BH_CHECK_EQ(profile->name, fill(&state, &gpu, i, &last), profile->most);
            BH_CHECK_EQ(profile->name, last, NVML_ERROR_INSUFFICIENT_RESOURCES);
            BH_CHECK_EQ(profile->name, sim_gi_capacity(&gpu, profile), 0);
            for (uint32_t start = 0; start < 32; start++)
                BH_CHECK_EQ(profile->name, sim_gi_create(&state, &gpu, i, start, &birth),
                            sim_profile_starts_at(profile, start) ? NVML_ERROR_INSUFFICIENT_RESOURCES
                                                                  : NVML_ERROR_INVALID_ARGUMENT);
        }
    BH_CHECK_DONE();
}

static bool
is_sound(const struct sim_gpu *gpu)
{
    uint32_t units = 0, slices = 0, ids = 0, media = 0;

    for (unsigned i = 0; i < SIM_GIS_MAX; i++) {
        const struct sim_gi *gi = &gpu->gi[i];

        if (gi->birth == 0)
            continue;
        uint32_t span = ((1u << gi->size) - 1) << gi->start;
        if ((units & span) != 0 || (ids >> gi->id & 1) != 0 || gi->id > 14)
            return false;
        units |= span;
        ids |= 1u << gi->id;
        slices += sim_gi_profile(gpu, gi)->slices;
        media += sim_profile_is_media(sim_gi_profile(gpu, gi));
    }
    return slices <= sim_model_at(gpu->model)->slices && media <= 1;
}

/* Whatever is created and destroyed in any order, nothing overlaps, no id is
 * given twice, the slices add up. */
static void
test_random_mixes(void **unused)
{
    static struct sim_state state;
    uint32_t random = 12345;
    uint64_t birth;

    for (uint32_t model = 0; sim_model_at(model) != NULL; model++) {
        struct sim_gpu gpu = { .model = model, .mig_current = 1 };

        for (unsigned step = 0; step < 4000; step++) {
            random = random * 1664525u + 1013904223u;
            if ((random >> 8) % 3 == 0)
                sim_gi_destroy(&gpu, gpu.gi[(random >> 16) % SIM_GIS_MAX].birth);
            else
                sim_gi_create(&state, &gpu, (random >> 16) % 12, (random >> 24) % 12, &birth);
            if (!is_sound(&gpu)) {
                BH_CHECK_EQ(sim_model_at(model)->name, step, -1);
                break;
            }
        }
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *model;
    uint32_t start, size, id;
} ids[] = {
    { "full board", "H100-80GB", 0, 8, 0 },     { "lower half", "H100-80GB", 0, 4, 1 },
    { "upper half", "H100-80GB", 4, 4, 2 },     { "first quarter", "H100-80GB", 0, 2, 3 },
    { "last quarter", "H100-80GB", 6, 2, 6 },   { "first eighth", "H100-80GB", 0, 1, 7 },
    { "last 1g", "H100-80GB", 6, 1, 13 },       { "A30 full", "A30-24GB", 0, 4, 0 },
    { "A30 half", "A30-24GB", 2, 2, 2 },        { "A30 quarter", "A30-24GB", 3, 1, 6 },
    { "RTX half", "RTXPRO6000-96GB", 6, 6, 2 }, { "RTX quarter", "RTXPRO6000-96GB", 9, 3, 6 },
};

static void
test_instance_ids(void **unused)
{
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        int model = sim_model_find(ids[i].model, strlen(ids[i].model));

        assert_true(model >= 0);
        BH_CHECK_EQ(ids[i].name, sim_gi_id(sim_model_at((uint32_t)model), ids[i].start, ids[i].size),
                    ids[i].id);
    }
    BH_CHECK_EQ("gi access of gpu 1, gi 9", sim_cap_minor(1, 9, SIM_NO_ID), 219);
    BH_CHECK_EQ("its ci 0", sim_cap_minor(1, 9, 0), 220);
    BH_CHECK_EQ("last of all", sim_cap_minor(31, 14, 7), 4322);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *model;
    bool busy, instances, unbind;
    uint32_t current, pending;
    nvmlReturn_t activation;
} modes[] = {
    { "hopper idle", "H100-80GB", false, false, true, 1, 1, NVML_SUCCESS },
    { "hopper without unbind", "H100-80GB", false, false, false, 1, 1, NVML_SUCCESS },
    { "hopper busy", "H100-80GB", true, false, true, 0, 0, NVML_ERROR_IN_USE },
    { "blackwell idle", "B200-180GB", false, false, false, 1, 1, NVML_SUCCESS },
    { "ampere idle", "A100-80GB", false, false, true, 1, 1, NVML_SUCCESS },
    { "ampere needs reset", "A100-80GB", false, false, false, 0, 1, NVML_ERROR_RESET_REQUIRED },
    { "ampere busy", "A30-24GB", true, false, true, 0, 1, NVML_ERROR_IN_USE },
};

static void
test_mode_switch(void **unused)
{
    static struct sim_state state;

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        uint32_t model = (uint32_t)sim_model_find(modes[i].model, strlen(modes[i].model));
        struct sim_gpu gpu = { .model = model, .unbind = modes[i].unbind };

        BH_CHECK_EQ(modes[i].name, sim_mig_request(&state, &gpu, 1, modes[i].busy), modes[i].activation);
        BH_CHECK_EQ(modes[i].name, gpu.mig_current, modes[i].current);
        BH_CHECK_EQ(modes[i].name, gpu.mig_pending, modes[i].pending);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *model;
    uint32_t current, pending, after;
} resets[] = {
    { "ampere takes its pending mode", "A100-40GB", 0, 1, 1 },
    { "ampere keeps its mode", "A100-40GB", 1, 1, 1 },
    { "hopper forgets its mode", "H200-141GB", 1, 1, 0 },
    { "blackwell forgets its mode", "RTXPRO6000-96GB", 1, 1, 0 },
};

static void
test_reset(void **unused)
{
    static struct sim_state state;

    for (size_t i = 0; i < sizeof(resets) / sizeof(resets[0]); i++) {
        struct sim_gpu gpu = { .model = (uint32_t)sim_model_find(resets[i].model, strlen(resets[i].model)),
                               .mig_current = resets[i].current,
                               .mig_pending = resets[i].pending,
                               .lost = 1 };
        uint64_t birth;

        sim_gi_create(&state, &gpu, 0, 0, &birth);
        sim_gpu_reset(&state, &gpu);
        BH_CHECK_EQ(resets[i].name, gpu.mig_current, resets[i].after);
        BH_CHECK_EQ(resets[i].name, sim_gi_count(&gpu), 0);
        BH_CHECK_EQ(resets[i].name, gpu.lost, 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_fill_up),      cmocka_unit_test(test_random_mixes),
    cmocka_unit_test(test_instance_ids), cmocka_unit_test(test_mode_switch),
    cmocka_unit_test(test_reset),
};

BH_TEST_MAIN(tests)
