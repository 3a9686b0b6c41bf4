#ifndef BH_CLI_OUTPUT_VIEWS_H
#define BH_CLI_OUTPUT_VIEWS_H

#include "cli/output/view.h"

/* The tables: one view a kind of object, in the manner of squeue and kubectl.  The
 * first column names the object, the last gives the reason. */
extern const struct bh_view bh_view_jobs, bh_view_starts, bh_view_gpus, bh_view_nodes, bh_view_tenants,
    bh_view_quota, bh_view_skus, bh_view_datasets, bh_view_usage, bh_view_revisions, bh_view_tokens,
    bh_view_keys, bh_view_receipts, bh_view_records, bh_view_checkpoints, bh_view_roles, bh_view_checks,
    bh_view_sessions, bh_view_accounts, bh_view_passkeys, bh_view_forecast_tenants, bh_view_forecast_pools,
    bh_view_forecast_partitions, bh_view_forecast_nodes, bh_view_layouts;

#endif
