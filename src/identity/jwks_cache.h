#ifndef BH_IDENTITY_JWKS_CACHE_H
#define BH_IDENTITY_JWKS_CACHE_H

#include "base/time.h"
#include "identity/jwk.h"
#include "ports/https.h"

/* A provider's keys, kept for a while.
 *
 * They are fetched again when their time is over, and once when a token names a key that is not among them,
 * but never more than once in BH_JWKS_PAUSE_S: a caller that invents key ids must not flood the provider.
 * While a provider fails, its last keys serve until they are BH_JWKS_LIFE_MAX_S old, then none: it fails
 * closed.  A good answer replaces all keys, so a key that the provider withdrew is gone.  A plain value. */

enum {
    BH_JWKS_PAUSE_S = 30,
    BH_JWKS_LIFE_MIN_S = 300,
    BH_JWKS_LIFE_S = 3600, /* where the answer names none */
    BH_JWKS_LIFE_MAX_S = 86400
};

struct bh_jwks_cache {
    struct bh_jwks keys;
    bool filled, asking;
    bh_ns fetched, fresh_until, asked;
};

/* Should the key set be asked for now?  True begins a question: until bh_jwks_cache_receive
 * it is false for all others.  `unknown_key`: a token named a key that is not here. */
bool bh_jwks_cache_due(struct bh_jwks_cache *cache, bool unknown_key, bh_ns now);

/* The answer.  Keys stay as they are on failure: PROVIDER_DOWN, JWKS_*. */
enum bh_identity_fault bh_jwks_cache_receive(struct bh_jwks_cache *cache,
                                             const struct bh_https_response *answer, bh_ns now);

/* The keys to verify with, or NULL when there are none young enough. */
const struct bh_jwks *bh_jwks_cache_keys(const struct bh_jwks_cache *cache, bh_ns now);

#endif
