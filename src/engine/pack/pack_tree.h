#ifndef BH_ENGINE_PACK_PACK_TREE_H
#define BH_ENGINE_PACK_PACK_TREE_H

#include <stdint.h>

/* A tournament over scores: the greatest, and of equal ones that with the lowest number.
 *
 * Sixteen scores, one cache line, meet in each match; the winner's score stands in the row
 * above.  A change climbs only as far as it changes a match's outcome.  A tree is an array
 * of `scores` numbers in the caller's memory, 16-byte aligned. */

enum { BH_PACK_TREE_FAN = 16, BH_PACK_TREE_ROWS_MAX = 8 };
#define BH_PACK_NO_CAPACITY INT32_MIN /* worse than any score */

/* Where the rows stand in a tree of so many leaves; row 0 is the leaves, the last row has
 * one match. */
struct bh_pack_tree_plan {
    uint32_t rows, scores; /* scores: of all rows together */
    uint32_t row[BH_PACK_TREE_ROWS_MAX];
};

struct bh_pack_tree_plan bh_pack_tree_plan(uint32_t leaves);

/* A tree in which every leaf is BH_PACK_NO_CAPACITY. */
void bh_pack_tree_clear(const struct bh_pack_tree_plan *plan, int32_t *tree);

/* Play all matches, after leaves were written directly. */
void bh_pack_tree_build(const struct bh_pack_tree_plan *plan, int32_t *tree);

/* Give one leaf a score. */
void bh_pack_tree_set(const struct bh_pack_tree_plan *plan, int32_t *tree, uint32_t leaf, int32_t score);

/* The winning score. */
int32_t bh_pack_tree_top(const struct bh_pack_tree_plan *plan, const int32_t *tree);

/* The winning leaf; leaf 0 when all are BH_PACK_NO_CAPACITY. */
uint32_t bh_pack_tree_best(const struct bh_pack_tree_plan *plan, const int32_t *tree);

#endif
