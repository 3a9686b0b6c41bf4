/* A libcuda.so.1 that answers at once: what it costs to stand in front of a driver is
 * measured against it, and what a device really holds is read from it.  Kernels take as
 * many nanoseconds as their function's address says. */
#include "shim/null_driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define UNITS (1u << 22)
#define GRAINS (1u << 22)
#define LARGE_BASE (UINT64_C(1) << 45)
#define SMALL_BASE (UINT64_C(1) << 46)
#define SMALL_MOST (UINT64_C(1) << 20)
#define POOL_STEP (UINT64_C(32) << 20)

struct CUctx_st {
    int device;
    bool primary, alive;
};
struct CUmemPoolHandle_st {
    int device;
    uint64_t reserved, used, threshold;
};
struct CUarray_st {
    int device;
    uint64_t bytes;
};
struct object {
    int device;
    uint64_t bytes;
    _Atomic int references;
};

static struct null_world own = { .devices = 1 };
struct null_world *bh_null_world = &own;
bool bh_null_shared;
static bool begun;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primary[NULL_DEVICES_MAX];
static int primary_references[NULL_DEVICES_MAX];
static struct CUmemPoolHandle_st default_pool[NULL_DEVICES_MAX],
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
    struct object *object;
    const struct CUctx_st *context;
} large[UNITS];
static struct {
    uint32_t grains;
    int device;
} small[GRAINS];
static _Atomic uint32_t next_unit, next_grain;
static __thread uint32_t free_units[1 << 14], free_count;
static _Atomic uint64_t small_bytes[NULL_DEVICES_MAX];

/* ---- what the device holds ---- */

static void
take(int device, uint64_t bytes)
{
    uint64_t now, most;

    if (!bh_null_shared)
        return;
    now = atomic_fetch_add(&bh_null_world->used[device], bytes) + bytes;
    most = atomic_load(&bh_null_world->most[device]);
    while (now > most &&
           !atomic_compare_exchange_weak(&bh_null_world->most[device], &most, now))
        ;
}

static void
give(int device, uint64_t bytes)
{
    if (bh_null_shared)
        atomic_fetch_sub(&bh_null_world->used[device], bytes);
}

static uint64_t
up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static bool
fails(_Atomic uint32_t *left)
{
    uint32_t n = bh_null_shared ? atomic_load(left) : 0;

    while (n > 0)
        if (atomic_compare_exchange_weak(left, &n, n - 1))
            return true;
    return false;
}

uint64_t
bh_null_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- devices and contexts ---- */

CUresult
cuInit(unsigned int flags)
{
    struct null_world *found;
    int fd;

    pthread_mutex_lock(&lock);
    if (!begun) {
        fd = open(NULL_WORLD_FILE, O_RDWR | O_CLOEXEC);
        found = fd < 0
                    ? MAP_FAILED
                    : mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        bh_null_shared = found != MAP_FAILED;
        if (bh_null_shared)
            bh_null_world = found;
        if (fd >= 0)
            close(fd);
        for (int i = 0; i < NULL_DEVICES_MAX; i++) {
            primary[i] = (struct CUctx_st) { .device = i, .primary = true };
            default_pool[i].device = i;
            current_pool[i] = &default_pool[i];
        }
        begun = true;
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetCount(int *count)
{
    *count = (int)bh_null_world->devices;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    memset(uuid, device + 1, sizeof(*uuid));
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 128 : 2048;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    *bytes = NULL_DEVICE_BYTES;
    return CUDA_SUCCESS;
}

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

CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    pthread_mutex_lock(&lock);
    if (primary_references[device]++ == 0)
        atomic_fetch_add(&bh_null_world->contexts, 1);
    primary[device].alive = true;
    pthread_mutex_unlock(&lock);
    *context = &primary[device];
    return CUDA_SUCCESS;
}

CUresult
cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    *context = calloc(1, sizeof(**context));
    (*context)->device = device;
    (*context)->alive = true;
    atomic_fetch_add(&bh_null_world->contexts, 1);
    return cuCtxPushCurrent_v2(*context);
}

/* What was allocated in it goes, too. */
static void
drop_all(const struct CUctx_st *context)
{
    for (uint32_t i = 0; i < next_unit && i < UNITS; i++)
        if (large[i].units != 0 && large[i].context == context) {
            give(context->device, up(large[i].bytes, NULL_UNIT));
            large[i].units = 0;
        }
}

CUresult
cuCtxDestroy_v2(CUcontext context)
{
    drop_all(context);
    atomic_fetch_sub(&bh_null_world->contexts, 1);
    if (depth > 0 && stack[depth - 1] == context)
        depth--;
    free(context);
    return CUDA_SUCCESS;
}

CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    pthread_mutex_lock(&lock);
    if (--primary_references[device] == 0) {
        primary[device].alive = false;
        drop_all(&primary[device]);
        if (!bh_null_shared) { /* one that begins anew finds the same addresses */
            atomic_store(&next_unit, 0);
            atomic_store(&next_grain, 0);
            free_count = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    drop_all(&primary[device]);
    return CUDA_SUCCESS;
}

CUresult
cuCtxSetLimit(CUlimit limit, size_t value)
{
    return CUDA_SUCCESS;
}

/* ---- linear memory ---- */

static CUdeviceptr
large_range(uint64_t bytes, int device)
{
    uint32_t units = (uint32_t)(up(bytes, NULL_UNIT) / NULL_UNIT), at;

    if (units == 1 && free_count > 0)
        at = free_units[--free_count];
    else
        at = atomic_fetch_add(&next_unit, units);
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
free_range(uint32_t at)
{
    uint32_t units = large[at].units;

    large[at].units = 0;
    if (units == 1 && free_count < sizeof(free_units) / sizeof(free_units[0]))
        free_units[free_count++] = at;
}

static CUdeviceptr
small_range(uint64_t bytes, int device)
{
    uint32_t grains = (uint32_t)(up(bytes, 512) / 512);
    uint32_t at = atomic_fetch_add(&next_grain, grains) % (GRAINS - 2048);
    uint64_t before;

    small[at].grains = grains;
    small[at].device = device;
    if (bh_null_shared)
        pthread_mutex_lock(&lock);
    before = atomic_fetch_add(&small_bytes[device], grains * 512);
    take(device, up(before + grains * 512, NULL_UNIT) - up(before, NULL_UNIT));
    if (bh_null_shared)
        pthread_mutex_unlock(&lock);
    return SMALL_BASE + at * UINT64_C(512);
}

CUresult
cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    CUdeviceptr at;

    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes < SMALL_MOST) {
        *address = small_range(bytes, stack[depth - 1]->device);
        return CUDA_SUCCESS;
    }
    at = large_range(bytes, stack[depth - 1]->device);
    if (at == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    large[(at - LARGE_BASE) / NULL_UNIT].context = stack[depth - 1];
    take(stack[depth - 1]->device, up(bytes, NULL_UNIT));
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
    *pitch = up(width_bytes, element_bytes == 16 ? 1024 : 512);
    return cuMemAlloc_v2(address, *pitch * height);
}

static CUresult pool_free(uint32_t at);

CUresult
cuMemFree_v2(CUdeviceptr address)
{
    uint32_t at = (uint32_t)((address - LARGE_BASE) / NULL_UNIT);

    if (fails(&bh_null_world->fail_free))
        return CUDA_ERROR_INVALID_VALUE;
    if (address >= NULL_GRAPH_BASE) {
        bh_null_graph_unused(address - NULL_GRAPH_BASE);
        return CUDA_SUCCESS;
    }
    if (address >= SMALL_BASE) {
        uint64_t bytes, before;

        at = (uint32_t)((address - SMALL_BASE) / 512);
        bytes = small[at].grains * UINT64_C(512);
        if (bytes == 0)
            return CUDA_ERROR_INVALID_VALUE;
        small[at].grains = 0;
        if (bh_null_shared)
            pthread_mutex_lock(&lock);
        before = atomic_fetch_sub(&small_bytes[small[at].device], bytes);
        give(small[at].device, up(before, NULL_UNIT) - up(before - bytes, NULL_UNIT));
        if (bh_null_shared)
            pthread_mutex_unlock(&lock);
        return CUDA_SUCCESS;
    }
    if (address < LARGE_BASE || at >= UNITS || large[at].units == 0 ||
        large[at].object != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (large[at].pool != NULL)
        return pool_free(at);
    give(large[at].device, up(large[at].bytes, NULL_UNIT));
    free_range(at);
    return CUDA_SUCCESS;
}

CUresult
cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *total = NULL_DEVICE_BYTES;
    *free_bytes = NULL_DEVICE_BYTES -
                  atomic_load_explicit(&bh_null_world->used[0], memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* ---- pools ---- */

static CUresult
pool_alloc(CUdeviceptr *address, size_t bytes, struct CUmemPoolHandle_st *pool)
{
    CUdeviceptr at = large_range(bytes, pool->device);

    if (at == 0 || fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    large[(at - LARGE_BASE) / NULL_UNIT].pool = pool;
    pool->used += up(bytes, 512);
    if (pool->used > pool->reserved) {
        take(pool->device, up(pool->used, POOL_STEP) - pool->reserved);
        pool->reserved = up(pool->used, POOL_STEP);
    }
    pthread_mutex_unlock(&lock);
    *address = at;
    return CUDA_SUCCESS;
}

static CUresult
pool_free(uint32_t at)
{
    pthread_mutex_lock(&lock);
    large[at].pool->used -= up(large[at].bytes, 512);
    pthread_mutex_unlock(&lock);
    free_range(at);
    return CUDA_SUCCESS;
}

static void
shrink(struct CUmemPoolHandle_st *pool, uint64_t keep)
{
    uint64_t need;

    pthread_mutex_lock(&lock);
    need = up(pool->used, POOL_STEP);
    need = need > keep ? need : up(keep, POOL_STEP);
    if (need < pool->reserved) {
        give(pool->device, pool->reserved - need);
        pool->reserved = need;
    }
    pthread_mutex_unlock(&lock);
}

CUresult
cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stream != NULL && (uintptr_t)stream > 2 && stream->captured != NULL) {
        stream->captured->bytes += up(bytes, NULL_UNIT);
        *address = NULL_GRAPH_BASE | up(bytes, NULL_UNIT);
        return CUDA_SUCCESS;
    }
    return pool_alloc(address, bytes, current_pool[stack[depth - 1]->device]);
}

CUresult
cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(address, bytes, stream);
}

CUresult
cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                        CUstream stream)
{
    return pool_alloc(address, bytes, pool);
}

CUresult
cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    return cuMemFree_v2(address);
}

CUresult
cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *pool_props)
{
    *pool = calloc(1, sizeof(**pool));
    (*pool)->device = pool_props->location.id;
    return CUDA_SUCCESS;
}

CUresult
cuMemPoolDestroy(CUmemoryPool pool)
{
    shrink(pool, 0);
    return CUDA_SUCCESS;
}

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

/* What is kept beyond the threshold goes when somebody waits. */
void
bh_null_pools_waited(void)
{
    for (int i = 0; i < NULL_DEVICES_MAX; i++)
        shrink(&default_pool[i], default_pool[i].threshold);
}

CUresult
cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep)
{
    shrink(pool, min_bytes_to_keep);
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    *pool = &default_pool[device];
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    *pool = current_pool[device];
    return CUDA_SUCCESS;
}

CUresult
cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    current_pool[device] = pool;
    return CUDA_SUCCESS;
}

/* ---- graphs' memory, of device 0 ---- */

void
bh_null_graph_take(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    graph_used += bytes;
    if (graph_used > graph_reserved) {
        take(0, graph_used - graph_reserved);
        graph_reserved = graph_used;
    }
    pthread_mutex_unlock(&lock);
}

void
bh_null_graph_unused(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    graph_used -= bytes;
    pthread_mutex_unlock(&lock);
}

CUresult
cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    *(uint64_t *)value =
        attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? graph_reserved : 0;
    return CUDA_SUCCESS;
}

CUresult
cuDeviceGraphMemTrim(CUdevice device)
{
    pthread_mutex_lock(&lock);
    give(0, graph_reserved - graph_used);
    graph_reserved = graph_used;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* ---- how programs find calls ---- */

static const struct {
    const char *name, *base;
    int since;
} calls[] = {
#define CUDA_CALL(name, base, since, parameters) { #name, #base, since },
#include "tables/cuda.tbl"
#include "tables/cuda_context.tbl"
#include "tables/cuda_memory.tbl"
#include "tables/cuda_work.tbl"
#undef CUDA_CALL
};

/* Of this library alone, and not of the one that stands in front of it. */
static void *
null_symbol(const char *name)
{
    static void *self;
    Dl_info about;

    if (self == NULL && dladdr(&calls, &about) != 0)
        self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    return self == NULL ? NULL : dlsym(self, name);
}

/* Those of them that are here; of two as old the stream's own goes first. */
CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
    int best = 0;

    *function = NULL;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        size_t length = strlen(calls[i].name);
        bool per_thread = length > 5 && (strcmp(calls[i].name + length - 5, "_ptsz") == 0 ||
                                         strcmp(calls[i].name + length - 5, "_ptds") == 0);
        void *there;

        if (strcmp(calls[i].base, symbol) != 0 || calls[i].since > version ||
            calls[i].since < best || (per_thread && flags != 2))
            continue;
        there = null_symbol(calls[i].name);
        if (there == NULL)
            continue;
        best = calls[i].since;
        *function = there;
    }
    if (status != NULL)
        *status = *function == NULL ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                    : CU_GET_PROC_ADDRESS_SUCCESS;
    return *function == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/* ---- memory objects ---- */

static void
let_go(struct object *object)
{
    if (atomic_fetch_sub(&object->references, 1) > 1)
        return;
    give(object->device, object->bytes);
    free(object);
}

CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
            const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct object *object;

    if (size == 0 || size % NULL_UNIT != 0)
        return CUDA_ERROR_INVALID_VALUE;
    object = calloc(1, sizeof(*object));
    *object =
        (struct object) { .device = prop->location.id, .bytes = size, .references = 1 };
    if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        take(object->device, size);
    else
        object->bytes = 0;
    *handle = (uintptr_t)object;
    return CUDA_SUCCESS;
}

CUresult
cuMemRelease(CUmemGenericAllocationHandle handle)
{
    let_go((struct object *)(uintptr_t)handle);
    return CUDA_SUCCESS;
}

CUresult
cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr addr,
                    unsigned long long flags)
{
    *address = LARGE_BASE + atomic_fetch_add(&next_unit, size / NULL_UNIT) * NULL_UNIT;
    return CUDA_SUCCESS;
}

CUresult
cuMemMap(CUdeviceptr address, size_t size, size_t offset,
         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct object *object = (struct object *)(uintptr_t)handle;
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

    if (fails(&bh_null_world->fail_free))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t end = at + (uint32_t)(size / NULL_UNIT); at < end; at++)
        if (large[at].object != NULL) {
            let_go(large[at].object);
            large[at].object = NULL;
            large[at].units = 0;
        }
    return CUDA_SUCCESS;
}

CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct object *object = large[((uintptr_t)addr - LARGE_BASE) / NULL_UNIT].object;

    if (object == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&object->references, 1);
    *handle = (uintptr_t)object;
    return CUDA_SUCCESS;
}

/* ---- arrays: of four channels a quarter more than the elements need ---- */

CUresult
cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t bytes = shape->Width * (shape->Height == 0 ? 1 : shape->Height) *
                     (shape->Depth == 0 ? 1 : shape->Depth) * shape->NumChannels * 4;

    *handle = calloc(1, sizeof(**handle));
    (*handle)->device = stack[depth - 1]->device;
    if ((shape->Flags & CUDA_ARRAY3D_SPARSE) == 0)
        (*handle)->bytes = up(bytes + (shape->NumChannels == 4 ? bytes / 4 : 0), NULL_UNIT);
    take((*handle)->device, (*handle)->bytes);
    return CUDA_SUCCESS;
}

CUresult
cuArrayDestroy(CUarray array)
{
    give(array->device, array->bytes);
    free(array);
    return CUDA_SUCCESS;
}

CUresult
cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array,
                             CUdevice device)
{
    needs->size = array->bytes;
    return CUDA_SUCCESS;
}

CUresult
cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                       unsigned int levels)
{
    return cuArray3DCreate_v2((CUarray *)(void *)handle, shape);
}

CUresult
cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    return cuArrayDestroy((CUarray)(void *)mipmap);
}

CUresult
cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs,
                                      CUmipmappedArray mipmap, CUdevice device)
{
    return cuArrayGetMemoryRequirements(needs, (CUarray)(void *)mipmap, device);
}
