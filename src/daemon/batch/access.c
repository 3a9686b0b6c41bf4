#include "daemon/batch/access.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/documents/job_document.h"
#include "base/assert.h"
#include "base/vec.h"
#include "daemon/batch/record.h"
#include "daemon/state/core.h"

enum { SCRATCH_MAX = 16 << 20 };

struct bh_batch_spec {
    struct bh_batch_spec *next;
    uint8_t digest[32];
    const struct bh_job_spec *spec;
};

struct bh_refused_job {
    struct bh_refused_job *next;
    bh_job_id job;
    uint32_t rule;
};

void
bh_access_open(struct bh_core *core)
{
    core->access = calloc(1, sizeof *core->access);
    BH_ASSERT(core->access);
    core->access->scratch = bh_arena_new(SCRATCH_MAX);
}

void
bh_access_close(struct bh_core *core)
{
    bh_arena_free(core->access->scratch);
    free(core->access->reported);
    free(core->access);
}

void
bh_access_committed(struct bh_core *core)
{
    core->access->fresh = NULL;
    core->access->refused = NULL;
    if (core->access->site_changed)
        core->access->check_ns = 0; /* the directory that is in force only now */
    core->access->site_changed = false;
}

void
bh_access_aborted(struct bh_core *core)
{
    core->access->site_changed = true;
    core->access->reported_count = 0;
    bh_access_committed(core);
}

/* ---- whose it is ---- */

/* The id that the name has, or had; 0: it never was a dataset's. */
static uint32_t
access_id_of(const struct bh_core *core, const char *name)
{
    const char *known;

    for (uint32_t id = 1; (known = bh_catalog_name_of(core->catalog, BH_NAME_DATASET, id)); id++)
        if (strcmp(known, name) == 0)
            return id;
    return 0;
}

static bool
access_site_has_any(const struct bh_core *core)
{
    return bh_catalog_name_of(core->catalog, BH_NAME_DATASET, 1) != NULL;
}

static uint32_t
access_owner_of(const struct bh_core *core, const struct bh_dataset *dataset, bh_tenant_id otherwise)
{
    uint32_t id = dataset ? bh_catalog_find(core->catalog, BH_NAME_TENANT, dataset->text->tenant) : 0;

    return id ? id : otherwise.v;
}

/* ---- one job ---- */

/* A job before the grants in force. */
struct judging {
    const struct bh_directory *dir;
    const struct bh_job_spec *spec;
    struct bh_data_request request;
};

static struct judging
access_judging_of(const struct bh_core *core, const struct bh_directory *dir, const struct bh_job_view *view,
                  const struct bh_job_spec *spec)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(dir, view->tenant);
    const struct bh_dir_principal *principal = bh_directory_principal(dir, view->principal);

    return (
        struct judging){ .dir = dir,
                         .spec = spec,
                         .request = { .tenant = tenant ? tenant->path : "",
                                      .principal = principal ? principal->name : "",
                                      .labels = &spec->labels,
                                      .node = bh_catalog_name_of(core->catalog, BH_NAME_NODE, view->node.v),
                                      .now_ns = bh_core_now(core) } };
}

/* What is recorded about a dataset: mount number `mount` of a job. */
static struct bh_entry
access_entry_of(const struct bh_core *core, const struct judging *j, uint32_t mount,
                const struct bh_dataset *dataset, bh_tenant_id tenant)
{
    const struct bh_mount_spec *mounts = j->spec->mounts.items;
    const char *name = dataset ? dataset->text->name : mounts[mount].dataset;

    return (struct bh_entry){
        .actor = { .via = BH_VIA_SYSTEM },
        .phase = BH_PHASE_EVENT,
        .verb = mount < j->spec->mounts.count && mounts[mount].write ? "dataset.write" : "dataset.read",
        .obj = { "dataset", name ? access_id_of(core, name) : 0 },
        .tenant = access_owner_of(core, dataset, tenant),
    };
}

static struct bh_entry
access_denial_of(const struct bh_core *core, const struct judging *j, const struct bh_data_denial *denial,
                 bh_tenant_id tenant)
{
    uint32_t mount = denial->where == BH_DATA_IN_MOUNT ? denial->mount : UINT32_MAX;
    struct bh_entry entry = access_entry_of(core, j, mount, denial->dataset, tenant);

    entry.dec = (struct bh_record_decision){ false, bh_data_rule_number(&denial->verdict) };
    return entry;
}

static bool
access_refuse(struct bh_core *core, bh_job_id job, uint32_t rule)
{
    struct bh_refused_job *refused;

    for (refused = core->access->refused; refused; refused = refused->next)
        if (bh_same(refused->job, job))
            return true;
    refused = bh_arena_alloc(core->arena, sizeof *refused);
    if (!refused)
        return false;
    *refused = (struct bh_refused_job){ core->access->refused, job, rule };
    core->access->refused = refused;
    return true;
}

/* ---- submissions ---- */

/* Of job.submit, in the job's tenant, and where there is one of the dataset, in its own. */
static bh_rc
access_record_denial(struct bh_core *core, const struct bh_entry *submission, const struct bh_entry *dataset,
                     bool hidden)
{
    const struct bh_data_verdict unknown = { .reason = BH_DATA_UNKNOWN };
    struct bh_entry job = *submission, beside = *dataset;
    struct bh_err err;
    bh_rc rc;

    job.dec = (struct bh_record_decision){ false, dataset->dec.rule };
    if (hidden) /* the number would say that there is one */
        job.dec.rule = bh_data_rule_number(&unknown);
    job.phase = BH_PHASE_EVENT;
    beside.actor = job.actor;
    beside.req = job.req;
    rc = bh_core_record(core, &job, BH_DENIED, &err);
    if (rc != BH_OK)
        return rc;
    if (beside.obj.id)
        return bh_core_record(core, &beside, BH_DENIED, &err);
    return BH_OK;
}

/* Whether the caller may not know of the dataset but by a grant. */
static bool
access_is_hidden(const struct bh_core *core, const struct judging *j, const struct bh_caller *caller,
                 const struct bh_data_denial *denial)
{
    bh_tenant_id owner = { access_owner_of(core, denial->dataset, (bh_tenant_id){ 0 }) };

    return !denial->named && !bh_authz_check(j->dir, &caller->subject, "dataset.view", owner).allow;
}

bh_rc
bh_access_submit(struct bh_core *core, const struct bh_command *command, const struct bh_entry *submission,
                 struct bh_err *err)
{
    const struct bh_job_view view = { .tenant = { submission->tenant },
                                      .principal = command->caller.subject.principal };
    struct bh_data_denial denial;
    struct bh_entry entry = { .verb = "" };
    struct judging j;
    bool hidden = false;
    bh_rc rc = BH_OK;

    j = access_judging_of(core, bh_catalog_get(core->catalog), &view, command->spec);
    j.request.node = NULL; /* unknown yet */
    if (!bh_datasets_allow(&j.dir->datasets, j.spec, &j.request, &denial)) {
        hidden = access_is_hidden(core, &j, &command->caller, &denial);
        rc = bh_datasets_explain(j.spec, &j.request, &denial, hidden, err);
        entry = access_denial_of(core, &j, &denial, view.tenant);
        if (!denial.dataset)
            entry.obj.id = 0;         /* that there was one is no business of theirs */
    } else if (command->image_away) { /* the same to the caller, here and in the log */
        hidden = true;
        rc = bh_datasets_refuse_image(j.spec, err);
    }
    bh_catalog_put(core->catalog, j.dir);
    if (rc == BH_OK || access_record_denial(core, submission, &entry, hidden) == BH_OK)
        return rc;
    return bh_err_set(err, BH_IO, "the denial could not be recorded");
}

void
bh_access_expect(struct bh_core *core, const uint8_t digest[32], const struct bh_job_spec *spec)
{
    struct bh_batch_spec *fresh = bh_arena_alloc(core->arena, sizeof *fresh);

    if (!fresh)
        return; /* it is then found nowhere, and its start refused */
    *fresh = (struct bh_batch_spec){ .next = core->access->fresh, .spec = spec };
    memcpy(fresh->digest, digest, sizeof fresh->digest);
    core->access->fresh = fresh;
}

/* ---- starts ---- */

static bh_rc
access_find_spec(struct bh_core *core, const uint8_t digest[32], const struct bh_job_spec **ret_spec,
                 struct bh_err *err)
{
    struct bh_job_spec *spec;
    struct bh_digest key;
    bh_rc rc;

    for (const struct bh_batch_spec *fresh = core->access->fresh; fresh; fresh = fresh->next)
        if (memcmp(fresh->digest, digest, sizeof fresh->digest) == 0) {
            *ret_spec = fresh->spec;
            return BH_OK;
        }
    bh_arena_reset(core->access->scratch);
    memcpy(key.bytes, digest, sizeof key.bytes);
    spec = bh_arena_alloc(core->access->scratch, sizeof *spec);
    BH_ASSERT(spec); /* it is empty */
    rc = bh_job_document_spec(core->ring.keys, &key, core->access->scratch, spec, err);
    if (rc == BH_OK)
        *ret_spec = spec;
    return rc;
}

/* Every mount of a start that is allowed, before it happens. */
static bh_rc
access_record_mounts(struct bh_core *core, const struct judging *j, const struct bh_effect *effect,
                     const struct bh_job_view *view, struct bh_err *err)
{
    const struct bh_mount_spec *mounts = j->spec->mounts.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < j->spec->mounts.count && rc == BH_OK; i++) {
        const struct bh_dataset *dataset;
        struct bh_data_request asked = j->request;
        struct bh_data_verdict verdict;
        struct bh_entry entry;

        if (!mounts[i].dataset)
            continue;
        dataset = bh_datasets_find(&j->dir->datasets, mounts[i].dataset);
        asked.rights = bh_data_rights_wanted(j->spec, i);
        verdict = bh_datasets_check(&j->dir->datasets, dataset, &asked);
        entry = access_entry_of(core, j, i, dataset, view->tenant);
        entry.actor.id = view->principal.v;
        entry.order = effect->order;
        entry.text = view->spec;
        entry.dec = (struct bh_record_decision){ true, bh_data_rule_number(&verdict) };
        rc = bh_core_record(core, &entry, BH_OK, err);
    }
    return rc;
}

static bh_rc
access_record_refusal(struct bh_core *core, struct bh_entry entry, const struct bh_effect *effect,
                      const struct bh_job_view *view, struct bh_err *err)
{
    entry.actor.id = view->principal.v;
    entry.order = effect ? effect->order : 0;
    entry.text = view->spec;
    return bh_core_record(core, &entry, BH_DENIED, err);
}

bh_rc
bh_access_start(struct bh_core *core, const struct bh_effect *effect, bool *ret_allowed, struct bh_err *err)
{
    const struct bh_job_spec *spec;
    struct bh_data_denial denial;
    struct bh_job_view view;
    struct judging j;
    bh_rc rc;

    *ret_allowed = true;
    if (!access_site_has_any(core) || !bh_view_lease(core->state.engine, effect->lease, &view))
        return BH_OK;
    rc = access_find_spec(core, view.spec, &spec, err);
    if (rc != BH_OK) { /* what it mounts cannot be known: a damaged text must not stop the site */
        *ret_allowed = false;
        return bh_core_is_fatal(rc) || !access_refuse(core, view.job, 0)
                   ? bh_err_wrap(err, "what job %" PRIu64 " mounts", view.job.v)
                   : BH_OK;
    }
    j = access_judging_of(core, bh_catalog_get(core->catalog), &view, spec);
    *ret_allowed = bh_datasets_allow(&j.dir->datasets, spec, &j.request, &denial);
    if (*ret_allowed)
        rc = access_record_mounts(core, &j, effect, &view, err);
    else
        rc =
            access_record_refusal(core, access_denial_of(core, &j, &denial, view.tenant), effect, &view, err);
    bh_catalog_put(core->catalog, j.dir);
    if (rc == BH_OK && !*ret_allowed && !access_refuse(core, view.job, bh_data_rule_number(&denial.verdict)))
        rc = bh_err_set(err, BH_FULL, "too many refusals");
    return rc;
}

bh_rc
bh_access_retry(struct bh_core *core, const struct bh_effect *effect, const struct bh_job_view *view,
                const struct bh_job_spec *spec, struct bh_err *err)
{
    struct bh_data_denial denial;
    struct judging j;
    bh_rc rc = BH_OK;

    j = access_judging_of(core, bh_catalog_get(core->catalog), view, spec);
    if (!bh_datasets_allow(&j.dir->datasets, spec, &j.request, &denial)) {
        (void)bh_datasets_explain(spec, &j.request, &denial, false, err);
        rc = err->rc = BH_DENIED;
        if (!access_refuse(core, view->job, bh_data_rule_number(&denial.verdict)))
            rc = err->rc = BH_UNAVAILABLE;
    }
    bh_catalog_put(core->catalog, j.dir);
    return rc;
}

bool
bh_access_next_refused(struct bh_core *core, struct bh_entry *ret_entry, struct bh_event *ret_event)
{
    struct bh_job_view view;

    while (core->access->refused) {
        const struct bh_refused_job *refused = core->access->refused;

        core->access->refused = refused->next;
        if (!bh_view_job(core->state.engine, refused->job, &view))
            continue;
        *ret_entry = (struct bh_entry){ .actor = { .via = BH_VIA_SYSTEM },
                                        .dec = { false, refused->rule },
                                        .phase = BH_PHASE_EVENT,
                                        .tenant = view.tenant.v,
                                        .verb = "job.refuse",
                                        .obj = { "job", refused->job.v } };
        *ret_event = (struct bh_event){ .kind = BH_EV_CANCEL, .u.job = { refused->job, BH_END_DATASET } };
        return true;
    }
    return false;
}

/* ---- running jobs ---- */

/* A walk over all jobs, for those that are without access now. */
struct access_scan {
    struct bh_core *core;
    const struct bh_directory *dir;
    uint64_t *reported;
    uint32_t count, capacity;
};

static bool
access_is_reported(const struct bh_core *core, bh_job_id job)
{
    for (uint32_t i = 0; i < core->access->reported_count; i++)
        if (core->access->reported[i] == job.v)
            return true;
    return false;
}

static void
access_add_reported(struct access_scan *access_scan, bh_job_id job)
{
    bool fits = bh_vec_reserve(&access_scan->reported, &access_scan->capacity, (size_t)access_scan->count + 1,
                               UINT32_MAX);

    BH_ASSERT(fits);
    access_scan->reported[access_scan->count++] = job.v;
}

static bool
access_is_running(const struct bh_job_view *view)
{
    return view->lease.v != 0 && view->cause == BH_END_NONE && view->state != BH_JOB_PENDING
           && view->state != BH_JOB_STARTING && view->state != BH_JOB_STOPPING;
}

static bool
access_mounts_dataset(const struct bh_job_spec *spec, const char *name)
{
    const struct bh_mount_spec *mounts = spec->mounts.items;

    for (uint32_t i = 0; i < spec->mounts.count; i++)
        if (mounts[i].dataset && strcmp(mounts[i].dataset, name) == 0)
            return true;
    return false;
}

uint32_t
bh_access_readers(struct bh_core *core, const char *dataset)
{
    const struct bh_job_spec *spec;
    struct bh_job_view view;
    struct bh_err unused;
    uint32_t count = 0;

    for (uint32_t cursor = 0; bh_view_next_job(core->state.engine, &cursor, &view);)
        count += access_is_running(&view) && access_find_spec(core, view.spec, &spec, &unused) == BH_OK
                 && access_mounts_dataset(spec, dataset);
    return count;
}

static bh_rc
access_check_job(struct access_scan *access_scan, const struct bh_job_view *view, struct bh_err *err)
{
    const struct bh_job_spec *spec;
    struct bh_data_denial denial;
    struct judging j;
    bh_rc rc = access_find_spec(access_scan->core, view->spec, &spec, err);

    if (rc != BH_OK)
        return bh_core_is_fatal(rc) ? rc : BH_OK; /* it runs; its next start is refused */
    j = access_judging_of(access_scan->core, access_scan->dir, view, spec);
    if (bh_datasets_allow(&access_scan->dir->datasets, spec, &j.request, &denial))
        return BH_OK;
    access_add_reported(access_scan, view->job);
    if (access_is_reported(access_scan->core, view->job))
        return BH_OK;
    rc = access_record_refusal(
        access_scan->core, access_denial_of(access_scan->core, &j, &denial, view->tenant), NULL, view, err);
    if (rc != BH_OK)
        return rc;
    if (denial.dataset && denial.dataset->text->on_expiry == BH_DATASET_STOP
        && !access_refuse(access_scan->core, view->job, bh_data_rule_number(&denial.verdict)))
        return bh_err_set(err, BH_FULL, "too many refusals");
    return BH_OK;
}

/* When the next of all grants ends. */
static uint64_t
access_next_end_ns(const struct bh_datasets *datasets, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;

    for (uint32_t i = 0; i < datasets->count; i++)
        for (uint32_t k = 0; k < datasets->items[i].text->grants.count; k++) {
            uint64_t until_ns = datasets->items[i].until_ns[k];

            if (until_ns > now_ns && until_ns < next_ns)
                next_ns = until_ns;
        }
    return next_ns;
}

bh_rc
bh_access_check(struct bh_core *core, struct bh_err *err)
{
    struct access_scan access_scan = { .core = core };
    uint64_t now_ns = bh_core_now(core);
    struct bh_job_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    if (now_ns < core->access->check_ns || !access_site_has_any(core))
        return BH_OK;
    access_scan.dir = bh_catalog_get(core->catalog);
    while (rc == BH_OK && bh_view_next_job(core->state.engine, &cursor, &view))
        if (access_is_running(&view))
            rc = access_check_job(&access_scan, &view, err);
    core->access->check_ns = access_next_end_ns(&access_scan.dir->datasets, now_ns);
    bh_catalog_put(core->catalog, access_scan.dir);
    free(core->access->reported);
    core->access->reported = access_scan.reported;
    core->access->reported_count = access_scan.count;
    core->access->reported_capacity = access_scan.capacity;
    return rc;
}
