#include "api/jobs/failure.h"

#include <stdio.h>
#include <string.h>

#include "base/slice.h"

struct failure {
    const struct bh_call *call;
    struct bh_buf text;
};

/* The note of the record, which was sealed as one item. */
static bool
failure_read_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct failure *failure = self;
    struct bh_slice list, item;
    struct bh_err ignored;
    size_t cursor = 0;

    if (!bh_slice_get((struct bh_slice){ leaf, length }, "sealed", &list)
        || !bh_slice_next_item(list, &cursor, &item)
        || bh_keys_unseal(failure->call->api->options.keys, item, &failure->text, &ignored) != BH_OK)
        bh_buf_clear(&failure->text);
    return false;
}

static const char *
failure_text_of_record(const struct bh_call *call, uint64_t record)
{
    const struct bh_store *store = &call->api->options.store;
    char memory[BH_FAILURE_WHY_MAX];
    struct failure failure = { .call = call };
    struct bh_err ignored;

    bh_buf_init_fixed(&failure.text, memory, sizeof memory);
    if (store->ops->list_records(store->self, record, record, failure_read_record, &failure, &ignored)
            != BH_OK
        || failure.text.length == 0 || !bh_buf_text(&failure.text))
        return NULL;
    return bh_arena_strdup(call->arena, memory);
}

static const char *
failure_text(const struct bh_call *call, uint64_t job)
{
    const struct bh_api_options *options = &call->api->options;
    struct bh_failure_row row;
    struct bh_digest digest;
    struct bh_err ignored;
    const char *text;

    if (bh_job_document_get(&options->store, BH_DOCUMENT_FAILURE, job, &row, &ignored) != BH_OK)
        return NULL;
    if (row.record > 0)
        return failure_text_of_record(call, row.record);
    memcpy(digest.bytes, row.text, sizeof digest.bytes); /* zeros are no text's */
    return bh_keys_get_text(options->keys, &digest, call->arena, &text, &ignored) == BH_OK ? text : NULL;
}

/* The node says both in one line: "cause; what to do". */
bool
bh_failure_read(const struct bh_call *call, uint64_t job, char ret_why[BH_FAILURE_WHY_MAX],
                char ret_hint[BH_FAILURE_WHY_MAX])
{
    const char *text = failure_text(call, job), *semicolon = text ? strstr(text, "; ") : NULL;
    size_t length = semicolon ? (size_t)(semicolon - text) : text ? strlen(text) : 0;

    if (!text)
        return false;
    snprintf(ret_why, BH_FAILURE_WHY_MAX, "%.*s", (int)length, text);
    snprintf(ret_hint, BH_FAILURE_WHY_MAX, "%s", semicolon ? semicolon + 2 : "");
    return true;
}
