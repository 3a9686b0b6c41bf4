#include "daemon/nodes/carried.h"

#include "base/assert.h"
#include "base/json.h"
#include "daemon/state/documents.h"

enum { ROW_BYTES_MAX = 512 };

void
bh_carried_text(const struct bh_core *core, const struct bh_carried_end *end,
                struct bh_carried_text *ret_note)
{
    struct bh_buf text;

    ret_note->end = *end;
    bh_buf_init_fixed(&text, ret_note->text, sizeof ret_note->text);
    bh_json_encode(&text, &bh_carried_end_fields, end);
    BH_ASSERT(!text.overflow);
    ret_note->length = (uint32_t)text.length;
    core->crypto->sha256(text.bytes, text.length, "", 0, ret_note->digest.bytes);
}

static bh_rc
carried_add(struct bh_core *core, enum bh_document_kind kind, uint64_t number,
            const struct bh_msg_carried *carried, struct bh_err *err)
{
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[ROW_BYTES_MAX];
    const struct bh_document_key wanted = { kind, key };
    struct bh_carried_row row;
    struct bh_document_row document;
    struct bh_buf json;
    bh_rc rc;

    bh_job_document_key(number, key);
    rc = bh_documents_get_or_empty(core, &wanted, &document, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_job_document_decode(BH_DOCUMENT_CARRIED, document.value, &row, err);
    if (rc != BH_OK)
        return rc;
    bh_carried_add(&row.sums, carried);
    row.leases++;
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_carried_row_fields, &row);
    BH_ASSERT(!json.overflow);
    document.version++;
    document.key = key;
    document.value = bh_buf_text(&json);
    return bh_documents_put(core, &document, err);
}

bh_rc
bh_carried_put(struct bh_core *core, const struct bh_carried_text *note, struct bh_err *err)
{
    const struct bh_carried_end *end = &note->end;
    const struct bh_text_row text = { .digest = note->digest, .text = { note->text, note->length } };
    bh_rc rc = core->store.ops->put_text(core->store.self, &text, err);

    if (rc != BH_OK)
        return rc;
    rc = carried_add(core, BH_DOCUMENT_CARRIED, end->job, &end->carried, err);
    if (rc != BH_OK)
        return rc;
    return carried_add(core, BH_DOCUMENT_CARRIED_TENANT, end->tenant, &end->carried, err);
}
