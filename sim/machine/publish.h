/* What the simulated driver writes out beside its state file: one view folder
 * per instance, and the text files of the kernel driver under `proc`. */
#ifndef BH_SIM_MACHINE_PUBLISH_H
#define BH_SIM_MACHINE_PUBLISH_H

#include <stdbool.h>

#include "sim/machine/sim.h"

/* Bring the files below `dir` in line with `state`.  Writes only what differs,
 * so it may be repeated at any time; called with the state's lock held.
 * `anew`: also rewrite the files that depend on the topology alone. */
bool sim_publish(const char *dir, const struct sim_state *state, bool anew);

/* Whether no process had the whole GPU open, and it begins anew (sim_vram_renew): one that opens it
 * meanwhile waits.  Called with the state's lock held. */
bool sim_publish_renew(const char *dir, const struct sim_gpu *gpu);

/* Bytes of device memory of an instance, or of the whole GPU (`gi` NULL). */
uint64_t sim_memory_bytes(const struct sim_gpu *gpu, const struct sim_gi *gi);

#endif
