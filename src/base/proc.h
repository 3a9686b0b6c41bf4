#ifndef BH_BASE_PROC_H
#define BH_BASE_PROC_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* Files of /proc.  What cannot be read is an error, never 0; `ret_` is untouched then. */

#define BH_PROC_SELF ((pid_t)-1) /* this process, by whatever number */

/* The path of /proc/PID/`name`, for calls that want one. */
enum { BH_PROC_PATH_MAX = 128 };
void bh_proc_path(pid_t pid, const char *name, char ret_path[BH_PROC_PATH_MAX]);

/* That of an open file of this process, for calls that take no descriptor. */
void bh_proc_fd_path(int fd, char ret_path[BH_PROC_PATH_MAX]);

/* /proc/PID/`name`, whole and with a NUL behind it.  BH_NOT_FOUND: the process is gone.  BH_FULL: it is
 * longer than `size` - 1 bytes.  On failure `text` is "". */
BH_MUST_USE bh_rc bh_proc_read(pid_t pid, const char *name, char *text, size_t size, struct bh_err *err);

/* Where the link /proc/PID/`name` leads, likewise. */
BH_MUST_USE bh_rc bh_proc_link(pid_t pid, const char *name, char *text, size_t size, struct bh_err *err);

/* The folder /proc/PID/`name`, to be read and closed; NULL, and errno: it cannot be opened. */
DIR *bh_proc_list(pid_t pid, const char *name);

/* The folder of the program that runs. */
BH_MUST_USE bh_rc bh_proc_own_folder(char *ret_path, size_t size, struct bh_err *err);

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

/* What the kernel calls this boot of the machine, without the line's end.  BH_FULL: it is longer. */
enum { BH_PROC_BOOT_ID_MAX = 40 };
BH_MUST_USE bh_rc bh_proc_boot_id(char ret_id[BH_PROC_BOOT_ID_MAX], struct bh_err *err);

/* The main memory that can be had without swapping (MemAvailable). */
BH_MUST_USE bh_rc bh_proc_available_bytes(uint64_t *ret_bytes, struct bh_err *err);

#endif
