#ifndef BH_API_REQUEST_REPLY_H
#define BH_API_REQUEST_REPLY_H

#include "api/documents/replies.h"
#include "api/request/call.h"

/* The one writer of replies: structs of tables/replies.tbl by their descriptions. */

/* Write a whole reply: BH_REPLY_WITH(call, held, .held = "free", .target = target). */
#define BH_REPLY_WITH(call, name, ...)                                                                       \
    bh_reply_put(call, &bh_reply_##name##_fields, &(const struct bh_reply_##name){ __VA_ARGS__ })
void bh_reply_put(struct bh_call *call, const struct bh_fields *fields, const void *reply);

/* A reply with ROWS, which are written one by one as they come. */
struct bh_rows {
    struct bh_json_writer w;
    const struct bh_fields *reply, *row;
    uint64_t count; /* of those put */
};
struct bh_rows bh_rows_begin(struct bh_call *call, const struct bh_fields *reply);

/* False: the reply is too large, and the next would be in vain. */
bool bh_rows_put(struct bh_rows *rows, const void *row);

/* The members beside the rows; NULL: there are none. */
void bh_rows_end(struct bh_rows *rows, const void *reply);

#endif
