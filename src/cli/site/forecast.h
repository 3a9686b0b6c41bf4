#ifndef BH_CLI_SITE_FORECAST_H
#define BH_CLI_SITE_FORECAST_H

#include "cli/command/cli.h"

/* `bulkhead forecast`: what is expected, as tables of tenants, pools, partitions and nodes. */
bh_rc bh_cli_forecast(struct bh_cli *cli, struct bh_err *err);

#endif
