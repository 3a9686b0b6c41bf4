#ifndef BH_CLI_SITE_ISOLATION_H
#define BH_CLI_SITE_ISOLATION_H

#include "cli/command/cli.h"

/* bulkhead verify: whether jobs can leave their sandboxes.  BH_UNAVAILABLE: an isolation check failed,
 * or a node did not answer. */
BH_MUST_USE bh_rc bh_cli_verify(struct bh_cli *cli, struct bh_err *err);

#endif
