#ifndef BH_LAB_LOAD_MODES_INTERNAL_H
#define BH_LAB_LOAD_MODES_INTERNAL_H

#include "base/modes.h"
#include "lab/common/flags.h"
#include "lab/load/load.h"

/* What philly and synth have in common: one load at several rates, in several orders, each
 * judged by bh_fair_judge. */
struct bh_compare {
    const char *mode;           /* for messages */
    struct bh_flag_list loads;  /* thousandths */
    struct bh_flag_list orders; /* enum bh_queue_order */
    uint32_t guarantee;         /* thousandths of all GPUs that are guaranteed */
    bool json, verbose, limits; /* limits: a time limit of twice the work */
    bool preshape;
    struct bh_flag_list lending; /* one enum bh_lending */
    uint32_t slot_min;           /* of the forecasts for these two */
    uint32_t carve_s;            /* how long it takes to carve, and to destroy */
    const char *svg;             /* NULL, or a file for the one run there is */
    uint32_t check;              /* as bh_simulation_plan.check_every */
};

/* The defaults: load 0.8, 1.0 and 1.2, and all orders. */
struct bh_compare bh_compare_default(const char *mode);

/* The flags for it, to stand beside a mode's own; BH_COMPARE_FLAGS of them. */
enum { BH_COMPARE_FLAGS = 13 };
void bh_compare_flags(struct bh_compare *compare, struct bh_flag ret_flags[BH_COMPARE_FLAGS]);

/* What of it contradicts itself, before anything is run: BH_INVALID. */
BH_MUST_USE bh_rc bh_compare_check(const struct bh_compare *compare, struct bh_err *err);

/* Run and print them all.  The load's submissions and time limits are changed.
 * Failures as bh_simulation_run_play; BH_IO, BH_DENIED, BH_NOT_FOUND for the chart's file. */
BH_MUST_USE bh_rc bh_compare_run(const struct bh_compare *compare, struct bh_load *load, struct bh_err *err);

#endif
