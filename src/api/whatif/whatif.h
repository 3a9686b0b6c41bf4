#ifndef BH_API_WHATIF_WHATIF_H
#define BH_API_WHATIF_WHATIF_H

#include <stdbool.h>

#include "api/request/call.h"
#include "model/site.h"

/* /v1/whatif: what a change would bring about.  Two copies of the engine are played, one as
 * things are and one with the change, and compared; the live engine is only copied. */

struct bh_whatif_quota {
    const char *tenant;            /* path */
    const char *limit, *guarantee; /* GPUs; limit "none"; NULL: as it is */
};

/* The body: one change or several, which then happen in this order. */
struct bh_whatif_request {
    struct bh_site site; /* the whole file in the place of the present one */
    struct bh_whatif_quota quota;
    const char *drain; /* a GPU's UUID, or a node's name: no new work there */
    bool now;          /* what runs on what is drained ends or is queued again */
    uint64_t cancel;   /* a job */
    struct bh_job_spec submit;
};
extern const struct bh_fields bh_whatif_request_fields;

/* Plays cost seconds of thinking on a large site: one at a time. */
struct bh_whatif_lock;
struct bh_whatif_lock *bh_whatif_lock_new(void);
void bh_whatif_lock_free(struct bh_whatif_lock *whatif_lock);
BH_MUST_USE bh_rc bh_whatif_acquire(struct bh_whatif_lock *whatif_lock, struct bh_err *err);
void bh_whatif_release(struct bh_whatif_lock *whatif_lock);

/* A bh_resource.  Besides what is wrong with the request:
 *   BH_QUOTA, BH_CONFLICT, BH_RANGE, BH_NOT_FOUND  the engine refuses the change: the
 *                                                  reason is in the error
 *   BH_UNAVAILABLE                                 others ask, for longer than 10 seconds */
bh_rc bh_whatif_ask(struct bh_call *call, struct bh_err *err);

#endif
