/* The text files that NVIDIA's kernel driver shows under /proc, written below
 * `<state dir>/proc` for programs that are configured to look there. */
#ifndef BH_SIM_MACHINE_PROCTREE_H
#define BH_SIM_MACHINE_PROCTREE_H

#include <stdbool.h>

#include "sim/machine/sim.h"

/* Bring `<dir>/proc` in line with `state`: the capability files of instances
 * come and go with them; with `anew`, everything else is rewritten too. */
bool sim_proctree_publish(const char *dir, const struct sim_state *state, bool anew);

#endif
