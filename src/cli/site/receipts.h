#ifndef BH_CLI_SITE_RECEIPTS_H
#define BH_CLI_SITE_RECEIPTS_H

#include "cli/command/cli.h"

/* Receipts of scrubs; see bh_cli_command_fn. */
bh_rc bh_cli_receipts(struct bh_cli *cli, struct bh_err *err);

#endif
