#ifndef BH_CLI_LOGIN_SESSIONS_H
#define BH_CLI_LOGIN_SESSIONS_H

#include "cli/command/cli.h"

/* What is done with sessions that there are. */
bh_rc bh_cli_logout(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_session_end(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_break_glass(struct bh_cli *cli, struct bh_err *err);

#endif
