/* Operations on memory in the order of streams: every asynchronous call on memory goes
 * through sim_cuda_stream_submit(). */
#ifndef BH_SIM_CUDA_WORK_STREAM_H
#define BH_SIM_CUDA_WORK_STREAM_H

#include "sim/cuda/memory/operation.h"

/* Let it run behind what is in the stream; `own`: NULL is the thread's own stream. */
CUresult sim_cuda_stream_submit(CUstream stream, bool own, const struct sim_operation *operation);

/* Do it behind what is in the default stream, and return when it is done. */
CUresult sim_cuda_stream_run(bool own, const struct sim_operation *operation);

#endif
