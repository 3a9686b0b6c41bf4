#ifndef BH_NODE_SANDBOX_EVIDENCE_H
#define BH_NODE_SANDBOX_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/isolation.h"

/* What follows from an isolation check: one table (evidence.c), pure.
 *
 * What a tenant can write is never evidence against others.  So three things count: what was checked, the
 * result, and who could have caused that result. */

enum bh_evidence_of {
    BH_EVIDENCE_PROBE, /* the node's own sandbox: nothing of a tenant's runs in it */
    BH_EVIDENCE_START, /* a job's sandbox, before its command begins */
    BH_EVIDENCE_LEASE, /* that of a running job */
    BH_EVIDENCE_OFS
};

/* Who could have caused the result. */
enum bh_evidence_by {
    BH_EVIDENCE_BY_JOB,  /* texts and files of the job's own, and what depends on them */
    BH_EVIDENCE_BY_HOST, /* kernel and driver, as seen from outside: no job writes that */
    BH_EVIDENCE_BYS
};

struct bh_evidence_remedy {
    bool ends;        /* the job does not begin, or is stopped at once */
    bool unverified;  /* the lease's grade is not verified from now on */
    bool retry;       /* checked again without being asked for */
    bool closes_gpu;  /* one GPU of the lease's takes no new lease; once for each job */
    bool closes_node; /* no GPU of the node does.  Leases that run there run on */
};

const struct bh_evidence_remedy *bh_evidence_remedy(enum bh_evidence_of of, enum bh_check_result result,
                                                    enum bh_evidence_by by);

/* A lease that is not verified is checked this many more times.  Then it is stopped where its boundary
 * requires the isolation level; otherwise it runs on unverified until a check is requested. */
enum { BH_EVIDENCE_RECHECKS = 3 };

enum bh_evidence_next { BH_EVIDENCE_RECHECK, BH_EVIDENCE_STOP, BH_EVIDENCE_LEAVE };
enum bh_evidence_next bh_evidence_next(uint32_t rechecks_made, bool boundary_needs_grade);

/* Whether the boundary (enum bh_boundary) needs the grade verified: hard and stronger, and one
 * that is not known. */
bool bh_evidence_is_needed(uint32_t boundary);

#endif
