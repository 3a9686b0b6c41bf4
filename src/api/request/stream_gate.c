#include "api/request/stream_gate.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/vec.h"
#include "ports/crowd_news.h"

/* A holder has a connection: connections_max at most, on each of two listeners. */
enum { RETRY_AFTER_S = 2, HOLDERS_MAX = 2 * 4096 };

struct holder {
    uint32_t principal, count;
};

struct bh_stream_gate {
    uint32_t most;
    bh_http_crowded crowded;
    struct bh_mutex mutex;
    /* under mutex */
    struct holder *holders; /* principals with streams */
    size_t count, room;
    struct bh_crowd_news news;
    uint32_t untold;
};

struct bh_stream_gate *
bh_stream_gate_new(uint32_t most, bh_http_crowded crowded)
{
    struct bh_stream_gate *gate = calloc(1, sizeof *gate);

    BH_ASSERT(gate);
    gate->most = most;
    gate->crowded = crowded;
    bh_mutex_init(&gate->mutex, BH_LOCK_STREAM_GATE);
    return gate;
}

void
bh_stream_gate_free(struct bh_stream_gate *gate)
{
    bh_mutex_fini(&gate->mutex);
    free(gate->holders);
    free(gate);
}

/* A new one has none. */
static struct holder *
gate_find(struct bh_stream_gate *gate, uint32_t principal)
{
    bool fits;

    BH_ASSERT(bh_mutex_is_held(&gate->mutex));
    for (size_t i = 0; i < gate->count; i++)
        if (gate->holders[i].principal == principal)
            return &gate->holders[i];
    fits = bh_vec_reserve(&gate->holders, &gate->room, gate->count + 1, HOLDERS_MAX);
    BH_ASSERT(fits);
    gate->holders[gate->count] = (struct holder){ principal, 0 };
    return &gate->holders[gate->count++];
}

/* Whether to tell of it. */
static bool
gate_note(struct bh_stream_gate *gate, const struct holder *holder, const char *who,
          struct bh_crowding *ret_crowding)
{
    gate->untold++;
    if (!gate->crowded || !bh_crowd_news_due(&gate->news, holder->principal, bh_time_monotonic()))
        return false;
    *ret_crowding =
        (struct bh_crowding){ .who = who ? who : "", .held = holder->count, .refused = gate->untold };
    gate->untold = 0;
    return true;
}

static bh_rc
gate_refuse(struct bh_call *call, struct bh_err *err)
{
    call->retry_after_s = RETRY_AFTER_S;
    bh_err_set(err, BH_TOO_MANY,
               "you have %" PRIu32 " streams of changes and logs open, as many as "
               "one may (streams_max)",
               call->api->streams->most);
    return bh_err_hint(err, "close one, or have an admin raise the limit");
}

bh_rc
bh_stream_gate_enter(struct bh_call *call, struct bh_err *err)
{
    const struct bh_transport *peer = call->request->transport;
    struct bh_stream_gate *gate = call->api->streams;
    bool root = peer->unix_socket && peer->uid == 0, may, told = false;
    struct bh_crowding crowding;
    struct holder *holder;

    bh_mutex_lock(&gate->mutex);
    holder = gate_find(gate, call->caller.subject.principal.v);
    may = root || gate->most == 0 || holder->count < gate->most;
    holder->count += may;
    if (!may)
        told = gate_note(gate, holder, call->caller.name, &crowding);
    bh_mutex_unlock(&gate->mutex);
    if (told)
        gate->crowded(&crowding);
    return may ? BH_OK : gate_refuse(call, err);
}

void
bh_stream_gate_leave(struct bh_stream_gate *gate, bh_principal_id principal)
{
    struct holder *holder;

    bh_mutex_lock(&gate->mutex);
    holder = gate_find(gate, principal.v);
    BH_ASSERT(holder->count > 0);
    if (--holder->count == 0)
        *holder = gate->holders[--gate->count];
    bh_mutex_unlock(&gate->mutex);
}
