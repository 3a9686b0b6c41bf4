#include "sim/machine/geometry.h"

#include <string.h>

#include "bulkhead/nvml_abi.h"
#include "sim/machine/sim.h"

#define MIG_ARCH_AMPERE NVML_DEVICE_ARCH_AMPERE
#define MIG_ARCH_HOPPER NVML_DEVICE_ARCH_HOPPER
#define MIG_ARCH_BLACKWELL NVML_DEVICE_ARCH_BLACKWELL

/* Position of each model in `models`. */
enum {
#define MIG_MODEL(id, ...) MODEL_##id,
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
    MODEL_COUNT
};

static const struct sim_model models[] = {
#define MIG_MODEL(id, name, product, pci, arch, major, minor, sms, units, slices, mib, watts, driver)        \
    { name, product, pci, arch, major, minor, sms, units, slices, mib, watts, driver },
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

static const struct sim_profile profiles[] = {
#define MIG_MODEL(...)
#define MIG_PROFILE(model, name, number, id, slices, units, starts, most, mib, sms, dec, enc, ce, jpg, ofa,  \
                    assumed)                                                                                 \
    { MODEL_##model, name, number, id, slices, units, starts, most, mib, sms, dec, enc, ce, jpg, ofa },
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Which compute instances fit into a GPU instance, by its slices.  From
 * `nvidia-smi mig -lcip` transcripts; the row of 7 follows vendor mocks. */
static const struct {
    uint32_t slices;
    struct sim_ci_profile profile[5];
} ci_table[] = {
    { 1, { { 0, 1, 1, 0x01 } } },
    { 2, { { 0, 1, 2, 0x03 }, { 1, 2, 1, 0x01 } } },
    { 3, { { 0, 1, 3, 0x07 }, { 1, 2, 1, 0x01 }, { 2, 3, 1, 0x01 } } },
    { 4, { { 0, 1, 4, 0x0f }, { 1, 2, 2, 0x05 }, { 3, 4, 1, 0x01 } } },
    { 7, { { 0, 1, 7, 0x7f }, { 1, 2, 3, 0x15 }, { 2, 3, 2, 0x11 }, { 3, 4, 1, 0x01 }, { 4, 7, 1, 0x01 } } },
};

const struct sim_model *
sim_model_at(uint32_t index)
{
    return index < COUNT(models) ? &models[index] : NULL;
}

int
sim_model_find(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(models); i++)
        if (strlen(models[i].name) == length && memcmp(models[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

const struct sim_profile *
sim_profile_at(uint32_t model, uint32_t index)
{
    for (size_t i = 0; i < COUNT(profiles); i++)
        if (profiles[i].model == model && index-- == 0)
            return &profiles[i];
    return NULL;
}

int
sim_profile_by_number(uint32_t model, uint32_t number)
{
    const struct sim_profile *profile;

    for (uint32_t i = 0; (profile = sim_profile_at(model, i)) != NULL; i++)
        if (profile->number == number)
            return (int)i;
    return -1;
}

int
sim_profile_by_id(uint32_t model, uint32_t id)
{
    const struct sim_profile *profile;

    for (uint32_t i = 0; (profile = sim_profile_at(model, i)) != NULL; i++)
        if (profile->id == id)
            return (int)i;
    return -1;
}

bool
sim_profile_starts_at(const struct sim_profile *profile, uint32_t start)
{
    return start < 32 && (profile->starts >> start & 1) != 0;
}

bool
sim_profile_is_media(const struct sim_profile *profile)
{
    return strstr(profile->name, "+me") != NULL;
}

bool
sim_profile_is_graphics(const struct sim_profile *profile)
{
    return strstr(profile->name, "+gfx") != NULL;
}

uint32_t
sim_gi_id(const struct sim_model *model, uint32_t start, uint32_t size)
{
    /* A full board is 0, halves 1 and 2, quarters 3 to 6, eighths from 7. */
    return model->units / size - 1 + start / size;
}

const struct sim_ci_profile *
sim_ci_profile_find(uint32_t slices, uint32_t number)
{
    for (size_t i = 0; i < COUNT(ci_table); i++) {
        if (ci_table[i].slices != slices)
            continue;
        for (size_t j = 0; j < COUNT(ci_table[i].profile); j++)
            if (ci_table[i].profile[j].most > 0 && ci_table[i].profile[j].number == number)
                return &ci_table[i].profile[j];
    }
    return NULL;
}

uint32_t
sim_ci_sms(const struct sim_profile *gi, uint32_t slices)
{
    if (slices == gi->slices)
        return gi->sms;
    return sim_profile_at(gi->model, (uint32_t)sim_profile_by_number(gi->model, 0))->sms * slices;
}

uint32_t
sim_cap_minor(uint32_t gpu_minor, uint32_t gi, uint32_t ci)
{
    uint32_t minor = 3 + 135 * gpu_minor + 9 * gi;

    return ci == SIM_NO_ID ? minor : minor + 1 + ci;
}
