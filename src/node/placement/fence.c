#include "node/placement/fence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

const char *
bh_fence_find(const struct bh_fences *fences, const char *gpu)
{
    BH_ASSERT(fences->count <= BH_COUNT(fences->entries));
    for (uint32_t i = 0; i < fences->count; i++)
        if (strcmp(fences->entries[i].gpu, gpu) == 0)
            return fences->entries[i].why;
    return NULL;
}

static bool
fence_is_known(const struct bh_fences *fences, uint64_t job)
{
    uint64_t known = fences->job_count < BH_FENCE_JOBS_MAX ? fences->job_count : BH_FENCE_JOBS_MAX;

    for (uint64_t i = 0; i < known; i++)
        if (fences->jobs[i] == job)
            return true;
    return false;
}

bool
bh_fence_add(struct bh_fences *fences, const char *gpu, uint64_t job, const char *why)
{
    BH_ASSERT(*gpu && fences->count <= fences->job_count);
    if (fence_is_known(fences, job) || (!bh_fence_find(fences, gpu) && fences->count == BH_FENCES_MAX))
        return false;
    fences->jobs[fences->job_count++ % BH_FENCE_JOBS_MAX] = job;
    if (bh_fence_find(fences, gpu))
        return true;
    snprintf(fences->entries[fences->count].gpu, BH_UUID_MAX, "%s", gpu);
    snprintf(fences->entries[fences->count].why, sizeof fences->entries[0].why, "job %" PRIu64 ": %.170s",
             job, why);
    fences->count++;
    return true;
}

void
bh_fence_lift(struct bh_fences *fences)
{
    fences->count = 0;
}
