#ifndef BH_FETCH_SERVER_TEST_H
#define BH_FETCH_SERVER_TEST_H

#include <stdbool.h>
#include <stdint.h>

/* A server on this machine that answers as badly as a path asks, for tests: see the table
 * in server_test.c. */
struct server;

/* A certificate with its key, both PEM.  It signs itself, so that it is its own CA. */
struct server_pem {
    char certificate[4096], key[4096];
};

/* For 127.0.0.1 and localhost, or for `name` alone; from `from_days` to `to_days` from now.
 */
void bh_test_make_pem(const char *name, int from_days, int to_days, struct server_pem *ret_pem);

struct server_options {
    const struct server_pem *pem; /* NULL: http */
    bool old;                     /* TLS 1.1 at most */
    bool ask;                     /* for a client certificate, and take any */
};

/* Listening on 127.0.0.1, at a port of its own. */
struct server *bh_test_server_start(const struct server_options *options);
void bh_test_server_stop(struct server *server);
uint16_t bh_test_server_port(const struct server *server);

/* How many connections it took so far; wait until there were `count`. */
uint32_t bh_test_server_accepted(struct server *server);
void bh_test_server_await(struct server *server, uint32_t count);

#endif
