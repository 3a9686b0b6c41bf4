#include "api/whatif/whatif.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/documents/revision.h"
#include "api/jobs/jobs.h"
#include "api/request/facts.h"
#include "api/state/simulation.h"
#include "api/state/submission.h"
#include "api/whatif/outcome.h"
#include "base/assert.h"
#include "base/lock.h"
#include "base/num.h"
#include "model/quantity.h"
#include "policy/operations.h"

/* The number that a job submitted in a future has: no job's. */
#define NEW_JOB (UINT64_C(1) << 52)

static const struct bh_field quota_fields[] = {
    BH_F(struct bh_whatif_quota, guarantee, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 40,
         .doc = "GPUs: 2, 0.5, 3/7; as it is when absent"),
    BH_F(struct bh_whatif_quota, limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 40,
         .doc = "GPUs, or \"none\"; as it is when absent"),
    BH_F(struct bh_whatif_quota, tenant, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = 119,
         .doc = "whose, as acme/vision"),
};
static const struct bh_fields bh_whatif_quota_fields =
    BH_FIELDS("whatif_quota", struct bh_whatif_quota, quota_fields);

static const struct bh_field request_fields[] = {
    BH_F(struct bh_whatif_request, cancel, BH_FIELD_U64, .doc = "cancel this job"),
    BH_F(struct bh_whatif_request, drain, BH_FIELD_TEXT, .max = 119,
         .doc = "a GPU's UUID or a node's name: it gets no new work"),
    BH_F(struct bh_whatif_request, now, BH_FIELD_BOOL,
         .doc = "with drain: what runs there ends or is queued again, by its contract"),
    BH_F(struct bh_whatif_request, quota, BH_FIELD_STRUCT, .of = &bh_whatif_quota_fields,
         .doc = "change a tenant's limit or guarantee"),
    BH_F(struct bh_whatif_request, site, BH_FIELD_STRUCT, .of = &bh_site_fields,
         .doc = "apply this site file"),
    BH_F(struct bh_whatif_request, submit, BH_FIELD_STRUCT, .of = &bh_job_spec_fields,
         .doc = "submit this job"),
};
const struct bh_fields bh_whatif_request_fields =
    BH_FIELDS("whatif", struct bh_whatif_request, request_fields);

/* ---- one at a time ---- */

static const bh_ns patience_ns = 10 * BH_NS_PER_S;

struct bh_whatif_lock {
    struct bh_mutex mutex;
};

struct bh_whatif_lock *
bh_whatif_lock_new(void)
{
    struct bh_whatif_lock *whatif_lock = calloc(1, sizeof *whatif_lock);

    BH_ASSERT(whatif_lock);
    bh_mutex_init(&whatif_lock->mutex, BH_LOCK_WHATIF);
    return whatif_lock;
}

void
bh_whatif_lock_free(struct bh_whatif_lock *whatif_lock)
{
    if (!whatif_lock)
        return;
    bh_mutex_fini(&whatif_lock->mutex);
    free(whatif_lock);
}

bh_rc
bh_whatif_acquire(struct bh_whatif_lock *whatif_lock, struct bh_err *err)
{
    if (bh_mutex_lock_until(&whatif_lock->mutex, bh_time_monotonic() + patience_ns))
        return BH_OK;
    return bh_err_set(err, BH_UNAVAILABLE, "others ask what would be, and it takes long");
}

void
bh_whatif_release(struct bh_whatif_lock *whatif_lock)
{
    bh_mutex_unlock(&whatif_lock->mutex);
}

/* ---- the question ---- */

/* What is asked, in the engine's terms.  Each part asks about a deed, and its refusal is one of that
 * deed. */
struct whatif_question {
    struct bh_whatif_request request;
    struct bh_answer site; /* of a site file's dry run, given or with another quota */
    bool has_site, site_given;
    struct bh_ev_submit submit; /* job 0: none */
    bh_job_id cancel;
    bh_gpu_id drained; /* or one of the node's that is; 0: nothing is */
    bool drain_node;
};

static bh_rc
whatif_permit(struct bh_call *call, const char *verb, bh_tenant_id tenant, struct bh_err *err)
{
    call->verdict = bh_authz_check(call->dir, &call->caller.subject, verb, tenant);
    if (call->verdict.allow)
        return BH_OK;
    return bh_call_deny(call, (struct bh_denial){ verb, call->verdict, BH_REACH_OBJECT }, tenant, err);
}

/* Whether it would be submitted at all, decided as in earnest: what is refused has no future. */
static bh_rc
whatif_read_submit(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    struct bh_job_spec *spec = &q->request.submit;
    struct bh_command command = { .spec = spec, .dry_run = true, .admission_only = true };
    struct bh_answer unused;
    bh_rc rc;

    if (!spec->sku && spec->args.count == 0)
        return BH_OK;
    call->job.v = 0; /* what was allowed so far was other parts of the question */
    call->tenant.v = 0;
    call->verdict = (struct bh_verdict){ .allow = false };
    call->verb = bh_operation_recorded_verb(BH_OP_JOB_SUBMIT);
    rc = bh_jobs_check_spec(call, spec, &command.numbers, &q->submit.tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_jobs_command_submission(call, &command, &unused, err);
    if (rc != BH_OK)
        return rc;
    q->submit.job.v = NEW_JOB;
    q->submit.principal = call->caller.subject.principal;
    bh_submission_fill(spec, &command.numbers, bh_directory_sku_named(call->dir, spec->sku),
                       bh_call_now(call), &q->submit);
    return BH_OK;
}

/* One's own with job.cancel, others' with job.cancel.any. */
static bh_rc
whatif_read_cancel(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    struct bh_job_row row;
    bool own;
    bh_rc rc;

    if (!q->request.cancel)
        return BH_OK;
    call->verb = bh_operation_recorded_verb(BH_OP_JOB_CANCEL);
    call->id = bh_arena_printf(call->arena, "%" PRIu64, q->request.cancel);
    rc = bh_jobs_find(call, &row, err);
    if (rc != BH_OK)
        return rc;
    own = row.principal_id == call->caller.subject.principal.v;
    q->cancel.v = row.job;
    rc = whatif_permit(call, own ? "job.cancel" : "job.cancel.any", (bh_tenant_id){ row.tenant_id }, err);
    if (rc == BH_OK && bh_jobs_ended(row.state))
        return bh_explain_ended(q->cancel, row.state, err);
    return rc;
}

/* An amount that the site file takes; "none" is a limit that is not there. */
static bh_rc
whatif_read_amount(const char *name, const char *text, const char **ret_text, struct bh_err *err)
{
    uint64_t unused;
    bh_rc rc = BH_OK;

    if (!text)
        return BH_OK;
    if (strcmp(text, "none") != 0)
        rc = bh_parse_parts(text, BH_GPU_PARTS, &unused, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "quota.%s", name);
    *ret_text = strcmp(text, "none") == 0 ? NULL : text;
    return BH_OK;
}

static struct bh_site_tenant *
whatif_find_tenant(const struct bh_site *site, const char *name)
{
    struct bh_site_tenant *tenants = site->tenants.items;

    for (uint32_t i = 0; i < site->tenants.count; i++)
        if (strcmp(tenants[i].name, name) == 0)
            return &tenants[i];
    return NULL;
}

/* The change as one of the site file, so that what apply refuses is refused here. */
static bh_rc
whatif_edit_quota(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    const struct bh_whatif_quota *quota = &q->request.quota;
    struct bh_site *site = &q->request.site;
    struct bh_site_tenant *tenant;
    bh_rc rc = BH_OK;

    if (!q->site_given)
        rc = bh_revision_present_site(&call->api->options.store, call->arena, site, err);
    if (rc != BH_OK)
        return rc;
    tenant = whatif_find_tenant(site, quota->tenant);
    if (!tenant) {
        bh_err_set(err, BH_NOT_FOUND, "quota.tenant: the site file has no tenant %.119s", quota->tenant);
        return bh_err_hint(err, "`bulkhead get tenants` lists them");
    }
    rc = whatif_read_amount("limit", quota->limit, &tenant->limit, err);
    return rc == BH_OK ? whatif_read_amount("guarantee", quota->guarantee, &tenant->guarantee, err) : rc;
}

static bh_rc
whatif_read_quota(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    const struct bh_whatif_quota *quota = &q->request.quota;
    const struct bh_dir_tenant *tenant;
    bh_rc rc;

    q->site_given = q->request.site.tenants.count > 0;
    if (!quota->tenant)
        return BH_OK;
    call->verb = bh_operation_recorded_verb(BH_OP_SITE_APPLY);
    tenant = bh_directory_tenant_named(call->dir, quota->tenant);
    if (tenant)
        call->object = (struct bh_record_object){ "tenant", tenant->id.v };
    rc = whatif_permit(call, "site.apply", (bh_tenant_id){ 0 }, err);
    if (rc != BH_OK)
        return rc;
    if (!quota->limit && !quota->guarantee) {
        bh_err_set(err, BH_INVALID, "quota: neither a limit nor a guarantee is given");
        return bh_err_hint(err, "say limit or guarantee; whatif quota --gpus or --guarantee");
    }
    if (quota->guarantee && strcmp(quota->guarantee, "none") == 0) {
        bh_err_set(err, BH_INVALID, "quota.guarantee: \"none\" is no amount");
        return bh_err_hint(err, "say 0 for no guarantee");
    }
    call->object = (struct bh_record_object){ .id = 0 };
    return whatif_edit_quota(call, q, err);
}

/* A GPU that the node of that name last reported. */
static bh_gpu_id
whatif_find_on_node(struct bh_call *call, const char *name)
{
    BH_AUTO(bh_facts_fini) struct bh_facts facts;
    const struct bh_dir_gpu *gpu = NULL;
    const struct bh_node_facts *node;
    bh_json_value gpus;

    bh_facts_load(&call->api->options.owner, &facts);
    node = bh_facts_node(&facts, name);
    gpus = node ? bh_json_get(node->root, "gpus") : NULL;
    for (size_t i = 0; i < bh_json_count(gpus) && !gpu; i++)
        gpu = bh_directory_gpu_uuid(call->dir, bh_json_text(bh_json_get(bh_json_at(gpus, i), "uuid"), ""));
    return gpu ? gpu->id : (bh_gpu_id){ 0 };
}

static bh_rc
whatif_read_drain(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    const char *name = q->request.drain;
    const struct bh_dir_gpu *gpu = name ? bh_directory_gpu_uuid(call->dir, name) : NULL;
    bh_rc rc;

    if (name) /* a look at the site, which drains nothing */
        call->verb = "site.view";
    call->target = name;
    rc = name ? whatif_permit(call, "site.view", (bh_tenant_id){ 0 }, err) : BH_OK;
    if (rc != BH_OK)
        return rc;
    call->target = NULL;
    if (!name && q->request.now)
        return bh_err_set(err, BH_INVALID, "now: only with drain");
    if (!name)
        return BH_OK;
    q->drain_node = !gpu;
    q->drained = gpu ? gpu->id : whatif_find_on_node(call, name);
    if (q->drained.v)
        return BH_OK;
    bh_err_set(err, BH_NOT_FOUND, "drain: no GPU or node %.119s", name);
    return bh_err_hint(err, "`bulkhead gpu -o wide` and `bulkhead node` list them");
}

/* The owner knows which names have which ids: its dry run lists the events that the engine would receive.  It
 * records what it refuses. */
static bh_rc
whatif_ask_site(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    struct bh_command command = { .dry_run = true, .site = &q->request.site, .text = "" };
    bh_rc rc = bh_call_command_as(call, BH_OP_SITE_APPLY, &command, &q->site, err);

    q->has_site = rc == BH_OK;
    return rc;
}

static bh_rc
whatif_read_site(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    bh_rc rc;

    if (q->request.site.tenants.count == 0)
        return BH_OK;
    call->verb = bh_operation_recorded_verb(BH_OP_SITE_APPLY);
    rc = whatif_permit(call, "site.apply", (bh_tenant_id){ 0 }, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_site_check(&q->request.site, err);
    if (rc != BH_OK)
        return rc;
    return whatif_ask_site(call, q, err);
}

static bh_rc
whatif_read_question(struct bh_call *call, struct whatif_question *q, struct bh_err *err)
{
    static bh_rc (*const readers[])(struct bh_call *, struct whatif_question *, struct bh_err *) = {
        whatif_read_quota, whatif_read_site, whatif_read_drain, whatif_read_cancel, whatif_read_submit
    };
    bh_rc rc = bh_call_body(call, &bh_whatif_request_fields, &q->request, err);

    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < BH_COUNT(readers); i++) {
        rc = readers[i](call, q, err);
        if (rc != BH_OK)
            return rc;
    }
    if (!q->submit.job.v && !q->cancel.v && !q->drained.v && !q->has_site) {
        bh_err_set(err, BH_INVALID, "nothing is asked");
        return bh_err_hint(err, "say site, quota, drain, cancel or submit; see /openapi.json");
    }
    return BH_OK;
}

/* ---- the change, on a copy ---- */

/* Put the engine's reason in words, as for a change that is refused in earnest. */
static bh_rc
whatif_refuse(struct bh_call *call, const struct bh_simulation *simulation, bh_rc rc, struct bh_err *err)
{
    const struct bh_reason *reason = &simulation->future->step.verdict;
    struct bh_explain how = { .dir = call->dir, .all = true, .now_ns = simulation->future->begin_ns };
    struct bh_buf text;

    call->reason = *reason;
    bh_err_set(err, rc, "refused");
    bh_buf_init_fixed(&text, err->msg, sizeof err->msg);
    bh_explain_sentence(&text, &how, reason);
    bh_buf_text(&text);
    bh_buf_init_fixed(&text, err->hint, sizeof err->hint);
    bh_explain_next(&text, &how, reason);
    bh_buf_text(&text);
    return rc;
}

/* The event that `drain` sends to the engine (daemon/changes/cordon.c). */
static bh_rc
whatif_send_drain(struct bh_simulation *simulation, const struct whatif_question *q)
{
    struct bh_event event = { .kind = BH_EV_CORDON,
                              .u.cordon.held = q->request.now ? BH_HELD_DRAIN_NOW : BH_HELD_DRAINING };
    struct bh_gpu_view gpu;

    if (!bh_view_gpu(simulation->state.engine, q->drained, &gpu))
        return BH_NOT_FOUND;
    if (q->drain_node)
        event.u.cordon.node = gpu.node;
    else
        event.u.cordon.gpu = gpu.gpu;
    return bh_simulation_send(simulation, &event);
}

static bh_rc
whatif_send_all(struct bh_simulation *simulation, const struct whatif_question *q)
{
    struct bh_event cancel = { .kind = BH_EV_CANCEL, .u.job.job = q->cancel };
    struct bh_event submit = { .kind = BH_EV_SUBMIT, .u.submit = q->submit };
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; q->site.events && i < q->site.event_count && rc == BH_OK; i++)
        rc = bh_simulation_send(simulation, &q->site.events[i]);
    if (rc == BH_OK && q->drained.v)
        rc = whatif_send_drain(simulation, q);
    if (rc == BH_OK && q->cancel.v)
        rc = bh_simulation_send(simulation, &cancel);
    if (rc == BH_OK && q->submit.job.v)
        rc = bh_simulation_send(simulation, &submit);
    return rc;
}

/* Read the state of the job in question before time advances. */
static void
whatif_read_subject(struct bh_outcome *outcome, const struct whatif_question *q)
{
    const struct bh_engine *engine = outcome->after.state.engine;
    struct bh_job_view holder;

    outcome->submitted = q->submit.job.v != 0;
    outcome->subject = outcome->submitted ? q->submit.job : q->cancel;
    if (!outcome->subject.v || !bh_view_job(engine, outcome->subject, &outcome->view))
        return;
    bh_engine_why(engine, outcome->subject, outcome->after.future->begin_ns, &outcome->reason);
    if (bh_view_job(engine, outcome->reason.job, &holder))
        outcome->holder = holder.tenant;
}

struct whatif_copying {
    struct bh_simulation *simulation;
    uint64_t now_ns;
};

static void
whatif_copy(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct whatif_copying *copying = self;

    copying->now_ns = now_ns;
    bh_simulation_copy(engine, copying->simulation);
}

static bh_rc
whatif_play(struct bh_call *call, const struct whatif_question *q, struct bh_outcome *outcome,
            struct bh_err *err)
{
    struct whatif_copying copying = { .simulation = &outcome->before };
    bh_rc rc = bh_call_ask(call, whatif_copy, &copying, err);

    if (rc != BH_OK)
        return rc;
    bh_simulation_clone(&outcome->before, &outcome->after);
    bh_simulation_begin(&outcome->before, copying.now_ns);
    bh_simulation_begin(&outcome->after, copying.now_ns);
    rc = whatif_send_all(&outcome->after, q);
    if (rc != BH_OK)
        return whatif_refuse(call, &outcome->after, rc, err);
    whatif_read_subject(outcome, q);
    bh_simulation_run(&outcome->before);
    bh_simulation_run(&outcome->after);
    return BH_OK;
}

bh_rc
bh_whatif_ask(struct bh_call *call, struct bh_err *err)
{
    struct whatif_question q = { .cancel = { 0 } };
    struct bh_outcome outcome = { .subject = { 0 } };
    bh_rc rc = whatif_read_question(call, &q, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_whatif_acquire(call->api->whatif_lock, err);
    if (rc != BH_OK)
        return rc;
    outcome.site = q.site_given ? &q.site : NULL;
    rc = whatif_play(call, &q, &outcome, err);
    bh_whatif_release(call->api->whatif_lock);
    if (rc == BH_OK)
        rc = bh_outcome_write(call, &outcome, err);
    bh_simulation_free(&outcome.before);
    bh_simulation_free(&outcome.after);
    return rc;
}
