#ifndef BH_ENGINE_PACK_PACK_KIND_H
#define BH_ENGINE_PACK_PACK_KIND_H

#include "engine/pack/pack_internal.h"

/* Kinds of models, and the nodes of each kind as a tournament of its own.
 *
 * Two models are of one kind when every expected shape takes both or neither: then a policy
 * that judges by what is expected judges them alike.  A shape's tree is a row of stands,
 * one for each kind; what differs between kinds and not between nodes (a price) is not in
 * the scores of the tree but taken off the winner of each stand, so that it may change at
 * no cost.  A policy without prices has all models in one kind. */

/* How many scores the trees of one shape take at most with so many kinds. */
uint32_t bh_pack_kind_stride(uint32_t nodes, uint32_t kinds);

/* Tell the models that nodes have apart by the expected shapes.  At most BH_PACK_KINDS_MAX
 * kinds; the last takes in all further models, and is judged as its first is. */
void bh_pack_kind_sort(struct bh_pack *pack);

/* Seat the nodes by kind, in the order of their numbers. */
void bh_pack_kind_position(struct bh_pack *pack);

/* Of the shape's tree the node with the best score after prices, of equal ones the lowest;
 * BH_PACK_NOWHERE when none has room. */
uint32_t bh_pack_kind_best(const struct bh_pack *pack, const int32_t *tree, const struct bh_pack_shape *want);

/* The kind that judges the node. */
static inline uint32_t
bh_pack_kind(const struct bh_pack *pack, const struct bh_pack_node *left)
{
    return pack->kinds.of[left->model];
}

/* Where each node's score stands in a shape's tree; NULL: at the node's number. */
static inline const uint32_t *
bh_pack_kind_positions(const struct bh_pack *pack)
{
    return pack->kinds.count == 1 ? NULL : bh_pack_at(pack, pack->positions);
}

/* Give a node of this kind a score, in one shape's tree. */
static inline void
bh_pack_kind_set(const struct bh_pack *pack, int32_t *tree, uint32_t kind, uint32_t position, int32_t score)
{
    const struct bh_pack_subtree *stand = &pack->kinds.stand[kind];

    bh_pack_tree_set(&stand->plan, tree + stand->first, position - stand->first, score);
}

#endif
