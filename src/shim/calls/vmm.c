#include "shim/calls/vmm.h"

#include <stdatomic.h>

#include "shim/charge/charge.h"
#include "shim/charge/ledger.h"
#include "shim/charge/object.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/process/handles.h"

/* A handle's word: its object, and how often the driver gave this value out. */
#define ONE_HANDLE (UINT64_C(1) << 32)
#define OBJECT_OF(word) ((uint32_t)(word))

static struct bh_handles handles;

void
bh_object_handles_init(void)
{
    bh_handles_init(&handles);
}

/* ---- handles ---- */

CUresult
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
            unsigned long long flags)
{
    CUresult rc = bh_ledger_ready();
    int device;
    uint64_t grains;
    uint32_t object;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (prop == NULL || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return REAL(cuMemCreate)(handle, size, prop, flags);
    device = bh_page_device(prop->location.id);
    if (device < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    grains = bh_charge_grains(size);
    rc = bh_ledger_reserve((unsigned)device, grains);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuMemCreate)(handle, size, prop, flags);
    if (rc == CUDA_SUCCESS && bh_object_new((unsigned)device, grains, &object)) {
        if (bh_handles_put(&handles, *handle, ONE_HANDLE | object))
            return CUDA_SUCCESS;
        bh_object_forget(object);
    }
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuMemRelease)(*handle);
    bh_charge_give((unsigned)device, grains);
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

/* One reference less through this value; the last takes the value out. */
static bool
vmm_take_handle(uint64_t handle, uint32_t *ret_object)
{
    _Atomic uint64_t *word = bh_handles_at(&handles, handle);
    uint64_t before = word == NULL ? 0 : atomic_load(word);

    if (before == 0)
        return false;
    *ret_object = OBJECT_OF(before);
    while (before >= 2 * ONE_HANDLE)
        if (atomic_compare_exchange_weak(word, &before, before - ONE_HANDLE))
            return true;
    return bh_handles_take(&handles, handle, &before);
}

static bool
vmm_give_handle(uint64_t handle, uint32_t object)
{
    _Atomic uint64_t *word = bh_handles_at(&handles, handle);

    if (word == NULL)
        return bh_handles_put(&handles, handle, ONE_HANDLE | object);
    atomic_fetch_add(word, ONE_HANDLE);
    return true;
}

CUresult
cuMemRelease(CUmemGenericAllocationHandle handle)
{
    uint32_t object;
    bool known = vmm_take_handle(handle, &object);
    CUresult rc = REAL(cuMemRelease)(handle);

    if (!known)
        return rc;
    if (rc == CUDA_SUCCESS)
        bh_object_released(object);
    else
        (void)BH_HOLDS(vmm_give_handle(handle, object));
    return rc;
}

/* The handle has the value that is known, or is another one for what is mapped there. */
CUresult
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult rc = REAL(cuMemRetainAllocationHandle)(handle, addr);
    struct bh_charge_record record;
    uint64_t word;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (bh_handles_find(&handles, *handle, &word))
        record.amount = OBJECT_OF(word);
    else if (!bh_records_before((uintptr_t)addr, &record) || record.kind != BH_RECORD_MAP)
        return rc; /* imported: the exporter is charged */
    bh_object_held((uint32_t)record.amount);
    (void)BH_HOLDS(vmm_give_handle(*handle, (uint32_t)record.amount));
    return rc;
}

/* ---- mappings ---- */

CUresult
cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
         unsigned long long flags)
{
    struct bh_charge_record record = { .kind = BH_RECORD_MAP };
    uint64_t word;
    CUresult rc;

    if (!bh_handles_find(&handles, handle, &word))
        return REAL(cuMemMap)(address, size, offset, handle, flags);
    record.amount = OBJECT_OF(word);
    bh_object_mapped(OBJECT_OF(word));
    rc = REAL(cuMemMap)(address, size, offset, handle, flags);
    if (rc == CUDA_SUCCESS && bh_ledger_note(address, record))
        return CUDA_SUCCESS;
    if (rc == CUDA_SUCCESS)
        (void)REAL(cuMemUnmap)(address, size);
    bh_object_unmapped(OBJECT_OF(word));
    return rc == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

static void
vmm_change_kinds(uint64_t from, uint64_t below, enum bh_record_kind kind, enum bh_record_kind to)
{
    struct bh_charge_record record;

    while ((from = bh_records_next(from, below, &record)) < below) {
        if (record.kind == kind)
            (void)bh_records_change_kind(from, kind, to);
        from++;
    }
}

/* Mappings are marked before the driver ends them, and forgotten after.  One that another
 * thread makes at the same address in between takes the place of the marked one, which is
 * then forgotten there. */
CUresult
cuMemUnmap(CUdeviceptr address, size_t size)
{
    uint64_t below = size > BH_RECORDS_END - address ? BH_RECORDS_END : address + size;
    struct bh_charge_record record;
    CUresult rc;

    if (address >= BH_RECORDS_END)
        return REAL(cuMemUnmap)(address, size);
    vmm_change_kinds(address, below, BH_RECORD_MAP, BH_RECORD_LEAVING);
    rc = REAL(cuMemUnmap)(address, size);
    if (rc != CUDA_SUCCESS) {
        vmm_change_kinds(address, below, BH_RECORD_LEAVING, BH_RECORD_MAP);
        return rc;
    }
    for (uint64_t at = address; (at = bh_records_next(at, below, &record)) < below; at++)
        if (bh_records_take(at, 1u << BH_RECORD_LEAVING, &record))
            bh_ledger_forget(at, record);
    return rc;
}

/* A sparse array's mapping, as far as it must be read: resource, subresource, then this. */
struct map_info {
    unsigned char head[56];
    unsigned int operation, handle_type;
    CUmemGenericAllocationHandle handle;
    unsigned char tail[32];
};

/* What is mapped into an array stays charged: which mappings end when parts of an array are
 * unmapped is not followed. */
static void
vmm_hold_mapped(const CUarrayMapInfo *list, unsigned int count)
{
    const struct map_info *info = (const struct map_info *)(const void *)list;
    uint64_t word;

    for (unsigned int i = 0; i < count; i++)
        if (info[i].operation == 1 && bh_handles_find(&handles, info[i].handle, &word))
            bh_object_mapped(OBJECT_OF(word));
}

#define MAP_ARRAY(name)                                                                                      \
    CUresult name(CUarrayMapInfo *list, unsigned int count, CUstream stream)                                 \
    {                                                                                                        \
        CUresult rc = REAL(name)(list, count, stream);                                                       \
                                                                                                             \
        if (rc == CUDA_SUCCESS)                                                                              \
            vmm_hold_mapped(list, count);                                                                    \
        return rc;                                                                                           \
    }

MAP_ARRAY(cuMemMapArrayAsync)
MAP_ARRAY(cuMemMapArrayAsync_ptsz)
