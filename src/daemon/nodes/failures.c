#include "daemon/nodes/failures.h"

#include "api/documents/job_document.h"
#include "base/json.h"

enum { JSON_MAX = 256 };

bh_rc
bh_failures_put(struct bh_core *core, bh_job_id job, struct bh_err *err)
{
    const struct bh_failure_row row = { .record = core->recorded };
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[JSON_MAX];
    struct bh_document_row document = { .kind = BH_DOCUMENT_FAILURE, .version = 1, .key = key };
    struct bh_buf json;

    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_failure_row_fields, &row);
    bh_job_document_key(job.v, key);
    document.value = bh_buf_text(&json);
    return core->store.ops->put_document(core->store.self, &document, err);
}
