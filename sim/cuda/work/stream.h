/* Work on device memory in the order of streams.
 *
 * Every asynchronous call on memory goes through sim_cuda_stream_submit(): what it does is
 * a value, run at its turn (sim/cuda/work/work.h). */
#ifndef BH_SIM_CUDA_WORK_STREAM_H
#define BH_SIM_CUDA_WORK_STREAM_H

#include "sim/cuda/cuda.h"

enum sim_work_kind {
    SIM_WORK_FILL, /* `count` times `width` bytes of `value` */
    SIM_WORK_COPY,
    SIM_WORK_FREE, /* target */
};

struct sim_work {
    enum sim_work_kind kind;
    unsigned width; /* 1, 2 or 4 */
    uint32_t value;
    uint64_t target, source; /* device addresses, or the host's */
    size_t count;            /* bytes of a copy; elements of a fill */
};

/* Do it now.  INVALID_VALUE: an address is no memory, or a range leaves its allocation. */
CUresult sim_work_run(const struct sim_work *work);

/* Would it run?  The checks of sim_work_run() alone, for the call itself to answer. */
CUresult sim_work_check(const struct sim_work *work);

/* Let it run behind what is in the stream; `own`: NULL is the thread's own stream. */
CUresult sim_cuda_stream_submit(CUstream stream, bool own, const struct sim_work *work);

/* Do it behind what is in the default stream, and return when it is done. */
CUresult sim_cuda_stream_run(bool own, const struct sim_work *work);

/* Wait until what is in the stream is done; the first error in it. */
CUresult sim_cuda_stream_wait(CUstream stream, bool own);

/* Wait for all streams of a context. */
CUresult sim_cuda_stream_drain(struct CUctx_st *context);

#endif
