/* Captures of streams into graphs, and driver calls of our own beside them. */
#ifndef BH_SHIM_WORK_CAPTURE_H
#define BH_SHIM_WORK_CAPTURE_H

#include <stdbool.h>

#include "shim/process/abi.h"

/* At the first join. */
void bh_capture_init(void);

/* Is this stream being captured?  One load while none is. */
bool bh_capture_has(CUstream stream, bool per_thread);

/* Is any?  One that was given up without an end counts. */
bool bh_capture_any(void);

/* The graph that a capturing stream is captured into; NULL when it is not. */
CUgraph bh_capture_graph(CUstream stream, bool per_thread);

/* Between pause and resume this thread's calls end no other thread's capture. */
struct bh_capture_pause {
    bool paused;
    CUstreamCaptureMode mode;
};
void bh_capture_pause(struct bh_capture_pause *ret_pause);
void bh_capture_resume(const struct bh_capture_pause *pause);

#endif
