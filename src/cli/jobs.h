#ifndef BH_CLI_JOBS_H
#define BH_CLI_JOBS_H

#include "cli/cli.h"

/* What the job commands share. */

enum { BH_STATUS_USAGE = 2, BH_STATUS_JOB_FAILED = 9 };

/* Whether a job in this state is over. */
bool bh_job_has_ended(const char *state);

/* Submit what the command line (and the job file, unless NULL) describes. */
BH_MUST_USE bh_rc bh_cli_send_job(struct bh_cli *cli, const char *file,
                                 struct bh_json **ret_json, struct bh_err *err);

/* Append the query that the options of `ps` make. */
void bh_jobs_put_filter(const struct bh_cli *cli, struct bh_buf *path);

#endif
