/* Limits of a context that take memory of its device. */
#include "shim/charge/charge.h"
#include "shim/charge/context.h"
#include "shim/charge/ledger.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"

enum { DEFAULT_STACK = 1 << 10, DEFAULT_FIFO = 1 << 20, DEFAULT_HEAP = 8 << 20 };

static uint64_t
threads_of(CUdevice device)
{
    int processors = 0, threads = 0;

    if (REAL(cuDeviceGetAttribute)(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)
            != CUDA_SUCCESS
        || REAL(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device)
               != CUDA_SUCCESS)
        return 0;
    return (uint64_t)processors * (uint64_t)threads;
}

/* Bytes of the device that a limit takes beyond what a new context has. */
static uint64_t
bytes_of_limit(CUlimit limit, uint64_t value, CUdevice device)
{
    static const uint64_t usual[BH_CONTEXT_LIMITS] = { DEFAULT_STACK, DEFAULT_FIFO, DEFAULT_HEAP };
    uint64_t more, each = limit == CU_LIMIT_STACK_SIZE ? threads_of(device) : 1, bytes;

    more = value > usual[limit] ? value - usual[limit] : 0;
    return __builtin_mul_overflow(more, each, &bytes) ? UINT64_MAX : bytes;
}

CUresult
cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult rc = bh_ledger_ready();
    struct bh_where where;
    uint64_t before, after;

    if (rc != CUDA_SUCCESS || (unsigned)limit >= BH_CONTEXT_LIMITS || bh_context_here(&where) != CUDA_SUCCESS)
        return REAL(cuCtxSetLimit)(limit, value);
    after = bh_charge_grains(bytes_of_limit(limit, value, bh_page->ordinal[where.device]));
    after = (after + BH_GRAINS_UNIT - 1) / BH_GRAINS_UNIT;
    rc = bh_ledger_reserve(where.device, bh_charge_of_units(after));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = REAL(cuCtxSetLimit)(limit, value);
    before = rc == CUDA_SUCCESS ? bh_context_set_limit(where.context, limit, (uint32_t)after) : after;
    bh_charge_give(where.device, bh_charge_of_units(before));
    return rc;
}
