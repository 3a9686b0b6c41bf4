#include "api/audit/checkpoints.h"

#include "api/request/reply.h"

static bool
checkpoints_put_checkpoint(void *self, const struct bh_checkpoint_row *row)
{
    return bh_rows_put(self, &(struct bh_reply_checkpoint){ .note = row->note, .size = row->size });
}

bh_rc
bh_checkpoints_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_rows rows;
    uint64_t after = 0;
    bh_rc rc = bh_call_number(call, "after", UINT64_MAX - 1, &after, err);

    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_checkpoint_list_fields);
    rc = store->ops->list_checkpoints(store->self, bh_call_query(call, "after") ? after + 1 : 0,
                                      checkpoints_put_checkpoint, &rows, err);
    bh_rows_end(&rows, NULL);
    return rc;
}
