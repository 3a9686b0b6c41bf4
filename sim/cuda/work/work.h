/* Streams: the order of a context's work.  What all calls go through that do something "in
 * a stream": launches, events, graphs, and copies, fills and frees that are asynchronous.
 */
#ifndef BH_SIM_CUDA_WORK_WORK_H
#define BH_SIM_CUDA_WORK_WORK_H

#include "sim/cuda/cuda.h"
#include "sim/machine/queue.h"

/* Which stream a call means: `handle` as it was passed; of calls that end in _ptsz and
 * _ptds the NULL stream is the thread's own. */
struct sim_stream_name {
    CUstream handle;
    bool own;
};

/* A part of the work of one call.  `act`: done at its turn, on a thread of the driver,
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

/* Do it in its turn.  On failure (also those of a capture) `drop` is called, too. */
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

/* ---- inside the files cuda_*.c that do work ---- */

#define SIM_PRIORITY_GREATEST (-5)

struct sim_capture;

struct CUstream_st {
    uint32_t magic;
    uint32_t index; /* the number by which the device orders works */
    struct CUctx_st *context;
    struct CUstream_st *next; /* of all that are free, or all of their context */
    unsigned flags;
    int priority;
    enum sim_task_order order;
    uint64_t id, last;           /* last: number of its last work; 0: none */
    struct sim_capture *capture; /* under the lock of captures */
};

/* The queue of a context, opened at its first work. */
CUresult sim_cuda_queue(struct CUctx_st *context, struct sim_queue **ret_queue);

/* The stream that a call means.  INVALID_HANDLE; INVALID_CONTEXT: it means one of the
 * current context, and there is none; NOT_PERMITTED: on the driver's thread. */
CUresult sim_cuda_find_stream(struct sim_stream_name name, struct CUstream_st **ret_stream);

/* Submit what is not captured.  *ret_number may be NULL. */
CUresult sim_cuda_submit(struct CUstream_st *stream, struct sim_order *order,
                         uint64_t *ret_number);

/* A deed in the stream, captured or not, whoever looks at captures. */
CUresult sim_cuda_submit_deed(struct CUstream_st *stream, const struct sim_deed *deed);

/* Whether the calling thread is the driver's own, in a callback of the program's. */
bool sim_cuda_in_callback(void);

#endif
