#include "store/sqlite.h"

#include <string.h>

#include "audit/merkle.h"
#include "base/assert.h"
#include "store/sqlite_internal.h"

static bh_rc
write_refuse_reader(const struct bh_sqlite *store, struct bh_err *err)
{
    return bh_err_set(err, BH_UNAVAILABLE, "the store %s is open for reading only", store->path);
}

bh_rc
bh_sqlite_begin(void *self, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql_use use;
    bh_rc rc;

    if (!store->writer)
        return write_refuse_reader(store, err);
    BH_ASSERT(!store->begun);
    rc = bh_sql_use(store->writer, BH_SQL_BEGIN, &use, err);
    if (rc == BH_OK)
        rc = bh_sql_run(&use, err);
    store->begun = rc == BH_OK;
    store->failed = false;
    return rc;
}

void
bh_sqlite_rollback(void *self)
{
    struct bh_sqlite *store = self;

    /* SQLite has rolled back by itself after some errors. */
    if (store->begun && !sqlite3_get_autocommit(store->writer->db))
        sqlite3_exec(store->writer->db, "ROLLBACK", NULL, NULL, NULL);
    store->begun = store->failed = false;
}

/* When only the flush of a commit fails, the whole transaction stands in the log, and a
 * crash now would bring it back although the result says that it failed.  Another transaction in
 * its place prevents that. */
static bh_rc
write_overwrite_failed(struct bh_sqlite *store, struct bh_err *err)
{
    struct bh_err second;

    if (err->sys_kind != BH_SYS_SQL || err->sys != SQLITE_IOERR_FSYNC)
        return err->rc;
    if (bh_sqlite_touch(store->writer, &second) == BH_OK)
        return err->rc;
    return bh_err_sys(err, BH_UNCERTAIN, BH_SYS_SQL, second.sys,
                      "commit failed and may come back after a crash: %s", second.msg);
}

bh_rc
bh_sqlite_commit(void *self, struct bh_err *err)
{
    struct bh_sqlite *store = self;
    struct bh_sql_use use;
    bh_rc rc;

    if (!store->writer)
        return write_refuse_reader(store, err);
    BH_ASSERT(store->begun);
    if (store->failed)
        rc = bh_err_set(err, BH_IO, "an earlier write of this transaction failed");
    else
        rc = bh_sql_use(store->writer, BH_SQL_COMMIT, &use, err);
    if (rc == BH_OK)
        rc = bh_sql_run(&use, err);
    if (rc == BH_OK) {
        store->begun = false;
        return BH_OK;
    }
    bh_sqlite_rollback(store);
    return write_overwrite_failed(store, err);
}

bh_rc
bh_sqlite_write(struct bh_sqlite *store, enum bh_sql_statement which, struct bh_sql_use *ret_use,
                struct bh_err *err)
{
    bh_rc rc;

    if (!store->writer)
        return write_refuse_reader(store, err);
    BH_ASSERT(store->begun);
    /* Without this, what follows a rollback by SQLite itself would be kept. */
    if (store->failed)
        return bh_err_set(err, BH_IO, "an earlier write of this transaction failed");
    rc = bh_sql_use(store->writer, which, ret_use, err);
    store->failed = rc != BH_OK;
    return rc;
}

bh_rc
bh_sqlite_written(struct bh_sqlite *store, struct bh_sql_use *use, struct bh_err *err)
{
    bh_rc rc = bh_sql_run(use, err);

    store->failed = rc != BH_OK;
    return rc;
}

bh_rc
bh_sqlite_put_values(struct bh_sqlite *store, enum bh_sql_statement which, const struct bh_sql_value *values,
                     size_t count, struct bh_err *err)
{
    struct bh_sql_use use;
    bh_rc rc = bh_sqlite_write(store, which, &use, err);

    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < count; i++) {
        const struct bh_sql_value *value = &values[i];

        if (value->kind == BH_SQL_VALUE_U64)
            bh_sql_put_u64(&use, value->number);
        else if (value->kind == BH_SQL_VALUE_BYTES)
            bh_sql_put_bytes(&use, value->bytes, value->number);
        else if (value->number == BH_SQL_TEXT_WHOLE)
            bh_sql_put_text(&use, value->bytes);
        else
            bh_sql_put_text_n(&use, value->bytes, value->number);
    }
    return bh_sqlite_written(store, &use, err);
}

bh_rc
bh_sqlite_put_record(void *self, uint64_t seq, const struct bh_slice *leaf, uint8_t ret_hash[32],
                     struct bh_err *err)
{
    const struct bh_sqlite *store = self;
    uint8_t hash[32];
    bh_rc rc;

    bh_merkle_leaf(store->crypto, leaf->text, leaf->length, hash);
    rc = bh_sqlite_put(self, BH_SQL_PUT_RECORD, err, BH_SQL_U64(seq), BH_SQL_BYTES(leaf->text, leaf->length),
                       BH_SQL_BYTES(hash, sizeof hash));
    if (rc == BH_OK && ret_hash)
        memcpy(ret_hash, hash, sizeof hash);
    return rc == BH_OK ? rc : bh_err_wrap(err, "record %llu", (unsigned long long)seq);
}

bh_rc
bh_sqlite_prune_records(void *self, uint64_t first, uint64_t last, struct bh_err *err)
{
    bh_rc rc = bh_sqlite_put(self, BH_SQL_PRUNE_RECORDS, err, BH_SQL_U64(first), BH_SQL_U64(last));

    return rc == BH_OK ? rc : bh_err_wrap(err, "prune records");
}

bh_rc
bh_sqlite_put_text(void *self, const struct bh_text_row *row, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_PUT_TEXT, err,
                         BH_SQL_BYTES(row->digest.bytes, sizeof row->digest.bytes),
                         BH_SQL_U64(row->tenant_id), BH_SQL_U64(row->text.length),
                         BH_SQL_TEXT_N(row->text.text, row->text.length));
}

bh_rc
bh_sqlite_drop_text(void *self, const struct bh_digest *digest, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_DROP_TEXT, err, BH_SQL_BYTES(digest->bytes, sizeof digest->bytes));
}

bh_rc
bh_sqlite_put_name(void *self, const struct bh_name_row *row, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_PUT_NAME, err, BH_SQL_U64(row->kind), BH_SQL_U64(row->id),
                         BH_SQL_TEXT(row->name), BH_SQL_U64(row->gone),
                         BH_SQL_BYTES(row->key.bytes, sizeof row->key.bytes), BH_SQL_U64(row->record));
}

bh_rc
bh_sqlite_put_token(void *self, const struct bh_token_row *row, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_PUT_TOKEN, err, BH_SQL_TEXT(row->id),
                         BH_SQL_BYTES(row->secret.bytes, sizeof row->secret.bytes),
                         BH_SQL_U64(row->principal_id), BH_SQL_TEXT(row->scopes), BH_SQL_TEXT(row->note),
                         BH_SQL_U64(row->created_ns), BH_SQL_U64(row->expires_ns),
                         BH_SQL_U64(row->last_used_ns), BH_SQL_U64(row->revoked));
}

bh_rc
bh_sqlite_drop_token(void *self, const char *id, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_DROP_TOKEN, err, BH_SQL_TEXT(id));
}

bh_rc
bh_sqlite_put_document(void *self, const struct bh_document_row *row, struct bh_err *err)
{
    if (!row->value || !row->value[0])
        return bh_sqlite_put(self, BH_SQL_DROP_DOCUMENT, err, BH_SQL_U64(row->kind), BH_SQL_TEXT(row->key));
    return bh_sqlite_put(self, BH_SQL_PUT_DOCUMENT, err, BH_SQL_U64(row->kind), BH_SQL_TEXT(row->key),
                         BH_SQL_U64(row->version), BH_SQL_U64(row->principal_id), BH_SQL_TEXT(row->value));
}

bh_rc
bh_sqlite_put_checkpoint(void *self, const struct bh_checkpoint_row *row, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_PUT_CHECKPOINT, err, BH_SQL_U64(row->size), BH_SQL_TEXT(row->note));
}

/* No client repeats yesterday's request: the table stays as large as a day's. */
static bh_rc
write_drop_old_replies(struct bh_sqlite *store, uint64_t now_ns, struct bh_err *err)
{
    static const uint64_t day_ns = UINT64_C(86400) * 1000000000;

    return bh_sqlite_put(store, BH_SQL_DROP_REPLIES, err, BH_SQL_U64(now_ns > day_ns ? now_ns - day_ns : 0));
}

bh_rc
bh_sqlite_put_reply(void *self, const struct bh_reply_row *row, struct bh_err *err)
{
    bh_rc rc =
        bh_sqlite_put(self, BH_SQL_PUT_REPLY, err, BH_SQL_U64(row->principal_id), BH_SQL_TEXT(row->key),
                      BH_SQL_BYTES(row->request.bytes, sizeof row->request.bytes), BH_SQL_U64(row->status),
                      BH_SQL_TEXT(row->body), BH_SQL_U64(row->at_ns));

    return rc == BH_OK ? write_drop_old_replies(self, row->at_ns, err) : rc;
}

bh_rc
bh_sqlite_put_meta(void *self, const char *key, const char *value, struct bh_err *err)
{
    return bh_sqlite_put(self, BH_SQL_PUT_META, err, BH_SQL_TEXT(key), BH_SQL_TEXT(value));
}
