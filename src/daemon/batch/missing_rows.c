#include "daemon/batch/missing_rows.h"

#include <inttypes.h>

#include "audit/binding.h"

static bh_rc
missing_rows_refuse(const char *table, const char *what, uint64_t number, struct bh_err *err)
{
    bh_err_set(err, BH_CONFLICT, "the store lacks %s %" PRIu64 ": its row is missing in the table %s", what,
               number, table);
    return bh_err_hint(err, BH_MISSING_ROWS_GO_BACK);
}

bh_rc
bh_missing_rows_refuse_job(bh_job_id job, struct bh_err *err)
{
    (void)missing_rows_refuse("jobs", "job", job.v, err);
    return err->rc = BH_UNCERTAIN;
}

/* ---- records ---- */

/* Stops at the first number that is not there. */
static bool
missing_rows_see_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    uint64_t *next = self;

    (void)hash;
    if (seq != *next)
        return false;
    ++*next;
    return true;
}

static bh_rc
missing_rows_check_records(const struct bh_core *core, struct bh_err *err)
{
    const struct bh_store *store = &core->store;
    uint64_t count, first = 0;
    bh_rc rc = store->ops->count_rows(store->self, BH_STORE_RECORDS, &count, err);

    if (rc != BH_OK || count == core->journal.next_seq)
        return rc;
    rc = store->ops->list_hashes(store->self, 0, missing_rows_see_hash, &first, err);
    return rc == BH_OK ? missing_rows_refuse("records", "record", first, err) : rc;
}

/* ---- jobs ---- */

static bool
missing_rows_see_job(void *self, const struct bh_job_row *row)
{
    (void)self, (void)row;
    return false;
}

static bh_rc
missing_rows_check_job(const struct bh_core *core, uint64_t job, struct bh_err *err)
{
    const struct bh_store *store = &core->store;
    bh_rc rc = store->ops->get_job(store->self, job, missing_rows_see_job, NULL, err);

    return rc == BH_NOT_FOUND ? missing_rows_refuse("jobs", "job", job, err) : rc;
}

/* The jobs that have not ended one by one: a row too many may stand in for one of theirs. */
static bh_rc
missing_rows_check_active(const struct bh_core *core, struct bh_err *err)
{
    struct bh_job_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_job(core->state.engine, &cursor, &view))
        rc = missing_rows_check_job(core, view.job.v, err);
    return rc;
}

static bh_rc
missing_rows_check_jobs(const struct bh_core *core, struct bh_err *err)
{
    const struct bh_store *store = &core->store;
    uint64_t count;
    bh_rc rc = store->ops->count_rows(store->self, BH_STORE_JOBS, &count, err);

    if (rc != BH_OK)
        return rc;
    if (count + 1 >= core->next_job)
        return missing_rows_check_active(core, err);
    for (uint64_t job = 1; rc == BH_OK && job < core->next_job; job++)
        rc = missing_rows_check_job(core, job, err);
    return rc;
}

/* ---- names ---- */

static bh_rc
missing_rows_check_name(const struct bh_core *core, enum bh_name_kind kind, uint32_t id, struct bh_err *err)
{
    if (id == 0 || bh_catalog_name_of(core->catalog, kind, id))
        return BH_OK;
    return missing_rows_refuse("names", bh_binding_kinds[kind], id, err);
}

/* Ids are given in their order, and no row ever goes. */
static bh_rc
missing_rows_check_gaps(const struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t kind = 0; kind < BH_NAME_KINDS; kind++)
        for (uint32_t id = bh_catalog_last(core->catalog, kind); rc == BH_OK && id > 0; id--)
            rc = missing_rows_check_name(core, kind, id, err);
    return rc;
}

static bh_rc
missing_rows_check_names_of_jobs(const struct bh_core *core, struct bh_err *err)
{
    struct bh_job_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_job(core->state.engine, &cursor, &view)) {
        rc = missing_rows_check_name(core, BH_NAME_PRINCIPAL, view.principal.v, err);
        if (rc == BH_OK)
            rc = missing_rows_check_name(core, BH_NAME_SKU, view.sku.v, err);
    }
    return rc;
}

static bh_rc
missing_rows_check_names_of_tenants(const struct bh_core *core, struct bh_err *err)
{
    struct bh_tenant_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_tenant(core->state.engine, &cursor, core->journal.last_ts_ns, &view))
        rc = missing_rows_check_name(core, BH_NAME_TENANT, view.settings.tenant.v, err);
    return rc;
}

static bh_rc
missing_rows_check_names_of_gpus(const struct bh_core *core, struct bh_err *err)
{
    struct bh_gpu_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_gpu(core->state.engine, &cursor, &view)) {
        rc = missing_rows_check_name(core, BH_NAME_GPU, view.gpu.v, err);
        if (rc == BH_OK)
            rc = missing_rows_check_name(core, BH_NAME_NODE, view.node.v, err);
    }
    return rc;
}

/* bulkheadd's own name is bound by its first start, which puts the mark "names" as well. */
static bh_rc
missing_rows_check_own_name(const struct bh_core *core, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const char *value;
    bh_rc rc = core->store.ops->get_meta(core->store.self, "names", arena, &value, err);

    if (rc == BH_NOT_FOUND)
        return BH_OK;
    return rc == BH_OK ? missing_rows_check_name(core, BH_NAME_PRINCIPAL, 1, err) : rc;
}

static bh_rc
missing_rows_check_names(const struct bh_core *core, struct bh_err *err)
{
    static bh_rc (*const checks[])(const struct bh_core *core, struct bh_err *err) = {
        missing_rows_check_own_name,      missing_rows_check_gaps,
        missing_rows_check_names_of_jobs, missing_rows_check_names_of_tenants,
        missing_rows_check_names_of_gpus,
    };
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(checks); i++)
        rc = checks[i](core, err);
    return rc;
}

bh_rc
bh_missing_rows_check(const struct bh_core *core, struct bh_err *err)
{
    bh_rc rc = missing_rows_check_records(core, err);

    if (rc != BH_OK)
        return rc;
    rc = missing_rows_check_jobs(core, err);
    if (rc != BH_OK)
        return rc;
    return missing_rows_check_names(core, err);
}
