/* Use of simulated devices: memory, utilisation, power, temperature, all
 * derived from the processes that have a context. */
#ifndef BH_SIM_MACHINE_USAGE_H
#define BH_SIM_MACHINE_USAGE_H

#include "sim/machine/contexts.h"
#include "sim/machine/sim.h"

struct sim_gauge;

struct sim_user {
    struct sim_context context;
    uint32_t gi, ci;               /* SIM_NO_ID where the GPU is whole */
    uint64_t at_ns;                /* when context.cpu_ns was read, by sim_boot_ns() */
    const struct sim_gauge *gauge; /* of the work of its device; NULL: there is none.  Valid in a visit */
};

/* Call `visit` for each process with a context on an instance, or with `gi`
 * NULL anywhere on the GPU; it must not call back into this file.  `fresh`: do
 * not answer from a scan of a moment ago.  Returns of when the answer is, by
 * sim_boot_ns(). */
uint64_t sim_users_each(const struct sim_gpu *gpu, const struct sim_gi *gi, bool fresh,
                        void (*visit)(void *self, const struct sim_user *user), void *self);

/* Does any process have one now? */
bool sim_users_any(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* Bytes that they hold, never more than there are. */
uint64_t sim_used_bytes(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* Time in ns that the GPU has worked for them, or a CPU, up to a moment, now, which is written as
 * sim_boot_ns() reads it. */
uint64_t sim_cpu_ns(const struct sim_gpu *gpu, const struct sim_gi *gi, uint64_t *ret_now_ns);

/* Per cent of the last interval during which the GPU worked for them, or, for those that
 * never gave it work, they used a CPU; 0..100.  The interval runs from this process's last
 * query, at least 100 ms ago; at first, from the start of theirs. */
unsigned sim_utilization(const struct sim_gpu *gpu, const struct sim_gi *gi);

/* A board idles at 15 % of its power and 32 C, and rises with utilisation to
 * 90 % and 74 C. */
unsigned sim_power_mw(const struct sim_gpu *gpu);
unsigned sim_temperature_c(const struct sim_gpu *gpu);

/* Forget what was learnt about instances, and free it: another state file may
 * follow, with the same births in it. */
void sim_usage_forget(void);

/* Monotonic time in ns, on the clock of process start times. */
uint64_t sim_boot_ns(void);

#endif
