/* Virtual memory: physical objects, addresses, and the mapping of one to the other. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cuda/memory/space.h"

#define HANDLE_MAGIC 0x4248564du
#define GRANULE SIM_PAGE_BYTES

/* A handle: it lives while it is referenced.  Its memory lives on while it is mapped. */
struct handle {
    uint32_t magic;
    unsigned references;
    struct handle *next, *previous;
    struct sim_physical *physical;
    CUmemAllocationProp prop;
};

static struct handle *handles;

/* ---- handles, under the lock ---- */

static struct handle *
vmm_find_handle(CUmemGenericAllocationHandle number)
{
    for (struct handle *handle = handles; handle != NULL; handle = handle->next)
        if ((uintptr_t)handle == number)
            return handle;
    return NULL;
}

/* `physical` becomes the handle's. */
static CUresult
vmm_make_handle(struct sim_physical *physical, const CUmemAllocationProp *prop, struct handle **ret_handle)
{
    struct handle *handle = malloc(sizeof(*handle));

    if (handle == NULL) {
        sim_physical_release(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (struct handle){
        .magic = HANDLE_MAGIC, .references = 1, .next = handles, .physical = physical, .prop = *prop
    };
    if (handles != NULL)
        handles->previous = handle;
    handles = handle;
    *ret_handle = handle;
    return CUDA_SUCCESS;
}

static void
vmm_release_handle(struct handle *handle)
{
    if (--handle->references > 0)
        return;
    if (handle->previous != NULL)
        handle->previous->next = handle->next;
    else
        handles = handle->next;
    if (handle->next != NULL)
        handle->next->previous = handle->previous;
    sim_physical_release(handle->physical);
    free(handle);
}

static CUmemAllocationProp
vmm_prop_of(const struct sim_physical *physical)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { CU_MEM_LOCATION_TYPE_HOST, 0 } };

    if (physical->fd >= 0)
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (physical->memory != NULL)
        prop.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, physical->memory->number };
    return prop;
}

static bool
vmm_is_host(CUmemLocationType type)
{
    return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA
           || type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult
vmm_check_prop(const CUmemAllocationProp *prop)
{
    struct sim_cuda_device device;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (prop == NULL || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (vmm_is_host(prop->location.type))
        return CUDA_SUCCESS;
    return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? sim_cuda_device(prop->location.id, &device)
                                                              : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
vmm_make_physical(size_t size, const CUmemAllocationProp *prop, struct sim_physical **ret_physical)
{
    struct sim_memory *memory;
    CUresult rc;

    if (vmm_is_host(prop->location.type))
        return sim_physical_new_host(size, ret_physical);
    rc = sim_memory_open(prop->location.id, &memory);
    return rc == CUDA_SUCCESS ? sim_physical_new(memory, size, 0, ret_physical) : rc;
}

/* No context is needed. */
CUDA_API CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
            unsigned long long flags)
{
    struct sim_physical *physical;
    struct handle *made = NULL;
    CUresult rc = vmm_check_prop(prop);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (handle == NULL || size == 0 || size % GRANULE != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = vmm_make_physical(size, prop, &physical);
    if (rc == CUDA_SUCCESS)
        rc = vmm_make_handle(physical, prop, &made);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *handle = (uintptr_t)made;
    return rc;
}

CUDA_API CUresult
cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct handle *found;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    found = vmm_find_handle(handle);
    if (found != NULL)
        vmm_release_handle(found);
    sim_memory_unlock();
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult
cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                              CUmemAllocationGranularity_flags option)
{
    CUresult rc = vmm_check_prop(prop);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (granularity == NULL || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = GRANULE;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    const struct handle *found;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (prop == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    found = vmm_find_handle(handle);
    if (found != NULL)
        *prop = found->prop;
    sim_memory_unlock();
    return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- addresses ---- */

CUDA_API CUresult
cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted,
                    unsigned long long flags)
{
    const struct sim_region_request request = { size, alignment, wanted, false };
    struct sim_region *region;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (address == NULL || size == 0 || size % GRANULE != 0 || flags != 0
        || (alignment & (alignment - 1)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    region = sim_region_new(SIM_REGION_RESERVED, &request);
    if (region != NULL) {
        region->mapped = calloc(region->span / GRANULE, sizeof(*region->mapped));
        if (region->mapped != NULL)
            *address = region->address;
        else
            sim_region_free(region);
    }
    sim_memory_unlock();
    return region != NULL && region->mapped != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The reservation that [address, address + size) lies in; NULL: none, or not in whole
 * granules. */
static struct sim_region *
vmm_find_reserved(uint64_t address, size_t size, struct sim_mapped **ret_first)
{
    struct sim_region *region = sim_region_find(address);

    if (region == NULL || region->kind != SIM_REGION_RESERVED || size == 0 || address % GRANULE != 0
        || size % GRANULE != 0 || size > region->span - (address - region->address))
        return NULL;
    *ret_first = &region->mapped[(address - region->address) / GRANULE];
    return region;
}

/* Nothing of it is mapped; or all of it. */
static bool
vmm_is_uniform(const struct sim_mapped *first, size_t size, bool mapped)
{
    for (size_t i = 0; i < size / GRANULE; i++)
        if ((first[i].physical != NULL) != mapped)
            return false;
    return true;
}

CUDA_API CUresult
cuMemAddressFree(CUdeviceptr address, size_t size)
{
    struct sim_region *region;
    struct sim_mapped *first;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    region = vmm_find_reserved(address, size, &first);
    if (region != NULL && region->address == address && region->span == size
        && vmm_is_uniform(first, size, false)) {
        sim_region_free(region);
        rc = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return rc;
}

/* ---- mappings ---- */

static CUresult
vmm_map(uint64_t address, size_t size, struct sim_physical *physical)
{
    struct sim_mapped *first;
    struct sim_region *region = vmm_find_reserved(address, size, &first);

    if (region == NULL || size > physical->bytes || !vmm_is_uniform(first, size, false))
        return CUDA_ERROR_INVALID_VALUE;
    if (physical->memory == NULL && !sim_space_show(address, size, physical->fd, 0))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < size / GRANULE; i++) {
        first[i] = (struct sim_mapped){
            .physical = physical, .offset = i * GRANULE, .start = address, .size = size
        };
        physical->references++;
    }
    return CUDA_SUCCESS;
}

/* A mapping begins at the object's beginning, as the vendor's must. */
CUDA_API CUresult
cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
         unsigned long long flags)
{
    struct handle *found;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (offset != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    found = vmm_find_handle(handle);
    if (found != NULL)
        rc = vmm_map(address, size, found->physical);
    sim_memory_unlock();
    return rc;
}

/* No mapping is cut. */
static bool
vmm_is_whole(uint64_t address, size_t size, const struct sim_mapped *first)
{
    const struct sim_mapped *last = &first[size / GRANULE - 1];

    return vmm_is_uniform(first, size, true) && first->start >= address
           && last->start + last->size <= address + size;
}

CUDA_API CUresult
cuMemUnmap(CUdeviceptr address, size_t size)
{
    struct sim_region *region;
    struct sim_mapped *first;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    region = vmm_find_reserved(address, size, &first);
    if (region != NULL && vmm_is_whole(address, size, first)) {
        for (size_t i = 0; i < size / GRANULE; i++) {
            if (first[i].physical->memory == NULL)
                sim_space_hide(address + i * GRANULE, GRANULE);
            sim_physical_release(first[i].physical);
            first[i] = (struct sim_mapped){ 0 };
        }
        rc = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    struct sim_cuda_device device;
    struct sim_mapped *first;
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (desc == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++)
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            rc = sim_cuda_device(desc[i].location.id, &device);
        else if (!vmm_is_host(desc[i].location.type))
            rc = CUDA_ERROR_INVALID_VALUE;
    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    if (vmm_find_reserved(address, size, &first) == NULL || !vmm_is_uniform(first, size, true))
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        for (size_t i = 0; i < size / GRANULE; i++)
            first[i].access = desc[count - 1].flags;
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    struct sim_mapped *first;
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags == NULL || location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (vmm_find_reserved(address / GRANULE * GRANULE, GRANULE, &first) == NULL || first->physical == NULL)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        *flags = first->access;
    sim_memory_unlock();
    return rc;
}

/* The handle of what is mapped at an address, made again where it was released. */
CUDA_API CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret_handle, void *addr)
{
    uint64_t address = (uint64_t)(uintptr_t)addr / GRANULE * GRANULE;
    struct sim_mapped *first;
    struct handle *handle;
    CUmemAllocationProp prop;
    CUresult rc = CUDA_SUCCESS;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (ret_handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (vmm_find_reserved(address, GRANULE, &first) == NULL || first->physical == NULL) {
        sim_memory_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (handle = handles; handle != NULL; handle = handle->next)
        if (handle->physical == first->physical)
            break;
    if (handle != NULL)
        handle->references++;
    else {
        prop = vmm_prop_of(first->physical);
        first->physical->references++;
        rc = vmm_make_handle(first->physical, &prop, &handle);
    }
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *ret_handle = (uintptr_t)handle;
    return rc;
}

/* ---- between processes ---- */

CUDA_API CUresult
cuMemExportToShareableHandle(void *shareable_handle, CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType handle_type, unsigned long long flags)
{
    struct handle *found;
    CUresult rc = CUDA_SUCCESS;
    int fd = -1;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (shareable_handle == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    sim_memory_lock();
    found = vmm_find_handle(handle);
    if (found == NULL || (found->prop.requestedHandleTypes & handle_type) == 0)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        rc = sim_physical_share(found->physical, CU_MEM_LOCATION_TYPE_DEVICE);
    if (rc == CUDA_SUCCESS)
        fd = fcntl(found->physical->fd, F_DUPFD_CLOEXEC, 0);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS && fd < 0)
        rc = CUDA_ERROR_OPERATING_SYSTEM;
    if (rc == CUDA_SUCCESS)
        *(int *)shareable_handle = fd;
    return rc;
}

CUDA_API CUresult
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret_handle, void *os_handle,
                               CUmemAllocationHandleType handle_type)
{
    struct sim_physical *physical = NULL;
    struct handle *handle = NULL;
    CUmemAllocationProp prop;
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (ret_handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    sim_memory_lock();
    rc = sim_physical_adopt((int)(intptr_t)os_handle, &physical);
    if (rc == CUDA_SUCCESS) {
        prop = vmm_prop_of(physical);
        rc = vmm_make_handle(physical, &prop, &handle);
    }
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *ret_handle = (uintptr_t)handle;
    return rc;
}
