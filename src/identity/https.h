#ifndef BH_IDENTITY_HTTPS_H
#define BH_IDENTITY_HTTPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the state machines here want from the network.  They never touch it: they say
 * what to ask, and are given the answer.  Whoever asks follows no redirect, waits at most
 * 10 s, takes at most BH_HTTPS_BYTES_MAX, and checks the server's certificate. */

enum { BH_HTTPS_BYTES_MAX = 256 * 1024 };

/* Texts live where the function that fills it says. */
struct bh_https_request {
    bool post; /* else GET; a body is a form */
    const char *url;
    const char *authorization; /* NULL: none */
    const char *body;          /* NULL: none */
};

struct bh_https_answer {
    uint32_t status;  /* 0: no answer came */
    const char *body; /* NUL-terminated; "" when there is none */
    size_t length;
    uint32_t max_age_s; /* Cache-Control's max-age; 0: none */
};

#endif
