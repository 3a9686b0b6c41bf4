/* Memory of another process: by a handle of 64 bytes, or as external memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cuda/memory/alloc.h"
#include "sim/cuda/memory/pool.h"

#define IPC_MAGIC 0x42484950u
#define IPC_FLAGS 1u
#define POOL_MAGIC 0x42484951u
#define EXTERNAL_MAGIC 0x42484558u
#define EXTERNAL_OPAQUE_FD 1u
#define EXTERNAL_DMABUF_FD 9u

/* What a handle says. */
struct note {
    uint32_t magic, slot, generation;
    int32_t pid;
    uint64_t birth;               /* of the instance whose memory it is */
    uint64_t bytes, offset, part; /* of the region; of the allocation in it */
};

_Static_assert(sizeof(struct note) <= sizeof(CUipcMemHandle), "it fits");

struct CUextMemory_st {
    uint32_t magic;
    struct CUextMemory_st *next;
    struct sim_physical *physical;
    size_t bytes;
};

static struct CUextMemory_st *externals;

/* ---- handles ---- */

/* `pool`: an address that a pool gave out, and else one of cuMemAlloc. */
static CUresult
ipc_write_note(uint64_t address, bool pool, struct note *ret_note)
{
    struct sim_range range;
    struct sim_region *region;
    CUresult rc;

    if (!sim_alloc_find(address, &range))
        return CUDA_ERROR_INVALID_VALUE;
    region = range.region;
    if (pool ? region->kind != SIM_REGION_SEGMENT || !sim_pool_is_exportable(region->pool)
             : region->kind != SIM_REGION_LINEAR && region->kind != SIM_REGION_CHUNK)
        return CUDA_ERROR_INVALID_VALUE;
    rc = sim_physical_share(region->physical, CU_MEM_LOCATION_TYPE_DEVICE);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_note = (struct note){
        .magic = IPC_MAGIC,
        .slot = region->physical->slot,
        .generation = sim_ledger_slot(region->physical->memory->vram, region->physical->slot)->generation,
        .pid = (int32_t)getpid(),
        .birth = region->physical->memory->birth,
        .bytes = region->bytes,
        .offset = range.start - region->address,
        .part = range.bytes
    };
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);
    struct note note;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = ipc_write_note(address, false, &note);
    sim_memory_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &note, sizeof(note));
    return CUDA_SUCCESS;
}

static struct sim_memory *
ipc_find_memory(uint64_t birth)
{
    struct sim_memory *memory;
    int count = 0;

    (void)cuDeviceGetCount(&count);
    for (CUdevice number = 0; number < count; number++)
        if (sim_memory_open(number, &memory) == CUDA_SUCCESS && memory->birth == birth)
            return memory;
    return NULL;
}

/* A region where this process has it already. */
static bool
ipc_match_slot(const struct sim_region *region, const void *self)
{
    const struct note *note = self;

    return region->kind == SIM_REGION_IMPORTED && region->physical->slot == note->slot
           && region->physical->memory->birth == note->birth;
}

static CUresult
ipc_import(const struct note *note, enum sim_region_kind kind, struct sim_region **ret_region)
{
    const struct sim_region_request request = { .bytes = note->bytes };
    struct sim_memory *memory = ipc_find_memory(note->birth);
    struct sim_physical *physical;
    CUresult rc;

    if (memory == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    rc = sim_physical_reopen(memory, note->slot, note->generation, &physical);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_region = sim_region_new(kind, &request);
    if (*ret_region == NULL || note->bytes > physical->bytes) {
        sim_physical_release(physical);
        if (*ret_region != NULL)
            sim_region_free(*ret_region);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*ret_region)->physical = physical;
    return CUDA_SUCCESS;
}

static CUresult
ipc_open_note(const struct note *note, struct CUctx_st *context, struct sim_region **ret_region)
{
    CUresult rc = CUDA_SUCCESS;

    *ret_region = sim_region_search(ipc_match_slot, note);
    if (*ret_region == NULL)
        rc = ipc_import(note, SIM_REGION_IMPORTED, ret_region);
    if (rc == CUDA_SUCCESS) {
        (*ret_region)->context = context;
        (*ret_region)->opened++;
    }
    return rc;
}

CUDA_API CUresult
cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    struct sim_region *region = NULL;
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);
    struct note note;

    if (rc != CUDA_SUCCESS)
        return rc;
    memcpy(&note, &handle, sizeof(note));
    if (address == NULL || flags != IPC_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (note.magic != IPC_MAGIC || note.offset >= note.bytes)
        return CUDA_ERROR_INVALID_HANDLE;
    if (note.pid == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* it is this process's own */
    sim_memory_lock();
    rc = ipc_open_note(&note, context, &region);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *address = region->address + note.offset;
    return rc;
}

CUDA_ROW(cuIpcOpenMemHandle, (CUdeviceptr * address, CUipcMemHandle handle, unsigned int flags),
         cuIpcOpenMemHandle_v2(address, handle, flags))

CUDA_API CUresult
cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    struct sim_region *region;

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    region = sim_region_find(address);
    if (region == NULL || region->kind != SIM_REGION_IMPORTED)
        rc = CUDA_ERROR_INVALID_VALUE;
    else if (--region->opened == 0)
        sim_region_free(region);
    sim_memory_unlock();
    return rc;
}

/* ---- pools ---- */

/* What the file says that stands for a pool. */
struct pool_note {
    uint32_t magic, pad;
    uint64_t birth;
};

CUDA_API CUresult
cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handle_type,
                                 unsigned long long flags)
{
    struct pool_note note = { .magic = POOL_MAGIC };
    CUresult rc = CUDA_SUCCESS;
    struct sim_memory *memory;
    int fd = -1;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (handle_out == NULL || flags != 0 || handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (!sim_pool_is_exportable(pool))
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        rc = sim_memory_open(sim_pool_device(pool), &memory);
    if (rc == CUDA_SUCCESS)
        note.birth = memory->birth;
    sim_memory_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    fd = memfd_create("bulkhead-sim-pool", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &note, sizeof(note)) != (ssize_t)sizeof(note)) {
        if (fd >= 0)
            close(fd);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *(int *)handle_out = fd;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType handle_type,
                                   unsigned long long flags)
{
    CUresult rc = CUDA_ERROR_INVALID_VALUE;
    struct sim_memory *memory;
    struct pool_note note;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (pool == NULL || flags != 0 || handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        || pread((int)(intptr_t)handle, &note, sizeof(note), 0) != (ssize_t)sizeof(note)
        || note.magic != POOL_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    memory = ipc_find_memory(note.birth);
    if (memory != NULL)
        rc = sim_pool_import(memory->number, pool);
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMemPoolExportPointer(CUmemPoolPtrExportData *share_data_out, CUdeviceptr address)
{
    struct note note;
    CUresult rc;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (share_data_out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = ipc_write_note(address, true, &note);
    sim_memory_unlock();
    if (rc != CUDA_SUCCESS)
        return rc;
    memset(share_data_out, 0, sizeof(*share_data_out));
    memcpy(share_data_out, &note, sizeof(note));
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *share_data)
{
    struct sim_region *region = NULL;
    struct note note;
    CUresult rc = CUDA_ERROR_INVALID_VALUE;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (address == NULL || share_data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&note, share_data, sizeof(note));
    if (note.magic != IPC_MAGIC || note.offset >= note.bytes || note.part > note.bytes - note.offset)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (sim_pool_is_imported(pool))
        rc = ipc_import(&note, SIM_REGION_EXTERNAL, &region);
    if (rc == CUDA_SUCCESS) {
        /* the allocation begins the region: the rest of the segment is not shown */
        region->offset = note.offset;
        region->bytes = note.part;
        *address = region->address;
    }
    sim_memory_unlock();
    return rc;
}

/* ---- external memory ---- */

static bool
ipc_is_external(const struct CUextMemory_st *wanted)
{
    for (const struct CUextMemory_st *one = externals; one != NULL; one = one->next)
        if (one == wanted)
            return true;
    return false;
}

/* Its maker has the memory; the descriptor becomes the driver's. */
CUDA_API CUresult
cuImportExternalMemory(CUexternalMemory *ext_mem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
    struct CUextMemory_st *made;
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (ext_mem_out == NULL || desc == NULL || desc->size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->type != EXTERNAL_OPAQUE_FD && desc->type != EXTERNAL_DMABUF_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    made = calloc(1, sizeof(*made));
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->magic = EXTERNAL_MAGIC;
    made->bytes = desc->size;
    sim_memory_lock();
    rc = sim_physical_adopt(desc->handle.fd, &made->physical);
    if (rc == CUDA_SUCCESS && desc->size > made->physical->bytes) {
        sim_physical_release(made->physical);
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (rc == CUDA_SUCCESS) {
        made->next = externals;
        externals = made;
        *ext_mem_out = made;
    }
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        close(desc->handle.fd);
    else
        free(made);
    return rc;
}

static CUresult
ipc_show(struct sim_region *region, struct sim_physical *physical)
{
    if (physical->memory != NULL)
        return CUDA_SUCCESS;
    region->readable = sim_space_show(region->address, region->span, physical->fd, region->offset);
    return region->readable ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_API CUresult
cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    struct sim_region *region = NULL;
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (address == NULL || desc == NULL || desc->size == 0 || desc->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (!ipc_is_external(memory))
        rc = CUDA_ERROR_INVALID_HANDLE;
    else if (desc->offset > memory->bytes || desc->size > memory->bytes - desc->offset)
        rc = CUDA_ERROR_INVALID_VALUE;
    else {
        region = sim_region_new(SIM_REGION_EXTERNAL, &(struct sim_region_request){ .bytes = desc->size });
        rc = region == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    if (rc == CUDA_SUCCESS) {
        region->context = context;
        region->offset = desc->offset;
        rc = ipc_show(region, memory->physical);
    }
    if (rc == CUDA_SUCCESS) {
        region->physical = memory->physical;
        memory->physical->references++;
        *address = region->address;
    } else if (region != NULL)
        sim_region_free(region);
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuDestroyExternalMemory(CUexternalMemory memory)
{
    CUresult rc = CUDA_ERROR_INVALID_HANDLE;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    sim_memory_lock();
    for (struct CUextMemory_st **link = &externals; *link != NULL; link = &(*link)->next)
        if (*link == memory) {
            *link = memory->next;
            sim_physical_release(memory->physical);
            free(memory);
            rc = CUDA_SUCCESS;
            break;
        }
    sim_memory_unlock();
    return rc;
}
