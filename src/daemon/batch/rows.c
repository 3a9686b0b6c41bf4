#include "daemon/batch/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "daemon/batch/missing_rows.h"

enum { REFRESH_AT_ONCE = 256, SEALED_NAME_MAX = 1024 };

static const char *
rows_name_or_none(const char *name)
{
    return name ? name : "";
}

static void
rows_record_change(struct bh_core *core, const struct bh_job_change *row, uint32_t tenant, uint32_t principal,
                   uint64_t now_ns)
{
    struct bh_change *change;

    if (core->change_count == BH_CORE_CHANGES_MAX)
        return; /* watchers see a gap and read the table */
    change = &core->changes[core->change_count++];
    *change = (struct bh_change){
        .job = row->job, .tenant_id = tenant, .principal_id = principal, .at_ns = now_ns
    };
    snprintf(change->state, sizeof change->state, "%s", row->state);
    snprintf(change->reason, sizeof change->reason, "%s", row->reason);
}

/* What asks the job to write a checkpoint. */
static uint32_t
rows_signal_of(const struct bh_ev_submit *submit)
{
    if (submit->contract != BH_CONTRACT_CHECKPOINT)
        return 0;
    return submit->checkpoint_signal ? submit->checkpoint_signal : BH_CHECKPOINT_SIGNAL;
}

/* The name is free text of a person: sealed, as the specification is. */
static bh_rc
rows_put_named(struct bh_core *core, struct bh_job_row *row, struct bh_err *err)
{
    char memory[SEALED_NAME_MAX];
    struct bh_buf sealed;
    bh_rc rc = BH_OK;

    bh_buf_init_fixed(&sealed, memory, sizeof memory);
    if (row->name[0]) {
        rc = bh_core_seal(core, (bh_tenant_id){ row->tenant_id },
                          (struct bh_slice){ row->name, strlen(row->name) }, &sealed, err);
        row->name = bh_buf_text(&sealed);
    }
    return rc == BH_OK ? core->store.ops->put_job(core->store.self, row, err) : rc;
}

bh_rc
bh_rows_add(struct bh_core *core, const struct bh_event *event, const struct bh_caller *caller,
            const char *name, struct bh_err *err)
{
    const struct bh_ev_submit *submit = &event->u.submit;
    struct bh_job_row row = {
        .job = submit->job.v,
        .tenant_id = submit->tenant.v,
        .principal_id = submit->principal.v,
        .count = submit->count,
        .priority = submit->priority,
        .name = rows_name_or_none(name),
        .tenant = rows_name_or_none(bh_catalog_name_of(core->catalog, BH_NAME_TENANT, submit->tenant.v)),
        .principal = rows_name_or_none(caller->name),
        .sku = rows_name_or_none(bh_catalog_name_of(core->catalog, BH_NAME_SKU, submit->sku.v)),
        .kind = bh_job_kind_names[submit->kind],
        .state = bh_job_state_names[BH_JOB_PENDING],
        .contract = bh_contract_names[submit->contract],
        .node = "",
        .partitions = "",
        .grade = "",
        .submitted_ns = event->now_ns,
        .time_limit_ns = submit->time_limit_ns,
        .deadline_ns = submit->deadline_ns,
        .checkpoint_signal = rows_signal_of(submit),
        .gang = submit->gang,
        .exit_status = -1,
    };

    /* on a large fleet this is the dearest part of a submission: once, for the answer too */
    bh_engine_why(core->state.engine, submit->job, event->now_ns, &core->added_reason);
    core->shown[submit->job.v % BH_SHOWN_MAX] =
        (struct bh_shown){ (uint32_t)submit->job.v, core->added_reason.code };
    row.reason = bh_reason_names[core->added_reason.code];
    memcpy(row.spec.bytes, submit->spec, sizeof row.spec.bytes);
    rows_record_change(core,
                       &(struct bh_job_change){ .job = row.job, .state = row.state, .reason = row.reason },
                       row.tenant_id, row.principal_id, event->now_ns);
    return rows_put_named(core, &row, err);
}

/* "GPU-3f2a 1g.10gb@2", with "gpu7/" before it where it is on another node than the list's. */
static void
rows_put_partition(const struct bh_core *core, const struct bh_partition *partition, bh_node_id listed,
                   struct bh_buf *out)
{
    char name[BH_PARTITION_NAME_MAX];
    struct bh_gpu_view gpu = { 0 };
    const char *uuid = bh_catalog_name_of(core->catalog, BH_NAME_GPU, partition->gpu.v);

    if (bh_view_gpu(core->state.engine, partition->gpu, &gpu) && !bh_same(gpu.node, listed))
        bh_buf_printf(out, "%s/",
                      rows_name_or_none(bh_catalog_name_of(core->catalog, BH_NAME_NODE, gpu.node.v)));
    bh_partition_name((enum bh_gpu_model)gpu.model, partition->profile, name);
    bh_buf_printf(out, "%.12s %s", rows_name_or_none(uuid), name);
    if (partition->profile != BH_PROFILE_WHOLE.v)
        bh_buf_printf(out, "@%" PRIu32, partition->start);
}

/* One more of the list; false: it is full, and says so. */
static bool
rows_add_partition(const struct bh_core *core, const struct bh_partition *partition, bh_node_id listed,
                   struct bh_buf *out)
{
    static const char more[] = ", ...";
    char text[160];
    struct bh_buf one;

    bh_buf_init_fixed(&one, text, sizeof text);
    rows_put_partition(core, partition, listed, &one);
    if (out->length + one.length + 2 + sizeof more > out->size) {
        bh_buf_puts(out, more);
        return false;
    }
    if (out->length > 0)
        bh_buf_puts(out, ", ");
    bh_buf_put(out, text, one.length);
    return true;
}

/* Those of every member of the job, in their order, as people read them; at most what the buffer
 * holds. */
static void
rows_put_partitions(const struct bh_core *core, const struct bh_job_view *view, struct bh_buf *out)
{
    struct bh_member_view member;
    bool fits = true;

    for (uint32_t at = 0; fits && at < view->gang; at++) {
        if (!bh_view_member(core->state.engine, view->job, at, &member))
            return;
        for (uint32_t i = 0; fits && i < member.partition_count; i++)
            fits = rows_add_partition(core, &member.partitions[i], view->node, out);
    }
}

static bool
rows_is_pending(const struct bh_job_view *view)
{
    return view->state == BH_JOB_PENDING || view->state == BH_JOB_SUSPENDED;
}

static const char *
rows_pending_reason(struct bh_core *core, const struct bh_job_view *view, uint64_t now_ns)
{
    struct bh_reason reason;

    if (!rows_is_pending(view))
        return "";
    bh_engine_why(core->state.engine, view->job, now_ns, &reason);
    core->shown[view->job.v % BH_SHOWN_MAX] = (struct bh_shown){ (uint32_t)view->job.v, reason.code };
    return bh_reason_names[reason.code];
}

/* Where a living job is, in texts that the row has and a record a digest of. */
struct rows_placement {
    struct bh_job_placement columns;
    char grade[32], partitions[400];
};

/* `standing`: what is said of its grade beside it; "": nothing. */
static void
rows_fill_placement(const struct bh_core *core, const struct bh_job_view *view, const char *suffix,
                    struct rows_placement *ret)
{
    struct bh_buf partitions;

    bh_buf_init_fixed(&partitions, ret->partitions, sizeof ret->partitions);
    rows_put_partitions(core, view, &partitions);
    snprintf(ret->grade, sizeof ret->grade, "%s%s", view->lease.v ? bh_grade_names[view->grade] : "", suffix);
    ret->columns = (struct bh_job_placement){
        .lease = view->lease.v,
        .restarts = view->restarts,
        .node = rows_name_or_none(bh_catalog_name_of(core->catalog, BH_NAME_NODE, view->node.v)),
        .partitions = bh_buf_text(&partitions) ? bh_buf_text(&partitions) : "",
        .grade = ret->grade,
    };
}

/* Every job has its row since its submission: one that is gone was not removed by bulkheadd. */
static bh_rc
rows_put_change(struct bh_core *core, const struct bh_job_change *row, struct bh_err *err)
{
    bh_rc rc = core->store.ops->change_job(core->store.self, row, err);

    return rc == BH_NOT_FOUND ? bh_missing_rows_refuse_job((bh_job_id){ row->job }, err) : rc;
}

static bh_rc
rows_change_active(struct bh_core *core, const struct bh_job_view *view, const char *suffix, uint64_t now_ns,
                   struct bh_err *err)
{
    struct rows_placement placement;
    struct bh_job_change row = {
        .job = view->job.v,
        .state = bh_job_state_names[view->state],
        .reason = rows_pending_reason(core, view, now_ns),
        .started_ns = view->started_ns,
        .exit_status = -1,
    };

    rows_fill_placement(core, view, suffix, &placement);
    row.lease = placement.columns.lease;
    row.restarts = placement.columns.restarts;
    row.node = placement.columns.node;
    row.partitions = placement.columns.partitions;
    row.grade = placement.columns.grade;
    rows_record_change(core, &row, view->tenant.v, view->principal.v, now_ns);
    return rows_put_change(core, &row, err);
}

/* No record says why a job waits, so nothing else of the row changes with it. */
static bh_rc
rows_change_reason(struct bh_core *core, const struct bh_job_view *view, uint64_t now_ns, struct bh_err *err)
{
    const struct bh_job_change row = { .job = view->job.v,
                                       .state = bh_job_state_names[view->state],
                                       .reason = rows_pending_reason(core, view, now_ns),
                                       .exit_status = -1 };

    rows_record_change(core, &row, view->tenant.v, view->principal.v, now_ns);
    return rows_put_change(core, &row, err);
}

/* Whether the job's row shows another reason than it now waits for. */
static bool
rows_is_stale(const struct bh_core *core, const struct bh_job_view *view, uint64_t now_ns)
{
    const struct bh_shown *shown = &core->shown[view->job.v % BH_SHOWN_MAX];
    struct bh_reason reason;

    if (!rows_is_pending(view))
        return false;
    bh_engine_why(core->state.engine, view->job, now_ns, &reason);
    return shown->job != (uint32_t)view->job.v || shown->code != reason.code;
}

bh_rc
bh_rows_refresh(struct bh_core *core, uint64_t now_ns, struct bh_err *err)
{
    struct bh_job_view view;

    for (uint32_t checked = 0; checked < REFRESH_AT_ONCE; checked++) {
        bh_rc rc = BH_OK;

        if (!bh_view_next_job(core->state.engine, &core->refresh_cursor, &view)) {
            core->refresh_cursor = 0;
            core->reasons_stale = false;
            return BH_OK;
        }
        if (!rows_is_stale(core, &view, now_ns))
            continue;
        rc = bh_core_begin(core, err);
        if (rc == BH_OK)
            rc = rows_change_reason(core, &view, now_ns, err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

/* Whether the effect is the job's end, or else where it stands now. */
static bool
rows_has_ended(const struct bh_core *core, const struct bh_effect *effect, struct bh_job_view *ret_view)
{
    bool known = bh_view_job(core->state.engine, effect->job, ret_view);

    BH_ASSERT(effect->kind == BH_FX_JOB);
    return effect->state >= BH_JOB_COMPLETED || !known;
}

/* When it ended on its node; now, where no node said. */
static uint64_t
rows_end_of(const struct bh_job_view *view, uint64_t now_ns)
{
    return view->ended_ns ? view->ended_ns : now_ns;
}

/* Of a job that has not ended. */
static void
rows_put_active(const struct bh_core *core, const struct bh_job_view *view, const char *suffix,
                struct bh_job_status *state)
{
    struct rows_placement placement;

    rows_fill_placement(core, view, suffix, &placement);
    snprintf(state->state, sizeof state->state, "%s", bh_job_state_names[view->state]);
    state->started_ns = view->started_ns;
    bh_job_placement_digest(core->crypto, &placement.columns, state->row);
}

void
bh_rows_status(const struct bh_core *core, const struct bh_effect *effect, uint64_t now_ns,
               struct bh_job_status *ret_state)
{
    struct bh_job_view view = { 0 };
    bool ended = rows_has_ended(core, effect, &view);

    *ret_state = (struct bh_job_status){ .job = effect->job.v };
    if (!ended) {
        rows_put_active(core, &view, "", ret_state);
        return;
    }
    snprintf(ret_state->state, sizeof ret_state->state, "%s", bh_job_state_names[effect->state]);
    ret_state->ended_ns = rows_end_of(&view, now_ns);
    ret_state->exit_status = effect->exit_status;
    snprintf(ret_state->cause, sizeof ret_state->cause, "%s", bh_end_cause_names[effect->cause]);
}

static const char *
rows_grade_suffix(bool verified)
{
    return verified ? "" : " unverified";
}

void
bh_rows_regraded(const struct bh_core *core, const struct bh_job_view *view, bool verified,
                 struct bh_job_status *ret_state)
{
    *ret_state = (struct bh_job_status){ .job = view->job.v };
    rows_put_active(core, view, rows_grade_suffix(verified), ret_state);
}

bh_rc
bh_rows_regrade(struct bh_core *core, const struct bh_job_view *view, bool verified, struct bh_err *err)
{
    return rows_change_active(core, view, rows_grade_suffix(verified), bh_core_now(core), err);
}

bh_rc
bh_rows_change(struct bh_core *core, const struct bh_effect *effect, uint64_t recorded_by, uint64_t now_ns,
               struct bh_err *err)
{
    struct bh_job_view view = { 0 };
    bool ended = rows_has_ended(core, effect, &view);
    struct bh_job_change row = {
        .job = effect->job.v,
        .lease = effect->lease.v,
        .state = bh_job_state_names[effect->state],
        .reason = bh_end_cause_names[effect->cause],
        .ended_ns = rows_end_of(&view, now_ns),
        .ended_by = recorded_by,
        .exit_status =
            effect->cause == BH_END_EXITED || effect->cause == BH_END_SIGNALLED ? effect->exit_status : -1,
    };

    if (!ended)
        return rows_change_active(core, &view, "", now_ns, err);
    row.node = row.partitions = row.grade = NULL; /* stay as they were */
    rows_record_change(core, &row, view.tenant.v, view.principal.v, now_ns);
    return rows_put_change(core, &row, err);
}
