/* Allocations and frees in the order of a stream. */
#include "sim/cuda/memory/alloc.h"
#include "sim/cuda/memory/pool.h"
#include "sim/cuda/work/graph.h"
#include "sim/cuda/work/stream.h"

/* The address is there at once, but in a capture the memory comes when the graph is
 * launched. `pool` NULL: the present one of the context's device. */
static CUresult
ordered_allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, struct sim_stream_name name)
{
    struct sim_capture_memory node = { CU_GRAPH_NODE_TYPE_MEM_ALLOC, 0, bytes, 0 };
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);
    uint64_t start = 0;
    bool taken = false;

    if (rc != CUDA_SUCCESS)
        return rc;
    if (address == NULL || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    node.device = sim_pool_find_device(pool, context->device);
    sim_memory_unlock();
    rc = sim_capture_take_memory(name, &node, &taken);
    if (rc == CUDA_SUCCESS && taken)
        *address = node.address;
    if (rc != CUDA_SUCCESS || taken)
        return rc;
    sim_memory_lock();
    rc = sim_pool_find(pool, context->device, &pool);
    if (rc == CUDA_SUCCESS)
        rc = sim_pool_take(pool, bytes, &start);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *address = start;
    return rc;
}

CUDA_ROW(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream),
         ordered_allocate(address, bytes, NULL, (struct sim_stream_name){ stream, false }))
CUDA_ROW(cuMemAllocAsync_ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream),
         ordered_allocate(address, bytes, NULL, (struct sim_stream_name){ stream, true }))

CUDA_API CUresult
cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return pool == NULL ? CUDA_ERROR_INVALID_VALUE
                        : ordered_allocate(address, bytes, pool, (struct sim_stream_name){ stream, false });
}

CUDA_API CUresult
cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return pool == NULL ? CUDA_ERROR_INVALID_VALUE
                        : ordered_allocate(address, bytes, pool, (struct sim_stream_name){ stream, true });
}

static CUresult
ordered_free(CUdeviceptr address, CUstream stream, bool own)
{
    const struct sim_operation operation = { .kind = SIM_OPERATION_FREE, .target = address };
    struct sim_capture_memory node = { CU_GRAPH_NODE_TYPE_MEM_FREE, 0, 0, address };
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);
    struct sim_range range;
    bool taken = false;

    if (rc == CUDA_SUCCESS && address != 0)
        rc = sim_capture_take_memory((struct sim_stream_name){ stream, own }, &node, &taken);
    if (rc != CUDA_SUCCESS || taken)
        return rc;
    sim_memory_lock();
    if (!sim_alloc_find(address, &range) || range.start != address || range.region->kind == SIM_REGION_MANAGED
        || range.region->kind == SIM_REGION_IMPORTED)
        rc = CUDA_ERROR_INVALID_VALUE;
    sim_memory_unlock();
    return rc == CUDA_SUCCESS ? sim_cuda_stream_submit(stream, own, &operation) : rc;
}

CUDA_ROW(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), ordered_free(address, stream, false))
CUDA_ROW(cuMemFreeAsync_ptsz, (CUdeviceptr address, CUstream stream), ordered_free(address, stream, true))
