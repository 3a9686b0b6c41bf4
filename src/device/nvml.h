#ifndef BH_DEVICE_NVML_H
#define BH_DEVICE_NVML_H

#include "base/err.h"
#include "ports/device.h"

/* The device port (ports/device.h) over NVIDIA's management library, or anything with
 * its ABI: the simulated library is loaded the same way.
 *
 * Nothing is cached between calls but the names of GPUs: handles go stale whenever
 * instances or modes change.  A symbol that the library lacks costs only what needs
 * it (BH_UNAVAILABLE).  Not thread-safe; meant for a process of its own, since any
 * call may hang in the driver. */
struct bh_device_options {
    const char *library;   /* for dlopen: "libnvidia-ml.so.1" or a path */
    const char *proc_root; /* where driver/nvidia/capabilities lies; NULL: "/proc" */
};

/* Load and initialise the library.  On success `ret_device` is to be closed with its
 * ops->close.  BH_UNAVAILABLE: no library, or no driver; the message says which. */
BH_MUST_USE bh_rc bh_device_nvml_open(const struct bh_device_options *options, struct bh_device *ret_device,
                                      struct bh_err *err);

#endif
