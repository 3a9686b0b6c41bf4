/* Memory of graphs: a pool for each device.  An address is a node's from its making on; the
 * memory behind it is taken at launch and stays in the pool until it is trimmed. */
#include <stdlib.h>

#include "sim/cuda/work/graph.h"
#include "sim/cuda/memory/space.h"

/* An address that a node has, and what is behind it between its allocation and its free. */
struct memory_range {
    struct memory_range *next;
    struct sim_region *region;
    CUdevice device;
    struct chunk *chunk; /* NULL: nothing */
};

/* Memory of a device that the pool has. */
struct chunk {
    struct chunk *next;
    struct sim_physical *physical;
    size_t bytes;
    bool used;
};

struct memory_pool {
    struct chunk *chunks;
    struct sim_memory *memory;                               /* while it has chunks */
    uint64_t value[CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH + 1]; /* by attribute */
};

/* All under sim_memory_lock(). */
static struct {
    struct memory_range *ranges;
    struct memory_pool pool[SIM_CUDA_DEVICES_MAX];
} all;

CUresult
sim_graph_memory_reserve(struct sim_payload *payload)
{
    const struct sim_region_request request = { .bytes = payload->bytes };
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(payload->device, &device);
    struct memory_range *range;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (payload->bytes > sim_cuda_bytes(&device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    range = calloc(1, sizeof(*range));
    if (range == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_memory_lock();
    range->region = sim_region_new(SIM_REGION_RESERVED, &request);
    if (range->region != NULL)
        range->region->mapped = calloc(range->region->span / SIM_PAGE_BYTES, sizeof(struct sim_mapped));
    if (range->region == NULL || range->region->mapped == NULL) {
        if (range->region != NULL)
            sim_region_free(range->region);
        free(range);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        payload->address = range->region->address;
        range->device = payload->device;
        range->next = all.ranges;
        all.ranges = range;
    }
    sim_memory_unlock();
    return rc;
}

/* ---- the pool ---- */

static void
memory_set_value(struct memory_pool *pool, CUgraphMem_attribute current, uint64_t value)
{
    CUgraphMem_attribute high = (CUgraphMem_attribute)(current + 1);

    pool->value[current] = value;
    if (value > pool->value[high])
        pool->value[high] = value;
}

static void
memory_change(struct memory_pool *pool, CUgraphMem_attribute current, int64_t by)
{
    memory_set_value(pool, current, pool->value[current] + (uint64_t)by);
}

static CUresult
memory_open_pool(struct memory_pool *pool, CUdevice device)
{
    CUresult rc = CUDA_SUCCESS;

    if (pool->memory != NULL)
        return CUDA_SUCCESS;
    rc = sim_memory_open(device, &pool->memory);
    if (rc == CUDA_SUCCESS)
        rc = sim_memory_use(pool->memory);
    if (rc != CUDA_SUCCESS)
        pool->memory = NULL;
    return rc;
}

static CUresult
memory_grow_pool(struct memory_pool *pool, CUdevice device, size_t bytes, struct chunk **ret_chunk)
{
    CUresult rc = memory_open_pool(pool, device);
    struct chunk *chunk = rc == CUDA_SUCCESS ? calloc(1, sizeof(*chunk)) : NULL;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (chunk == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = sim_physical_new(pool->memory, bytes, 0, &chunk->physical);
    if (rc != CUDA_SUCCESS) {
        free(chunk);
        return rc;
    }
    chunk->bytes = bytes;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    memory_change(pool, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, (int64_t)bytes);
    *ret_chunk = chunk;
    return CUDA_SUCCESS;
}

/* The smallest unused chunk that is large enough; none that would waste half of itself. */
static struct chunk *
memory_find_chunk(const struct memory_pool *pool, size_t bytes)
{
    struct chunk *best = NULL;

    for (struct chunk *chunk = pool->chunks; chunk != NULL; chunk = chunk->next)
        if (!chunk->used && chunk->bytes >= bytes && chunk->bytes / 2 <= bytes
            && (best == NULL || chunk->bytes < best->bytes))
            best = chunk;
    return best;
}

static void
memory_show(struct memory_range *range, struct sim_physical *physical)
{
    struct sim_region *region = range->region;

    for (size_t i = 0; i < region->span / SIM_PAGE_BYTES; i++)
        region->mapped[i] = (struct sim_mapped){ .physical = physical,
                                                 .offset = i * SIM_PAGE_BYTES,
                                                 .start = region->address,
                                                 .size = region->span,
                                                 .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
}

static void
memory_free_range(struct memory_range *range)
{
    if (range->chunk == NULL)
        return;
    memory_change(&all.pool[range->device], CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                  -(int64_t)range->chunk->bytes);
    memory_show(range, NULL);
    range->chunk->used = false;
    range->chunk = NULL;
}

static struct memory_range *
memory_find_range(CUdeviceptr address)
{
    struct memory_range *range = all.ranges;

    while (range != NULL && range->region->address != address)
        range = range->next;
    return range;
}

static CUresult
memory_take_range(struct memory_range *range)
{
    struct memory_pool *pool = &all.pool[range->device];
    struct chunk *chunk = memory_find_chunk(pool, range->region->span);
    CUresult rc = CUDA_SUCCESS;

    if (chunk == NULL)
        rc = memory_grow_pool(pool, range->device, range->region->span, &chunk);
    if (rc != CUDA_SUCCESS)
        return rc;
    chunk->used = true;
    range->chunk = chunk;
    memory_show(range, chunk->physical);
    memory_change(pool, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, (int64_t)chunk->bytes);
    return CUDA_SUCCESS;
}

CUresult
sim_graph_memory_take(const struct sim_payload *payload, bool anew)
{
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    struct memory_range *range;

    sim_memory_lock();
    range = memory_find_range(payload->address);
    if (range != NULL && anew)
        memory_free_range(range);
    if (range != NULL && range->chunk == NULL)
        rc = memory_take_range(range);
    sim_memory_unlock();
    return rc;
}

bool
sim_graph_memory_free_locked(CUdeviceptr address)
{
    struct memory_range *range = memory_find_range(address);

    if (range == NULL || range->chunk == NULL)
        return false;
    memory_free_range(range);
    return true;
}

bool
sim_graph_memory_free(CUdeviceptr address)
{
    bool was_live;

    sim_memory_lock();
    was_live = sim_graph_memory_free_locked(address);
    sim_memory_unlock();
    return was_live;
}

void
sim_graph_memory_forget(const struct sim_payload *payload)
{
    sim_memory_lock();
    for (struct memory_range **link = &all.ranges; *link != NULL; link = &(*link)->next)
        if ((*link)->region->address == payload->address) {
            struct memory_range *range = *link;

            *link = range->next;
            memory_free_range(range);
            sim_region_free(range->region);
            free(range);
            break;
        }
    sim_memory_unlock();
}

static void
memory_trim(struct memory_pool *pool)
{
    for (struct chunk **link = &pool->chunks; *link != NULL;) {
        struct chunk *chunk = *link;

        if (chunk->used) {
            link = &chunk->next;
            continue;
        }
        memory_change(pool, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, -(int64_t)chunk->bytes);
        *link = chunk->next;
        sim_physical_release(chunk->physical);
        free(chunk);
    }
    if (pool->chunks == NULL && pool->memory != NULL) {
        sim_memory_leave(pool->memory);
        pool->memory = NULL;
    }
}

/* ---- the calls ---- */

static CUresult
memory_check(CUdevice device, CUgraphMem_attribute attribute, const void *value)
{
    struct sim_cuda_device found;
    CUresult rc = sim_cuda_device(device, &found);

    if (rc != CUDA_SUCCESS)
        return rc;
    return value == NULL || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult rc = memory_check(device, attribute, value);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    *(uint64_t *)value = all.pool[device].value[attribute];
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

/* A high mark can be set to 0, which makes it what is current. */
CUDA_API CUresult
cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult rc = memory_check(device, attribute, value);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (attribute % 2 == 0 || *(const uint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    all.pool[device].value[attribute] = all.pool[device].value[attribute - 1];
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGraphMemTrim(CUdevice device)
{
    struct sim_cuda_device found;
    CUresult rc = sim_cuda_device(device, &found);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    memory_trim(&all.pool[device]);
    sim_memory_unlock();
    return CUDA_SUCCESS;
}
