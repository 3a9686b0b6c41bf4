#ifndef BH_CLI_FORECAST_H
#define BH_CLI_FORECAST_H

#include "cli/cli.h"

/* `bulkhead forecast`: what is expected, as tables of tenants, pools, partitions and nodes. */
bh_rc bh_cli_forecast(struct bh_cli *cli, struct bh_err *err);

#endif
