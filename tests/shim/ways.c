#include "tests/shim/ways.h"

#include <stdlib.h>

#include "tests/shim/child.h"

static const CUmemAllocationProp on_device = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

static CUmemoryPool pool;

/* A way whose call makes `what`, of 64 MiB; and how it goes again. */
#define GET(name, type, ...)                                                                                 \
    static CUresult get_##name(uint64_t *ret_what)                                                           \
    {                                                                                                        \
        type what = 0;                                                                                       \
        CUresult rc = __VA_ARGS__;                                                                           \
                                                                                                             \
        *ret_what = (uintptr_t)what;                                                                         \
        return rc;                                                                                           \
    }
#define DROP(name, type, call)                                                                               \
    static CUresult drop_##name(uint64_t what)                                                               \
    {                                                                                                        \
        return call((type)(uintptr_t)what);                                                                  \
    }

GET(linear, CUdeviceptr, cuMemAlloc_v2(&what, 64 * MIB))
GET(managed, CUdeviceptr, cuMemAllocManaged(&what, 64 * MIB, 1))

/* Rows of 65,000 bytes: the driver's pitch is 65,536, of 1,024 rows 64 MiB. */
GET(pitch, CUdeviceptr, cuMemAllocPitch_v2(&what, &(size_t){ 0 }, 65000, 1024, 16))
GET(async, CUdeviceptr, cuMemAllocAsync(&what, 64 * MIB, NULL))

static CUresult
get_from_pool(uint64_t *ret_what)
{
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUdeviceptr at = 0;
    CUresult rc = pool == NULL ? cuMemPoolCreate(&pool, &props) : CUDA_SUCCESS;

    if (rc == CUDA_SUCCESS)
        rc = cuMemAllocFromPoolAsync(&at, 64 * MIB, pool, NULL);
    *ret_what = at;
    return rc;
}

GET(object, CUmemGenericAllocationHandle, cuMemCreate(&what, 64 * MIB, &on_device, 0))

/* As llama.cpp and PyTorch do it: the handle goes at once, the mapping stays. */
static CUresult
get_mapped(uint64_t *ret_what)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at = 0;
    CUresult rc = cuMemCreate(&handle, 64 * MIB, &on_device, 0);

    if (rc != CUDA_SUCCESS)
        return rc;
    rc = cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0);
    if (rc == CUDA_SUCCESS)
        rc = cuMemMap(at, 64 * MIB, 0, handle, 0);
    if (rc == CUDA_SUCCESS)
        rc = cuMemRelease(handle);
    *ret_what = at;
    return rc;
}

static CUresult
drop_mapped(uint64_t what)
{
    CUresult rc = cuMemUnmap(what, 64 * MIB);

    return rc == CUDA_SUCCESS ? cuMemAddressFree(what, 64 * MIB) : rc;
}

/* 51.2 MiB of elements, which the driver makes 64 MiB. */
static const CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, 3276, 0, CU_AD_FORMAT_FLOAT, 4, 0 };

GET(array, CUarray, cuArray3DCreate_v2(&what, &shape))
DROP(array, CUarray, cuArrayDestroy)
GET(mipmap, CUmipmappedArray, cuMipmappedArrayCreate(&what, &shape, 1))
DROP(mipmap, CUmipmappedArray, cuMipmappedArrayDestroy)

static CUresult
get_context(uint64_t *ret_what)
{
    CUcontext context = NULL;
    CUresult rc = cuCtxCreate_v2(&context, 0, 0);

    if (rc == CUDA_SUCCESS) {
        CUcontext popped;

        (void)cuCtxPopCurrent_v2(&popped);
    }
    *ret_what = (uintptr_t)context;
    return rc;
}

DROP(context, CUcontext, cuCtxDestroy_v2)

/* A graph that allocates 64 MiB, launched once. */
static CUresult
get_graph(uint64_t *ret_what)
{
    CUDA_MEM_ALLOC_NODE_PARAMS node = {
        .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
        .bytesize = 64 * MIB,
    };
    CUgraphExec exec = NULL;
    CUgraph graph;
    CUgraphNode at;
    CUresult rc = cuGraphCreate(&graph, 0);

    if (rc == CUDA_SUCCESS)
        rc = cuGraphAddMemAllocNode(&at, graph, NULL, 0, &node);
    if (rc == CUDA_SUCCESS)
        rc = cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (rc == CUDA_SUCCESS)
        rc = cuGraphLaunch(exec, NULL);
    *ret_what = node.dptr;
    return rc;
}

/* What no node frees lives on until it is freed; then the device's pool for graphs has it.
 */
static CUresult
drop_graph(uint64_t what)
{
    CUresult rc = cuMemFree_v2(what);

    if (rc == CUDA_SUCCESS)
        rc = cuCtxSynchronize();
    return rc == CUDA_SUCCESS ? cuDeviceGraphMemTrim(0) : rc;
}

/* The same out of a capture. */
static CUresult
get_captured(uint64_t *ret_what)
{
    CUgraphExec exec = NULL;
    CUgraph graph;
    CUstream stream;
    CUdeviceptr at = 0;
    CUresult rc = cuStreamCreate(&stream, 0);

    if (rc == CUDA_SUCCESS)
        rc = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (rc == CUDA_SUCCESS)
        rc = cuMemAllocAsync(&at, 64 * MIB, stream);
    if (rc == CUDA_SUCCESS)
        rc = cuStreamEndCapture(stream, &graph);
    if (rc == CUDA_SUCCESS)
        rc = cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (rc == CUDA_SUCCESS)
        rc = cuGraphLaunch(exec, NULL);
    *ret_what = at;
    return rc;
}

/* 64 MiB of variables, a little less for the text. */
static const char image[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .global .align 4 .b8 v[67104768];\n"
                            ".visible .entry k_1us()\n{\n ret;\n}\n";

GET(module, CUmodule, cuModuleLoadData(&what, image))
DROP(module, CUmodule, cuModuleUnload)

/* The simulated driver loads it when a kernel of it is used. */
static CUresult
get_library(uint64_t *ret_what)
{
    CUlibrary library = NULL;
    CUresult rc = cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    CUmodule module;

    *ret_what = (uintptr_t)library;
    if (rc == CUDA_SUCCESS)
        (void)cuLibraryGetModule(&module, library);
    return rc;
}

DROP(library, CUlibrary, cuLibraryUnload)
GET(green, CUgreenCtx, cuGreenCtxCreate(&what, NULL, 0, 1))
DROP(green, CUgreenCtx, cuGreenCtxDestroy)

static const CUDA_EXTERNAL_MEMORY_HANDLE_DESC imported = { .type = 1, .handle.fd = -1, .size = 64 * MIB };

GET(external, CUexternalMemory, cuImportExternalMemory(&what, &imported))
DROP(external, CUexternalMemory, cuDestroyExternalMemory)

/* ---- small ones: batches of 512 B to 512 KiB ---- */

enum { BATCH = 96, SMALL_CONTEXTS = 4 };

struct batch {
    unsigned count;
    CUdeviceptr at[BATCH];
};

static uint64_t small_seed = 88172645463325252u;

static uint64_t
draw_small(uint64_t below)
{
    small_seed ^= small_seed << 13, small_seed ^= small_seed >> 7, small_seed ^= small_seed << 17;
    return small_seed % below;
}

/* Of those that are there two of three go, so that their blocks have holes. */
static CUresult
thin_out(struct batch *batch)
{
    unsigned left = 0;
    CUresult rc = CUDA_SUCCESS;

    for (unsigned i = 0; i < batch->count && rc == CUDA_SUCCESS; i++)
        if (draw_small(3) == 0)
            batch->at[left++] = batch->at[i];
        else
            rc = cuMemFree_v2(batch->at[i]);
    batch->count = left;
    return rc;
}

static CUresult
drop_batch(uint64_t what)
{
    struct batch *batch = (struct batch *)(uintptr_t)what;
    CUresult rc = CUDA_SUCCESS;

    while (batch->count > 0 && rc == CUDA_SUCCESS)
        rc = cuMemFree_v2(batch->at[--batch->count]);
    free(batch);
    return rc;
}

/* Half of the batches are thinned out at once, and those that the cap ends. */
static CUresult
get_batch(uint64_t *ret_what)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    CUresult rc = CUDA_SUCCESS, thinned = CUDA_SUCCESS;

    if (batch == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_what = (uintptr_t)batch;
    while (batch->count < BATCH && rc == CUDA_SUCCESS) {
        rc = cuMemAlloc_v2(&batch->at[batch->count], 512u << draw_small(11));
        batch->count += rc == CUDA_SUCCESS;
    }
    if (rc == CUDA_ERROR_OUT_OF_MEMORY || draw_small(2) == 0)
        thinned = thin_out(batch);
    if (thinned != CUDA_SUCCESS || (rc != CUDA_SUCCESS && rc != CUDA_ERROR_OUT_OF_MEMORY))
        return thinned != CUDA_SUCCESS ? thinned : rc;
    if (rc == CUDA_SUCCESS || batch->count > 0)
        return CUDA_SUCCESS;
    free(batch);
    return rc;
}

/* In one of four contexts. */
static CUresult
get_batch_in_contexts(uint64_t *ret_what)
{
    static CUcontext contexts[SMALL_CONTEXTS];
    CUcontext *one = &contexts[draw_small(SMALL_CONTEXTS)];
    CUresult rc = *one != NULL ? CUDA_SUCCESS : cuCtxCreate_v2(one, 0, 0);

    if (rc == CUDA_SUCCESS)
        rc = cuCtxSetCurrent(*one);
    return rc == CUDA_SUCCESS ? get_batch(ret_what) : rc;
}

static CUresult
drop_linear(uint64_t what)
{
    return cuMemFree_v2(what);
}

static CUresult
drop_async(uint64_t what)
{
    CUresult rc = cuMemFreeAsync(what, NULL);

    return rc == CUDA_SUCCESS ? cuMemPoolTrimTo(pool, 0) : rc;
}

static CUresult
drop_object(uint64_t what)
{
    return cuMemRelease(what);
}

const struct bh_way bh_ways[] = {
    { "cuMemAlloc", get_linear, drop_linear, 32 },
    { "cuMemAllocManaged", get_managed, drop_linear, 32 },
    { "cuMemAllocPitch", get_pitch, drop_linear, 32 },
    { "cuMemAllocAsync, cuMemFree (row 4)", get_async, drop_linear, 32 },
    { "cuMemAllocFromPoolAsync (row 3)", get_from_pool, drop_async, 32 },
    { "cuMemCreate", get_object, drop_object, 32 },
    { "created, mapped, released (row 5)", get_mapped, drop_mapped, 32 },
    { "cuArray3DCreate (row 6)", get_array, drop_array, 32 },
    { "cuMipmappedArrayCreate", get_mipmap, drop_mipmap, 32 },
    { "cuCtxCreate", get_context, drop_context, 32 },
    { "graph with memory", get_graph, drop_graph, 32 },
    { "captured allocation", get_captured, drop_graph, 32 },
    { "cuModuleLoadData", get_module, drop_module, 32 },
    { "cuLibraryLoadData", get_library, drop_library, 32 },
    { "cuGreenCtxCreate", get_green, drop_green, 32, true },
    { "cuImportExternalMemory", get_external, drop_external, 32, true },
    { "512 B to 512 KiB, with holes", get_batch, drop_batch, 0 },
    { "the same in four contexts", get_batch_in_contexts, drop_batch, 0 },
};

const size_t bh_way_count = sizeof(bh_ways) / sizeof(bh_ways[0]);
