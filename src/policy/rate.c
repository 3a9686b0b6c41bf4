#include "policy/rate.h"

#include <string.h>

#include "base/assert.h"

#define BURST_NS (BH_RATE_BURST * BH_NS_PER_S)

/* As long ago as a bucket needs to fill, or longer: it holds no more. */
static bool
is_full(const struct bh_rate_bucket *bucket, bh_ns now)
{
    for (int class = 0; class < BH_RATE_CLASSES; class++)
        if (bucket->empty_ns[class] + BURST_NS > now)
            return false;
    return true;
}

static uint64_t
mix(uint64_t id)
{
    id = (id ^ (id >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    id = (id ^ (id >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return id ^ (id >> 33);
}

/* The key's own bucket, one that is free or full in its place, or the shared one. */
static struct bh_rate_bucket *
find(struct bh_rate_table *table, uint64_t id, bh_ns now)
{
    struct bh_rate_bucket *first =
        &table->places[mix(id) % (BH_RATE_PLACES / BH_RATE_WAYS) * BH_RATE_WAYS];
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

bool
bh_rate_draw(struct bh_rates *rates, const struct bh_rate_key *key, enum bh_rate_class class,
             bh_ns now, bh_ns *ret_wait_ns)
{
    uint64_t per_second = (uint64_t)rates->per_second[class] * key->times;
    struct bh_rate_bucket *bucket;
    bh_ns one, *empty;

    BH_ASSERT(key->times > 0);
    BH_ASSERT(now > BURST_NS);
    if (per_second == 0)
        return true;
    one = BH_NS_PER_S / per_second;
    bucket = find(key->known ? &rates->known : &rates->strangers, key->id, now);
    empty = &bucket->empty_ns[class];
    if (*empty + BURST_NS < now)
        *empty = now - BURST_NS;
    if (*empty + one > now) {
        *ret_wait_ns = *empty + one - now;
        return false;
    }
    *empty += one;
    return true;
}
