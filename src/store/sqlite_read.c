#include "store/sqlite.h"

#include <stdio.h>

#include "store/sqlite_internal.h"

/* A reader with one statement in use; both go back together. */
struct query {
    struct bh_sqlite *store;
    struct bh_sql *reader;
    struct bh_sql_use use;
};

static void
read_query_end_auto(struct query *query)
{
    if (query->use.statement)
        bh_sql_done(&query->use);
    if (query->reader)
        bh_sqlite_release(query->store, query->reader);
}

static bh_rc
read_query_begin(struct query *query, void *self, enum bh_sql_statement which, struct bh_err *err)
{
    bh_rc rc;

    query->store = self;
    rc = bh_sqlite_acquire(query->store, &query->reader, err);
    return rc == BH_OK ? bh_sql_use(query->reader, which, &query->use, err) : rc;
}

/* The one row that a find wants; BH_NOT_FOUND when there is none. */
static bh_rc
read_query_row(struct query *query, const char *what, struct bh_err *err)
{
    bool row;
    bh_rc rc = bh_sql_step(&query->use, &row, err);

    if (rc != BH_OK)
        return rc;
    if (!row)
        return bh_err_set(err, BH_NOT_FOUND, "the store has no such %s", what);
    return BH_OK;
}

static bh_rc
sqlite_read_copy_text(const struct query *query, int column, struct bh_arena *arena, const char **ret_text,
                      struct bh_err *err)
{
    const char *copy = bh_arena_strdup(arena, bh_sql_text(&query->use, column));

    if (!copy)
        return bh_err_set(err, BH_FULL, "no room for a text of %d bytes",
                          sqlite3_column_bytes(query->use.statement, column));
    *ret_text = copy;
    return BH_OK;
}

/* Call `emit` for each row until it is false. */
static bh_rc
read_query_each(struct query *query, bool (*emit)(const struct bh_sql_use *use, void *context), void *context,
                struct bh_err *err)
{
    bool row = true;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && row) {
        rc = bh_sql_step(&query->use, &row, err);
        if (rc == BH_OK && row)
            row = emit(&query->use, context);
    }
    return rc;
}

bh_rc
bh_sqlite_get_meta(void *self, const char *key, struct bh_arena *arena, const char **ret_value,
                   struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_GET_META, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_text(&query.use, key);
    rc = read_query_row(&query, "value", err);
    return rc == BH_OK ? sqlite_read_copy_text(&query, 0, arena, ret_value, err) : rc;
}

bh_rc
bh_sqlite_get_text(void *self, const struct bh_digest *digest, struct bh_arena *arena, const char **ret_text,
                   struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_GET_TEXT, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_bytes(&query.use, digest->bytes, sizeof digest->bytes);
    rc = read_query_row(&query, "text", err);
    return rc == BH_OK ? sqlite_read_copy_text(&query, 0, arena, ret_text, err) : rc;
}

bh_rc
bh_sqlite_get_reply(void *self, uint32_t principal_id, const char *key, struct bh_arena *arena,
                    struct bh_reply_row *ret_row, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct bh_reply_row reply = { .principal_id = principal_id };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_GET_REPLY, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, principal_id);
    bh_sql_put_text(&query.use, key);
    rc = read_query_row(&query, "reply", err);
    if (rc != BH_OK)
        return rc;
    rc = sqlite_read_copy_text(&query, 2, arena, &reply.body, err);
    if (rc != BH_OK)
        return rc;
    reply.key = bh_arena_strdup(arena, key);
    if (!reply.key)
        return bh_err_set(err, BH_FULL, "no room for the key of a reply");
    bh_sql_digest(&query.use, 0, &reply.request);
    reply.status = (uint32_t)bh_sql_u64(&query.use, 1);
    reply.at_ns = bh_sql_u64(&query.use, 3);
    *ret_row = reply;
    return BH_OK;
}

/* Every list has a small struct that carries its sink through read_query_each. */

static uint64_t
sqlite_read_clamp(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : number;
}

struct read_record_walk {
    bh_record_sink sink;
    void *self;
};

static bool
read_emit_record(const struct bh_sql_use *use, void *context)
{
    const struct read_record_walk *walk = context;
    const char *leaf = sqlite3_column_blob(use->statement, 1);

    return walk->sink(walk->self, bh_sql_u64(use, 0), leaf ? leaf : "",
                      (size_t)sqlite3_column_bytes(use->statement, 1));
}

bh_rc
bh_sqlite_list_records(void *self, uint64_t first, uint64_t last, bh_record_sink sink, void *sink_self,
                       struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_record_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LIST_RECORDS, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, sqlite_read_clamp(first));
    bh_sql_put_u64(&query.use, sqlite_read_clamp(last));
    return read_query_each(&query, read_emit_record, &walk, err);
}

struct hash_walk {
    bh_hash_sink sink;
    void *self;
};

static bool
read_emit_hash(const struct bh_sql_use *use, void *context)
{
    const struct hash_walk *walk = context;
    struct bh_digest hash;

    bh_sql_digest(use, 1, &hash);
    return walk->sink(walk->self, bh_sql_u64(use, 0), &hash);
}

bh_rc
bh_sqlite_list_hashes(void *self, uint64_t first, bh_hash_sink sink, void *sink_self, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct hash_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LIST_HASHES, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, sqlite_read_clamp(first));
    return read_query_each(&query, read_emit_hash, &walk, err);
}

bh_rc
bh_sqlite_last_record(void *self, uint64_t *ret_seq, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LAST_RECORD, err);

    if (rc != BH_OK)
        return rc;
    rc = read_query_row(&query, "record", err);
    if (rc != BH_OK)
        return rc;
    *ret_seq = bh_sql_u64(&query.use, 0);
    return BH_OK;
}

bh_rc
bh_sqlite_count_rows(void *self, enum bh_store_numbered table, uint64_t *ret_count, struct bh_err *err)
{
    static const enum bh_sql_statement counts[BH_STORE_NUMBERED] = {
        [BH_STORE_RECORDS] = BH_SQL_COUNT_RECORDS,
        [BH_STORE_JOBS] = BH_SQL_COUNT_JOBS,
    };
    BH_AUTO(read_query_end) struct query query = { 0 };
    bh_rc rc = read_query_begin(&query, self, counts[table], err);

    if (rc != BH_OK)
        return rc;
    rc = read_query_row(&query, "count of rows", err);
    if (rc != BH_OK)
        return rc;
    *ret_count = bh_sql_u64(&query.use, 0);
    return BH_OK;
}

bh_rc
bh_sqlite_count_texts(void *self, uint32_t tenant_id, uint64_t *ret_bytes, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_COUNT_TEXTS, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, tenant_id);
    rc = read_query_row(&query, "sum of texts", err);
    if (rc != BH_OK)
        return rc;
    *ret_bytes = bh_sql_u64(&query.use, 0);
    return BH_OK;
}

struct read_reason_walk {
    bh_reason_sink sink;
    void *self;
};

static bool
read_emit_reason(const struct bh_sql_use *use, void *context)
{
    const struct read_reason_walk *walk = context;
    const struct bh_reason_row row = { .tenant_id = (uint32_t)bh_sql_u64(use, 0),
                                       .reason = bh_sql_text(use, 1),
                                       .jobs = (uint32_t)bh_sql_u64(use, 2) };

    return walk->sink(walk->self, &row);
}

bh_rc
bh_sqlite_count_reasons(void *self, const char *state, bh_reason_sink sink, void *sink_self,
                        struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_reason_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_COUNT_REASONS, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_text(&query.use, state);
    return read_query_each(&query, read_emit_reason, &walk, err);
}

struct read_text_walk {
    bh_text_sink sink;
    void *self;
};

static bool
read_emit_text(const struct bh_sql_use *use, void *context)
{
    const struct read_text_walk *walk = context;
    struct bh_digest digest;

    bh_sql_digest(use, 1, &digest);
    return walk->sink(walk->self, bh_sql_u64(use, 0), &digest, bh_sql_text(use, 2),
                      (size_t)sqlite3_column_bytes(use->statement, 2));
}

bh_rc
bh_sqlite_list_texts(void *self, uint64_t after, bh_text_sink sink, void *sink_self, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_text_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LIST_TEXTS, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, sqlite_read_clamp(after));
    return read_query_each(&query, read_emit_text, &walk, err);
}

struct read_name_walk {
    bh_name_sink sink;
    void *self;
};

static bool
read_emit_name(const struct bh_sql_use *use, void *context)
{
    const struct read_name_walk *walk = context;
    struct bh_name_row row = {
        .kind = (enum bh_name_kind)bh_sql_u64(use, 0),
        .id = (uint32_t)bh_sql_u64(use, 1),
        .name = bh_sql_text(use, 2),
        .gone = bh_sql_u64(use, 3) != 0,
        .record = bh_sql_u64(use, 5),
    };

    bh_sql_digest(use, 4, &row.key);
    return walk->sink(walk->self, &row);
}

bh_rc
bh_sqlite_list_names(void *self, bh_name_sink sink, void *sink_self, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_name_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LIST_NAMES, err);

    return rc == BH_OK ? read_query_each(&query, read_emit_name, &walk, err) : rc;
}

struct read_token_walk {
    bh_token_sink sink;
    void *self;
};

static bool
read_emit_token(const struct bh_sql_use *use, void *context)
{
    const struct read_token_walk *walk = context;
    struct bh_token_row row = {
        .principal_id = (uint32_t)bh_sql_u64(use, 2),
        .scopes = bh_sql_text(use, 3),
        .note = bh_sql_text(use, 4),
        .created_ns = bh_sql_u64(use, 5),
        .expires_ns = bh_sql_u64(use, 6),
        .last_used_ns = bh_sql_u64(use, 7),
        .revoked = bh_sql_u64(use, 8) != 0,
    };

    snprintf(row.id, sizeof row.id, "%s", bh_sql_text(use, 0));
    bh_sql_digest(use, 1, &row.secret);
    return walk->sink(walk->self, &row);
}

bh_rc
bh_sqlite_list_tokens(void *self, const struct bh_token_filter *filter, bh_token_sink sink, void *sink_self,
                      struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_token_walk walk = { sink, sink_self };
    enum bh_sql_statement which = filter->id             ? BH_SQL_GET_TOKEN
                                  : filter->principal_id ? BH_SQL_LIST_TOKENS_OF
                                                         : BH_SQL_LIST_TOKENS;
    bh_rc rc = read_query_begin(&query, self, which, err);

    if (rc != BH_OK)
        return rc;
    if (filter->id)
        bh_sql_put_text(&query.use, filter->id);
    else if (filter->principal_id)
        bh_sql_put_u64(&query.use, filter->principal_id);
    return read_query_each(&query, read_emit_token, &walk, err);
}

static struct bh_document_row
read_document_of(const struct bh_sql_use *use)
{
    return (struct bh_document_row){
        .kind = (enum bh_document_kind)bh_sql_u64(use, 0),
        .key = bh_sql_text(use, 1),
        .version = bh_sql_u64(use, 2),
        .principal_id = (uint32_t)bh_sql_u64(use, 3),
        .value = bh_sql_text(use, 4),
    };
}

bh_rc
bh_sqlite_get_document(void *self, const struct bh_document_key *key, struct bh_arena *arena,
                       struct bh_document_row *ret_row, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_GET_DOCUMENT, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, key->kind);
    bh_sql_put_text(&query.use, key->key);
    rc = read_query_row(&query, "document", err);
    if (rc != BH_OK)
        return rc;
    *ret_row = read_document_of(&query.use);
    ret_row->key = bh_arena_strdup(arena, ret_row->key);
    ret_row->value = bh_arena_strdup(arena, ret_row->value);
    return ret_row->key && ret_row->value ? BH_OK : bh_err_set(err, BH_FULL, "no room for a document");
}

struct read_document_walk {
    bh_document_sink sink;
    void *self;
};

static bool
read_emit_document(const struct bh_sql_use *use, void *context)
{
    const struct read_document_walk *walk = context;
    const struct bh_document_row row = read_document_of(use);

    return walk->sink(walk->self, &row);
}

bh_rc
bh_sqlite_list_documents(void *self, const struct bh_document_filter *filter, bh_document_sink sink,
                         void *sink_self, struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_document_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LIST_DOCUMENTS, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, filter->kind);
    bh_sql_put_u64(&query.use, filter->principal_id);
    bh_sql_put_text(&query.use, filter->after ? filter->after : "");
    return read_query_each(&query, read_emit_document, &walk, err);
}

struct read_checkpoint_walk {
    bh_checkpoint_sink sink;
    void *self;
};

static bool
read_emit_checkpoint(const struct bh_sql_use *use, void *context)
{
    const struct read_checkpoint_walk *walk = context;
    const struct bh_checkpoint_row row = { bh_sql_u64(use, 0), bh_sql_text(use, 1) };

    return walk->sink(walk->self, &row);
}

bh_rc
bh_sqlite_list_checkpoints(void *self, uint64_t min_size, bh_checkpoint_sink sink, void *sink_self,
                           struct bh_err *err)
{
    BH_AUTO(read_query_end) struct query query = { 0 };
    struct read_checkpoint_walk walk = { sink, sink_self };
    bh_rc rc = read_query_begin(&query, self, BH_SQL_LIST_CHECKPOINTS, err);

    if (rc != BH_OK)
        return rc;
    bh_sql_put_u64(&query.use, sqlite_read_clamp(min_size));
    return read_query_each(&query, read_emit_checkpoint, &walk, err);
}
