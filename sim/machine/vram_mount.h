/* The file system that simulated memory lies in, so that jobs cannot fill the machine's disk.
 * In bulkhead-simctl alone: a library in tenants' processes mounts nothing. */
#ifndef BH_SIM_MACHINE_VRAM_MOUNT_H
#define BH_SIM_MACHINE_VRAM_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Give the memory of all GPUs of the server in `dir` a file system of its own, of `mib` MiB of
 * the machine's memory: what jobs write is never more than that.  What was there is forgotten;
 * one that is mounted already stays as it is.  False: errno (EPERM: not root). */
bool sim_vram_mount(const char *dir, uint32_t mib);

/* Take it off, and forget what it held; true also where none is mounted.  False: errno (EBUSY:
 * a job still has a part of it). */
bool sim_vram_unmount(const char *dir);

#endif
