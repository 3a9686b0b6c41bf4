#ifndef BH_API_METRICS_SERIES_OBJECT_H
#define BH_API_METRICS_SERIES_OBJECT_H

#include "api/request/call.h"

/* What series are asked of. */
struct bh_series_subject {
    struct bh_series_object object;
    uint64_t since_ns; /* what is older is not its own */
    uint64_t ended_ns; /* 0: it has not */
};

/* Read "gpu/UUID", "node/NAME", "job/7", "tenant/PATH" or "site", and find it.
 *   BH_INVALID    it is none of these
 *   BH_NOT_FOUND  there is none, or none that the caller may see: the same words
 *   BH_DENIED     the site, for a caller that sees only tenants */
BH_MUST_USE bh_rc bh_series_subject_find(struct bh_call *call, const char *text,
                                         struct bh_series_subject *ret_subject, struct bh_err *err);

#endif
