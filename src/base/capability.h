#ifndef BH_BASE_CAPABILITY_H
#define BH_BASE_CAPABILITY_H

#include <stddef.h>

#include "base/attr.h"
#include "base/err.h"

/* Giving up capabilities (capabilities(7)), for good.  Of the calling thread; call it before
 * there are others. */

/* Take all but `kept` out of the bounding set, so that no program that is started can have them.
 * Needs CAP_SETPCAP.  BH_IO: the kernel refuses. */
BH_MUST_USE bh_rc bh_capability_bound(const int *kept, size_t count, struct bh_err *err);

/* Keep no other than `kept`, permitted and effective, and let no program that is started inherit
 * one.  BH_IO: the kernel refuses, as it does when one of `kept` is not there. */
BH_MUST_USE bh_rc bh_capability_keep(const int *kept, size_t count, struct bh_err *err);

#endif
