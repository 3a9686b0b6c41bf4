#ifndef BH_CLI_SITE_CORDON_H
#define BH_CLI_SITE_CORDON_H

#include "cli/command/cli.h"

/* Keeping new work off GPUs and nodes. */
bh_rc bh_cli_cordon(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_uncordon(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_drain(struct bh_cli *cli, struct bh_err *err);

#endif
