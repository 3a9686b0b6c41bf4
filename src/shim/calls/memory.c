/* Linear memory, and how much of it the program sees. */
#include <limits.h>
#include <stdatomic.h>

#include "shim/calls/graph.h"
#include "shim/charge/charge.h"
#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/charge/pool.h"
#include "shim/charge/ticket.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/work/capture.h"

enum { PITCH = 512 };

/* ---- allocations of a context ---- */

static CUresult
memory_undo_low(uint64_t address)
{
    return REAL(cuMemFree)((CUdeviceptr_v1)address);
}

CUresult
cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    struct bh_ticket ticket;
    CUresult made, rc = bh_ticket_take(bytes, &ticket);

    if (rc != CUDA_SUCCESS)
        return rc;
    made = REAL(cuMemAlloc_v2)(address, bytes);
    return bh_ticket_settle(&ticket, made, made == CUDA_SUCCESS ? *address : 0, bh_ticket_undo);
}

CUresult
cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    struct bh_ticket ticket;
    CUresult made, rc = bh_ticket_take(bytes, &ticket);

    if (rc != CUDA_SUCCESS)
        return rc;
    made = REAL(cuMemAlloc)(address, bytes);
    return bh_ticket_settle(&ticket, made, made == CUDA_SUCCESS ? *address : 0, memory_undo_low);
}

/* What the driver makes of a row of one byte, which no caller can be asked to know: it pads
 * others to multiples of it. */
static uint64_t
memory_ask_pitch(unsigned int element_bytes)
{
    struct bh_ticket ticket;
    CUdeviceptr address = 0;
    size_t pitch = 0;
    CUresult made;

    if (bh_ticket_take(1, &ticket) != CUDA_SUCCESS)
        return 0;
    made = REAL(cuMemAllocPitch_v2)(&address, &pitch, 1, 1, element_bytes);
    if (bh_ticket_settle(&ticket, made, address, bh_ticket_undo) == CUDA_SUCCESS)
        (void)cuMemFree_v2(address); /* if not, it stays charged */
    return made == CUDA_SUCCESS ? pitch : 0;
}

/* Asked once for each size of elements. */
static uint64_t
memory_pitch_of(unsigned int element_bytes)
{
    static _Atomic uint64_t known[3]; /* of 4, 8 and 16 bytes; others the driver refuses */
    _Atomic uint64_t *at = &known[element_bytes == 4 ? 0 : element_bytes == 8 ? 1 : 2];
    uint64_t pitch = atomic_load_explicit(at, memory_order_relaxed);

    if (pitch == 0)
        pitch = memory_ask_pitch(element_bytes);
    if (pitch == 0)
        return PITCH;
    pitch = pitch > PITCH ? pitch : PITCH;
    atomic_store_explicit(at, pitch, memory_order_relaxed);
    return pitch;
}

/* More than any device has when the bytes do not fit in a number. */
static uint64_t
memory_bytes_of_rows(uint64_t width, uint64_t height, unsigned int element_bytes)
{
    uint64_t pitch = memory_pitch_of(element_bytes), bytes;

    if (width > UINT64_MAX - pitch
        || __builtin_mul_overflow((width + pitch - 1) / pitch * pitch, height, &bytes))
        return UINT64_MAX;
    return bytes;
}

/* Of a driver that pads long rows more than short ones: for this moment it may hold more than
 * was reserved. */
static CUresult
memory_settle_rows(struct bh_ticket *ticket, uint64_t address, uint64_t bytes, bh_undo undo)
{
    if (bh_ticket_resize(ticket, bytes) == CUDA_SUCCESS)
        return bh_ticket_settle(ticket, CUDA_SUCCESS, address, undo);
    if (undo(address) == CUDA_SUCCESS)
        bh_charge_give(ticket->device, ticket->grains);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width_bytes, size_t height,
                   unsigned int element_bytes)
{
    struct bh_ticket ticket;
    CUresult made, rc = bh_ticket_take(memory_bytes_of_rows(width_bytes, height, element_bytes), &ticket);

    if (rc != CUDA_SUCCESS)
        return rc;
    made = REAL(cuMemAllocPitch_v2)(address, pitch, width_bytes, height, element_bytes);
    return made == CUDA_SUCCESS ? memory_settle_rows(&ticket, *address, *pitch * height, bh_ticket_undo)
                                : bh_ticket_settle(&ticket, made, 0, bh_ticket_undo);
}

CUresult
cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width_bytes, unsigned int height,
                unsigned int element_bytes)
{
    struct bh_ticket ticket;
    CUresult made, rc = bh_ticket_take(memory_bytes_of_rows(width_bytes, height, element_bytes), &ticket);

    if (rc != CUDA_SUCCESS)
        return rc;
    made = REAL(cuMemAllocPitch)(address, pitch, width_bytes, height, element_bytes);
    return made == CUDA_SUCCESS
               ? memory_settle_rows(&ticket, *address, (uint64_t)*pitch * height, memory_undo_low)
               : bh_ticket_settle(&ticket, made, 0, memory_undo_low);
}

/* ---- allocations in a stream's order ---- */

struct from_pool {
    unsigned pool;
    uint64_t grains;
};

/* In a capture nothing is allocated: the graph's memory comes when it is launched. */
static CUresult
memory_note_captured(CUstream stream, bool per_thread, uint64_t grains, CUresult rc)
{
    CUgraph graph = bh_capture_graph(stream, per_thread);
    struct bh_where where;

    if (rc == CUDA_SUCCESS && graph != NULL && bh_context_here(&where) == CUDA_SUCCESS)
        bh_graph_add(graph, where.device, grains);
    return rc;
}

/* The call came to `rc`: note its address, or undo. */
static CUresult
memory_settle_async(const struct from_pool *from, CUresult rc, CUdeviceptr address, CUstream stream)
{
    struct bh_charge_record record = { BH_RECORD_ASYNC, 0, from->pool, from->grains };

    if (!bh_pool_end(from->pool, from->grains, rc == CUDA_SUCCESS)) {
        if (rc == CUDA_SUCCESS)
            (void)REAL(cuMemFreeAsync)(address, stream);
        bh_pool_shrink(from->pool);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (rc != CUDA_SUCCESS || bh_ledger_note(address, record))
        return rc;
    (void)REAL(cuMemFreeAsync)(address, stream);
    bh_pool_freed(from->pool, from->grains);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
memory_begin_async(struct from_pool *from, size_t bytes)
{
    /* In a pool small ones share units, too, and large ones are not rounded each. */
    from->grains = bytes / BH_GRAIN_BYTES + (bytes % BH_GRAIN_BYTES != 0);
    return bh_pool_begin(from->pool, from->grains);
}

static CUresult
memory_begin_in_stream(struct from_pool *from, size_t bytes, CUstream stream)
{
    CUresult rc = bh_ledger_ready();
    struct bh_where where;

    if (rc == CUDA_SUCCESS)
        rc = bh_context_here(&where);
    if (rc != CUDA_SUCCESS)
        return rc;
    return bh_pool_of_device(bh_context_device_of(&where, stream), &from->pool)
               ? memory_begin_async(from, bytes)
               : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
memory_begin_in_pool(struct from_pool *from, size_t bytes, CUmemoryPool pool)
{
    CUresult rc = bh_ledger_ready();

    if (rc != CUDA_SUCCESS)
        return rc;
    return bh_pool_of_handle(pool, &from->pool) ? memory_begin_async(from, bytes) : CUDA_ERROR_INVALID_VALUE;
}

#define ALLOC_ASYNC(name, own, begin, parameters, arguments)                                                 \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        struct from_pool from;                                                                               \
        CUresult rc;                                                                                         \
                                                                                                             \
        if (bh_capture_has(stream, own))                                                                     \
            return memory_note_captured(stream, own, bh_charge_grains(bytes), REAL(name) arguments);         \
        rc = begin;                                                                                          \
        if (rc != CUDA_SUCCESS)                                                                              \
            return rc;                                                                                       \
        rc = REAL(name) arguments;                                                                           \
        return memory_settle_async(&from, rc, rc == CUDA_SUCCESS ? *address : 0, stream);                    \
    }

ALLOC_ASYNC(cuMemAllocAsync, false, memory_begin_in_stream(&from, bytes, stream),
            (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))
ALLOC_ASYNC(cuMemAllocAsync_ptsz, true, memory_begin_in_stream(&from, bytes, stream),
            (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))
ALLOC_ASYNC(cuMemAllocFromPoolAsync, false, memory_begin_in_pool(&from, bytes, pool),
            (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
            (address, bytes, pool, stream))
ALLOC_ASYNC(cuMemAllocFromPoolAsync_ptsz, true, memory_begin_in_pool(&from, bytes, pool),
            (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream),
            (address, bytes, pool, stream))

/* ---- freeing ---- */

#define FREEABLE (1u << BH_RECORD_LINEAR | 1u << BH_RECORD_ASYNC | 1u << BH_RECORD_EXTERNAL)

/* The record was taken out before the call: the address may be another thread's as soon as
 * the driver has it back. */
static CUresult
memory_freed(uint64_t address, bool known, struct bh_charge_record record, CUresult rc)
{
    if (!known)
        return rc;
    if (rc == CUDA_SUCCESS)
        bh_ledger_forget(address, record);
    else
        (void)BH_HOLDS(bh_ledger_note(address, record));
    return rc;
}

CUresult
cuMemFree_v2(CUdeviceptr address)
{
    struct bh_charge_record record;
    bool known = bh_records_take(address, FREEABLE, &record);
    CUresult rc = memory_freed(address, known, record, REAL(cuMemFree_v2)(address));

    if (known && record.kind == BH_RECORD_ASYNC)
        bh_pools_settle();
    return rc;
}

#define FREE(name, parameters, arguments)                                                                    \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        struct bh_charge_record record;                                                                      \
        bool known = bh_records_take(address, FREEABLE, &record);                                            \
                                                                                                             \
        return memory_freed(address, known, record, REAL(name) arguments);                                   \
    }

FREE(cuMemFree, (CUdeviceptr_v1 address), (address))
FREE(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))
FREE(cuMemFreeAsync_ptsz, (CUdeviceptr address, CUstream stream), (address, stream))

/* ---- waiting: what was freed in stream order may have left its pool ---- */

#define WAIT(name, parameters, arguments)                                                                    \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        CUresult rc = REAL(name) arguments;                                                                  \
                                                                                                             \
        bh_pools_settle();                                                                                   \
        return rc;                                                                                           \
    }

WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuEventSynchronize, (CUevent event), (event))

/* ---- what the program sees ---- */

static CUresult
memory_of(unsigned device, uint64_t *ret_free, uint64_t *ret_total)
{
    const struct bh_share_device *limits = bh_page_limits(device);
    uint64_t total = limits->memory_bytes;
    uint64_t left = bh_charge_free_units(device) * BH_SHARE_UNIT_BYTES;

    *ret_total = total;
    *ret_free = left < total ? left : total;
    return CUDA_SUCCESS;
}

CUresult
cuMemGetInfo_v2(size_t *free, size_t *total)
{
    CUresult rc = bh_ledger_ready();
    struct bh_where where;

    if (rc == CUDA_SUCCESS && (free == NULL || total == NULL))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        rc = bh_context_here(&where);
    return rc == CUDA_SUCCESS ? memory_of(where.device, free, total) : rc;
}

static unsigned int
memory_clamp(uint64_t bytes)
{
    return bytes < UINT_MAX ? (unsigned int)bytes : UINT_MAX;
}

CUresult
cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    size_t left, all;
    CUresult rc = free == NULL || total == NULL ? CUDA_ERROR_INVALID_VALUE : cuMemGetInfo_v2(&left, &all);

    if (rc == CUDA_SUCCESS) {
        *free = memory_clamp(left);
        *total = memory_clamp(all);
    }
    return rc;
}

CUresult
cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult rc = bh_ledger_ready();
    int index = bh_page_device(device);
    uint64_t left;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (bytes == NULL || index < 0)
        return bytes == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    return memory_of((unsigned)index, &left, bytes);
}

CUresult
cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all;
    CUresult rc = bytes == NULL ? CUDA_ERROR_INVALID_VALUE : cuDeviceTotalMem_v2(&all, device);

    if (rc == CUDA_SUCCESS)
        *bytes = memory_clamp(all);
    return rc;
}
