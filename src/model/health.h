#ifndef BH_MODEL_HEALTH_H
#define BH_MODEL_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

/* What a fault of a GPU means: the tables xid.tbl and health_rules.tbl as functions. */

/* What the driver itself says should be done: NVML field 230, and XID 154. */
enum bh_gpu_recovery {
    BH_RECOVERY_NONE,
    BH_RECOVERY_RESET,
    BH_RECOVERY_REBOOT,
    BH_RECOVERY_DRAIN_P2P,
    BH_RECOVERY_DRAIN_RESET,
    BH_RECOVERY_IMEX, /* the domain of NVLinks between nodes */
    BH_RECOVERIES
};

enum bh_fault_class {
    BH_FAULT_CLASS_UNKNOWN, /* an XID that is in no row */
    BH_FAULT_CLASS_APP,
    BH_FAULT_CLASS_APP_REPEAT,
    BH_FAULT_CLASS_SYMPTOM,
    BH_FAULT_CLASS_CONTAINED,
    BH_FAULT_CLASS_RESET,
    BH_FAULT_CLASS_RESET_IDLE,
    BH_FAULT_CLASS_DRAIN,
    BH_FAULT_CLASS_REBOOT,
    BH_FAULT_CLASS_RETIRE,
    BH_FAULT_CLASS_WATCH,
    BH_FAULT_CLASS_INFO,
    BH_FAULT_CLASS_IGNORE,
    BH_FAULT_CLASS_BY_ACTION,
    BH_FAULT_CLASSES
};

/* What is read of a GPU from time to time; 0: nothing of that kind. */
enum bh_health_rule {
    BH_HEALTH_RULE_NONE,
#define BH_HEALTH_RULE(id, name, class, doc) BH_HEALTH_RULE_##id,
#include "tables/health_rules.tbl"
#undef BH_HEALTH_RULE
    BH_HEALTH_RULES
};

/* Whose leases end. */
enum bh_fault_ends { BH_ENDS_NOBODY, BH_ENDS_INSTANCE, BH_ENDS_GPU, BH_FAULT_ENDS };

/* What becomes of the GPU. */
enum bh_fault_then {
    BH_THEN_NOTHING,
    BH_THEN_COUNT,      /* the third job within a day that meets it: DRAIN */
    BH_THEN_WATCH,      /* it is shown for a day */
    BH_THEN_RESET_IDLE, /* it works on, and is reset as soon as it is idle */
    BH_THEN_DRAIN,      /* no new work, and a reset when it is empty */
    BH_THEN_RESET,      /* fenced: no new work, and a reset once its leases have ended */
    BH_THEN_REBOOT,     /* its node gets no new work until it was rebooted */
    BH_THEN_RETIRE,     /* quarantine: no new work until an operator clears it */
    BH_THEN_RECOVERED,  /* what needed a reboot is over */
    BH_FAULT_THENS
};

/* A GPU's health, as the engine has it. */
enum bh_gpu_health {
    BH_HEALTH_OK,
    BH_HEALTH_WATCHED,  /* works; had a fault within a day, or waits for an idle moment */
    BH_HEALTH_DRAINING, /* no new work; reset when empty */
    BH_HEALTH_FENCED,   /* its leases are ending; then it is reset */
    BH_HEALTH_RESETTING,
    BH_HEALTH_TESTING, /* the node looks whether the faults are gone */
    BH_HEALTH_BURN_IN, /* well since; gets work when it has stayed so for a while */
    BH_HEALTH_WAITING, /* a reset failed, and is tried again later */
    BH_HEALTH_NEEDS_REBOOT,
    BH_HEALTH_QUARANTINED, /* until an operator clears it */
    BH_HEALTHS
};

extern const char *const bh_fault_class_names[BH_FAULT_CLASSES];
extern const char *const bh_fault_ends_names[BH_FAULT_ENDS];
extern const char *const bh_fault_then_names[BH_FAULT_THENS];
extern const char *const bh_gpu_health_names[BH_HEALTHS];
extern const char *const bh_recovery_names[BH_RECOVERIES];
extern const char *const bh_health_rule_names[BH_HEALTH_RULES];

/* One row; the text of each is static. */
struct bh_xid {
    const char *name, *doc;
    enum bh_fault_class class;
    bool board; /* the whole GPU, whatever instance the event names */
};

/* The row of an XID; one of class UNKNOWN where there is none. */
const struct bh_xid *bh_xid_get(uint32_t xid);

/* The sentence of a sign. */
const char *bh_health_rule_doc(enum bh_health_rule sign);

/* A fault as it was reported. */
struct bh_fault_report {
    uint32_t xid; /* 0: none, but a sign */
    enum bh_health_rule sign;
    bool instance;     /* it names an instance that stands */
    uint32_t recovery; /* enum bh_gpu_recovery, others: not known */
    bool after_cause;  /* bh_fault_follows: not the first in a row of faults */
};

struct bh_fault_remedy {
    enum bh_fault_class class;
    enum bh_fault_ends ends;
    enum bh_fault_then then;
};

/* What is to be done.  The recovery action is obeyed first: where the driver asks for more
 * than nothing, it decides what becomes of the GPU, and the table only whose lease the fault
 * itself ended.  "Nothing" is no verdict, because the action is read before or after the
 * driver has settled it. */
struct bh_fault_remedy bh_fault_remedy(const struct bh_fault_report *seen);

/* Whether an XID or sign within the time after a cause is its consequence: 43 and 45, other
 * applications' faults and counters that it moved.  A cause is a fault for which something is
 * done to the GPU. */
#define BH_FAULT_FOLLOWS_NS 30000000000ull
bool bh_fault_is_cause(const struct bh_fault_remedy *remedy);
bool bh_fault_follows(const struct bh_fault_report *seen, uint64_t since_cause_ns);

#endif
