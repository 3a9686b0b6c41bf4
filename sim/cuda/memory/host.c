#include "sim/cuda/memory/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/memory/space.h"

#define ALLOC_FLAGS 0x7u
#define REGISTER_FLAGS 0xFu
#define DEVICEMAP 0x2u
#define MANAGED_FLAGS_MOST 2u

/* By address. */
static struct {
    size_t count, room;
    struct sim_pinned *pinned;
    uint64_t ids;
} host;

/* The first range that ends behind `address`. */
static size_t
host_index_of(uint64_t address)
{
    size_t low = 0, high = host.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (host.pinned[middle].address + host.pinned[middle].bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const struct sim_pinned *
sim_host_find(uint64_t address)
{
    size_t at = host_index_of(address);

    return at < host.count && host.pinned[at].address <= address ? &host.pinned[at] : NULL;
}

static CUresult
host_add(const struct sim_pinned *pinned)
{
    size_t at = host_index_of(pinned->address);

    if (at < host.count && host.pinned[at].address < pinned->address + pinned->bytes)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (host.count == host.room) {
        size_t room = host.room == 0 ? 64 : host.room * 2;
        struct sim_pinned *more = realloc(host.pinned, room * sizeof(*more));

        if (more == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        host.pinned = more;
        host.room = room;
    }
    memmove(&host.pinned[at + 1], &host.pinned[at], (host.count - at) * sizeof(host.pinned[0]));
    host.pinned[at] = *pinned;
    host.pinned[at].id = (1ull << 62) + ++host.ids;
    host.count++;
    return CUDA_SUCCESS;
}

static void
host_drop(size_t at)
{
    const struct sim_pinned gone = host.pinned[at];

    host.count--;
    memmove(&host.pinned[at], &host.pinned[at + 1], (host.count - at) * sizeof(host.pinned[0]));
    if (!gone.registered)
        munmap((void *)(uintptr_t)gone.address, gone.bytes);
}

void
sim_host_drop(struct CUctx_st *context)
{
    for (size_t at = host.count; at-- > 0;)
        if (host.pinned[at].context == context)
            host_drop(at);
}

/* ---- the calls ---- */

CUDA_API CUresult
cuMemHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    struct sim_pinned pinned = { .bytes = bytes, .flags = flags | DEVICEMAP };
    CUresult rc = sim_cuda_current(&pinned.context);
    void *map;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (p == NULL || bytes == 0 || (flags & ~ALLOC_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pinned.address = (uint64_t)(uintptr_t)map;
    sim_memory_lock();
    rc = host_add(&pinned);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *p = map;
    else
        munmap(map, bytes);
    return rc;
}

CUDA_ROW(cuMemAllocHost_v2, (void **host_pointer, size_t bytes), cuMemHostAlloc(host_pointer, bytes, 0))
CUDA_ROW(cuMemAllocHost, (void **host_pointer, unsigned int bytes), cuMemHostAlloc(host_pointer, bytes, 0))

static CUresult
host_end_pinned(const void *p, bool registered)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    uint64_t address = (uint64_t)(uintptr_t)p;
    size_t at;

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    at = host_index_of(address);
    if (at < host.count && host.pinned[at].address == address && host.pinned[at].registered == registered)
        host_drop(at);
    else
        rc = registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuMemFreeHost, (void *p), host_end_pinned(p, false))

CUDA_API CUresult
cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags)
{
    struct sim_pinned pinned = {
        .address = (uint64_t)(uintptr_t)p, .bytes = bytes, .flags = flags | DEVICEMAP, .registered = true
    };
    CUresult rc = sim_cuda_current(&pinned.context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (p == NULL || bytes == 0 || (flags & ~REGISTER_FLAGS) != 0 || pinned.address > UINT64_MAX - bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = sim_space_has(pinned.address) ? CUDA_ERROR_INVALID_VALUE : host_add(&pinned);
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuMemHostRegister, (void *p, size_t bytes, unsigned int flags),
         cuMemHostRegister_v2(p, bytes, flags))
CUDA_ROW(cuMemHostUnregister, (void *p), host_end_pinned(p, true))

CUDA_API CUresult
cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *p, unsigned int flags)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    bool found;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (address == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    found = sim_host_find((uint64_t)(uintptr_t)p) != NULL;
    sim_memory_unlock();
    if (found)
        *address = (uint64_t)(uintptr_t)p;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Only what lies below 4 GiB has such an address. */
CUDA_API CUresult
cuMemHostGetDevicePointer(CUdeviceptr_v1 *address, void *p, unsigned int flags)
{
    CUdeviceptr wide = 0;
    CUresult rc = cuMemHostGetDevicePointer_v2(&wide, p, flags);

    if (rc == CUDA_SUCCESS && (address == NULL || wide > UINT32_MAX))
        return CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        *address = (CUdeviceptr_v1)wide;
    return rc;
}

CUDA_API CUresult
cuMemHostGetFlags(unsigned int *flags, void *p)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    const struct sim_pinned *pinned;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    pinned = sim_host_find((uint64_t)(uintptr_t)p);
    if (pinned == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        *flags = pinned->flags;
    sim_memory_unlock();
    return rc;
}

/* ---- managed memory ---- */

/* Its bytes are the machine's, at the same address; pages of a device are taken for what
 * was prefetched there. */
CUDA_API CUresult
cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    const struct sim_region_request request = { .bytes = bytes };
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);
    struct sim_region *region;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (address == NULL || bytes == 0 || flags == 0 || flags > MANAGED_FLAGS_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    region = sim_region_new(SIM_REGION_MANAGED, &request);
    rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (region != NULL) {
        region->context = context;
        region->mapped = calloc(region->span / SIM_PAGE_BYTES, sizeof(*region->mapped));
        region->readable = sim_space_show(region->address, region->span, -1, 0);
        if (region->mapped != NULL && region->readable)
            rc = CUDA_SUCCESS;
    }
    if (rc == CUDA_SUCCESS)
        *address = region->address;
    else if (region != NULL)
        sim_region_free(region);
    sim_memory_unlock();
    return rc;
}

/* Move the units that [address, address + count) touches to a device (`memory` NULL: to
 * the machine).  A device that is full leaves the rest where it is. */
static void
host_move_units(struct sim_region *region, uint64_t address, size_t count, struct sim_memory *memory)
{
    size_t first = (address - region->address) / SIM_PAGE_BYTES;
    size_t last = (address - region->address + count - 1) / SIM_PAGE_BYTES;

    for (size_t unit = first; unit <= last; unit++) {
        struct sim_mapped *mapped = &region->mapped[unit];

        if (mapped->physical != NULL && mapped->physical->memory == memory)
            continue;
        sim_physical_release(mapped->physical);
        mapped->physical = NULL;
        if (memory != NULL && sim_physical_new(memory, SIM_PAGE_BYTES, 0, &mapped->physical) != CUDA_SUCCESS)
            return;
    }
}

/* `device` CU_DEVICE_CPU: the machine. */
static CUresult
host_prefetch(uint64_t address, size_t count, CUdevice device)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);
    struct sim_region *region;
    struct sim_memory *memory = NULL;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    region = sim_region_find(address);
    if (region == NULL || region->kind != SIM_REGION_MANAGED
        || count > region->bytes - (address - region->address))
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (device != CU_DEVICE_CPU)
        rc = sim_memory_open(device, &memory);
    if (rc == CUDA_SUCCESS)
        host_move_units(region, address, count, memory);
    sim_memory_unlock();
    return rc;
}

static CUresult
host_device_of(CUmemLocation location, CUdevice *ret_device)
{
    *ret_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
    return location.type == CU_MEM_LOCATION_TYPE_INVALID
                   || location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUDA_ROW(cuMemPrefetchAsync, (CUdeviceptr address, size_t count, CUdevice target, CUstream stream),
         host_prefetch(address, count, target))
CUDA_ROW(cuMemPrefetchAsync_ptsz, (CUdeviceptr address, size_t count, CUdevice target, CUstream stream),
         host_prefetch(address, count, target))

CUDA_API CUresult
cuMemPrefetchAsync_v2(CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags,
                      CUstream stream)
{
    CUdevice device;
    CUresult rc = host_device_of(location, &device);

    if (rc != CUDA_SUCCESS || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return host_prefetch(address, count, device);
}

CUDA_ROW(cuMemPrefetchAsync_v2_ptsz,
         (CUdeviceptr address, size_t count, CUmemLocation location, unsigned int flags, CUstream stream),
         cuMemPrefetchAsync_v2(address, count, location, flags, stream))

/* Advice changes nothing here. */
static CUresult
host_advise(uint64_t address, size_t count, CUmem_advise advice)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    const struct sim_region *region;

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    region = sim_region_find(address);
    if (region == NULL || region->kind != SIM_REGION_MANAGED || count == 0
        || count > region->bytes - (address - region->address) || advice < CU_MEM_ADVISE_SET_READ_MOSTLY
        || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        rc = CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuMemAdvise, (CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device),
         host_advise(address, count, advice))

CUDA_API CUresult
cuMemAdvise_v2(CUdeviceptr address, size_t count, CUmem_advise advice, CUmemLocation location)
{
    CUdevice device;
    CUresult rc = host_device_of(location, &device);

    return rc == CUDA_SUCCESS ? host_advise(address, count, advice) : rc;
}
