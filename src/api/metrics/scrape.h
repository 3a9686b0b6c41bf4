#ifndef BH_API_METRICS_SCRAPE_H
#define BH_API_METRICS_SCRAPE_H

#include "api/documents/carried.h"
#include "api/documents/tally.h"
#include "api/jobs/job_notices.h"
#include "api/request/facts.h"

/* The content of a scrape of metrics, gathered from the owner thread, the nodes' reports and the store.
 * Folder-internal. */

struct bh_scrape_tenant {
    bool visible; /* to the caller, and not gone */
    bool metered; /* it has a row of the ledger that the caller may see */
    uint32_t jobs[BH_JOB_STATES];
    uint32_t leases[BH_GRADES];
    uint64_t compute, memory; /* parts that its leases hold */
    uint64_t oldest_ns;       /* submission of the pending job that is oldest; 0: none pends */
    bh_part_ns compute_ns, memory_ns;
    struct bh_msg_carried carried;   /* of leases that ended */
    uint64_t used, limit, guarantee; /* GPU-equivalents in parts, with the subtree; BH_UNLIMITED; 0: none */
    struct bh_tenant_quota quotas[BH_TENANT_QUOTAS_MAX]; /* of SKUs and models, likewise */
    uint64_t quota_used[BH_TENANT_QUOTAS_MAX];
    uint32_t quota_count;
};

/* How many of a tenant's pending jobs wait for one reason. */
struct bh_scrape_reason {
    uint32_t tenant; /* place in `tenants` */
    uint32_t jobs;
    char name[32];
};

/* Who holds a MIG instance (by its partition) or a whole GPU (by its id) alone. */
struct bh_scrape_holder {
    uint64_t of, job;
    uint32_t tenant; /* place in `tenants` */
};

/* What a job has of its shares of GPUs; no cap: it has none. */
struct bh_scrape_share {
    uint64_t cap_bytes, charged_bytes, driver_bytes, slice_ns;
};

/* A job that has leases. */
struct bh_scrape_job {
    uint64_t job;
    uint32_t tenant; /* place in `tenants` */
    bh_sku_id sku;
    bh_principal_id principal;
    enum bh_grade grade;
    enum bh_job_kind kind;
    enum bh_priority priority;
    bool sampled, networked;                       /* nodes reported it */
    uint64_t cpu_ns, memory_bytes, gpu_memory_mib; /* of its leases together */
    struct bh_scrape_share share;
    uint64_t notices[BH_JOB_NOTICES];   /* how often, by kind */
    uint32_t busy_percent, busy_leases; /* sum over the leases of which it is known; how many */
    struct bh_msg_carried carried;      /* of those that ended, too */
};

struct bh_scrape_lease {
    uint64_t lease, job;
};

struct bh_scrape {
    const struct bh_call *call;
    bool all;         /* the caller sees the whole site */
    const char *node; /* only what stands there; NULL: all */
    uint64_t now_ns;
    struct bh_scrape_tenant *tenants;            /* beside call->dir->tenants */
    struct bh_scrape_job *jobs;                  /* ascending */
    struct bh_scrape_lease *leases;              /* ascending */
    struct bh_scrape_reason *reasons;            /* by tenant */
    struct bh_scrape_holder *instances, *wholes; /* ascending */
    uint32_t job_count, job_capacity, lease_count, lease_capacity, reason_count, reason_capacity;
    uint32_t instance_count, instance_capacity, whole_count, whole_capacity;
    uint32_t cursor; /* of the walk over jobs, which has several turns */
    bool walked;
    struct bh_gpu_view *gpus; /* beside call->dir->gpus; gpu.v 0: unknown */
    struct bh_ledger_view ledger;
    struct bh_facts facts;
    uint64_t tally[BH_TALLIES];
    uint64_t records; /* of the audit log */
};

/* NULL: no job holds it, or not alone. */
const struct bh_scrape_holder *bh_scrape_holder_of_instance(const struct bh_scrape *scrape,
                                                            uint64_t partition);
const struct bh_scrape_holder *bh_scrape_holder_of_gpu(const struct bh_scrape *scrape, bh_gpu_id gpu);

/* Results of the owner's ask and of the store; bh_scrape_fini in any case. */
BH_MUST_USE bh_rc bh_scrape_load(const struct bh_call *call, struct bh_scrape *ret_scrape,
                                 struct bh_err *err);
void bh_scrape_fini(struct bh_scrape *scrape);
static inline void
bh_scrape_fini_auto(struct bh_scrape *scrape)
{
    bh_scrape_fini(scrape);
}

#endif
