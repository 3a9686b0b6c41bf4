#ifndef BH_HTTP_SERVER_HEAD_H
#define BH_HTTP_SERVER_HEAD_H

#include <stdbool.h>

#include <microhttpd.h>

/* Whether a request's head is written in the one unambiguous way (RFC 9112): names
 * are tokens right before their colon, lines end with CR LF, none continues in the next one, nothing
 * holds a NUL or another control character, there is one Host (HTTP/1.0 may leave it out), no
 * second field of those that have one value (Authorization, Idempotency-Key), and at most one thing that says
 * how long the body is: a Content-Length, or Transfer-Encoding: chunked and no other coding.  Where two
 * readers of a connection could differ, one of them can be deceived.
 *
 * `method` and `version` are what the access handler was given: they lie where the request line
 * was. */
struct bh_head_line {
    const char *method;              /* likewise */
    const char *target, *target_end; /* where the target was before it was taken apart: its first
                                    byte, and the zero behind it */
    const char *version;
};
bool bh_head_is_strict(struct MHD_Connection *mhd, const struct bh_head_line *line);

#endif
