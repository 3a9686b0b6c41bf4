#ifndef BH_CLI_LOGIN_LOGIN_H
#define BH_CLI_LOGIN_LOGIN_H

#include "cli/command/cli.h"

/* `bulkhead login`: each way to sign in ends with a session from the server, which is kept
 * for the commands that follow (cli/kept.h). */
bh_rc bh_cli_login(struct bh_cli *cli, struct bh_err *err);

#endif
