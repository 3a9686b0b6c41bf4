#ifndef BH_NODE_GPU_GPU_WATCH_H
#define BH_NODE_GPU_GPU_WATCH_H

#include "base/err.h"
#include "ports/device.h"

/* The port's next_event. */
bh_rc bh_gpu_next_event(void *self, bh_ns wait, struct bh_device_event *ret_event, struct bh_err *err);

#endif
