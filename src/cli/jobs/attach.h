#ifndef BH_CLI_JOBS_ATTACH_H
#define BH_CLI_JOBS_ATTACH_H

#include "cli/command/cli.h"

/* Commands that go into a running job; docs/interactive.md. */
bh_rc bh_cli_exec(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_attach(struct bh_cli *cli, struct bh_err *err);

/* -it asks for a terminal on this side, too: BH_INVALID without. */
BH_MUST_USE bh_rc bh_attach_check(const struct bh_cli *cli, struct bh_err *err);

/* What becomes of an attachment. */
enum bh_attach_end {
    BH_ATTACH_JOB_ENDED, /* or its stream did: its state says the rest */
    BH_ATTACH_LEFT,      /* by Ctrl-P Ctrl-Q, or a signal */
    BH_ATTACH_NEVER,     /* it had ended before: its output is in the log */
};

/* Attach to a job that runs; when the connection breaks, again, for a minute.  `input`: with
 * standard input. */
BH_MUST_USE bh_rc bh_attach(struct bh_cli *cli, const char *job, bool input, enum bh_attach_end *ret_end,
                            struct bh_err *err);

/* A stream to ask for: POST /v1/jobs/JOB + `rest` with `body`. */
struct bh_stream_target {
    const char *job, *rest, *body;
};

/* Ask; the ticket in the arena. */
BH_MUST_USE bh_rc bh_stream_ask(const struct bh_cli *cli, const struct bh_stream_target *target,
                                const char **ret_ticket, struct bh_err *err);

/* Wait, at most half a minute, until the job's end is known, and take over its status. */
BH_MUST_USE bh_rc bh_attach_conclude(struct bh_cli *cli, const char *job, struct bh_err *err);

#endif
