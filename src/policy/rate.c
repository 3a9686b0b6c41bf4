#include "policy/rate.h"

#include <string.h>

#include "base/assert.h"

#define BURST_NS (BH_RATE_BURST * BH_NS_PER_S)

/* As long ago as a bucket needs to fill, or longer: it holds no more. */
static bool
is_full(const struct bh_rate_bucket *bucket, bh_ns now)
{
    for (int class = 0; class < BH_RATE_CLASSES; class ++)
        if (bucket->empty_ns[class] + BURST_NS > now)
            return false;
    return true;
}

static uint64_t
rate_mix(uint64_t id)
{
    id = (id ^ (id >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    id = (id ^ (id >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return id ^ (id >> 33);
}

/* The key's own bucket, one that is free or full in its place, or the shared one. */
static struct bh_rate_bucket *
rate_find(struct bh_rate_table *table, uint64_t id, bh_ns now)
{
    struct bh_rate_bucket *first =
        &table->slots[rate_mix(id) % (BH_RATE_SLOTS / BH_RATE_WAYS) * BH_RATE_WAYS];
    struct bh_rate_bucket *free_one = NULL;

    for (int i = 0; i < BH_RATE_WAYS; i++) {
        if (first[i].used && first[i].id == id)
            return &first[i];
        if (!free_one && (!first[i].used || is_full(&first[i], now)))
            free_one = &first[i];
    }
    if (!free_one)
        return &table->shared;
    *free_one = (struct bh_rate_bucket){ .id = id, .used = true };
    return free_one;
}

struct bh_rate_request
bh_rate_change(size_t bytes)
{
    size_t begun = bytes / BH_RATE_BYTES + (bytes % BH_RATE_BYTES > 0);

    return (struct bh_rate_request){ BH_RATE_CHANGE, begun > 1 ? (uint32_t)begun : 1 };
}

bool
bh_rate_draw(struct bh_rates *rates, const struct bh_rate_key *key, struct bh_rate_request request, bh_ns now,
             bh_ns *ret_wait_ns)
{
    uint64_t per_second = (uint64_t)rates->per_second[request.class] * key->times;
    bh_ns one, price, wanted, *empty;

    BH_ASSERT(key->times > 0);
    BH_ASSERT(request.count > 0);
    BH_ASSERT(now > BURST_NS);
    if (per_second == 0)
        return true;
    one = BH_NS_PER_S / per_second;
    price = request.count * one;
    wanted = price < BURST_NS ? price : BURST_NS;
    empty = &rate_find(key->known ? &rates->known : &rates->unknown, key->id, now)->empty_ns[request.class];
    if (*empty + BURST_NS < now)
        *empty = now - BURST_NS;
    if (*empty + wanted > now) {
        *ret_wait_ns = *empty + wanted - now;
        return false;
    }
    *empty += price;
    return true;
}
