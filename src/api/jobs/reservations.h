#ifndef BH_API_JOBS_RESERVATIONS_H
#define BH_API_JOBS_RESERVATIONS_H

#include "api/request/call.h"
#include "engine/read/view.h"

/* Room that the engine keeps for jobs that wait: reservations from a time on, and claims that
 * are being made free now. */

/* From when on room is reserved for jobs. */
struct bh_reservations {
    uint32_t count;
    struct {
        uint64_t job, from_ns;
    } rows[BH_RESERVATIONS_MAX];
};

/* Those of all jobs; none when the engine cannot be asked. */
void bh_reservations_find(const struct bh_call *call, struct bh_reservations *ret_all);

/* From when on; 0: nothing is reserved for the job. */
uint64_t bh_reservations_of(const struct bh_reservations *all, uint64_t job);

/* What is kept for a job, in the call's arena: the places, struct bh_reply_placement, and from when on;
 * nothing where nothing is. */
struct bh_reserved {
    struct bh_list claimed_on, reserved_on;
    uint64_t from_ns;
};
BH_MUST_USE bh_rc bh_reservations_read(struct bh_call *call, uint64_t job, struct bh_reserved *ret,
                                       struct bh_err *err);

#endif
