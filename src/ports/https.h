#ifndef BH_PORTS_HTTPS_H
#define BH_PORTS_HTTPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* Network requests.  The state machines of src/identity never touch the network: they say what to request,
 * and are given the answer.  The requesting code follows no redirect, waits at most BH_HTTPS_SECONDS, takes
 * at most BH_HTTPS_BYTES_MAX, uses https alone and checks the server's certificate. */

enum {
    BH_HTTPS_BYTES_MAX = 256 * 1024, /* of an answer's body */
    BH_HTTPS_SECONDS = 10,           /* from the first look-up to the last byte */
    BH_HTTPS_URL_MAX = 4096,
    BH_HTTPS_HEADER_MAX = 16384, /* of `authorization` */
    BH_HTTPS_BODY_MAX = 128 * 1024,
    BH_HTTPS_NAME_MAX = 63 /* of a client certificate's name */
};

/* Why no answer came, for the log: tables/https_causes.tbl. */
enum bh_https_cause {
#define BH_HTTPS_CAUSE(id, text) BH_HTTPS_##id,
#include "tables/https_causes.tbl"
#undef BH_HTTPS_CAUSE
    BH_HTTPS_CAUSES
};

/* Texts live where the function that fills it says; UTF-8 without NUL. */
struct bh_https_request {
    bool post; /* else GET; a body is a form */
    const char *url;
    const char *authorization; /* NULL: none */
    const char *body;          /* NULL: none */
    const char *certificate;   /* name of the client certificate to show; NULL: none */
};

struct bh_https_response {
    uint32_t status;  /* 0: no answer came */
    const char *body; /* NUL-terminated UTF-8; "" when there is none */
    size_t length;
    uint32_t max_age_s;        /* Cache-Control's max-age; 0: none */
    enum bh_https_cause cause; /* with status 0 why, else BH_HTTPS_ANSWERED */
};

struct bh_https_ops {
    /* Ask, and wait for the answer; any thread, several at a time.  Blocks for little more
     * than BH_HTTPS_SECONDS.  That no answer came is no error of this call: status 0 says
     * so, and `cause` why; a body that is too long, cut short or no text counts as none.
     * The answer's texts live in the arena.
     *   BH_INVALID  the request has no url, or is longer than the limits above
     *   BH_FULL     the arena has no room for the answer */
    bh_rc (*ask)(void *self, const struct bh_https_request *request, struct bh_arena *arena,
                 struct bh_https_response *ret_answer, struct bh_err *err);
};

struct bh_https {
    const struct bh_https_ops *ops;
    void *self;
};

BH_MUST_USE static inline bh_rc
bh_https_ask(const struct bh_https *https, const struct bh_https_request *request, struct bh_arena *arena,
             struct bh_https_response *ret_answer, struct bh_err *err)
{
    return https->ops->ask(https->self, request, arena, ret_answer, err);
}

#endif
