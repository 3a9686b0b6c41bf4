#include "daemon/removals.h"

#include <inttypes.h>
#include <string.h>

struct line {
    struct bh_buf *out;
    const char *list, *name;
    bool begun;
};

/* Room for one more thing on the line. */
static struct bh_buf *
next(struct line *line)
{
    if (line->begun)
        bh_buf_puts(line->out, ", ");
    else
        bh_buf_printf(line->out, "%s[%s]: ", line->list, line->name);
    line->begun = true;
    return line->out;
}

static void
put_count(struct line *line, uint64_t count, const char *one, const char *many)
{
    if (count)
        bh_buf_printf(next(line), "%" PRIu64 " %s", count, count == 1 ? one : many);
}

/* Jobs by the store, which knows those that ended, and by the engine, which knows those of the
 * open batch. */
static bh_rc
put_jobs(struct bh_core *core, struct line *line, const struct bh_job_filter *of,
         uint64_t alive, struct bh_err *err)
{
    struct bh_job_filter filter = *of;
    uint64_t all = 0, active = 0;
    bh_rc rc = core->store.ops->count_jobs(core->store.self, &filter, &all, err);

    filter.active_only = true;
    if (rc == BH_OK)
        rc = core->store.ops->count_jobs(core->store.self, &filter, &active, err);
    if (rc != BH_OK)
        return rc;
    active = active > alive ? active : alive;
    all = all > active ? all : active;
    put_count(line, all, "job", "jobs");
    if (active)
        bh_buf_printf(line->out, " (%" PRIu64 " not ended)", active);
    return BH_OK;
}

/* How many of the engine's jobs have not ended and are the principal's or of the SKU. */
static uint64_t
count_alive(const struct bh_core *core, enum bh_name_kind kind, uint32_t id)
{
    struct bh_job_view view;
    uint64_t count = 0;

    for (uint32_t cursor = 0; bh_view_next_job(core->state.engine, &cursor, &view);)
        count += view.cause == BH_END_NONE
                 && (kind == BH_NAME_SKU ? view.sku.v == id : view.principal.v == id);
    return count;
}

/* ---- tenants ---- */

static uint64_t
count_below(const struct bh_core *core, const char *path)
{
    size_t length = strlen(path);
    uint32_t cursor = 0, id;
    uint64_t count = 0;
    const char *name;

    while ((name = bh_catalog_next(core->catalog, BH_NAME_TENANT, &cursor, &id)))
        count += strncmp(name, path, length) == 0 && name[length] == '/';
    return count;
}

static void
put_usage(struct bh_core *core, struct line *line, uint32_t id)
{
    const bh_part_ns milli_hour = (bh_part_ns)BH_GPU_PARTS * 3600 * 1000000;
    struct bh_metered_view row;
    uint64_t used;

    if (!bh_view_metered(core->state.engine, (bh_tenant_id){ id }, bh_core_now(core), &row)
        || (row.compute_ns == 0 && row.memory_ns == 0))
        return;
    used = (uint64_t)(row.compute_ns / milli_hour);
    bh_buf_printf(next(line), "%" PRIu64 ".%03u GPU-hours used", used / 1000,
                  (unsigned)(used % 1000));
}

static bh_rc
put_tenant(struct bh_core *core, struct line *line, uint32_t id, struct bh_err *err)
{
    const struct bh_job_filter filter = { .tenants = &id, .tenant_count = 1 };
    struct bh_tenant_view view = { .running = 0 };
    uint64_t below = count_below(core, line->name);
    bh_rc rc;

    put_usage(core, line, id);
    /* those below are in the view's numbers, too */
    if (!bh_view_tenant(core->state.engine, (bh_tenant_id){ id }, bh_core_now(core), &view) || below)
        view.running = view.pending = 0;
    rc = put_jobs(core, line, &filter, (uint64_t)view.running + view.pending, err);
    put_count(line, below, "tenant below", "tenants below");
    return rc;
}

/* ---- principals ---- */

struct tokens {
    uint32_t principal;
    uint64_t now_ns, count;
};

static bool
count_token(void *self, const struct bh_token_row *row)
{
    struct tokens *tokens = self;

    tokens->count += row->principal_id == tokens->principal && !row->revoked
                     && row->expires_ns > tokens->now_ns;
    return true;
}

static bool
count_document(void *self, const struct bh_document_row *row)
{
    ++*(uint64_t *)self;
    return true;
}

static bh_rc
put_principal(struct bh_core *core, struct line *line, uint32_t id, struct bh_err *err)
{
    static const struct {
        enum bh_document_kind kind;
        const char *one, *many;
    } kinds[] = { { BH_DOCUMENT_ACCOUNT, "account", "accounts" },
                  { BH_DOCUMENT_PASSKEY, "passkey", "passkeys" },
                  { BH_DOCUMENT_SESSION, "session", "sessions" } };
    const struct bh_job_filter filter = { .principal_id = id };
    const struct bh_token_filter held = { .principal_id = id };
    struct tokens tokens = { id, bh_core_now(core), 0 };
    bh_rc rc = put_jobs(core, line, &filter, count_alive(core, BH_NAME_PRINCIPAL, id), err);

    if (rc == BH_OK)
        rc = core->store.ops->list_tokens(core->store.self, &held, count_token, &tokens,
                                          err);
    put_count(line, tokens.count, "token", "tokens");
    for (size_t i = 0; i < BH_COUNT(kinds) && rc == BH_OK; i++) {
        const struct bh_document_filter documents = { kinds[i].kind, id };
        uint64_t count = 0;

        rc = core->store.ops->list_documents(core->store.self, &documents, count_document, &count,
                                             err);
        put_count(line, count, kinds[i].one, kinds[i].many);
    }
    return rc;
}

bh_rc
bh_removal_put(struct bh_core *core, enum bh_name_kind kind, uint32_t id, struct bh_buf *out,
               struct bh_err *err)
{
    static const char *const lists[BH_NAME_KINDS] = { [BH_NAME_TENANT] = "tenants",
                                                      [BH_NAME_PRINCIPAL] = "principals",
                                                      [BH_NAME_SKU] = "skus",
                                                      [BH_NAME_DATASET] = "datasets" };
    struct line line = { out, lists[kind], bh_catalog_name_of(core->catalog, kind, id), false };
    bh_rc rc = BH_OK;

    if (kind == BH_NAME_TENANT)
        rc = put_tenant(core, &line, id, err);
    else if (kind == BH_NAME_PRINCIPAL)
        rc = put_principal(core, &line, id, err);
    else if (kind == BH_NAME_SKU)
        put_count(&line, count_alive(core, kind, id), "job not ended", "jobs not ended");
    else if (kind == BH_NAME_DATASET)
        put_count(&line, bh_access_readers(core, line.name), "running job", "running jobs");
    if (line.begun)
        bh_buf_putc(out, '\n');
    return rc;
}
