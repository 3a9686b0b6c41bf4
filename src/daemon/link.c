#include "daemon/link.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/command.h"
#include "daemon/inventory.h"
#include "daemon/orders.h"
#include "wire/frame_io.h"
#include "wire/message.h"

enum { ACKS_MAX = 4096, MESSAGE_ARENA_MAX = 8 << 20 };

static const bh_ns reconnect_first_ns = 20 * BH_NS_PER_MS;
static const bh_ns reconnect_most_ns = 1000 * BH_NS_PER_MS;

struct bh_node_link {
    /* owner thread */
    struct bh_core *core;
    struct bh_link *io;          /* NULL: not connected */
    bh_node_id node;             /* 0 until its first inventory */
    bool greeted;                /* inventory seen on this connection */
    bool told_down;              /* the engine knows that no node is there */
    bool resend;                 /* outstanding effects and KEEP are due after commit */
    bh_ns next_try_ns, backoff_ns;
    struct bh_msg_ack acks[ACKS_MAX];
    uint32_t ack_count;
    struct bh_arena *arena;
    /* shared, under mutex */
    pthread_mutex_t mutex;
    char *inventory;
    char *samples;
};

struct bh_node_link *
bh_node_link_new(struct bh_core *core)
{
    struct bh_node_link *link = calloc(1, sizeof *link);

    BH_ASSERT(link);
    link->core = core;
    link->backoff_ns = reconnect_first_ns;
    link->arena = bh_arena_new(MESSAGE_ARENA_MAX);
    pthread_mutex_init(&link->mutex, NULL);
    return link;
}

void
bh_node_link_free(struct bh_node_link *link)
{
    if (!link)
        return;
    bh_link_free(link->io);
    bh_arena_free(link->arena);
    free(link->inventory);
    free(link->samples);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}

int
bh_node_link_fd(const struct bh_node_link *link)
{
    return link->io ? bh_link_fd(link->io) : -1;
}

short
bh_node_link_interest(const struct bh_node_link *link)
{
    return link->io ? bh_link_interest(link->io) : 0;
}

static void
publish(struct bh_node_link *link, char **place, const struct bh_fields *fields,
        const void *message)
{
    struct bh_buf json;
    char *copy = NULL;

    if (message) {
        bh_buf_init(&json, MESSAGE_ARENA_MAX);
        bh_json_encode(&json, fields, message);
        copy = bh_buf_text(&json) ? strdup(bh_buf_text(&json)) : NULL;
        bh_buf_fini(&json);
    }
    pthread_mutex_lock(&link->mutex);
    free(*place);
    *place = copy;
    pthread_mutex_unlock(&link->mutex);
}

static void
disconnect(struct bh_node_link *link)
{
    bh_link_free(link->io);
    link->io = NULL;
    link->greeted = link->resend = false;
    link->ack_count = 0;
    link->next_try_ns = bh_time_monotonic() + link->backoff_ns;
    publish(link, &link->inventory, NULL, NULL);
    publish(link, &link->samples, NULL, NULL);
}

/* What could not be sent now is sent again after the next hello. */
static void
send_message(struct bh_node_link *link, uint32_t number, const void *message)
{
    struct bh_err err;

    if (!link->io)
        return;
    if (bh_link_send(link->io, number, bh_message_fields(number), message, &err) == BH_OK)
        return;
    bh_log(NODE_LOST, BH_ERRLOG(&err));
    disconnect(link);
}

void
bh_node_link_connect(struct bh_node_link *link)
{
    struct bh_msg_hello hello = { .version = BH_WIRE_VERSION, .boot = link->core->journal.boot };
    struct bh_err err;
    int fd;

    if (link->io || bh_time_monotonic() < link->next_try_ns)
        return;
    if (bh_unix_connect(link->core->config->node_socket, &fd, &err) != BH_OK) {
        link->next_try_ns = bh_time_monotonic() + link->backoff_ns;
        link->backoff_ns = 2 * link->backoff_ns < reconnect_most_ns ? 2 * link->backoff_ns
                                                                    : reconnect_most_ns;
        return;
    }
    link->io = bh_link_new(fd);
    snprintf(hello.site, sizeof hello.site, "%s", link->core->config->site_name);
    send_message(link, BH_MSG_HELLO, &hello);
}

uint64_t
bh_node_link_try_ns(const struct bh_node_link *link)
{
    return link->io ? UINT64_MAX : link->next_try_ns;
}

static struct bh_entry
node_entry(const struct bh_node_link *link, const char *verb)
{
    return (struct bh_entry){ .actor = { .via = BH_VIA_SYSTEM },
                              .dec = { .allow = true },
                              .phase = BH_PHASE_EVENT,
                              .verb = verb,
                              .obj = { .type = "node", .id = link->node.v } };
}

static bh_rc
node_is(struct bh_node_link *link, bool up, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_NODE, .u.node = { link->node, up } };
    struct bh_entry entry = node_entry(link, up ? "node.up" : "node.down");

    return bh_core_step(link->core, &entry, &event, err);
}

/* However the connection went, and at a start: what the engine believed up is down. */
bh_rc
bh_node_link_settle(struct bh_node_link *link, struct bh_err *err)
{
    uint32_t cursor = 0, id;
    bh_rc rc = BH_OK;

    if (link->greeted || link->told_down)
        return BH_OK;
    while (rc == BH_OK && bh_catalog_next(link->core->catalog, BH_NAME_NODE, &cursor, &id)) {
        link->node.v = id;
        rc = node_is(link, false, err);
    }
    link->told_down = rc == BH_OK;
    return rc;
}

static void
owe_ack(struct bh_node_link *link, uint64_t order, uint64_t lease)
{
    if (link->ack_count < ACKS_MAX) /* more are asked for again by the node's repeats */
        link->acks[link->ack_count++] = (struct bh_msg_ack){ order, lease };
}

static bh_rc
take_inventory(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_inventory *inventory = message;
    bool known = bh_catalog_find(link->core->catalog, BH_NAME_NODE, inventory->node) != 0;
    uint32_t id;
    bh_rc rc = bh_inventory_check(link->core, inventory, err);

    if (rc == BH_OK)
        rc = bh_core_begin(link->core, err);
    if (rc == BH_OK)
        rc = bh_catalog_name(link->core->catalog, BH_NAME_NODE, inventory->node, &id, err);
    if (rc != BH_OK)
        return rc;
    link->node.v = id;
    if (!known) /* a GPU's node must be known; it is up when all is taken in */
        rc = node_is(link, false, err);
    if (rc == BH_OK)
        rc = bh_inventory_take(link->core, link->node, inventory, err);
    if (rc == BH_OK)
        rc = node_is(link, true, err);
    if (rc != BH_OK)
        return rc;
    link->core->catalog_changed = true;
    if (!link->greeted)
        bh_log(NODE_CONNECTED, BH_STR("node", inventory->node),
               BH_STR("driver", inventory->driver));
    link->greeted = link->resend = true;
    link->told_down = false;
    link->backoff_ns = reconnect_first_ns;
    publish(link, &link->inventory, bh_message_fields(BH_MSG_INVENTORY), inventory);
    return BH_OK;
}

static bh_rc
take_outcome(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_outcome *outcome = message;

    if (outcome->outcome != BH_OUTCOME_OK)
        bh_log(EFFECT_FAILED, BH_U64("order", outcome->order), BH_STR("why", outcome->why));
    owe_ack(link, outcome->order, 0);
    return bh_orders_outcome(link->core, link->node, outcome, err);
}

static bh_rc
take_ended(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_ended *ended = message;

    owe_ack(link, 0, ended->lease);
    return bh_orders_ended(link->core, ended, err);
}

static bh_rc
take_samples(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    const struct bh_msg_samples *samples = message;

    publish(link, &link->samples, bh_message_fields(BH_MSG_SAMPLES), message);
    return bh_inventory_sampled(link->core, link->node, &samples->gpus, err);
}

static bh_rc
take_health(struct bh_node_link *link, const void *message, struct bh_err *err)
{
    return bh_inventory_health(link->core, link->node, message, err);
}

/* What a node may say, and when: nothing before its inventory. */
static const struct {
    uint32_t number;
    bh_rc (*take)(struct bh_node_link *link, const void *message, struct bh_err *err);
    bool first;
} takers[] = {
    { BH_MSG_INVENTORY, take_inventory, true },
    { BH_MSG_OUTCOME, take_outcome, false },
    { BH_MSG_ENDED, take_ended, false },
    { BH_MSG_SAMPLES, take_samples, false },
    { BH_MSG_HEALTH, take_health, false },
};

static bh_rc
take_frame(struct bh_node_link *link, const struct bh_frame *frame, struct bh_err *err)
{
    const struct bh_fields *fields = bh_message_fields(frame->number);
    void *message;

    for (size_t i = 0; i < BH_COUNT(takers); i++) {
        bh_rc rc;

        if (takers[i].number != frame->number || (!takers[i].first && !link->greeted))
            continue;
        message = bh_arena_alloc(link->arena, fields->size);
        if (!message)
            return bh_err_set(err, BH_INVALID, "message is too large");
        rc = bh_frame_decode(frame, fields, message, link->arena, err);
        return rc == BH_OK ? takers[i].take(link, message, err) : rc;
    }
    return bh_err_set(err, BH_INVALID, "message %" PRIu32 " is not expected here",
                      frame->number);
}

static bh_rc
lost(struct bh_node_link *link, const struct bh_err *why, struct bh_err *err)
{
    bh_log(NODE_LOST, BH_ERRLOG(why), BH_STR("next", why->hint));
    link->backoff_ns = 2 * link->backoff_ns < reconnect_most_ns ? 2 * link->backoff_ns
                                                                : reconnect_most_ns;
    disconnect(link);
    return bh_node_link_settle(link, err);
}

bh_rc
bh_node_link_receive(struct bh_node_link *link, struct bh_err *err)
{
    struct bh_frame frame;
    struct bh_err why;
    bh_rc rc = bh_link_flush(link->io, &why);

    if (rc == BH_OK)
        rc = bh_link_readable(link->io, &why);
    if (rc != BH_OK)
        return lost(link, &why, err);
    while ((rc = bh_link_next(link->io, &frame, &why)) == BH_OK) {
        bh_arena_reset(link->arena);
        rc = take_frame(link, &frame, &why);
        if (bh_command_fatal(rc)) {
            *err = why;
            return rc;
        }
        if (rc != BH_OK) {
            bh_log(FRAME_REFUSED, BH_ERRLOG(&why));
            return lost(link, &why, err);
        }
    }
    return rc == BH_NOT_FOUND ? BH_OK : lost(link, &why, err);
}

static void
send_effect(struct bh_node_link *link, const struct bh_effect *effect)
{
    struct bh_order_message order;
    struct bh_err err;

    bh_arena_reset(link->arena);
    if (bh_orders_message(link->core, effect, link->arena, &order, &err) == BH_OK)
        send_message(link, order.number, order.message);
    else
        bh_log(EFFECT_FAILED, BH_U64("order", effect->order), BH_ERRLOG(&err));
}

/* After an inventory: what exists, then everything that was ordered and not answered. */
static void
send_all_again(struct bh_node_link *link)
{
    struct bh_msg_keep keep;
    uint32_t count;

    bh_arena_reset(link->arena);
    bh_inventory_keep(link->core, link->arena, &keep);
    send_message(link, BH_MSG_KEEP, &keep);
    count = bh_engine_outstanding(link->core->state.engine, link->node, link->core->scratch,
                                  BH_CORE_EFFECTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        send_effect(link, &link->core->scratch[i]);
}

void
bh_node_link_release(struct bh_node_link *link)
{
    uint32_t count, acks = link->ack_count;
    const struct bh_effect *effects = bh_core_effects(link->core, &count);

    link->ack_count = 0;
    for (uint32_t i = 0; i < acks && link->io; i++)
        send_message(link, BH_MSG_ACK, &link->acks[i]);
    if (link->resend)
        send_all_again(link);
    else if (link->greeted)
        for (uint32_t i = 0; i < count; i++)
            send_effect(link, &effects[i]);
    link->resend = false;
    bh_core_released(link->core);
}

void
bh_node_link_reset(struct bh_node_link *link)
{
    if (link->io)
        disconnect(link);
}

const char *
bh_node_link_inventory(struct bh_node_link *link, struct bh_arena *arena)
{
    const char *json;

    pthread_mutex_lock(&link->mutex);
    if (!link->inventory)
        json = "null";
    else
        /* one object: the inventory's members, and the samples beside them */
        json = bh_arena_printf(arena, "%.*s,\"samples\":%s}", (int)strlen(link->inventory) - 1,
                               link->inventory, link->samples ? link->samples : "null");
    pthread_mutex_unlock(&link->mutex);
    return json ? json : "null";
}
