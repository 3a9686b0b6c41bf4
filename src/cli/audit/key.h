#ifndef BH_CLI_AUDIT_KEY_H
#define BH_CLI_AUDIT_KEY_H

#include "cli/command/cli.h"

/* `bulkhead key ...`, as tables/commands.tbl says. */
bh_rc bh_cli_key_shred(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_key_rotate(struct bh_cli *cli, struct bh_err *err);

#endif
