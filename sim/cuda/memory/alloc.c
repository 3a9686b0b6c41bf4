/* cuMemAlloc and its kin. */
#include "sim/cuda/memory/alloc.h"

#include <stdlib.h>

#include "sim/cuda/work/graph.h"
#include "sim/cuda/memory/pool.h"
#include "sim/machine/session.h"

#define CHUNKS_TRIED 32
#define PITCH_BYTES ((size_t)512)

/* ---- chunks of small allocations ---- */

static void
alloc_unlink_chunk(struct CUctx_st *context, struct sim_region *chunk)
{
    if (chunk->elder != NULL)
        chunk->elder->sibling = chunk->sibling;
    else
        context->chunks[chunk->low] = chunk->sibling;
    if (chunk->sibling != NULL)
        chunk->sibling->elder = chunk->elder;
    chunk->elder = chunk->sibling = NULL;
}

static void
alloc_link_chunk(struct CUctx_st *context, struct sim_region *chunk)
{
    chunk->sibling = context->chunks[chunk->low];
    if (chunk->sibling != NULL)
        chunk->sibling->elder = chunk;
    context->chunks[chunk->low] = chunk;
}

static bool
alloc_take_from(struct sim_region *chunk, size_t bytes, uint64_t *ret_address)
{
    size_t offset;

    if (!sim_heap_take(chunk->heap, bytes, &offset))
        return false;
    *ret_address = chunk->address + offset;
    return true;
}

static CUresult
alloc_new_region(struct CUctx_st *context, enum sim_region_kind kind,
                 const struct sim_region_request *request, struct sim_region **ret_region)
{
    struct sim_region *region = sim_region_new(kind, request);
    CUresult rc;

    if (region == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = sim_physical_new(context->memory, request->bytes, 0, &region->physical);
    if (rc != CUDA_SUCCESS) {
        sim_region_free(region);
        return rc;
    }
    region->context = context;
    *ret_region = region;
    return CUDA_SUCCESS;
}

/* A chunk with room lies in front: one that something was freed in goes there. */
static CUresult
alloc_small(struct CUctx_st *context, size_t bytes, bool low, uint64_t *ret_address)
{
    const struct sim_region_request request = { .bytes = SIM_PAGE_BYTES, .low = low };
    struct sim_region *chunk = context->chunks[low];
    CUresult rc;

    for (unsigned i = 0; chunk != NULL && i < CHUNKS_TRIED; i++, chunk = chunk->sibling)
        if (alloc_take_from(chunk, bytes, ret_address))
            return CUDA_SUCCESS;
    rc = alloc_new_region(context, SIM_REGION_CHUNK, &request, &chunk);
    if (rc == CUDA_SUCCESS) {
        chunk->heap = sim_heap_new(SIM_PAGE_BYTES);
        if (chunk->heap != NULL && alloc_take_from(chunk, bytes, ret_address)) {
            alloc_link_chunk(context, chunk);
            return CUDA_SUCCESS;
        }
        sim_region_free(chunk);
    }
    for (chunk = context->chunks[low]; chunk != NULL; chunk = chunk->sibling)
        if (alloc_take_from(chunk, bytes, ret_address))
            return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
alloc_free_small(struct sim_region *chunk, uint64_t address)
{
    if (sim_heap_release(chunk->heap, address - chunk->address) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    alloc_unlink_chunk(chunk->context, chunk);
    if (sim_heap_used(chunk->heap) == 0)
        sim_region_free(chunk);
    else
        alloc_link_chunk(chunk->context, chunk);
    return CUDA_SUCCESS;
}

/* ---- all of them ---- */

CUresult
sim_alloc(struct CUctx_st *context, size_t bytes, bool low, uint64_t *ret_address)
{
    const struct sim_region_request request = { .bytes = bytes, .low = low };
    struct sim_region *region;
    CUresult rc;

    if (bytes < SIM_CUDA_WHOLE)
        return alloc_small(context, bytes, low, ret_address);
    rc = alloc_new_region(context, SIM_REGION_LINEAR, &request, &region);
    if (rc == CUDA_SUCCESS)
        *ret_address = region->address;
    return rc;
}

CUresult
sim_alloc_free(uint64_t address)
{
    struct sim_region *region = sim_region_find(address);

    if (region == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (region->kind) {
    case SIM_REGION_LINEAR:
    case SIM_REGION_MANAGED:
    case SIM_REGION_EXTERNAL:
        if (address != region->address)
            return CUDA_ERROR_INVALID_VALUE;
        sim_region_free(region);
        return CUDA_SUCCESS;
    case SIM_REGION_CHUNK:
        return alloc_free_small(region, address);
    case SIM_REGION_SEGMENT:
        return sim_pool_free(region, address);
    case SIM_REGION_RESERVED:
        return sim_graph_memory_free_locked(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case SIM_REGION_IMPORTED:
        break;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

bool
sim_alloc_find(uint64_t address, struct sim_range *ret_range)
{
    struct sim_region *region = sim_region_find(address);
    size_t offset = 0, bytes;

    if (region == NULL || region->kind == SIM_REGION_RESERVED)
        return false;
    bytes = region->bytes;
    if (region->heap != NULL && !sim_heap_find(region->heap, address - region->address, &offset, &bytes))
        return false;
    if (address - region->address - offset >= bytes)
        return false;
    *ret_range = (struct sim_range){ region, region->address + offset, bytes };
    return true;
}

static bool
alloc_is_of(const struct sim_region *region, const void *context)
{
    return region->context == context;
}

void
sim_alloc_drop(struct CUctx_st *context)
{
    sim_region_drop(alloc_is_of, context);
    context->chunks[0] = context->chunks[1] = NULL;
}

/* ---- the calls ---- */

static CUresult
allocate(CUdeviceptr *address, size_t bytes, bool low)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);
    uint64_t start = 0;

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_capture_check();
    if (rc != CUDA_SUCCESS)
        return rc;
    if (address == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = sim_alloc(context, bytes, low, &start);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *address = start;
    return rc;
}

CUDA_ROW(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes), allocate(address, bytes, false))

CUDA_API CUresult
cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    CUdeviceptr start;
    CUresult rc = allocate(address == NULL ? NULL : &start, bytes, true);

    if (rc == CUDA_SUCCESS)
        *address = (CUdeviceptr_v1)start;
    return rc;
}

static CUresult
allocate_rows(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, bool low)
{
    size_t row;
    CUresult rc;

    if (pitch == NULL || width == 0 || height == 0 || width > SIZE_MAX - PITCH_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
    if (row > SIZE_MAX / height)
        return CUDA_ERROR_INVALID_VALUE;
    rc = allocate(address, row * height, low);
    if (rc == CUDA_SUCCESS)
        *pitch = row;
    return rc;
}

static bool
alloc_is_element(unsigned bytes)
{
    return bytes == 4 || bytes == 8 || bytes == 16;
}

CUDA_API CUresult
cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width_bytes, size_t height,
                   unsigned int element_bytes)
{
    return alloc_is_element(element_bytes) ? allocate_rows(address, pitch, width_bytes, height, false)
                                           : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult
cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width_bytes, unsigned int height,
                unsigned int element_bytes)
{
    CUdeviceptr start;
    size_t row;
    CUresult rc;

    if (!alloc_is_element(element_bytes) || address == NULL || pitch == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    rc = allocate_rows(&start, &row, width_bytes, height, true);
    if (rc != CUDA_SUCCESS)
        return rc;
    *address = (CUdeviceptr_v1)start;
    *pitch = (unsigned)row;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemFree_v2(CUdeviceptr address)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_capture_check();
    if (rc != CUDA_SUCCESS || address == 0)
        return rc;
    sim_memory_lock();
    rc = sim_alloc_free(address);
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuMemFree, (CUdeviceptr_v1 address), cuMemFree_v2(address))

CUDA_API CUresult
cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    struct sim_range range;
    bool found;

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    found = sim_alloc_find(address, &range);
    sim_memory_unlock();
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    if (base != NULL)
        *base = range.start;
    if (bytes != NULL)
        *bytes = range.bytes;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 address)
{
    CUdeviceptr start = 0;
    size_t size = 0;
    CUresult rc = cuMemGetAddressRange_v2(&start, &size, address);

    if (rc == CUDA_SUCCESS && base != NULL)
        *base = (CUdeviceptr_v1)start;
    if (rc == CUDA_SUCCESS && bytes != NULL)
        *bytes = (unsigned)size;
    return rc;
}

/* ---- how much there is ---- */

CUDA_API CUresult
cuMemGetInfo_v2(size_t *free_size, size_t *total)
{
    struct sim_cuda_device device;
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    uint64_t bytes, used;

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_device(context->device, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (free_size == NULL || total == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    used = sim_ledger_snapshot(context->memory->vram, NULL) * SIM_PAGE_BYTES;
    sim_memory_unlock();
    bytes = sim_cuda_bytes(&device);
    *free_size = (size_t)(used < bytes ? bytes / SIM_PAGE_BYTES * SIM_PAGE_BYTES - used : 0);
    *total = (size_t)bytes;
    return CUDA_SUCCESS;
}

static unsigned
alloc_clamp(size_t bytes)
{
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

CUDA_API CUresult
cuMemGetInfo(unsigned int *free_size, unsigned int *total)
{
    size_t left, all;
    CUresult rc = cuMemGetInfo_v2(&left, &all);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (free_size == NULL || total == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *free_size = alloc_clamp(left);
    *total = alloc_clamp(all);
    return CUDA_SUCCESS;
}
