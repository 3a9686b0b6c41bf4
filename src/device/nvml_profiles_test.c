#include "device/nvml_internal.h"

#include "base/test.h"

enum model {
#define MIG_MODEL(id, ...) MODEL_##id,
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
    MODELS
};

static const uint32_t model_mib[MODELS] = {
#define MIG_MODEL(id, name, product, pci, arch, major, minor, sms, units, slices, mib, ...)                  \
    [MODEL_##id] = mib,
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

static const struct {
    enum model model;
    const char *name;
    uint32_t number, slices, memory_mib;
} profiles[] = {
#define MIG_MODEL(...)
#define MIG_PROFILE(id, name, number, driver_id, slices, units, starts, most, mib, ...)                      \
    { MODEL_##id, name, number, slices, mib },
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

/* The rule gives every profile of every model that we know its published name. */
static void
test_names(void **state)
{
    for (size_t i = 0; i < BH_COUNT(profiles); i++) {
        nvmlGpuInstanceProfileInfo_t profile = { .sliceCount = profiles[i].slices,
                                                 .memorySizeMB = profiles[i].memory_mib };
        char name[24];

        bh_nvml_profile_name(profiles[i].number, &profile, (uint64_t)model_mib[profiles[i].model] << 20,
                             name);
        BH_CHECK_STR(profiles[i].name, name, profiles[i].name);
    }
    BH_CHECK_DONE();
}

static void
test_odd(void **state)
{
    nvmlGpuInstanceProfileInfo_t profile = { .sliceCount = 1, .memorySizeMB = 1000 };
    char name[24];

    bh_nvml_profile_name(0, &profile, 0, name);
    BH_CHECK_STR("no memory told", name, "1g.0gb");
    bh_nvml_profile_name(UINT32_MAX, &profile, 8ULL << 30, name);
    BH_CHECK_STR("a profile of the future", name, "1g.1gb");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_odd),
};

BH_TEST_MAIN(tests)
