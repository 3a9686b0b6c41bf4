#ifndef BH_CLI_RECEIPTS_H
#define BH_CLI_RECEIPTS_H

#include "cli/cli.h"

/* Receipts of scrubs; see bh_cli_command_fn. */
bh_rc bh_cli_receipts(struct bh_cli *cli, struct bh_err *err);

#endif
