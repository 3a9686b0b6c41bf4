/* The control file: faults that a person or a test injects.
 *
 * One rule a line; `#` starts a comment.  Either a call that misbehaves:
 *   nvmlDeviceSetMigMode gpu=0 hang
 *   nvmlDeviceCreateGpuInstanceWithPlacement gpu=1 fail=INSUFFICIENT_RESOURCES count=1
 *   nvmlGpuInstanceDestroy delay-ms=1000
 * or something that happens to a GPU:
 *   gpu=3 lost                        as long as the line stands
 *   gpu=2 remap-pending               likewise; and remap-failure
 *   gpu=1 leak                        freed memory is not cleared; likewise
 *   gpu=1 stuck                       the first page of an instance takes no fill
 *   gpu=1 cuda-hang                   cuInit never returns; and cuda-fail
 *   gpu=1 cuda-busy                   no process comes to rest for a checkpoint
 *   gpu=2 recovery=1                  likewise: what field 230 says; and thermal-ms=N
 *   gpu=2 xid=79 gi=1 ci=0            once for each line
 *   gpu=2 ecc-uncorrected=2 gi=1      once for each line; and ecc-corrected
 * A line is known by its number and text: to repeat one, add another line, or
 * change it with `id=...`, which has no other meaning. */
#ifndef BH_SIM_MACHINE_CONTROL_H
#define BH_SIM_MACHINE_CONTROL_H

#include "bulkhead/nvml_abi.h"
#include "sim/machine/sim.h"

enum sim_rule_kind {
    SIM_RULE_NONE,
    SIM_RULE_HANG,
    SIM_RULE_FAIL,
    SIM_RULE_DELAY,
    SIM_RULE_LOST,
    SIM_RULE_REMAP_PENDING,
    SIM_RULE_REMAP_FAILURE,
    SIM_RULE_LEAK,
    SIM_RULE_STUCK,
    SIM_RULE_CUDA_HANG,
    SIM_RULE_CUDA_FAIL,
    SIM_RULE_CUDA_BUSY,
    SIM_RULE_RECOVERY,
    SIM_RULE_THERMAL,
    SIM_RULE_XID,
    SIM_RULE_ECC_CORRECTED,
    SIM_RULE_ECC_UNCORRECTED,
};

struct sim_rule {
    uint64_t key;
    enum sim_rule_kind kind;
    char function[64]; /* empty: not about a call */
    uint32_t gpu;      /* SIM_NO_ID: any */
    uint32_t gi, ci;
    uint64_t value; /* result code, milliseconds, XID or count of errors */
    uint64_t count; /* fire so often only; 0: always */
};

struct sim_rules {
    unsigned count;
    int bad_line; /* number of the first line that means nothing; 0: none */
    struct sim_rule rule[SIM_RULES_MAX];
};

/* Read the rules of a text.  Lines that are wrong, and rules past the last
 * place, are left out and noted in `bad_line`. */
void sim_control_parse(const char *text, struct sim_rules *ret_rules);

/* Let the rules about GPUs happen to `state`.  True when it changed.  Done
 * again with the same rules it changes nothing. */
bool sim_control_apply(const struct sim_rules *rules, struct sim_state *state);

/* The first rule about this call on this GPU (SIM_NO_ID: a call about no GPU)
 * that has not fired as often as it may, or NULL. */
const struct sim_rule *sim_control_match(const struct sim_rules *rules, const char *function, uint32_t gpu,
                                         const struct sim_rule_use *uses);

/* Count one firing of a rule with a count.  False when others used it up. */
bool sim_control_use(struct sim_state *state, const struct sim_rule *rule);

/* Put an event into the state's ring. */
void sim_event_add(struct sim_state *state, const struct sim_event *event);

#endif
