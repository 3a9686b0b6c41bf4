#include "api/request/rate.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/lock.h"

struct bh_rate_limiter {
    struct bh_mutex mutex;
    struct bh_rates rates;
};

struct bh_rate_limiter *
bh_rate_limiter_new(const uint32_t per_second[BH_RATE_CLASSES])
{
    struct bh_rate_limiter *limiter = calloc(1, sizeof *limiter);

    BH_ASSERT(limiter);
    bh_mutex_init(&limiter->mutex, BH_LOCK_RATE);
    for (int class = 0; class < BH_RATE_CLASSES; class ++)
        limiter->rates.per_second[class] = per_second[class];
    return limiter;
}

void
bh_rate_limiter_free(struct bh_rate_limiter *limiter)
{
    bh_mutex_fini(&limiter->mutex);
    free(limiter);
}

/* What asks the engine for much, or the nodes for anything. */
static const enum bh_operation expensive[] = { BH_OP_JOB_VERIFY,  BH_OP_NODE_VERIFY, BH_OP_WHATIF,
                                               BH_OP_POLICY_TEST, BH_OP_DEFRAG_SHOW, BH_OP_FORECAST };

/* What a change says is kept, so it counts by its length. */
static struct bh_rate_request
request_of(const struct bh_call *call)
{
    for (size_t i = 0; i < BH_COUNT(expensive); i++)
        if (call->op->id == expensive[i])
            return (struct bh_rate_request){ BH_RATE_EXPENSIVE, 1 };
    if (call->op->kind == BH_OPERATION_MUTATE)
        return bh_rate_change(call->request->body_length);
    return (struct bh_rate_request){ BH_RATE_READ, 1 };
}

/* FNV-1a; the first bit distinguishes addresses from users. */
static uint64_t
rate_hash_of(const char *block)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *block; block++)
        hash = (hash ^ (uint8_t)*block) * UINT64_C(0x100000001b3);
    return hash | UINT64_C(1) << 63;
}

static struct bh_rate_key
rate_key_of(const struct bh_call *call)
{
    const struct bh_transport *peer = call->request->transport;
    const struct bh_subject *subject = &call->caller.subject;
    bool admin;

    if (!call->identified)
        return (struct bh_rate_key){ false, peer->unix_socket ? peer->uid : rate_hash_of(peer->block), 1 };
    admin = bh_authz_check(call->dir, subject, "site.apply", (bh_tenant_id){ 0 }).allow;
    return (struct bh_rate_key){ true, subject->principal.v, admin ? BH_RATE_ADMIN : 1 };
}

bh_rc
bh_rate_limiter_check(struct bh_call *call, struct bh_err *err)
{
    const struct bh_transport *peer = call->request->transport;
    struct bh_rate_limiter *limiter = call->api->rates;
    struct bh_rate_key key;
    bh_ns wait = 0, now;
    bool may;

    if (peer->unix_socket && peer->uid == 0)
        return BH_OK;
    key = rate_key_of(call);
    bh_mutex_lock(&limiter->mutex);
    now = bh_time_monotonic() + 2 * BH_RATE_BURST * BH_NS_PER_S; /* also just after the boot */
    may = bh_rate_draw(&limiter->rates, &key, request_of(call), now, &wait);
    bh_mutex_unlock(&limiter->mutex);
    if (may)
        return BH_OK;
    call->retry_after_s = (uint32_t)(wait / BH_NS_PER_S) + 1;
    bh_err_set(err, BH_TOO_MANY, "%s too often, or for too much, in a short time",
               call->identified ? "you have asked" : "strangers from there have asked");
    return bh_err_hint(err, "try again after %" PRIu32 " s", call->retry_after_s);
}
