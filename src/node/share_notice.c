#include "base/log.h"
#include "node/share_lease_internal.h"

static void
tell(struct bh_node *node, struct bh_share_lease_row *row, uint32_t kind, bh_ns now)
{
    struct bh_msg_notice notice = { .lease = row->lease, .at_ns = bh_time_now(), .kind = kind };
    bool log;

    /* A job's people hear of it when somebody listens. */
    notice.count = bh_share_untold_take(&row->untold[kind], now, node->greeted, &log);
    if (log)
        bh_log(SHARE_NOTICE, BH_U64("lease", row->lease), BH_U64("count", notice.count),
               BH_STR("what", bh_job_notice_sentences[kind]));
    if (notice.count > 0 && node->greeted)
        bh_node_send(node, BH_MSG_NOTICE, &notice);
}

void
bh_share_leases_notice(struct bh_node *node, struct bh_share_lease_row *row,
                       enum bh_job_notice kind)
{
    bh_share_untold_add(&row->untold[kind]);
    tell(node, row, kind, bh_time_monotonic());
}

void
bh_share_leases_tell(struct bh_node *node)
{
    bh_ns now = bh_time_monotonic();

    for (uint32_t i = 0; i < node->share_leases->count; i++) {
        for (uint32_t kind = 0; kind < BH_JOB_NOTICES; kind++)
            tell(node, &node->share_leases->rows[i], kind, now);
    }
}
