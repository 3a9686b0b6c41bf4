#include "node/orders/order_watermark.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/common/path.h"

/* One line of always the same length: its change is one write, which a kill does not tear. */
#define LINE_FORMAT "%-36.36s %016" PRIx64 " %016" PRIx64 "\n"
enum { LINE_BYTES = 36 + 1 + 16 + 1 + 16 + 1 };

static bh_rc
write_line(struct bh_node *node, struct bh_err *err)
{
    const struct bh_node_state *state = &node->state;
    char line[LINE_BYTES + 1];

    BH_ASSERT(node->order_watermark.fd >= 0);
    snprintf(line, sizeof line, LINE_FORMAT, node->boot, state->generation, state->reached);
    if (pwrite(node->order_watermark.fd, line, LINE_BYTES, 0) != LINE_BYTES)
        return bh_err_errno(err, "write the order watermark");
    node->order_watermark.reached = state->reached;
    return BH_OK;
}

/* Why the journal is not believed about memory; NULL: it is. */
static const char *
doubt(const struct bh_node *node)
{
    char line[LINE_BYTES + 1] = "", boot[37] = "";
    uint64_t generation, reached;
    ssize_t got = pread(node->order_watermark.fd, line, LINE_BYTES, 0);

    if (got != LINE_BYTES || sscanf(line, "%36s %" SCNx64 " %" SCNx64, boot, &generation, &reached) != 3)
        return "run_dir has no order watermark";
    if (strcmp(boot, node->boot) != 0)
        return "the machine was restarted";
    return generation != node->state.generation || reached > node->state.reached
               ? "state_dir is older than the last completed order: it was restored"
               : NULL;
}

bh_rc
bh_order_watermark_open(struct bh_node *node, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    const char *why;
    bh_rc rc;

    bh_path_format(path, sizeof path, "%s/reached", node->conf.run_dir);
    rc = bh_file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, &node->order_watermark.fd, err);
    if (rc != BH_OK)
        return rc;
    why = doubt(node);
    if (why) {
        if (node->state.ownership.count > 0)
            bh_log(MEMORY_UNKNOWN, BH_STR("why", why));
        rc = bh_state_forget_owners(&node->state, node->state.reached, 0, err);
    }
    if (rc != BH_OK)
        return rc;
    rc = bh_state_sync(&node->state, err);
    if (rc != BH_OK)
        return rc;
    return write_line(node, err);
}

bh_rc
bh_order_watermark_write(struct bh_node *node, struct bh_err *err)
{
    return node->order_watermark.reached == node->state.reached ? BH_OK : write_line(node, err);
}

bh_rc
bh_order_watermark_compare(struct bh_node *node, uint64_t reported, struct bh_err *err)
{
    struct bh_node_state *state = &node->state;
    bh_rc rc;

    bh_node_assert(node);
    if (reported <= state->changes)
        return BH_OK;
    if (reported > BH_CHANGES_MAX)
        return bh_err_set(err, BH_INVALID, "%" PRIu64 " changes of the ownership map were never reported",
                          reported);
    if (state->ownership.count > 0)
        bh_log(MEMORY_UNKNOWN, BH_STR("why", "the daemon knows of more than state_dir has: it was restored"),
               BH_U64("reported", reported), BH_U64("known", state->changes));
    rc = bh_state_forget_owners(state, state->reached, reported, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_state_sync(state, err);
    if (rc != BH_OK)
        return rc;
    return write_line(node, err);
}

void
bh_order_watermark_close(struct bh_node *node)
{
    bh_fd_close(node->order_watermark.fd);
}
