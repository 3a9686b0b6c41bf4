#ifndef BH_CLI_SITE_POLICY_H
#define BH_CLI_SITE_POLICY_H

#include "cli/command/cli.h"

/* `bulkhead policy test`; cli->status is 1 when a submission would be denied. */
bh_rc bh_cli_policy_test(struct bh_cli *cli, struct bh_err *err);

#endif
