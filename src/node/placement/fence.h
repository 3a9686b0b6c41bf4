#ifndef BH_NODE_PLACEMENT_FENCE_H
#define BH_NODE_PLACEMENT_FENCE_H

#include "node/core/node.h"

/* GPUs that take no new lease because an isolation check of a lease failed there, by evidence
 * that no job can make (node/sandbox/evidence.h).  Leases that run on them run on.  Each entry names the
 * job that it was found at; a job is the cause of one at most.  Memory of the node program alone;
 * its next start tries the whole node. */
enum { BH_FENCES_MAX = 64, BH_FENCE_JOBS_MAX = 256 };

struct bh_fences {
    struct {
        char gpu[BH_UUID_MAX], why[200];
    } entries[BH_FENCES_MAX];
    uint32_t count;
    uint64_t jobs[BH_FENCE_JOBS_MAX]; /* that were the cause of one; the oldest make room */
    uint64_t job_count;               /* ever */
};

/* Close a GPU for a finding at a job.  False: the job was the cause of one before, or there is no
 * room; nothing is closed then. */
bool bh_fence_add(struct bh_fences *fences, const char *gpu, uint64_t job, const char *why);

/* Why the GPU is closed, or NULL. */
const char *bh_fence_find(const struct bh_fences *fences, const char *gpu);

/* A requested check of the whole node passed: no GPU stays closed.  The cause of each fence stays known. */
void bh_fence_lift(struct bh_fences *fences);

#endif
