#include "daemon/state/documents.h"

#include <string.h>

bh_rc
bh_documents_get(struct bh_core *core, const struct bh_document_key *key, struct bh_document_row *ret_row,
                 struct bh_err *err)
{
    for (const struct bh_batch_document *put = core->documents; put; put = put->next)
        if (put->row.kind == key->kind && strcmp(put->row.key, key->key) == 0) {
            if (!put->row.value || !put->row.value[0])
                return bh_err_set(err, BH_NOT_FOUND, "the document is removed");
            *ret_row = put->row;
            return BH_OK;
        }
    return core->store.ops->get_document(core->store.self, key, core->arena, ret_row, err);
}

bh_rc
bh_documents_get_or_empty(struct bh_core *core, const struct bh_document_key *key,
                          struct bh_document_row *ret_row, struct bh_err *err)
{
    bh_rc rc = bh_documents_get(core, key, ret_row, err);

    if (rc != BH_NOT_FOUND)
        return rc;
    *ret_row = (struct bh_document_row){ .kind = key->kind, .value = "{}" };
    return BH_OK;
}

bh_rc
bh_documents_put(struct bh_core *core, const struct bh_document_row *row, struct bh_err *err)
{
    struct bh_batch_document *put = bh_arena_alloc(core->arena, sizeof *put);
    const char *key = bh_arena_strdup(core->arena, row->key);
    const char *value = row->value ? bh_arena_strdup(core->arena, row->value) : NULL;

    if (!put || !key || (row->value && !value))
        return bh_err_set(err, BH_FULL, "the batch has no room for a document");
    *put = (struct bh_batch_document){ core->documents, *row };
    put->row.key = key;
    put->row.value = value;
    core->documents = put;
    return core->store.ops->put_document(core->store.self, &put->row, err);
}
