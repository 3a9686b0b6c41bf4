#include "daemon/nodes/orders.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "api/documents/job_document.h"
#include "base/assert.h"
#include "base/num.h"
#include "daemon/batch/access.h"
#include "daemon/batch/record.h"
#include "daemon/batch/step.h"
#include "daemon/nodes/carried.h"
#include "daemon/nodes/failures.h"
#include "model/spec.h"
#include "policy/egress.h"

#define LATE_LEAST_NS (10 * BH_NS_PER_S)

/* ---- effects to messages ---- */

static const char *
orders_gpu_uuid(const struct bh_core *core, bh_gpu_id gpu)
{
    const char *uuid = bh_catalog_name_of(core->catalog, BH_NAME_GPU, gpu.v);

    return uuid ? uuid : "";
}

/* What kind of partition, with all that the node needs of a share. */
static void
orders_fill_kind(const struct bh_core *core, const struct bh_partition *partition, struct bh_msg_carve *carve)
{
    struct bh_gpu_view gpu = { 0 };
    enum bh_gpu_model model;
    struct bh_share share;

    (void)bh_view_gpu(core->state.engine, partition->gpu, &gpu);
    model = (enum bh_gpu_model)gpu.model;
    bh_partition_name(model, partition->profile, carve->profile);
    if (!bh_share_get((bh_profile_id){ partition->profile }, &share))
        return;
    carve->cap_bytes = bh_share_cap_bytes(model, &share);
    carve->context_bytes = bh_share_context_bytes(model);
    carve->weight = share.compute;
    carve->hard = share.mode == BH_SHARE_HARD;
    carve->latency = share.mode == BH_SHARE_LATENCY;
    carve->multiplexed = share.mode == BH_SHARE_MULTIPLEXED;
}

static void *
orders_new_message(struct bh_arena *arena, uint32_t number)
{
    void *message = bh_arena_alloc(arena, bh_message_fields(number)->size);

    BH_ASSERT(message);
    return message;
}

static const void *
orders_carve_message(const struct bh_core *core, const struct bh_effect *effect, struct bh_arena *arena)
{
    struct bh_msg_carve *carve = orders_new_message(arena, BH_MSG_CARVE);
    struct bh_job_view view;

    carve->order = effect->order;
    carve->partition = effect->partition.partition.v;
    carve->start = effect->partition.start;
    carve->tenant = effect->tenant.v;
    if (bh_view_lease(core->state.engine, effect->lease, &view)) {
        carve->tenant = view.tenant.v;
        carve->job = view.job.v;
    }
    snprintf(carve->gpu, sizeof carve->gpu, "%s", orders_gpu_uuid(core, effect->partition.gpu));
    orders_fill_kind(core, &effect->partition, carve);
    return carve;
}

/* The submitter's own group: files it gets to write are made with it. */
static uint32_t
orders_primary_group(uint32_t uid)
{
    char memory[4096];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(uid, &entry, memory, sizeof memory, &found) == 0 && found)
        return found->pw_gid;
    return uid;
}

static void
orders_fill_identity(struct bh_msg_start *start, const struct bh_directory *dir,
                     const struct bh_job_view *view)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(dir, view->tenant);
    const struct bh_dir_principal *principal = bh_directory_principal(dir, view->principal);
    const struct bh_dir_sku *sku = bh_directory_sku(dir, view->sku);

    start->submitter_uid = principal ? principal->uid : UINT32_MAX;
    start->submitter_gid = orders_primary_group(start->submitter_uid);
    snprintf(start->tenant, sizeof start->tenant, "%s", tenant ? tenant->path : "");
    snprintf(start->user, sizeof start->user, "%s", principal ? principal->name : "");
    snprintf(start->sku, sizeof start->sku, "%s", sku ? sku->name : "");
    start->managed = sku ? sku->managed : BH_MANAGED_CHARGE;
    start->over_cap = sku ? sku->over_cap : BH_OVER_CAP_WARN;
    start->over_time = sku ? sku->over_time : BH_OVER_TIME_WARN;
}

/* Folders by their paths, datasets by the paths that they have now; they are all there. */
static void
orders_fill_mounts(struct bh_msg_start *start, const struct bh_directory *dir, const struct bh_job_spec *spec,
                   struct bh_arena *arena)
{
    const struct bh_mount_spec *from = spec->mounts.items;
    struct bh_msg_mount *to = bh_arena_alloc(arena, spec->mounts.count * sizeof *to + 1);

    BH_ASSERT(to);
    for (uint32_t i = 0; i < spec->mounts.count; i++) {
        const struct bh_dataset *dataset =
            from[i].dataset ? bh_datasets_find(&dir->datasets, from[i].dataset) : NULL;
        char *memory = bh_arena_alloc(arena, BH_MOUNT_TARGET_MAX);

        BH_ASSERT(memory && (dataset || from[i].source));
        to[i] = (struct bh_msg_mount){ dataset ? bh_arena_strdup(arena, dataset->text->path) : from[i].source,
                                       bh_mount_target(&from[i], memory), from[i].write };
        BH_ASSERT(to[i].source);
    }
    start->mounts = (struct bh_list){ to, spec->mounts.count };
}

static bh_rc
orders_read_spec(const struct bh_core *core, const struct bh_job_view *view, struct bh_arena *arena,
                 struct bh_job_spec *ret_spec, struct bh_err *err)
{
    struct bh_digest digest;
    bh_rc rc;

    memcpy(digest.bytes, view->spec, sizeof digest.bytes);
    rc = bh_job_document_spec(core->ring.keys, &digest, arena, ret_spec, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "specification of job %" PRIu64, view->job.v);
}

/* What it reaches is what the policies say now. */
static bh_rc
orders_fill_network(struct bh_msg_start *start, const struct bh_directory *dir,
                    const struct bh_job_spec *spec, struct bh_arena *arena, struct bh_err *err)
{
    struct bh_msg_network *network = &start->network;
    struct bh_egress egress = { .allow = { NULL, 0 } };
    bh_rc rc = BH_OK;

    if (spec->network == BH_NETWORK_EGRESS)
        rc = bh_egress_of(&dir->admission, start->tenant, arena, &egress, err);
    network->mode = spec->network;
    network->name = spec->name ? spec->name : "";
    network->allow = egress.allow;
    network->deny = egress.deny;
    network->resolvers = egress.resolvers;
    return rc;
}

static bh_rc
orders_start_message(struct bh_core *core, const struct bh_effect *effect, struct bh_arena *arena,
                     const void **ret_message, struct bh_err *err)
{
    struct bh_msg_start *start = orders_new_message(arena, BH_MSG_START);
    const struct bh_directory *dir;
    struct bh_job_numbers numbers;
    struct bh_job_view view;
    struct bh_job_spec spec;
    bh_rc rc;

    if (!bh_view_lease(core->state.engine, effect->lease, &view))
        return bh_err_set(err, BH_NOT_FOUND, "lease %" PRIu64 " is gone", effect->lease.v);
    rc = orders_read_spec(core, &view, arena, &spec, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_spec_numbers(&spec, &numbers, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_access_retry(core, effect, &view, &spec, err);
    if (rc != BH_OK)
        return rc;
    dir = bh_catalog_get(core->catalog);
    start->order = effect->order;
    start->lease = effect->lease.v;
    start->job = effect->job.v;
    start->epoch = bh_epochs_of_job(&core->epochs, effect->job.v);
    start->tenant_id = view.tenant.v;
    start->args = spec.args;
    start->env = spec.env;
    start->image = spec.image ? spec.image : "host";
    start->cwd = spec.cwd ? spec.cwd : "";
    start->pids = numbers.pids;
    start->scratch_bytes = numbers.scratch_bytes;
    start->stdio = spec.tty ? BH_STDIO_TERMINAL : spec.input ? BH_STDIO_PIPE : BH_STDIO_NONE;
    start->gang = view.gang;
    start->member = view.member;
    start->partition_count = view.partition_count;
    for (uint32_t i = 0; i < view.partition_count; i++)
        start->partitions[i].partition = view.partitions[i].partition.v;
    orders_fill_mounts(start, dir, &spec, arena);
    orders_fill_identity(start, dir, &view);
    start->boundary = bh_view_strongest(core->state.engine, view.tenant);
    start->cpu_milli = view.cpu_milli;
    start->memory_bytes = (uint64_t)view.memory_mib << 20;
    start->network.bandwidth_bps = numbers.bandwidth_bps;
    if (spec.network != BH_NETWORK_NONE)
        rc = orders_fill_network(start, dir, &spec, arena, err);
    bh_catalog_put(core->catalog, dir);
    *ret_message = start;
    return rc;
}

static const void *
orders_lease_message(const struct bh_effect *effect, struct bh_arena *arena)
{
    struct bh_msg_lease *lease = orders_new_message(arena, BH_MSG_SUSPEND);

    *lease = (struct bh_msg_lease){ effect->order, effect->lease.v };
    return lease;
}

static const void *
orders_stop_message(const struct bh_effect *effect, struct bh_arena *arena)
{
    struct bh_msg_stop *stop = orders_new_message(arena, BH_MSG_STOP);

    *stop = (struct bh_msg_stop){ effect->order, effect->lease.v, effect->grace_ns, effect->signal };
    return stop;
}

static const void *
orders_gpu_message(const struct bh_core *core, const struct bh_effect *effect, uint32_t number,
                   struct bh_arena *arena)
{
    struct bh_msg_gpu_order *order = orders_new_message(arena, number);

    order->order = effect->order;
    snprintf(order->gpu, sizeof order->gpu, "%s", orders_gpu_uuid(core, effect->partition.gpu));
    return order;
}

static const void *
orders_destroy_message(const struct bh_effect *effect, struct bh_arena *arena)
{
    struct bh_msg_destroy *destroy = orders_new_message(arena, BH_MSG_DESTROY);

    destroy->order = effect->order;
    destroy->partition = effect->partition.partition.v;
    destroy->tenant = effect->tenant.v;
    return destroy;
}

bh_rc
bh_orders_message(struct bh_core *core, const struct bh_effect *effect, struct bh_arena *arena,
                  struct bh_order_message *ret_order, struct bh_err *err)
{
    static const uint32_t numbers[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_MSG_CARVE,     [BH_FX_DESTROY] = BH_MSG_DESTROY, [BH_FX_START] = BH_MSG_START,
        [BH_FX_SUSPEND] = BH_MSG_SUSPEND, [BH_FX_RESUME] = BH_MSG_RESUME,   [BH_FX_STOP] = BH_MSG_STOP,
        [BH_FX_RESET] = BH_MSG_RESET,     [BH_FX_TEST] = BH_MSG_TEST,
    };

    BH_ASSERT(effect->kind < BH_EFFECT_KINDS && numbers[effect->kind]);
    ret_order->number = numbers[effect->kind];
    switch (ret_order->number) {
    case BH_MSG_CARVE:
        ret_order->message = orders_carve_message(core, effect, arena);
        return BH_OK;
    case BH_MSG_DESTROY:
        ret_order->message = orders_destroy_message(effect, arena);
        return BH_OK;
    case BH_MSG_START:
        return orders_start_message(core, effect, arena, &ret_order->message, err);
    case BH_MSG_RESET:
    case BH_MSG_TEST:
        ret_order->message = orders_gpu_message(core, effect, ret_order->number, arena);
        return BH_OK;
    case BH_MSG_STOP:
        ret_order->message = orders_stop_message(effect, arena);
        return BH_OK;
    default:
        ret_order->message = orders_lease_message(effect, arena);
        return BH_OK;
    }
}

/* ---- answers to events ---- */

/* How an answer to each kind of effect is reported to the engine; STOP has no answer of
 * its own, the end comes instead. */
static const struct {
    enum bh_event_kind event;
    const char *verb;
    bool partition, silent;
} answers[BH_EFFECT_KINDS] = {
    [BH_FX_CARVE] = { BH_EV_CARVED, "node.carved", true, false },
    [BH_FX_DESTROY] = { BH_EV_DESTROYED, "node.destroyed", true, false },
    [BH_FX_START] = { BH_EV_STARTED, "node.started", false, false },
    [BH_FX_SUSPEND] = { BH_EV_SUSPENDED, "node.suspended", false, false },
    [BH_FX_RESUME] = { BH_EV_RESUMED, "node.resumed", false, false },
    [BH_FX_STOP] = { BH_EV_TICK, "node.stopping", false, true },
    [BH_FX_RESET] = { BH_EV_SERVICED, "node.reset", false, false },
    [BH_FX_TEST] = { BH_EV_SERVICED, "node.tested", false, false },
};

bool
bh_orders_find(const struct bh_core *core, bh_node_id node, uint64_t order, struct bh_effect *ret_effect)
{
    uint32_t count = bh_engine_outstanding(core->state.engine, node, core->scratch, BH_CORE_EFFECTS_MAX);

    for (uint32_t i = 0; i < count; i++)
        if (core->scratch[i].order == order) {
            *ret_effect = core->scratch[i];
            return true;
        }
    return false;
}

/* Engine time of what a node reports late, as it does after an outage; 0: about now. */
static uint64_t
orders_time_of(const struct bh_core *core, uint64_t late_ns)
{
    uint64_t now_ns = bh_core_now(core);

    return late_ns >= LATE_LEAST_NS && late_ns < now_ns ? now_ns - late_ns : 0;
}

/* What the order asks for, this node does not allow or does not have. */
static bool
orders_is_refusal(bh_rc rc)
{
    return rc == BH_DENIED || rc == BH_INVALID || rc == BH_RANGE || rc == BH_NOT_FOUND;
}

static struct bh_event
orders_answer_event(const struct bh_core *core, const struct bh_effect *effect,
                    const struct bh_msg_outcome *outcome)
{
    struct bh_event event = { .kind = answers[effect->kind].event };
    uint32_t most = answers[effect->kind].partition ? BH_OUTCOME_UNCLEAN : BH_OUTCOME_CONTEXT_HELD;
    enum bh_outcome_kind kind =
        outcome->outcome <= most ? (enum bh_outcome_kind)outcome->outcome : BH_OUTCOME_FAILED;
    bool failed = effect->kind == BH_FX_START && kind == BH_OUTCOME_FAILED;

    if (event.kind == BH_EV_SERVICED)
        event.u.serviced = (struct bh_ev_serviced){ effect->partition.gpu, kind, outcome->rc };
    else if (answers[effect->kind].partition)
        event.u.partition = (struct bh_ev_partition){ effect->partition.partition, kind, outcome->rc };
    else
        event.u.lease =
            (struct bh_ev_lease){ effect->lease,
                                  kind,
                                  outcome->rc,
                                  event.kind == BH_EV_STARTED ? orders_time_of(core, outcome->late_ns) : 0,
                                  failed,
                                  failed && orders_is_refusal((bh_rc)outcome->rc),
                                  failed && outcome->rc == BH_QUOTA };
    return event;
}

/* A stop of a lease that the node does not know: there is nothing left to end. */
static bh_rc
orders_stop_failed(struct bh_core *core, const struct bh_effect *effect, const struct bh_msg_outcome *outcome,
                   struct bh_err *err)
{
    struct bh_msg_ended ended = { .lease = effect->lease.v,
                                  .cause = BH_END_NODE_LOST,
                                  .ended_ns = outcome->at_ns,
                                  .late_ns = outcome->late_ns };

    if (outcome->outcome == BH_OUTCOME_OK || outcome->rc != BH_NOT_FOUND)
        return BH_OK; /* its end comes by itself, or it still runs */
    return bh_orders_ended(core, effect->node, &ended, err);
}

static struct bh_record_object
orders_object_of(const struct bh_effect *effect)
{
    if (answers[effect->kind].event == BH_EV_SERVICED)
        return (struct bh_record_object){ "gpu", effect->partition.gpu.v };
    if (answers[effect->kind].partition)
        return (struct bh_record_object){ "piece", effect->partition.partition.v };
    return (struct bh_record_object){ "lease", effect->lease.v };
}

/* The job whose lease the order is about: what is recorded of it is its tenant's business.  All zeros: it is
 * about a partition or a GPU, or the lease has ended. */
static struct bh_job_view
orders_job_of(const struct bh_core *core, const struct bh_effect *effect)
{
    struct bh_job_view view;
    bool leased = answers[effect->kind].event != BH_EV_SERVICED && !answers[effect->kind].partition
                  && bh_view_lease(core->state.engine, effect->lease, &view);

    return leased ? view : (struct bh_job_view){ .tenant = { 0 } };
}

/* Whether the record has the node's explanation: why a job did not begin, resume or make way. */
static bool
orders_has_explanation(const struct bh_effect *effect, const struct bh_msg_outcome *outcome)
{
    if (effect->kind == BH_FX_SUSPEND)
        return outcome->outcome == BH_OUTCOME_CONTEXT_HELD;
    return (effect->kind == BH_FX_START || effect->kind == BH_FX_RESUME)
           && outcome->outcome == BH_OUTCOME_FAILED;
}

/* A step whose record has the node's words, if any, as its note. */
static bh_rc
orders_step(struct bh_core *core, const struct bh_entry *entry, struct bh_event *event, bh_job_id job,
            struct bh_err *err)
{
    bh_rc rc = bh_core_step(core, entry, event, err);

    return rc == BH_OK && entry->note ? bh_failures_put(core, job, err) : rc;
}

bh_rc
bh_orders_outcome(struct bh_core *core, const struct bh_effect *effect, const struct bh_msg_outcome *outcome,
                  struct bh_err *err)
{
    struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                              .dec = { .allow = true },
                              .phase = BH_PHASE_OUTCOME,
                              .order = outcome->order };
    bool awaited = bh_engine_awaits(core->state.engine, effect);
    struct bh_job_view view = orders_job_of(core, effect);
    struct bh_event event;
    bh_rc rc = BH_CONFLICT;

    if (answers[effect->kind].silent)
        return awaited ? orders_stop_failed(core, effect, outcome, err) : BH_OK;
    entry.verb = answers[effect->kind].verb;
    entry.obj = orders_object_of(effect);
    event = orders_answer_event(core, effect, outcome);
    entry.tenant = view.tenant.v;
    if (awaited && entry.tenant && *outcome->why && orders_has_explanation(effect, outcome))
        entry.note = outcome->why;
    if (awaited)
        rc = orders_step(core, &entry, &event, view.job, err);
    /* The answer to an older order: no event, but what was ordered was done. */
    if (rc == BH_CONFLICT || rc == BH_NOT_FOUND)
        rc = bh_core_record(core, &entry, (bh_rc)outcome->rc, err);
    return rc;
}

static bh_rc
orders_record_unknown(struct bh_core *core, const struct bh_effect *effect, struct bh_err *err)
{
    const struct bh_entry entry = { .actor = { .via = BH_VIA_SYSTEM },
                                    .dec = { .allow = true },
                                    .phase = BH_PHASE_OUTCOME,
                                    .obj = orders_object_of(effect),
                                    .tenant = orders_job_of(core, effect).tenant.v,
                                    .order = effect->order,
                                    .verb = BH_RECORD_ORDER_UNKNOWN };

    return answers[effect->kind].silent ? BH_OK : bh_core_record(core, &entry, BH_UNCERTAIN, err);
}

bh_rc
bh_orders_unknown(struct bh_core *core, struct bh_err *err)
{
    uint32_t cursor = 0, id;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_catalog_next(core->catalog, BH_NAME_NODE, &cursor, &id)) {
        uint32_t count =
            bh_engine_outstanding(core->state.engine, (bh_node_id){ id }, core->scratch, BH_CORE_EFFECTS_MAX);

        for (uint32_t i = 0; i < count && rc == BH_OK; i++)
            rc = orders_record_unknown(core, &core->scratch[i], err);
    }
    return rc;
}

static bool
orders_end_has_explanation(const struct bh_msg_ended *ended)
{
    return ended->cause == BH_END_START_FAILED || ended->cause == BH_END_RESUME_FAILED
           || ended->cause == BH_END_OVER_CAP || ended->cause == BH_END_OVER_TIME
           || ended->cause == BH_END_ISOLATION;
}

bh_rc
bh_orders_ended(struct bh_core *core, bh_node_id node, const struct bh_msg_ended *ended, struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "node.ended", .obj = { "lease", ended->lease } };
    struct bh_event event = {
        .kind = BH_EV_ENDED,
        .u.ended = { { ended->lease },
                     ended->cause < BH_END_CAUSES ? (enum bh_end_cause)ended->cause : BH_END_KEEPER_LOST,
                     ended->exit_status,
                     ended->ended_ns,
                     orders_time_of(core, ended->late_ns),
                     ended->unasked,
                     ended->unasked && ended->cause == BH_END_EXITED && ended->exit_status == 0,
                     ended->cause == BH_END_START_FAILED || ended->cause == BH_END_KEEPER_LOST },
    };
    struct bh_carried_text carried;
    struct bh_job_view view;
    bool counted;
    bh_rc rc;

    if (!bh_view_lease(core->state.engine, (bh_lease_id){ ended->lease }, &view) || view.node.v != node.v)
        return BH_OK;
    entry.tenant = view.tenant.v;
    if (*ended->why && orders_end_has_explanation(ended))
        entry.note = ended->why;
    counted = ended->carried.counted && ended->cause != BH_END_START_FAILED; /* it carried nothing */
    if (counted) {
        const struct bh_carried_end end = { ended->carried, view.job.v, ended->lease, view.tenant.v };

        bh_carried_text(core, &end, &carried);
        entry.text = carried.digest.bytes;
    }
    rc = orders_step(core, &entry, &event, view.job, err);
    if (rc == BH_CONFLICT || rc == BH_NOT_FOUND) /* it no longer fits: dropped, as a repeat is */
        return BH_OK;
    return rc == BH_OK && counted ? bh_carried_put(core, &carried, err) : rc;
}
