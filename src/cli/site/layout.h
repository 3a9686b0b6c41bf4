#ifndef BH_CLI_SITE_LAYOUT_H
#define BH_CLI_SITE_LAYOUT_H

#include "cli/command/cli.h"

/* `bulkhead layout`: which MIG instances must be ready on GPUs. */
bh_rc bh_cli_layout_diff(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_layout_apply(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_layout_rollback(struct bh_cli *cli, struct bh_err *err);

#endif
