#ifndef BH_API_API_H
#define BH_API_API_H

#include "api/request/options.h"
#include "ports/http.h"

/* The HTTP API: finds the operation, authenticates, authorises reads, parses, asks
 * the owner or the store, and writes JSON.  One file a resource; the operations stand
 * in tables/operations.tbl.  Thread-safe: workers share one bh_api. */
struct bh_api;

/* The options are copied; what they point to outlives the API.  Owned by the caller. */
BH_MUST_USE struct bh_api *bh_api_new(const struct bh_api_options *options);
void bh_api_free(struct bh_api *api);
BH_AUTO_DEFINE(struct bh_api *, bh_api_free)

/* A bh_http_handler; `self` is the bh_api. */
void bh_api_handle(void *self, const struct bh_request *request, struct bh_reply *reply);

#endif
