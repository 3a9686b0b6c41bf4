#include "api/jobs/job_notices.h"

#include "api/documents/replies.h"

bh_rc
bh_job_notices_list(const struct bh_call *call, uint64_t job, struct bh_list *ret, struct bh_err *err)
{
    struct bh_reply_job_notice *notices;
    struct bh_job_notices_row row;
    bh_rc rc = bh_job_document_get(&call->api->options.store, BH_DOCUMENT_NOTICES, job, &row, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, row.item_count * sizeof *notices, &notices, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < row.item_count; i++)
        notices[i] = (struct bh_reply_job_notice){ .count = row.items[i].count,
                                                   .first_ns = row.items[i].first_ns,
                                                   .last_ns = row.items[i].last_ns,
                                                   .name = bh_job_notice_names[row.items[i].kind],
                                                   .sentence = bh_job_notice_sentences[row.items[i].kind] };
    *ret = (struct bh_list){ notices, row.item_count };
    return BH_OK;
}
