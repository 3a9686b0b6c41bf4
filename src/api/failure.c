#include "api/failure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "keys/keys.h"

static const struct bh_field rows[] = {
    BH_F(struct bh_failure_row, text, BH_FIELD_HEX),
};
const struct bh_fields bh_failure_row_fields =
    BH_FIELDS("failure_row", struct bh_failure_row, rows);

void
bh_failure_key(uint64_t job, char ret_key[BH_FAILURE_KEY_SIZE])
{
    snprintf(ret_key, BH_FAILURE_KEY_SIZE, "%020" PRIu64, job);
}

static const char *
find_text(const struct bh_call *call, uint64_t job)
{
    const struct bh_store *store = &call->api->options.store;
    char key[BH_FAILURE_KEY_SIZE];
    const struct bh_document_key wanted = { BH_DOCUMENT_FAILURE, key };
    struct bh_document_row document;
    struct bh_failure_row row;
    struct bh_digest digest;
    struct bh_err ignored;
    const char *text;

    bh_failure_key(job, key);
    if (store->ops->get_document(store->self, &wanted, call->arena, &document, &ignored) != BH_OK
        || bh_json_decode(document.value, strlen(document.value), &bh_failure_row_fields, &row,
                          call->arena, &ignored)
               != BH_OK)
        return NULL;
    memcpy(digest.bytes, row.text, sizeof digest.bytes);
    return bh_keys_get_text(call->api->options.keys, &digest, call->arena, &text, &ignored)
                   == BH_OK
               ? text
               : NULL;
}

/* The node says both in one line: "cause; what to do". */
bool
bh_failure_read(const struct bh_call *call, uint64_t job, char ret_why[BH_FAILURE_WHY_MAX],
                char ret_hint[BH_FAILURE_WHY_MAX])
{
    const char *text = find_text(call, job), *semicolon = text ? strstr(text, "; ") : NULL;
    size_t length = semicolon ? (size_t)(semicolon - text) : text ? strlen(text) : 0;

    if (!text)
        return false;
    snprintf(ret_why, BH_FAILURE_WHY_MAX, "%.*s", (int)length, text);
    snprintf(ret_hint, BH_FAILURE_WHY_MAX, "%s", semicolon ? semicolon + 2 : "");
    return true;
}
