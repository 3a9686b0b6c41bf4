/* The topology file: which GPUs the simulated server has.
 *
 *   # comment
 *   node: 8x H100-80GB mig=on driver=580.159.03 seed=7
 *   node: 2x A30-24GB unbind=off
 *
 * GPUs are numbered in the order of the lines.  Keys: `mig=on|off`, and
 * `unbind=on|off` (off: an Ampere board needs a reset to change its MIG mode)
 * hold for the GPUs of their line, as does `context=MIB`, what a context takes for itself;
 * `driver=` and `seed=` hold for the server. */
#ifndef BH_SIM_MACHINE_TOPOLOGY_H
#define BH_SIM_MACHINE_TOPOLOGY_H

#include "sim/machine/sim.h"

/* Fill `ret_state` from the text; zero, or the number of the first line that
 * is wrong (a text without any GPU: the line after the last). */
int sim_topology_parse(const char *text, struct sim_state *ret_state);

#endif
