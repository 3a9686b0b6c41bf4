#ifndef BH_CLI_SITE_SERIES_H
#define BH_CLI_SITE_SERIES_H

#include "cli/command/cli.h"

/* `bulkhead series`: use and sensors over time. */
bh_rc bh_cli_series(struct bh_cli *cli, struct bh_err *err);

#endif
