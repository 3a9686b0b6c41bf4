#ifndef BH_CLI_JOBS_GET_H
#define BH_CLI_JOBS_GET_H

#include "cli/command/cli.h"

/* Commands that fetch objects and show them; see bh_cli_command_fn. */
bh_rc bh_cli_get(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_describe(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_tenants(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_quota(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_usage(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_whoami(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_status(struct bh_cli *cli, struct bh_err *err);

#endif
