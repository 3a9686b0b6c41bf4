#include "base/log.h"
#include "node/share/share_lease_internal.h"

static void
share_notice_send(struct bh_node *node, struct bh_share_lease_row *row, uint32_t kind, bh_ns now)
{
    struct bh_msg_notice notice = { .lease = row->lease, .at_ns = bh_time_now(), .kind = kind };
    bool log;

    /* The job's submitter gets the notice when a daemon is connected. */
    notice.count = bh_pending_notice_due(&row->pending_notices[kind], now, node->hello_received, &log);
    if (log)
        bh_log(SHARE_NOTICE, BH_U64("lease", row->lease), BH_U64("count", notice.count),
               BH_STR("what", bh_job_notice_sentences[kind]));
    if (notice.count > 0 && node->hello_received)
        bh_node_send(node, BH_MSG_NOTICE, &notice);
}

void
bh_share_leases_notice(struct bh_node *node, struct bh_share_lease_row *row, enum bh_job_notice kind)
{
    bh_pending_notice_add(&row->pending_notices[kind]);
    share_notice_send(node, row, kind, bh_time_monotonic());
}

void
bh_share_leases_notify(struct bh_node *node)
{
    bh_ns now = bh_time_monotonic();

    for (uint32_t i = 0; i < node->share_leases->count; i++) {
        for (uint32_t kind = 0; kind < BH_JOB_NOTICES; kind++)
            share_notice_send(node, &node->share_leases->rows[i], kind, now);
    }
}
