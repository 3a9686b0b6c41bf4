#ifndef BH_DAEMON_JOURNAL_CONFIG_H
#define BH_DAEMON_JOURNAL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/params.h"

/* bulkheadd.conf; every parameter is explained in tables/daemon_params.tbl. */
struct bh_daemon_config {
    const char *site_name, *state_dir, *log_dir, *socket, *node_socket, *https_address;
    const char *secrets_dir, *provider_ca, *provider_networks, *provider_proxy, *fetch_program;
    const char *signer, *signer_socket, *client_ca;
    uint32_t https_port, connections_max, job_uid_first, batch_max, snapshot_every, check_every;
    uint64_t series_retention;
    uint32_t series_jobs_max, series_tenant_jobs_max;
    uint64_t audit_retention, checkpoint_interval, forecast_slot, defrag_interval;
    const char *metrics_host_label;
    uint32_t jobs_waiting_max, tenant_jobs_waiting_max, tokens_max;
    uint32_t streams_max, rate_reads, rate_changes, rate_expensive;
    uint64_t refusal_window, disk_reserve, tenant_texts_max, grace_max;
    bool log_json;
    const char *root_key;
    const char *credentials; /* no parameter: systemd's folder, from the environment */
};

extern const struct bh_params bh_daemon_params;

/* Read the file (missing is fine when `required` is false); texts in `arena`. */
BH_MUST_USE bh_rc bh_daemon_config_load(const char *path, bool required, struct bh_daemon_config *ret_config,
                                        struct bh_arena *arena, struct bh_err *err);

#endif
