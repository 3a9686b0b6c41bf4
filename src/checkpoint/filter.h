#ifndef BH_CHECKPOINT_FILTER_H
#define BH_CHECKPOINT_FILTER_H

#include "base/err.h"

/* From now on the calls of tables/checkpoint_syscalls.tbl are refused, and those of another machine type end
 * the process.  The list has the refused calls and not the allowed ones, because only the vendor knows which
 * system calls the driver's calls make.  BH_IO: the kernel has no filters. */
BH_MUST_USE bh_rc bh_checkpoint_filter_load(struct bh_err *err);

#endif
