#ifndef BH_FETCH_CHILD_H
#define BH_FETCH_CHILD_H

#include "base/err.h"
#include "fetch/settings.h"

/* The inside of bulkhead-fetch: what it does with its socket. */

enum { BH_FETCH_TRANSFERS_MAX = 32 }; /* under way at a time */

/* Say on `fd` why this process cannot be asked. */
void bh_fetch_child_report(int fd, const struct bh_err *why);

/* Say that it is ready, then ask what comes on `fd` until the other end closes it.  BH_OK:
 * that was so; BH_INVALID: something else came; BH_IO. */
BH_MUST_USE bh_rc bh_fetch_child_serve(int fd, const struct bh_fetch_settings *settings, struct bh_err *err);

#endif
