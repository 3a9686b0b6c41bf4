/* The null driver's modules, libraries, green contexts and imports. */
#include <stdlib.h>
#include <string.h>

#include "sim/null/code.h"

/* An image is PTX whose variables are all in brackets: "v[67108864]". */
struct CUmod_st {
    struct CUctx_st *context;
    uint64_t bytes;
};
struct CUlib_st {
    uint64_t bytes;
};
struct CUgreenCtx_st {
    struct CUctx_st context;
};
struct CUextMemory_st {
    uint64_t bytes;
};

static uint64_t
module_bytes_of(const char *image)
{
    uint64_t bytes = strlen(image);

    for (const char *at = image; (at = strchr(at, '[')) != NULL; at++)
        bytes += strtoull(at + 1, NULL, 10);
    return bytes;
}

CUresult
cuModuleLoadData(CUmodule *module, const void *image)
{
    struct CUctx_st *context;

    if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (bh_null_fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *module = calloc(1, sizeof(**module));
    **module = (struct CUmod_st){ context, module_bytes_of(image) };
    bh_null_code_change(context, (*module)->bytes, 0);
    return CUDA_SUCCESS;
}

CUresult
cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int num_options, CUjit_option *options,
                   void **option_values)
{
    return cuModuleLoadData(module, image);
}

CUresult
cuModuleUnload(CUmodule module)
{
    if (bh_null_fails(&bh_null_world->fail_free))
        return CUDA_ERROR_INVALID_HANDLE;
    bh_null_code_change(module->context, 0, module->bytes);
    free(module);
    return CUDA_SUCCESS;
}

/* ---- libraries: at once in every context ---- */

CUresult
cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options, void **jit_options_values,
                  unsigned int num_jit_options, CUlibraryOption *library_options,
                  void **library_option_values, unsigned int num_library_options)
{
    if (bh_null_fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *library = calloc(1, sizeof(**library));
    (*library)->bytes = module_bytes_of(code);
    pthread_mutex_lock(&bh_null_lock);
    bh_null_library_bytes += (*library)->bytes;
    for (unsigned i = 0; i < bh_null_context_count; i++)
        bh_null_code_change(bh_null_contexts[i], (*library)->bytes, 0);
    pthread_mutex_unlock(&bh_null_lock);
    return CUDA_SUCCESS;
}

CUresult
cuLibraryUnload(CUlibrary library)
{
    pthread_mutex_lock(&bh_null_lock);
    bh_null_library_bytes -= library->bytes;
    for (unsigned i = 0; i < bh_null_context_count; i++)
        bh_null_code_change(bh_null_contexts[i], 0, library->bytes);
    pthread_mutex_unlock(&bh_null_lock);
    free(library);
    return CUDA_SUCCESS;
}

/* ---- green contexts ---- */

CUresult
cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned int flags)
{
    CUcontext primary;

    if (bh_null_fails(&bh_null_world->fail_alloc))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (void)cuDevicePrimaryCtxRetain(&primary, device);
    *green = calloc(1, sizeof(**green));
    (*green)->context = (struct CUctx_st){ .device = device, .alive = true };
    atomic_fetch_add(&bh_null_world->contexts, 1);
    bh_null_take(device, bh_null_world->context_bytes);
    return CUDA_SUCCESS;
}

CUresult
cuGreenCtxDestroy(CUgreenCtx green)
{
    atomic_fetch_sub(&bh_null_world->contexts, 1);
    bh_null_give(green->context.device, bh_null_world->context_bytes);
    (void)cuDevicePrimaryCtxRelease_v2(green->context.device);
    free(green);
    return CUDA_SUCCESS;
}

ANSWER(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green), *context = &green->context)

/* ---- memory of another API, which has it already ---- */

CUresult
cuImportExternalMemory(CUexternalMemory *ext_mem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *mem_handle_desc)
{
    if (mem_handle_desc->type == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *ext_mem_out = calloc(1, sizeof(**ext_mem_out));
    (*ext_mem_out)->bytes = mem_handle_desc->size;
    return CUDA_SUCCESS;
}

CUresult
cuExternalMemoryGetMappedBuffer(CUdeviceptr *dev_ptr, CUexternalMemory ext_mem,
                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer_desc)
{
    return cuMemAlloc_v2(dev_ptr, buffer_desc->size);
}

ANSWER(cuDestroyExternalMemory, (CUexternalMemory ext_mem), free(ext_mem))
