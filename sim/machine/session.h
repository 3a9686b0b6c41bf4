/* One process's use of the simulated driver: initialisation, faults, and the
 * way from a handle to a snapshot of what it names.
 *
 * There are two modes.  A node (root, with a state file) sees and changes
 * everything.  A job sees the one instance whose view folder was mounted for
 * it, and only while the instance's device nodes open. */
#ifndef BH_SIM_MACHINE_SESSION_H
#define BH_SIM_MACHINE_SESSION_H

#include "bulkhead/nvml_abi.h"
#include "sim/machine/geometry.h"
#include "sim/machine/sim.h"

struct sim_rule;

/* What a call asks of its handle.  At least one of the first four. */
enum sim_wants {
    SIM_GPU = 1u << 0, /* a GPU's handle will do */
    SIM_MIG = 1u << 1, /* a MIG device's handle will do */
    SIM_GI = 1u << 2,
    SIM_CI = 1u << 3,
    SIM_PRIVILEGED = 1u << 4,  /* else NO_PERMISSION */
    SIM_MIG_ON = 1u << 5,      /* else NOT_SUPPORTED */
    SIM_UNDIVIDED = 1u << 6,   /* NOT_SUPPORTED while the GPU is in MIG mode */
    SIM_LOST_TOO = 1u << 7,    /* answered from memory even when the GPU is lost */
    SIM_MIG_INVALID = 1u << 8, /* a MIG handle is INVALID_ARGUMENT, not NOT_SUPPORTED */
};

/* What a handle names, as one commit left it. */
struct sim_target {
    struct sim_gpu gpu;
    const struct sim_model *model;
    const struct sim_gi *gi; /* in `gpu`; NULL for a GPU's handle */
    const struct sim_ci *ci; /* in `gi`; NULL for a GPU's or a GPU instance's */
    bool is_mig;             /* the handle is a MIG device's */
    bool privileged;
};

nvmlReturn_t sim_session_open(unsigned flags);
nvmlReturn_t sim_session_close(void);

/* Begin a call that takes no handle: UNINITIALIZED, or an injected fault. */
nvmlReturn_t sim_enter(const char *function);

/* Begin a call on a handle: checks it, injects faults, takes the snapshot.
 * `function` is the exported name, __func__. */
nvmlReturn_t sim_open(const char *function, const void *handle, unsigned wants,
                      struct sim_target *ret_target);

/* Facts of the server; the snapshot of GPU `index`. */
void sim_session_system(struct sim_system *ret_system);
nvmlReturn_t sim_session_gpu(unsigned index, struct sim_gpu *ret_gpu);
unsigned sim_session_gpus(void);

/* Start a change: the draft is a copy of the state, locked.  `end` commits it
 * when rc is SUCCESS, writes out what follows from it, and returns rc.
 * NO_PERMISSION in a job. */
nvmlReturn_t sim_change_begin(struct sim_state **ret_draft);
nvmlReturn_t sim_change_end(nvmlReturn_t rc);

/* A caller that sees and changes everything found no user of the whole GPU: it begins anew
 * (sim/machine/publish.h). */
void sim_session_renew(const struct sim_gpu *gpu);

/* Events after `*seq` that name a GPU in `mask`; false when there is none. */
bool sim_session_next_event(uint64_t *seq, uint64_t mask, uint64_t types, struct sim_event *ret_event);
uint64_t sim_session_event_seq(void);

/* Re-read the control file if it changed. */
void sim_session_refresh(void);

/* A rule of the control file, from 0.  False: there are not so many. */
bool sim_session_rule(unsigned index, struct sim_rule *ret_rule);

/* How many calls, of any process, met a rule that has a count. */
uint64_t sim_session_uses(const struct sim_rule *rule);

#endif
