/* Streams without queues: every call is done when it returns. */
#include "simdrv/cuda_stream.h"

CUresult
sim_cuda_stream_submit(CUstream stream, bool own, const struct sim_work *work)
{
    (void)stream;
    (void)own;
    return sim_work_run(work);
}

CUresult
sim_cuda_stream_wait(CUstream stream, bool own)
{
    (void)stream;
    (void)own;
    return CUDA_SUCCESS;
}

CUresult
sim_cuda_stream_drain(struct CUctx_st *context)
{
    (void)context;
    return CUDA_SUCCESS;
}
