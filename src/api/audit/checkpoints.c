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
    struct bh_rows rows = bh_rows_begin(call, &bh_reply_checkpoint_list_fields);
    uint64_t from = call->query.given.after ? call->query.after + 1 : 0;
    bh_rc rc = store->ops->list_checkpoints(store->self, from, checkpoints_put_checkpoint, &rows, err);

    bh_rows_end(&rows, NULL);
    return rc;
}
