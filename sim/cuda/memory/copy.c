/* Fills and copies, by whatever addresses. */
#include "sim/cuda/memory/host.h"
#include "sim/cuda/memory/space.h"
#include "sim/cuda/work/stream.h"

/* How a call came: at once, or into a stream; with the thread's own default stream or the
 * one of all. */
struct manner {
    bool async, own;
    CUstream stream;
};

static const struct manner now = { false, false, NULL };
static const struct manner now_own = { false, true, NULL };

/* A call that is no asynchronous one waits for what is in the default stream, and is done
 * when it returns. */
static CUresult
copy_submit(const struct manner *manner, const struct sim_operation *operation)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc != CUDA_SUCCESS || operation->count == 0)
        return rc;
    rc = sim_operation_check(operation);
    if (rc != CUDA_SUCCESS)
        return rc;
    return manner->async ? sim_cuda_stream_submit(manner->stream, manner->own, operation)
                         : sim_cuda_stream_run(manner->own, operation);
}

static CUresult
copy_fill_with(const struct manner *manner, uint64_t target, size_t count,
               const struct sim_operation *pattern)
{
    struct sim_operation operation = *pattern;

    operation.kind = SIM_OPERATION_FILL;
    operation.target = target;
    operation.count = count;
    if (target % operation.width != 0 || count > SIZE_MAX / operation.width)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_submit(manner, &operation);
}

#define FILL(manner, target, size, word, count)                                                              \
    copy_fill_with((manner), (target), (count), &(struct sim_operation){ .width = (size), .value = (word) })

/* One element's three ABIs, and its asynchronous two. */
#define FILLS(letter, size, type)                                                                            \
    CUDA_API CUresult cuMemsetD##letter##_v2(CUdeviceptr target, type value, size_t count)                   \
    {                                                                                                        \
        return FILL(&now, target, size, value, count);                                                       \
    }                                                                                                        \
    CUDA_API CUresult cuMemsetD##letter##_v2_ptds(CUdeviceptr target, type value, size_t count)              \
    {                                                                                                        \
        return FILL(&now_own, target, size, value, count);                                                   \
    }                                                                                                        \
    CUDA_API CUresult cuMemsetD##letter##Async(CUdeviceptr target, type value, size_t count,                 \
                                               CUstream stream)                                              \
    {                                                                                                        \
        const struct manner manner = { true, false, stream };                                                \
                                                                                                             \
        return FILL(&manner, target, size, value, count);                                                    \
    }                                                                                                        \
    CUDA_API CUresult cuMemsetD##letter##Async_ptsz(CUdeviceptr target, type value, size_t count,            \
                                                    CUstream stream)                                         \
    {                                                                                                        \
        const struct manner manner = { true, true, stream };                                                 \
                                                                                                             \
        return FILL(&manner, target, size, value, count);                                                    \
    }

FILLS(8, 1, unsigned char)
FILLS(16, 2, unsigned short)
FILLS(32, 4, unsigned int)

CUDA_ROW(cuMemsetD8, (CUdeviceptr_v1 target, unsigned char value, unsigned int count),
         cuMemsetD8_v2(target, value, count))
CUDA_ROW(cuMemsetD32, (CUdeviceptr_v1 target, unsigned int value, unsigned int count),
         cuMemsetD32_v2(target, value, count))

/* ---- copies ---- */

static CUresult
copy_with(const struct manner *manner, uint64_t target, uint64_t source, size_t bytes)
{
    const struct sim_operation operation = {
        .kind = SIM_OPERATION_COPY, .target = target, .source = source, .count = bytes
    };

    if (bytes > 0 && (target == 0 || source == 0))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_submit(manner, &operation);
}

/* An address that a call says is the device's. */
static bool
copy_is_device(uint64_t address)
{
    bool known;

    sim_memory_lock();
    known = sim_space_has(address) || sim_host_find(address) != NULL;
    sim_memory_unlock();
    return known;
}

static CUresult
copy_to_device(const struct manner *manner, uint64_t target, const void *source, size_t bytes)
{
    if (sim_cuda_ready() && bytes > 0 && !copy_is_device(target))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_with(manner, target, (uintptr_t)source, bytes);
}

static CUresult
copy_to_host(const struct manner *manner, void *target, uint64_t source, size_t bytes)
{
    if (sim_cuda_ready() && bytes > 0 && !copy_is_device(source))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_with(manner, (uintptr_t)target, source, bytes);
}

static CUresult
copy_on_device(const struct manner *manner, uint64_t target, uint64_t source, size_t bytes)
{
    if (sim_cuda_ready() && bytes > 0 && (!copy_is_device(source) || !copy_is_device(target)))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_with(manner, target, source, bytes);
}

/* A direction's ABIs: the oldest, the present one, that for streams of a thread's own, and
 * the asynchronous three. */
#define COPIES(way, work, to, from, old_to, old_from)                                                        \
    CUDA_API CUresult cuMemcpy##way(old_to target, old_from source, unsigned int bytes)                      \
    {                                                                                                        \
        return work(&now, target, source, bytes);                                                            \
    }                                                                                                        \
    CUDA_API CUresult cuMemcpy##way##_v2(to target, from source, size_t bytes)                               \
    {                                                                                                        \
        return work(&now, target, source, bytes);                                                            \
    }                                                                                                        \
    CUDA_API CUresult cuMemcpy##way##_v2_ptds(to target, from source, size_t bytes)                          \
    {                                                                                                        \
        return work(&now_own, target, source, bytes);                                                        \
    }                                                                                                        \
    CUDA_API CUresult cuMemcpy##way##Async(old_to target, old_from source, unsigned int bytes,               \
                                           CUstream stream)                                                  \
    {                                                                                                        \
        const struct manner manner = { true, false, stream };                                                \
                                                                                                             \
        return work(&manner, target, source, bytes);                                                         \
    }                                                                                                        \
    CUDA_API CUresult cuMemcpy##way##Async_v2(to target, from source, size_t bytes, CUstream stream)         \
    {                                                                                                        \
        const struct manner manner = { true, false, stream };                                                \
                                                                                                             \
        return work(&manner, target, source, bytes);                                                         \
    }                                                                                                        \
    CUDA_API CUresult cuMemcpy##way##Async_v2_ptsz(to target, from source, size_t bytes, CUstream stream)    \
    {                                                                                                        \
        const struct manner manner = { true, true, stream };                                                 \
                                                                                                             \
        return work(&manner, target, source, bytes);                                                         \
    }

COPIES(HtoD, copy_to_device, CUdeviceptr, const void *, CUdeviceptr_v1, const void *)
COPIES(DtoH, copy_to_host, void *, CUdeviceptr, void *, CUdeviceptr_v1)
COPIES(DtoD, copy_on_device, CUdeviceptr, CUdeviceptr, CUdeviceptr_v1, CUdeviceptr_v1)

CUDA_ROW(cuMemcpy, (CUdeviceptr target, CUdeviceptr source, size_t bytes),
         copy_with(&now, target, source, bytes))
CUDA_ROW(cuMemcpy_ptds, (CUdeviceptr target, CUdeviceptr source, size_t bytes),
         copy_with(&now_own, target, source, bytes))

CUDA_API CUresult
cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    const struct manner manner = { true, false, stream };

    return copy_with(&manner, target, source, bytes);
}

CUDA_API CUresult
cuMemcpyAsync_ptsz(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    const struct manner manner = { true, true, stream };

    return copy_with(&manner, target, source, bytes);
}

/* ---- rectangles ---- */

static bool
copy_is_plain(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

/* Rows of memory; those of arrays are not built. */
CUDA_API CUresult
cuMemcpy2D_v2(const CUDA_MEMCPY2D *rows)
{
    uint64_t target, source;
    CUresult rc = CUDA_SUCCESS;

    if (rows == NULL || !copy_is_plain(rows->srcMemoryType) || !copy_is_plain(rows->dstMemoryType)
        || rows->WidthInBytes > rows->srcPitch || rows->WidthInBytes > rows->dstPitch)
        return sim_cuda_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    source = rows->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)rows->srcHost : rows->srcDevice;
    target = rows->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)rows->dstHost : rows->dstDevice;
    source += rows->srcY * rows->srcPitch + rows->srcXInBytes;
    target += rows->dstY * rows->dstPitch + rows->dstXInBytes;
    for (size_t i = 0; i < rows->Height && rc == CUDA_SUCCESS; i++)
        rc = copy_with(&now, target + i * rows->dstPitch, source + i * rows->srcPitch, rows->WidthInBytes);
    return rc;
}
