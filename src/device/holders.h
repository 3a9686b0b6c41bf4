#ifndef BH_DEVICE_HOLDERS_H
#define BH_DEVICE_HOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Processes that hold GPUs open, as /proc shows, and how to have them released (tables/gpu_holders.tbl).
 *
 * A process holds a GPU that has its node /dev/nvidiaN or a capability of one of its instances open, or
 * mapped.  Monitoring programs are found in no other way.  This process and the other gpu children of its
 * parent are left out.  So are processes that may not be read, and those that are not reached within two
 * seconds. */

#define BH_HOLDERS_ANY UINT32_MAX /* instead of a GPU's minor: any GPU, nvidiactl, nvidia-uvm */

/* "nv-hostengine 1234: systemctl stop nvidia-dcgm; python3 99: kill 99": at most `most` of the
 * processes that hold the GPU of that minor, and "; ..." when there are more.  How many there
 * are. */
uint32_t bh_holders_put(struct bh_buf *out, const char *proc_root, uint32_t minor, uint32_t most);

/* "python3 99: kill 99"; without its name when the process cannot be asked it. */
void bh_holders_put_one(struct bh_buf *out, const char *proc_root, uint32_t pid);

/* Whether the module of the display is loaded, which keeps Ampere boards from the reset that a
 * change of their MIG mode takes. */
bool bh_holders_has_drm(const char *proc_root);

#endif
