#ifndef BH_WEB_WEB_H
#define BH_WEB_WEB_H

#include "api/request/owner.h"
#include "base/time.h"
#include "ports/crypto.h"
#include "ports/http.h"

/* The pages, served: tables/pages.tbl says which.
 *
 * They are a client of the API like any other.  What a page needs it asks the API for in
 * this process, with the session of the browser's cookie as the bearer, so that nothing is
 * decided, limited or recorded twice or differently.  A browser's session is in a
 * cookie that scripts cannot read and that goes to this host over TLS alone. */
struct bh_web;

struct bh_web_options {
    bh_http_handler api; /* answers what is no page, and the pages' own questions */
    void *api_self;
    const struct bh_crypto_ops *crypto;
    const char *site;             /* its name, in the header of every page */
    bh_ns (*now)(void);           /* NULL: the wall clock */
    const struct bh_owner *owner; /* whose changes pages follow, copied; NULL: they stay as they are */
};

/* The options are copied; what they point to outlives the pages.  Owned by the caller. */
BH_MUST_USE struct bh_web *bh_web_new(const struct bh_web_options *options);
void bh_web_free(struct bh_web *web);

/* End the streams of live pages, so that the server can stop; NULL is fine. */
void bh_web_stop(struct bh_web *web);

/* A bh_http_handler for HTTPS; `self` is the bh_web.  Thread-safe. */
void bh_web_handle(void *self, const struct bh_request *request, struct bh_reply *reply);

#endif
