#include "shim/calls/external.h"

#include "shim/charge/charge.h"
#include "shim/charge/ledger.h"
#include "shim/charge/object.h"
#include "shim/charge/ticket.h"
#include "shim/driver/driver.h"
#include "shim/process/handles.h"

#define HANDLE(pointer) ((uint64_t)(uintptr_t)(pointer))

/* A word: the import's object. */
static struct bh_handles imports;

void
bh_imports_init(void)
{
    bh_handles_init(&imports);
}

static CUresult
external_settle(struct bh_ticket *ticket, CUresult rc, const CUexternalMemory *memory)
{
    uint32_t object;

    if (rc == CUDA_SUCCESS && bh_object_new(ticket->device, ticket->grains, &object)) {
        if (bh_handles_put(&imports, HANDLE(*memory), object))
            return CUDA_SUCCESS;
        bh_object_forget(object);
    }
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuDestroyExternalMemory)(*memory);
    bh_charge_give(ticket->device, ticket->grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

CUresult
cuImportExternalMemory(CUexternalMemory *ext_mem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *mem_handle_desc)
{
    struct bh_ticket ticket;
    CUresult rc = bh_ticket_take(mem_handle_desc == NULL ? 0 : mem_handle_desc->size, &ticket);

    return rc != CUDA_SUCCESS
               ? rc
               : external_settle(&ticket, REAL(cuImportExternalMemory)(ext_mem_out, mem_handle_desc),
                                 ext_mem_out);
}

/* Freed by cuMemFree. */
CUresult
cuExternalMemoryGetMappedBuffer(CUdeviceptr *dev_ptr, CUexternalMemory ext_mem,
                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer_desc)
{
    CUresult rc = REAL(cuExternalMemoryGetMappedBuffer)(dev_ptr, ext_mem, buffer_desc);
    struct bh_charge_record record = { .kind = BH_RECORD_EXTERNAL };
    uint64_t object;

    if (rc != CUDA_SUCCESS || !bh_handles_find(&imports, HANDLE(ext_mem), &object))
        return rc;
    record.amount = object;
    bh_object_mapped((uint32_t)object);
    if (bh_ledger_note(*dev_ptr, record))
        return CUDA_SUCCESS;
    (void)REAL(cuMemFree_v2)(*dev_ptr);
    bh_object_unmapped((uint32_t)object);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* When the arrays end is not followed: the import stays charged. */
CUresult
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory ext_mem,
                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmap_desc)
{
    CUresult rc = REAL(cuExternalMemoryGetMappedMipmappedArray)(mipmap, ext_mem, mipmap_desc);
    uint64_t object;

    if (rc == CUDA_SUCCESS && bh_handles_find(&imports, HANDLE(ext_mem), &object))
        bh_object_mapped((uint32_t)object);
    return rc;
}

CUresult
cuDestroyExternalMemory(CUexternalMemory ext_mem)
{
    uint64_t object = 0;
    bool known = bh_handles_take(&imports, HANDLE(ext_mem), &object);
    CUresult rc = REAL(cuDestroyExternalMemory)(ext_mem);

    if (known && rc == CUDA_SUCCESS)
        bh_object_released((uint32_t)object);
    else if (known)
        (void)BH_HOLDS(bh_handles_put(&imports, HANDLE(ext_mem), object));
    return rc;
}
