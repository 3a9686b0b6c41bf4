#ifndef BH_LAB_LOAD_COST_H
#define BH_LAB_LOAD_COST_H

#include <stdio.h>

#include "base/json.h"
#include "lab/load/simulation_run.h"

/* What a simulation run cost in real time: the engine's steps, their records, and the driver. */

void bh_cost_print(FILE *out, const struct bh_simulation_run *run);

/* As members of the object that is open. */
void bh_cost_put(struct bh_json_writer *writer, const struct bh_simulation_run *run);

/* How far a run is, on standard error when that is a terminal: a plan's progress
 * function, whose self is this. */
struct bh_cost_progress {
    const char *what;
    uint32_t jobs;
};
void bh_cost_progress(void *self, uint32_t ended);

#endif
