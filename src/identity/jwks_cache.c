#include "identity/jwks_cache.h"

#include "base/assert.h"

bool
bh_jwks_cache_due(struct bh_jwks_cache *cache, bool unknown_key, bh_ns now)
{
    bool stale = !cache->filled || now >= cache->fresh_until;
    bool rested = cache->asked == 0 || now >= cache->asked + BH_JWKS_PAUSE_S * BH_NS_PER_S;

    if (cache->asking || !rested || (!stale && !unknown_key))
        return false;
    cache->asking = true;
    cache->asked = now;
    return true;
}

enum bh_identity_fault
bh_jwks_cache_receive(struct bh_jwks_cache *cache, const struct bh_https_response *answer, bh_ns now)
{
    uint32_t life_s = answer->max_age_s ? answer->max_age_s : BH_JWKS_LIFE_S;
    enum bh_identity_fault fault = BH_FAULT_PROVIDER_DOWN;

    BH_ASSERT(cache->asking);
    cache->asking = false;
    if (answer->status == 200)
        fault = bh_jwks_parse(answer->body, answer->length, &cache->keys);
    if (fault != BH_FAULT_NONE)
        return fault;
    if (life_s < BH_JWKS_LIFE_MIN_S)
        life_s = BH_JWKS_LIFE_MIN_S;
    if (life_s > BH_JWKS_LIFE_MAX_S)
        life_s = BH_JWKS_LIFE_MAX_S;
    cache->filled = true;
    cache->fetched = now;
    cache->fresh_until = now + life_s * BH_NS_PER_S;
    return BH_FAULT_NONE;
}

const struct bh_jwks *
bh_jwks_cache_keys(const struct bh_jwks_cache *cache, bh_ns now)
{
    if (!cache->filled || now >= cache->fetched + BH_JWKS_LIFE_MAX_S * BH_NS_PER_S)
        return NULL;
    return &cache->keys;
}
