#ifndef BH_API_REQUEST_MOMENT_H
#define BH_API_REQUEST_MOMENT_H

#include "api/request/call.h"

/* The moment that the query parameter `name` says: itself, or a span before now.  NULL leaves it as it is.
 * BH_INVALID. */
BH_MUST_USE bh_rc bh_moment_read(const struct bh_call *call, const char *name, const char *text,
                                 uint64_t *ret_ns, struct bh_err *err);

#endif
