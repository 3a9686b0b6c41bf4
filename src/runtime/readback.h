#ifndef BH_RUNTIME_READBACK_H
#define BH_RUNTIME_READBACK_H

#include "runtime/cgroup.h"

/* What the kernel says of a sandbox's control groups, read again: that something was written
 * once does not say that it stands. */

struct bh_limits {
    uint64_t memory_bytes, pids; /* UINT64_MAX: not limited */
};

/* BH_NOT_FOUND without groups. */
BH_MUST_USE bh_rc bh_readback_limits(const struct bh_cgroup_host *host, const char *path,
                                     struct bh_limits *ret_limits, struct bh_err *err);

/* Whether exactly the standard devices and these may be opened.  BH_CONFLICT says what differs;
 * on version 2 the attached program must be the one that such a list gives, by its digest. */
BH_MUST_USE bh_rc bh_readback_devices(const struct bh_cgroup_host *host, const char *path,
                                      const struct bh_sandbox_device *devices, uint32_t count,
                                      struct bh_err *err);

#endif
