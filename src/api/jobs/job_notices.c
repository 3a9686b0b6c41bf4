#include "api/jobs/job_notices.h"

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
bh_job_notices_put(const struct bh_call *call, struct bh_json_writer *w, uint64_t job, struct bh_err *err)
{
    struct bh_job_notices_row row;
    bh_rc rc = bh_job_document_get(&call->api->options.store, BH_DOCUMENT_NOTICES, job, &row, err);

    if (rc != BH_OK || row.item_count == 0)
        return rc;
    bh_json_open(w, "notices", '[');
    for (uint32_t i = 0; i < row.item_count; i++)
        job_notices_put_item(w, &row.items[i]);
    bh_json_close(w, ']');
    return BH_OK;
}
