/* Units' files can be made shorter by the jobs that have them.  What lies behind the end of a file
 * kills a process that touches it (SIGBUS); here it reads as zeros instead, for a reader: NVML. */
#ifndef BH_SIM_MACHINE_GUARD_H
#define BH_SIM_MACHINE_GUARD_H

#include "sim/machine/vram.h"

/* From now on this thread, and no other, may touch what is mapped of the memory, until it says NULL;
 * then what the process does about SIGBUS is as before.  A fault anywhere else is what it was. */
void sim_guard(const struct sim_vram *vram);

#endif
