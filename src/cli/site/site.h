#ifndef BH_CLI_SITE_SITE_H
#define BH_CLI_SITE_SITE_H

#include "cli/command/cli.h"

/* See bh_cli_command_fn. */
bh_rc bh_cli_apply(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_token_create(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_token_revoke(struct bh_cli *cli, struct bh_err *err);

/* Send a site file, YAML or JSON, as it is: `query` begins with ?, or is "". */
BH_MUST_USE bh_rc bh_site_send(const struct bh_cli *cli, const char *file, const char *query,
                               struct bh_json **ret_json, struct bh_err *err);

/* What an answer says that a site file changes, a line each; then what it removes that has
 * something, and what has no effect as things are. */
void bh_site_put_changes(struct bh_buf *out, bh_json_value answer);

/* The site file's revisions. */
bh_rc bh_cli_site_diff(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_site_show(struct bh_cli *cli, struct bh_err *err);

#endif
