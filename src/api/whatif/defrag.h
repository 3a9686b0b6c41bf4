#ifndef BH_API_WHATIF_DEFRAG_H
#define BH_API_WHATIF_DEFRAG_H

#include "api/request/call.h"

/* /v1/defrag: the present plan of moves, simulated on a copy before it is shown, and its execution.  A plan
 * is known by a token; an outdated one is refused. */

struct bh_defrag_request {
    const char *token;
};
extern const struct bh_fields bh_defrag_request_fields;

/* bh_resources.  BH_UNAVAILABLE: others ask what would be, for longer than 10 seconds. */
bh_rc bh_defrag_show(struct bh_call *call, struct bh_err *err);
bh_rc bh_defrag_apply(struct bh_call *call, struct bh_err *err);

#endif
