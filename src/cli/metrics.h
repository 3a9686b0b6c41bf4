#ifndef BH_CLI_METRICS_H
#define BH_CLI_METRICS_H

#include "cli/cli.h"

/* `bulkhead metrics`, as tables/commands.tbl has it. */
bh_rc bh_cli_metrics(struct bh_cli *cli, struct bh_err *err);

#endif
