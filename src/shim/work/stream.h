/* Streams of this process: known so that work can be waited for beside a capture, which
 * forbids waiting for the whole context. */
#ifndef BH_SHIM_WORK_STREAM_H
#define BH_SHIM_WORK_STREAM_H

#include "shim/process/abi.h"

/* At the first join. */
void bh_streams_init(void);

/* Wait for what was submitted to the streams of the current context that are not captured.
 */
void bh_streams_wait(CUcontext context);

#endif
