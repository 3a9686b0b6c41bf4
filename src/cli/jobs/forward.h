#ifndef BH_CLI_JOBS_FORWARD_H
#define BH_CLI_JOBS_FORWARD_H

#include "cli/command/cli.h"

/* `bulkhead port-forward`: ports of this machine's loopback, carried into a job. */
bh_rc bh_cli_port_forward(struct bh_cli *cli, struct bh_err *err);

#endif
