/* What an address is. */
#include <string.h>

#include "sim/cuda/memory/alloc.h"
#include "sim/cuda/memory/host.h"

/* All that can be asked about an address; zeros: it is nothing the driver knows. */
struct facts {
    bool known, managed, readable, mapped;
    struct CUctx_st *context;
    CUmemorytype type;
    CUdevice device;
    uint64_t address, start, id;
    size_t bytes;
    CUmemoryPool pool;
    unsigned handle_types, access;
};

/* ---- under the lock ---- */

static void
pointer_learn_reserved(const struct sim_region *region, struct facts *facts)
{
    uint64_t at = facts->address - region->address;
    const struct sim_mapped *mapped = &region->mapped[at / SIM_PAGE_BYTES];

    facts->start = region->address;
    facts->bytes = region->span;
    if (mapped->physical == NULL)
        return;
    facts->known = facts->mapped = true;
    facts->start = mapped->start;
    facts->bytes = mapped->size;
    facts->access = mapped->access;
    facts->readable = mapped->physical->memory == NULL;
    facts->type = facts->readable ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (mapped->physical->memory != NULL)
        facts->device = mapped->physical->memory->number;
    facts->handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

static void
pointer_learn_region(struct sim_region *region, struct facts *facts)
{
    struct sim_range range;

    facts->id = region->id;
    if (region->kind == SIM_REGION_RESERVED) {
        pointer_learn_reserved(region, facts);
        return;
    }
    if (!sim_alloc_find(facts->address, &range))
        return;
    facts->known = facts->mapped = true;
    facts->context = region->context;
    facts->managed = region->kind == SIM_REGION_MANAGED;
    facts->readable = region->readable;
    facts->type = region->readable && !facts->managed ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    facts->start = range.start;
    facts->bytes = range.bytes;
    facts->pool = region->pool;
    facts->access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (region->context != NULL)
        facts->device = region->context->device;
    else if (region->physical != NULL && region->physical->memory != NULL)
        facts->device = region->physical->memory->number;
    /* a small one has an identity of its own within its chunk */
    facts->id = (region->id << 16) + (range.start - region->address) / SIM_HEAP_UNIT;
}

static void
pointer_learn(uint64_t address, struct facts *ret_facts)
{
    struct sim_region *region = sim_region_find(address);
    const struct sim_pinned *pinned = region == NULL ? sim_host_find(address) : NULL;

    *ret_facts = (struct facts){ .address = address };
    if (region != NULL)
        pointer_learn_region(region, ret_facts);
    else if (pinned != NULL)
        *ret_facts = (struct facts){ .known = true,
                                     .mapped = true,
                                     .readable = true,
                                     .context = pinned->context,
                                     .device = pinned->context->device,
                                     .type = CU_MEMORYTYPE_HOST,
                                     .address = address,
                                     .start = pinned->address,
                                     .bytes = pinned->bytes,
                                     .id = pinned->id,
                                     .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
}

/* ---- answers ---- */

#define PUT(type, value)                                                                                     \
    do {                                                                                                     \
        const type put = (value);                                                                            \
                                                                                                             \
        memcpy(data, &put, sizeof(put));                                                                     \
    } while (0)

#define FACT(attribute, type, value)                                                                         \
    case attribute:                                                                                          \
        PUT(type, value);                                                                                    \
        return CUDA_SUCCESS;

static CUresult
pointer_answer(void *data, CUpointer_attribute attribute, const struct facts *facts)
{
    switch ((int)attribute) {
        FACT(CU_POINTER_ATTRIBUTE_CONTEXT, CUcontext, facts->context)
        FACT(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUmemorytype, facts->type)
        FACT(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CUdeviceptr, facts->address)
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!facts->readable)
            return CUDA_ERROR_INVALID_VALUE;
        PUT(void *, (void *)(uintptr_t)facts->address);
        return CUDA_SUCCESS;
        FACT(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, bool, false)
        FACT(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, bool, false)
        FACT(CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, bool, false)
        FACT(CU_POINTER_ATTRIBUTE_BUFFER_ID, uint64_t, facts->id)
        FACT(CU_POINTER_ATTRIBUTE_IS_MANAGED, bool, facts->managed)
        FACT(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, int, facts->device)
        FACT(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, bool,
             facts->type == CU_MEMORYTYPE_DEVICE && facts->context != NULL && !facts->managed)
        FACT(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CUdeviceptr, facts->start)
        FACT(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CUdeviceptr, facts->start)
        FACT(CU_POINTER_ATTRIBUTE_RANGE_SIZE, size_t, facts->bytes)
        FACT(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, size_t, facts->bytes)
        FACT(CU_POINTER_ATTRIBUTE_MAPPED, bool, facts->mapped)
        FACT(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, uint64_t, facts->handle_types)
        FACT(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, unsigned, facts->access)
        FACT(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, CUmemoryPool, facts->pool)
        FACT(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, uint64_t, facts->id)
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUDA_API CUresult
cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct facts facts;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    pointer_learn(address, &facts);
    sim_memory_unlock();
    return facts.known || (facts.bytes > 0 && attribute == CU_POINTER_ATTRIBUTE_MAPPED)
               ? pointer_answer(data, attribute, &facts)
               : CUDA_ERROR_INVALID_VALUE;
}

/* Of an address that is nothing, each answer is zeros. */
CUDA_API CUresult
cuPointerGetAttributes(unsigned int num_attributes, CUpointer_attribute *attributes, void **data,
                       CUdeviceptr address)
{
    struct facts facts;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (attributes == NULL || data == NULL || num_attributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    pointer_learn(address, &facts);
    sim_memory_unlock();
    if (!facts.known) {
        facts = (struct facts){ .device = -2, .readable = true };
        facts.address = 0;
    }
    for (unsigned i = 0; i < num_attributes; i++) {
        CUresult rc = pointer_answer(data[i], attributes[i], &facts);

        if (rc != CUDA_SUCCESS && attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
            memset(data[i], 0, sizeof(void *));
        else if (rc != CUDA_SUCCESS)
            return rc;
    }
    return CUDA_SUCCESS;
}
