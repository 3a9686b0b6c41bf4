#include "api/audit/checkpoints.h"

static bool
checkpoints_put_checkpoint(void *self, const struct bh_checkpoint_row *row)
{
    struct bh_json_writer *w = self;

    bh_json_open(w, NULL, '{');
    bh_json_str(w, "note", row->note);
    bh_json_u64(w, "size", row->size);
    bh_json_close(w, '}');
    return !w->out->overflow;
}

bh_rc
bh_checkpoints_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_json_writer w = bh_call_writer(call);
    uint64_t after = 0;
    bh_rc rc = bh_call_number(call, "after", UINT64_MAX - 1, &after, err);

    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "items", '[');
    rc = store->ops->list_checkpoints(store->self, bh_call_query(call, "after") ? after + 1 : 0,
                                      checkpoints_put_checkpoint, &w, err);
    bh_json_close(&w, ']');
    bh_json_close(&w, '}');
    return rc;
}
