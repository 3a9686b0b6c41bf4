#include "daemon/streams/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/lock.h"
#include "base/time.h"
#include "daemon/streams/stream_relay.h"
#include "ports/crypto.h"
#include "wire/frame.h"
#include "wire/message.h"

enum { MESSAGE_MAX = 96 << 10, PERMIT_EVERY_S = 2, STOP_S = 5 };

enum streams_slot_state { FREE, PENDING, OPEN, CLOSING };

/* One that was recorded. */
struct streams_slot {
    enum streams_slot_state state;
    enum bh_operation op;
    char ticket[BH_STREAM_TICKET_TEXT + 1];
    uint32_t principal;
    bh_ns expires; /* monotonic; while PENDING */
    uint64_t lease;
    char verb[16], *socket;
    char *message; /* as the node reads it; not for a forward */
    size_t message_length;
    uint32_t connections; /* of a forward, open now */
    struct bh_stream_end end;
};

struct bh_streams {
    struct bh_owner owner;
    const struct bh_crypto_ops *crypto;
    struct bh_mutex mutex;
    struct bh_condition ended;
    /* under mutex */
    struct streams_slot slots[BH_STREAMS_MAX];
    uint32_t relayed; /* threads that carry */
    bool stopping;
};

struct bh_streams *
bh_streams_new(struct bh_owner owner, const struct bh_crypto_ops *crypto)
{
    struct bh_streams *streams = calloc(1, sizeof *streams);

    BH_ASSERT(streams);
    streams->owner = owner;
    streams->crypto = crypto;
    bh_mutex_init(&streams->mutex, BH_LOCK_STREAMS);
    bh_condition_init(&streams->ended);
    return streams;
}

/* ---- how many ---- */

static bh_rc
streams_check_quota(const struct bh_streams *streams, bh_job_id job, bh_principal_id principal,
                    struct bh_err *err)
{
    uint32_t of_job = 0, of_principal = 0, all = 0;

    BH_ASSERT(bh_mutex_is_held(&streams->mutex));
    for (int i = 0; i < BH_STREAMS_MAX; i++) {
        const struct streams_slot *slot = &streams->slots[i];

        all += slot->state != FREE;
        of_job += slot->state != FREE && slot->end.job.v == job.v;
        of_principal += slot->state != FREE && slot->principal == principal.v;
    }
    if (streams->stopping)
        return bh_err_set(err, BH_UNAVAILABLE, "bulkheadd is ending");
    if (of_job >= BH_STREAMS_OF_JOB_MAX)
        return bh_err_set(err, BH_QUOTA, "the job has %d streams already", BH_STREAMS_OF_JOB_MAX);
    if (of_principal >= BH_STREAMS_OF_PRINCIPAL_MAX)
        return bh_err_set(err, BH_QUOTA, "you have %d streams already", BH_STREAMS_OF_PRINCIPAL_MAX);
    if (all >= BH_STREAMS_MAX)
        return bh_err_set(err, BH_QUOTA, "the site has %d streams already", BH_STREAMS_MAX);
    return BH_OK;
}

static bh_rc
streams_port_check_quota(void *self, bh_job_id job, bh_principal_id principal, struct bh_err *err)
{
    struct bh_streams *streams = self;
    bh_rc rc;

    bh_mutex_lock(&streams->mutex);
    rc = streams_check_quota(streams, job, principal, err);
    bh_mutex_unlock(&streams->mutex);
    return rc;
}

/* ---- ends ---- */

/* Record it, and only then let the place go.  A failure is the owner's: what it cannot record
 * now is recorded by the next start. */
static void
streams_finish(struct bh_streams *streams, struct streams_slot *slot)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_command command = {
        .op = slot->op, .stream_end = &slot->end, .system = true, .job = slot->end.job
    };
    struct bh_answer answer;
    struct bh_err ignored;

    (void)!streams->owner.ops->command(streams->owner.self, &command, arena, &answer, &ignored);
    bh_mutex_lock(&streams->mutex);
    free(slot->socket);
    free(slot->message);
    *slot = (struct streams_slot){ .state = FREE };
    bh_condition_broadcast(&streams->ended);
    bh_mutex_unlock(&streams->mutex);
}

void
bh_streams_expire(struct bh_streams *streams)
{
    for (int i = 0; i < BH_STREAMS_MAX; i++) {
        struct streams_slot *slot = &streams->slots[i];
        bool late;

        bh_mutex_lock(&streams->mutex);
        late = slot->state == PENDING && (streams->stopping || slot->expires < bh_time_monotonic());
        if (late) {
            slot->state = CLOSING;
            slot->end.res = BH_TIMEOUT;
            slot->end.status = -1;
        }
        bh_mutex_unlock(&streams->mutex);
        if (late)
            streams_finish(streams, slot);
    }
}

static bool
streams_is_quiet(const struct bh_streams *streams)
{
    for (int i = 0; i < BH_STREAMS_MAX; i++)
        if (streams->slots[i].state != FREE)
            return false;
    return streams->relayed == 0;
}

void
bh_streams_stop(struct bh_streams *streams)
{
    bh_ns until = bh_time_monotonic() + STOP_S * BH_NS_PER_S;

    if (!streams)
        return;
    bh_mutex_lock(&streams->mutex);
    streams->stopping = true;
    bh_mutex_unlock(&streams->mutex);
    bh_streams_expire(streams);
    for (bool quiet = false; !quiet && bh_time_monotonic() < until;) {
        bh_time_sleep(10 * BH_NS_PER_MS);
        bh_mutex_lock(&streams->mutex);
        quiet = streams_is_quiet(streams);
        bh_mutex_unlock(&streams->mutex);
    }
}

void
bh_streams_free(struct bh_streams *streams)
{
    if (!streams)
        return;
    for (int i = 0; i < BH_STREAMS_MAX; i++) {
        free(streams->slots[i].socket);
        free(streams->slots[i].message);
    }
    bh_condition_fini(&streams->ended);
    bh_mutex_fini(&streams->mutex);
    free(streams);
}

/* ---- admitting ---- */

/* The message that the node reads; NULL and `err` when it cannot be. */
static char *
streams_encode(const struct bh_msg_stream *message, size_t *ret_length)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = MESSAGE_MAX };
    char *copy = NULL;

    bh_frame_encode(&out, BH_MSG_STREAM, bh_message_fields(BH_MSG_STREAM), message);
    if (!out.overflow)
        copy = malloc(out.length);
    if (copy)
        memcpy(copy, out.bytes, out.length);
    *ret_length = out.length;
    return copy;
}

static struct bh_msg_stream
streams_message_of(const struct bh_stream_opening *opening)
{
    const struct bh_stream_request *request = opening->request;

    return (struct bh_msg_stream){
        .lease = opening->grant->lease,
        .what = opening->op == BH_OP_JOB_EXEC     ? BH_STREAM_EXEC
                : opening->op == BH_OP_JOB_ATTACH ? BH_STREAM_ATTACH
                                                  : BH_STREAM_WATCH,
        .tty = request->tty,
        .input = request->input,
        .rows = request->rows,
        .columns = request->columns,
        .args = request->args,
    };
}

static bh_rc
streams_make_ticket(const struct bh_streams *streams, char ret_text[BH_STREAM_TICKET_TEXT + 1],
                    struct bh_err *err)
{
    uint8_t bytes[BH_STREAM_TICKET_BYTES];
    bh_rc rc = streams->crypto->random(bytes, sizeof bytes, err);

    for (size_t i = 0; i < sizeof bytes && rc == BH_OK; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
    return rc;
}

static bh_rc
streams_fill_slot(struct bh_streams *streams, const struct bh_stream_opening *opening,
                  const struct streams_slot *made, struct bh_err *err)
{
    bh_rc rc = streams_check_quota(streams, opening->job, opening->principal, err);

    for (int i = 0; i < BH_STREAMS_MAX && rc == BH_OK; i++)
        if (streams->slots[i].state == FREE) {
            streams->slots[i] = *made;
            return BH_OK;
        }
    return rc == BH_OK ? bh_err_set(err, BH_QUOTA, "too many streams") : rc;
}

static bh_rc
streams_port_admit(void *self, const struct bh_stream_opening *opening,
                   char ret_ticket[BH_STREAM_TICKET_TEXT + 1], struct bh_err *err)
{
    struct bh_streams *streams = self;
    struct bh_msg_stream message = streams_message_of(opening);
    struct streams_slot made = {
        .state = PENDING,
        .op = opening->op,
        .principal = opening->principal.v,
        .expires = bh_time_monotonic() + BH_STREAM_TICKET_NS,
        .lease = opening->grant->lease,
        .end = { .seq = opening->grant->seq,
                 .job = opening->job,
                 .status = -1,
                 .tenant_id = opening->grant->tenant.v,
                 .principal_id = opening->principal.v },
    };
    bh_rc rc = streams_make_ticket(streams, made.ticket, err);

    if (rc != BH_OK)
        return rc;
    snprintf(made.verb, sizeof made.verb, "%s", opening->grant->verb);
    made.socket = strdup(opening->grant->socket);
    made.message = streams_encode(&message, &made.message_length);
    if (!made.socket || !made.message)
        rc = bh_err_set(err, BH_RANGE, "the command is too long");
    bh_mutex_lock(&streams->mutex);
    if (rc == BH_OK)
        rc = streams_fill_slot(streams, opening, &made, err);
    bh_mutex_unlock(&streams->mutex);
    if (rc == BH_OK) {
        memcpy(ret_ticket, made.ticket, sizeof made.ticket);
        return BH_OK;
    }
    made.end.res = rc;
    streams_finish(streams, &made); /* it was recorded, and is over */
    return rc;
}

/* ---- opening ---- */

/* A connection that is carried. */
struct relayed {
    struct bh_streams *streams;
    struct streams_slot *slot;
    struct bh_stream_permit permit;
    int node;
    bool connection; /* of a forward: not the slot's own stream */
    bh_ns asked;
};

static struct streams_slot *
streams_find_slot(struct bh_streams *streams, const char *ticket, bh_principal_id principal)
{
    BH_ASSERT(bh_mutex_is_held(&streams->mutex));
    for (int i = 0; i < BH_STREAMS_MAX; i++) {
        struct streams_slot *slot = &streams->slots[i];

        if ((slot->state == PENDING || slot->state == OPEN) && slot->principal == principal.v
            && strcmp(slot->ticket, ticket) == 0)
            return slot;
    }
    return NULL;
}

/* Take the slot's own stream, or one connection more. */
static bh_rc
streams_acquire_slot(struct bh_streams *streams, struct streams_slot *slot, bool connection,
                     struct bh_err *err)
{
    BH_ASSERT(bh_mutex_is_held(&streams->mutex));
    if (streams->stopping)
        return bh_err_set(err, BH_UNAVAILABLE, "bulkheadd is ending");
    if (!slot || (connection && (slot->op != BH_OP_JOB_FORWARD || slot->state != OPEN))
        || (!connection && slot->state != PENDING))
        return bh_err_set(err, BH_NOT_FOUND, "no such ticket: it is good once, and not for long");
    if (connection && slot->connections >= BH_STREAM_CONNECTIONS_MAX)
        return bh_err_set(err, BH_QUOTA, "%d connections are open already", BH_STREAM_CONNECTIONS_MAX);
    if (connection) {
        slot->connections++;
        slot->end.connections++;
    } else {
        slot->state = OPEN;
    }
    streams->relayed++;
    return BH_OK;
}

static void
streams_release(struct relayed *one, const struct bh_stream_end *end)
{
    struct bh_streams *streams = one->streams;
    struct streams_slot *slot = one->slot;

    bh_mutex_lock(&streams->mutex);
    slot->end.in_bytes += end->in_bytes;
    slot->end.out_bytes += end->out_bytes;
    if (one->connection) {
        slot->connections--;
    } else {
        slot->end.res = end->res;
        slot->end.status = end->status;
        slot->state = CLOSING; /* its connections see that and go */
    }
    while (!one->connection && slot->connections > 0)
        bh_condition_wait(&streams->ended, &streams->mutex);
    streams->relayed--;
    bh_condition_broadcast(&streams->ended);
    bh_mutex_unlock(&streams->mutex);
    if (!one->connection)
        streams_finish(streams, slot);
    one->permit.end(one->permit.self);
    bh_fd_close(one->node);
    free(one);
}

static bool
streams_may_continue(void *self)
{
    struct relayed *one = self;
    bh_ns now = bh_time_monotonic();
    bool open;

    bh_mutex_lock(&one->streams->mutex);
    open = one->slot->state == OPEN && !one->streams->stopping;
    bh_mutex_unlock(&one->streams->mutex);
    if (!open || now - one->asked < PERMIT_EVERY_S * BH_NS_PER_S)
        return open;
    one->asked = now;
    return one->permit.still(one->permit.self, one->slot->verb, (bh_tenant_id){ one->slot->end.tenant_id });
}

static void
streams_run(void *self, int fd)
{
    struct relayed *one = self;
    struct bh_stream_relay relay = {
        .client = fd, .node = one->node, .may_continue = streams_may_continue, .self = one
    };
    struct bh_stream_end end = { 0 };

    bh_stream_relay(&relay, &end);
    streams_release(one, &end);
}

static void
streams_drop(void *self)
{
    streams_release(self, &(struct bh_stream_end){ .res = BH_UNAVAILABLE, .status = -1 });
}

/* Connect to the node and say what is wanted. */
static bh_rc
streams_connect(const struct streams_slot *slot, uint32_t port, int *ret_fd, struct bh_err *err)
{
    struct bh_msg_stream forward = { .lease = slot->lease, .what = BH_STREAM_FORWARD, .port = port };
    BH_AUTO(bh_fd_close) int fd = -1;
    size_t length = slot->message_length;
    char path[512], *made = port ? streams_encode(&forward, &length) : NULL;
    bh_rc rc;

    snprintf(path, sizeof path, "%s.streams", slot->socket);
    rc = bh_unix_connect(path, &fd, err);
    if (rc == BH_OK)
        rc = bh_fd_write_all(fd, made ? made : slot->message, length, err);
    free(made);
    if (rc != BH_OK)
        return bh_err_set(err, BH_UNAVAILABLE, "the job's node takes no streams now");
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

static bh_rc
streams_port_open(void *self, const struct bh_stream_claim *claim, struct bh_upgrade *ret_upgrade,
                  struct bh_err *err)
{
    struct bh_streams *streams = self;
    struct relayed *one = calloc(1, sizeof *one);
    bh_rc rc;

    BH_ASSERT(one);
    *one = (struct relayed){
        .streams = streams, .node = -1, .connection = claim->port != 0, .asked = bh_time_monotonic()
    };
    bh_mutex_lock(&streams->mutex);
    one->slot = streams_find_slot(streams, claim->ticket, claim->principal);
    rc = streams_acquire_slot(streams, one->slot, one->connection, err);
    bh_mutex_unlock(&streams->mutex);
    if (rc != BH_OK) {
        free(one);
        return rc;
    }
    one->permit = claim->permit;
    rc = streams_connect(one->slot, claim->port, &one->node, err);
    if (rc != BH_OK) { /* the permit stays the caller's */
        one->permit.end = free;
        one->permit.self = NULL;
        streams_drop(one);
        return rc;
    }
    *ret_upgrade = (struct bh_upgrade){ .run = streams_run, .drop = streams_drop, .self = one };
    return BH_OK;
}

static const struct bh_streams_ops ops = {
    .check_quota = streams_port_check_quota,
    .admit = streams_port_admit,
    .open = streams_port_open,
};

struct bh_streams_port
bh_streams_port(struct bh_streams *streams)
{
    return (struct bh_streams_port){ &ops, streams };
}
