#include "daemon/nodes/link.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "api/documents/replies.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "base/vec.h"
#include "daemon/batch/abandoned_orders.h"
#include "daemon/nodes/faults.h"
#include "daemon/nodes/images.h"
#include "daemon/nodes/inventory.h"
#include "daemon/nodes/link_report.h"
#include "daemon/nodes/marks.h"
#include "daemon/nodes/notices.h"
#include "daemon/nodes/orders.h"
#include "daemon/nodes/receipts.h"
#include "daemon/nodes/traffic.h"
#include "daemon/nodes/verdicts.h"
#include "wire/frame_io.h"
#include "wire/message.h"

enum { ACKS_MAX = 4096, ORDERS_MAX = 4096, VERDICT_JSON_MAX = 256 << 10 };

static const bh_ns reconnect_first_ns = 20 * BH_NS_PER_MS;
static const bh_ns reconnect_most_ns = 1000 * BH_NS_PER_MS;
static const bh_ns refused_pause_ns = 10 * BH_NS_PER_S;

/* An order that could not be put into words: the engine hears that it failed. */
struct unsent {
    struct bh_effect effect;
    struct bh_msg_outcome outcome;
};

struct bh_node_link {
    /* owner thread */
    struct bh_links_shared *shared;
    char *path;
    struct bh_link *io;         /* NULL: not connected */
    uint32_t watched;           /* events that epoll looks for */
    bh_node_id node;            /* 0 until its first inventory */
    bool has_inventory;         /* inventory seen on this connection */
    bool recovered;             /* and all that happened before: the node is up */
    uint64_t since_seq;         /* the log's next record when it connected */
    struct bh_node_offer offer; /* by its last inventory */
    uint64_t marks;             /* the most changes of its ownership map that it reported, as recorded */
    bool down_unreported;       /* the connection went and the engine does not know */
    bool resend;                /* outstanding effects and KEEP are due after commit */
    bool touched;
    struct bh_node_link *next_touched;
    bh_ns next_connect_ns, backoff_ns;
    struct bh_msg_ack *acks;
    uint32_t ack_count, ack_capacity;
    struct bh_effect *orders; /* sent on this connection and not answered */
    uint32_t order_count, order_capacity;
    struct unsent *unsent;
    uint32_t unsent_count, unsent_capacity;
    /* shared, under shared->mutex */
    struct bh_link_report inventory, samples;
    struct bh_traffic traffic; /* kept when the connection goes */
    struct bh_images images;
    struct {
        uint64_t request;
        char *json;
    } verdicts[BH_NODE_VERDICTS]; /* the last, in a ring */
    uint32_t verdict_next;
};

struct bh_node_link *
bh_node_link_new(struct bh_links_shared *shared, const char *path)
{
    struct bh_node_link *link = calloc(1, sizeof *link);
    uint64_t pause_ns = bh_quarantine_node_ns(shared->core->quarantine, path, bh_time_now());

    BH_ASSERT(link);
    link->shared = shared;
    link->path = strdup(path);
    BH_ASSERT(link->path);
    link->backoff_ns = reconnect_first_ns;
    if (pause_ns > 0) {
        bh_log(NODE_QUARANTINED, BH_STR("socket", path), BH_U64("seconds", pause_ns / BH_NS_PER_S));
        link->next_connect_ns = bh_time_monotonic() + pause_ns;
    }
    return link;
}

struct bh_work
bh_node_link_work(const struct bh_node_link *link)
{
    return (struct bh_work){ .kind = BH_WORK_NODE, .owner = true, .socket = link->path };
}

const char *
bh_node_link_path(const struct bh_node_link *link)
{
    return link->path;
}

bool
bh_node_link_is_connected(const struct bh_node_link *link)
{
    return link->io != NULL;
}

static void
link_touch(struct bh_node_link *link)
{
    if (link->touched)
        return;
    link->touched = true;
    link->next_touched = link->shared->touched;
    link->shared->touched = link;
}

static void
link_connect_at(struct bh_node_link *link, bh_ns when)
{
    link->next_connect_ns = when;
    if (when < link->shared->connect_ns)
        link->shared->connect_ns = when;
}

/* Longer after every attempt that came to nothing. */
static void
link_back_off(struct bh_node_link *link)
{
    link->backoff_ns = 2 * link->backoff_ns < reconnect_most_ns ? 2 * link->backoff_ns : reconnect_most_ns;
}

static void
link_disconnect(struct bh_node_link *link)
{
    struct bh_links_shared *shared = link->shared;

    bh_link_free(link->io); /* which takes it out of epoll, too */
    link->io = NULL;
    if (link->has_inventory) {
        shared->of_node[link->node.v] = NULL;
        link->down_unreported = shared->down_pending = true;
    }
    link->has_inventory = link->recovered = link->resend = false;
    link->ack_count = link->order_count = 0;
    link_connect_at(link, bh_time_monotonic() + link->backoff_ns);
    bh_link_report_set(&link->inventory, &link->shared->mutex, NULL, NULL);
    bh_link_report_set(&link->samples, &link->shared->mutex, NULL, NULL);
    bh_mutex_lock(&shared->mutex);
    bh_images_clear(&link->images);
    bh_mutex_unlock(&shared->mutex);
}

void
bh_node_link_free(struct bh_node_link *link)
{
    BH_ASSERT(!link->touched); /* or the list of the touched would lead here */
    bh_node_link_reset(link);
    for (uint32_t i = 0; i < BH_NODE_VERDICTS; i++)
        free(link->verdicts[i].json);
    free(link->acks);
    free(link->orders);
    free(link->unsent);
    bh_traffic_fini(&link->traffic);
    bh_images_fini(&link->images);
    free(link->path);
    free(link);
}

static void
link_break_off(struct bh_node_link *link, const struct bh_err *why)
{
    bh_log(NODE_LOST, BH_STR("socket", link->path), BH_ERRLOG(why));
    link_disconnect(link);
}

/* epoll looks for what the link wants now. */
static void
link_watch(struct bh_node_link *link)
{
    uint32_t events = link->io ? (uint32_t)bh_link_interest(link->io) : 0;
    struct epoll_event event = { .events = events, .data.ptr = link };

    _Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT, "the same bits");
    if (!link->io || link->watched == events)
        return;
    BH_ASSERT(epoll_ctl(link->shared->epoll_fd, link->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                        bh_link_fd(link->io), &event)
              == 0);
    link->watched = events;
}

/* What could not be sent now is sent again after the next hello. */
static void
link_put_message(struct bh_node_link *link, uint32_t number, const void *message)
{
    struct bh_err err;

    if (link->io && bh_link_put(link->io, number, bh_message_fields(number), message, &err) != BH_OK)
        link_break_off(link, &err);
}

static void
link_write_out(struct bh_node_link *link)
{
    struct bh_err err;

    if (link->io && bh_link_flush(link->io, &err) != BH_OK)
        link_break_off(link, &err);
    link_watch(link);
}

void
bh_node_link_connect(struct bh_node_link *link)
{
    const struct bh_core *core = link->shared->core;
    struct bh_msg_epoch epochs[BH_WIRE_EPOCHS_MAX];
    struct bh_msg_hello hello = { .version = BH_WIRE_VERSION,
                                  .boot = core->journal.boot,
                                  .epochs = { epochs,
                                              bh_epochs_list(&core->epochs, epochs, BH_WIRE_EPOCHS_MAX) } };
    struct bh_err err;
    int fd;

    if (link->io)
        return;
    if (bh_time_monotonic() < link->next_connect_ns) {
        link_connect_at(link, link->next_connect_ns);
        return;
    }
    if (bh_unix_connect(link->path, &fd, &err) != BH_OK) {
        link_connect_at(link, bh_time_monotonic() + link->backoff_ns);
        link_back_off(link);
        return;
    }
    link->io = bh_link_new(fd);
    link->watched = 0;
    link->since_seq = core->journal.next_seq;
    snprintf(hello.site, sizeof hello.site, "%s", core->config->site_name);
    link_put_message(link, BH_MSG_HELLO, &hello);
    link_write_out(link);
}

static bh_rc
link_fail_unsent(struct bh_node_link *link, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    while (rc == BH_OK && link->unsent_count > 0) {
        const struct unsent *unsent = &link->unsent[--link->unsent_count];

        rc = bh_orders_outcome(link->shared->core, &unsent->effect, &unsent->outcome, err);
    }
    return rc;
}

bh_rc
bh_node_link_report_down(struct bh_node_link *link, struct bh_err *err)
{
    bh_rc rc = link_fail_unsent(link, err);

    if (rc != BH_OK || !link->down_unreported)
        return rc;
    rc = bh_inventory_node(link->shared->core, link->node, NULL, err);
    if (rc != BH_OK)
        return rc;
    link->down_unreported = false;
    return BH_OK;
}

static void
link_owe_ack(struct bh_node_link *link, struct bh_msg_ack ack)
{
    /* more are asked for again by the node's repeats */
    if (bh_vec_reserve(&link->acks, &link->ack_capacity, link->ack_count + 1, ACKS_MAX))
        link->acks[link->ack_count++] = ack;
    link_touch(link);
}

/* One connection speaks for a node, and for one node. */
static bh_rc
link_check_name(const struct bh_node_link *link, const char *name, struct bh_err *err)
{
    const struct bh_links_shared *shared = link->shared;
    uint32_t id = bh_catalog_find(shared->core->catalog, BH_NAME_NODE, name);
    const struct bh_node_link *other = id < shared->of_node_count ? shared->of_node[id] : NULL;

    if (link->has_inventory && link->node.v != id)
        return bh_err_set(err, BH_CONFLICT, "a connected node now calls itself %s", name);
    if (!other || other == link)
        return BH_OK;
    bh_err_set(err, BH_CONFLICT, "node %s is connected already, by %s", name, other->path);
    return bh_err_hint(err, "give each machine a node_name of its own in node.conf");
}

/* From now on this link speaks for the node. */
static void
link_claim_node(struct bh_node_link *link, uint32_t id)
{
    struct bh_links_shared *shared = link->shared;

    if (id >= shared->of_node_count) {
        bool fits =
            bh_vec_reserve(&shared->of_node, &shared->of_node_count, (size_t)id + 1, BH_CATALOG_NAMES_MAX);

        BH_ASSERT(fits);
    }
    shared->of_node[id] = link;
    link->has_inventory = link->resend = true;
    link->down_unreported = false;
    link->backoff_ns = reconnect_first_ns;
    link_touch(link);
}

static bh_rc
link_receive_inventory(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_inventory *inventory = message;
    bool known = bh_catalog_find(link->shared->core->catalog, BH_NAME_NODE, inventory->node) != 0;
    uint32_t id;
    bh_rc rc = link_check_name(link, inventory->node, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_inventory_check(link->shared->core, inventory, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_core_begin(link->shared->core, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_catalog_name(link->shared->core->catalog, BH_NAME_NODE, inventory->node, &id, err);
    if (rc != BH_OK)
        return rc;
    link->node.v = id;
    link->offer = bh_inventory_offer(inventory);
    if (!link->has_inventory)
        rc = bh_marks_recorded(link->shared->core, link->node, &link->marks, err);
    if (rc == BH_OK && !known) /* a GPU's node must be known */
        rc = bh_inventory_node(link->shared->core, link->node, NULL, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_inventory_apply(link->shared->core, link->node, inventory, err);
    if (rc != BH_OK)
        return rc;
    if (link->recovered)
        rc = bh_inventory_node(link->shared->core, link->node, &link->offer, err);
    if (rc != BH_OK)
        return rc;
    link->shared->core->catalog_changed = true;
    if (!link->has_inventory)
        bh_log(NODE_CONNECTED, BH_STR("node", inventory->node), BH_STR("driver", inventory->driver));
    link_claim_node(link, id);
    bh_link_report_set(&link->inventory, &link->shared->mutex, bh_message_fields(BH_MSG_INVENTORY),
                       inventory);
    return BH_OK;
}

/* Whether the answer to an order would be taken though the engine does not wait for it. */
static bool
link_is_sent(const void *self, uint64_t order)
{
    const struct bh_links_shared *shared = self;

    for (uint32_t node = 0; node < shared->of_node_count; node++) {
        const struct bh_node_link *link = shared->of_node[node];

        for (uint32_t i = 0; link && i < link->order_count; i++)
            if (link->orders[i].order == order)
                return true;
    }
    return false;
}

/* It has reported what ended before: what its tenants' leases cost is known, and it may have more.  An
 * order of an earlier connection whose lease has ended is not sent again, so it has no answer. */
static bh_rc
link_receive_recovered(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    bh_rc rc = bh_inventory_node(link->shared->core, link->node, &link->offer, err);

    link->recovered = rc == BH_OK;
    return rc == BH_OK ? bh_abandoned_orders_record_unsent(link->shared->core, link->since_seq, link_is_sent,
                                                           link->shared, err)
                       : rc;
}

/* What its answer will be about; more than fit are looked for in the engine. */
static void
link_remember_order(struct bh_node_link *link, const struct bh_effect *effect)
{
    if (bh_vec_reserve(&link->orders, &link->order_capacity, link->order_count + 1, ORDERS_MAX))
        link->orders[link->order_count++] = *effect;
}

static bool
link_receive_node_order(struct bh_node_link *link, uint64_t order, struct bh_effect *ret_effect)
{
    for (uint32_t i = 0; i < link->order_count; i++)
        if (link->orders[i].order == order) {
            *ret_effect = link->orders[i];
            link->orders[i] = link->orders[--link->order_count];
            return true;
        }
    return bh_orders_find(link->shared->core, link->node, order, ret_effect);
}

static bh_rc
link_receive_outcome(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_outcome *outcome = message;
    struct bh_effect effect;

    if (outcome->outcome != BH_OUTCOME_OK)
        bh_log(EFFECT_FAILED, BH_U64("order", outcome->order), BH_STR("why", outcome->why));
    link_owe_ack(link, (struct bh_msg_ack){ .order = outcome->order });
    if (!link_receive_node_order(link, outcome->order, &effect))
        return BH_OK;
    return bh_orders_outcome(link->shared->core, &effect, outcome, err);
}

static bh_rc
link_receive_ended(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    struct bh_msg_ended ended = *(const struct bh_msg_ended *)message;

    link_owe_ack(link, (struct bh_msg_ack){ .lease = ended.lease });
    if (!ended.carried.counted) /* its machine went down: what was said last */
        (void)bh_traffic_find(&link->traffic, ended.lease, &ended.carried);
    return bh_orders_ended(link->shared->core, link->node, &ended, err);
}

static bh_rc
link_receive_marks(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_marks *marks = message;

    return bh_marks_receive(link->shared->core, link->node, marks->changes, &link->marks, err);
}

static bh_rc
link_receive_receipt(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_receipt *receipt = message;

    link_owe_ack(link, (struct bh_msg_ack){ .receipt = receipt->order });
    return bh_receipts_record(link->shared->core, receipt, err);
}

static bh_rc
link_receive_samples(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_samples *samples = message;

    bh_link_report_set(&link->samples, &link->shared->mutex, bh_message_fields(BH_MSG_SAMPLES), message);
    return bh_inventory_sampled(link->shared->core, link->node, &samples->gpus, err);
}

static bh_rc
link_receive_traffic(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_traffic *traffic = message;

    bh_mutex_lock(&link->shared->mutex);
    bh_traffic_update(&link->traffic, &traffic->items);
    bh_mutex_unlock(&link->shared->mutex);
    return BH_OK;
}

static bh_rc
link_receive_image(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_image *image = message;

    bh_mutex_lock(&link->shared->mutex);
    bh_images_update(&link->images, image);
    bh_mutex_unlock(&link->shared->mutex);
    return image->stage == BH_IMAGE_READY ? bh_images_record(link->shared->core, link->node, image, err)
                                          : BH_OK;
}

static bh_rc
link_receive_health(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    return bh_faults_receive(link->shared->core, link->node, message, err);
}

/* Its JSON with the node's name, for the waiting request. */
static char *
link_name_verdict(const struct bh_node_link *link, const struct bh_msg_verdict *verdict)
{
    const char *name = bh_catalog_name_of(link->shared->core->catalog, BH_NAME_NODE, link->node.v);
    const struct bh_msg_check *checks = verdict->checks.items;
    struct bh_reply_verdict_check *shown = calloc(verdict->checks.count + 1, sizeof *shown);
    const struct bh_reply_verdict reply = {
        .again_ns = verdict->retry_ns,
        .at_ns = verdict->at_ns,
        .cause = verdict->cause,
        .checks = { shown, verdict->checks.count },
        .held = verdict->result == BH_CHECK_PASS,
        .lease = verdict->lease,
        .node = name,
        .request = verdict->request,
        .result = bh_check_result_names[verdict->result],
        .skipped = verdict->skipped,
        .tried = verdict->tried,
        .unfinished = verdict->result == BH_CHECK_INCONCLUSIVE,
        .why = *verdict->why ? verdict->why : NULL,
    };
    BH_AUTO(bh_buf_fini) struct bh_buf json = { .max = VERDICT_JSON_MAX };
    char *copy;

    BH_ASSERT(shown);
    for (uint32_t i = 0; i < verdict->checks.count; i++)
        shown[i] = (struct bh_reply_verdict_check){ .answer = *checks[i].answer ? checks[i].answer : NULL,
                                                    .name = checks[i].name,
                                                    .outside = checks[i].outside,
                                                    .result = bh_check_result_names[checks[i].result] };
    bh_json_encode(&json, &bh_reply_verdict_fields, &reply);
    copy = bh_buf_text(&json) ? strdup(bh_buf_text(&json)) : NULL;
    free(shown);
    return copy;
}

static bh_rc
link_receive_verdict(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_verdict *verdict = message;
    uint32_t place = link->verdict_next++ % BH_NODE_VERDICTS;
    char *json = link_name_verdict(link, verdict);

    bh_mutex_lock(&link->shared->mutex);
    free(link->verdicts[place].json);
    link->verdicts[place].request = verdict->request;
    link->verdicts[place].json = json;
    bh_mutex_unlock(&link->shared->mutex);
    return bh_verdicts_record(link->shared->core, link->node, verdict, err);
}

static bh_rc
link_receive_notice(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    return bh_notices_record(link->shared->core, link->node, message, err);
}

/* What a node may say, and when: nothing before its inventory. */
static const struct {
    uint32_t number;
    bh_rc (*receive)(struct bh_node_link *link, const void *message, struct bh_err *err);
    bool first;
} receivers[] = {
    { BH_MSG_INVENTORY, link_receive_inventory, true }, { BH_MSG_OUTCOME, link_receive_outcome, false },
    { BH_MSG_ENDED, link_receive_ended, false },        { BH_MSG_SYNCED, link_receive_recovered, false },
    { BH_MSG_MARKS, link_receive_marks, false },        { BH_MSG_RECEIPT, link_receive_receipt, false },
    { BH_MSG_SAMPLES, link_receive_samples, false },    { BH_MSG_HEALTH, link_receive_health, false },
    { BH_MSG_TRAFFIC, link_receive_traffic, false },    { BH_MSG_IMAGE, link_receive_image, false },
    { BH_MSG_VERDICT, link_receive_verdict, false },    { BH_MSG_NOTICE, link_receive_notice, false },
};

static bh_rc
link_receive_frame(struct bh_node_link *link, const struct bh_frame *frame, struct bh_err *err)
{
    const struct bh_fields *fields = bh_message_fields(frame->number);
    void *message;

    for (size_t i = 0; i < BH_COUNT(receivers); i++) {
        bh_rc rc;

        if (receivers[i].number != frame->number || (!receivers[i].first && !link->has_inventory))
            continue;
        message = bh_arena_alloc(link->shared->arena, fields->size);
        if (!message)
            return bh_err_set(err, BH_INVALID, "message is too large");
        rc = bh_frame_decode(frame, fields, message, link->shared->arena, err);
        return rc == BH_OK ? receivers[i].receive(link, message, err) : rc;
    }
    return bh_err_set(err, BH_INVALID, "message %" PRIu32 " is not expected here", frame->number);
}

static bh_rc
link_lost(struct bh_node_link *link, const struct bh_err *why, struct bh_err *err)
{
    bh_log(NODE_LOST, BH_STR("socket", link->path), BH_ERRLOG(why), BH_STR("next", why->hint));
    link_back_off(link);
    link_disconnect(link);
    return bh_node_link_report_down(link, err);
}

/* What it said cannot be taken: the connection ends.  One that claims what is another's
 * would say the same again, so it waits longer. */
static bh_rc
link_refuse(struct bh_node_link *link, const struct bh_err *why, struct bh_err *err)
{
    if (why->rc != BH_CONFLICT) {
        bh_log(FRAME_REFUSED, BH_STR("socket", link->path), BH_ERRLOG(why));
        return link_lost(link, why, err);
    }
    bh_log(NODE_REFUSED, BH_STR("socket", link->path), BH_ERRLOG(why), BH_STR("next", why->hint));
    link_disconnect(link);
    link_connect_at(link, bh_time_monotonic() + refused_pause_ns);
    return bh_node_link_report_down(link, err);
}

bh_rc
bh_node_link_receive(struct bh_node_link *link, struct bh_err *err)
{
    struct bh_frame frame;
    struct bh_err why;
    bh_rc rc;

    if (!link->io)
        return BH_OK;
    rc = bh_link_flush(link->io, &why);
    if (rc == BH_OK)
        rc = bh_link_readable(link->io, &why);
    if (rc != BH_OK)
        return link_lost(link, &why, err);
    while ((rc = bh_link_next(link->io, &frame, &why)) == BH_OK) {
        bh_arena_reset(link->shared->arena);
        bh_work_get()->message = frame.number;
        rc = link_receive_frame(link, &frame, &why);
        if (bh_core_is_fatal(rc)) {
            *err = why;
            return rc;
        }
        if (rc != BH_OK)
            return link_refuse(link, &why, err);
    }
    if (rc != BH_NOT_FOUND)
        return link_lost(link, &why, err);
    link_watch(link);
    return BH_OK;
}

bool
bh_node_link_accepts_orders(const struct bh_node_link *link)
{
    return link->has_inventory && !link->resend;
}

/* What lacks a grant is left to daemon/batch/access.h, which ends its job with that cause. */
static void
link_store_unsent(struct bh_node_link *link, const struct bh_effect *effect, const struct bh_err *why)
{
    struct unsent *unsent;
    bool fits;

    bh_log(EFFECT_FAILED, BH_U64("order", effect->order), BH_ERRLOG(why));
    if (why->rc == BH_DENIED)
        return;
    fits = bh_vec_reserve(&link->unsent, &link->unsent_capacity, (size_t)link->unsent_count + 1,
                          BH_CORE_EFFECTS_MAX);
    BH_ASSERT(fits);
    unsent = &link->unsent[link->unsent_count++];
    *unsent =
        (struct unsent){ *effect,
                         { .order = effect->order, .outcome = BH_OUTCOME_FAILED, .rc = (uint32_t)why->rc } };
    snprintf(unsent->outcome.why, sizeof unsent->outcome.why, "%s", why->msg);
    link->shared->down_pending = true;
}

void
bh_node_link_order(struct bh_node_link *link, const struct bh_effect *effect)
{
    struct bh_order_message order;
    struct bh_err err;

    link_remember_order(link, effect);
    bh_arena_reset(link->shared->arena);
    if (bh_orders_message(link->shared->core, effect, link->shared->arena, &order, &err) == BH_OK)
        link_put_message(link, order.number, order.message);
    else
        link_store_unsent(link, effect, &err);
    link_touch(link);
}

/* After an inventory: what exists, then everything that was ordered and not answered. */
static void
link_send_all(struct bh_node_link *link)
{
    struct bh_core *core = link->shared->core;
    struct bh_msg_retain keep;
    uint32_t count;

    bh_arena_reset(link->shared->arena);
    bh_inventory_keep(core, link->node, link->shared->arena, &keep);
    keep.marks = link->marks;
    link_put_message(link, BH_MSG_RETAIN, &keep);
    count = bh_engine_outstanding(core->state.engine, link->node, core->scratch, BH_CORE_EFFECTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        bh_node_link_order(link, &core->scratch[i]);
}

/* What its leases carried is in the store. */
static void
link_forget_traffic(struct bh_node_link *link)
{
    bh_mutex_lock(&link->shared->mutex);
    for (uint32_t i = 0; i < link->ack_count; i++)
        if (link->acks[i].lease)
            bh_traffic_forget(&link->traffic, link->acks[i].lease);
    bh_mutex_unlock(&link->shared->mutex);
}

struct bh_node_link *
bh_node_link_acknowledge(struct bh_node_link *link)
{
    link_forget_traffic(link);
    for (uint32_t i = 0; i < link->ack_count && link->io; i++)
        link_put_message(link, BH_MSG_ACK, &link->acks[i]);
    link->ack_count = 0;
    return link->next_touched;
}

struct bh_node_link *
bh_node_link_finish(struct bh_node_link *link)
{
    struct bh_node_link *next = link->next_touched;

    if (link->resend)
        link_send_all(link);
    link->resend = link->touched = false;
    link->next_touched = NULL;
    link_write_out(link);
    return next;
}

/* The table reports to the engine that all nodes are down, so this link need not. */
void
bh_node_link_reset(struct bh_node_link *link)
{
    if (link->io)
        link_disconnect(link);
    link->unsent_count = 0;
    link->down_unreported = link->touched = false;
    link->next_touched = NULL;
}

bool
bh_node_link_inventory(const struct bh_node_link *link, struct bh_buf *ret_json)
{
    BH_ASSERT(bh_mutex_is_held(&link->shared->mutex));
    if (!link->inventory.json)
        return false;
    /* one object: the inventory's members, and the samples beside them */
    bh_buf_put(ret_json, link->inventory.json, strlen(link->inventory.json) - 1);
    bh_buf_puts(ret_json, ",\"samples\":");
    bh_buf_puts(ret_json, link->samples.json ? link->samples.json : "null");
    bh_buf_printf(ret_json, ",\"inventory_ns\":%" PRIu64 ",\"samples_ns\":%" PRIu64, link->inventory.at_ns,
                  link->samples.at_ns);
    bh_buf_puts(ret_json, ",\"traffic\":");
    bh_traffic_put(&link->traffic, ret_json);
    bh_buf_puts(ret_json, ",\"images\":");
    bh_images_put(&link->images, ret_json);
    bh_buf_putc(ret_json, '}');
    return true;
}

void
bh_node_link_verify(struct bh_node_link *link, const struct bh_verify_order *order)
{
    struct bh_msg_verify verify = { .request = order->request, .lease = order->lease };

    if (!link->has_inventory)
        return; /* the caller gets no answer, and may ask again */
    link_put_message(link, BH_MSG_VERIFY, &verify);
    link_touch(link);
}

bool
bh_node_link_verdict(const struct bh_node_link *link, uint32_t place, uint64_t request,
                     struct bh_buf *ret_json)
{
    BH_ASSERT(bh_mutex_is_held(&link->shared->mutex));
    if (!link->verdicts[place].json || link->verdicts[place].request != request)
        return false;
    if (ret_json->length > 0)
        bh_buf_putc(ret_json, ',');
    bh_buf_puts(ret_json, link->verdicts[place].json);
    return true;
}
