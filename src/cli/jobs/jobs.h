#ifndef BH_CLI_JOBS_JOBS_H
#define BH_CLI_JOBS_JOBS_H

#include "cli/command/cli.h"

/* Commands about jobs; see bh_cli_command_fn. */
bh_rc bh_cli_submit(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_ps(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_why(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_logs(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_cancel(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_release(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_wait_for(struct bh_cli *cli, struct bh_err *err);

/* What the job commands share. */

enum { BH_STATUS_USAGE = 2, BH_STATUS_JOB_FAILED = 9 };

/* Whether a job in this state is over. */
bool bh_job_has_ended(const char *state);

/* The exit status of a command that waits for a job in `state`, ended by `cause`: the job's own,
 * 128 and the signal, or 9 when it has none. */
int bh_job_exit_status(const char *state, const char *cause, int64_t status);

/* Submit what the command line (and the job file, unless NULL) describes. */
BH_MUST_USE bh_rc bh_cli_send_job(struct bh_cli *cli, const char *file, struct bh_json **ret_json,
                                  struct bh_err *err);

/* Append the query that the options of `ps` make. */
void bh_jobs_put_filter(const struct bh_cli *cli, struct bh_buf *path);

#endif
