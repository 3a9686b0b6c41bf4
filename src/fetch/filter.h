#ifndef BH_FETCH_FILTER_H
#define BH_FETCH_FILTER_H

#include "base/err.h"

/* Make only the system calls of tables/fetch_syscalls.tbl from now on: for this thread and
 * those that it starts.  BH_IO, BH_DENIED: the kernel refused; PR_SET_NO_NEW_PRIVS must
 * have been set. */
BH_MUST_USE bh_rc bh_fetch_filter_load(struct bh_err *err);

#endif
