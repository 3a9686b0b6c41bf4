#ifndef BH_CLI_SITE_DEFRAG_H
#define BH_CLI_SITE_DEFRAG_H

#include "cli/command/cli.h"

/* `bulkhead defrag [--apply TOKEN]`: the plan of moves, as tables/commands.tbl says. */
bh_rc bh_cli_defrag(struct bh_cli *cli, struct bh_err *err);

#endif
