#include "api/jobs/failure.h"

#include <stdio.h>
#include <string.h>

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
