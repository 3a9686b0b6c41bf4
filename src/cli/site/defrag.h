#ifndef BH_CLI_SITE_DEFRAG_H
#define BH_CLI_SITE_DEFRAG_H

#include "cli/command/cli.h"

/* `bulkhead defrag [--apply TOKEN]`: the plan of moves, as tables/commands.tbl says. */
bh_rc bh_cli_defrag(struct bh_cli *cli, struct bh_err *err);

/* Append what /v1/defrag answers in words. */
void bh_defrag_put(struct bh_buf *out, bh_json_value answer);

#endif
