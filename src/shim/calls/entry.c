#include "shim/calls/entry.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/calls/array.h"
#include "shim/calls/context_calls.h"
#include "shim/calls/external.h"
#include "shim/calls/graph.h"
#include "shim/calls/green.h"
#include "shim/calls/module.h"
#include "shim/calls/vmm.h"
#include "shim/charge/code.h"
#include "shim/charge/context.h"
#include "shim/charge/object.h"
#include "shim/charge/pool.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "shim/driver/rm_ledger.h"
#include "shim/process/records.h"
#include "shim/time_slice/gate.h"
#include "shim/time_slice/helper.h"
#include "shim/work/capture.h"
#include "shim/work/meter.h"
#include "shim/work/stream.h"

void
bh_entry_init(void)
{
    bh_records_init();
    bh_contexts_init();
    bh_context_calls_init();
    bh_greens_init();
    bh_code_init();
    bh_modules_init();
    bh_pools_init();
    bh_objects_init();
    bh_object_handles_init();
    bh_imports_init();
    bh_arrays_init();
    bh_graphs_init();
    bh_capture_init();
    bh_streams_init();
    bh_gate_init();
    bh_meter_init();
    bh_helper_init();
}

CUresult
cuInit(unsigned int flags)
{
    CUresult rc = REAL(cuInit)(flags);

    if (rc == CUDA_SUCCESS)
        rc = bh_page_join(bh_entry_init);
    bh_rm_ledger_publish();
    return rc;
}

/* ---- from the driver's addresses to the shim's ---- */

struct hook {
    const char *name;
    void *own;
    void **slot;
};

static const struct hook hooks[] = {
#define HOOK(name) { #name, (void *)(name), &bh_real_##name },
#define SUBMIT(name, when, stream, own, work, parameters, arguments) HOOK(name)
#include "tables/hooks.tbl"
#undef SUBMIT
#undef HOOK
};

static const struct call {
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

enum { HOOKS = sizeof(hooks) / sizeof(hooks[0]), CALLS = sizeof(calls) / sizeof(calls[0]) };
enum { ADDRESSES = 1024 };
_Static_assert(HOOKS * 2 <= ADDRESSES / 2, "the table of addresses stays half empty");

/* The address that the driver has for a call, and the hook for it.  Filled once, by the
 * first call; all fill in the same. */
static struct {
    _Atomic(void *) address;
    _Atomic(const struct hook *) hook;
} addresses[ADDRESSES];
static _Atomic bool filled;

static unsigned
entry_index_of(const void *address)
{
    return (unsigned)((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

static const struct hook *
entry_find_hook(const void *address)
{
    for (unsigned at = entry_index_of(address);; at = (at + 1) % ADDRESSES) {
        const void *there = atomic_load(&addresses[at].address);

        if (there == address)
            return atomic_load(&addresses[at].hook);
        if (there == NULL)
            return NULL;
    }
}

/* The first hook of an address keeps it: two names of one function are one call. */
static void
entry_add(void *address, const struct hook *hook)
{
    for (unsigned at = entry_index_of(address); address != NULL; at = (at + 1) % ADDRESSES) {
        void *there = NULL;
        const struct hook *none = NULL;

        if (!atomic_compare_exchange_strong(&addresses[at].address, &there, address) && there != address)
            continue;
        atomic_compare_exchange_strong(&addresses[at].hook, &none, hook);
        return;
    }
}

static const struct call *
entry_call_of(const char *name)
{
    for (unsigned i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

static bool
entry_ends_in(const char *name, const char *ending)
{
    size_t length = strlen(name), most = strlen(ending);

    return length >= most && strcmp(name + length - most, ending) == 0;
}

/* The driver may return a different address than it exports. */
static void *
entry_ask_driver(const struct call *call)
{
    bool own = entry_ends_in(call->name, "_ptsz") || entry_ends_in(call->name, "_ptds");
    uint64_t flags = own ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    CUdriverProcAddressQueryResult status;
    void *address = NULL;
    CUresult rc = HAS(cuGetProcAddress_v2)
                      ? REAL(cuGetProcAddress_v2)(call->base, &address, call->since, flags, &status)
                      : REAL(cuGetProcAddress)(call->base, &address, call->since, flags);

    return rc == CUDA_SUCCESS ? address : NULL;
}

static void
entry_fill(void)
{
    if (atomic_load_explicit(&filled, memory_order_acquire))
        return;
    for (unsigned i = 0; i < HOOKS; i++)
        if (bh_driver_has(hooks[i].slot))
            entry_add(bh_driver_find(hooks[i].slot), &hooks[i]);
    for (unsigned i = 0; i < HOOKS; i++) {
        const struct call *call = entry_call_of(hooks[i].name);

        if (call != NULL)
            entry_add(entry_ask_driver(call), &hooks[i]);
    }
    atomic_store_explicit(&filled, true, memory_order_release);
}

static bool
entry_is_ours(const void *address)
{
    for (unsigned i = 0; i < HOOKS; i++)
        if (hooks[i].own == address)
            return true;
    return false;
}

static bool
entry_is_hooked_base(const char *symbol)
{
    for (unsigned i = 0; i < HOOKS; i++) {
        const struct call *call = entry_call_of(hooks[i].name);

        if (call != NULL && strcmp(call->base, symbol) == 0)
            return true;
    }
    return false;
}

/* Put the shim's function in the place of the driver's answer.  An ABI of a hooked call that this library
 * does not know counts as missing: it would reserve memory that is not counted. */
static bool
entry_stand_in(const char *symbol, void **function)
{
    const struct hook *hook;

    entry_fill();
    hook = entry_find_hook(*function);
    if (hook != NULL)
        *function = hook->own;
    else if (!entry_is_ours(*function) && entry_is_hooked_base(symbol))
        *function = NULL;
    return *function != NULL;
}

CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
    CUresult rc = REAL(cuGetProcAddress_v2)(symbol, function, version, flags, status);

    if (rc != CUDA_SUCCESS || symbol == NULL || *function == NULL || entry_stand_in(symbol, function))
        return rc;
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult
cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    CUresult rc = REAL(cuGetProcAddress)(symbol, function, version, flags);

    if (rc != CUDA_SUCCESS || symbol == NULL || *function == NULL || entry_stand_in(symbol, function))
        return rc;
    return CUDA_ERROR_NOT_FOUND;
}
