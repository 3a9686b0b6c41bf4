/* Streams: the order of a context's work.  What all calls go through that do something "in
 * a stream": launches, events, graphs, and copies, fills and frees that are asynchronous.
 */
#ifndef BH_SIM_CUDA_WORK_WORK_H
#define BH_SIM_CUDA_WORK_WORK_H

#include "sim/cuda/work/streams.h"

/* A part of the work of one call.  `act`: done in the order of its stream, on a thread of the driver,
 * after `cost_ns` of the engine were spent; `drop`: `self` is needed no more.  Either may
 * be NULL. While the stream is captured it becomes a node of the graph, which acts at every
 * launch. */
struct sim_deed {
    CUgraphNodeType type; /* KERNEL, MEMCPY, MEMSET, HOST, EMPTY */
    enum sim_engine engine;
    uint64_t cost_ns;
    uint8_t sms; /* per cent of the SMs; 0: all */
    void (*act)(void *self);
    void (*drop)(void *self);
    void *self;
};

/* Do it in the order of its stream.  On failure (also those of a capture) `drop` is called, too. */
CUresult sim_cuda_do(struct sim_stream_name name, const struct sim_deed *deed);

/* Sleep until all that the stream was given has ended: for calls that are done when they
 * return, after sim_cuda_do. */
CUresult sim_cuda_wait(struct sim_stream_name name);

/* To be called first by what the documentation calls potentially unsafe: allocations,
 * frees, queries, waiting.  STREAM_CAPTURE_UNSUPPORTED: a capture of this thread, or a
 * global one of another, forbids it, and is invalid now. */
CUresult sim_cuda_capture_check(void);

/* What copies and fills cost (docs/simdrv.md). */
uint64_t sim_cuda_copy_ns(CUgraphNodeType type, enum sim_engine engine, uint64_t bytes);

/* Wait for all work of the context; end it, for the context's destruction. */
CUresult sim_cuda_work_wait(struct CUctx_st *context);
void sim_cuda_work_drop(struct CUctx_st *context);

/* A deed in the stream, captured or not. */
CUresult sim_cuda_submit_deed(struct CUstream_st *stream, const struct sim_deed *deed);

#endif
