#ifndef BH_ENGINE_PACK_NOISE_H
#define BH_ENGINE_PACK_NOISE_H

#include "engine/pack_internal.h"

/* What FGD's artifact makes of a gain of nothing.
 *
 * The artifact sums F in double precision.  Its score's steps are at irrational gains, so
 * rounding never decides one, with one exception: no gain at all scores 50 exactly, and 49
 * when the two sums, equal in truth, differ by rounding so that F seems to have grown by
 * 1.5 * 1000 * 2^-52 thousandths of a GPU or more (the least by which 1 + exp(x) leaves 2).
 * That is rare (of 12,816 scores without gain in a run of the default variant 16 differ),
 * but without it 22 of 170 runs of the artifact are missed, by up to 0.26 % of the GPUs; so
 * these sums are made as the artifact makes them, in integers. */

/* Room for the expected shapes in the artifact's order. */
size_t bh_pack_noise_size(const struct bh_pack_caps *caps);

/* Sort the expected shapes and work out their frequencies; part of making the tables. */
void bh_pack_noise_build(struct bh_pack *pack);

/* Does placing the shape on these GPUs of the host, which gains nothing, seem to the
 * artifact to lose? */
bool bh_pack_noise_is_loss(const struct bh_pack *pack, const struct bh_pack_host *host,
                           const struct bh_pack_shape *want, uint32_t gpus);

#endif
