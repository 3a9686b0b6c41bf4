#ifndef BH_HTTP_SERVER_EXCHANGE_H
#define BH_HTTP_SERVER_EXCHANGE_H

#include <microhttpd.h>

#include "http_server/peers.h"
#include "http_server/refusal.h"
#include "http_server/stream_loop.h"
#include "http_server/upgrade.h"
#include "ports/http.h"

/* One request and its reply inside libmicrohttpd's callbacks. */

/* The server, as its exchanges see it. */
struct bh_exchange_owner {
    bh_http_handler handler;
    void *self;
    struct bh_upgrades *upgrades;
    struct bh_stream_loop *streams;
};

/* For MHD_OPTION_URI_LOG_CALLBACK: remembers where the request's target lies, whole, for the access
 * handler.  NULL, which that begins with. */
void *bh_exchange_target(void *self, const char *target, struct MHD_Connection *mhd);

/* MHD_AccessHandlerCallback: called with the head, then for each part of the body, then again for the answer.
 * `self` is a bh_exchange_owner. */
bh_mhd_result bh_exchange_step(void *self, struct MHD_Connection *mhd, const char *url, const char *method,
                               const char *version, const char *chunk, size_t *chunk_length, void **context);

/* MHD_RequestCompletedCallback: the reply is sent, or the client is gone; or the head of a stream is sent,
 * which then leaves for the stream loop. */
void bh_exchange_completed(void *self, struct MHD_Connection *mhd, void **context,
                           enum MHD_RequestTerminationCode why);

#endif
