#ifndef BH_FETCH_MESSAGE_H
#define BH_FETCH_MESSAGE_H

#include "base/fields.h"
#include "ports/https.h"

/* What bulkheadd and bulkhead-fetch say to each other, in the frames of wire/frame.h.  Both
 * ends are the same build, so nothing here is versioned. */

enum bh_fetch_message_kind {
#define BH_FETCH_MESSAGE(id, number, type, from, doc) BH_FETCH_MSG_##id = number,
#include "tables/fetch_messages.tbl"
#undef BH_FETCH_MESSAGE
};

/* First on a connection; "": it waits for questions, else why it does not start. */
struct bh_fetch_ready {
    char fault[240];
};

/* struct bh_https_request; what that has as NULL is "" here. */
struct bh_fetch_request {
    uint64_t call; /* the answer repeats it */
    bool post;
    const char *url, *authorization, *body, *certificate;
};

struct bh_fetch_response {
    uint64_t call;
    uint32_t status, max_age_s;
    enum bh_https_cause cause;
    const char *body;
};

/* The description of a message's struct, or NULL for an unknown number. */
const struct bh_fields *bh_fetch_message_fields(uint32_t number);

#endif
