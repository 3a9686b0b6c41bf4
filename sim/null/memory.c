/* The null driver's arrays, and how programs find its calls. */
#include "sim/null/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct CUarray_st {
    int device;
    bool deferred;
    uint64_t bytes, needs;
};

/* ---- how programs find calls ---- */

static const struct {
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

/* Of this library alone, and not of the one that stands in front of it. */
static void *
memory_null_symbol(const char *name)
{
    static void *self;
    Dl_info about;

    if (self == NULL && dladdr(&calls, &about) != 0)
        self = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    return self == NULL ? NULL : dlsym(self, name);
}

#define NEWER 99000

static CUresult
memory_from_the_future(void)
{
    return CUDA_ERROR_NOT_READY;
}

/* What only a newer driver has: a call, and a form of one. */
static void *
memory_newer_symbol(const char *symbol, int version)
{
    bool has = bh_null_world->newer != 0 && version >= NEWER
               && (strcmp(symbol, "cuFromTheFuture") == 0 || strcmp(symbol, "cuMemAlloc") == 0);

    return has ? (void *)memory_from_the_future : NULL;
}

ANSWER(cuDriverGetVersion, (int *version), *version = bh_null_world->newer != 0 ? NEWER : 13000)

/* Those of them that are here; of two as old the stream's own goes first. */
CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
    int best = 0;

    *function = NULL;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        size_t length = strlen(calls[i].name);
        bool per_thread = length > 5
                          && (strcmp(calls[i].name + length - 5, "_ptsz") == 0
                              || strcmp(calls[i].name + length - 5, "_ptds") == 0);
        void *there;

        if (strcmp(calls[i].base, symbol) != 0 || calls[i].since > version || calls[i].since < best
            || (per_thread && flags != 2))
            continue;
        there = memory_null_symbol(calls[i].name);
        if (there == NULL)
            continue;
        best = calls[i].since;
        *function = there;
    }
    if (memory_newer_symbol(symbol, version) != NULL)
        *function = memory_newer_symbol(symbol, version);
    if (status != NULL)
        *status = *function == NULL ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    return *function == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

/* ---- arrays: of four channels a quarter more than the elements need ---- */

CUresult
cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t bytes = shape->Width * (shape->Height == 0 ? 1 : shape->Height)
                     * (shape->Depth == 0 ? 1 : shape->Depth) * shape->NumChannels * 4;

    *handle = calloc(1, sizeof(**handle));
    if (cuCtxGetDevice(&(*handle)->device) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    (*handle)->needs = bh_null_up(bytes + (shape->NumChannels == 4 ? bytes / 4 : 0), NULL_UNIT);
    (*handle)->deferred = (shape->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
    if ((shape->Flags & CUDA_ARRAY3D_SPARSE) == 0 && !(*handle)->deferred)
        (*handle)->bytes = (*handle)->needs;
    bh_null_take((*handle)->device, (*handle)->bytes);
    return CUDA_SUCCESS;
}

ANSWER(cuArrayDestroy, (CUarray array), bh_null_give(array->device, array->bytes), free(array))

CUresult
cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array, CUdevice device)
{
    if (!array->deferred)
        return CUDA_ERROR_INVALID_VALUE;
    needs->size = array->needs;
    return CUDA_SUCCESS;
}

CUresult
cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    return cuArray3DCreate_v2((CUarray *)(void *)handle, shape);
}

CUresult
cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    return cuArrayDestroy((CUarray)(void *)mipmap);
}

CUresult
cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUmipmappedArray mipmap,
                                      CUdevice device)
{
    return cuArrayGetMemoryRequirements(needs, (CUarray)(void *)mipmap, device);
}

CUresult
cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
