#ifndef BH_WIRE_WALLS_H
#define BH_WIRE_WALLS_H

#include <stdint.h>

/* What the last tries of the walls between jobs came to. */
enum bh_walls {
    BH_WALLS_UNTRIED,
    BH_WALLS_HELD,
    BH_WALLS_UNFINISHED, /* not tried to the end: none was seen broken, and not all seen to stand */
    BH_WALLS_BROKEN,
    BH_WALLS_STATES
};
extern const char *const bh_walls_names[BH_WALLS_STATES];

/* Of a node: while they are unfinished or broken it starts no job. */
struct bh_msg_walls {
    uint32_t state;                /* enum bh_walls */
    uint32_t tries;                /* that the node makes by itself, so far, after one unfinished */
    uint64_t again_ns;             /* when it makes the next; 0: when somebody asks */
    char why[200];                 /* when unfinished or broken: the first check */
};

#endif
