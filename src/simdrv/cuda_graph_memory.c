/* Memory of graphs: a pool for each device.  An address is a node's from its making on; the
 * memory behind it is taken at launch and stays in the pool until it is trimmed. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "simdrv/contexts.h"
#include "simdrv/cuda_graph.h"
#include "simdrv/session.h"

#define USERS_MAX 1024

/* An address that a node has. */
struct range {
    struct range *next;
    CUdeviceptr address;
    size_t bytes;
    CUdevice device;
    bool live;
};

/* A mapping of the device's memory file: so much is used by this process. */
struct chunk {
    struct chunk *next;
    void *map;
    size_t bytes;
};

struct pool {
    struct chunk *chunks;
    uint64_t value[CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH + 1]; /* by attribute */
};

static struct {
    pthread_mutex_t lock;
    struct range *ranges;
    struct pool pool[SIM_CUDA_DEVICES_MAX];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t
round_up(size_t bytes)
{
    return (bytes + SIM_PAGE_BYTES - 1) / SIM_PAGE_BYTES * SIM_PAGE_BYTES;
}

CUresult
sim_graph_memory_reserve(struct sim_payload *payload)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(payload->device, &device);
    struct range *range;
    void *map;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (payload->bytes > sim_cuda_bytes(&device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    range = calloc(1, sizeof(*range));
    map = range == NULL ? MAP_FAILED
                        : mmap(NULL, round_up(payload->bytes), PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    payload->address = (uintptr_t)map;
    pthread_mutex_lock(&all.lock);
    *range = (struct range) { all.ranges, payload->address, round_up(payload->bytes),
                              payload->device, false };
    all.ranges = range;
    pthread_mutex_unlock(&all.lock);
    return CUDA_SUCCESS;
}

/* ---- the pool, under the lock ---- */

static void
set_value(struct pool *pool, CUgraphMem_attribute current, uint64_t value)
{
    CUgraphMem_attribute high = (CUgraphMem_attribute)(current + 1);

    pool->value[current] = value;
    if (value > pool->value[high])
        pool->value[high] = value;
}

static CUresult
grow_pool(CUdevice number, size_t bytes)
{
    static struct sim_context users[USERS_MAX]; /* under the lock */
    struct pool *pool = &all.pool[number];
    struct chunk *chunk = calloc(1, sizeof(*chunk));
    struct sim_cuda_device device;
    char path[SIM_PATH_MAX];
    CUresult rc = sim_cuda_device(number, &device);

    if (rc == CUDA_SUCCESS &&
        (chunk == NULL || !sim_session_memory_path(&device.gpu, device.gi, path) ||
         sim_contexts_used(path, users, USERS_MAX) + bytes > sim_cuda_bytes(&device)))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc == CUDA_SUCCESS) {
        chunk->map = sim_cuda_map(&device, bytes);
        rc = chunk->map == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    if (rc != CUDA_SUCCESS) {
        free(chunk);
        return rc;
    }
    chunk->bytes = bytes;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    set_value(pool, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
              pool->value[CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] + bytes);
    return CUDA_SUCCESS;
}

static void
free_range(struct range *range)
{
    struct pool *pool = &all.pool[range->device];

    if (range->live)
        set_value(pool, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                  pool->value[CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] - range->bytes);
    range->live = false;
}

static struct range *
find_range(CUdeviceptr address)
{
    struct range *range = all.ranges;

    while (range != NULL && range->address != address)
        range = range->next;
    return range;
}

static CUresult
take_range(struct range *range)
{
    struct pool *pool = &all.pool[range->device];
    uint64_t used = pool->value[CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] + range->bytes;
    uint64_t reserved = pool->value[CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT];
    CUresult rc =
        used > reserved ? grow_pool(range->device, used - reserved) : CUDA_SUCCESS;

    if (rc != CUDA_SUCCESS)
        return rc;
    range->live = true;
    set_value(pool, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, used);
    return CUDA_SUCCESS;
}

CUresult
sim_graph_memory_take(const struct sim_payload *payload, bool anew)
{
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    struct range *range;

    pthread_mutex_lock(&all.lock);
    range = find_range(payload->address);
    if (range != NULL && range->live && anew)
        free_range(range);
    if (range != NULL && !range->live)
        rc = take_range(range);
    pthread_mutex_unlock(&all.lock);
    return rc;
}

bool
sim_graph_memory_free(CUdeviceptr address)
{
    struct range *range;
    bool was_live;

    pthread_mutex_lock(&all.lock);
    range = find_range(address);
    was_live = range != NULL && range->live;
    if (was_live)
        free_range(range);
    pthread_mutex_unlock(&all.lock);
    return was_live;
}

void
sim_graph_memory_forget(const struct sim_payload *payload)
{
    pthread_mutex_lock(&all.lock);
    for (struct range **link = &all.ranges; *link != NULL; link = &(*link)->next)
        if ((*link)->address == payload->address) {
            struct range *range = *link;

            *link = range->next;
            free_range(range);
            munmap((void *)(uintptr_t)range->address, range->bytes);
            free(range);
            break;
        }
    pthread_mutex_unlock(&all.lock);
}

/* ---- the calls ---- */

static CUresult
check(CUdevice device, CUgraphMem_attribute attribute, const void *value)
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
    CUresult rc = check(device, attribute, value);

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&all.lock);
    *(uint64_t *)value = all.pool[device].value[attribute];
    pthread_mutex_unlock(&all.lock);
    return CUDA_SUCCESS;
}

/* A high mark can be set to 0, which makes it what is current. */
CUDA_API CUresult
cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    CUresult rc = check(device, attribute, value);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (attribute % 2 == 0 || *(const uint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&all.lock);
    all.pool[device].value[attribute] = all.pool[device].value[attribute - 1];
    pthread_mutex_unlock(&all.lock);
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGraphMemTrim(CUdevice device)
{
    struct sim_cuda_device found;
    CUresult rc = sim_cuda_device(device, &found);
    struct pool *pool;

    if (rc != CUDA_SUCCESS)
        return rc;
    pthread_mutex_lock(&all.lock);
    pool = &all.pool[device];
    for (struct chunk **link = &pool->chunks; *link != NULL;) {
        struct chunk *chunk = *link;
        uint64_t reserved = pool->value[CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT];

        if (reserved - chunk->bytes < pool->value[CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT]) {
            link = &chunk->next;
            continue;
        }
        set_value(pool, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, reserved - chunk->bytes);
        *link = chunk->next;
        munmap(chunk->map, chunk->bytes);
        free(chunk);
    }
    pthread_mutex_unlock(&all.lock);
    return CUDA_SUCCESS;
}
