#include "node/session/epoch.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "node/common/path.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/job/unpack.h"
#include "node/partition/partition.h"
#include "node/session/job_watch.h"

enum { LINE_BYTES = 9, FILE_BYTES_MAX = BH_WIRE_EPOCHS_MAX * LINE_BYTES };
#define END_TIMEOUT (2 * BH_NS_PER_S)
#define CHECK_INTERVAL (10 * BH_NS_PER_MS)

/* ---- which were heard of before: the file, a line "ID" of eight hexadecimal digits for each ---- */

static void
epoch_path_of(const struct bh_node *node, char ret_path[BH_NODE_PATH_MAX])
{
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%s/epochs", node->conf.state_dir);
}

/* False: that is not what epoch_save() writes. */
static bool
epoch_parse(const struct bh_buf *text, struct bh_node_epochs *ret_epochs)
{
    struct bh_node_epochs epochs = { .count = (uint32_t)(text->length / LINE_BYTES) };

    if (epochs.count == 0 || text->length % LINE_BYTES != 0)
        return false;
    for (uint32_t i = 0; i < epochs.count; i++) {
        const char *line = text->bytes + (size_t)i * LINE_BYTES;
        char digits[LINE_BYTES];
        uint8_t id[4];

        bh_path_format(digits, sizeof digits, "%.*s", LINE_BYTES - 1, line);
        if (line[LINE_BYTES - 1] != '\n' || !bh_parse_hex(digits, id, sizeof id))
            return false;
        epochs.ids[i] = (uint32_t)id[0] << 24 | (uint32_t)id[1] << 16 | (uint32_t)id[2] << 8 | id[3];
    }
    *ret_epochs = epochs;
    return true;
}

bh_rc
bh_node_epochs_open(struct bh_node *node, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX], memory[FILE_BYTES_MAX + 1];
    struct bh_buf text;
    bh_rc rc;

    epoch_path_of(node, path);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, FILE_BYTES_MAX, &text, err);
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc != BH_OK && rc != BH_FULL)
        return rc;
    if (rc == BH_OK && epoch_parse(&text, &node->epochs))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "%s is damaged: it lists no epochs, 1 to %d lines of 8 hexadecimal digits",
               path, BH_WIRE_EPOCHS_MAX);
    return bh_err_hint(err, "put it back from its copy; without one remove it: a restore of the daemon's "
                            "store is then not noticed this once");
}

static bh_rc
epoch_save(struct bh_node *node, const struct bh_list *epochs, struct bh_err *err)
{
    const struct bh_msg_epoch *items = epochs->items;
    char path[BH_NODE_PATH_MAX], memory[FILE_BYTES_MAX + 1];
    struct bh_buf text;
    bh_rc rc;

    BH_ASSERT(epochs->count <= BH_WIRE_EPOCHS_MAX);
    epoch_path_of(node, path);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    for (uint32_t i = 0; i < epochs->count; i++)
        bh_buf_printf(&text, "%08" PRIx32 "\n", items[i].id);
    rc = bh_file_replace(path, text.bytes, text.length, 0600, err);
    if (rc != BH_OK)
        return rc;
    node->epochs.count = epochs->count;
    for (uint32_t i = 0; i < epochs->count; i++)
        node->epochs.ids[i] = items[i].id;
    return BH_OK;
}

static bool
epoch_has(const struct bh_node_epochs *epochs, uint32_t id)
{
    for (uint32_t i = 0; i < epochs->count; i++)
        if (epochs->ids[i] == id)
            return true;
    return false;
}

/* Whether the daemon is in an epoch that this node does not know, and the first one it continues from: the
 * first epoch behind the last that both know.  Nothing here has a number from there on, unless the store was
 * restored. */
static bool
epoch_is_new(const struct bh_node_epochs *received, const struct bh_list *epochs,
             struct bh_msg_epoch *ret_from)
{
    const struct bh_msg_epoch *items = epochs->items;
    uint32_t at = epochs->count;

    while (at > 0 && !epoch_has(received, items[at - 1].id))
        at--;
    if (received->count == 0 || at == epochs->count)
        return false;
    *ret_from = items[at];
    if (at == 0) /* none is known to both */
        *ret_from = (struct bh_msg_epoch){ .id = items[0].id };
    return true;
}

/* ---- undoing ---- */

/* Kill it, and wait until its keeper has written its end, which is not reported. */
static void
epoch_end_job(struct bh_node *node, uint64_t lease)
{
    bh_ns until = bh_time_monotonic() + END_TIMEOUT;
    struct bh_job *job = bh_state_job(&node->state, lease);
    struct bh_err err;

    bh_log(JOB_COLLECTED, BH_U64("lease", lease), BH_STR("why", "of a different epoch"));
    job->unwanted = true;
    if (!job->ended && bh_unpack_stop(node, &(struct bh_msg_stop){ .lease = lease }, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", lease), BH_ERRLOG(&err));
    bh_job_forget(node, lease); /* where it has ended by now */
    while (bh_state_job(&node->state, lease) && bh_time_monotonic() < until) {
        bh_time_sleep(CHECK_INTERVAL);
        bh_job_watch_tick(node, bh_time_monotonic());
        job = bh_state_job(&node->state, lease);
        if (job)
            bh_job_check(node, job);
    }
}

static void
epoch_end_jobs(struct bh_node *node, uint64_t from)
{
    for (uint32_t i = node->state.job_count; i-- > 0;) {
        if (i >= node->state.job_count) /* more than one was forgotten */
            continue;
        if (node->state.jobs[i].record.lease >= from)
            epoch_end_job(node, node->state.jobs[i].record.lease);
    }
}

static void
epoch_destroy_partitions(struct bh_node *node, uint64_t from)
{
    struct bh_err err;

    for (uint32_t i = node->state.partition_count; i-- > 0;) {
        uint64_t partition = node->state.partitions[i].partition;

        if (partition < from)
            continue;
        if (bh_node_partition_destroy(node, partition, 0, &err) == BH_OK)
            bh_log(INSTANCE_COLLECTED, BH_U64("partition", partition));
        else
            bh_log(EFFECT_FAILED, BH_U64("partition", partition), BH_ERRLOG(&err));
    }
}

static void
epoch_forget_receipts(struct bh_node *node, uint64_t from)
{
    for (uint32_t i = node->state.receipt_count; i-- > 0;)
        if (node->state.receipts[i].order >= from)
            bh_scrub_acknowledge(node, node->state.receipts[i].order);
}

bh_rc
bh_node_epochs_receive(struct bh_node *node, struct bh_orders *orders, const struct bh_msg_hello *hello,
                       struct bh_err *err)
{
    struct bh_msg_epoch from;
    bool lost = false;
    bh_rc rc = BH_OK;

    if (hello->epochs.count == 0)
        return BH_OK;
    if (epoch_is_new(&node->epochs, &hello->epochs, &from)) {
        lost = from.order <= node->state.reached;
        if (lost)
            bh_log(EPOCH_OTHER, BH_U64("lease", from.lease), BH_U64("jobs", node->state.job_count));
        bh_orders_drop(orders, from.order);
        epoch_end_jobs(node, from.lease);
        epoch_forget_receipts(node, from.order);
        epoch_destroy_partitions(node, from.partition);
    }
    /* What was done in the lost course is in no log, a scrub either; and numbers of tenants are given out
     * again. */
    if (lost) {
        bh_log(MEMORY_UNKNOWN, BH_STR("why", "the daemon's store was restored"));
        rc = bh_state_forget_owners(&node->state, from.order > 0 ? from.order - 1 : 0, 0, err);
    }
    return rc == BH_OK ? epoch_save(node, &hello->epochs, err) : rc;
}
