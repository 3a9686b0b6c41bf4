#include "api/job_notices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static const struct bh_field item_rows[] = {
    BH_F(struct bh_job_notice_item, count, BH_FIELD_U64),
    BH_F(struct bh_job_notice_item, first_ns, BH_FIELD_NS),
    BH_F_ENUM(struct bh_job_notice_item, kind, bh_job_notice_names),
    BH_F(struct bh_job_notice_item, last_ns, BH_FIELD_NS),
};
static const struct bh_fields item_fields =
    BH_FIELDS("job_notice", struct bh_job_notice_item, item_rows);

static const struct bh_field notices_rows[] = {
    BH_F_ARRAY(struct bh_job_notices_row, items, item_count, item_fields, BH_JOB_NOTICES),
};
const struct bh_fields bh_job_notices_fields =
    BH_FIELDS("job_notices", struct bh_job_notices_row, notices_rows);

void
bh_job_notices_key(uint64_t job, char ret_key[BH_JOB_NOTICES_KEY_SIZE])
{
    snprintf(ret_key, BH_JOB_NOTICES_KEY_SIZE, "%020" PRIu64, job);
}

static void
job_notices_put_item(struct bh_json_writer *w, const struct bh_job_notice_item *item)
{
    bh_json_open(w, NULL, '{');
    bh_json_u64(w, "count", item->count);
    bh_json_ns(w, "first_ns", item->first_ns);
    bh_json_ns(w, "last_ns", item->last_ns);
    bh_json_str(w, "name", bh_job_notice_names[item->kind]);
    bh_json_str(w, "sentence", bh_job_notice_sentences[item->kind]);
    bh_json_close(w, '}');
}

bh_rc
bh_job_notices_get(const struct bh_call *call, uint64_t job, struct bh_job_notices_row *ret_row,
                   struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    char key[BH_JOB_NOTICES_KEY_SIZE];
    const struct bh_document_key wanted = { BH_DOCUMENT_NOTICES, key };
    struct bh_document_row document;
    bh_rc rc;

    bh_job_notices_key(job, key);
    rc = store->ops->get_document(store->self, &wanted, call->arena, &document, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    *ret_row = (struct bh_job_notices_row){ .item_count = 0 };
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    return bh_json_decode(document.value, strlen(document.value), &bh_job_notices_fields, ret_row,
                          call->arena, err);
}

bh_rc
bh_job_notices_put(const struct bh_call *call, struct bh_json_writer *w, uint64_t job,
                   struct bh_err *err)
{
    struct bh_job_notices_row row;
    bh_rc rc = bh_job_notices_get(call, job, &row, err);

    if (rc != BH_OK || row.item_count == 0)
        return rc;
    bh_json_open(w, "notices", '[');
    for (uint32_t i = 0; i < row.item_count; i++)
        job_notices_put_item(w, &row.items[i]);
    bh_json_close(w, ']');
    return BH_OK;
}
