#ifndef BH_NODE_COMMON_EXIT_RECORD_H
#define BH_NODE_COMMON_EXIT_RECORD_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/message.h"

/* How a job ended, as its keeper (or, when that was lost, the node) leaves it on disk
 * in the job's folder: the file `exit`, written whole and durably. */

/* Before the job starts: take room on the disk for its record. */
BH_MUST_USE bh_rc bh_exit_record_reserve(const char *folder, struct bh_err *err);

BH_MUST_USE bh_rc bh_exit_record_write(const char *folder, const struct bh_msg_ended *end,
                                       struct bh_err *err);

/* BH_NOT_FOUND: the job has not ended, or its keeper died first. */
BH_MUST_USE bh_rc bh_exit_record_read(const char *folder, struct bh_msg_ended *ret_end, struct bh_err *err);

/* How a keeper was asked to keep: it inherits BH_KEEPER_LOCK_FD, an open and locked file
 * `keeper` in the job's folder (its pid and start time are written there, and the lock
 * says that it lives), BH_KEEPER_LOG_FD, the job's log, BH_KEEPER_RUNTIME_FD, the program that makes the
 * sandbox (runtime/sealed.h), and BH_KEEPER_BARRIER_FD, an event counter to which it adds when
 * process 1 says that it waits at the start barrier. */
enum { BH_KEEPER_LOCK_FD = 3, BH_KEEPER_LOG_FD, BH_KEEPER_RUNTIME_FD, BH_KEEPER_BARRIER_FD };

#endif
