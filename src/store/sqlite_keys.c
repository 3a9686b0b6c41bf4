#include "store/sqlite.h"

#include <string.h>

#include "base/assert.h"
#include "store/sqlite_internal.h"

/* Keys, and making texts disappear: the writer overwrites with zeros what it deletes
 * (secure_delete), and the log is emptied after. */

bh_rc
bh_sqlite_put_key(void *self, const struct bh_key_row *row, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_PUT_KEY, err, BH_SQL_U64(row->id), BH_SQL_U64(row->kind),
                         BH_SQL_U64(row->tenant_id), BH_SQL_U64(row->month), BH_SQL_U64(row->parent),
                         BH_SQL_U64(row->created_ns), BH_SQL_U64(row->shredded_ns),
                         BH_SQL_BYTES(row->wrapped, sizeof row->wrapped));
}

static bool
emit_key(const struct bh_sql_use *use, bh_key_sink sink, void *sink_self)
{
    const void *wrapped = sqlite3_column_blob(use->statement, 7);
    struct bh_key_row row = {
        .id = bh_sql_u64(use, 0),
        .kind = (enum bh_key_kind)bh_sql_u64(use, 1),
        .tenant_id = (uint32_t)bh_sql_u64(use, 2),
        .month = (uint32_t)bh_sql_u64(use, 3),
        .parent = bh_sql_u64(use, 4),
        .created_ns = bh_sql_u64(use, 5),
        .shredded_ns = bh_sql_u64(use, 6),
    };

    if (wrapped && sqlite3_column_bytes(use->statement, 7) == sizeof row.wrapped)
        memcpy(row.wrapped, wrapped, sizeof row.wrapped);
    return sink(sink_self, &row);
}

static bh_rc
list_keys(struct bh_sql *reader, bh_key_sink sink, void *sink_self, struct bh_err *err)
{
    BH_AUTO(bh_sql_done) struct bh_sql_use use = { 0 };
    bool row = true;
    bh_rc rc = bh_sql_use(reader, BH_SQL_LIST_KEYS, &use, err);

    while (rc == BH_OK && row) {
        rc = bh_sql_step(&use, &row, err);
        if (rc == BH_OK && row)
            row = emit_key(&use, sink, sink_self);
    }
    return rc;
}

bh_rc
bh_sqlite_list_keys(void *self, bh_key_sink sink, void *sink_self, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql *reader;
    bh_rc rc = bh_sqlite_acquire(store, &reader, err);

    if (rc != BH_OK)
        return rc;
    rc = list_keys(reader, sink, sink_self, err);
    bh_sqlite_release(store, reader);
    return rc;
}

bh_rc
bh_sqlite_erase_sealed(void *self, uint64_t key, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_ERASE_SEALED, err, BH_SQL_U64(key));
}

static bh_rc
keys_erase(struct bh_sqlite *store, enum bh_sql_statement which, const struct bh_erasure *erasure,
           struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sqlite_write(store, which, &use, err);

    if (rc != BH_OK)
        return rc;
    if (which != BH_SQL_ERASE_REPLIES) {
        bh_sql_put_u64(&use, erasure->tenant_id);
        bh_sql_put_u64(&use, erasure->from_ns);
        bh_sql_put_u64(&use, erasure->before_ns > INT64_MAX ? INT64_MAX : erasure->before_ns);
    }
    return bh_sqlite_written(store, &use, err);
}

bh_rc
bh_sqlite_erase_jobs(void *self, const struct bh_erasure *which, struct bh_err *err)
{
    bh_rc rc = keys_erase(self, BH_SQL_ERASE_TEXTS, which, err);

    if (rc != BH_OK)
        return rc;
    rc = keys_erase(self, BH_SQL_ERASE_NAMES, which, err);
    if (rc != BH_OK)
        return rc;
    return keys_erase(self, BH_SQL_ERASE_REPLIES, which, err);
}

bh_rc
bh_sqlite_erase_name(void *self, enum bh_name_kind kind, uint32_t id, struct bh_err *err)
{
    if (kind == BH_NAME_TENANT || kind == BH_NAME_PRINCIPAL) {
        bh_rc rc = bh_sqlite_put(self, kind == BH_NAME_TENANT ? BH_SQL_ERASE_TENANT : BH_SQL_ERASE_PRINCIPAL,
                                 err, BH_SQL_U64(id));

        if (rc != BH_OK)
            return rc;
    }
    return keys_erase(self, BH_SQL_ERASE_REPLIES, NULL, err);
}

/* The log holds pages as they were before: all of it is copied, then cut off. */
bh_rc
bh_sqlite_scrub(void *self, struct bh_err *err)
{
    struct bh_sqlite *store = self;

    BH_ASSERT(store->writer && !store->begun);
    if (sqlite3_wal_checkpoint_v2(store->writer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL)
        != SQLITE_OK)
        return bh_sql_err(store->writer, "empty the log", err);
    return BH_OK;
}
