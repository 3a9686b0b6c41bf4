#ifndef BH_CLI_SITE_METRICS_H
#define BH_CLI_SITE_METRICS_H

#include "cli/command/cli.h"

/* `bulkhead metrics`, as tables/commands.tbl has it. */
bh_rc bh_cli_metrics(struct bh_cli *cli, struct bh_err *err);

#endif
