#ifndef BH_ENGINE_PACK_PACK_WASTE_H
#define BH_ENGINE_PACK_PACK_WASTE_H

#include "engine/pack/pack_loss.h"

/* How much of what a node has left is going to be wasted, when shapes like the expected
 * ones are offered to it one after another and each is taken if it fits.
 *
 * Three tables answer, for each kind of models (docs/internals/packing.md has the
 * formulas): of one GPU alone, by what it has left and the node's class of cores; of the
 * node's GPUs together and its cores; and of the demand for several whole GPUs at once.
 * Waste is in units of 1/64 thousandth of a GPU, in which 1024 such units (16 thousandths)
 * are a core.
 *
 * Tables are on a grid.  What a node has left is rounded down to it (42 parts), as are
 * cores over 128; what a shape asks for is rounded up, in the table of nodes to the nearest
 * tenth of a GPU and core.  A node or shape off the grid is so judged a little worse than
 * it is. */

enum {
    BH_PACK_WASTE_UNIT = 64,  /* of a thousandth of a GPU */
    BH_PACK_WASTE_STEP = 42,  /* parts in a level of the table of one GPU */
    BH_PACK_WASTE_TENTH = 420 /* parts in a level of the table of nodes */
};

/* Bytes of the tables for so many kinds. */
size_t bh_pack_waste_rows_size(uint32_t kinds);
size_t bh_pack_waste_nodes_size(uint32_t kinds);

/* Bytes that making them takes besides. */
size_t bh_pack_waste_offers_size(const struct bh_pack_caps *caps);

/* Make the tables from the expected shapes, for nodes as large as there are. */
void bh_pack_waste_build(struct bh_pack *pack);

/* Does the host fit into the tables that were made? */
bool bh_pack_waste_covers(const struct bh_pack *pack, const struct bh_pack_host *host);

/* Set the host's waste from what it has left. */
void bh_pack_waste_refresh(const struct bh_pack *pack, struct bh_pack_host *host);

/* The ways to place the shape on a node with room, as bh_pack_loss_choices; the gain is the
 * waste before less that after. */
uint32_t bh_pack_waste_choices(const struct bh_pack *pack, const struct bh_pack_host *host,
                               const struct bh_pack_shape *want,
                               struct bh_pack_choice ret_choices[BH_PACK_GPUS_MAX]);

#endif
