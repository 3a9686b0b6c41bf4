#ifndef BH_NODE_GPU_GPU_CHILD_H
#define BH_NODE_GPU_GPU_CHILD_H

#include "base/err.h"
#include "device/nvml.h"

/* The inside of a gpu child: what bulkhead-gpu does with its socket.
 *
 * The driver is opened when it is first needed, and tried again whenever it could not
 * be: a child outlives a driver that is loaded late. */

/* Answer requests on `fd`, one at a time, until the node closes it.  BH_OK: it did;
 * BH_INVALID: it sent something else; BH_IO. */
BH_MUST_USE bh_rc bh_gpu_child_respond(int fd, const struct bh_device_options *options, struct bh_err *err);

/* Wait for events of the GPU of that name and send each on `fd` until the node closes it. */
BH_MUST_USE bh_rc bh_gpu_child_watch(int fd, const char *gpu, const struct bh_device_options *options,
                                     struct bh_err *err);

/* From now on this process cannot open the device node at that path (EACCES): a mount namespace
 * of its own shows it where devices do not count.  BH_OK, too, where there is no such node. */
BH_MUST_USE bh_rc bh_gpu_child_hide(const char *path, struct bh_err *err);

/* Keep of root's rights only what the driver asks for, and have no network: a vendor's library runs
 * here.  After bh_gpu_child_hide.  BH_IO: the kernel refuses. */
BH_MUST_USE bh_rc bh_gpu_child_confine(struct bh_err *err);

/* The same of the device nodes of all GPUs but the one at that path. */
BH_MUST_USE bh_rc bh_gpu_child_only(const char *path, struct bh_err *err);

#endif
