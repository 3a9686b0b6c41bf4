/* How much memory is in use on an instance, exactly, at one instant: for NVML, for
 * bulkhead-simctl, and for tests that look thousands of times a second.
 *
 * The files are jobs' to write, and the reader may be root: a job chooses what is shown of
 * its own instance, between nothing and all of the memory, and nothing else. */
#ifndef BH_SIM_MACHINE_METER_H
#define BH_SIM_MACHINE_METER_H

#include "sim/machine/ledger.h"

struct sim_meter;

/* A user: a process, or a shared object whose maker is gone. */
struct sim_meter_user {
    uint32_t slot;
    int32_t pid;    /* as its own name space numbers it; 0: a shared object's */
    uint64_t bytes; /* with what it shares; at most total_bytes */
};

struct sim_meter_reading {
    uint64_t total_bytes, used_bytes; /* used: all users', and nothing twice */
    size_t users;                     /* with memory */
    struct sim_meter_user user[SIM_SLOTS_MAX];
};

/* Open the memory of an instance: the folder `vram/<minor>-<gi>` or `vram/<minor>-w`.
 * NULL: errno. */
struct sim_meter *sim_meter_open(const char *folder, const struct sim_gpu *gpu, uint64_t bytes);
void sim_meter_close(struct sim_meter *meter);

/* The memory as it is at one instant between call and return; what the dead had counts no
 * more.  Some microseconds. */
void sim_meter_read(struct sim_meter *meter, struct sim_meter_reading *ret_reading);

/* Only `used_bytes` of it. */
uint64_t sim_meter_used(struct sim_meter *meter);

/* Whether the slot's process was checkpointed: it has nothing of the GPU. */
bool sim_meter_is_away(struct sim_meter *meter, uint32_t slot);

/* Bytes of one slot's process, with what it shares, as they were read. */
uint64_t sim_meter_slot(const struct sim_meter_reading *reading, uint32_t slot);

#endif
