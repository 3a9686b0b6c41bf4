/* Use of simulated devices: memory, utilisation, power, temperature, all
 * derived from the processes that have a context. */
#ifndef BH_SIMDRV_USAGE_H
#define BH_SIMDRV_USAGE_H

#include "simdrv/contexts.h"
#include "simdrv/sim.h"

#define SIM_USERS_MAX 256

struct sim_user {
    struct sim_context context;
    uint32_t gi, ci; /* SIM_NO_ID where the GPU is whole */
};

struct sim_users {
    size_t count;
    struct sim_user user[SIM_USERS_MAX];
};

/* Processes with a context on an instance, or with `gi` NULL anywhere on the
 * GPU.  `fresh`: do not answer from a scan of a moment ago. */
void sim_users_find(const struct sim_gpu *gpu, const struct sim_gi *gi, bool fresh,
                    struct sim_users *ret_users);

/* Does any process have one now? */
bool sim_users_any(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* Bytes that they hold, never more than there are. */
uint64_t sim_used_bytes(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* CPU time in ns that they have used so far, for samples. */
uint64_t sim_cpu_ns(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* Per cent of the last interval during which they used a CPU, which stands for
 * the use of the GPU; 0..100.  The interval runs from this process's last
 * query, at least 100 ms ago; at first, from the start of theirs. */
unsigned sim_utilization(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* A board idles at 15 % of its power and 32 C, and rises with utilisation to
 * 90 % and 74 C. */
unsigned sim_power_mw(const struct sim_gpu *gpu);
unsigned sim_temperature_c(const struct sim_gpu *gpu);

/* Forget what was learnt about instances: another state file may follow, with
 * the same births in it. */
void sim_usage_forget(void);

/* Monotonic time in ns, on the clock of process start times. */
uint64_t sim_boot_ns(void);

#endif
