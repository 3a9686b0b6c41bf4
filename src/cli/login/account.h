#ifndef BH_CLI_LOGIN_ACCOUNT_H
#define BH_CLI_LOGIN_ACCOUNT_H

#include "cli/command/cli.h"

/* The caller's account and its factors, and for administrators those of all. */
bh_rc bh_cli_account_show(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_account_password(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_account_totp(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_account_recovery(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_account_passkey(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_account_enroll(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_account_reset(struct bh_cli *cli, struct bh_err *err);

#endif
