#ifndef BH_DAEMON_SERIES_OBSERVED_JOBS_H
#define BH_DAEMON_SERIES_OBSERVED_JOBS_H

#include "api/request/facts.h"
#include "daemon/series/observation.h"

/* What jobs use: the sums of their leases' samples. */

/* What was last known of a lease's CPU time. */
struct bh_seen_lease {
    uint64_t lease, cpu_ns, at_ns;
};

struct bh_seen_leases {
    struct bh_seen_lease *items; /* by lease */
    uint32_t count, capacity;
};

/* What nodes reported, and which of the reports are of now. */
struct bh_observed_reports {
    const struct bh_owner *owner;
    const struct bh_facts *facts;
    const bool *fresh; /* beside facts->nodes */
};

/* The samples of leases in fresh reports, by job.  Results of bh_owner_ops.ask. */
BH_MUST_USE bh_rc bh_observed_jobs_put(const struct bh_observed_reports *reports, struct bh_seen_leases *seen,
                                       struct bh_observation *observation, struct bh_err *err);

#endif
