#ifndef BH_ENGINE_PACK_PACK_PRICE_H
#define BH_ENGINE_PACK_PACK_PRICE_H

#include "engine/pack/pack_internal.h"

/* The price of GPUs of scarce models for jobs that could use others.
 *
 * Some expected shapes take only a set of models.  A set's scarcity is its share of the demand for GPUs, over
 * its share of the GPUs that are free: 1 where all sets would run out together, more where this one runs out
 * first.  A model's level is the sum over the sets it is in; a shape pays for each GPU-full it asks for level
 * times BH_PACK_PRICE points of score.  Levels move in steps, and are worked out anew after every so many
 * placements, so that a run sees a few dozen changes. */

enum {
    BH_PACK_LEVEL_ONE = 64,        /* level of scarcity 1 */
    BH_PACK_LEVEL_STEP = 8,        /* levels are multiples of it */
    BH_PACK_LEVEL_MAX = 256,       /* scarcity 4: dearer would cross nodes off */
    BH_PACK_PRICE_PLACEMENTS = 16, /* with GPUs, between two reckonings */
};

/* Find the sets of the expected shapes and their shares of demand, then the levels.  Of
 * over BH_PACK_SETS_MAX sets those first seen count. */
void bh_pack_price_build(struct bh_pack *pack);

/* The levels, as free GPUs stand now. */
void bh_pack_price_reckon(struct bh_pack *pack);

/* A shape with GPUs was placed, or has left. */
void bh_pack_price_count(struct bh_pack *pack);

#endif
