#ifndef BH_BASE_PROCESS_H
#define BH_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* Starting programs.  A program gets what its options name and nothing else of the caller's:
 * every other descriptor is closed, every signal has its default action, none is blocked. */

enum { BH_PROCESS_FDS_MAX = 8 };

/* `target` in the program is the caller's `source`.  A source may be named more than once, and
 * may be another row's target. */
struct bh_process_fd {
    int target, source;
};

struct bh_process_options {
    const char *program;     /* NULL: argv[0] */
    bool search;             /* a program without '/' is looked for in the caller's PATH */
    const int *image;        /* an open file to execute; `program` where it is a script; or NULL */
    const char *const *argv; /* ends with NULL; required */
    const char *const *envp; /* ends with NULL; required, `environ` where the caller's is meant */
    struct bh_process_fd fds[BH_PROCESS_FDS_MAX];
    size_t fd_count;         /* 0, 1 and 2 are /dev/null where no row names them */
    const char *folder;      /* working directory; NULL: the caller's */
    bool new_session;        /* setsid(): without a terminal */
    bool new_group;          /* setpgid(): the terminal's signals do not reach it */
    int parent_death_signal; /* sent when the starting thread ends; 0: none */
    /* Runs in the child before the program: the program's descriptors are in place, the caller's
     * still open beside them, all signals blocked.  0 or an errno value.  Only for what a sandbox
     * needs (a control group, another user, a terminal).  In a program with threads it may call
     * only what is async-signal-safe.  With it the child is made by fork(), without by vfork(),
     * which copies no memory. */
    int (*enter)(void *self);
    void *self;
};

/* Start a program.  Returns once it runs, or with why it does not: the errno of what failed, as
 * bh_err_errno gives it.  A child that is killed before then counts as started; its end says so.
 *
 * `ret_pidfd` (close-on-exec, the caller's to close) may be NULL.  Where none can be had, the
 * child is killed and reaped, and that is the error.  The caller reaps the child. */
BH_MUST_USE bh_rc bh_process_start(const struct bh_process_options *options, pid_t *ret_pid, int *ret_pidfd,
                                   struct bh_err *err);

/* Become the program, in a child that was made by other means.  Returns only an errno value;
 * descriptors and signals are the program's by then. */
BH_MUST_USE int bh_process_become(const struct bh_process_options *options);

/* Wait for a child's end.  Its status as waitpid() gives it; -1: there is no such child. */
int bh_process_wait(pid_t pid);

#endif
