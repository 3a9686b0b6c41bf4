#ifndef BH_NODE_COMMON_DISK_H
#define BH_NODE_COMMON_DISK_H

#include <stdint.h>

#include "base/err.h"

/* The whole disk that holds the folder `path`, by the kernel's numbers: limits of input and
 * output are a disk's, not a partition's.  `devices` is "/sys/dev/block".
 *   BH_UNAVAILABLE  it is on none (a network, several disks, memory) */
BH_MUST_USE bh_rc bh_disk_of(const char *devices, const char *path, uint32_t *ret_major, uint32_t *ret_minor,
                             struct bh_err *err);

#endif
