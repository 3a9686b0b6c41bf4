#include "sim/machine/partition.h"

#include <string.h>

const struct sim_profile *
sim_gi_profile(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    return sim_profile_at(gpu->model, gi->profile);
}

unsigned
sim_gi_count(const struct sim_gpu *gpu)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        count += gpu->gi[i].birth != 0;
    return count;
}

const struct sim_gi *
sim_gi_find(const struct sim_gpu *gpu, uint32_t id)
{
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        if (gpu->gi[i].birth != 0 && gpu->gi[i].id == id)
            return &gpu->gi[i];
    return NULL;
}

const struct sim_ci *
sim_ci_find(const struct sim_gi *gi, uint32_t id)
{
    for (unsigned i = 0; i < SIM_CIS_MAX; i++)
        if (gi->ci[i].birth != 0 && gi->ci[i].id == id)
            return &gi->ci[i];
    return NULL;
}

const struct sim_ci *
sim_ci_by_mig_index(const struct sim_gpu *gpu, uint32_t index, const struct sim_gi **ret_gi)
{
    for (unsigned i = 0; i < SIM_GIS_MAX * SIM_CIS_MAX; i++) {
        const struct sim_gi *gi = &gpu->gi[i / SIM_CIS_MAX];
        const struct sim_ci *ci = &gi->ci[i % SIM_CIS_MAX];

        if (gi->birth == 0 || ci->birth == 0 || ci->mig_index != index)
            continue;
        *ret_gi = gi;
        return ci;
    }
    return NULL;
}

static bool
partition_overlaps(uint32_t a, uint32_t a_size, uint32_t b, uint32_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

bool
sim_gi_fits(const struct sim_gpu *gpu, const struct sim_profile *profile, uint32_t start)
{
    uint32_t slices = profile->slices, same = 0;

    for (unsigned i = 0; i < SIM_GIS_MAX; i++) {
        const struct sim_gi *gi = &gpu->gi[i];

        if (gi->birth == 0)
            continue;
        const struct sim_profile *other = sim_gi_profile(gpu, gi);
        if (partition_overlaps(start, profile->units, gi->start, gi->size))
            return false;
        if (sim_profile_is_media(profile) && sim_profile_is_media(other))
            return false;
        slices += other->slices;
        same += other == profile;
    }
    return slices <= sim_model_at(gpu->model)->slices && same < profile->most;
}

unsigned
sim_gi_capacity(const struct sim_gpu *gpu, const struct sim_profile *profile)
{
    struct sim_gpu trial = *gpu;
    unsigned count = 0;
    uint32_t start;

    for (unsigned slot = 0; slot < SIM_GIS_MAX; slot++) {
        if (trial.gi[slot].birth != 0)
            continue;
        start = sim_gi_last_start(&trial, profile);
        if (start == SIM_NO_ID)
            break;
        trial.gi[slot] = (struct sim_gi){ .birth = 1, .start = start, .size = profile->units };
        trial.gi[slot].profile = (uint32_t)sim_profile_by_number(gpu->model, profile->number);
        count++;
    }
    return count;
}

uint32_t
sim_gi_last_start(const struct sim_gpu *gpu, const struct sim_profile *profile)
{
    for (uint32_t start = 32; start-- > 0;)
        if (sim_profile_starts_at(profile, start) && sim_gi_fits(gpu, profile, start))
            return start;
    return SIM_NO_ID;
}

static struct sim_gi *
partition_free_gi(struct sim_gpu *gpu)
{
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        if (gpu->gi[i].birth == 0)
            return &gpu->gi[i];
    return NULL;
}

static struct sim_gi *
partition_gi_born(struct sim_gpu *gpu, uint64_t birth)
{
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        if (birth != 0 && gpu->gi[i].birth == birth)
            return &gpu->gi[i];
    return NULL;
}

nvmlReturn_t
sim_gi_create(struct sim_state *state, struct sim_gpu *gpu, uint32_t profile, uint32_t start,
              uint64_t *ret_birth)
{
    const struct sim_profile *wanted = sim_profile_at(gpu->model, profile);
    struct sim_gi *gi = partition_free_gi(gpu);

    if (wanted == NULL || !sim_profile_starts_at(wanted, start))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gi == NULL || !sim_gi_fits(gpu, wanted, start))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    *gi = (struct sim_gi){ .birth = ++state->births,
                           .profile = profile,
                           .start = start,
                           .size = wanted->units,
                           .id = sim_gi_id(sim_model_at(gpu->model), start, wanted->units) };
    *ret_birth = gi->birth;
    return NVML_SUCCESS;
}

static bool
partition_has_ci(const struct sim_gi *gi)
{
    for (unsigned i = 0; i < SIM_CIS_MAX; i++)
        if (gi->ci[i].birth != 0)
            return true;
    return false;
}

nvmlReturn_t
sim_gi_destroy(struct sim_gpu *gpu, uint64_t birth)
{
    struct sim_gi *gi = partition_gi_born(gpu, birth);

    if (gi == NULL)
        return NVML_ERROR_NOT_FOUND;
    if (partition_has_ci(gi))
        return NVML_ERROR_IN_USE;
    memset(gi, 0, sizeof(*gi));
    return NVML_SUCCESS;
}

bool
sim_ci_fits(const struct sim_gi *gi, const struct sim_ci_profile *profile, uint32_t start)
{
    for (unsigned i = 0; i < SIM_CIS_MAX; i++) {
        const struct sim_ci *ci = &gi->ci[i];

        if (ci->birth != 0 && partition_overlaps(start, profile->slices, ci->start, ci->size))
            return false;
    }
    return true;
}

uint32_t
sim_ci_first_start(const struct sim_gi *gi, const struct sim_ci_profile *profile)
{
    for (uint32_t start = 0; start < SIM_CIS_MAX; start++)
        if ((profile->starts >> start & 1) != 0 && sim_ci_fits(gi, profile, start))
            return start;
    return SIM_NO_ID;
}

unsigned
sim_ci_capacity(const struct sim_gi *gi, const struct sim_ci_profile *profile)
{
    unsigned count = 0;

    for (uint32_t start = 0; start < SIM_CIS_MAX; start++)
        count += (profile->starts >> start & 1) != 0 && sim_ci_fits(gi, profile, start);
    return count;
}

static uint32_t
partition_free_ci_id(const struct sim_gi *gi)
{
    uint32_t id = 0;

    while (sim_ci_find(gi, id) != NULL)
        id++;
    return id;
}

static uint32_t
partition_free_mig_index(const struct sim_gpu *gpu)
{
    const struct sim_gi *unused;
    uint32_t index = 0;

    while (sim_ci_by_mig_index(gpu, index, &unused) != NULL)
        index++;
    return index;
}

nvmlReturn_t
sim_ci_create(struct sim_state *state, struct sim_gpu *gpu, const struct sim_ci_request *request,
              uint64_t *ret_birth)
{
    const struct sim_ci_profile *profile = request->profile;
    struct sim_gi *gi = partition_gi_born(gpu, request->gi);
    uint32_t id, start = request->start;

    if (gi == NULL)
        return NVML_ERROR_NOT_FOUND;
    if (start >= SIM_CIS_MAX || (profile->starts >> start & 1) == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    id = partition_free_ci_id(gi);
    if (id >= SIM_CIS_MAX || !sim_ci_fits(gi, profile, start))
        return NVML_ERROR_INSUFFICIENT_RESOURCES;

    struct sim_ci made = { .birth = ++state->births,
                           .id = id,
                           .profile = profile->number,
                           .start = start,
                           .size = profile->slices,
                           .mig_index = partition_free_mig_index(gpu) };
    made.uuid = sim_uuid_make(state->system.nonce ^ (uint64_t)gpu->index << 56, made.birth);
    for (unsigned i = 0; i < SIM_CIS_MAX; i++) {
        if (gi->ci[i].birth != 0)
            continue;
        gi->ci[i] = made;
        *ret_birth = made.birth;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
}

nvmlReturn_t
sim_ci_destroy(struct sim_gpu *gpu, uint64_t birth)
{
    for (unsigned i = 0; i < SIM_GIS_MAX * SIM_CIS_MAX; i++) {
        struct sim_ci *ci = &gpu->gi[i / SIM_CIS_MAX].ci[i % SIM_CIS_MAX];

        if (birth == 0 || ci->birth != birth)
            continue;
        memset(ci, 0, sizeof(*ci));
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

static void
partition_take_mode(struct sim_state *state, struct sim_gpu *gpu, uint32_t mode)
{
    if (gpu->mig_current != mode)
        gpu->birth = ++state->births;
    gpu->mig_current = mode;
    gpu->mig_pending = mode;
}

nvmlReturn_t
sim_mig_request(struct sim_state *state, struct sim_gpu *gpu, uint32_t mode, bool busy)
{
    bool immediate = sim_model_at(gpu->model)->arch >= NVML_DEVICE_ARCH_HOPPER;

    if (mode == gpu->mig_current) {
        gpu->mig_pending = mode;
        return NVML_SUCCESS;
    }
    if (busy || sim_gi_count(gpu) > 0) {
        gpu->mig_pending = immediate ? gpu->mig_current : mode;
        return NVML_ERROR_IN_USE;
    }
    if (!immediate && !gpu->unbind) {
        gpu->mig_pending = mode;
        return NVML_ERROR_RESET_REQUIRED;
    }
    partition_take_mode(state, gpu, mode);
    return NVML_SUCCESS;
}

void
sim_gpu_reset(struct sim_state *state, struct sim_gpu *gpu)
{
    bool forgets = sim_model_at(gpu->model)->arch >= NVML_DEVICE_ARCH_HOPPER;

    memset(gpu->gi, 0, sizeof(gpu->gi));
    partition_take_mode(state, gpu, forgets ? NVML_DEVICE_MIG_DISABLE : gpu->mig_pending);
    gpu->birth = ++state->births;
    gpu->lost = 0;
    gpu->compute_mode = NVML_COMPUTEMODE_DEFAULT;
    gpu->ecc.corrected[NVML_VOLATILE_ECC] = 0;
    gpu->ecc.uncorrected[NVML_VOLATILE_ECC] = 0;
    gpu->ecc.remap_pending = 0;
    gpu->ecc.recovery = 0;
    gpu->ecc.thermal_ms = 0;
}

/* splitmix64: spreads every bit of its input over its output. */
static uint64_t
partition_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct sim_uuid
sim_uuid_make(uint64_t a, uint64_t b)
{
    struct sim_uuid uuid;
    uint64_t half[2] = { partition_mix(partition_mix(a) ^ b), partition_mix(partition_mix(b + 1) ^ a) };

    memcpy(uuid.bytes, half, sizeof(half));
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x50); /* RFC 9562 version 5 */
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}
