#include "node/orders/order_recovery.h"

#include "node/common/exit_record.h"
#include "node/common/path.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/partition/partition.h"
#include "node/sandbox/keeper.h"

/* A start that was noted: did the job come to life?  Its keeper says so before anything
 * else. */
static bool
recover_start(struct bh_node *node, const struct bh_node_record *order)
{
    struct bh_node_record forget = { .kind = BH_NODE_RECORD_FORGET_LEASE, .lease = order->lease };
    struct bh_job *job = bh_state_job(&node->state, order->lease);
    char folder[BH_NODE_PATH_MAX], id[32];
    struct bh_msg_ended end;
    struct bh_err err;
    pid_t pid;

    if (!job) /* a partition was being scrubbed for it, or the node died between the two notes */
        return false;
    bh_node_job_folder(node, order->lease, folder);
    if (bh_keeper_alive(folder, &pid)) {
        job->start_order = order->order; /* it may not have been inspected */
        return true;
    }
    if (bh_keeper_started(folder) != 0 || bh_exit_record_read(folder, &end, &err) == BH_OK)
        return true;
    bh_node_job_id(order->lease, id);
    (void)!node->runtime.ops->destroy(node->runtime.self, id, &err);
    bh_path_remove_tree(folder);
    (void)!bh_state_record(&node->state, &forget, &err);
    return false;
}

static bool
recover_carve(struct bh_node *node, const struct bh_node_record *order)
{
    struct bh_err err;
    bool found = false;

    struct bh_scrub_request request = bh_scrub_request_of(order);

    if (bh_state_partition(&node->state, order->partition.partition))
        return !bh_scrub_is_due(node, &request);
    if (!order->begun || bh_node_partition_check_allowed(node, order->partition.gpu, &err) != BH_OK)
        return false;
    return bh_node_partition_adopt(node, order, &found, &err) == BH_OK && found
           && !bh_scrub_is_due(node, &request);
}

static bool
recover_destroy(struct bh_node *node, const struct bh_node_record *order)
{
    return !bh_state_partition(&node->state, order->partition.partition);
}

/* The signal may have been sent: the stop is ordered again, and the end was asked for. */
static bool
recover_stop(struct bh_node *node, const struct bh_node_record *order)
{
    struct bh_node_record asked = { .kind = BH_NODE_RECORD_STOPPING, .lease = order->lease };
    struct bh_err ignored;

    (void)!bh_state_record(&node->state, &asked, &ignored);
    return false;
}

/* Done only when its end was noted: a job that is just frozen is thawed when it is adopted. */
static bool
recover_suspend(struct bh_node *node, const struct bh_node_record *order)
{
    const struct bh_job *job = bh_state_job(&node->state, order->lease);

    return job && job->suspended;
}

bool
bh_order_recovery_is_done(struct bh_node *node, const struct bh_node_record *order)
{
    static bool (*const recoverers[])(struct bh_node *, const struct bh_node_record *) = {
        [BH_MSG_CARVE] = recover_carve, [BH_MSG_DESTROY] = recover_destroy,
        [BH_MSG_START] = recover_start, [BH_MSG_SUSPEND] = recover_suspend,
        [BH_MSG_STOP] = recover_stop,
    };

    return order->message < BH_COUNT(recoverers) && recoverers[order->message]
           && recoverers[order->message](node, order);
}
