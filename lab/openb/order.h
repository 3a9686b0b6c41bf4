#ifndef BH_LAB_OPENB_ORDER_H
#define BH_LAB_OPENB_ORDER_H

#include "lab/openb/trace.h"

/* In which order nodes rank and pods arrive. */
struct bh_openb_list {
    uint32_t count;
    uint32_t *at; /* numbers by name order */
};

struct bh_openb_order {
    uint64_t seed;
    struct bh_openb_list nodes; /* of equally good nodes the first wins */
    struct bh_openb_list pods;  /* with repetitions */
};

/* Fill in the order of `order->seed` from a file of lines "seed;nodes;pods".  BH_NOT_FOUND:
 * no line has that seed; BH_INVALID, BH_RANGE: a malformed line, named. */
BH_MUST_USE bh_rc bh_openb_order_read(const char *path, const struct bh_openb_trace *trace,
                                      struct bh_arena *arena, struct bh_openb_order *order,
                                      struct bh_err *err);

/* Fill in an order of our own: splitmix64 from `order->seed` shuffles the pods (Fisher and
 * Yates, from the last down), draws copies of pods until they ask for 130 % of the GPUs,
 * and shuffles the nodes.  As in FGD's artifact a copy is refused by what it asks of one
 * GPU and counted with all it asks for.  BH_FULL: too many arrivals, or the arena's cap. */
BH_MUST_USE bh_rc bh_openb_order_draw(const struct bh_openb_trace *trace, struct bh_arena *arena,
                                      struct bh_openb_order *order, struct bh_err *err);

#endif
