#include "daemon/nodes/faults.h"

#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "daemon/batch/step.h"
#include "daemon/state/gpu_facts.h"
#include "model/health.h"

#define HOUR_NS 3600000000000ull

/* One report with what is known of its GPU. */
struct faults_report {
    const struct bh_msg_health *health;
    struct bh_gpu_view view;
    struct bh_gpu_facts *facts;
    struct bh_fault_report seen;
    struct bh_fault_remedy remedy;
    bh_partition_id partition; /* 0: it names none that stands */
    bh_tenant_id tenant;       /* the tenant that has it; 0: none, or several */
};

static struct bh_entry
faults_entry_of(const struct faults_report *report)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = report->health->xid ? "node.xid" : "node.health",
                              .obj = { "gpu", report->view.gpu.v } };

    entry.tenant = report->tenant.v;
    return entry;
}

/* ---- whether the driver answers ---- */

static bh_rc
faults_set_fenced(struct bh_core *core, const struct faults_report *report, bool fenced, struct bh_err *err)
{
    bool keeps = fenced && report->health->fault == BH_FAULT_ISOLATION;
    const struct bh_gpu_view *view = &report->view;
    struct bh_event event = { .kind = BH_EV_GPU };
    struct bh_entry entry = faults_entry_of(report);

    if (fenced == view->fenced && keeps == view->keeps)
        return BH_OK;
    if (!fenced && report->facts->unread) /* its inventory gives it back: what stands on it is unknown */
        return BH_OK;
    event.u.gpu = bh_view_gpu_report(view);
    event.u.gpu.fenced = fenced;
    event.u.gpu.keeps = keeps;
    if (fenced)
        bh_log(GPU_FENCED, BH_STR("gpu", report->health->gpu), BH_STR("why", report->health->why));
    else
        bh_log(GPU_ANSWERS, BH_STR("gpu", report->health->gpu));
    return bh_core_step(core, &entry, &event, err);
}

static bh_rc
send_fault(struct bh_core *core, const struct faults_report *report, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_HEALTH,
                              .u.health = { .gpu = report->view.gpu,
                                            .partition = report->partition,
                                            .ends = report->remedy.ends,
                                            .then = report->remedy.then,
                                            .xid = report->health->xid,
                                            .sign = report->seen.sign,
                                            .recovery = report->seen.recovery } };
    struct bh_entry entry = faults_entry_of(report);
    bh_rc rc = bh_core_step(core, &entry, &event, err);

    return rc == BH_CONFLICT || rc == BH_NOT_FOUND ? BH_OK : rc; /* it is too late for it */
}

/* It answers, and the driver no longer wants a reboot. */
static bh_rc
faults_report_recovered(struct bh_core *core, struct faults_report *report, struct bh_err *err)
{
    bool wanted = report->seen.recovery < BH_RECOVERIES && report->seen.recovery != BH_RECOVERY_NONE;

    if (report->view.health != BH_HEALTH_NEEDS_REBOOT || wanted)
        return BH_OK;
    report->remedy = (struct bh_fault_remedy){ .then = BH_THEN_RECOVERED };
    return send_fault(core, report, err);
}

/* ---- faults ---- */

/* The tenant of the partition; of the whole GPU, when one tenant has all of it. */
static void
faults_find_tenant(const struct bh_core *core, struct faults_report *report)
{
    struct bh_partition_view partition;
    uint32_t cursor = 0;
    bool several = false, stands = false;

    while (bh_view_next_partition(core->state.engine, &cursor, &partition)) {
        bool named =
            report->health->partition && partition.partition.partition.v == report->health->partition;

        if (!bh_same(partition.partition.gpu, report->view.gpu))
            continue;
        stands = stands || named;
        if (!partition.lease.v || (report->health->partition && !named))
            continue;
        several = several || (report->tenant.v && !bh_same(report->tenant, partition.tenant));
        report->tenant = partition.tenant;
    }
    if (several)
        report->tenant.v = 0;
    if (stands)
        report->partition.v = report->health->partition;
}

/* Whether one more may be recorded in this hour; `ret_last`: none after it may. */
static bool
faults_within(struct bh_fault_count *count, uint64_t now_ns, uint32_t most, bool *ret_last)
{
    if (count->began_ns == 0 || now_ns - count->began_ns >= HOUR_NS)
        *count = (struct bh_fault_count){ now_ns, 0 };
    *ret_last = count->count + 1 == most;
    if (count->count == most)
        return false;
    count->count++;
    return true;
}

/* The tenant's count; that of one whose hour is over makes room. */
static struct bh_fault_count *
faults_count_of(struct bh_core *core, uint32_t tenant)
{
    struct bh_tenant_faults *oldest = &core->tenant_faults[0];

    for (uint32_t i = 0; i < BH_FAULT_TENANTS_MAX; i++) {
        struct bh_tenant_faults *at = &core->tenant_faults[i];

        if (at->tenant == tenant)
            return &at->faults;
        if (at->faults.began_ns < oldest->faults.began_ns)
            oldest = at;
    }
    *oldest = (struct bh_tenant_faults){ .tenant = tenant };
    return &oldest->faults;
}

static bool
faults_is_apps(const struct faults_report *report)
{
    return report->remedy.class == BH_FAULT_CLASS_APP || report->remedy.class == BH_FAULT_CLASS_APP_REPEAT;
}

/* Faults that change nothing, or next to nothing, may come by the thousand: by what a tenant
 * runs, or by a GPU that is dying. */
static bool
faults_may_record(struct bh_core *core, struct faults_report *report)
{
    uint64_t now_ns = bh_core_now(core);
    bool last, owned = faults_is_apps(report) && report->tenant.v, capacity;

    if (bh_fault_is_cause(&report->remedy))
        return true;
    capacity =
        owned ? faults_within(faults_count_of(core, report->tenant.v), now_ns, BH_FAULTS_TENANT_HOUR, &last)
              : faults_within(&report->facts->minor, now_ns, BH_FAULTS_GPU_HOUR, &last);
    if (owned && capacity && last)
        bh_log(TENANT_FAULTS, BH_U64("tenant", report->tenant.v), BH_U64("faults", BH_FAULTS_TENANT_HOUR),
               BH_STR("gpu", report->health->gpu));
    return capacity;
}

/* A GPU that is being handled already, and that no lease has, reports nothing new. */
static bool
faults_is_redundant(const struct faults_report *report)
{
    enum bh_gpu_health health = report->view.health;

    return (health == BH_HEALTH_FENCED || health == BH_HEALTH_RESETTING || health == BH_HEALTH_QUARANTINED)
           && report->view.used.compute == 0 && report->view.used.memory == 0
           && report->remedy.then != BH_THEN_REBOOT && report->remedy.then != BH_THEN_RETIRE;
}

static bh_rc
faults_receive_fault(struct bh_core *core, struct faults_report *report, struct bh_err *err)
{
    uint64_t at_ns = report->health->at_ns ? report->health->at_ns : bh_core_now(core);
    uint64_t cause_ns = report->facts->cause_ns;

    faults_find_tenant(core, report);
    report->seen.instance = report->partition.v && report->health->gi != UINT32_MAX;
    report->seen.after_cause =
        cause_ns && bh_fault_follows(&report->seen, at_ns > cause_ns ? at_ns - cause_ns : 0);
    report->remedy = bh_fault_remedy(&report->seen);
    if (bh_fault_is_cause(&report->remedy))
        report->facts->cause_ns = at_ns;
    if (faults_is_redundant(report) || !faults_may_record(core, report))
        return BH_OK;
    if (report->health->xid)
        bh_log(XID, BH_STR("gpu", report->health->gpu), BH_U64("xid", report->health->xid),
               BH_STR("class", bh_fault_class_names[report->remedy.class]));
    return send_fault(core, report, err);
}

bh_rc
bh_faults_receive(struct bh_core *core, bh_node_id node, const struct bh_msg_health *health,
                  struct bh_err *err)
{
    struct faults_report report = { .health = health };
    uint32_t id = bh_catalog_find(core->catalog, BH_NAME_GPU, health->gpu);
    bh_rc rc;

    if (!id || !bh_view_gpu(core->state.engine, (bh_gpu_id){ id }, &report.view)
        || !bh_same(report.view.node, node))
        return BH_OK;
    report.facts = bh_gpu_facts_of(core, report.view.gpu);
    report.seen = (struct bh_fault_report){ .xid = health->fault == BH_FAULT_XID ? health->xid : 0,
                                            .recovery = health->recovery,
                                            .sign = health->fault == BH_FAULT_HEALTH_RULE
                                                            && health->sign < BH_HEALTH_RULES
                                                        ? (enum bh_health_rule)health->sign
                                                        : BH_HEALTH_RULE_NONE };
    if (bh_fault_fences(health->fault))
        return faults_set_fenced(core, &report, true, err);
    if (health->fault == BH_FAULT_NONE) {
        rc = faults_set_fenced(core, &report, false, err);
        return rc == BH_OK ? faults_report_recovered(core, &report, err) : rc;
    }
    if (report.seen.xid == 0 && report.seen.sign == BH_HEALTH_RULE_NONE)
        return BH_OK;
    if (report.seen.sign == BH_HEALTH_RULE_RECOVERY && health->recovery == BH_RECOVERY_NONE)
        return faults_report_recovered(core, &report, err);
    return faults_receive_fault(core, &report, err);
}
