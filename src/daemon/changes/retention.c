#include "daemon/changes/retention.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/documents/minimum.h"
#include "audit/bound.h"
#include "audit/checkpoint.h"
#include "audit/tile.h"
#include "base/assert.h"
#include "base/num.h"
#include "base/slice.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/names.h"
#include "daemon/batch/record.h"
#include "daemon/batch/snapshot.h"

enum { AT_ONCE = 64 * BH_TILE_WIDTH };

/* ---- what stands against it ---- */

static bh_rc
retention_check_policy(const struct bh_core *core, struct bh_err *err)
{
    const struct bh_site *site = bh_catalog_site(core->catalog);
    const struct bh_site_tenant *tenants = site->tenants.items;

    if (core->config->audit_retention == 0) {
        bh_err_set(err, BH_CONFLICT, "the audit log is kept for ever");
        return bh_err_hint(err, "audit_retention in bulkheadd.conf sets how long");
    }
    for (uint32_t i = 0; i < site->tenants.count; i++)
        if (tenants[i].legal_hold) {
            bh_err_set(err, BH_CONFLICT, "%.80s is under a legal hold", tenants[i].name);
            return bh_err_hint(
                err, "records of all tenants are in one log, so none is pruned until the hold ends");
        }
    return BH_OK;
}

/* ---- how far ---- */

struct retention_moment {
    uint64_t ts_ns;
};

static bool
retention_read_time(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct retention_moment *moment = self;
    struct bh_slice value;

    if (!bh_slice_get((struct bh_slice){ leaf, length }, "ts", &value)
        || !bh_slice_u64(value, &moment->ts_ns))
        moment->ts_ns = UINT64_MAX; /* not one that may go */
    return false;
}

/* The first of records `low` to `high` - 1 that is not older, by halving. */
static bh_rc
retention_skip_older(const struct bh_core *core, uint64_t before_ns, uint64_t range[2], struct bh_err *err)
{
    const struct bh_store *store = &core->store;

    while (range[0] < range[1]) {
        uint64_t middle = range[0] + (range[1] - range[0]) / 2;
        struct retention_moment moment = { UINT64_MAX };
        bh_rc rc = store->ops->list_records(store->self, middle, middle, retention_read_time, &moment, err);

        if (rc != BH_OK)
            return rc;
        if (moment.ts_ns < before_ns)
            range[0] = middle + 1;
        else
            range[1] = middle;
    }
    return BH_OK;
}

static bh_rc
retention_find_covered(const struct bh_core *core, const char *note, uint64_t *ret_size, struct bh_err *err)
{
    struct bh_checkpoint checkpoint;
    bh_rc rc = bh_checkpoint_open(core->crypto, &core->journal.key, note, &checkpoint, err);

    if (rc == BH_DENIED || rc == BH_INVALID) {
        err->rc = BH_INVALID;
        return bh_err_wrap(err, "checkpoint");
    }
    if (rc != BH_OK)
        return rc;
    *ret_size = checkpoint.size;
    return BH_OK;
}

/* `ret[0]`: the minimum index as it is; `ret[1]`: as it may become. */
static bh_rc
retention_find_bounds(struct bh_core *core, const char *note, uint64_t ret[2], struct bh_err *err)
{
    uint64_t now_ns = bh_core_now(core), kept_ns = core->config->audit_retention;
    uint64_t covered = 0, snapshot = 0;
    bh_rc rc = bh_minimum_read(&core->store, &ret[0], err);

    if (rc != BH_OK)
        return rc;
    rc = retention_find_covered(core, note, &covered, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_snapshot_check(core, &snapshot, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND) {
        bh_err_wrap(err, "a start needs these records");
        return err->rc = BH_CONFLICT;
    }
    rc = BH_OK;
    ret[1] = covered < snapshot ? covered : snapshot;
    if (ret[1] > ret[0]) {
        uint64_t range[2] = { ret[0], ret[1] };

        rc = retention_skip_older(core, now_ns > kept_ns ? now_ns - kept_ns : 0, range, err);
        ret[1] = range[0];
    }
    ret[1] -= ret[1] % BH_TILE_WIDTH;
    if (ret[1] < ret[0])
        ret[1] = ret[0];
    return rc;
}

/* ---- what stays ---- */

/* Of the records that one pruning drops at most; one record's lists. */
enum { CLAIMS_BYTES_MAX = 256 << 20 };

struct retention_reading {
    struct bh_claims *claims;
    char *scratch;
    bh_rc rc;
    struct bh_err *err;
};

static bool
retention_read_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct retention_reading *reading = self;
    struct bh_record record;

    reading->rc = bh_record_decode(leaf, length, reading->scratch, &record, reading->err);
    if (reading->rc == BH_OK)
        reading->rc = bh_claims_read(reading->claims, &record, reading->err);
    return reading->rc == BH_OK;
}

static bh_rc
retention_read_range(struct bh_core *core, const uint64_t range[2], struct bh_claims *claims,
                     struct bh_err *err)
{
    const struct bh_store *store = &core->store;
    struct retention_reading reading = { .claims = claims,
                                         .scratch = malloc(BH_RECORD_BYTES_MAX + 64),
                                         .err = err };
    bh_rc rc;

    BH_ASSERT(reading.scratch);
    if (range[0] > 0)
        bh_claims_skip(claims, range[0] - 1);
    rc = store->ops->list_records(store->self, range[0], range[1] - 1, retention_read_record, &reading, err);
    free(reading.scratch);
    return rc == BH_OK ? reading.rc : rc;
}

static bh_rc
retention_write_bound(struct bh_core *core, struct bh_claims *claims, uint64_t from, uint64_t to,
                      struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = BH_RECORD_ROWS_BIND,
                              .obj = { .type = BH_RECORD_LOG, .id = to } };
    struct bh_bound_cursor cursor = { .table = 0 };
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_RECORD_BYTES_MAX };
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_bound_put(claims, from, &cursor, &text)) {
        entry.ev_json = bh_buf_text(&text);
        BH_ASSERT(entry.ev_json);
        rc = bh_core_record(core, &entry, BH_OK, err);
        bh_buf_clear(&text);
    }
    return rc;
}

/* 0 when all that was pruned before was carried on. */
static bh_rc
retention_find_gap(struct bh_core *core, uint64_t first, uint64_t *ret_from, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(4096);
    const struct bh_store *store = &core->store;
    const char *value = "0";
    uint64_t carried;
    bh_rc rc = store->ops->get_meta(store->self, BH_META_CARRIED, arena, &value, err);

    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    *ret_from = bh_parse_u64(value, &carried, err) == BH_OK && carried == first ? 0 : first;
    return BH_OK;
}

/* What the records that go said of rows is said again by those that stay: what they said, not what
 * the rows are now. */
static bh_rc
retention_bind_remaining(struct bh_core *core, const uint64_t range[2], struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(CLAIMS_BYTES_MAX);
    struct bh_claims *claims = bh_claims_new(arena, core->crypto);
    const struct bh_store *store = &core->store;
    uint64_t from = 0;
    char text[24];
    bh_rc rc = retention_find_gap(core, range[0], &from, err);

    if (rc != BH_OK)
        return rc;
    rc = retention_read_range(core, range, claims, err);
    if (rc != BH_OK)
        return rc;
    rc = retention_write_bound(core, claims, from, range[1], err);
    if (rc != BH_OK)
        return rc;
    snprintf(text, sizeof text, "%" PRIu64, from == 0 ? range[1] : 0);
    return store->ops->put_meta(store->self, BH_META_CARRIED, text, err);
}

/* ---- doing it ---- */

/* Recorded before it happens, in the same transaction; also when there is nothing to prune. */
/* What they bound stays bound. */
static bh_rc
retention_drop_records(struct bh_core *core, const uint64_t range[2], struct bh_err *err)
{
    bh_rc rc = bh_names_keep(core, range[1], err);

    if (rc != BH_OK)
        return rc;
    rc = retention_bind_remaining(core, range, err);
    if (rc != BH_OK)
        return rc;
    return core->store.ops->prune_records(core->store.self, range[0], range[1] - 1, err);
}

static bh_rc
retention_prune(struct bh_core *core, const struct bh_entry *like, const uint64_t range[2],
                struct bh_err *err)
{
    struct bh_entry entry = *like;
    char text[24];
    bh_rc rc;

    snprintf(text, sizeof text, "%" PRIu64, range[1]);
    entry.verb = BH_RECORD_PRUNE;
    entry.obj = (struct bh_record_object){ .type = BH_RECORD_LOG, .id = range[1] };
    rc = bh_core_record(core, &entry, BH_OK, err);
    if (rc == BH_OK && range[1] > range[0])
        rc = retention_drop_records(core, range, err);
    if (rc == BH_OK)
        rc = core->store.ops->put_meta(core->store.self, BH_META_MINIMUM, text, err);
    return rc == BH_OK || bh_core_is_fatal(rc) ? rc : bh_err_set(err, BH_IO, "%.200s", err->msg);
}

bh_rc
bh_retention_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                 struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = bh_command_authz(core, command, BH_RECORD_PRUNE, (bh_tenant_id){ 0 });
    struct bh_entry entry;
    uint64_t range[2];
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ BH_RECORD_PRUNE, verdict, BH_REACH_OBJECT }, err);
    rc = retention_check_policy(core, err);
    if (rc != BH_OK)
        return rc;
    rc = retention_find_bounds(core, command->checkpoint, range, err);
    if (rc != BH_OK)
        return rc;
    ret_answer->more = range[1] - range[0] > AT_ONCE && !command->dry_run;
    if (ret_answer->more)
        range[1] = range[0] + AT_ONCE;
    ret_answer->pruned = range[1] - range[0];
    ret_answer->minimum = range[1];
    if (command->dry_run)
        return BH_OK;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    return retention_prune(core, &entry, range, err);
}
