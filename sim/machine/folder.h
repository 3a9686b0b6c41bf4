/* The folder that the state is in, and the paths of what instances have there. */
#ifndef BH_SIM_MACHINE_FOLDER_H
#define BH_SIM_MACHINE_FOLDER_H

#include <stdbool.h>

#include "sim/machine/sim.h"

/* Written by a session that is opened. */
struct sim_folder {
    _Atomic bool view;      /* atomic, and dir changed only by a new environment: */
    char dir[SIM_PATH_MAX]; /* a thread without an init of its own may read them */
};

extern struct sim_folder sim_folder;

/* Path of the memory file of an instance (`gi` NULL: of the whole GPU), in at
 * most SIM_PATH_MAX bytes. */
bool sim_folder_memory_path(const struct sim_gpu *gpu, const struct sim_gi *gi, char *ret_path);

/* Likewise the folder of its bytes (sim/machine/vram.h). */
bool sim_folder_vram_path(const struct sim_gpu *gpu, const struct sim_gi *gi, char *ret_path);

#endif
