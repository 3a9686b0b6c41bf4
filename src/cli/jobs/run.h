#ifndef BH_CLI_JOBS_RUN_H
#define BH_CLI_JOBS_RUN_H

#include "cli/command/cli.h"

/* Submit a job and stay with it to its end; see bh_cli_command_fn. */
bh_rc bh_cli_run(struct bh_cli *cli, struct bh_err *err);

#endif
