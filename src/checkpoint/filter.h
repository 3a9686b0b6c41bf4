#ifndef BH_CHECKPOINT_FILTER_H
#define BH_CHECKPOINT_FILTER_H

#include "base/err.h"

/* From now on the calls of tables/checkpoint_syscalls.tbl are refused, and those of another
 * machine type end the process.  A list of what is refused and not of what is allowed: nobody
 * but the vendor knows what its calls ask of the kernel.  BH_IO: the kernel has no filters. */
BH_MUST_USE bh_rc bh_checkpoint_filter_load(struct bh_err *err);

#endif
