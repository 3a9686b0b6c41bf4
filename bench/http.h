#ifndef BH_BENCH_HTTP_H
#define BH_BENCH_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* Requests on a keep-alive connection to the API's unix socket. */

/* One request and its whole reply; the first `size` - 1 bytes of the body are kept.
 * False when the connection broke or the status is not 2xx. */
bool bh_http_exchange(int fd, const char *request, size_t length, char *ret_body, size_t size);

/* A request of `method` and `path` with a body, in memory that the caller frees. */
char *bh_http_request(const char *method, const char *path, const char *type, const char *body);

#endif
