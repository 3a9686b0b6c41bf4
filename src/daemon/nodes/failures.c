#include "daemon/nodes/failures.h"

#include <string.h>

#include "api/jobs/failure.h"
#include "base/json.h"
#include "base/slice.h"
#include "daemon/state/texts.h"

enum { JSON_MAX = 256 };

static bh_rc
failures_put_document(struct bh_core *core, uint64_t job, const struct bh_digest *digest, struct bh_err *err)
{
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[JSON_MAX];
    struct bh_failure_row row;
    struct bh_document_row document = { .kind = BH_DOCUMENT_FAILURE, .version = 1, .key = key };
    struct bh_buf json;

    memcpy(row.text, digest->bytes, sizeof row.text);
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_failure_row_fields, &row);
    bh_job_document_key(job, key);
    document.value = bh_buf_text(&json);
    return core->store.ops->put_document(core->store.self, &document, err);
}

bh_rc
bh_failures_seal(struct bh_core *core, uint64_t lease, const char *why, struct bh_failure *ret_failure,
                 struct bh_err *err)
{
    struct bh_job_view view;
    struct bh_buf item;
    bh_rc rc;

    ret_failure->kept = false;
    if (!*why || !bh_view_lease(core->state.engine, (bh_lease_id){ lease }, &view))
        return BH_OK;
    bh_buf_init_fixed(&item, ret_failure->sealed, sizeof ret_failure->sealed);
    rc = bh_core_seal(core, view.tenant, (struct bh_slice){ why, strlen(why) }, &item, err);
    if (rc != BH_OK)
        return rc;
    ret_failure->kept = true;
    ret_failure->tenant = view.tenant;
    ret_failure->job = view.job.v;
    ret_failure->length = item.length;
    core->crypto->sha256(item.bytes, item.length, "", 0, ret_failure->digest.bytes);
    return BH_OK;
}

bh_rc
bh_failures_put(struct bh_core *core, const struct bh_failure *failure, struct bh_err *err)
{
    const struct bh_text_row text = { failure->digest,
                                      failure->tenant.v,
                                      { failure->sealed, failure->length } };
    bh_rc rc;

    if (!failure->kept)
        return BH_OK;
    rc = bh_texts_put(core, &text, err);
    return rc == BH_OK ? failures_put_document(core, failure->job, &failure->digest, err) : rc;
}
