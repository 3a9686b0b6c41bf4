#ifndef BH_CLI_SITE_H
#define BH_CLI_SITE_H

#include "cli/cli.h"

/* Send a site file, YAML or JSON, as it is. */
BH_MUST_USE bh_rc bh_site_send(const struct bh_cli *cli, const char *file, bool dry_run,
                               struct bh_json **ret_json, struct bh_err *err);

#endif
