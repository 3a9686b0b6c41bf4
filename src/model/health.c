#include "model/health.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/attr.h"

const char *const bh_fault_class_names[BH_FAULT_CLASSES] = {
    [BH_FAULT_CLASS_UNKNOWN] = "unknown",       [BH_FAULT_CLASS_APP] = "app",
    [BH_FAULT_CLASS_APP_REPEAT] = "app_repeat", [BH_FAULT_CLASS_SYMPTOM] = "symptom",
    [BH_FAULT_CLASS_CONTAINED] = "contained",   [BH_FAULT_CLASS_RESET] = "reset",
    [BH_FAULT_CLASS_RESET_IDLE] = "reset_idle", [BH_FAULT_CLASS_DRAIN] = "drain",
    [BH_FAULT_CLASS_REBOOT] = "reboot",         [BH_FAULT_CLASS_RETIRE] = "retire",
    [BH_FAULT_CLASS_WATCH] = "watch",           [BH_FAULT_CLASS_INFO] = "info",
    [BH_FAULT_CLASS_IGNORE] = "ignore",         [BH_FAULT_CLASS_BY_ACTION] = "by_action",
};

const char *const bh_fault_ends_names[BH_FAULT_ENDS] = {
    [BH_ENDS_NOBODY] = "nobody",
    [BH_ENDS_INSTANCE] = "instance",
    [BH_ENDS_GPU] = "gpu",
};

const char *const bh_fault_then_names[BH_FAULT_THENS] = {
    [BH_THEN_NOTHING] = "nothing",       [BH_THEN_COUNT] = "count",   [BH_THEN_WATCH] = "watch",
    [BH_THEN_RESET_IDLE] = "reset_idle", [BH_THEN_DRAIN] = "drain",   [BH_THEN_RESET] = "reset",
    [BH_THEN_REBOOT] = "reboot",         [BH_THEN_RETIRE] = "retire", [BH_THEN_RECOVERED] = "mended",
};

const char *const bh_gpu_health_names[BH_HEALTHS] = {
    [BH_HEALTH_OK] = "ok",
    [BH_HEALTH_WATCHED] = "watched",
    [BH_HEALTH_DRAINING] = "draining",
    [BH_HEALTH_FENCED] = "fenced",
    [BH_HEALTH_RESETTING] = "resetting",
    [BH_HEALTH_TESTING] = "testing",
    [BH_HEALTH_BURN_IN] = "burn_in",
    [BH_HEALTH_WAITING] = "waiting",
    [BH_HEALTH_NEEDS_REBOOT] = "needs_reboot",
    [BH_HEALTH_QUARANTINED] = "quarantined",
};

const char *const bh_recovery_names[BH_RECOVERIES] = {
    [BH_RECOVERY_NONE] = "none",
    [BH_RECOVERY_RESET] = "gpu_reset",
    [BH_RECOVERY_REBOOT] = "node_reboot",
    [BH_RECOVERY_DRAIN_P2P] = "drain_p2p",
    [BH_RECOVERY_DRAIN_RESET] = "drain_and_reset",
    [BH_RECOVERY_IMEX] = "recover_imex",
};

const char *const bh_health_rule_names[BH_HEALTH_RULES] = {
    [BH_HEALTH_RULE_NONE] = "none",
#define BH_HEALTH_RULE(id, name, class, doc) [BH_HEALTH_RULE_##id] = name,
#include "tables/health_rules.tbl"
#undef BH_HEALTH_RULE
};

enum health_scope { SCOPE_EVENT, SCOPE_BOARD };

static const struct row {
    uint32_t first, last;
    struct bh_xid xid;
} rows[] = {
#define BH_XID(first, last, name, class, scope, doc)                                                         \
    { first, last, { name, doc, BH_FAULT_CLASS_##class, SCOPE_##scope == SCOPE_BOARD } },
#include "tables/xid.tbl"
#undef BH_XID
};

static const struct {
    enum bh_fault_class class;
    const char *doc;
} health_rules[BH_HEALTH_RULES] = {
    [BH_HEALTH_RULE_NONE] = { BH_FAULT_CLASS_INFO, "nothing" },
#define BH_HEALTH_RULE(id, name, class, doc) [BH_HEALTH_RULE_##id] = { BH_FAULT_CLASS_##class, doc },
#include "tables/health_rules.tbl"
#undef BH_HEALTH_RULE
};

const struct bh_xid *
bh_xid_get(uint32_t xid)
{
    static const struct bh_xid unknown = { "UNKNOWN", "an unknown XID", BH_FAULT_CLASS_UNKNOWN, false };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (xid >= rows[i].first && xid <= rows[i].last)
            return &rows[i].xid;
    return &unknown;
}

const char *
bh_health_rule_doc(enum bh_health_rule sign)
{
    return (uint32_t)sign < BH_HEALTH_RULES ? health_rules[sign].doc : health_rules[BH_HEALTH_RULE_NONE].doc;
}

/* What a class does by itself: to those that the event names, and to the GPU. */
static const struct {
    bool ends;
    enum bh_fault_then then;
} remedies[BH_FAULT_CLASSES] = {
    [BH_FAULT_CLASS_UNKNOWN] = { false, BH_THEN_WATCH },
    [BH_FAULT_CLASS_APP] = { false, BH_THEN_NOTHING },
    [BH_FAULT_CLASS_APP_REPEAT] = { false, BH_THEN_COUNT },
    [BH_FAULT_CLASS_SYMPTOM] = { false, BH_THEN_WATCH },
    [BH_FAULT_CLASS_CONTAINED] = { true, BH_THEN_RESET_IDLE },
    [BH_FAULT_CLASS_RESET] = { true, BH_THEN_RESET },
    [BH_FAULT_CLASS_RESET_IDLE] = { false, BH_THEN_RESET_IDLE },
    [BH_FAULT_CLASS_DRAIN] = { false, BH_THEN_DRAIN },
    [BH_FAULT_CLASS_REBOOT] = { true, BH_THEN_REBOOT },
    [BH_FAULT_CLASS_RETIRE] = { false, BH_THEN_RETIRE },
    [BH_FAULT_CLASS_WATCH] = { false, BH_THEN_WATCH },
    [BH_FAULT_CLASS_INFO] = { false, BH_THEN_NOTHING },
    [BH_FAULT_CLASS_IGNORE] = { false, BH_THEN_NOTHING },
    [BH_FAULT_CLASS_BY_ACTION] = { false, BH_THEN_WATCH },
};

/* A driver that wants the GPU reset, or the machine rebooted, has given up the jobs that use it. */
static const struct {
    bool obeyed, ends_gpu;
    enum bh_fault_then then;
} actions[BH_RECOVERIES] = {
    [BH_RECOVERY_RESET] = { true, true, BH_THEN_RESET },
    [BH_RECOVERY_REBOOT] = { true, true, BH_THEN_REBOOT },
    [BH_RECOVERY_DRAIN_P2P] = { true, false, BH_THEN_WATCH },
    [BH_RECOVERY_DRAIN_RESET] = { true, false, BH_THEN_DRAIN },
    [BH_RECOVERY_IMEX] = { true, false, BH_THEN_WATCH },
};

static enum bh_fault_ends
health_ends_of(const struct bh_fault_report *seen, bool board)
{
    if (!remedies[seen->xid ? bh_xid_get(seen->xid)->class : health_rules[seen->sign].class].ends)
        return BH_ENDS_NOBODY;
    return seen->instance && !board ? BH_ENDS_INSTANCE : BH_ENDS_GPU;
}

static bool health_is_apps(enum bh_fault_class class)
{
    return class == BH_FAULT_CLASS_APP || class == BH_FAULT_CLASS_APP_REPEAT;
}

struct bh_fault_remedy
bh_fault_remedy(const struct bh_fault_report *seen)
{
    const struct bh_xid *xid = bh_xid_get(seen->xid);
    enum bh_fault_class class;
    struct bh_fault_remedy remedy;

    BH_ASSERT((uint32_t)seen->sign < BH_HEALTH_RULES);
    class = seen->xid ? xid->class : health_rules[seen->sign].class;
    remedy = (struct bh_fault_remedy){ class, health_ends_of(seen, xid->board), remedies[class].then };
    /* the others of the GPU may run to their end */
    if (remedy.ends == BH_ENDS_INSTANCE && remedy.then == BH_THEN_RESET)
        remedy.then = BH_THEN_DRAIN;
    if (seen->after_cause && (health_is_apps(class) || class == BH_FAULT_CLASS_SYMPTOM || !seen->xid))
        remedy.then = BH_THEN_NOTHING;
    /* an application's fault while an older action stands is not news of the GPU */
    if (seen->recovery >= BH_RECOVERIES || !actions[seen->recovery].obeyed || health_is_apps(class))
        return remedy;
    remedy.then = actions[seen->recovery].then;
    if (actions[seen->recovery].ends_gpu)
        remedy.ends = BH_ENDS_GPU;
    return remedy;
}

bool
bh_fault_is_cause(const struct bh_fault_remedy *remedy)
{
    return remedy->then >= BH_THEN_RESET_IDLE && remedy->then <= BH_THEN_RETIRE;
}

bool
bh_fault_follows(const struct bh_fault_report *seen, uint64_t since_cause_ns)
{
    enum bh_fault_class class = seen->xid ? bh_xid_get(seen->xid)->class : health_rules[seen->sign].class;

    if (since_cause_ns >= BH_FAULT_FOLLOWS_NS)
        return false;
    if (!seen->xid)
        return seen->sign == BH_HEALTH_RULE_ECC_UNCORRECTED || seen->sign == BH_HEALTH_RULE_ECC_CORRECTED;
    return health_is_apps(class) || class == BH_FAULT_CLASS_SYMPTOM;
}
