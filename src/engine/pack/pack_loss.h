#ifndef BH_ENGINE_PACK_PACK_LOSS_H
#define BH_ENGINE_PACK_PACK_LOSS_H

#include "engine/pack/pack_internal.h"

/* FGD's fragmentation F of a node, and what placing a shape gains.
 *
 * By its definition F is a sum over expected shapes m of weight_m times the free parts that
 * m can not use: all of them where the node cannot host m (cores, model, GPUs), else those
 * on GPUs with less left than m asks of each.  The other way round it is a sum over GPUs of what
 * is free times the weight of the shapes that cannot use it.  Shape m uses a broken GPU
 * with R left exactly when model and cores allow and m asks for no more than R (the node
 * then has room for m, on this GPU), and uses the wholly free GPUs exactly when there are
 * as many as m asks for.  So with tables by model, cores and level, F is one look-up for
 * each broken GPU and one for all whole ones together. */

/* Room for the rows of so many models. */
size_t bh_pack_loss_rows(uint32_t models);

/* Make place for a shape's amounts among those of the expected shapes.  False: there are
 * BH_PACK_AMOUNTS_MAX different ones. */
bool bh_pack_loss_admit(struct bh_pack *pack, const struct bh_pack_shape *want);

/* Make the tables from the expected shapes and the models that nodes have. */
void bh_pack_loss_build(struct bh_pack *pack);

/* Set the host's row and loss from what it has left. */
void bh_pack_loss_refresh(const struct bh_pack *pack, struct bh_pack_host *host);

/* One way to place a shape on a node. */
struct bh_pack_choice {
    int64_t gain; /* F before less F after */
    uint32_t gpus;
};

/* The ways to place the shape on a node with room: one for cores alone and for whole GPUs,
 * else one for each broken GPU that has enough and one for the first of the whole ones, by
 * GPU number.  Returns how many; at least one, at most BH_PACK_GPUS_MAX. */
uint32_t bh_pack_loss_choices(const struct bh_pack *pack, const struct bh_pack_host *host,
                              const struct bh_pack_shape *want,
                              struct bh_pack_choice ret_choices[BH_PACK_GPUS_MAX]);

/* FGD's score of a gain, 0 .. 99: floor(100 * sigmoid(gain in GPUs)). */
static inline uint32_t
bh_pack_loss_points(const struct bh_pack *pack, int64_t gain)
{
    return bh_pack_ladder_count(&pack->loss.points, gain);
}

#endif
