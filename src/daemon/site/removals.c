#include "daemon/site/removals.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/batch/access.h"

struct removals_line {
    struct bh_buf *out;
    const char *list, *name;
    bool begun;
};

/* Room for one more thing on the line. */
static struct bh_buf *
removals_next(struct removals_line *line)
{
    if (line->begun)
        bh_buf_puts(line->out, ", ");
    else
        bh_buf_printf(line->out, "%s[%s]: ", line->list, line->name);
    line->begun = true;
    return line->out;
}

static void
removals_put_count(struct removals_line *line, uint64_t count, const char *one, const char *many)
{
    if (count)
        bh_buf_printf(removals_next(line), "%" PRIu64 " %s", count, count == 1 ? one : many);
}

/* Jobs that have not ended, that a removal is about: those of tenants that go are cancelled. */
struct alive {
    uint64_t all, cancelled;
};

static bool
removals_has_tenant(const struct bh_removal *removal, uint32_t tenant)
{
    for (uint32_t i = 0; i < removal->tenant_count; i++)
        if (removal->tenants[i] == tenant)
            return true;
    return false;
}

static struct alive
removals_count_alive(const struct bh_core *core, const struct bh_removal *removal)
{
    struct bh_job_view view;
    struct alive alive = { 0, 0 };

    for (uint32_t cursor = 0; bh_view_next_job(core->state.engine, &cursor, &view);) {
        uint32_t id = removal->kind == BH_NAME_SKU      ? view.sku.v
                      : removal->kind == BH_NAME_TENANT ? view.tenant.v
                                                        : view.principal.v;

        if (view.cause != BH_END_NONE || id != removal->id)
            continue;
        alive.all++;
        alive.cancelled += removals_has_tenant(removal, view.tenant.v);
    }
    return alive;
}

/* Raise *alive by what the store knows. */
static bh_rc
removals_count_active(struct bh_core *core, struct bh_job_filter filter, uint64_t *alive, struct bh_err *err)
{
    uint64_t active = 0;
    bh_rc rc;

    filter.active_only = true;
    rc = core->store.ops->count_jobs(core->store.self, &filter, &active, err);
    *alive = active > *alive ? active : *alive;
    return rc;
}

static void
removals_put_outcome(struct bh_buf *out, const struct alive *alive)
{
    uint64_t stay = alive->all - alive->cancelled;

    bh_buf_printf(out, " (%" PRIu64 " not ended: ", alive->all);
    if (alive->cancelled == 0)
        bh_buf_puts(out, stay == 1 ? "it runs on)" : "they run on)");
    else if (stay == 0)
        bh_buf_puts(out, alive->cancelled == 1 ? "it is cancelled)" : "they are cancelled)");
    else
        bh_buf_printf(out, "%" PRIu64 " of them cancelled, the rest %s on)", alive->cancelled,
                      stay == 1 ? "runs" : "run");
}

/* Jobs by the store, which knows those that ended, and by the engine, which knows those of the
 * open batch. */
static bh_rc
removals_put_jobs(struct bh_core *core, struct removals_line *line, const struct bh_removal *removal,
                  const struct bh_job_filter *of, struct bh_err *err)
{
    struct bh_job_filter removed = *of;
    struct alive alive = removals_count_alive(core, removal);
    uint64_t all = 0;
    bh_rc rc = core->store.ops->count_jobs(core->store.self, of, &all, err);

    if (rc == BH_OK)
        rc = removals_count_active(core, *of, &alive.all, err);
    removed.tenants = removal->tenants;
    removed.tenant_count = removal->tenant_count;
    if (removal->kind == BH_NAME_TENANT)
        alive.cancelled = alive.all;
    else if (rc == BH_OK && removed.tenant_count)
        rc = removals_count_active(core, removed, &alive.cancelled, err);
    if (rc != BH_OK)
        return rc;
    all = all > alive.all ? all : alive.all;
    removals_put_count(line, all, "job", "jobs");
    if (alive.all)
        removals_put_outcome(line->out, &alive);
    return BH_OK;
}

/* ---- tenants ---- */

static uint64_t
removals_count_below(const struct bh_core *core, const char *path)
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
removals_put_usage(struct bh_core *core, struct removals_line *line, uint32_t id)
{
    const bh_part_ns milli_hour = (bh_part_ns)BH_GPU_PARTS * 3600 * 1000000;
    struct bh_metered_view row;
    uint64_t used;

    if (!bh_view_metered(core->state.engine, (bh_tenant_id){ id }, bh_core_now(core), &row)
        || (row.compute_ns == 0 && row.memory_ns == 0))
        return;
    used = (uint64_t)(row.compute_ns / milli_hour);
    bh_buf_printf(removals_next(line), "%" PRIu64 ".%03u GPU-hours used", used / 1000,
                  (unsigned)(used % 1000));
}

static bh_rc
removals_put_tenant(struct bh_core *core, struct removals_line *line, const struct bh_removal *removal,
                    struct bh_err *err)
{
    const struct bh_job_filter filter = { .tenants = &removal->id, .tenant_count = 1 };
    uint64_t below = removals_count_below(core, line->name);
    bh_rc rc;

    removals_put_usage(core, line, removal->id);
    rc = removals_put_jobs(core, line, removal, &filter, err);
    removals_put_count(line, below, "tenant below", "tenants below");
    return rc;
}

/* ---- principals ---- */

struct tokens {
    uint32_t principal;
    uint64_t now_ns, count;
};

static bool
removals_count_token(void *self, const struct bh_token_row *row)
{
    struct tokens *tokens = self;

    tokens->count +=
        row->principal_id == tokens->principal && !row->revoked && row->expires_ns > tokens->now_ns;
    return true;
}

static bool
removals_count_document(void *self, const struct bh_document_row *row)
{
    ++*(uint64_t *)self;
    return true;
}

static bh_rc
removals_put_principal(struct bh_core *core, struct removals_line *line, const struct bh_removal *removal,
                       struct bh_err *err)
{
    uint32_t id = removal->id;
    static const struct {
        enum bh_document_kind kind;
        const char *one, *many;
    } kinds[] = { { BH_DOCUMENT_ACCOUNT, "account", "accounts" },
                  { BH_DOCUMENT_PASSKEY, "passkey", "passkeys" },
                  { BH_DOCUMENT_SESSION, "session", "sessions" } };
    const struct bh_job_filter filter = { .principal_id = id };
    const struct bh_token_filter held = { .principal_id = id };
    struct tokens tokens = { id, bh_core_now(core), 0 };
    bh_rc rc = removals_put_jobs(core, line, removal, &filter, err);

    if (rc == BH_OK)
        rc = core->store.ops->list_tokens(core->store.self, &held, removals_count_token, &tokens, err);
    removals_put_count(line, tokens.count, "token", "tokens");
    for (size_t i = 0; i < BH_COUNT(kinds) && rc == BH_OK; i++) {
        const struct bh_document_filter documents = { kinds[i].kind, id };
        uint64_t count = 0;

        rc = core->store.ops->list_documents(core->store.self, &documents, removals_count_document, &count,
                                             err);
        removals_put_count(line, count, kinds[i].one, kinds[i].many);
    }
    return rc;
}

bh_rc
bh_removal_put(struct bh_core *core, const struct bh_removal *removal, struct bh_buf *out, struct bh_err *err)
{
    enum bh_name_kind kind = removal->kind;
    static const char *const lists[BH_NAME_KINDS] = { [BH_NAME_TENANT] = "tenants",
                                                      [BH_NAME_PRINCIPAL] = "principals",
                                                      [BH_NAME_SKU] = "skus",
                                                      [BH_NAME_DATASET] = "datasets" };
    struct removals_line line = { out, lists[kind], bh_catalog_name_of(core->catalog, kind, removal->id),
                                  false };
    bh_rc rc = BH_OK;

    if (kind == BH_NAME_TENANT)
        rc = removals_put_tenant(core, &line, removal, err);
    else if (kind == BH_NAME_PRINCIPAL)
        rc = removals_put_principal(core, &line, removal, err);
    else if (kind == BH_NAME_SKU)
        removals_put_count(&line, removals_count_alive(core, removal).all, "job not ended", "jobs not ended");
    else if (kind == BH_NAME_DATASET)
        removals_put_count(&line, bh_access_readers(core, line.name), "running job", "running jobs");
    if (line.begun)
        bh_buf_putc(out, '\n');
    return rc;
}
