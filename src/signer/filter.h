#ifndef BH_SIGNER_FILTER_H
#define BH_SIGNER_FILTER_H

#include "base/err.h"

/* Before the key is read: no dumps of memory, no debugger of the same user, no new rights.
 * BH_IO, BH_DENIED: the kernel refused. */
BH_MUST_USE bh_rc bh_signer_drop(struct bh_err *err);

/* From now on only the system calls that answering takes: files and the one socket, no
 * program, no new socket, no memory that is made executable.  Others fail with EPERM.  Call
 * it while there is one thread, after bh_signer_drop.  BH_IO, BH_DENIED: the kernel
 * refused. */
BH_MUST_USE bh_rc bh_signer_filter(struct bh_err *err);

#endif
