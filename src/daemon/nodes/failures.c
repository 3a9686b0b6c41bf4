#include "daemon/nodes/failures.h"

#include <string.h>

#include "api/jobs/failure.h"
#include "base/json.h"
#include "base/slice.h"
#include "daemon/state/texts.h"

enum { SEALED_MAX = 2048, JSON_MAX = 256 };

static bh_rc
failures_put(struct bh_core *core, uint64_t job, const struct bh_digest *digest, struct bh_err *err)
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
bh_failures_keep(struct bh_core *core, uint64_t lease, const char *why, struct bh_failure *ret_failure,
                 struct bh_err *err)
{
    struct bh_digest *digest = &ret_failure->digest;
    char memory[SEALED_MAX];
    struct bh_job_view view;
    struct bh_buf item;
    bh_rc rc;

    ret_failure->kept = false;
    if (!*why || !bh_view_lease(core->state.engine, (bh_lease_id){ lease }, &view))
        return BH_OK;
    ret_failure->tenant = view.tenant;
    bh_buf_init_fixed(&item, memory, sizeof memory);
    rc = bh_core_seal(core, view.tenant, (struct bh_slice){ why, strlen(why) }, &item, err);
    if (rc != BH_OK)
        return rc;
    core->crypto->sha256(item.bytes, item.length, "", 0, digest->bytes);
    rc =
        bh_texts_put(core, &(struct bh_text_row){ *digest, view.tenant.v, { item.bytes, item.length } }, err);
    if (rc != BH_OK)
        return rc;
    rc = failures_put(core, view.job.v, digest, err);
    ret_failure->kept = rc == BH_OK;
    return rc;
}
