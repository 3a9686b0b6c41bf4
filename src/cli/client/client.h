#ifndef BH_CLI_CLIENT_CLIENT_H
#define BH_CLI_CLIENT_CLIENT_H

#include "base/arena.h"
#include "base/json.h"
#include "cli/client/http.h"
#include "cli/options/options.h"

/* Talks to bulkheadd: over its unix socket or, with a server's URL, over HTTPS. */
struct bh_client {
    const char *socket;                 /* used when `server` is NULL */
    const char *server, *ca_file, *pin; /* pin: base 64, SHA-256 of the public key */
    const char *cert, *key;             /* files of the client certificate; NULL: none */
    const char *token;                  /* NULL: none */
    /* Called after a 401: BH_OK sends the request again, with the new `token`; an error is the outcome.
     * `challenge` is the WWW-Authenticate header, `err` the server's error.  NULL: never called. */
    bh_rc (*refused)(void *self, const char *challenge, struct bh_err *err);
    void *refused_self;
};

/* Where the body of a good reply goes, and the function that says whether to continue. */
struct bh_exchange {
    bh_http_sink sink;
    bool (*idle)(void *self); /* every 200 ms and after signals; false ends it; NULL: never */
    void *self;
    bool stopped; /* out: the sink or `idle` ended it */
};

/* Settings from options and environment; texts in `arena`.  Failures of reading the
 * token's file; BH_INVALID: an URL that is not https, a certificate without
 * its key. */
BH_MUST_USE bh_rc bh_client_init(struct bh_client *client, const struct bh_args *args, struct bh_arena *arena,
                                 struct bh_err *err);

/* Send the request; again when client->refused says so, and when the server says that it came too
 * often and may come again within 30 s.  A status other than 2xx becomes an error with the
 * server's own code, message and next step.
 *   BH_UNAVAILABLE  no server listens
 *   BH_UNCERTAIN    the connection broke before the answer was complete
 *   BH_IO           the answer is no HTTP */
BH_MUST_USE bh_rc bh_client_send(const struct bh_client *client, const struct bh_http_request *request,
                                 struct bh_exchange *exchange, struct bh_err *err);

/* As bh_client_send for a reply in JSON; free it.  NULL after an empty body. */
BH_MUST_USE bh_rc bh_client_json(const struct bh_client *client, const struct bh_http_request *request,
                                 struct bh_json **ret_json, struct bh_err *err);

/* The error in a reply's body; `status` speaks when there is none. */
bh_rc bh_client_error(uint32_t status, const char *body, size_t length, struct bh_err *err);

#endif
