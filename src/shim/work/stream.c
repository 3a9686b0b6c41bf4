#include "shim/work/stream.h"

#include "shim/driver/driver.h"
#include "shim/process/clock.h"
#include "shim/process/handles.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))
#define LOOK_NS (50 * BH_US)

static struct bh_handles streams; /* a word: the context */

void
bh_streams_init(void)
{
    bh_handles_init(&streams);
}

static CUresult
made(const CUstream *stream, CUresult rc)
{
    CUcontext context = NULL;

    if (rc == CUDA_SUCCESS && REAL(cuCtxGetCurrent)(&context) == CUDA_SUCCESS)
        (void)bh_handles_put(&streams, HANDLE(*stream), HANDLE(context));
    return rc;
}

CUresult
cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return made(stream, REAL(cuStreamCreate)(stream, flags));
}

CUresult
cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    return made(stream, REAL(cuStreamCreateWithPriority)(stream, flags, priority));
}

CUresult
cuStreamDestroy(CUstream stream)
{
    uint64_t context;

    (void)bh_handles_take(&streams, HANDLE(stream), &context);
    return REAL(cuStreamDestroy)(stream);
}

CUresult
cuStreamDestroy_v2(CUstream stream)
{
    uint64_t context;

    (void)bh_handles_take(&streams, HANDLE(stream), &context);
    return REAL(cuStreamDestroy_v2)(stream);
}

static void
wait_for(CUstream stream, CUevent event)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (REAL(cuStreamIsCapturing)(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE
        || REAL(cuEventRecord)(event, stream) != CUDA_SUCCESS)
        return;
    while (REAL(cuEventQuery)(event) == CUDA_ERROR_NOT_READY)
        bh_clock_sleep(LOOK_NS);
}

void
bh_streams_wait(CUcontext context)
{
    uint64_t at = 0, stream, of;
    CUevent event;

    if (REAL(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return;
    while (bh_handles_next(&streams, &at, &stream, &of))
        if (of == HANDLE(context))
            wait_for((CUstream)(uintptr_t)stream, event);
    wait_for(CU_STREAM_LEGACY, event);
    (void)REAL(cuEventDestroy_v2)(event);
}
