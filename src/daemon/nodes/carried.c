#include "daemon/nodes/carried.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"

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

/* Of the open batch, or what the store has: readers do not see the batch. */
static bh_rc
carried_find(struct bh_core *core, const struct bh_document_key *key, struct bh_document_row *ret_row,
             struct bh_err *err)
{
    bh_rc rc;

    for (const struct bh_batch_document *kept = core->documents; kept; kept = kept->next)
        if (kept->row.kind == key->kind && strcmp(kept->row.key, key->key) == 0) {
            *ret_row = kept->row;
            return BH_OK;
        }
    rc = core->store.ops->get_document(core->store.self, key, core->arena, ret_row, err);
    if (rc != BH_NOT_FOUND)
        return rc;
    *ret_row = (struct bh_document_row){ .kind = key->kind, .value = "{}" };
    return BH_OK;
}

static bh_rc
carried_add(struct bh_core *core, enum bh_document_kind kind, uint64_t number,
            const struct bh_msg_carried *carried, struct bh_err *err)
{
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[ROW_BYTES_MAX];
    const struct bh_document_key wanted = { kind, key };
    struct bh_batch_document *kept = bh_arena_alloc(core->arena, sizeof *kept);
    struct bh_carried_row row;
    struct bh_document_row old;
    struct bh_buf json;
    bh_rc rc = kept ? BH_OK : bh_err_set(err, BH_FULL, "the batch is full");

    bh_job_document_key(number, key);
    if (rc != BH_OK)
        return rc;
    rc = carried_find(core, &wanted, &old, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_job_document_decode(BH_DOCUMENT_CARRIED, old.value, &row, err);
    if (rc != BH_OK)
        return rc;
    bh_carried_add(&row.sums, carried);
    row.leases++;
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_carried_row_fields, &row);
    BH_ASSERT(!json.overflow);
    *kept = (struct bh_batch_document){
        .next = core->documents,
        .row = { .kind = kind,
                 .version = old.version + 1,
                 .key = bh_arena_strdup(core->arena, key),
                 .value = bh_arena_strdup(core->arena, bh_buf_text(&json)) },
    };
    if (!kept->row.key || !kept->row.value)
        return bh_err_set(err, BH_FULL, "the batch is full");
    core->documents = kept;
    return core->store.ops->put_document(core->store.self, &kept->row, err);
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
