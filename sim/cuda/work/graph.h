/* Graphs, and streams that are captured into one. */
#ifndef BH_SIM_CUDA_WORK_GRAPH_H
#define BH_SIM_CUDA_WORK_GRAPH_H

#include "sim/cuda/work/work.h"

/* What a node does, shared by all copies of it. */
struct sim_payload {
    _Atomic unsigned references;
    struct sim_deed deed;
    CUdeviceptr address; /* MEM_ALLOC, MEM_FREE */
    size_t bytes;
    CUdevice device;
};

/* A node comes after those that it depends on: its graph's order is one in which they can
 * run. */
struct CUgraphNode_st {
    CUgraph graph;
    size_t at; /* in `graph` */
    struct sim_payload *payload;
    size_t depends;
    CUgraphNode *dependencies;
    bool has_dependents;
};

struct CUgraph_st {
    uint32_t magic;
    size_t count, room;
    CUgraphNode *node;
};

/* Nodes that what comes next depends on. */
struct sim_tail {
    CUgraphNode *node;
    size_t count;
};

CUgraph sim_graph_new(void);
void sim_graph_free(CUgraph graph);
bool sim_graph_is(CUgraph graph);
CUgraph sim_graph_clone(CUgraph graph);

/* A copy of the deed, and how many share it.  NULL: no memory; the deed was dropped. */
struct sim_payload *sim_payload_new(const struct sim_deed *deed);
void sim_payload_release(struct sim_payload *payload);

/* Add a node that takes over a reference to `payload`.  INVALID_VALUE: a dependency of
 * another graph; then and without memory the reference is released. */
CUresult sim_graph_add(CUgraph graph, struct sim_tail after, struct sim_payload *payload,
                       CUgraphNode *ret_node);

/* ---- capture ---- */

/* Take a deed that is done in a stream which is captured.  *ret_taken false: it is not.  On
 * failure the deed was dropped. */
CUresult sim_capture_take(struct CUstream_st *stream, const struct sim_deed *deed, bool *ret_taken);

/* Memory that is taken or freed in a stream which is captured: MEM_ALLOC of `bytes` on the
 * device, whose address comes back, or MEM_FREE of an address. */
struct sim_capture_memory {
    CUgraphNodeType type;
    CUdevice device;
    size_t bytes;
    CUdeviceptr address;
};

/* As sim_capture_take. */
CUresult sim_capture_take_memory(struct sim_stream_name name, struct sim_capture_memory *memory,
                                 bool *ret_taken);

/* What an event that is recorded in a captured stream stands for. */
struct sim_mark {
    uint64_t capture; /* its id; 0: none */
    struct sim_tail tail;
};

/* Record into `mark`, or clear it when the stream is not captured. */
CUresult sim_capture_mark(struct CUstream_st *stream, struct sim_mark *mark);
/* Let the stream wait for it, which has it captured, too.  *ret_taken false: neither is. */
CUresult sim_capture_join(struct CUstream_st *stream, const struct sim_mark *mark, bool *ret_taken);
void sim_mark_clear(struct sim_mark *mark);

/* The stream is queried or waited for: UNSUPPORTED when it is captured, which ends that. */
CUresult sim_capture_check_stream(struct CUstream_st *stream);
/* The stream ends: a capture that it takes part in becomes invalid. */
void sim_capture_leave(struct CUstream_st *stream);

/* ---- memory of graphs ---- */

/* Addresses for a node; the memory comes at launch. */
CUresult sim_graph_memory_reserve(struct sim_payload *payload);
void sim_graph_memory_forget(const struct sim_payload *payload);
CUresult sim_graph_memory_take(const struct sim_payload *payload, bool anew);
/* False: no live allocation of a graph is there. */
bool sim_graph_memory_free(CUdeviceptr address);
/* The same under sim_memory_lock(). */
bool sim_graph_memory_free_locked(CUdeviceptr address);

/* ---- kernels ---- */

/* What a launch of `function` does.  INVALID_HANDLE; INVALID_VALUE. */
CUresult sim_kernel_deed(CUfunction function, void **parameters, void **extra, struct sim_deed *ret_deed);

#endif
