#ifndef BH_API_API_H
#define BH_API_API_H

#include "api/owner.h"
#include "api/accounts.h"
#include "api/streams.h"
#include "keys/keys.h"
#include "policy/rate.h"
#include "ports/crypto.h"
#include "ports/http.h"
#include "ports/store.h"

/* The HTTP API: finds the operation, authenticates, authorises reads, parses, asks
 * the owner or the store, and writes JSON.  One file a resource; the operations stand
 * in tables/operations.tbl.  Thread-safe: workers share one bh_api. */
struct bh_api;

struct bh_api_options {
    struct bh_owner owner;
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    struct bh_keys *keys;        /* opens what is sealed */
    const char *version;
    uint32_t job_uid_first;      /* Unix ids from here up belong to jobs: never anybody;
                                    0: no such range */
    uint64_t (*now)(void);       /* nanoseconds since the epoch; NULL: the wall clock */
    struct bh_accounts_port accounts;
    struct bh_streams_port streams; /* ops NULL: there are none */
    uint32_t rates[BH_RATE_CLASSES]; /* requests a second of a caller (policy/rate.h); 0: any */
    uint64_t silence_ns;         /* streams: a comment after this long; 0: two seconds */
    uint32_t streams_max;        /* of changes and logs of one principal at once; 0: any number */
    bh_http_crowded crowded;     /* told who wants more of them; may be NULL */
};

/* The options are copied; what they point to outlives the API.  Owned by the caller. */
BH_MUST_USE struct bh_api *bh_api_new(const struct bh_api_options *options);
void bh_api_free(struct bh_api *api);
BH_AUTO_DEFINE(struct bh_api *, bh_api_free)

/* A bh_http_handler; `self` is the bh_api. */
void bh_api_handle(void *self, const struct bh_request *request, struct bh_reply *reply);

/* The OpenAPI 3.1 document, in the arena. */
const char *bh_api_openapi(struct bh_arena *arena);

#endif
