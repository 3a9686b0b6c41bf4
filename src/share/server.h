#ifndef BH_SHARE_SERVER_H
#define BH_SHARE_SERVER_H

#include "base/err.h"
#include "share/time_slices.h"

/* bulkhead-share: serve the leases that bulkhead-node names on `control`, a connected stream
 * socket that it owns from now on, until that is closed.  BH_UNAVAILABLE: it was; BH_IO,
 * BH_INVALID: it sent what is no message. */
BH_MUST_USE bh_rc bh_share_serve(int control, const struct bh_time_slices_options *options,
                                 struct bh_err *err);

#endif
