/* A libcuda.so.1 that answers at once: what it costs to stand in front of a driver is
 * measured against it, and what a device really holds is read from it.  Kernels take as
 * many nanoseconds as their function's address says. */
#include "sim/null/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "sim/null/code.h"
#include "sim/null/small.h"

#define UNITS (1u << 22)
#define LARGE_BASE (UINT64_C(1) << 45)
#define SMALL_MOST (UINT64_C(1) << 20)
#define CONTEXTS_MAX 4096
#define POOL_STEP (UINT64_C(32) << 20)

struct CUmemPoolHandle_st {
    int device;
    uint64_t reserved, used, threshold;
};
struct driver_object {
    int device;
    uint64_t bytes;
    _Atomic int references;
};

static bool begun;
static struct CUctx_st primary[NULL_DEVICES_MAX];
static int primary_references[NULL_DEVICES_MAX];
static struct CUmemPoolHandle_st default_pool[NULL_DEVICES_MAX], managed_pool,
    *current_pool[NULL_DEVICES_MAX];
static uint64_t graph_reserved, graph_used;
static __thread struct CUctx_st *stack[16];
static __thread unsigned depth;

/* By unit of the large range: how many it begins, its device, its pool or object. */
static struct {
    uint32_t units;
    int device;
    uint64_t bytes;
    struct CUmemPoolHandle_st *pool;
    struct driver_object *object;
    const struct CUctx_st *context;
} large[UNITS];
static _Atomic uint32_t next_unit;
static __thread uint32_t free_units[1 << 14], free_count;
/* Ranges of several units that were given back, by how many. */
enum { SPANS = 65, SPANS_KEPT = 64 };
static __thread struct {
    uint32_t count, at[SPANS_KEPT];
} free_spans[SPANS];

/* ---- devices and contexts ---- */

/* The last one is shared by all for which there is none. */
static void
driver_take_entry(void)
{
    uint32_t none = 0, me = (uint32_t)getpid();

    for (bh_null_number = 0; bh_null_number < NULL_PROCESSES_MAX - 1; bh_null_number++, none = 0)
        if (atomic_compare_exchange_strong(&bh_null_world->process[bh_null_number].pid, &none, me))
            return;
}

CUresult
cuInit(unsigned int flags)
{
    struct null_world *found;
    int fd;

    pthread_mutex_lock(&bh_null_lock);
    if (!begun) {
        fd = open(NULL_WORLD_FILE, O_RDWR | O_CLOEXEC);
        found = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        bh_null_shared = found != MAP_FAILED;
        if (bh_null_shared) {
            bh_null_world = found;
            driver_take_entry();
        }
        if (fd >= 0)
            close(fd);
        for (int i = 0; i < NULL_DEVICES_MAX; i++) {
            primary[i] = (struct CUctx_st){ .device = i, .primary = true };
            default_pool[i].device = i;
            current_pool[i] = &default_pool[i];
        }
        bh_null_small_anew = getenv("NULL_SMALL_ANEW") != NULL;
        begun = true;
    }
    pthread_mutex_unlock(&bh_null_lock);
    return CUDA_SUCCESS;
}

ANSWER(cuDeviceGetCount, (int *count), *count = (int)bh_null_world->devices)
ANSWER(cuDeviceGet, (CUdevice * device, int ordinal), *device = ordinal)
ANSWER(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), memset(uuid, device + 1, sizeof(*uuid)))

CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 128
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
             : attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY           ? 1
                                                                         : 2048;
    return CUDA_SUCCESS;
}

ANSWER(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), *bytes = NULL_DEVICE_BYTES)

CUresult
cuCtxGetCurrent(CUcontext *context)
{
    *context = depth > 0 ? stack[depth - 1] : NULL;
    return begun ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult
cuCtxGetDevice(CUdevice *device)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = stack[depth - 1]->device;
    return CUDA_SUCCESS;
}

CUresult
cuCtxPushCurrent_v2(CUcontext context)
{
    if (depth == 16 || !context->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult
cuCtxPopCurrent_v2(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult
cuCtxSetCurrent(CUcontext context)
{
    depth = 0;
    if (context != NULL)
        stack[depth++] = context;
    return CUDA_SUCCESS;
}

struct CUctx_st *bh_null_contexts[CONTEXTS_MAX];
unsigned bh_null_context_count;

/* Under the lock. */
static void
driver_add_context(struct CUctx_st *context)
{
    atomic_fetch_add(&bh_null_world->contexts, 1);
    if (bh_null_context_count < CONTEXTS_MAX)
        bh_null_contexts[bh_null_context_count++] = context;
    bh_null_take(context->device, bh_null_world->context_bytes);
    bh_null_code_begin(context);
}

static void
driver_remove_context(struct CUctx_st *context)
{
    bh_null_code_end(context);
    bh_null_give(context->device, bh_null_world->context_bytes);
    for (unsigned i = 0; i < bh_null_context_count; i++)
        if (bh_null_contexts[i] == context)
            bh_null_contexts[i] = bh_null_contexts[--bh_null_context_count];
    atomic_fetch_sub(&bh_null_world->contexts, 1);
}

CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    pthread_mutex_lock(&bh_null_lock);
    primary_references[device]++;
    if (!primary[device].alive)
        driver_add_context(&primary[device]);
    primary[device].alive = true;
    pthread_mutex_unlock(&bh_null_lock);
    *context = &primary[device];
    return CUDA_SUCCESS;
}

CUresult
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    *context = calloc(1, sizeof(**context));
    (*context)->device = device;
    (*context)->alive = true;
    pthread_mutex_lock(&bh_null_lock);
    driver_add_context(*context);
    pthread_mutex_unlock(&bh_null_lock);
    return cuCtxPushCurrent_v2(*context);
}

/* What was allocated in it goes, too.  Under the lock. */
static void
driver_drop_all(const struct CUctx_st *context)
{
    for (uint32_t i = 0; i < next_unit && i < UNITS; i++)
        if (large[i].units != 0 && large[i].context == context) {
            bh_null_give(context->device, bh_null_up(large[i].bytes, NULL_UNIT));
            large[i].units = 0;
        }
    bh_null_small_drop(context);
}

CUresult
cuCtxDestroy_v2(CUcontext context)
{
    pthread_mutex_lock(&bh_null_lock);
    driver_drop_all(context);
    driver_remove_context(context);
    pthread_mutex_unlock(&bh_null_lock);
    if (depth > 0 && stack[depth - 1] == context)
        depth--;
    free(context);
    return CUDA_SUCCESS;
}

/* Under the lock. */
static void
driver_end_primary(CUdevice device)
{
    if (!primary[device].alive)
        return;
    primary[device].alive = false;
    driver_drop_all(&primary[device]);
    driver_remove_context(&primary[device]);
}

CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    pthread_mutex_lock(&bh_null_lock);
    if (--primary_references[device] == 0) {
        driver_end_primary(device);
        if (!bh_null_shared) { /* one that begins anew finds the same addresses */
            atomic_store(&next_unit, 0);
            free_count = 0;
            memset(free_spans, 0, sizeof(free_spans));
            bh_null_small_begin_anew();
        }
    }
    pthread_mutex_unlock(&bh_null_lock);
    return CUDA_SUCCESS;
}

CUresult
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    pthread_mutex_lock(&bh_null_lock);
    driver_end_primary(device);
    pthread_mutex_unlock(&bh_null_lock);
    return CUDA_SUCCESS;
}

ANSWER(cuCtxSetLimit, (CUlimit limit, size_t value), (void)0)

/* ---- linear memory ---- */

static uint32_t
driver_take_units(uint32_t units)
{
    if (units == 1 && free_count > 0)
        return free_units[--free_count];
    if (units > 1 && units < SPANS && free_spans[units].count > 0)
        return free_spans[units].at[--free_spans[units].count];
    return atomic_fetch_add(&next_unit, units);
}

static void
driver_free_range_of(uint32_t at, uint32_t units)
{
    if (units == 1 && free_count < sizeof(free_units) / sizeof(free_units[0]))
        free_units[free_count++] = at;
    else if (units > 1 && units < SPANS && free_spans[units].count < SPANS_KEPT)
        free_spans[units].at[free_spans[units].count++] = at;
}

static CUdeviceptr
driver_large_range(uint64_t bytes, int device)
{
    uint32_t units = (uint32_t)(bh_null_up(bytes, NULL_UNIT) / NULL_UNIT);
    uint32_t at = driver_take_units(units);

    if (at + units > UNITS)
        return 0;
    large[at].units = units;
    large[at].device = device;
    large[at].bytes = bytes;
    large[at].pool = NULL;
    large[at].object = NULL;
    large[at].context = NULL;
    return LARGE_BASE + at * NULL_UNIT;
}

static void
driver_free_range(uint32_t at)
{
    uint32_t units = large[at].units;

    large[at].units = 0;
    driver_free_range_of(at, units);
}

CUresult
cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    CUdeviceptr at;

    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bh_null_fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes < SMALL_MOST) {
        *address = bh_null_small_take(stack[depth - 1], bytes);
        return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    at = driver_large_range(bytes, stack[depth - 1]->device);
    if (at == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    large[(at - LARGE_BASE) / NULL_UNIT].context = stack[depth - 1];
    bh_null_take(stack[depth - 1]->device, bh_null_up(bytes, NULL_UNIT));
    *address = at;
    return CUDA_SUCCESS;
}

CUresult
cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    return cuMemAlloc_v2(address, bytes);
}

CUresult
cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width_bytes, size_t height,
                   unsigned int element_bytes)
{
    *pitch = bh_null_up(width_bytes, element_bytes == 16 ? 1024 : 512);
    return cuMemAlloc_v2(address, *pitch * height);
}

static CUresult driver_pool_free(uint32_t at);

static void
driver_graph_unused(uint64_t bytes)
{
    pthread_mutex_lock(&bh_null_lock);
    graph_used -= bytes;
    pthread_mutex_unlock(&bh_null_lock);
}

CUresult
cuMemFree_v2(CUdeviceptr address)
{
    uint32_t at = (uint32_t)((address - LARGE_BASE) / NULL_UNIT);

    if (bh_null_fails(&bh_null_world->fail_free))
        return CUDA_ERROR_INVALID_VALUE;
    if (address >= NULL_GRAPH_BASE) {
        driver_graph_unused(address - NULL_GRAPH_BASE);
        return CUDA_SUCCESS;
    }
    if (bh_null_small_has(address))
        return bh_null_small_free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (address < LARGE_BASE || at >= UNITS || large[at].units == 0 || large[at].object != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (large[at].pool != NULL)
        return driver_pool_free(at);
    bh_null_give(large[at].device, bh_null_up(large[at].bytes, NULL_UNIT));
    driver_free_range(at);
    return CUDA_SUCCESS;
}

CUresult
cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *total = NULL_DEVICE_BYTES;
    *free_bytes = NULL_DEVICE_BYTES - atomic_load_explicit(&bh_null_world->used[0], memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* ---- pools ---- */

static CUresult
driver_pool_alloc(CUdeviceptr *address, size_t bytes, struct CUmemPoolHandle_st *pool)
{
    CUdeviceptr at = driver_large_range(bytes, pool->device);

    if (at == 0 || bh_null_fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&bh_null_lock);
    large[(at - LARGE_BASE) / NULL_UNIT].pool = pool;
    pool->used += bh_null_up(bytes, 512);
    if (pool->used > pool->reserved) {
        bh_null_take(pool->device, bh_null_up(pool->used, POOL_STEP) - pool->reserved);
        pool->reserved = bh_null_up(pool->used, POOL_STEP);
    }
    pthread_mutex_unlock(&bh_null_lock);
    *address = at;
    return CUDA_SUCCESS;
}

static CUresult
driver_pool_free(uint32_t at)
{
    pthread_mutex_lock(&bh_null_lock);
    large[at].pool->used -= bh_null_up(large[at].bytes, 512);
    pthread_mutex_unlock(&bh_null_lock);
    driver_free_range(at);
    return CUDA_SUCCESS;
}

static void
driver_shrink(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
    uint64_t need;

    pthread_mutex_lock(&bh_null_lock);
    need = bh_null_up(pool->used, POOL_STEP);
    need = need > keep ? need : bh_null_up(keep, POOL_STEP);
    if (need < pool->reserved) {
        bh_null_give(pool->device, pool->reserved - need);
        pool->reserved = need;
    }
    pthread_mutex_unlock(&bh_null_lock);
}

CUresult
cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stream != NULL && (uintptr_t)stream > 2 && stream->captured != NULL) {
        stream->captured->bytes += bh_null_up(bytes, NULL_UNIT);
        *address = NULL_GRAPH_BASE | bh_null_up(bytes, NULL_UNIT);
        return CUDA_SUCCESS;
    }
    return driver_pool_alloc(address, bytes, current_pool[stack[depth - 1]->device]);
}

CUresult
cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(address, bytes, stream);
}

CUresult
cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return driver_pool_alloc(address, bytes, pool);
}

CUresult
cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    return cuMemFree_v2(address);
}

ANSWER(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *pool_props),
       *pool = calloc(1, sizeof(**pool)), (*pool)->device = pool_props->location.id)
ANSWER(cuMemPoolDestroy, (CUmemoryPool pool), driver_shrink(pool, 0))

CUresult
cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    return CUDA_SUCCESS;
}

CUresult
cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    *(uint64_t *)value = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool->reserved
                         : attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD  ? pool->threshold
                                                                           : 0;
    return CUDA_SUCCESS;
}

/* Pools give back what is beyond their threshold when a call waits for the device. */
void
bh_null_pools_waited(void)
{
    for (int i = 0; i < NULL_DEVICES_MAX; i++)
        driver_shrink(&default_pool[i], default_pool[i].threshold);
}

ANSWER(cuMemPoolTrimTo, (CUmemoryPool pool, size_t min_bytes_to_keep), driver_shrink(pool, min_bytes_to_keep))
ANSWER(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), *pool = &default_pool[device])
ANSWER(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), *pool = current_pool[device])
ANSWER(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), current_pool[device] = pool)

/* Its managed pool is a device's like any other. */
CUresult
cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    *pool = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? &managed_pool : current_pool[location->id];
    return CUDA_SUCCESS;
}

/* ---- graphs' memory, of device 0 ---- */

void
bh_null_graph_take(uint64_t bytes)
{
    pthread_mutex_lock(&bh_null_lock);
    graph_used += bytes;
    if (graph_used > graph_reserved) {
        bh_null_take(0, graph_used - graph_reserved);
        graph_reserved = graph_used;
    }
    pthread_mutex_unlock(&bh_null_lock);
}

CUresult
cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    *(uint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? graph_reserved : 0;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGraphMemTrim(CUdevice device)
{
    pthread_mutex_lock(&bh_null_lock);
    bh_null_give(0, graph_reserved - graph_used);
    graph_reserved = graph_used;
    pthread_mutex_unlock(&bh_null_lock);
    return CUDA_SUCCESS;
}

/* ---- memory objects ---- */

static void
driver_release(struct driver_object *object)
{
    if (atomic_fetch_sub(&object->references, 1) > 1)
        return;
    bh_null_give(object->device, object->bytes);
    free(object);
}

CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
            unsigned long long flags)
{
    struct driver_object *object;

    if (size == 0 || size % NULL_UNIT != 0)
        return CUDA_ERROR_INVALID_VALUE;
    object = calloc(1, sizeof(*object));
    *object = (struct driver_object){ .device = prop->location.id, .bytes = size, .references = 1 };
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        bh_null_take(object->device, size);
    else
        object->bytes = 0;
    *handle = (uintptr_t)object;
    return CUDA_SUCCESS;
}

ANSWER(cuMemRelease, (CUmemGenericAllocationHandle handle),
       driver_release((struct driver_object *)(uintptr_t)handle))

CUresult
cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr addr,
                    unsigned long long flags)
{
    uint32_t units = (uint32_t)(size / NULL_UNIT), at = driver_take_units(units);

    if (at + units > UNITS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = LARGE_BASE + at * NULL_UNIT;
    return CUDA_SUCCESS;
}

ANSWER(cuMemAddressFree, (CUdeviceptr address, size_t size),
       driver_free_range_of((uint32_t)((address - LARGE_BASE) / NULL_UNIT), (uint32_t)(size / NULL_UNIT)))

CUresult
cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
         unsigned long long flags)
{
    struct driver_object *object = (struct driver_object *)(uintptr_t)handle;
    uint32_t at = (uint32_t)((address - LARGE_BASE) / NULL_UNIT);

    if (large[at].object != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&object->references, 1);
    large[at].units = (uint32_t)(size / NULL_UNIT);
    large[at].object = object;
    return CUDA_SUCCESS;
}

CUresult
cuMemUnmap(CUdeviceptr address, size_t size)
{
    uint32_t at = (uint32_t)((address - LARGE_BASE) / NULL_UNIT);

    if (bh_null_fails(&bh_null_world->fail_free))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t end = at + (uint32_t)(size / NULL_UNIT); at < end; at++)
        if (large[at].object != NULL) {
            driver_release(large[at].object);
            large[at].object = NULL;
            large[at].units = 0;
        }
    return CUDA_SUCCESS;
}

CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct driver_object *object = large[((uintptr_t)addr - LARGE_BASE) / NULL_UNIT].object;

    if (object == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&object->references, 1);
    *handle = (uintptr_t)object;
    return CUDA_SUCCESS;
}
