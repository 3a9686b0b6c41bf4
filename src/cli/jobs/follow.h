#ifndef BH_CLI_JOBS_FOLLOW_H
#define BH_CLI_JOBS_FOLLOW_H

#include "cli/command/cli.h"

/* Following a job's output, and watching jobs, by server-sent events.  When the
 * connection breaks because bulkheadd restarts, it is made again where it was. */
struct bh_follow {
    const struct bh_cli *cli;
    const char *job;
    uint64_t member;          /* of its gang */
    uint64_t offset;          /* bytes of output seen so far */
    bool (*idle)(void *self); /* asked several times a second; false leaves; NULL */
    void *idle_self;
    bool ended; /* out: the job is over */
    bool left;  /* out: `idle` wanted to leave */
};

/* Write the job's output to standard output until the job ends.
 * BH_UNAVAILABLE when bulkheadd stays away for a minute; BH_IO: standard output. */
BH_MUST_USE bh_rc bh_follow_output(struct bh_follow *follow, struct bh_err *err);

/* Print a line for each change of a job's state until interrupted. */
BH_MUST_USE bh_rc bh_follow_changes(const struct bh_cli *cli, struct bh_err *err);

#endif
