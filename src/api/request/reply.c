#include "api/request/reply.h"

#include "base/assert.h"

void
bh_reply_put(struct bh_call *call, const struct bh_fields *fields, const void *reply)
{
    bh_json_encode(&call->reply->body, fields, reply);
}

struct bh_rows
bh_rows_begin(struct bh_call *call, const struct bh_fields *reply)
{
    struct bh_rows rows = { .w = bh_json_begin(&call->reply->body), .reply = reply };
    uint32_t at = 0;

    while (at < reply->count && reply->fields[at].kind != BH_FIELD_ROWS)
        at++;
    BH_ASSERT(at < reply->count);
    rows.row = reply->fields[at].of;
    bh_json_open(&rows.w, NULL, '{');
    bh_json_open(&rows.w, reply->fields[at].name, '[');
    return rows;
}

bool
bh_rows_put(struct bh_rows *rows, const void *row)
{
    bh_json_struct(&rows->w, NULL, rows->row, row);
    rows->count++;
    return !rows->w.out->overflow;
}

void
bh_rows_end(struct bh_rows *rows, const void *reply)
{
    bh_json_close(&rows->w, ']');
    if (reply)
        bh_json_members(&rows->w, rows->reply, reply);
    bh_json_close(&rows->w, '}');
}
