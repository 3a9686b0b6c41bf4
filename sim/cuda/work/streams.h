/* The streams of contexts, and the queues that their work goes into. */
#ifndef BH_SIM_CUDA_WORK_STREAMS_H
#define BH_SIM_CUDA_WORK_STREAMS_H

#include "sim/cuda/cuda.h"
#include "sim/machine/queue.h"

/* Which stream a call means: `handle` as it was passed; of calls that end in _ptsz and
 * _ptds the NULL stream is the thread's own. */
struct sim_stream_name {
    CUstream handle;
    bool own;
};

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
CUresult sim_cuda_submit(struct CUstream_st *stream, struct sim_order *order, uint64_t *ret_number);

/* Whether the calling thread is the driver's own, in a callback of the program's. */
bool sim_cuda_in_callback(void);

/* Call a function of the program's on the driver's thread. */
void sim_streams_call_program(void (*function)(void *self), void *self);

/* A new stream of a context that has a queue; NULL: no memory. */
struct CUstream_st *sim_streams_new(struct CUctx_st *context, unsigned flags, int priority);

/* Does the handle name one that lives? */
bool sim_streams_has(const struct CUstream_st *stream);

/* Its context does not have the stream from now on; its handle is invalid. */
void sim_streams_remove(struct CUstream_st *stream);
void sim_streams_retire(struct CUstream_st *stream);

/* The end of a context that has a queue: it is closed, which waits for its work; each
 * stream is removed and retired; what is left is freed. */
void sim_streams_close(struct CUctx_st *context);
struct CUstream_st *sim_streams_first(struct CUctx_st *context);
void sim_streams_free(struct CUctx_st *context);

#endif
