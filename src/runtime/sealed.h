#ifndef BH_RUNTIME_SEALED_H
#define BH_RUNTIME_SEALED_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"

/* A copy of a program in memory that no process can write, to be executed by its descriptor.
 *
 * crun copies itself like this at each start, or binds itself read-only, and executes the copy, so that no
 * job can write the machine's crun through /proc/self/exe.  A crun that finds itself sealed already continues
 * at once: one copy serves all jobs, and each start loads one program instead of two. */
struct bh_sealed_program {
    bool made;
    int fd;
    struct stat of; /* the file that it is a copy of, as it was */
};

/* `ret_fd` is to be executed in place of the program at `path`; it is the struct's, and good until the next
 * call.  A file that has changed since is copied anew.  Where the kernel forbids executing memory, it leads
 * to the file itself.  On failure nothing is kept:
 *   BH_IO    the program cannot be read
 *   BH_FULL  there is no memory for it */
BH_MUST_USE bh_rc bh_sealed_open(struct bh_sealed_program *sealed, const char *path, int *ret_fd,
                                 struct bh_err *err);

void bh_sealed_close(struct bh_sealed_program *sealed);

#endif
