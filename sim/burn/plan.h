/* What bulkhead-burn is asked to do: its options. */
#ifndef BH_SIM_BURN_PLAN_H
#define BH_SIM_BURN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum burn_storm {
    BURN_STORM_NONE,
    BURN_STORM_LINEAR,
    BURN_STORM_MANAGED,
    BURN_STORM_ASYNC,
    BURN_STORM_HOST,
    BURN_STORM_VMM,
    BURN_STORM_ARRAY,
};

#define BURN_STREAMS_MAX 32

struct burn_plan {
    uint64_t kernel_ns; /* 0: no kernels */
    uint64_t time_ns, window_ns, ahead_ns;
    uint64_t streams, graph; /* graph: kernels of one; 0: launched one by one */
    uint64_t rate;           /* launches per second of each thread; 0: as many as go */
    uint64_t hold_mib, storm_mib, storm_live;
    uint64_t processes, threads, blocks, device;
    uint64_t loops_per_ms; /* 0: measured first */
    enum burn_storm storm;
    const char *library;
};

enum burn_parse { BURN_PARSE_RUN, BURN_PARSE_DONE, BURN_PARSE_USAGE };

/* Read the arguments.  DONE: --help or --version was answered; USAGE: what is wrong was
 * written to stderr. */
enum burn_parse bh_burn_plan_parse(int argc, char **argv, struct burn_plan *ret_plan);

/* The name of a kind of allocation, as the option has it. */
const char *bh_burn_storm_name(enum burn_storm storm);

#endif
