#include "engine/state/event.h"

#include "base/attr.h"

/* Names in records and journals: "piece" is their old word for a partition, "shape" for one that
 * is carved ahead.  A format keeps its words. */

const char *const bh_event_names[BH_EVENT_KINDS] = {
    [BH_EV_TICK] = "tick",
    [BH_EV_TENANT] = "tenant",
    [BH_EV_TENANT_REMOVE] = "tenant_remove",
    [BH_EV_SKU] = "sku",
    [BH_EV_SKU_REMOVE] = "sku_remove",
    [BH_EV_NODE] = "node",
    [BH_EV_GPU] = "gpu",
    [BH_EV_CARVED] = "carved",
    [BH_EV_DESTROYED] = "destroyed",
    [BH_EV_PARTITION_GONE] = "piece_gone",
    [BH_EV_STARTED] = "started",
    [BH_EV_SUSPENDED] = "suspended",
    [BH_EV_RESUMED] = "resumed",
    [BH_EV_ENDED] = "ended",
    [BH_EV_SUBMIT] = "submit",
    [BH_EV_CANCEL] = "cancel",
    [BH_EV_RELEASE] = "release",
    [BH_EV_SETTINGS] = "settings",
    [BH_EV_ADVICE] = "outlook",
    [BH_EV_MOVE] = "move",
    [BH_EV_LAYOUT] = "standing",
    [BH_EV_HEALTH] = "health",
    [BH_EV_SERVICED] = "serviced",
    [BH_EV_CORDON] = "cordon",
    [BH_EV_CHECKED] = "checked",
};

static const char *const quota_scope_names[BH_QUOTA_SCOPES] = {
    [BH_QUOTA_SKU] = "sku",
    [BH_QUOTA_MODEL] = "model",
};

const char *const bh_held_names[BH_HELDS] = {
    [BH_HELD_NOT] = "no",
    [BH_HELD_CORDONED] = "cordon",
    [BH_HELD_DRAINING] = "drain",
    [BH_HELD_DRAIN_NOW] = "drain_now",
};

static const char *const advice_names[BH_ADVICE_OFS] = {
    [BH_ADVICE_TENANT] = "tenant",
    [BH_ADVICE_NODE] = "node",
    [BH_ADVICE_PARTITIONS] = "pieces",
};

const char *const bh_decision_names[BH_DECISION_KINDS] = {
    [BH_DO_PLACE] = "place",     [BH_DO_RESUME] = "resume",       [BH_DO_SUSPEND] = "suspend",
    [BH_DO_STOP] = "stop",       [BH_DO_CLAIM] = "claim",         [BH_DO_UNCLAIM] = "unclaim",
    [BH_DO_RESERVE] = "reserve", [BH_DO_UNRESERVE] = "unreserve", [BH_DO_WARM] = "shape",
    [BH_DO_CLEAR] = "clear",
};

static const char *const outcome_names[] = {
    [BH_OUTCOME_OK] = "ok",
    [BH_OUTCOME_FAILED] = "failed",
    [BH_OUTCOME_CONTEXT_HELD] = "context_held",
    [BH_OUTCOME_UNCLEAN] = "unclean",
};

/* Ids are one-member structs, written as plain integers. */
#define ID32(type, member) BH_F(type, member, BH_FIELD_U32)
#define ID64(type, member) BH_F(type, member, BH_FIELD_U64)

static const struct bh_field defrag_rows[] = {
    BH_F(struct bh_defrag, gain_percent, BH_FIELD_U32),
    BH_F(struct bh_defrag, lost_gpu_s, BH_FIELD_U64),
    BH_F_ENUM(struct bh_defrag, mode, bh_defrag_mode_names),
    BH_F(struct bh_defrag, moves, BH_FIELD_U32),
    BH_F(struct bh_defrag, rest_ns, BH_FIELD_NS),
};
static const struct bh_fields defrag_fields = BH_FIELDS("defrag", struct bh_defrag, defrag_rows);

static const struct bh_field settings_rows[] = {
    BH_F(struct bh_ev_settings, assumed_run_ns, BH_FIELD_NS),
    BH_F(struct bh_ev_settings, backfill, BH_FIELD_BOOL),
    BH_F(struct bh_ev_settings, burn_in_ns, BH_FIELD_NS),
    BH_F(struct bh_ev_settings, defrag, BH_FIELD_STRUCT, .of = &defrag_fields),
    BH_F(struct bh_ev_settings, half_life_ns, BH_FIELD_NS, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_ev_settings, hotspots, BH_FIELD_BOOL),
    BH_F_ENUM(struct bh_ev_settings, lending, bh_lending_names),
    BH_F(struct bh_ev_settings, min_runtime_ns, BH_FIELD_NS),
    BH_F_ENUM(struct bh_ev_settings, order, bh_queue_order_names),
    BH_F(struct bh_ev_settings, preshape, BH_FIELD_BOOL),
    BH_F(struct bh_ev_settings, spread_kinds, BH_FIELD_BOOL),
};

static const struct bh_field quota_rows[] = {
    BH_F(struct bh_tenant_quota, guarantee, BH_FIELD_U64),
    BH_F(struct bh_tenant_quota, limit, BH_FIELD_U64, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_tenant_quota, of, BH_FIELD_U32),
    BH_F_ENUM(struct bh_tenant_quota, scope, quota_scope_names),
    BH_F(struct bh_tenant_quota, withhold, BH_FIELD_U64),
};
static const struct bh_fields quota_fields = BH_FIELDS("quota", struct bh_tenant_quota, quota_rows);

static const struct bh_field budget_rows[] = {
    BH_F(struct bh_budget, gpu_s, BH_FIELD_U64, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_budget, money, BH_FIELD_U64, .flags = BH_FIELD_ALWAYS),
    BH_F_ENUM(struct bh_budget, period, bh_period_names),
};
static const struct bh_fields budget_fields = BH_FIELDS("budget", struct bh_budget, budget_rows);

static const struct bh_field tenant_rows[] = {
    BH_F_ENUM(struct bh_ev_tenant, boundary, bh_boundary_names),
    BH_F(struct bh_ev_tenant, budget, BH_FIELD_STRUCT, .of = &budget_fields),
    BH_F(struct bh_ev_tenant, dedicated_nodes, BH_FIELD_BOOL),
    BH_F(struct bh_ev_tenant, guarantee, BH_FIELD_U64),
    BH_F_ENUM(struct bh_ev_tenant, kind, bh_tenant_kind_names),
    BH_F(struct bh_ev_tenant, limit, BH_FIELD_U64, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_ev_tenant, min_runtime_ns, BH_FIELD_NS),
    ID32(struct bh_ev_tenant, parent),
    BH_F_ARRAY(struct bh_ev_tenant, quotas, quota_count, quota_fields, BH_TENANT_QUOTAS_MAX),
    ID32(struct bh_ev_tenant, tenant),
    BH_F(struct bh_ev_tenant, user_limit, BH_FIELD_U64),
    BH_F(struct bh_ev_tenant, weight, BH_FIELD_U32),
    BH_F(struct bh_ev_tenant, withhold, BH_FIELD_U64),
};

static const struct bh_field sku_model_rows[] = {
    BH_F(struct bh_sku_model, model, BH_FIELD_U32),
    BH_F(struct bh_sku_model, profile, BH_FIELD_U32),
};
static const struct bh_fields sku_model_fields = BH_FIELDS("sku_model", struct bh_sku_model, sku_model_rows);

static const struct bh_field sku_rows[] = {
    BH_F_ENUM(struct bh_ev_sku, grade, bh_grade_names),
    BH_F_ARRAY(struct bh_ev_sku, models, model_count, sku_model_fields, BH_SKU_MODELS_MAX),
    BH_F(struct bh_ev_sku, price, BH_FIELD_U64),
    ID32(struct bh_ev_sku, sku),
};

static const struct bh_field node_rows[] = {
    BH_F(struct bh_ev_node, cpu_milli, BH_FIELD_U32),
    BH_F(struct bh_ev_node, memory_mib, BH_FIELD_U32),
    ID32(struct bh_ev_node, node),
    BH_F(struct bh_ev_node, up, BH_FIELD_BOOL),
};

static const struct bh_field gpu_rows[] = {
    BH_F(struct bh_ev_gpu, cordoned, BH_FIELD_BOOL),
    BH_F(struct bh_ev_gpu, fenced, BH_FIELD_BOOL),
    ID32(struct bh_ev_gpu, gpu),
    BH_F(struct bh_ev_gpu, keeps, BH_FIELD_BOOL),
    BH_F_ENUM(struct bh_ev_gpu, layout, bh_pool_layout_names),
    BH_F(struct bh_ev_gpu, link, BH_FIELD_U32),
    BH_F(struct bh_ev_gpu, lone_carve, BH_FIELD_BOOL),
    BH_F(struct bh_ev_gpu, managed, BH_FIELD_BOOL),
    BH_F(struct bh_ev_gpu, mig_capable, BH_FIELD_BOOL),
    BH_F(struct bh_ev_gpu, model, BH_FIELD_U32),
    ID32(struct bh_ev_gpu, node),
    BH_F(struct bh_ev_gpu, numa, BH_FIELD_U32),
    BH_F(struct bh_ev_gpu, share_limit, BH_FIELD_U32),
};

static const struct bh_field partition_rows[] = {
    BH_F_ENUM(struct bh_ev_partition, outcome, outcome_names),
    ID64(struct bh_ev_partition, partition),
    BH_F(struct bh_ev_partition, rc, BH_FIELD_U32),
};

static const struct bh_field lease_rows[] = {
    BH_F(struct bh_ev_lease, at_ns, BH_FIELD_NS),
    BH_F(struct bh_ev_lease, elsewhere, BH_FIELD_BOOL),
    ID64(struct bh_ev_lease, lease),
    BH_F_ENUM(struct bh_ev_lease, outcome, outcome_names),
    BH_F(struct bh_ev_lease, rc, BH_FIELD_U32),
    BH_F(struct bh_ev_lease, refused, BH_FIELD_BOOL),
    BH_F(struct bh_ev_lease, scratch, BH_FIELD_BOOL),
};

static const struct bh_field ended_rows[] = {
    BH_F(struct bh_ev_ended, at_ns, BH_FIELD_NS),
    BH_F_ENUM(struct bh_ev_ended, cause, bh_end_cause_names),
    BH_F(struct bh_ev_ended, completed, BH_FIELD_BOOL),
    BH_F(struct bh_ev_ended, elsewhere, BH_FIELD_BOOL),
    BH_F(struct bh_ev_ended, ended_ns, BH_FIELD_NS),
    BH_F(struct bh_ev_ended, exit_status, BH_FIELD_I32),
    ID64(struct bh_ev_ended, lease),
    BH_F(struct bh_ev_ended, unasked, BH_FIELD_BOOL),
};

static const struct bh_field submit_rows[] = {
    BH_F(struct bh_ev_submit, checkpoint_signal, BH_FIELD_U32),
    BH_F_ENUM(struct bh_ev_submit, contract, bh_contract_names),
    BH_F(struct bh_ev_submit, count, BH_FIELD_U32),
    BH_F(struct bh_ev_submit, cpu_milli, BH_FIELD_U32),
    BH_F(struct bh_ev_submit, deadline_ns, BH_FIELD_NS),
    BH_F(struct bh_ev_submit, gang, BH_FIELD_U32),
    BH_F(struct bh_ev_submit, grace_ns, BH_FIELD_NS),
    BH_F(struct bh_ev_submit, hold, BH_FIELD_BOOL),
    ID64(struct bh_ev_submit, job),
    BH_F_ENUM(struct bh_ev_submit, kind, bh_job_kind_names),
    BH_F(struct bh_ev_submit, memory_mib, BH_FIELD_U32),
    ID32(struct bh_ev_submit, principal),
    BH_F_ENUM(struct bh_ev_submit, priority, bh_priority_names),
    ID32(struct bh_ev_submit, sku),
    BH_F(struct bh_ev_submit, spec, BH_FIELD_HEX),
    ID32(struct bh_ev_submit, tenant),
    BH_F(struct bh_ev_submit, time_limit_ns, BH_FIELD_NS),
};

static const struct bh_field advice_rows[] = {
    BH_F(struct bh_ev_advice, expected, BH_FIELD_U64),
    BH_F(struct bh_ev_advice, hot, BH_FIELD_BOOL),
    ID32(struct bh_ev_advice, node),
    BH_F_ENUM(struct bh_ev_advice, of, advice_names),
    BH_F(struct bh_ev_advice, profile, BH_FIELD_U32),
    BH_F(struct bh_ev_advice, ready, BH_FIELD_U32),
    ID32(struct bh_ev_advice, tenant),
};

static const struct bh_field job_rows[] = {
    BH_F(struct bh_ev_job, at_once, BH_FIELD_BOOL),
    BH_F_ENUM(struct bh_ev_job, cause, bh_end_cause_names),
    ID64(struct bh_ev_job, job),
};

static const struct bh_field moved_rows[] = {
    ID64(struct bh_moved, job),
    ID64(struct bh_moved, lease),
};
static const struct bh_fields moved_fields = BH_FIELDS("moved", struct bh_moved, moved_rows);

static const struct bh_field move_place_rows[] = {
    ID32(struct bh_move_placement, gpu),
    BH_F(struct bh_move_placement, profile, BH_FIELD_U32),
    BH_F(struct bh_move_placement, start, BH_FIELD_U32),
};
static const struct bh_fields move_place_fields =
    BH_FIELDS("place", struct bh_move_placement, move_place_rows);

static const struct bh_field move_rows[] = {
    BH_F(struct bh_ev_move, cost_gpu_ms, BH_FIELD_U64),
    ID64(struct bh_ev_move, for_job),
    BH_F(struct bh_ev_move, gain_gpu_ms, BH_FIELD_U64),
    BH_F_ARRAY(struct bh_ev_move, moves, move_count, moved_fields, BH_MOVES_MAX),
    BH_F_ARRAY_AS(struct bh_ev_move, placements, "places", placement_count, move_place_fields,
                  BH_MOVE_PLACEMENTS_MAX),
};

static const char *const layout_mode_names[BH_LAYOUT_MODES] = {
    [BH_LAYOUT_UNDECLARED] = "not_said",
    [BH_LAYOUT_DECLARED] = "declared",
    [BH_LAYOUT_ONCE] = "once",
};

static const struct bh_field layout_partition_rows[] = {
    BH_F(struct bh_ev_layout_partition, profile, BH_FIELD_U32),
    BH_F(struct bh_ev_layout_partition, start, BH_FIELD_U32),
};
static const struct bh_fields layout_partition_fields =
    BH_FIELDS("standing_piece", struct bh_ev_layout_partition, layout_partition_rows);

static const struct bh_field layout_rows[] = {
    BH_F(struct bh_ev_layout, apply, BH_FIELD_U32),
    ID32(struct bh_ev_layout, gpu),
    BH_F_ENUM(struct bh_ev_layout, mode, layout_mode_names),
    BH_F_ARRAY_AS(struct bh_ev_layout, partitions, "pieces", partition_count, layout_partition_fields,
                  BH_LAYOUT_MAX),
};

static const struct bh_field health_rows[] = {
    BH_F_ENUM(struct bh_ev_health, ends, bh_fault_ends_names),
    ID32(struct bh_ev_health, gpu),
    ID64(struct bh_ev_health, partition),
    BH_F(struct bh_ev_health, recovery, BH_FIELD_U32),
    BH_F(struct bh_ev_health, sign, BH_FIELD_U32),
    BH_F_ENUM(struct bh_ev_health, then, bh_fault_then_names),
    BH_F(struct bh_ev_health, xid, BH_FIELD_U32),
};

static const struct bh_field serviced_rows[] = {
    ID32(struct bh_ev_serviced, gpu),
    BH_F_ENUM(struct bh_ev_serviced, outcome, outcome_names),
    BH_F(struct bh_ev_serviced, rc, BH_FIELD_U32),
};

static const struct bh_field cordon_rows[] = {
    BH_F(struct bh_ev_cordon, clear_fault, BH_FIELD_BOOL),
    ID32(struct bh_ev_cordon, gpu),
    BH_F_ENUM(struct bh_ev_cordon, held, bh_held_names),
    ID32(struct bh_ev_cordon, node),
};

static const struct bh_field checked_rows[] = {
    ID32(struct bh_ev_checked, node),
    BH_F_ENUM(struct bh_ev_checked, outcome, outcome_names),
};

static const struct bh_fields tenant_fields = BH_FIELDS("tenant", struct bh_ev_tenant, tenant_rows);
static const struct bh_fields sku_fields = BH_FIELDS("sku", struct bh_ev_sku, sku_rows);
static const struct bh_fields node_fields = BH_FIELDS("node", struct bh_ev_node, node_rows);
static const struct bh_fields gpu_fields = BH_FIELDS("gpu", struct bh_ev_gpu, gpu_rows);
static const struct bh_fields partition_event_fields =
    BH_FIELDS("piece", struct bh_ev_partition, partition_rows);
static const struct bh_fields lease_fields = BH_FIELDS("lease", struct bh_ev_lease, lease_rows);
static const struct bh_fields ended_fields = BH_FIELDS("ended", struct bh_ev_ended, ended_rows);
static const struct bh_fields submit_fields = BH_FIELDS("submit", struct bh_ev_submit, submit_rows);
static const struct bh_fields job_fields = BH_FIELDS("job", struct bh_ev_job, job_rows);

static const struct bh_fields move_fields = BH_FIELDS("move", struct bh_ev_move, move_rows);
static const struct bh_fields layout_fields = BH_FIELDS("standing", struct bh_ev_layout, layout_rows);
static const struct bh_fields settings_fields = BH_FIELDS("settings", struct bh_ev_settings, settings_rows);

static const struct bh_fields health_fields = BH_FIELDS("health", struct bh_ev_health, health_rows);
static const struct bh_fields serviced_fields = BH_FIELDS("serviced", struct bh_ev_serviced, serviced_rows);
static const struct bh_fields cordon_fields = BH_FIELDS("cordon", struct bh_ev_cordon, cordon_rows);

static const struct bh_fields checked_fields = BH_FIELDS("checked", struct bh_ev_checked, checked_rows);

static const struct bh_fields advice_fields = BH_FIELDS("outlook", struct bh_ev_advice, advice_rows);

const struct bh_fields *
bh_event_fields(enum bh_event_kind kind)
{
    static const struct bh_fields *const fields[BH_EVENT_KINDS] = {
        [BH_EV_TENANT] = &tenant_fields,
        [BH_EV_TENANT_REMOVE] = &tenant_fields,
        [BH_EV_SKU] = &sku_fields,
        [BH_EV_SKU_REMOVE] = &sku_fields,
        [BH_EV_NODE] = &node_fields,
        [BH_EV_GPU] = &gpu_fields,
        [BH_EV_CARVED] = &partition_event_fields,
        [BH_EV_DESTROYED] = &partition_event_fields,
        [BH_EV_PARTITION_GONE] = &partition_event_fields,
        [BH_EV_STARTED] = &lease_fields,
        [BH_EV_SUSPENDED] = &lease_fields,
        [BH_EV_RESUMED] = &lease_fields,
        [BH_EV_ENDED] = &ended_fields,
        [BH_EV_SUBMIT] = &submit_fields,
        [BH_EV_CANCEL] = &job_fields,
        [BH_EV_RELEASE] = &job_fields,
        [BH_EV_SETTINGS] = &settings_fields,
        [BH_EV_ADVICE] = &advice_fields,
        [BH_EV_MOVE] = &move_fields,
        [BH_EV_LAYOUT] = &layout_fields,
        [BH_EV_HEALTH] = &health_fields,
        [BH_EV_SERVICED] = &serviced_fields,
        [BH_EV_CORDON] = &cordon_fields,
        [BH_EV_CHECKED] = &checked_fields,
    };

    return (uint32_t)kind < BH_EVENT_KINDS ? fields[kind] : NULL;
}

static const struct bh_field decision_partition_rows[] = {
    BH_F(struct bh_partition, carve, BH_FIELD_BOOL),
    ID32(struct bh_partition, gpu),
    ID64(struct bh_partition, partition),
    BH_F(struct bh_partition, profile, BH_FIELD_U32),
    BH_F(struct bh_partition, start, BH_FIELD_U32),
};
static const struct bh_fields decision_partition_fields =
    BH_FIELDS("piece", struct bh_partition, decision_partition_rows);

static const struct bh_field decision_rows[] = {
    BH_F(struct bh_decision, at_ns, BH_FIELD_NS),
    BH_F_ENUM(struct bh_decision, cause, bh_end_cause_names),
    ID64(struct bh_decision, for_job),
    ID64(struct bh_decision, job),
    BH_F_ENUM(struct bh_decision, kind, bh_decision_names, .flags = BH_FIELD_ALWAYS),
    ID64(struct bh_decision, lease),
    BH_F(struct bh_decision, member, BH_FIELD_U32),
    BH_F_ARRAY_AS(struct bh_decision, partitions, "pieces", partition_count, decision_partition_fields,
                  BH_JOB_COUNT_MAX),
};
const struct bh_fields bh_decision_fields = BH_FIELDS("decision", struct bh_decision, decision_rows);
