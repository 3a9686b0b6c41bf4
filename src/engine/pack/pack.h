#ifndef BH_ENGINE_PACK_PACK_H
#define BH_ENGINE_PACK_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "model/quantity.h"

/* Which node, and which of its GPUs: an index of nodes by what each has left of cores,
 * memory and GPUs, and the choice of the best by a policy.
 *
 * Pure: it stands in memory that the caller sized and owns, has no pointers in it, reads no
 * clock and uses no floating point; the same calls give the same answers.  Nodes, shapes
 * and GPUs of a node are numbered from 0.  Where two nodes are equally good the lower
 * number wins, so the order in which a caller numbers its nodes is part of the policy.
 *
 * What is kept between calls (scores of a shape on each node, a tournament over them) is
 * brought up to date for the shape that is asked for, and only on nodes that changed. */
struct bh_pack;

enum {
    BH_PACK_GPUS_MAX = 16,
    BH_PACK_MODELS_MAX = 64,
    BH_PACK_AMOUNTS_MAX = 64,
    BH_PACK_WEIGHT_MAX = 1 << 20
};

enum bh_pack_policy {
    BH_PACK_BESTFIT,  /* least left over, as facts of FGD's artifact define it */
    BH_PACK_FGD,      /* fragmentation gradient descent (Weng et al., ATC'23), with its
                         artifact's order of ties */
    BH_PACK_BULKHEAD, /* Bulkhead's own */
    BH_PACK_POLICIES
};
extern const char *const bh_pack_policy_names[BH_PACK_POLICIES];

/* Kinds (engine/pack/pack_kind.h) and models beyond those are judged as the last one is. */
struct bh_pack_caps {
    uint32_t nodes, shapes;
    uint32_t kinds, models; /* 0: as many as there can be */
};

/* What a node has left. */
struct bh_pack_node {
    uint32_t cpu_milli, memory_mib;
    uint32_t model;                   /* below BH_PACK_MODELS_MAX; of all its GPUs */
    uint32_t gpus;                    /* at most BH_PACK_GPUS_MAX */
    uint16_t parts[BH_PACK_GPUS_MAX]; /* left on each GPU, 0 .. BH_GPU_PARTS */
};

/* What is asked for. */
struct bh_pack_shape {
    uint32_t cpu_milli, memory_mib;
    uint32_t gpus;   /* 0: cores only */
    uint32_t parts;  /* of each GPU, not 0; BH_GPU_PARTS where gpus is over 1 */
    uint64_t models; /* bit m: a GPU of model m will do */
};

/* Where it goes. */
struct bh_pack_placement {
    uint32_t node;
    uint32_t gpus; /* bit g: GPU g of the node */
};

/* Bytes an index of these capacities takes. */
size_t bh_pack_size(const struct bh_pack_caps *caps);

/* An empty index in `memory` (bh_pack_size bytes, 16-byte aligned). */
struct bh_pack *bh_pack_init(void *memory, const struct bh_pack_caps *caps, enum bh_pack_policy policy);

/* Say what a node has left.  Numbers may be set in any order; one never set has nothing. */
void bh_pack_set_node(struct bh_pack *pack, uint32_t node, const struct bh_pack_node *left);

/* What a node has left now. */
const struct bh_pack_node *bh_pack_node(const struct bh_pack *pack, uint32_t node);

/* The number of a shape, new or known; UINT32_MAX when the table is full. */
uint32_t bh_pack_shape(struct bh_pack *pack, const struct bh_pack_shape *shape);

/* How many jobs in how many are expected to have this shape: what fragmentation is measured
 * against.  Weights are relative to their sum, which must stay below BH_PACK_WEIGHT_MAX.
 * Forgets all scores.  False, and nothing changes: the expected shapes would have more than
 * BH_PACK_AMOUNTS_MAX different amounts of cores, or of parts below a GPU. */
BH_MUST_USE bool bh_pack_expect(struct bh_pack *pack, uint32_t shape, uint32_t weight);

/* Make the tables that policies need from what is expected and set, as the next find would.
 * It takes up to a few hundredths of a second (docs/performance.md), once after all that
 * was said about shapes expected, models and larger nodes. */
void bh_pack_prepare(struct bh_pack *pack);

/* The best place for the shape.  False: no node has room. */
bool bh_pack_find(struct bh_pack *pack, uint32_t shape, struct bh_pack_placement *ret_placement);

/* For a caller that imitates a program that rounds: whether placing the shape on these GPUs of a node, which
 * gains nothing by FGD's measure, seems a loss there.  It costs the node a point. */
struct bh_pack_rounding {
    bool (*seems_loss)(const void *self, const struct bh_pack_node *left, const struct bh_pack_shape *want,
                       uint32_t gpus);
    const void *self;
};

/* bh_pack_find by FGD with such rounding, the same at each find of an index. */
bool bh_pack_find_rounded(struct bh_pack *pack, uint32_t shape, const struct bh_pack_rounding *rounding,
                          struct bh_pack_placement *ret_placement);

/* Take what the shape asks for from the place, which has it; give it back. */
void bh_pack_acquire(struct bh_pack *pack, uint32_t shape, const struct bh_pack_placement *placement);
void bh_pack_release(struct bh_pack *pack, uint32_t shape, const struct bh_pack_placement *placement);

/* Work out what GPUs of scarce models cost now, instead of after so many placements: then
 * what is found follows from what nodes have left and what is expected alone. */
void bh_pack_reckon(struct bh_pack *pack);

/* How good the node is for a shape, known or not, after prices: of two the one that a find
 * would take has more, and at equal ones the lower number.  False: it has no room, or the
 * tables are not made (bh_pack_prepare). */
bool bh_pack_judge(const struct bh_pack *pack, uint32_t node, const struct bh_pack_shape *want,
                   int32_t *ret_score);

/* The fragmentation of all nodes, in parts times the sum of weights (FGD's F). */
uint64_t bh_pack_fragmentation(struct bh_pack *pack);

#endif
