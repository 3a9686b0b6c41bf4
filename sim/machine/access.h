/* What a job may see: the view mounted for it, behind its device nodes.
 *
 * There is no driver behind the nodes: they are asked for with access(2), which succeeds where
 * the fence lets the job through, and gives EPERM or ENOENT where it does not. */
#ifndef BH_SIM_MACHINE_ACCESS_H
#define BH_SIM_MACHINE_ACCESS_H

#include <stdbool.h>

#include "sim/machine/sim.h"

/* Read `<dir>/view/view`; false when it is not there or not whole. */
bool sim_access_read(const char *dir, struct sim_view *ret_view);

/* Do the nodes of the view's GPU open, and for MIG those of the GPU instance
 * and of at least one compute instance? */
bool sim_access_allowed(const struct sim_view *view);

/* Take away the compute instances whose node does not open. */
void sim_access_narrow(struct sim_view *view);

#endif
