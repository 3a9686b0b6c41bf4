#ifndef BH_WIRE_ISOLATION_H
#define BH_WIRE_ISOLATION_H

#include <stdint.h>

/* What an isolation check comes to.  What cannot be read, and what does not answer in time, is
 * inconclusive: it is no evidence, neither against a lease nor for the one that was checked. */
enum bh_check_result { BH_CHECK_INCONCLUSIVE, BH_CHECK_PASS, BH_CHECK_FAIL, BH_CHECK_RESULTS };
extern const char *const bh_check_result_names[BH_CHECK_RESULTS];

/* Results of the last isolation checks. */
enum bh_isolation {
    BH_ISOLATION_UNCHECKED,
    BH_ISOLATION_PASSED,
    BH_ISOLATION_INCONCLUSIVE, /* not tried to the end: none was seen broken, and not all seen to stand */
    BH_ISOLATION_FAILED,
    BH_ISOLATION_PARTLY_FAILED, /* they held; a check of a lease failed, and its GPU takes no new lease */
    BH_ISOLATION_STATES
};

/* Of a node: while they are unfinished or broken it starts no job; partly, not on those GPUs. */
struct bh_msg_isolation {
    uint32_t state;    /* enum bh_isolation */
    uint32_t tries;    /* that the node makes by itself, so far, after one unfinished */
    uint64_t retry_ns; /* when it makes the next; 0: on request */
    uint32_t gpus;     /* that take no new lease for that */
    char why[200];     /* when they did not hold everywhere: the first check */
};

#endif
