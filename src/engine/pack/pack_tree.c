#include "engine/pack/pack_tree.h"

#include "base/assert.h"

struct bh_pack_tree_plan
bh_pack_tree_plan(uint32_t leaves)
{
    struct bh_pack_tree_plan plan = { 0 };
    uint32_t matches;

    BH_ASSERT(leaves > 0);
    do {
        BH_ASSERT(plan.rows < BH_PACK_TREE_ROWS_MAX);
        matches = (leaves + BH_PACK_TREE_FAN - 1) / BH_PACK_TREE_FAN;
        plan.row[plan.rows++] = plan.scores;
        plan.scores += matches * BH_PACK_TREE_FAN; /* the last match is filled up */
        leaves = matches;
    } while (matches > 1);
    return plan;
}

void
bh_pack_tree_clear(const struct bh_pack_tree_plan *plan, int32_t *tree)
{
    for (uint32_t i = 0; i < plan->scores; i++)
        tree[i] = BH_PACK_NO_CAPACITY;
}

/* Four scores in one register. */
typedef int32_t lanes __attribute__((vector_size(16)));

static inline lanes
pack_tree_greater(lanes a, lanes b)
{
    lanes first = a > b;

    return (a & first) | (b & ~first);
}

static inline int32_t
match_winner(const int32_t *scores)
{
    const lanes *row = (const void *)scores;
    lanes best = pack_tree_greater(pack_tree_greater(row[0], row[1]), pack_tree_greater(row[2], row[3]));
    int32_t low = best[0] > best[1] ? best[0] : best[1];
    int32_t high = best[2] > best[3] ? best[2] : best[3];

    return low > high ? low : high;
}

void
bh_pack_tree_build(const struct bh_pack_tree_plan *plan, int32_t *tree)
{
    for (uint32_t r = 0; r + 1 < plan->rows; r++) {
        const int32_t *match = tree + plan->row[r], *end = tree + plan->row[r + 1];

        for (int32_t *winner = tree + plan->row[r + 1]; match < end; winner++) {
            *winner = match_winner(match);
            match += BH_PACK_TREE_FAN;
        }
    }
}

void
bh_pack_tree_set(const struct bh_pack_tree_plan *plan, int32_t *tree, uint32_t leaf, int32_t score)
{
    int32_t *placement = tree + leaf, before = *placement;

    *placement = score;
    for (uint32_t r = 1; r < plan->rows && score != before; r++) {
        int32_t *match = tree + plan->row[r - 1] + leaf / BH_PACK_TREE_FAN * BH_PACK_TREE_FAN;
        int32_t won;

        leaf /= BH_PACK_TREE_FAN;
        placement = tree + plan->row[r] + leaf;
        won = *placement;
        if (score < won) {
            if (before < won)
                return; /* it neither had won nor wins */
            score = match_winner(match);
        }
        *placement = score;
        before = won;
    }
}

int32_t
bh_pack_tree_top(const struct bh_pack_tree_plan *plan, const int32_t *tree)
{
    return match_winner(tree + plan->row[plan->rows - 1]);
}

uint32_t
bh_pack_tree_best(const struct bh_pack_tree_plan *plan, const int32_t *tree)
{
    int32_t best = bh_pack_tree_top(plan, tree);
    uint32_t placement = 0;

    for (uint32_t r = plan->rows; r-- > 0; placement *= BH_PACK_TREE_FAN) {
        while (tree[plan->row[r] + placement] != best)
            placement++;
        if (r == 0)
            break;
    }
    return placement;
}
