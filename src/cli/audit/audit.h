#ifndef BH_CLI_AUDIT_AUDIT_H
#define BH_CLI_AUDIT_AUDIT_H

#include "cli/command/cli.h"

/* Commands about the audit log; see bh_cli_command_fn. */
bh_rc bh_cli_audit_tail(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_show(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_log(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_size(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_verify(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_search(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_prove(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_check(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_consistency(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_export(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_audit_prune(struct bh_cli *cli, struct bh_err *err);

/* Record `number` of the exported log in the folder, as it is hashed; nothing is verified.
 * BH_NOT_FOUND: there is none, or its bundle is missing. */
BH_MUST_USE bh_rc bh_audit_exported(const char *folder, uint64_t number, struct bh_json **ret_json,
                                    struct bh_err *err);

#endif
