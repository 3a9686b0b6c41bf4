#ifndef BH_LAB_OPENB_TRACE_H
#define BH_LAB_OPENB_TRACE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "engine/pack/pack.h"

/* The openb trace (Alibaba, cluster-trace-gpu-v2023) as what the packing index knows:
 * nodes with what they have, pods as shapes.  docs/lab.md says where to get it. */

enum { BH_OPENB_MILLI = 1000, BH_OPENB_ROWS_MAX = 1000000 };

struct bh_openb_model_names {
    uint32_t count;
    const char *name[BH_PACK_MODELS_MAX];
};

struct bh_openb_node {
    const char *name;
    struct bh_pack_node has;
};

struct bh_openb_pod {
    const char *name, *models_text; /* "A|B", or "" for any */
    struct bh_pack_shape shape;
    uint32_t milli; /* of each GPU */
};

struct bh_openb_trace {
    struct bh_openb_model_names models;
    uint32_t node_count, pod_count;
    struct bh_openb_node *nodes; /* by name */
    struct bh_openb_pod *pods;   /* by name */
    uint64_t gpu_milli;          /* of all nodes */
};

/* Read the nodes, then the pods, each sorted by name; texts and tables live in `arena`.
 * BH_INVALID, BH_RANGE: a malformed line, named; BH_FULL: the arena's cap; and what
 * bh_openb_text_open says. */
BH_MUST_USE bh_rc bh_openb_read_nodes(const char *path, struct bh_arena *arena,
                                      struct bh_openb_trace *ret_trace, struct bh_err *err);
BH_MUST_USE bh_rc bh_openb_read_pods(const char *path, struct bh_arena *arena, struct bh_openb_trace *trace,
                                     struct bh_err *err);

#endif
