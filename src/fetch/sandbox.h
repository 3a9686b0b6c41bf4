#ifndef BH_FETCH_SANDBOX_H
#define BH_FETCH_SANDBOX_H

#include "base/err.h"

/* What bulkhead-fetch gives up before it reads its first question, so that a fault in
 * libcurl or in a certificate's parser gains as little as possible. */

/* No dumps of memory, no new rights, few descriptors; a process that is root becomes the user nobody without
 * capabilities.  It ends with its parent.  BH_IO, BH_DENIED: the kernel refused. */
BH_MUST_USE bh_rc bh_fetch_sandbox_drop(struct bh_err *err);

/* From now on only files of the resolver, libraries and trusted certificates can be read,
 * none written (Landlock, where the kernel has it), and only the calls of
 * tables/fetch_syscalls.tbl made.  Call it while there is one thread.  BH_IO: the kernel
 * refused; BH_UNAVAILABLE is no result: without Landlock the rest must do. */
BH_MUST_USE bh_rc bh_fetch_sandbox_enter(struct bh_err *err);

#endif
