#include "audit/range.h"

#include <string.h>

#include "base/assert.h"

void
bh_range_begin(struct bh_range *range, uint64_t from)
{
    range->from = range->to = from;
    range->count = 0;
}

/* The last two join when they are the halves of an aligned subtree. */
static bool
range_joins(const struct bh_range *range)
{
    const struct bh_range_node *last = &range->nodes[range->count - 1];

    if (range->count < 2 || last[-1].level != last->level)
        return false;
    return range->to % (UINT64_C(2) << last->level) == 0;
}

void
bh_range_add(struct bh_range *range, const struct bh_crypto_ops *crypto, const uint8_t leaf_hash[32])
{
    struct bh_range_node *last;

    BH_ASSERT(range->count < BH_RANGE_NODES_MAX);
    last = &range->nodes[range->count++];
    last->level = 0;
    memcpy(last->hash, leaf_hash, sizeof last->hash);
    range->to++;
    while (range_joins(range)) {
        last = &range->nodes[--range->count];
        bh_merkle_node(crypto, last[-1].hash, last->hash, last[-1].hash);
        last[-1].level++;
    }
}

/* A subtree stands only where its size divides the place. */
static bool
add_subtree(struct bh_merkle_frontier *frontier, const struct bh_crypto_ops *crypto,
            const struct bh_range_node *node)
{
    uint64_t leaves = UINT64_C(1) << node->level;
    uint8_t hash[BH_MERKLE_HASH_BYTES];
    uint32_t level = node->level;

    if (frontier->size % leaves || frontier->size + leaves < leaves)
        return false;
    memcpy(hash, node->hash, sizeof hash);
    for (; frontier->size >> level & 1; level++)
        bh_merkle_node(crypto, frontier->peaks[level], hash, hash);
    memcpy(frontier->peaks[level], hash, sizeof hash);
    frontier->size += leaves;
    return true;
}

bool
bh_merkle_frontier_extend(struct bh_merkle_frontier *frontier, const struct bh_crypto_ops *crypto,
                          const struct bh_range *range)
{
    struct bh_merkle_frontier extended = *frontier;

    if (range->from != frontier->size || range->count > BH_RANGE_NODES_MAX)
        return false;
    for (uint32_t i = 0; i < range->count; i++)
        if (range->nodes[i].level >= BH_MERKLE_PEAKS_MAX || !add_subtree(&extended, crypto, &range->nodes[i]))
            return false;
    if (extended.size != range->to)
        return false;
    *frontier = extended;
    return true;
}
