/* The simulated driver's own records: what the state file and the view files
 * hold.
 *
 * Plain values without pointers, because they are mapped by several processes
 * and copied whole.  SIM_LAYOUT changes whenever a field does, so that a
 * library never reads a file of another layout. */
#ifndef BH_SIM_MACHINE_SIM_H
#define BH_SIM_MACHINE_SIM_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_LAYOUT 5u
#define SIM_GPUS_MAX 32 /* the formula of nvidia-caps minors ends at minor 31 */
#define SIM_GIS_MAX 8
#define SIM_CIS_MAX 8
#define SIM_EVENTS_MAX 64
#define SIM_RULES_MAX 64
#define SIM_NO_ID 0xFFFFFFFFu
#define SIM_PATH_MAX 512
#define SIM_CONTEXT_MIB 400u /* what a context takes, where the topology does not say */

/* What the control file does to a GPU's memory. */
#define SIM_FAULT_LEAK 1u       /* what is freed is not cleared */
#define SIM_FAULT_STUCK 2u      /* an instance's first page takes no fill */
#define SIM_FAULT_CUDA_HANG 4u  /* cuInit never returns */
#define SIM_FAULT_CUDA_FAIL 8u  /* cuInit fails */
#define SIM_FAULT_CUDA_BUSY 16u /* no process comes to rest for a checkpoint */

struct sim_uuid {
    uint8_t bytes[16];
};

/* A compute instance.  `birth` is unique in the life of a state file, so a
 * stale handle never matches a later instance with the same ids. */
struct sim_ci {
    uint64_t birth; /* 0: free slot */
    struct sim_uuid uuid;
    uint32_t id, profile; /* NVML's number of the profile, also its driver id */
    uint32_t start, size; /* compute slices */
    uint32_t mig_index;   /* index of the MIG device on its GPU */
    uint32_t pad;
};

struct sim_gi {
    uint64_t birth; /* 0: free slot */
    uint64_t ecc_uncorrected;
    uint32_t id, profile; /* index into the model's profiles */
    uint32_t start, size; /* memory units */
    struct sim_ci ci[SIM_CIS_MAX];
};

struct sim_ecc {
    uint64_t corrected[2], uncorrected[2]; /* volatile, aggregate */
    uint32_t remap_pending, remap_failure;
    uint32_t recovery;   /* what field 230 says */
    uint32_t thermal_ms; /* slowed down for its heat so long */
};

struct sim_gpu {
    uint64_t birth; /* changes with the MIG mode and with every reset */
    struct sim_uuid uuid;
    uint32_t model, index, minor, bus;
    uint32_t mig_current, mig_pending;
    uint32_t lost, unbind; /* unbind: an idle Ampere board takes a new mode without a reset */
    uint32_t persistence, compute_mode, ecc_mode, power_limit_mw;
    uint32_t memory_faults; /* SIM_FAULT_*: of its memory, and of libcuda.so.1 on it */
    uint32_t context_mib;   /* what a context takes for itself */
    struct sim_ecc ecc;
    struct sim_gi gi[SIM_GIS_MAX];
};

struct sim_event {
    uint64_t seq; /* 0: never written */
    uint64_t type, value;
    uint32_t gpu, gi, ci, pad;
};

/* How often a rule of the control file has fired: kept here, so that a count
 * holds over all processes. */
struct sim_rule_use {
    uint64_t key; /* 0: free slot */
    uint64_t uses;
};

struct sim_system {
    char driver[32];
    uint64_t seed, nonce, created_ns;
    uint32_t gpus, caps_major;
};

struct sim_state {
    struct sim_system system;
    uint64_t births, event_seq;
    struct sim_gpu gpu[SIM_GPUS_MAX];
    struct sim_event event[SIM_EVENTS_MAX];
    struct sim_rule_use rule[SIM_RULES_MAX];
};

/* The content of a view file: one GPU as one tenant may see it, with no
 * instance but its own. */
struct sim_view {
    uint32_t magic, layout;
    struct sim_system system;
    struct sim_gpu gpu;
};

#define SIM_VIEW_MAGIC 0x42485657u

#endif
