#ifndef BH_LAB_OPENB_ROUNDING_H
#define BH_LAB_OPENB_ROUNDING_H

#include "lab/openb/load.h"

/* What FGD's artifact makes of a gain of nothing.
 *
 * The artifact sums F in double precision.  Its score's steps are at irrational gains, so
 * rounding never decides one, with one exception: no gain at all scores 50 exactly, and 49
 * when the two sums, equal in truth, differ by rounding so that F seems to have grown by
 * 1.5 * 1000 * 2^-52 thousandths of a GPU or more (the least by which 1 + exp(x) leaves 2).
 * That is rare (of 12,816 scores without gain in a run of the default variant 16 differ),
 * but without it 22 of 170 runs of the artifact are missed, by up to 0.26 % of the GPUs; so
 * these sums are made as the artifact makes them, in integers. */

struct bh_openb_rounding;

/* For these expected kinds, which stay, in the artifact's order, and so many pods of others.
 * The caller frees it. */
struct bh_openb_rounding *bh_openb_rounding_new(const struct bh_openb_kind *expected, uint32_t count,
                                                uint32_t unexpected);

/* Does placing the shape on these GPUs of a node with room, which gains nothing, seem to the
 * artifact to lose?  For struct bh_pack_rounding. */
bool bh_openb_rounding_seems_loss(const void *self, const struct bh_pack_node *left,
                                  const struct bh_pack_shape *want, uint32_t gpus);

#endif
