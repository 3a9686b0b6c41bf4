#ifndef BH_WIRE_WALLS_H
#define BH_WIRE_WALLS_H

#include <stdint.h>

/* What an isolation check comes to.  What cannot be read, and what does not answer in time, is
 * inconclusive: it is no evidence, neither against anybody nor for the one that was checked. */
enum bh_check_result {
    BH_CHECK_INCONCLUSIVE,
    BH_CHECK_PASS,
    BH_CHECK_FAIL,
    BH_CHECK_RESULTS
};
extern const char *const bh_check_result_names[BH_CHECK_RESULTS];

/* What the last tries of the walls between jobs came to. */
enum bh_walls {
    BH_WALLS_UNTRIED,
    BH_WALLS_HELD,
    BH_WALLS_UNFINISHED, /* not tried to the end: none was seen broken, and not all seen to stand */
    BH_WALLS_BROKEN,
    BH_WALLS_PARTLY,     /* they held; a check of a lease failed, and its GPU takes no new lease */
    BH_WALLS_STATES
};
extern const char *const bh_walls_names[BH_WALLS_STATES];

/* Of a node: while they are unfinished or broken it starts no job; partly, not on those GPUs. */
struct bh_msg_walls {
    uint32_t state;                /* enum bh_walls */
    uint32_t tries;                /* that the node makes by itself, so far, after one unfinished */
    uint64_t again_ns;             /* when it makes the next; 0: when somebody asks */
    uint32_t gpus;                 /* that take no new lease for that */
    char why[200];                 /* when they did not hold everywhere: the first check */
};

#endif
