#include "node/settle.h"

#include "node/exit_record.h"
#include "node/job.h"
#include "node/keeper.h"
#include "node/path.h"
#include "node/piece.h"
#include "node/scrub.h"

/* A start that was noted: did the job come to life?  Its keeper says so before anything
 * else. */
static bool
settle_start(struct bh_node *node, const struct bh_note *order)
{
    struct bh_note forget = { .kind = BH_NOTE_FORGET_LEASE, .lease = order->lease };
    struct bh_job *job = bh_state_job(&node->state, order->lease);
    char folder[BH_NODE_PATH_MAX], id[32];
    struct bh_msg_ended end;
    struct bh_err err;
    pid_t pid;

    if (!job) /* a piece was being scrubbed for it, or the node died between the two notes */
        return false;
    bh_node_job_folder(node, order->lease, folder);
    if (bh_keeper_alive(folder, &pid)) {
        job->start_order = order->order; /* its walls may not have been looked at */
        return true;
    }
    if (bh_keeper_started(folder) != 0 || bh_exit_record_read(folder, &end, &err) == BH_OK)
        return true;
    bh_node_job_id(order->lease, id);
    (void)!node->runtime.ops->destroy(node->runtime.self, id, &err);
    bh_path_remove_tree(folder);
    (void)!bh_state_note(&node->state, &forget, &err);
    return false;
}

static bool
settle_carve(struct bh_node *node, const struct bh_note *order)
{
    struct bh_err err;
    bool found = false;

    struct bh_scrub_wish wish = bh_scrub_wish_of(order);

    if (bh_state_piece(&node->state, order->piece.partition))
        return !bh_scrub_is_due(node, &wish);
    if (!order->begun || bh_piece_allowed(node, order->piece.gpu, &err) != BH_OK)
        return false;
    return bh_piece_adopt(node, order, &found, &err) == BH_OK && found &&
           !bh_scrub_is_due(node, &wish);
}

static bool
settle_destroy(struct bh_node *node, const struct bh_note *order)
{
    return !bh_state_piece(&node->state, order->piece.partition);
}

/* The signal may have been sent: the stop is ordered again, and the end was asked for. */
static bool
settle_stop(struct bh_node *node, const struct bh_note *order)
{
    struct bh_note asked = { .kind = BH_NOTE_ASKED, .lease = order->lease };
    struct bh_err ignored;

    (void)!bh_state_note(&node->state, &asked, &ignored);
    return false;
}

/* Done only when its end was noted: a job that is just frozen is thawed when it is adopted. */
static bool
settle_suspend(struct bh_node *node, const struct bh_note *order)
{
    const struct bh_job *job = bh_state_job(&node->state, order->lease);

    return job && job->suspended;
}

bool
bh_settle_stands(struct bh_node *node, const struct bh_note *order)
{
    static bool (*const settlers[])(struct bh_node *, const struct bh_note *) = {
        [BH_MSG_CARVE] = settle_carve,
        [BH_MSG_DESTROY] = settle_destroy,
        [BH_MSG_START] = settle_start,
        [BH_MSG_SUSPEND] = settle_suspend,
        [BH_MSG_STOP] = settle_stop,
    };

    return order->message < BH_COUNT(settlers) && settlers[order->message]
           && settlers[order->message](node, order);
}
