#ifndef BH_CLI_CLIENT_HTTPS_H
#define BH_CLI_CLIENT_HTTPS_H

#include <sys/types.h>

#include "cli/client/http.h"

/* HTTPS by libcurl, which is loaded only here: at program start it would cost more
 * than a whole `bulkhead ps`. */
struct bh_https_options {
    const char *server;        /* "https://host:port" */
    const char *ca_file, *pin; /* NULL: the system's authorities, no pin */
    const char *cert, *key;    /* files that identify the user; NULL: none */
    bh_http_sink sink;
    void *self;
    bool (*idle)(void *self); /* NULL: never asked */
    void *idle_self;
    uint32_t *ret_status;        /* set before the sink is called */
    bool *ret_stopped;           /* the sink or `idle` ended it */
    uint32_t *ret_retry_after_s; /* Retry-After in seconds; kept when absent */
    char *ret_challenge;         /* WWW-Authenticate; BH_HTTP_CHALLENGE_MAX bytes */
};

/* Send the request and pass the reply's body on.
 *   BH_UNAVAILABLE  no libcurl, or no server listens
 *   BH_DENIED       the server's certificate is not the one that was asked for
 *   BH_INVALID      our certificate or key cannot be used
 *   BH_UNCERTAIN    the connection broke after the request was sent
 *   BH_IO */
BH_MUST_USE bh_rc bh_https_send(const struct bh_https_options *https, const struct bh_http_request *request,
                                struct bh_err *err);

/* A connection that carries bytes instead of a request; of `https` only the trusted certificates and the
 * client's own identity count.  Results as above. */
struct bh_https_connection;
BH_MUST_USE bh_rc bh_https_connect(const struct bh_https_options *https,
                                   struct bh_https_connection **ret_connection, int *ret_fd,
                                   struct bh_err *err);
void bh_https_disconnect(struct bh_https_connection *connection);

/* How many bytes were moved; -1: none now, wait for the socket; 0: it broke or was closed. */
ssize_t bh_https_receive(struct bh_https_connection *connection, char *bytes, size_t size);
ssize_t bh_https_transmit(struct bh_https_connection *connection, const char *bytes, size_t size);

#endif
