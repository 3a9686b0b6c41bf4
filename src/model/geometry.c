#include "model/geometry.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "model/share.h"

enum { FIRST_PROFILE = 2 }; /* after NONE and WHOLE */

/* Each model's divisors and rows as constants, for the tables below. */
enum {
#define MIG_MODEL(id, name, product, pci, arch, major, minor, sms, units, slices, ...)                       \
    UNITS_##id = units, SLICES_##id = slices,
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

static const struct bh_model_facts models[BH_GPU_MODELS] = {
#define MIG_MODEL(id, short_name, full_name, pci, family, major, minor, sms, units, slices, mib, ...)        \
    [BH_GPU_##id] = { .name = short_name,                                                                    \
                      .product = full_name,                                                                  \
                      .pci_device = pci,                                                                     \
                      .arch = family,                                                                        \
                      .sm_count = sms,                                                                       \
                      .memory_units = units,                                                                 \
                      .compute_slices = slices,                                                              \
                      .memory_mib = mib },
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

/* Numbers of the rows, in table order. */
enum {
    ROW_BASE = FIRST_PROFILE - 1,
#define MIG_MODEL(...)
#define MIG_PROFILE(owner, text, number, ...) ROW_##owner##_##number,
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
    ROWS_END
};

/* NVML's numbers distinguish the plain profiles (0 to 6, and 9 with double memory) from
 * those with or without media engines and graphics.  The optical flow engine is
 * the one of which a board has only one to give: it stands for "the media". */
static const struct bh_profile profiles[] = {
#define MIG_MODEL(...)
#define MIG_PROFILE(owner, text, number, driver, slices, units, mask, count, mib, sms, dec, enc, ce, jpg,    \
                    ofa, unsure)                                                                             \
    { .id = { ROW_##owner##_##number },                                                                      \
      .model = BH_GPU_##owner,                                                                               \
      .name = text,                                                                                          \
      .compute_slices = slices,                                                                              \
      .memory_units = units,                                                                                 \
      .starts = mask,                                                                                        \
      .most = count,                                                                                         \
      .memory_mib = mib,                                                                                     \
      .sm_count = sms,                                                                                       \
      .parts = { BH_GPU_PARTS / SLICES_##owner * (slices), BH_GPU_PARTS / UNITS_##owner * (units) },         \
      .media = (ofa) > 0,                                                                                    \
      .plain = (number) < 7 || (number) == 9,                                                                \
      .assumed = unsure },
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

const struct bh_model_facts *
bh_model_facts(enum bh_gpu_model model)
{
    if (model == BH_GPU_MODEL_NONE || (uint32_t)model >= BH_GPU_MODELS)
        return NULL;
    return &models[model];
}

enum bh_gpu_model
bh_model_find(const char *name)
{
    enum bh_gpu_model model = bh_model_by_product(name);

    for (uint32_t i = 1; model == BH_GPU_MODEL_NONE && i < BH_GPU_MODELS; i++)
        if (strcmp(models[i].name, name) == 0)
            model = (enum bh_gpu_model)i;
    return model;
}

enum bh_gpu_model
bh_model_by_product(const char *product)
{
    for (uint32_t i = 1; i < BH_GPU_MODELS; i++)
        if (strcmp(models[i].product, product) == 0)
            return (enum bh_gpu_model)i;
    return BH_GPU_MODEL_NONE;
}

const struct bh_profile *
bh_profile_get(bh_profile_id id)
{
    if (id.v < FIRST_PROFILE || id.v >= ROWS_END)
        return NULL;
    return &profiles[id.v - FIRST_PROFILE];
}

const struct bh_profile *
bh_profile_find(enum bh_gpu_model model, const char *name)
{
    for (uint32_t i = 0; i < BH_COUNT(profiles); i++)
        if (profiles[i].model == model && strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return NULL;
}

/* Where each model's rows begin, and the end of the last. */
static const uint16_t first_rows[BH_GPU_MODELS + 1] = {
#define MIG_MODEL(id, ...) [BH_GPU_##id] = ROW_##id##_0 - FIRST_PROFILE,
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
    [BH_GPU_MODELS] = ROWS_END - FIRST_PROFILE,
};

const struct bh_profile *
bh_profile_first(enum bh_gpu_model model, uint32_t *ret_count)
{
    if (model == BH_GPU_MODEL_NONE || (uint32_t)model >= BH_GPU_MODELS) {
        *ret_count = 0;
        return NULL;
    }
    *ret_count = (uint32_t)first_rows[model + 1] - first_rows[model];
    return &profiles[first_rows[model]];
}

struct bh_parts
bh_profile_parts(bh_profile_id id)
{
    const struct bh_profile *profile = bh_profile_get(id);
    struct bh_share share;

    if (id.v == BH_PROFILE_WHOLE.v)
        return (struct bh_parts){ BH_GPU_PARTS, BH_GPU_PARTS };
    if (bh_share_get(id, &share))
        return (struct bh_parts){ share.compute, share.memory };
    return profile ? profile->parts : (struct bh_parts){ 0, 0 };
}

/* ---- what stands on one GPU ---- */

static uint32_t
geometry_column(const struct bh_profile *profile)
{
    uint32_t at = profile->id.v - FIRST_PROFILE - first_rows[profile->model];

    BH_ASSERT(at < BH_COUNT(((struct bh_occupancy *)0)->counts));
    return at;
}

static uint32_t
geometry_interval(const struct bh_profile *profile, uint32_t start)
{
    return ((1u << profile->memory_units) - 1) << start;
}

bool
bh_occupancy_fits(const struct bh_occupancy *occupancy, const struct bh_profile *profile, uint32_t start)
{
    if (occupancy->whole || start >= 32 || !(profile->starts >> start & 1))
        return false;
    if (occupancy->units & geometry_interval(profile, start))
        return false;
    if (occupancy->slices + profile->compute_slices > models[profile->model].compute_slices)
        return false;
    if (occupancy->counts[geometry_column(profile)] >= profile->most)
        return false;
    return !(profile->media && occupancy->media);
}

void
bh_occupancy_add(struct bh_occupancy *occupancy, const struct bh_profile *profile, uint32_t start)
{
    BH_ASSERT(bh_occupancy_fits(occupancy, profile, start));
    occupancy->units |= geometry_interval(profile, start);
    occupancy->slices += profile->compute_slices;
    occupancy->counts[geometry_column(profile)]++;
    if (profile->media)
        occupancy->media = true;
}

void
bh_occupancy_remove(struct bh_occupancy *occupancy, const struct bh_profile *profile, uint32_t start)
{
    uint32_t taken = geometry_interval(profile, start);

    BH_ASSERT((occupancy->units & taken) == taken);
    BH_ASSERT(occupancy->slices >= profile->compute_slices);
    BH_ASSERT(occupancy->counts[geometry_column(profile)] > 0);
    occupancy->units &= ~taken;
    occupancy->slices -= profile->compute_slices;
    occupancy->counts[geometry_column(profile)]--;
    if (profile->media)
        occupancy->media = false;
}

static uint32_t
geometry_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t
bh_occupancy_capacity(const struct bh_occupancy *occupancy, const struct bh_profile *profile)
{
    uint32_t taken = occupancy->units, found = 0;
    uint32_t by_slices, by_count, most;

    if (occupancy->whole || (profile->media && occupancy->media))
        return 0;
    by_slices = (models[profile->model].compute_slices - occupancy->slices) / profile->compute_slices;
    by_count = profile->most - geometry_least(profile->most, occupancy->counts[geometry_column(profile)]);
    most = geometry_least(by_slices, profile->media ? geometry_least(by_count, 1) : by_count);
    for (uint32_t starts = profile->starts; starts && found < most; starts &= starts - 1) {
        uint32_t span = geometry_interval(profile, (uint32_t)__builtin_ctz(starts));

        if (taken & span)
            continue;
        taken |= span;
        found++;
    }
    return found;
}

bool
bh_occupancy_is_full(const struct bh_occupancy *occupancy, enum bh_gpu_model model)
{
    const struct bh_model_facts *facts = bh_model_facts(model);

    if (occupancy->whole || !facts)
        return occupancy->whole;
    return occupancy->slices >= facts->compute_slices || occupancy->units == (1u << facts->memory_units) - 1;
}

uint64_t
bh_occupancy_fragmentation(const struct bh_occupancy *occupancy, enum bh_gpu_model model)
{
    static const struct bh_occupancy empty;
    uint32_t count, free_units, units;
    const struct bh_profile *profile = bh_profile_first(model, &count);
    uint64_t lost = 0;

    if (!profile || occupancy->whole)
        return 0;
    units = models[model].memory_units;
    free_units = units - (uint32_t)__builtin_popcount(occupancy->units);
    for (; count > 0; count--, profile++) {
        uint32_t usable, at_best;

        if (!profile->plain)
            continue;
        usable = bh_occupancy_capacity(occupancy, profile) * profile->memory_units;
        at_best = bh_occupancy_capacity(&empty, profile) * profile->memory_units;
        at_best = geometry_least(at_best, free_units);
        if (at_best > usable)
            lost += (uint64_t)(at_best - usable) * profile->memory_units;
    }
    return lost * (BH_GPU_PARTS / units);
}
