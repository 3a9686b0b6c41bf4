/* One process of bulkhead-burn: its device, its threads, and what they have completed. */
#ifndef BH_SIM_BURN_BURN_H
#define BH_SIM_BURN_BURN_H

#include <stdatomic.h>

#include "sim/burn/driver.h"
#include "sim/burn/plan.h"

#define BURN_EXIT_FAILED 1
#define BURN_EXIT_USAGE 2
#define BURN_EXIT_UNAVAILABLE 8

struct burn {
    const struct burn_plan *plan;
    struct burn_driver driver;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    unsigned blocks;
    uint64_t loops; /* of a kernel */
    uint64_t end_ns;
    atomic_bool stop;
    struct burn_worker *_Atomic workers;
    atomic_ullong kernels, launches, allocations, refused;
};

/* CLOCK_MONOTONIC, in ns. */
uint64_t bh_burn_now(void);
void bh_burn_sleep_until(uint64_t when_ns);

bool bh_burn_is_over(struct burn *burn);

/* A handler of signals: it is over. */
void bh_burn_interrupt(int number);
bool bh_burn_is_interrupted(void);

/* End the process with BURN_EXIT_FAILED when a call did not succeed. */
void bh_burn_must(struct burn *burn, const char *call, CUresult result);
#define BURN_MUST(burn, call, ...) bh_burn_must((burn), #call, (burn)->driver.call(__VA_ARGS__))

#endif
