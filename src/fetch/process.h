#ifndef BH_FETCH_PROCESS_H
#define BH_FETCH_PROCESS_H

#include <sys/types.h>

#include "fetch/fetch.h"
#include "wire/frame_io.h"

/* The life of a bulkhead-fetch process, seen from its parent. */

/* How it is started: a copy of the options as an argument vector. */
struct bh_fetch_command {
    char **argv; /* argv[0] is the program; ends with NULL */
};

/* BH_INVALID: no program, a name or path that has a ':', a proxy with a password, or too
 * many of something. */
BH_MUST_USE bh_rc bh_fetch_command_make(const struct bh_fetch_options *options,
                                        struct bh_fetch_command *ret_command, struct bh_err *err);
void bh_fetch_command_free(struct bh_fetch_command *command);

struct bh_fetch_process {
    pid_t pid; /* 0: none runs */
    struct bh_link *link;
    uint64_t files; /* what stood in the resolver's files when it started */
};

/* BH_UNAVAILABLE: it cannot be started. */
BH_MUST_USE bh_rc bh_fetch_process_start(const struct bh_fetch_command *command,
                                         struct bh_fetch_process *ret_process, struct bh_err *err);

/* Kill it, wait until it went, close the link.  Nothing happens when none runs. */
void bh_fetch_process_end(struct bh_fetch_process *process);

/* Were files of the resolver replaced since it started?  It can read only the old ones. */
bool bh_fetch_process_stale(const struct bh_fetch_process *process);

#endif
