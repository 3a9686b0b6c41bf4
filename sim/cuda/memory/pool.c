#include "sim/cuda/memory/pool.h"

#include <stdlib.h>
#include <string.h>

#define POOL_MAGIC 0x4248504fu
#define POOLS_MAX 256
#define SEGMENT_BYTES ((size_t)32 << 20)

struct CUmemPoolHandle_st {
    uint32_t magic;
    bool preset, doomed, imported; /* the device's own; destroyed, but still in use */
    CUmemLocation location;
    CUmemAllocationHandleType handle_types;
    size_t most; /* bytes that it may take; 0: all */
    uint64_t threshold;
    uint64_t reserved, reserved_high, used, used_high;
    uint64_t reuse[4]; /* the three reuse attributes, by number */
    CUmemAccess_flags access[SIM_CUDA_DEVICES_MAX];
    struct sim_region *segments;
};

static struct {
    struct CUmemPoolHandle_st *pool[POOLS_MAX];
    CUmemoryPool preset[SIM_CUDA_DEVICES_MAX], current[SIM_CUDA_DEVICES_MAX];
    CUmemoryPool host;
} pools;

/* ---- segments, under the lock ---- */

static void
pool_link_segment(struct sim_region *segment)
{
    CUmemoryPool pool = segment->pool;

    segment->sibling = pool->segments;
    if (segment->sibling != NULL)
        segment->sibling->elder = segment;
    pool->segments = segment;
}

static void
pool_free_segment(struct sim_region *segment)
{
    CUmemoryPool pool = segment->pool;

    if (segment->elder != NULL)
        segment->elder->sibling = segment->sibling;
    else
        pool->segments = segment->sibling;
    if (segment->sibling != NULL)
        segment->sibling->elder = segment->elder;
    pool->reserved -= segment->span;
    sim_region_free(segment);
}

static CUresult
pool_back(CUmemoryPool pool, struct sim_region *segment)
{
    struct sim_memory *memory;
    CUresult rc;

    if (pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        rc = sim_physical_new_host(segment->span, &segment->physical);
        if (rc == CUDA_SUCCESS)
            segment->readable = sim_space_show(segment->address, segment->span, segment->physical->fd, 0);
        return rc == CUDA_SUCCESS && !segment->readable ? CUDA_ERROR_OUT_OF_MEMORY : rc;
    }
    rc = sim_memory_open(pool->location.id, &memory);
    return rc == CUDA_SUCCESS ? sim_physical_new(memory, segment->span, 0, &segment->physical) : rc;
}

static CUresult
pool_grow(CUmemoryPool pool, size_t bytes)
{
    const struct sim_region_request request = { .bytes = bytes };
    struct sim_region *segment;
    CUresult rc;

    if (pool->most != 0 && bytes > pool->most - pool->reserved)
        return CUDA_ERROR_OUT_OF_MEMORY;
    segment = sim_region_new(SIM_REGION_SEGMENT, &request);
    if (segment == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = pool_back(pool, segment);
    segment->heap = rc == CUDA_SUCCESS ? sim_heap_new(segment->span) : NULL;
    if (segment->heap == NULL) {
        sim_region_free(segment);
        return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
    }
    segment->pool = pool;
    pool_link_segment(segment);
    pool->reserved += segment->span;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
}

/* Segments that nothing is in go until no more than `keep` is reserved. */
static void
pool_trim(CUmemoryPool pool, uint64_t keep)
{
    for (struct sim_region *segment = pool->segments, *next; segment != NULL; segment = next) {
        next = segment->sibling;
        if (pool->reserved > keep && sim_heap_used(segment->heap) == 0)
            pool_free_segment(segment);
    }
}

static void
forget_pool(CUmemoryPool pool)
{
    for (unsigned i = 0; i < POOLS_MAX; i++)
        if (pools.pool[i] == pool)
            pools.pool[i] = NULL;
    pool->magic = 0;
    free(pool);
}

static void
pool_trim_all(bool everything)
{
    for (unsigned i = 0; i < POOLS_MAX; i++) {
        CUmemoryPool pool = pools.pool[i];

        if (pool == NULL)
            continue;
        pool_trim(pool, everything || pool->doomed ? 0 : pool->threshold);
        if (pool->doomed && pool->segments == NULL)
            forget_pool(pool);
    }
}

void
sim_pool_synchronized(void)
{
    sim_memory_lock();
    pool_trim_all(false);
    sim_memory_unlock();
}

void
sim_pool_drop(CUdevice device)
{
    for (unsigned i = 0; i < POOLS_MAX; i++) {
        CUmemoryPool pool = pools.pool[i];

        if (pool == NULL || pool->location.id != device || pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            continue;
        while (pool->segments != NULL)
            pool_free_segment(pool->segments);
        pool->used = 0;
        if (pool->doomed)
            forget_pool(pool);
    }
}

/* ---- parts of segments ---- */

static bool
pool_take_from(CUmemoryPool pool, size_t bytes, uint64_t *ret_address)
{
    size_t offset;

    for (struct sim_region *segment = pool->segments; segment != NULL; segment = segment->sibling)
        if (sim_heap_take(segment->heap, bytes, &offset)) {
            *ret_address = segment->address + offset;
            return true;
        }
    return false;
}

static size_t
pool_round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* A pool grows by whole units; where these are not free, by what is needed; where that is
 * not, others give back what they hold without need. */
static CUresult
pool_take(CUmemoryPool pool, size_t bytes, uint64_t *ret_address)
{
    CUresult rc = CUDA_SUCCESS;

    if (pool_take_from(pool, bytes, ret_address))
        return CUDA_SUCCESS;
    if (bytes > SIZE_MAX - SEGMENT_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = pool_grow(pool, pool_round_up(bytes, SEGMENT_BYTES));
    if (rc == CUDA_ERROR_OUT_OF_MEMORY)
        rc = pool_grow(pool, pool_round_up(bytes, SIM_PAGE_BYTES));
    if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
        pool_trim_all(true);
        rc = pool_grow(pool, pool_round_up(bytes, SIM_PAGE_BYTES));
    }
    if (rc == CUDA_SUCCESS && !pool_take_from(pool, bytes, ret_address))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    return rc;
}

CUresult
sim_pool_take(CUmemoryPool pool, size_t bytes, uint64_t *ret_address)
{
    CUresult rc = pool->imported ? CUDA_ERROR_NOT_PERMITTED : pool_take(pool, bytes, ret_address);

    if (rc != CUDA_SUCCESS)
        return rc;
    pool->used += pool_round_up(bytes, SIM_HEAP_UNIT);
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return rc;
}

CUresult
sim_pool_free(struct sim_region *segment, uint64_t address)
{
    CUmemoryPool pool = segment->pool;
    size_t bytes = sim_heap_release(segment->heap, address - segment->address);

    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    pool->used -= bytes;
    if (pool->doomed)
        pool_trim_all(false);
    return CUDA_SUCCESS;
}

/* ---- pools ---- */

static bool
is_pool(CUmemoryPool pool)
{
    for (unsigned i = 0; pool != NULL && i < POOLS_MAX; i++)
        if (pools.pool[i] == pool)
            return pool->magic == POOL_MAGIC && !pool->doomed;
    return false;
}

static CUresult
new_pool(const CUmemPoolProps *props, CUmemoryPool *ret_pool)
{
    CUmemoryPool pool = calloc(1, sizeof(*pool));

    if (pool == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->magic = POOL_MAGIC;
    pool->location = props->location;
    pool->handle_types = props->handleTypes;
    pool->most = props->maxSize;
    for (unsigned i = 0; i < 4; i++)
        pool->reuse[i] = 1;
    if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        pool->access[props->location.id] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    for (unsigned i = 0; i < POOLS_MAX; i++)
        if (pools.pool[i] == NULL) {
            pools.pool[i] = pool;
            *ret_pool = pool;
            return CUDA_SUCCESS;
        }
    free(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The device's own pool; under the lock. */
static CUresult
preset_pool(CUdevice device, CUmemoryPool *ret_pool)
{
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);

    if (rc == CUDA_SUCCESS && pools.preset[device] == NULL) {
        rc = new_pool(&props, &pools.preset[device]);
        if (rc == CUDA_SUCCESS)
            pools.preset[device]->preset = true;
    }
    if (rc == CUDA_SUCCESS)
        *ret_pool = pools.preset[device];
    return rc;
}

static CUresult
current_pool(CUdevice device, CUmemoryPool *ret_pool)
{
    CUresult rc = preset_pool(device, ret_pool);

    if (rc == CUDA_SUCCESS && pools.current[device] != NULL)
        *ret_pool = pools.current[device];
    return rc;
}

static CUresult
host_pool(CUmemoryPool *ret_pool)
{
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { CU_MEM_LOCATION_TYPE_HOST, 0 } };
    CUresult rc = CUDA_SUCCESS;

    if (pools.host == NULL)
        rc = new_pool(&props, &pools.host);
    if (rc == CUDA_SUCCESS)
        *ret_pool = pools.host;
    return rc;
}

bool
sim_pool_is_exportable(CUmemoryPool pool)
{
    return is_pool(pool) && !pool->imported && pool->location.type == CU_MEM_LOCATION_TYPE_DEVICE
           && (pool->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
}

bool
sim_pool_is_imported(CUmemoryPool pool)
{
    return is_pool(pool) && pool->imported;
}

CUresult
sim_pool_find(CUmemoryPool handle, CUdevice device, CUmemoryPool *ret_pool)
{
    if (handle == NULL)
        return current_pool(device, ret_pool);
    if (!is_pool(handle))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_pool = handle;
    return CUDA_SUCCESS;
}

CUdevice
sim_pool_find_device(CUmemoryPool handle, CUdevice device)
{
    return is_pool(handle) && handle->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? handle->location.id
                                                                                   : device;
}

CUdevice
sim_pool_device(CUmemoryPool pool)
{
    return pool->location.id;
}

CUresult
sim_pool_import(CUdevice device, CUmemoryPool *ret_pool)
{
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
    CUresult rc = new_pool(&props, ret_pool);

    if (rc == CUDA_SUCCESS)
        (*ret_pool)->imported = true;
    return rc;
}

CUDA_API CUresult
cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    struct sim_cuda_device device;
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (pool == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED
        || props->location.type == CU_MEM_LOCATION_TYPE_INVALID
        || props->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    if ((props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        rc = sim_cuda_device(props->location.id, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    rc = new_pool(props, pool);
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemPoolDestroy(CUmemoryPool pool)
{
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    if (!is_pool(pool) || pool->preset)
        rc = CUDA_ERROR_INVALID_VALUE;
    else {
        for (unsigned i = 0; i < SIM_CUDA_DEVICES_MAX; i++)
            if (pools.current[i] == pool)
                pools.current[i] = NULL;
        pool->doomed = true;
        pool_trim_all(false);
    }
    sim_memory_unlock();
    return rc;
}

/* ---- attributes ---- */

/* Where an attribute of 64 bits stands; NULL: it is none of those. */
static uint64_t *
pool_word_of(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    uint64_t *const words[] = {
        [CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] = &pool->threshold,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT] = &pool->reserved,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = &pool->reserved_high,
        [CU_MEMPOOL_ATTR_USED_MEM_CURRENT] = &pool->used,
        [CU_MEMPOOL_ATTR_USED_MEM_HIGH] = &pool->used_high,
    };

    return (unsigned)attribute < sizeof(words) / sizeof(words[0]) ? words[attribute] : NULL;
}

static bool
pool_is_reuse(CUmemPool_attribute attribute)
{
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
           && attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUDA_API CUresult
cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    CUresult rc = CUDA_SUCCESS;
    int flag;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    if (!is_pool(pool) || value == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (pool_is_reuse(attribute)) {
        flag = (int)pool->reuse[attribute];
        memcpy(value, &flag, sizeof(flag));
    } else if (pool_word_of(pool, attribute) != NULL)
        memcpy(value, pool_word_of(pool, attribute), sizeof(uint64_t));
    else
        rc = CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return rc;
}

/* A high mark can only be set back to what is now. */
static CUresult
pool_set_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value)
{
    uint64_t word = 0;
    int flag = 0;

    if (pool_is_reuse(attribute)) {
        memcpy(&flag, value, sizeof(flag));
        pool->reuse[attribute] = flag != 0;
        return CUDA_SUCCESS;
    }
    memcpy(&word, value, sizeof(word));
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = word;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && word == 0)
        pool->reserved_high = pool->reserved;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && word == 0)
        pool->used_high = pool->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    rc = is_pool(pool) && value != NULL ? pool_set_attribute(pool, attribute, value)
                                        : CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep)
{
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    if (is_pool(pool))
        pool_trim(pool, min_bytes_to_keep);
    else
        rc = CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct sim_cuda_device device;
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (map == NULL && count > 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (!is_pool(pool))
        rc = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; rc == CUDA_SUCCESS && i < count; i++) {
        bool own =
            pool->location.type == CU_MEM_LOCATION_TYPE_DEVICE && map[i].location.id == pool->location.id;

        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE
            || (own && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
            rc = CUDA_ERROR_INVALID_VALUE; /* its own device always has access */
        else
            rc = sim_cuda_device(map[i].location.id, &device);
        if (rc == CUDA_SUCCESS)
            pool->access[map[i].location.id] = map[i].flags;
    }
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    struct sim_cuda_device device;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    if (is_pool(pool) && flags != NULL && location != NULL && location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        rc = sim_cuda_device(location->id, &device);
    if (rc == CUDA_SUCCESS)
        *flags = pool->access[location->id];
    sim_memory_unlock();
    return rc;
}

/* ---- which pool is whose ---- */

static CUresult
pool_answer(CUmemoryPool *pool, CUdevice device, CUresult (*find)(CUdevice device, CUmemoryPool *ret_pool))
{
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (pool == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = find(device, pool);
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
         pool_answer(pool, device, preset_pool))
CUDA_ROW(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), pool_answer(pool, device, current_pool))

CUDA_API CUresult
cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    struct sim_cuda_device there;
    CUresult rc = sim_cuda_device(device, &there);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    if (!is_pool(pool) || pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE || pool->location.id != device)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        pools.current[device] = pool;
    sim_memory_unlock();
    return rc;
}

static CUresult
pool_at(CUmemoryPool *pool, const CUmemLocation *location, CUmemAllocationType type,
        CUresult (*find)(CUdevice device, CUmemoryPool *ret_pool))
{
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (pool == NULL || location == NULL || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return pool_answer(pool, location->id, find);
    if (location->type == CU_MEM_LOCATION_TYPE_INVALID)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = host_pool(pool);
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuMemGetDefaultMemPool, (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
         pool_at(pool, location, type, preset_pool))
CUDA_ROW(cuMemGetMemPool, (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
         pool_at(pool, location, type, current_pool))

CUDA_API CUresult
cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    if (location == NULL || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? cuDeviceSetMemPool(location->id, pool)
                                                         : CUDA_ERROR_NOT_SUPPORTED;
}
