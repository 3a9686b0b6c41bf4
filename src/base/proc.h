#ifndef BH_BASE_PROC_H
#define BH_BASE_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* Files of /proc.  What cannot be read is an error, never 0; `ret_` is untouched then. */

/* /proc/PID/`name`, whole and with a NUL behind it.  BH_NOT_FOUND: the process is gone.  BH_FULL: it is
 * longer than `size` - 1 bytes.  On failure `text` is "". */
BH_MUST_USE bh_rc bh_proc_read(pid_t pid, const char *name, char *text, size_t size, struct bh_err *err);

/* Of /proc/PID/stat; the name, which has whatever a process gives itself, is not in the way. */
struct bh_proc_stat {
    char state; /* 'R', 'S', 'Z', ... */
    pid_t parent, group, session;
    unsigned flags;                    /* PF_... of the kernel */
    uint64_t user_ticks, system_ticks; /* of CPU */
    uint64_t started_ticks;            /* since the machine's start */
    uint64_t resident_pages;
};

/* BH_NOT_FOUND: the process is gone.  BH_IO: it reads as no kernel writes it. */
BH_MUST_USE bh_rc bh_proc_stat(pid_t pid, struct bh_proc_stat *ret_stat, struct bh_err *err);

/* The main memory that can be had without swapping (MemAvailable). */
BH_MUST_USE bh_rc bh_proc_available_bytes(uint64_t *ret_bytes, struct bh_err *err);

#endif
