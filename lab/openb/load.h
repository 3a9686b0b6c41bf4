#ifndef BH_LAB_OPENB_LOAD_H
#define BH_LAB_OPENB_LOAD_H

#include "lab/openb/trace.h"

/* The pods of a trace by kind: what differs in anything the index looks at. */
struct bh_openb_kind {
    struct bh_pack_shape shape;
    uint32_t count; /* pods */
};

struct bh_openb_load {
    uint32_t kind_count, expected_count;
    uint32_t unexpected; /* pods of no expected kind */
    struct bh_openb_kind *kinds;
    uint32_t *kind_of; /* pod: number of its kind */
    /* What is expected to come: kinds, their memory disregarded (0), the most frequent
     * first, until they make up 95 % of the pods.  Of equally frequent ones those that ask
     * for more cores, milli-GPUs, GPUs, or have the greater gpu_spec come first, as in
     * FGD's artifact. */
    struct bh_openb_kind *expected;
};

/* Sort the pods into kinds, in `arena`.  BH_FULL: its cap. */
BH_MUST_USE bh_rc bh_openb_load_read(const struct bh_openb_trace *trace, struct bh_arena *arena,
                                     struct bh_openb_load *ret_load, struct bh_err *err);

#endif
