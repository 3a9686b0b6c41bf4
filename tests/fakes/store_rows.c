#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/vec.h"
#include "tests/fakes/store_state.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int
rows_compare_records(const void *a, const void *b)
{
    const struct bh_memory_record *left = a, *right = b;

    return COMPARE(left->seq, right->seq);
}

static int
rows_compare_texts(const void *a, const void *b)
{
    const struct bh_memory_text *left = a, *right = b;

    return memcmp(left->digest.bytes, right->digest.bytes, sizeof left->digest.bytes);
}

static int
rows_compare_jobs(const void *a, const void *b)
{
    const struct bh_job_row *left = a, *right = b;

    return COMPARE(left->job, right->job);
}

static int
rows_compare_names(const void *a, const void *b)
{
    const struct bh_name_row *left = a, *right = b;

    return left->kind != right->kind ? COMPARE(left->kind, right->kind) : COMPARE(left->id, right->id);
}

static int
rows_compare_tokens(const void *a, const void *b)
{
    const struct bh_token_row *left = a, *right = b;

    return strcmp(left->id, right->id);
}

static int
rows_compare_documents(const void *a, const void *b)
{
    const struct bh_document_row *left = a, *right = b;

    return left->kind != right->kind ? COMPARE(left->kind, right->kind) : strcmp(left->key, right->key);
}

static int
rows_compare_checkpoints(const void *a, const void *b)
{
    const struct bh_checkpoint_row *left = a, *right = b;

    return COMPARE(left->size, right->size);
}

static int
rows_compare_replies(const void *a, const void *b)
{
    const struct bh_reply_row *left = a, *right = b;

    return left->principal_id != right->principal_id ? COMPARE(left->principal_id, right->principal_id)
                                                     : strcmp(left->key, right->key);
}

static int
rows_compare_metas(const void *a, const void *b)
{
    const struct bh_memory_meta *left = a, *right = b;

    return strcmp(left->key, right->key);
}

static int
rows_compare_keys(const void *a, const void *b)
{
    const struct bh_key_row *left = a, *right = b;

    return COMPARE(left->id, right->id);
}

enum { TEXTS_MAX = 11, ROWS_MAX = 1 << 30 };

static const struct {
    int (*compare)(const void *a, const void *b);
    size_t size;
    size_t texts[TEXTS_MAX]; /* where in the row pointers to texts stand */
    unsigned text_count;
} kinds[BH_MEMORY_KINDS] = {
    [BH_MEMORY_RECORDS] = { rows_compare_records, sizeof(struct bh_memory_record), { 0 }, 0 },
    [BH_MEMORY_TEXTS] = { rows_compare_texts, sizeof(struct bh_memory_text), { 0 }, 0 },
    [BH_MEMORY_JOBS] = { rows_compare_jobs,
                         sizeof(struct bh_job_row),
                         { offsetof(struct bh_job_row, name), offsetof(struct bh_job_row, tenant),
                           offsetof(struct bh_job_row, principal), offsetof(struct bh_job_row, sku),
                           offsetof(struct bh_job_row, kind), offsetof(struct bh_job_row, state),
                           offsetof(struct bh_job_row, contract), offsetof(struct bh_job_row, reason),
                           offsetof(struct bh_job_row, node), offsetof(struct bh_job_row, partitions),
                           offsetof(struct bh_job_row, grade) },
                         11 },
    [BH_MEMORY_NAMES] = { rows_compare_names,
                          sizeof(struct bh_name_row),
                          { offsetof(struct bh_name_row, name) },
                          1 },
    [BH_MEMORY_TOKENS] = { rows_compare_tokens,
                           sizeof(struct bh_token_row),
                           { offsetof(struct bh_token_row, scopes), offsetof(struct bh_token_row, note) },
                           2 },
    [BH_MEMORY_DOCUMENTS] = { rows_compare_documents,
                              sizeof(struct bh_document_row),
                              { offsetof(struct bh_document_row, key),
                                offsetof(struct bh_document_row, value) },
                              2 },
    [BH_MEMORY_CHECKPOINTS] = { rows_compare_checkpoints,
                                sizeof(struct bh_checkpoint_row),
                                { offsetof(struct bh_checkpoint_row, note) },
                                1 },
    [BH_MEMORY_REPLIES] = { rows_compare_replies,
                            sizeof(struct bh_reply_row),
                            { offsetof(struct bh_reply_row, key), offsetof(struct bh_reply_row, body) },
                            2 },
    [BH_MEMORY_METAS] = { rows_compare_metas,
                          sizeof(struct bh_memory_meta),
                          { offsetof(struct bh_memory_meta, key), offsetof(struct bh_memory_meta, value) },
                          2 },
    [BH_MEMORY_KEYS] = { rows_compare_keys, sizeof(struct bh_key_row), { 0 }, 0 },
};

size_t
bh_memory_lower_bound(const struct bh_memory_rows *rows, enum bh_memory_kind kind, const void *row)
{
    size_t low = 0, high = rows->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (kinds[kind].compare(rows->at[middle], row) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void *
bh_memory_find(const struct bh_memory_rows *rows, enum bh_memory_kind kind, const void *row)
{
    size_t at = bh_memory_lower_bound(rows, kind, row);

    return at < rows->count && kinds[kind].compare(rows->at[at], row) == 0 ? rows->at[at] : NULL;
}

void
bh_memory_insert(struct bh_memory_rows *rows, enum bh_memory_kind kind, void *row)
{
    size_t at = bh_memory_lower_bound(rows, kind, row);
    bool fits;

    if (at < rows->count && kinds[kind].compare(rows->at[at], row) == 0) {
        free(rows->at[at]);
        rows->at[at] = row;
        return;
    }
    fits = bh_vec_reserve(&rows->at, &rows->capacity, rows->count + 1, ROWS_MAX);
    BH_ASSERT(fits);
    memmove(rows->at + at + 1, rows->at + at, (rows->count - at) * sizeof *rows->at);
    rows->at[at] = row;
    rows->count++;
}

void
bh_memory_clear(struct bh_memory_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->at[i]);
    rows->count = 0;
}

static const char **
memory_rows_text_slot(void *row, size_t offset)
{
    return (const char **)(void *)((char *)row + offset);
}

/* A copy with its texts behind it; NULL texts become "". */
static void *
memory_rows_copy(enum bh_memory_kind kind, const void *row)
{
    size_t size = kinds[kind].size;
    char *copy, *end;

    for (unsigned i = 0; i < kinds[kind].text_count; i++) {
        const char *text;

        memcpy(&text, (const char *)row + kinds[kind].texts[i], sizeof text);
        size += text ? strlen(text) + 1 : 1;
    }
    copy = malloc(size);
    BH_ASSERT(copy);
    memcpy(copy, row, kinds[kind].size);
    end = copy + kinds[kind].size;
    for (unsigned i = 0; i < kinds[kind].text_count; i++) {
        const char **place = memory_rows_text_slot(copy, kinds[kind].texts[i]);
        size_t length = *place ? strlen(*place) : 0;

        memcpy(end, *place ? *place : "", length + 1);
        *place = end;
        end += length + 1;
    }
    return copy;
}

bh_rc
bh_memory_check_open(const struct bh_memory *memory, struct bh_err *err)
{
    BH_ASSERT(memory->begun);
    if (memory->failed)
        return bh_err_set(err, BH_IO, "an earlier write of this transaction failed");
    return BH_OK;
}

bh_rc
bh_memory_put_row(struct bh_memory *memory, enum bh_memory_kind kind, const void *row, struct bh_err *err)
{
    bh_rc rc = bh_memory_check_open(memory, err);
    if (rc != BH_OK)
        return rc;

    bh_memory_insert(&memory->put[kind], kind, memory_rows_copy(kind, row));
    return BH_OK;
}

void
bh_memory_each_row(struct bh_memory *memory, enum bh_memory_kind kind, const void *from,
                   bool (*emit)(const void *row, void *context), void *context)
{
    struct bh_memory_rows *rows = &memory->kept[kind];

    bh_mutex_lock(&memory->mutex);
    for (size_t i = from ? bh_memory_lower_bound(rows, kind, from) : 0; i < rows->count; i++)
        if (!emit(rows->at[i], context))
            break;
    bh_mutex_unlock(&memory->mutex);
}

void
bh_memory_each_row_back(struct bh_memory *memory, enum bh_memory_kind kind,
                        bool (*emit)(const void *row, void *context), void *context)
{
    struct bh_memory_rows *rows = &memory->kept[kind];

    bh_mutex_lock(&memory->mutex);
    for (size_t i = rows->count; i > 0 && emit(rows->at[i - 1], context); i--)
        ;
    bh_mutex_unlock(&memory->mutex);
}
