#include "shim/work/capture.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/driver/driver.h"
#include "shim/process/state.h"

static BH_STATE union {
    _Atomic int captures; /* begun and not ended; one that was given up stays */
    char whole[BH_STATE_ALIGN];
} state;

void
bh_capture_init(void)
{
    bh_state_wipe_on_fork(&state, sizeof(state));
}

static bool
none_is(void)
{
    return atomic_load_explicit(&state.captures, memory_order_relaxed) == 0;
}

bool
bh_capture_any(void)
{
    return !none_is();
}

bool
bh_capture_has(CUstream stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (__builtin_expect(none_is(), 1))
        return false;
    if (per_thread)
        return REAL(cuStreamIsCapturing_ptsz)(stream, &status) == CUDA_SUCCESS
               && status != CU_STREAM_CAPTURE_STATUS_NONE;
    return REAL(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS
           && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUgraph
bh_capture_graph(CUstream stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    CUresult rc;

    if (none_is())
        return NULL;
    if (per_thread)
        rc = REAL(cuStreamGetCaptureInfo_v2_ptsz)(stream, &status, NULL, &graph, NULL, NULL);
    else
        rc = REAL(cuStreamGetCaptureInfo_v2)(stream, &status, NULL, &graph, NULL, NULL);
    return rc == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? graph : NULL;
}

void
bh_capture_pause(struct bh_capture_pause *ret_pause)
{
    ret_pause->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ret_pause->paused =
        !none_is() && REAL(cuThreadExchangeStreamCaptureMode)(&ret_pause->mode) == CUDA_SUCCESS;
}

void
bh_capture_resume(const struct bh_capture_pause *pause)
{
    CUstreamCaptureMode mode = pause->mode;

    if (pause->paused)
        (void)REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

static CUresult
capture_begun(CUresult rc)
{
    if (rc != CUDA_SUCCESS)
        atomic_fetch_sub(&state.captures, 1);
    return rc;
}

static void
capture_begin(void)
{
    atomic_fetch_add(&state.captures, 1);
}

CUresult
cuStreamBeginCapture(CUstream stream)
{
    capture_begin();
    return capture_begun(REAL(cuStreamBeginCapture)(stream));
}

CUresult
cuStreamBeginCapture_ptsz(CUstream stream)
{
    capture_begin();
    return capture_begun(REAL(cuStreamBeginCapture_ptsz)(stream));
}

CUresult
cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    capture_begin();
    return capture_begun(REAL(cuStreamBeginCapture_v2)(stream, mode));
}

CUresult
cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
    capture_begin();
    return capture_begun(REAL(cuStreamBeginCapture_v2_ptsz)(stream, mode));
}

/* An end that only says that the capture was broken ends it, too. */
static CUresult
capture_ended(CUresult rc)
{
    if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
        atomic_fetch_sub(&state.captures, 1);
    return rc;
}

CUresult
cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return capture_ended(REAL(cuStreamEndCapture)(stream, graph));
}

CUresult
cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return capture_ended(REAL(cuStreamEndCapture_ptsz)(stream, graph));
}
