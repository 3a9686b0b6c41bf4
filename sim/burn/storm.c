/* A thread that allocates and frees, as quickly as it goes. */
#include "sim/burn/storm.h"

#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define ARRAY_WIDTH 16384u
#define ARRAY_DEPTH 0

/* What was allocated, whatever kind it is of. */
union memory {
    CUdeviceptr address;
    void *host;
    CUmemGenericAllocationHandle handle;
    CUarray array;
};

static CUresult
storm_allocate(struct burn *burn, size_t bytes, union memory *memory)
{
    const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)burn->plan->device } };
    const CUDA_ARRAY3D_DESCRIPTOR shape = { .Width = ARRAY_WIDTH,
                                            .Height = bytes / ARRAY_WIDTH,
                                            .Depth = ARRAY_DEPTH,
                                            .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                            .NumChannels = 1 };
    const struct burn_driver *driver = &burn->driver;

    switch (burn->plan->storm) {
    case BURN_STORM_MANAGED:
        return driver->cuMemAllocManaged(&memory->address, bytes, 1);
    case BURN_STORM_ASYNC:
        return driver->cuMemAllocAsync(&memory->address, bytes, NULL);
    case BURN_STORM_HOST:
        return driver->cuMemHostAlloc(&memory->host, bytes, 0);
    case BURN_STORM_VMM:
        return driver->cuMemCreate(&memory->handle, (bytes + 2 * MIB - 1) / (2 * MIB) * 2 * MIB, &prop, 0);
    case BURN_STORM_ARRAY:
        return driver->cuArray3DCreate(&memory->array, &shape);
    case BURN_STORM_NONE:
    case BURN_STORM_LINEAR:
        break;
    }
    return driver->cuMemAlloc(&memory->address, bytes);
}

static CUresult
storm_release(struct burn *burn, const union memory *memory)
{
    const struct burn_driver *driver = &burn->driver;

    switch (burn->plan->storm) {
    case BURN_STORM_ASYNC:
        return driver->cuMemFreeAsync(memory->address, NULL);
    case BURN_STORM_HOST:
        return driver->cuMemFreeHost(memory->host);
    case BURN_STORM_VMM:
        return driver->cuMemRelease(memory->handle);
    case BURN_STORM_ARRAY:
        return driver->cuArrayDestroy(memory->array);
    case BURN_STORM_NONE:
    case BURN_STORM_LINEAR:
    case BURN_STORM_MANAGED:
        break;
    }
    return driver->cuMemFree(memory->address);
}

/* A full GPU is no error: it is counted. */
void *
bh_burn_storm(void *self)
{
    struct burn *burn = self;
    uint64_t live = burn->plan->storm_live, first = 0, next = 0;
    union memory *memory = calloc(live, sizeof(*memory));

    if (memory == NULL)
        bh_burn_must(burn, "calloc", CUDA_ERROR_OUT_OF_MEMORY);
    BURN_MUST(burn, cuCtxSetCurrent, burn->context);
    while (!bh_burn_is_over(burn)) {
        CUresult rc = storm_allocate(burn, burn->plan->storm_mib * MIB, &memory[next % live]);

        if (rc == CUDA_SUCCESS) {
            next++;
            burn->allocations++;
        } else if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
            burn->refused++;
        } else {
            bh_burn_must(burn, bh_burn_storm_name(burn->plan->storm), rc);
        }
        if (next - first == live || (rc != CUDA_SUCCESS && first < next))
            bh_burn_must(burn, "free", storm_release(burn, &memory[first++ % live]));
    }
    while (first < next)
        bh_burn_must(burn, "free", storm_release(burn, &memory[first++ % live]));
    free(memory);
    return NULL;
}
