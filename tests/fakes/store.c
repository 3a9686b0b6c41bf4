#include "tests/fakes/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/merkle.h"
#include "audit/sealed.h"
#include "base/assert.h"
#include "tests/fakes/store_state.h"

/* ---- writing ---- */

static bh_rc
memory_begin(void *self, struct bh_err *err)
{
    struct bh_memory *memory = self;

    BH_ASSERT(!memory->begun);
    memory->begun = true;
    return BH_OK;
}

static void
memory_rollback(void *self)
{
    struct bh_memory *memory = self;

    for (int kind = 0; kind < BH_MEMORY_KINDS; kind++)
        bh_memory_clear(&memory->put[kind]);
    memory->begun = memory->failed = false;
}

static bh_rc
memory_commit(void *self, struct bh_err *err)
{
    struct bh_memory *memory = self;
    bool failed = memory->failed;

    BH_ASSERT(memory->begun);
    bh_mutex_lock(&memory->mutex);
    for (int kind = 0; !failed && kind < BH_MEMORY_KINDS; kind++) {
        struct bh_memory_rows *put = &memory->put[kind];

        for (size_t i = 0; i < put->count; i++)
            bh_memory_insert(&memory->kept[kind], (enum bh_memory_kind)kind, put->at[i]);
        put->count = 0;
    }
    bh_mutex_unlock(&memory->mutex);
    memory_rollback(memory);
    if (failed)
        return bh_err_set(err, BH_IO, "an earlier write of this transaction failed");
    return BH_OK;
}

/* A fixed part and `length` bytes behind it, which *ret_bytes is set to. */
static void *
memory_new_row(size_t size, const char *bytes, size_t length, char **ret_bytes)
{
    char *row = calloc(1, size + length + 1);

    BH_ASSERT(row);
    memcpy(row + size, bytes, length);
    *ret_bytes = row + size;
    return row;
}

static bh_rc
memory_put_record(void *self, uint64_t seq, const struct bh_slice *leaf, uint8_t ret_hash[32],
                  struct bh_err *err)
{
    struct bh_memory *memory = self;
    struct bh_memory_record *row;
    char *bytes;
    bh_rc rc = bh_memory_check_open(memory, err);

    if (rc != BH_OK)
        return rc;
    row = memory_new_row(sizeof *row, leaf->text, leaf->length, &bytes);
    row->seq = seq;
    row->leaf = bytes;
    row->length = leaf->length;
    bh_merkle_leaf(memory->crypto, leaf->text, leaf->length, row->hash.bytes);
    if (bh_memory_find(&memory->put[BH_MEMORY_RECORDS], BH_MEMORY_RECORDS, row)
        || bh_memory_find(&memory->kept[BH_MEMORY_RECORDS], BH_MEMORY_RECORDS, row)) {
        free(row);
        memory->failed = true;
        return bh_err_set(err, BH_IO, "record %llu: there is one already", (unsigned long long)seq);
    }
    if (ret_hash)
        memcpy(ret_hash, row->hash.bytes, sizeof row->hash.bytes);
    bh_memory_insert(&memory->put[BH_MEMORY_RECORDS], BH_MEMORY_RECORDS, row);
    return BH_OK;
}

/* The rows stand in their places with nothing but their hashes. */
static bh_rc
memory_prune_records(void *self, uint64_t first, uint64_t last, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_memory_rows *kept = &memory->kept[BH_MEMORY_RECORDS];
    const struct bh_memory_record from = { .seq = first };
    bh_rc rc = bh_memory_check_open(memory, err);

    for (size_t i = bh_memory_lower_bound(kept, BH_MEMORY_RECORDS, &from); rc == BH_OK && i < kept->count;
         i++) {
        struct bh_memory_record bare = *(const struct bh_memory_record *)kept->at[i];

        if (bare.seq > last)
            break;
        bare.leaf = "";
        bare.length = 0;
        rc = bh_memory_put_row(memory, BH_MEMORY_RECORDS, &bare, err);
    }
    return rc;
}

static bh_rc
memory_put_text(void *self, const struct bh_text_row *text, struct bh_err *err)
{
    struct bh_memory *memory = self;
    struct bh_memory_text *row;
    struct bh_sealed sealed;
    char *bytes;
    bh_rc rc = bh_memory_check_open(memory, err);

    if (rc != BH_OK)
        return rc;
    row = memory_new_row(sizeof *row, text->text.text, text->text.length, &bytes);
    row->digest = text->digest;
    row->tenant_id = text->tenant_id;
    if (text->tenant_id > 0 && bh_sealed_read(text->text, &sealed))
        row->key = sealed.key;
    row->text = bytes;
    bh_memory_insert(&memory->put[BH_MEMORY_TEXTS], BH_MEMORY_TEXTS, row);
    return BH_OK;
}

static bh_rc
memory_drop_text(void *self, const struct bh_digest *digest, struct bh_err *err)
{
    const struct bh_memory_text gone = { .digest = *digest, .text = "", .gone = true };

    return bh_memory_put_row(self, BH_MEMORY_TEXTS, &gone, err);
}

static bh_rc
memory_put_job(void *self, const struct bh_job_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_JOBS, row, err);
}

static bh_rc
memory_change_job(void *self, const struct bh_job_change *change, struct bh_err *err)
{
    struct bh_memory *memory = self;
    struct bh_job_row key = { .job = change->job }, row;
    const struct bh_job_row *found = bh_memory_find(&memory->put[BH_MEMORY_JOBS], BH_MEMORY_JOBS, &key);

    if (!found)
        found = bh_memory_find(&memory->kept[BH_MEMORY_JOBS], BH_MEMORY_JOBS, &key);
    if (!found)
        return bh_err_set(err, BH_NOT_FOUND, "job %llu has no row", (unsigned long long)change->job);
    row = *found;
    row.state = change->state;
    row.reason = change->reason;
    row.ended_ns = change->ended_ns;
    row.ended_by = change->ended_by;
    row.exit_status = change->exit_status;
    if (change->node) {
        row.lease = change->lease;
        row.restarts = change->restarts;
        row.node = change->node;
        row.partitions = change->partitions;
        row.grade = change->grade;
        row.started_ns = change->started_ns;
    }
    return bh_memory_put_row(self, BH_MEMORY_JOBS, &row, err);
}

static bh_rc
memory_put_name(void *self, const struct bh_name_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_NAMES, row, err);
}

static bh_rc
memory_put_token(void *self, const struct bh_token_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_TOKENS, row, err);
}

/* Principal 0, which no user has, has those that are gone. */
static bh_rc
memory_drop_token(void *self, const char *id, struct bh_err *err)
{
    struct bh_token_row gone = { .principal_id = 0 };

    snprintf(gone.id, sizeof gone.id, "%s", id);
    return bh_memory_put_row(self, BH_MEMORY_TOKENS, &gone, err);
}

static bh_rc
memory_put_document(void *self, const struct bh_document_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_DOCUMENTS, row, err);
}

static bh_rc
memory_put_checkpoint(void *self, const struct bh_checkpoint_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_CHECKPOINTS, row, err);
}

static bh_rc
memory_put_reply(void *self, const struct bh_reply_row *row, struct bh_err *err)
{
    return bh_memory_put_row(self, BH_MEMORY_REPLIES, row, err);
}

static bh_rc
memory_put_meta(void *self, const char *key, const char *value, struct bh_err *err)
{
    const struct bh_memory_meta row = { key, value };

    return bh_memory_put_row(self, BH_MEMORY_METAS, &row, err);
}

/* ---- reading ---- */

static bh_rc
memory_copy_text(const char *text, struct bh_arena *arena, const char **ret_text, struct bh_err *err)
{
    const char *copy = bh_arena_strdup(arena, text);

    if (!copy)
        return bh_err_set(err, BH_FULL, "no room for a text of %zu bytes", strlen(text));
    *ret_text = copy;
    return BH_OK;
}

static bh_rc
memory_get_meta(void *self, const char *key, struct bh_arena *arena, const char **ret_value,
                struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_memory_meta wanted = { key, NULL }, *row;
    bh_rc rc;

    bh_mutex_lock(&memory->mutex);
    row = bh_memory_find(&memory->kept[BH_MEMORY_METAS], BH_MEMORY_METAS, &wanted);
    rc = row ? memory_copy_text(row->value, arena, ret_value, err)
             : bh_err_set(err, BH_NOT_FOUND, "the store has no such value");
    bh_mutex_unlock(&memory->mutex);
    return rc;
}

static bh_rc
memory_get_text(void *self, const struct bh_digest *digest, struct bh_arena *arena, const char **ret_text,
                struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_memory_text wanted = { .digest = *digest }, *row;
    bh_rc rc;

    bh_mutex_lock(&memory->mutex);
    row = bh_memory_find(&memory->kept[BH_MEMORY_TEXTS], BH_MEMORY_TEXTS, &wanted);
    rc = row && !row->gone ? memory_copy_text(row->text, arena, ret_text, err)
                           : bh_err_set(err, BH_NOT_FOUND, "the store has no such text");
    bh_mutex_unlock(&memory->mutex);
    return rc;
}

static bh_rc
memory_copy_reply(const struct bh_reply_row *row, struct bh_arena *arena, struct bh_reply_row *ret_row,
                  struct bh_err *err)
{
    struct bh_reply_row reply = *row;
    bh_rc rc = memory_copy_text(row->key, arena, &reply.key, err);
    if (rc != BH_OK)
        return rc;

    rc = memory_copy_text(row->body, arena, &reply.body, err);
    if (rc != BH_OK)
        return rc;
    *ret_row = reply;
    return BH_OK;
}

static bh_rc
memory_get_reply(void *self, uint32_t principal_id, const char *key, struct bh_arena *arena,
                 struct bh_reply_row *ret_row, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_reply_row wanted = { .principal_id = principal_id, .key = key }, *row;
    bh_rc rc;

    bh_mutex_lock(&memory->mutex);
    row = bh_memory_find(&memory->kept[BH_MEMORY_REPLIES], BH_MEMORY_REPLIES, &wanted);
    rc = row && row->status ? memory_copy_reply(row, arena, ret_row, err)
                            : bh_err_set(err, BH_NOT_FOUND, "the store has no such reply");
    bh_mutex_unlock(&memory->mutex);
    return rc;
}

struct memory_job_walk {
    const struct bh_job_filter *filter;
    bh_job_sink sink;
    void *self;
    uint64_t left, count;
};

static bool
memory_passes(const struct bh_job_filter *filter, const struct bh_job_row *row)
{
    bool tenant = !filter->tenants;

    for (uint32_t i = 0; !tenant && i < filter->tenant_count; i++)
        tenant = filter->tenants[i] == row->tenant_id;
    return tenant && (filter->newest ? row->job < filter->before : row->job > filter->after)
           && (!filter->active_only || !row->ended_ns) && (!filter->ended_only || row->ended_ns)
           && (!filter->principal_id || filter->principal_id == row->principal_id)
           && (!filter->state || strcmp(filter->state, row->state) == 0);
}

static bool
memory_emit_job(const void *row, void *context)
{
    struct memory_job_walk *walk = context;

    if (!memory_passes(walk->filter, row))
        return true;
    walk->left--;
    walk->count++;
    return (!walk->sink || walk->sink(walk->self, row)) && walk->left > 0;
}

static bh_rc
memory_list_jobs(void *self, const struct bh_job_filter *filter, bh_job_sink sink, void *sink_self,
                 struct bh_err *err)
{
    struct memory_job_walk walk = { filter, sink, sink_self, filter->limit ? filter->limit : 100, 0 };
    const struct bh_job_row from = { .job = filter->after };

    if (filter->newest)
        bh_memory_each_row_back(self, BH_MEMORY_JOBS, memory_emit_job, &walk);
    else
        bh_memory_each_row(self, BH_MEMORY_JOBS, &from, memory_emit_job, &walk);
    return BH_OK;
}

static bh_rc
memory_count_jobs(void *self, const struct bh_job_filter *filter, uint64_t *ret_count, struct bh_err *err)
{
    struct bh_job_filter all = *filter;
    struct memory_job_walk walk = { &all, NULL, NULL, 100000, 0 };

    all.newest = false;
    bh_memory_each_row(self, BH_MEMORY_JOBS, NULL, memory_emit_job, &walk);
    *ret_count = walk.count;
    return BH_OK;
}

/* Rows come by jobs: those of one tenant and reason are summed in a table that grows. */
struct memory_reason_walk {
    const char *state;
    struct bh_reason_row rows[64];
    uint32_t count;
};

static bool
memory_take_reason(const void *row, void *context)
{
    struct memory_reason_walk *walk = context;
    const struct bh_job_row *job = row;
    uint32_t at = 0;

    if (job->ended_ns || strcmp(job->state, walk->state) != 0)
        return true;
    while (at < walk->count
           && (walk->rows[at].tenant_id != job->tenant_id || strcmp(walk->rows[at].reason, job->reason) != 0))
        at++;
    BH_ASSERT(at < BH_COUNT(walk->rows));
    if (at == walk->count)
        walk->rows[walk->count++] = (struct bh_reason_row){ job->tenant_id, 0, job->reason };
    walk->rows[at].jobs++;
    return true;
}

static int
memory_compare_reasons(const void *a, const void *b)
{
    const struct bh_reason_row *left = a, *right = b;
    int tenants = (left->tenant_id > right->tenant_id) - (left->tenant_id < right->tenant_id);

    return tenants ? tenants : strcmp(left->reason, right->reason);
}

static bh_rc
memory_count_reasons(void *self, const char *state, bh_reason_sink sink, void *sink_self, struct bh_err *err)
{
    struct memory_reason_walk walk = { .state = state };

    bh_memory_each_row(self, BH_MEMORY_JOBS, NULL, memory_take_reason, &walk);
    if (walk.count)
        qsort(walk.rows, walk.count, sizeof *walk.rows, memory_compare_reasons);
    for (uint32_t i = 0; i < walk.count && sink(sink_self, &walk.rows[i]); i++)
        continue;
    return BH_OK;
}

static bh_rc
memory_get_job(void *self, uint64_t job, bh_job_sink sink, void *sink_self, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_job_row wanted = { .job = job }, *row;

    bh_mutex_lock(&memory->mutex);
    row = bh_memory_find(&memory->kept[BH_MEMORY_JOBS], BH_MEMORY_JOBS, &wanted);
    if (row)
        sink(sink_self, row);
    bh_mutex_unlock(&memory->mutex);
    if (!row)
        return bh_err_set(err, BH_NOT_FOUND, "no job %llu", (unsigned long long)job);
    return BH_OK;
}

struct memory_record_walk {
    uint64_t last;
    bh_record_sink sink;
    bh_hash_sink hash_sink;
    void *self;
};

static bool
memory_emit_record(const void *row, void *context)
{
    const struct bh_memory_record *record = row;
    const struct memory_record_walk *walk = context;

    if (record->seq > walk->last)
        return false;
    if (walk->hash_sink)
        return walk->hash_sink(walk->self, record->seq, &record->hash);
    if (record->length == 0)
        return true;
    return walk->sink(walk->self, record->seq, record->leaf, record->length);
}

static bh_rc
memory_list_records(void *self, uint64_t first, uint64_t last, bh_record_sink sink, void *sink_self,
                    struct bh_err *err)
{
    struct memory_record_walk walk = { last, sink, NULL, sink_self };
    const struct bh_memory_record from = { .seq = first };

    bh_memory_each_row(self, BH_MEMORY_RECORDS, &from, memory_emit_record, &walk);
    return BH_OK;
}

static bh_rc
memory_list_hashes(void *self, uint64_t first, bh_hash_sink sink, void *sink_self, struct bh_err *err)
{
    struct memory_record_walk walk = { UINT64_MAX, NULL, sink, sink_self };
    const struct bh_memory_record from = { .seq = first };

    bh_memory_each_row(self, BH_MEMORY_RECORDS, &from, memory_emit_record, &walk);
    return BH_OK;
}

static bh_rc
memory_last_record(void *self, uint64_t *ret_seq, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_memory_rows *rows = &memory->kept[BH_MEMORY_RECORDS];
    const struct bh_memory_record *row = NULL;

    bh_mutex_lock(&memory->mutex);
    if (rows->count > 0)
        row = rows->at[rows->count - 1];
    if (row)
        *ret_seq = row->seq;
    bh_mutex_unlock(&memory->mutex);
    return row ? BH_OK : bh_err_set(err, BH_NOT_FOUND, "the store has no such record");
}

static bh_rc
memory_count_rows(void *self, enum bh_store_numbered table, uint64_t *ret_count, struct bh_err *err)
{
    struct bh_memory *memory = self;

    (void)err;
    bh_mutex_lock(&memory->mutex);
    *ret_count = memory->kept[table == BH_STORE_JOBS ? BH_MEMORY_JOBS : BH_MEMORY_RECORDS].count;
    bh_mutex_unlock(&memory->mutex);
    return BH_OK;
}

struct text_sum {
    uint32_t tenant_id;
    uint64_t bytes;
};

static bool
memory_add_text(const void *row, void *context)
{
    const struct bh_memory_text *text = row;
    struct text_sum *sum = context;

    if (text->tenant_id == sum->tenant_id && sum->tenant_id > 0 && !text->gone)
        sum->bytes += strlen(text->text);
    return true;
}

static bh_rc
memory_count_texts(void *self, uint32_t tenant_id, uint64_t *ret_bytes, struct bh_err *err)
{
    struct text_sum sum = { tenant_id, 0 };

    bh_memory_each_row(self, BH_MEMORY_TEXTS, NULL, memory_add_text, &sum);
    *ret_bytes = sum.bytes;
    return BH_OK;
}

struct memory_text_walk {
    bh_text_sink sink;
    void *self;
    uint64_t after, number;
};

static bool
memory_emit_text(const void *row, void *context)
{
    const struct bh_memory_text *text = row;
    struct memory_text_walk *walk = context;

    return ++walk->number <= walk->after || text->gone
           || walk->sink(walk->self, walk->number, &text->digest, text->text, strlen(text->text));
}

static bh_rc
memory_list_texts(void *self, uint64_t after, bh_text_sink sink, void *sink_self, struct bh_err *err)
{
    struct memory_text_walk walk = { sink, sink_self, after, 0 };

    bh_memory_each_row(self, BH_MEMORY_TEXTS, NULL, memory_emit_text, &walk);
    return BH_OK;
}

struct memory_name_walk {
    bh_name_sink sink;
    void *self;
};

static bool
memory_emit_name(const void *row, void *context)
{
    const struct memory_name_walk *walk = context;

    return walk->sink(walk->self, row);
}

static bh_rc
memory_list_names(void *self, bh_name_sink sink, void *sink_self, struct bh_err *err)
{
    struct memory_name_walk walk = { sink, sink_self };

    bh_memory_each_row(self, BH_MEMORY_NAMES, NULL, memory_emit_name, &walk);
    return BH_OK;
}

struct memory_token_walk {
    const struct bh_token_filter *filter;
    bh_token_sink sink;
    void *self;
};

static bool
memory_emit_token(const void *row, void *context)
{
    const struct memory_token_walk *walk = context;
    const struct bh_token_row *token = row;

    if (!token->principal_id || (walk->filter->id && strcmp(token->id, walk->filter->id) != 0)
        || (walk->filter->principal_id && token->principal_id != walk->filter->principal_id))
        return true;
    return walk->sink(walk->self, token);
}

static bh_rc
memory_list_tokens(void *self, const struct bh_token_filter *filter, bh_token_sink sink, void *sink_self,
                   struct bh_err *err)
{
    struct memory_token_walk walk = { filter, sink, sink_self };

    bh_memory_each_row(self, BH_MEMORY_TOKENS, NULL, memory_emit_token, &walk);
    return BH_OK;
}

static bh_rc
memory_get_document(void *self, const struct bh_document_key *key, struct bh_arena *arena,
                    struct bh_document_row *ret_row, struct bh_err *err)
{
    struct bh_memory *memory = self;
    const struct bh_document_row wanted = { .kind = key->kind, .key = key->key }, *row;
    bool found;

    bh_mutex_lock(&memory->mutex);
    row = bh_memory_find(&memory->kept[BH_MEMORY_DOCUMENTS], BH_MEMORY_DOCUMENTS, &wanted);
    found = row && row->value[0];
    if (found) {
        *ret_row = *row;
        ret_row->key = bh_arena_strdup(arena, row->key);
        ret_row->value = bh_arena_strdup(arena, row->value);
    }
    bh_mutex_unlock(&memory->mutex);
    if (!found)
        return bh_err_set(err, BH_NOT_FOUND, "the store has no such document");
    return ret_row->key && ret_row->value ? BH_OK : bh_err_set(err, BH_FULL, "no room for a document");
}

struct memory_document_walk {
    const struct bh_document_filter *filter;
    const char *from; /* only keys behind it */
    bh_document_sink sink;
    void *self;
};

static bool
memory_emit_document(const void *row, void *context)
{
    const struct memory_document_walk *walk = context;
    const struct bh_document_row *document = row;

    if (document->kind != walk->filter->kind)
        return false; /* they are in the order of kinds */
    if (!document->value[0] || strcmp(document->key, walk->from) <= 0
        || (walk->filter->principal_id && document->principal_id != walk->filter->principal_id))
        return true;
    return walk->sink(walk->self, document);
}

static bh_rc
memory_list_documents(void *self, const struct bh_document_filter *filter, bh_document_sink sink,
                      void *sink_self, struct bh_err *err)
{
    struct memory_document_walk walk = { filter, filter->after ? filter->after : "", sink, sink_self };
    const struct bh_document_row from = { .kind = filter->kind, .key = walk.from };

    bh_memory_each_row(self, BH_MEMORY_DOCUMENTS, &from, memory_emit_document, &walk);
    return BH_OK;
}

struct memory_checkpoint_walk {
    bh_checkpoint_sink sink;
    void *self;
};

static bool
memory_emit_checkpoint(const void *row, void *context)
{
    const struct memory_checkpoint_walk *walk = context;

    return walk->sink(walk->self, row);
}

static bh_rc
memory_list_checkpoints(void *self, uint64_t min_size, bh_checkpoint_sink sink, void *sink_self,
                        struct bh_err *err)
{
    struct memory_checkpoint_walk walk = { sink, sink_self };
    const struct bh_checkpoint_row from = { .size = min_size };

    bh_memory_each_row(self, BH_MEMORY_CHECKPOINTS, &from, memory_emit_checkpoint, &walk);
    return BH_OK;
}

/* Nothing is found again, and nothing is promised. */
static bh_rc
memory_check_files(void *self, struct bh_err *err)
{
    (void)self, (void)err;
    return BH_OK;
}

/* Only the port's own slots write there. */
static bh_rc
memory_check_rows(void *self, enum bh_store_rows which, struct bh_err *err)
{
    (void)self, (void)which, (void)err;
    return BH_OK;
}

/* ---- the store ---- */

static void
memory_close(void *self)
{
    struct bh_memory *memory = self;

    memory_rollback(memory);
    for (int kind = 0; kind < BH_MEMORY_KINDS; kind++) {
        bh_memory_clear(&memory->kept[kind]);
        free(memory->kept[kind].at);
        free(memory->put[kind].at);
    }
    bh_mutex_fini(&memory->mutex);
    free(memory);
}

static const struct bh_store_ops memory_ops = {
    .name = "memory",
    .begin = memory_begin,
    .commit = memory_commit,
    .rollback = memory_rollback,
    .put_record = memory_put_record,
    .prune_records = memory_prune_records,
    .put_text = memory_put_text,
    .drop_text = memory_drop_text,
    .put_job = memory_put_job,
    .change_job = memory_change_job,
    .put_name = memory_put_name,
    .put_token = memory_put_token,
    .drop_token = memory_drop_token,
    .put_document = memory_put_document,
    .put_checkpoint = memory_put_checkpoint,
    .put_reply = memory_put_reply,
    .put_meta = memory_put_meta,
    .put_key = bh_memory_put_key,
    .erase_sealed = bh_memory_erase_sealed,
    .erase_jobs = bh_memory_erase_jobs,
    .erase_name = bh_memory_erase_name,
    .scrub = bh_memory_scrub,
    .check_files = memory_check_files,
    .check_rows = memory_check_rows,
    .count_rows = memory_count_rows,
    .get_meta = memory_get_meta,
    .get_text = memory_get_text,
    .get_job = memory_get_job,
    .list_jobs = memory_list_jobs,
    .count_jobs = memory_count_jobs,
    .list_records = memory_list_records,
    .list_hashes = memory_list_hashes,
    .last_record = memory_last_record,
    .count_reasons = memory_count_reasons,
    .count_texts = memory_count_texts,
    .list_texts = memory_list_texts,
    .list_names = memory_list_names,
    .list_tokens = memory_list_tokens,
    .get_document = memory_get_document,
    .list_documents = memory_list_documents,
    .list_keys = bh_memory_list_keys,
    .list_checkpoints = memory_list_checkpoints,
    .get_reply = memory_get_reply,
    .close = memory_close,
};

void
bh_store_memory_open(const struct bh_crypto_ops *crypto, struct bh_store *ret_store)
{
    struct bh_memory *memory = calloc(1, sizeof *memory);

    BH_ASSERT(memory);
    memory->crypto = crypto;
    bh_mutex_init(&memory->mutex, BH_LOCK_MEMORY);
    *ret_store = (struct bh_store){ &memory_ops, memory };
}
