/* Any sequence of calls of the CUDA shim, on a driver that answers at once: what is
 * reserved is never more than the cap, nothing latches, and when all is given back nothing
 * is left. */
#include <dlfcn.h>
#include <stdlib.h>

#include "base/assert.h"
#include "shim/calls/entry.h"
#include "shim/driver/driver.h"
#include "shim/driver/page.h"
#include "tests/fuzz/fuzz.h"

enum { CAP = 96, CONTEXT = 8, LIVE = 16, STEP_BYTES = 3 };
#define MIB (UINT64_C(1) << 20)

static struct bh_share_limits limits;
static struct bh_share_usage usage;

/* The shim as it is after cuInit in a job: pages, and the driver behind every slot. */
static void
begin(void)
{
    static bool begun;
    void *driver;
    CUresult (*init)(unsigned int);

    if (begun)
        return;
    begun = true;
    driver = dlopen(BH_NULL_DRIVER, RTLD_NOW | RTLD_LOCAL);
    BH_ASSERT(driver != NULL);
#define CUDA_NAME(name)                                                                                      \
    if (dlsym(driver, #name) != NULL)                                                                        \
        bh_real_##name = dlsym(driver, #name);
#include "tables/cuda_names.tbl"
#undef CUDA_NAME
    init = (CUresult(*)(unsigned int))dlsym(driver, "cuInit");
    BH_ASSERT(init(0) == CUDA_SUCCESS);
    limits.device_count = 1;
    limits.device[0].cap_units = CAP;
    limits.device[0].context_units = CONTEXT;
    limits.device[0].memory_bytes = CAP * BH_SHARE_UNIT_BYTES;
    bh_page->limits = &limits;
    bh_page->usage = &usage;
    bh_page->visible = 1;
    bh_page->index_next[0] = 1;
    bh_entry_init();
    atomic_store(&bh_page->joined, BH_PAGE_JOINED);
}

enum kind { LINEAR, MANAGED, PITCH, ASYNC, OBJECT, MAPPED, ARRAY, CONTEXTS, GRAPH, KINDS };

static struct thing {
    enum kind kind;
    uint64_t what, size;
} live[LIVE];
static unsigned count;

/* ---- taking ---- */

static CUresult
take_object(struct thing *thing)
{
    CUmemAllocationProp prop = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr at;
    CUresult rc;

    thing->size = (thing->size / (2 * MIB) + 1) * 2 * MIB;
    rc = cuMemCreate(&handle, thing->size, &prop, 0);
    thing->what = handle;
    if (rc != CUDA_SUCCESS || thing->kind == OBJECT)
        return rc;
    BH_ASSERT(cuMemAddressReserve(&at, thing->size, 0, 0, 0) == CUDA_SUCCESS);
    BH_ASSERT(cuMemMap(at, thing->size, 0, handle, 0) == CUDA_SUCCESS);
    BH_ASSERT(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at) == CUDA_SUCCESS);
    BH_ASSERT(cuMemRelease(handle) == CUDA_SUCCESS && cuMemRelease(again) == CUDA_SUCCESS);
    thing->what = at;
    return CUDA_SUCCESS;
}

static CUresult
take_handle(struct thing *thing)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = { 256, thing->size / 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
    CUcontext context = NULL, popped;
    CUarray array = NULL;
    CUresult rc;

    if (thing->kind == ARRAY) {
        rc = cuArray3DCreate_v2(&array, &shape);
        thing->what = (uintptr_t)array;
        return rc;
    }
    rc = cuCtxCreate_v2(&context, 0, 0);
    if (rc == CUDA_SUCCESS)
        BH_ASSERT(cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
    thing->what = (uintptr_t)context;
    return rc;
}

static CUresult
take_graph(struct thing *thing)
{
    CUDA_MEM_ALLOC_NODE_PARAMS node = { .poolProps.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                        .bytesize = thing->size + 1 };
    CUgraphExec exec;
    CUgraphNode at;
    CUgraph graph;
    CUresult rc;

    BH_ASSERT(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    BH_ASSERT(cuGraphAddMemAllocNode(&at, graph, NULL, 0, &node) == CUDA_SUCCESS);
    BH_ASSERT(cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    rc = cuGraphLaunch(exec, NULL);
    thing->what = node.dptr;
    BH_ASSERT(cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    (void)cuGraphDestroy(graph);
    return rc;
}

static CUresult
take(struct thing *thing)
{
    CUdeviceptr at = 0;
    size_t pitch;
    CUresult rc;

    if (thing->kind == OBJECT || thing->kind == MAPPED)
        return take_object(thing);
    if (thing->kind == ARRAY || thing->kind == CONTEXTS)
        return take_handle(thing);
    if (thing->kind == GRAPH)
        return take_graph(thing);
    if (thing->kind == MANAGED)
        rc = cuMemAllocManaged(&at, thing->size, 1);
    else if (thing->kind == PITCH)
        rc = cuMemAllocPitch_v2(&at, &pitch, thing->size / 8 + 1, 8, 16);
    else if (thing->kind == ASYNC)
        rc = cuMemAllocAsync(&at, thing->size + 1, NULL);
    else
        rc = cuMemAlloc_v2(&at, thing->size);
    thing->what = at;
    return rc;
}

/* ---- giving ---- */

static void
give(unsigned at)
{
    struct thing thing = live[at];
    CUresult rc;

    live[at] = live[--count];
    if (thing.kind == OBJECT)
        rc = cuMemRelease(thing.what);
    else if (thing.kind == MAPPED)
        rc = cuMemUnmap(thing.what, thing.size);
    else if (thing.kind == ARRAY)
        rc = cuArrayDestroy((CUarray)(uintptr_t)thing.what);
    else if (thing.kind == CONTEXTS)
        rc = cuCtxDestroy_v2((CUcontext)(uintptr_t)thing.what);
    else if (thing.kind == ASYNC && thing.size % 2 == 0)
        rc = cuMemFreeAsync(thing.what, NULL);
    else
        rc = cuMemFree_v2(thing.what);
    BH_ASSERT(rc == CUDA_SUCCESS);
}

static void
play(uint8_t what, uint8_t high, uint8_t low)
{
    uint64_t size = (uint64_t)high << 16 | (uint64_t)low << (low & 7);
    size_t left, total;

    if ((what & 0x80) != 0 && count > 0) {
        give(what % count);
    } else if (what == 0x7f) {
        (void)cuCtxSynchronize();
    } else if (count < LIVE) {
        struct thing thing = { (enum kind)(what % KINDS), 0, size };

        if (take(&thing) == CUDA_SUCCESS)
            live[count++] = thing;
    }
    BH_ASSERT(bh_share_used(&usage, 0) <= CAP);
    BH_ASSERT(cuMemGetInfo_v2(&left, &total) == CUDA_SUCCESS && left <= total);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CUcontext context;
    CUmemoryPool pool;

    begin();
    BH_ASSERT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    BH_ASSERT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
        play(data[0], data[1], data[2]);
    while (count > 0)
        give(0);
    BH_ASSERT(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    BH_ASSERT(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS);
    BH_ASSERT(cuDeviceGraphMemTrim(0) == CUDA_SUCCESS);
    BH_ASSERT(bh_share_used(&usage, 0) == CONTEXT);
    BH_ASSERT(cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
    BH_ASSERT(bh_share_used(&usage, 0) == 0 && !bh_state_is_latched());
    return 0;
}
