#ifndef BH_ENGINE_PACK_PACK_INTERNAL_H
#define BH_ENGINE_PACK_PACK_INTERNAL_H

#include "engine/pack/pack.h"
#include "engine/pack/pack_ladder.h"
#include "engine/pack/pack_tree.h"

/* The index's block, for the files that make it up.
 *
 * A node's content decides its score for a shape.  Nodes stand in a list by their latest
 * change; a shape remembers the time up to which it has seen changes, and so meets each
 * changed node once, from the newest back.  Nodes that were set alike and have not changed
 * since are twins: where a shape must score every node it scores one of them. */

#define BH_PACK_NOWHERE UINT32_MAX

enum {
    BH_PACK_KINDS_MAX = 16,
    BH_PACK_SETS_MAX = 64,
    BH_PACK_LEVELS = 100,    /* of one GPU in the table of waste */
    BH_PACK_CORES_MAX = 128, /* of a node in it */
    BH_PACK_CORES = BH_PACK_CORES_MAX + 2,
    BH_PACK_TENTHS = BH_PACK_GPUS_MAX * 10 + 1
};

/* One node, with what follows from what it has left.  The first cache line is all that
 * finding out that it has no room takes. */
struct bh_pack_host {
    uint64_t changed;     /* when */
    uint32_t older;       /* neighbour in the list by `changed` */
    uint16_t most_free;   /* the most that is free on one GPU */
    uint16_t whole_count; /* GPUs wholly free */
    struct bh_pack_node left;
    uint16_t whole, broken; /* bit g: GPU g is wholly free; has something free, not all */
    uint32_t newer;         /* the other neighbour */
    uint32_t parts;         /* free on all its GPUs together */
    uint32_t twin;          /* group of nodes set alike, or BH_PACK_NOWHERE */
    int64_t loss;           /* FGD's F: parts times weight */
    uint32_t row;           /* of the loss table, for its model and cores */
    int32_t waste;          /* pack_waste.h */
};

/* Nodes set alike, and the score of one of them in the latest filling. */
struct bh_pack_twins {
    struct bh_pack_node left;
    uint64_t filling;
    int32_t score;
};

/* A shape. */
struct bh_pack_request {
    struct bh_pack_shape want;
    uint32_t weight; /* how often it is expected */
    uint64_t seen;   /* changes up to here are in its tree; 0: its tree is empty */
};

/* What the expected shapes say about a node of one model and one class of cores.  The
 * weights of a row are of those shapes that can not use a GPU; see pack_loss.c. */
struct bh_pack_loss_row {
    uint32_t broken[BH_PACK_AMOUNTS_MAX + 1]; /* by level of what the GPU has left */
    int64_t whole[BH_PACK_GPUS_MAX + 1];      /* parts times weight of so many free GPUs */
};

/* Different amounts, ascending. */
struct bh_pack_amounts {
    uint32_t count;
    int64_t sorted[BH_PACK_AMOUNTS_MAX];
};

struct bh_pack_loss_table {
    uint32_t weight;                                   /* of all expected shapes */
    struct bh_pack_amounts core_amounts, part_amounts; /* that expected shapes ask for */
    struct bh_pack_ladder cores;                       /* class of cores: amounts at or below them */
    struct bh_pack_ladder points;                      /* FGD's score from the gain */
    uint8_t first[BH_PACK_MODELS_MAX];                 /* model: number among the models that nodes have */
    uint8_t level[BH_GPU_PARTS + 1];                   /* how many amounts of parts are at or below */
};

/* Where the tournament of one kind's nodes stands in the tree of a shape. */
struct bh_pack_subtree {
    struct bh_pack_tree_plan plan;
    uint32_t first; /* of the tree's scores */
};

/* How large nodes are for which there are tables of waste. */
struct bh_pack_reach {
    uint32_t tenths, cores;
};

/* Kinds of models; pack_kind.h. */
struct bh_pack_kinds {
    uint32_t count;
    uint8_t of[BH_PACK_MODELS_MAX];   /* model: its kind */
    uint8_t model[BH_PACK_KINDS_MAX]; /* kind: its first model */
    struct bh_pack_reach reach[BH_PACK_KINDS_MAX];
    struct bh_pack_subtree stand[BH_PACK_KINDS_MAX];
};

/* Supply and demand; pack_price.h. */
struct bh_pack_supply {
    int64_t free_parts[BH_PACK_MODELS_MAX]; /* of each model */
    uint32_t placed;                        /* with GPUs, since the latest reckoning */
    uint32_t sets;
    uint64_t models[BH_PACK_SETS_MAX];
    int64_t share[BH_PACK_SETS_MAX]; /* of demand */
    uint16_t level[BH_PACK_KINDS_MAX];
};

/* What shapes with GPUs make of what is left on a node with one class of cores,
 * pack_waste.h. Shares are of 65536. */
struct bh_pack_waste_row {
    int32_t level[BH_PACK_LEVELS + 1];   /* waste of one GPU by what it has left */
    uint32_t several;                    /* share of the shapes of several GPUs */
    uint32_t over[BH_PACK_GPUS_MAX + 1]; /* share of those of more GPUs than so many */
};

struct bh_pack {
    struct bh_pack_caps caps;
    enum bh_pack_policy policy;
    uint32_t shapes;  /* known */
    uint32_t groups;  /* of twins */
    uint32_t newest;  /* node that changed last */
    uint32_t stride;  /* scores in a shape's tree */
    bool stale;       /* tables wait for prepare, as do */
    bool scattered;   /* the seats of nodes */
    uint64_t now;     /* changes so far */
    uint64_t filling; /* fillings so far */
    uint64_t models;  /* that nodes have */
    struct bh_pack_loss_table loss;
    struct bh_pack_kinds kinds;
    struct bh_pack_supply market;
    /* Where arrays begin, in bytes from the block's start. */
    size_t hosts, twins, twin_index, requests, find_in_index, rows, trees;
    size_t positions, occupants; /* node: its place in a tree, and back */
    size_t waste_rows, waste_nodes, waste_offers;
    uint32_t twin_mask, request_mask;
};

/* A policy: how good a node with room is for a shape, higher better, and, of the best node,
 * which of its GPUs the shape gets there.  `score` is asked of many nodes and may say too
 * much; `pick` is asked of the best and says what its score is for certain, not more, with
 * the caller's rounding (or NULL) where the policy minds it. */
struct bh_pack_rule {
    int32_t (*score)(const struct bh_pack *pack, const struct bh_pack_host *host,
                     const struct bh_pack_shape *want);
    int32_t (*pick)(const struct bh_pack *pack, const struct bh_pack_host *host,
                    const struct bh_pack_shape *want, const struct bh_pack_rounding *rounding,
                    uint32_t *ret_gpus);
    bool has_lookahead; /* it has tables of waste and prices */
};
extern const struct bh_pack_rule bh_pack_rules[BH_PACK_POLICIES];

static inline void *
bh_pack_at(const struct bh_pack *pack, size_t offset)
{
    return (char *)(uintptr_t)pack + offset;
}

static inline struct bh_pack_host *
bh_pack_host(const struct bh_pack *pack, uint32_t node)
{
    return (struct bh_pack_host *)bh_pack_at(pack, pack->hosts) + node;
}

static inline struct bh_pack_request *
bh_pack_request(const struct bh_pack *pack, uint32_t shape)
{
    return (struct bh_pack_request *)bh_pack_at(pack, pack->requests) + shape;
}

static inline struct bh_pack_loss_row *
bh_pack_loss_row(const struct bh_pack *pack, uint32_t row)
{
    return (struct bh_pack_loss_row *)bh_pack_at(pack, pack->rows) + row;
}

static inline bool
bh_pack_has_capacity(const struct bh_pack_host *host, const struct bh_pack_shape *want)
{
    const struct bh_pack_node *left = &host->left;

    if (left->cpu_milli < want->cpu_milli || left->memory_mib < want->memory_mib)
        return false;
    if (want->gpus == 0)
        return true;
    if (!(want->models >> left->model & 1))
        return false;
    return want->parts < BH_GPU_PARTS ? host->most_free >= want->parts : host->whole_count >= want->gpus;
}

/* Points that the shape pays for GPUs of this kind. */
static inline int64_t
bh_pack_price(const struct bh_pack *pack, uint32_t kind, const struct bh_pack_shape *want)
{
    return (int64_t)pack->market.level[kind] * want->gpus * want->parts / BH_GPU_PARTS;
}

/* The lowest `count` GPUs of a set. */
static inline uint32_t
bh_pack_first_gpus(uint32_t gpus, uint32_t count)
{
    uint32_t rest = gpus;

    while (count-- > 0)
        rest &= rest - 1;
    return gpus ^ rest;
}

#endif
