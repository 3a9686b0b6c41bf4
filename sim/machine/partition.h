/* What may exist on one simulated GPU: the rules of MIG, as changes of a
 * struct sim_gpu.
 *
 * Pure: no files, no clock.  The caller changes a copy of the state and
 * commits it only on success, so a refused call leaves nothing behind. */
#ifndef BH_SIM_MACHINE_PARTITION_H
#define BH_SIM_MACHINE_PARTITION_H

#include "bulkhead/nvml_abi.h"
#include "sim/machine/geometry.h"
#include "sim/machine/sim.h"

/* Compute slices and profiles in use on `gpu`, with the profile that
 * `profile_index` names. */
unsigned sim_gi_count(const struct sim_gpu *gpu);
const struct sim_profile *sim_gi_profile(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* The instance with this id, or NULL. */
const struct sim_gi *sim_gi_find(const struct sim_gpu *gpu, uint32_t id);
const struct sim_ci *sim_ci_find(const struct sim_gi *gi, uint32_t id);

/* The compute instance that is MIG device `index` of its GPU, with its GPU
 * instance in *ret_gi, or NULL. */
const struct sim_ci *sim_ci_by_mig_index(const struct sim_gpu *gpu, uint32_t index,
                                         const struct sim_gi **ret_gi);

/* Would an instance of this profile fit at `start` now? */
bool sim_gi_fits(const struct sim_gpu *gpu, const struct sim_profile *profile, uint32_t start);

/* How many more instances of the profile fit now; the highest free start, or
 * SIM_NO_ID (the driver prefers high starts). */
unsigned sim_gi_capacity(const struct sim_gpu *gpu, const struct sim_profile *profile);
uint32_t sim_gi_last_start(const struct sim_gpu *gpu, const struct sim_profile *profile);

/* Create an instance of the profile at position `profile` of the GPU's model.
 *   INVALID_ARGUMENT        the profile does not start there
 *   INSUFFICIENT_RESOURCES  it does not fit beside what exists */
nvmlReturn_t sim_gi_create(struct sim_state *state, struct sim_gpu *gpu, uint32_t profile, uint32_t start,
                           uint64_t *ret_birth);

/* Destroy it: NOT_FOUND when no instance has this birth, IN_USE while a
 * compute instance lives in it. */
nvmlReturn_t sim_gi_destroy(struct sim_gpu *gpu, uint64_t birth);

/* How many more compute instances of this profile fit into `gi`; is the start
 * free; the lowest free start or SIM_NO_ID. */
unsigned sim_ci_capacity(const struct sim_gi *gi, const struct sim_ci_profile *profile);
bool sim_ci_fits(const struct sim_gi *gi, const struct sim_ci_profile *profile, uint32_t start);
uint32_t sim_ci_first_start(const struct sim_gi *gi, const struct sim_ci_profile *profile);

/* A compute instance that a caller asks for. */
struct sim_ci_request {
    uint64_t gi; /* birth of its GPU instance */
    const struct sim_ci_profile *profile;
    uint32_t start;
};

/* Create a compute instance with a new UUID; errors as for sim_gi_create, and
 * NOT_FOUND when the GPU instance is gone. */
nvmlReturn_t sim_ci_create(struct sim_state *state, struct sim_gpu *gpu, const struct sim_ci_request *request,
                           uint64_t *ret_birth);
nvmlReturn_t sim_ci_destroy(struct sim_gpu *gpu, uint64_t birth);

/* Ask for a MIG mode.  `busy`: a process holds a context on the GPU.  The
 * result is the activation status: Hopper and newer change at once or, while
 * in use, not at all; Ampere keeps the request pending (IN_USE, RESET_REQUIRED)
 * when it cannot unbind the GPU. */
nvmlReturn_t sim_mig_request(struct sim_state *state, struct sim_gpu *gpu, uint32_t mode, bool busy);

/* What a reset leaves: no instances, no volatile counts, a GPU that answers.
 * Ampere takes its pending mode; Hopper and newer, whose mode the driver
 * forgets when it unloads, fall back to off. */
void sim_gpu_reset(struct sim_state *state, struct sim_gpu *gpu);

/* A UUID from the numbers given: the same numbers give the same UUID. */
struct sim_uuid sim_uuid_make(uint64_t a, uint64_t b);

#endif
