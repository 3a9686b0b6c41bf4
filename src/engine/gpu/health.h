#ifndef BH_ENGINE_GPU_HEALTH_H
#define BH_ENGINE_GPU_HEALTH_H

#include "engine/state/work_internal.h"

/* A GPU's health: what becomes of it, and of the jobs that hold it, after a fault.
 *
 * A table of (state, what is to be done) says what state follows.  From there a GPU goes its way by itself:
 * it is emptied, reset by its node, tested, watched for a while (burn-in) and given back.  A reset that fails
 * is tried again after a while, longer each time; one that would be the third within a day is not made: the
 * GPU stays in quarantine until an operator clears it.  Leases end one by one as decisions, exactly those
 * that the fault touched. */

#define BH_HEALTH_DAY_NS 86400000000000ull
#define BH_HEALTH_RETRY_NS 30000000000ull /* after the first reset that failed; then doubled */
enum { BH_HEALTH_ATTEMPTS_MAX = 5 };      /* resets that fail in a row */

/* The state that follows a remedy. */
enum bh_gpu_health bh_health_after(enum bh_gpu_health state, enum bh_fault_then then);

/* A fault, as its event says. */
void bh_health_fault(struct work *work, const struct bh_ev_health *fault);

/* Its RESET or TEST was answered. */
void bh_health_serviced(struct work *work, const struct bh_ev_serviced *answer);

/* People say that it is well again: it is tested and watched before it gets work. */
void bh_health_clear(struct work *work, uint32_t gpu);

/* Continue with GPUs that wait to be emptied, reset or tested; at a tick also with those whose time has
 * come. */
void bh_health_advance(struct work *work, bool tick);

/* Why the lease cannot stay where it is, by faults of its GPUs; NONE: it can. */
enum bh_end_cause bh_health_ends(const struct bh_engine *engine, uint32_t lease);

/* When a tick should look at the GPU, or UINT64_MAX. */
uint64_t bh_health_due_ns(const struct bh_engine *engine, uint32_t gpu);

/* Invariants: of one GPU, and of the counts; NULL, or what is broken. */
const char *bh_health_broken(const struct bh_engine *engine, uint32_t gpu);
bool bh_health_counted(const struct bh_engine *engine);

#endif
