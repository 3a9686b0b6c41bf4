#ifndef BH_CLI_JOBS_WHATIF_H
#define BH_CLI_JOBS_WHATIF_H

#include "cli/command/cli.h"

/* `bulkhead whatif ...`: the questions of /v1/whatif; each as tables/commands.tbl says. */
bh_rc bh_cli_whatif_submit(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_whatif_cancel(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_whatif_quota(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_whatif_drain(struct bh_cli *cli, struct bh_err *err);
bh_rc bh_cli_whatif_apply(struct bh_cli *cli, struct bh_err *err);

/* Append "estimated start: in 2h05m (...)" for a job that has one, with what it rests on. */
void bh_whatif_put_estimate(struct bh_buf *out, bh_json_value job, uint64_t now_ns);

#endif
