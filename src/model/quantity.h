#ifndef BH_MODEL_QUANTITY_H
#define BH_MODEL_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

/* One GPU is 4200 parts in each of two dimensions, compute and memory: divisible
 * by 7 (compute slices), 8 and 12 (memory units) and 100 (percent). */
enum { BH_GPU_PARTS = 4200 };

/* Money is counted in integer millionths of the site's currency. */
enum { BH_MONEY_UNIT = 1000000 };

/* A tenant's share beside its siblings. */
enum { BH_WEIGHT_DEFAULT = 100, BH_WEIGHT_MAX = 65535 };

struct bh_parts {
    uint64_t compute, memory;
};

/* The larger dimension: what limits and displays count ("GPU-equivalents").  The
 * sum over one GPU's partitions may exceed 4200, each dimension's never. */
uint64_t bh_parts_equivalent(struct bh_parts parts);

struct bh_parts bh_parts_add(struct bh_parts a, struct bh_parts b);
/* Asserts that nothing goes below zero. */
struct bh_parts bh_parts_sub(struct bh_parts a, struct bh_parts b);

/* Part-nanoseconds: the ledger's unit, 128 bits so that a century of a large
 * fleet fits (2^64 ns is 584 years; 4200 * 10^6 GPUs needs 32 bits more). */
typedef unsigned __int128 bh_part_ns;

/* `value` in decimal; `ret_text` holds at least 40 bytes. */
void bh_part_ns_format(bh_part_ns value, char ret_text[40]);

#endif
