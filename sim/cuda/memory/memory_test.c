/* Memory of all kinds in the simulated libcuda.so.1: what each takes of the GPU, to the
 * page, and that it comes back; in one process, and between several. */
#include "sim/cuda/cuda_test.h"

/* ---- what each kind takes ---- */

static CUdeviceptr a, b;
static CUmemGenericAllocationHandle handle;

static void
take_byte(void)
{
    OK(cuMemAlloc_v2(&a, 1));
}
static void
take_two_small(void)
{
    OK(cuMemAlloc_v2(&a, 900 << 10));
    OK(cuMemAlloc_v2(&b, 900 << 10));
}
static void
take_three_small(void)
{
    static CUdeviceptr c;

    take_two_small();
    OK(cuMemAlloc_v2(&c, 900 << 10));
    OK(cuMemFree_v2(c));
}
static void
take_mib(void)
{
    OK(cuMemAlloc_v2(&a, MIB));
}
static void
take_three_mib(void)
{
    OK(cuMemAlloc_v2(&a, 3 * MIB));
}
static void
give_a(void)
{
    OK(cuMemFree_v2(a));
}
static void
give_both(void)
{
    give_a();
    OK(cuMemFree_v2(b));
}

static void
take_rows(void)
{
    size_t pitch;

    OK(cuMemAllocPitch_v2(&a, &pitch, 513, 4096, 4));
    MUST(pitch == 1024);
}

static void
take_managed(void)
{
    OK(cuMemAllocManaged(&a, 4 * MIB, 1));
    memset((void *)(uintptr_t)a, 7, 4 * MIB);
}
static void
take_prefetched(void)
{
    take_managed();
    OK(cuMemPrefetchAsync(a, 3 * MIB, 0, NULL));
}
static void
take_returned(void)
{
    take_prefetched();
    OK(cuMemPrefetchAsync(a, 3 * MIB, CU_DEVICE_CPU, NULL));
}
static void
take_pinned(void)
{
    void *p;
    OK(cuMemHostAlloc(&p, 4 * MIB, 0));
    a = (uintptr_t)p;
}
static void
give_pinned(void)
{
    OK(cuMemFreeHost((void *)(uintptr_t)a));
}
static void
take_async(void)
{
    OK(cuMemAllocAsync(&a, 1, NULL));
}
static void
take_async_large(void)
{
    OK(cuMemAllocAsync(&a, 40 * MIB, NULL));
}
static void
give_async(void)
{
    OK(cuMemFreeAsync(a, NULL));
    OK(cuCtxSynchronize());
}
static void
give_async_plainly(void)
{
    give_a();
    OK(cuCtxSynchronize());
}

static void
take_kept(void)
{
    uint64_t threshold = UINT64_MAX;
    CUmemoryPool pool;

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    take_async();
    give_async();
}

static void
give_kept(void)
{
    CUmemoryPool pool;

    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemPoolTrimTo(pool, 0));
}

static void
take_object(void)
{
    OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
}
static void
give_object(void)
{
    OK(cuMemRelease(handle));
}

static void
take_mapped(void)
{
    take_object();
    OK(cuMemAddressReserve(&a, 1024 * MIB, 0, 0, 0));
    OK(cuMemMap(a, 4 * MIB, 0, handle, 0));
    give_object();
    OK(cuMemSetAccess(a, 4 * MIB, &both_ways, 1));
    OK(cuMemsetD8_v2(a + 1, 7, 4 * MIB - 1));
}
static void
give_mapped(void)
{
    OK(cuMemUnmap(a, 4 * MIB));
    OK(cuMemAddressFree(a, 1024 * MIB));
}

static void
take_unmapped(void)
{
    take_mapped();
    OK(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)(a + 5)));
    give_mapped();
}
static void
take_addresses(void)
{
    OK(cuMemAddressReserve(&a, 1ull << 36, 0, 0, 0));
}
static void
give_addresses(void)
{
    OK(cuMemAddressFree(a, 1ull << 36));
}

static void
take_host_object(void)
{
    CUmemAllocationProp prop = on_device;

    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
}

static CUarray array;
static CUmipmappedArray mipmap;
static void
take_shape(size_t depth, unsigned flags)
{
    OK(cuArray3DCreate_v2(&array,
                          &(CUDA_ARRAY3D_DESCRIPTOR){ 1024, 1024, depth, CU_AD_FORMAT_FLOAT, 1, flags }));
}
static void
take_flat(void)
{
    take_shape(0, 0);
}
static void
take_deep(void)
{
    take_shape(3, 0);
}
static void
take_sparse(void)
{
    take_shape(0, CUDA_ARRAY3D_SPARSE);
}
static void
take_deferred(void)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;

    take_shape(0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    OK(cuArrayGetMemoryRequirements(&needs, array, 0));
    MUST(needs.size == 4 * MIB && needs.alignment == 65536);
}
static void
give_array(void)
{
    OK(cuArrayDestroy(array));
}
static void
take_levels(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0 };

    OK(cuMipmappedArrayCreate(&mipmap, &shape, 99));
}
static void
give_levels(void)
{
    OK(cuMipmappedArrayDestroy(mipmap));
}

static CUcontext other;
static void
take_context_first(void)
{
    OK(cuCtxCreate(&other, 0, 0));
}
static void
take_context_second(void)
{
    OK(cuCtxCreate_v2(&other, 0, 0));
}
static void
take_context_third(void)
{
    OK(cuCtxCreate_v3(&other, NULL, 0, 0, 0));
}
static void
take_context_latest(void)
{
    OK(cuCtxCreate_v4(&other, NULL, 0, 0));
    take_byte();
}
static void
give_context(void)
{
    OK(cuCtxDestroy_v2(other));
}
static void
take_heap(void)
{
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 72 * MIB));
}
static void
give_heap(void)
{
    OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB));
}
static void
take_stack(void)
{
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
}
static void
give_stack(void)
{
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
}
static void
take_primary(void)
{
    take_byte();
}
static void
give_primary(void)
{
    CUcontext context;

    OK(cuDevicePrimaryCtxReset_v2(0));
    MUST(pages_used() == 0);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}
static void
take_old(void)
{
    CUdeviceptr_v1 low;

    OK(cuMemAlloc(&low, 3 << 20));
    OK(cuMemsetD8(low, 7, 3 << 20));
    a = low;
}

static const struct {
    const char *name;
    void (*take)(void), (*give)(void);
    size_t pages;
} kinds[] = {
    { "a byte takes a chunk", take_byte, give_a, 1 },
    { "two small ones share a chunk", take_two_small, give_both, 1 },
    { "a third does not fit", take_three_small, give_both, 1 },
    { "a MiB has its own page", take_mib, give_a, 1 },
    { "sizes go up to whole pages", take_three_mib, give_a, 2 },
    { "rows of 1024", take_rows, give_a, 2 },
    { "of the oldest ABI", take_old, give_a, 2 },
    { "managed memory is at home", take_managed, give_a, 0 },
    { "prefetched memory is not", take_prefetched, give_a, 2 },
    { "until it goes back", take_returned, give_a, 0 },
    { "pinned memory is the host's", take_pinned, give_pinned, 0 },
    { "a pool grows by 32 MiB", take_async, give_async, 16 },
    { "by as many as it needs", take_async_large, give_async, 32 },
    { "freed by the plain call", take_async, give_async_plainly, 16 },
    { "a pool keeps what it may", take_kept, give_kept, 16 },
    { "an object", take_object, give_object, 2 },
    { "an object that is only mapped", take_mapped, give_mapped, 2 },
    { "an object that was unmapped", take_unmapped, give_object, 2 },
    { "addresses alone", take_addresses, give_addresses, 0 },
    { "an object of the host", take_host_object, give_object, 0 },
    { "an array", take_flat, give_array, 2 },
    { "a deep array", take_deep, give_array, 6 },
    { "a sparse array", take_sparse, give_array, 0 },
    { "a deferred array", take_deferred, give_array, 0 },
    { "a mipmap of four thirds", take_levels, give_levels, 3 },
    { "a context, first ABI", take_context_first, give_context, CONTEXT_PAGES },
    { "a context, second ABI", take_context_second, give_context, CONTEXT_PAGES },
    { "a context, third ABI", take_context_third, give_context, CONTEXT_PAGES },
    { "a context with memory in it", take_context_latest, give_context, CONTEXT_PAGES + 1 },
    { "a larger heap", take_heap, give_heap, 32 },
    { "a larger stack", take_stack, give_stack, 132 }, /* 1 KiB x 2048 x 132 */
    { "a reset frees all", take_primary, give_primary, 1 },
};

static void
take_and_give(void)
{
    size_t free_before, free_after, total;
    size_t base;

    open_meter();
    open_device();
    base = pages_used();
    MUST(base == CONTEXT_PAGES);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        OK(cuMemGetInfo_v2(&free_before, &total));
        kinds[i].take();
        OK(cuMemGetInfo_v2(&free_after, &total));
        if (pages_used() != base + kinds[i].pages || free_before - free_after != kinds[i].pages * PAGE)
            fprintf(stderr, "%s: %zu pages\n", kinds[i].name, pages_used() - base);
        MUST(pages_used() == base + kinds[i].pages);
        MUST(free_before - free_after == kinds[i].pages * PAGE);
        kinds[i].give();
        if (pages_used() != base)
            fprintf(stderr, "%s: does not come back\n", kinds[i].name);
        MUST(pages_used() == base);
    }
    OK(cuDevicePrimaryCtxRelease_v2(0));
    MUST(pages_used() == 0);
}

static void
test_kinds(void **state)
{
    in_process(take_and_give);
}

/* ---- a full GPU ---- */

static CUresult
full_alloc(void)
{
    return cuMemAlloc_v2(&b, 1);
}
static CUresult
full_async(void)
{
    return cuMemAllocAsync(&b, 1, NULL);
}
static CUresult
full_create(void)
{
    return cuMemCreate(&handle, PAGE, &on_device, 0);
}
static CUresult
full_context(void)
{
    return cuCtxCreate_v2(&other, 0, 0);
}
static CUresult
full_limit(void)
{
    return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * MIB);
}
static CUresult
full_array(void)
{
    return cuArrayCreate_v2(&array, &(CUDA_ARRAY_DESCRIPTOR){ 1, 1, CU_AD_FORMAT_FLOAT, 1 });
}

static void
fill_up(void)
{
    CUresult (*const calls[])(void) = { full_alloc,   full_async, full_create,
                                        full_context, full_limit, full_array };
    size_t left, total, before;

    open_meter();
    open_device();
    OK(cuMemGetInfo_v2(&left, &total));
    OK(cuMemAlloc_v2(&a, left));
    before = pages_used();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        MUST(calls[i]() == CUDA_ERROR_OUT_OF_MEMORY);
        MUST(pages_used() == before);
    }
    OK(cuMemAllocManaged(&b, PAGE, 1)); /* it stays at home */
    OK(cuMemPrefetchAsync(b, PAGE, 0, NULL));
    MUST(pages_used() == before);
    OK(cuMemFree_v2(a));
    OK(full_alloc());
}

static void
test_full(void **state)
{
    in_process(fill_up);
}

/* ---- copies, by all ways and across kinds ---- */

static void
copy_ways(void)
{
    static uint8_t bytes[5 << 20], got[5 << 20];
    CUmemGenericAllocationHandle second;
    CUdeviceptr mapped, managed;
    void *pinned;

    open_device();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    OK(cuMemAlloc_v2(&a, sizeof bytes));
    OK(cuMemAllocAsync(&b, sizeof bytes, NULL));
    OK(cuMemAllocManaged(&managed, sizeof bytes, 1));
    OK(cuMemHostAlloc(&pinned, sizeof bytes, 0));
    OK(cuMemAddressReserve(&mapped, 8 * MIB, 4 * MIB, 0, 0));
    MUST(mapped % (4 * MIB) == 0);
    OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
    OK(cuMemCreate(&second, 4 * MIB, &on_device, 0));
    OK(cuMemMap(mapped, 4 * MIB, 0, handle, 0));
    MUST(cuMemMap(mapped + PAGE, PAGE, 0, second, 0) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(mapped + 4 * MIB, 4 * MIB, 0, second, 0));
    MUST(cuMemsetD8_v2(mapped, 1, 1) == CUDA_ERROR_INVALID_VALUE); /* no access yet */
    OK(cuMemSetAccess(mapped, 8 * MIB, &both_ways, 1));
    OK(cuMemcpyHtoD_v2(a, bytes, sizeof bytes));
    OK(cuMemcpyDtoDAsync_v2(b, a, sizeof bytes, NULL));
    OK(cuMemcpy(mapped + 1, b, sizeof bytes)); /* over both objects */
    OK(cuMemcpyAsync_ptsz(managed, mapped + 1, sizeof bytes, NULL));
    OK(cuMemcpyDtoH_v2_ptds(pinned, managed, sizeof bytes));
    OK(cuMemcpy((uintptr_t)got, (uintptr_t)pinned, sizeof bytes));
    MUST(memcmp(got, bytes, sizeof bytes) == 0);
    OK(cuMemsetD16Async(mapped + 2, 0x1234, 3 * MIB, NULL));
    OK(cuMemcpyDtoH_v2(got, mapped + 2, 6 * MIB < sizeof got ? 6 * MIB : sizeof got));
    MUST(got[0] == 0x34 && got[1] == 0x12 && got[sizeof got - 1] == 0x12);
    MUST(cuMemcpyHtoD_v2((uintptr_t)got, bytes, 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemsetD16_v2(a + 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemUnmap(mapped, PAGE) == CUDA_ERROR_INVALID_VALUE); /* half of one */
    MUST(cuMemAddressFree(mapped, 8 * MIB) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(mapped, 8 * MIB)); /* two at once */
    OK(cuMemAddressFree(mapped, 8 * MIB));
}

/* The first bytes of each page into rows side by side, and some of them back. */
static void
copy_rows(void)
{
    unsigned char rows[8][8] = { 0 }, page[PAGE];
    CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcPitch = PAGE,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = rows,
                           .dstPitch = sizeof rows[0],
                           .WidthInBytes = 8,
                           .Height = 4 };

    open_device();
    OK(cuMemAlloc_v2(&a, 4 * PAGE));
    for (unsigned i = 0; i < 4; i++)
        OK(cuMemsetD8_v2(a + i * PAGE, (unsigned char)(i + 1), 6));
    copy.srcDevice = a;
    OK(cuMemcpy2D_v2(&copy));
    for (unsigned i = 0; i < 4; i++)
        MUST(rows[i][0] == i + 1 && rows[i][5] == i + 1 && rows[i][6] == 0);
    copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
                            .srcHost = rows,
                            .srcPitch = sizeof rows[0],
                            .srcY = 1,
                            .srcXInBytes = 5,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = a,
                            .dstPitch = PAGE,
                            .dstXInBytes = 100,
                            .WidthInBytes = 2,
                            .Height = 2 };
    OK(cuMemcpy2D_v2(&copy));
    OK(cuMemcpyDtoH_v2(page, a + PAGE, sizeof page));
    MUST(page[99] == 0 && page[100] == 3 && page[101] == 0 && page[0] == 2);
    copy.Height = 5; /* past the end of the allocation */
    MUST(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
    copy.Height = 1;
    copy.srcPitch = 1; /* narrower than a row */
    MUST(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    MUST(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
}

static void
test_copies(void **state)
{
    in_process(copy_ways);
    in_process(copy_rows);
}

/* ---- what an address is ---- */

static void
ask_addresses(void)
{
    CUcontext context = open_device(), of;
    CUmemorytype type;
    CUdeviceptr start;
    size_t bytes;
    bool managed = true;
    void *pinned;

    OK(cuMemAlloc_v2(&a, 1000));
    OK(cuMemAlloc_v2(&b, 1000));
    MUST(b - a == 1024);
    OK(cuMemGetAddressRange_v2(&start, &bytes, b + 999));
    MUST(start == b && bytes == 1000);
    MUST(cuMemGetAddressRange_v2(&start, &bytes, b + 1000) == CUDA_ERROR_NOT_FOUND);
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, a));
    MUST(of == context && type == CU_MEMORYTYPE_DEVICE && !managed);
    OK(cuMemHostAlloc(&pinned, 4096, 0));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)pinned));
    MUST(type == CU_MEMORYTYPE_HOST);
    MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type)
         == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemHostRegister_v2(pinned, 1, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemFree_v2(a));
    MUST(cuMemFree_v2(a) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&start, 1024));
    MUST(start == a); /* addresses come again at once */
}

static void
test_addresses(void **state)
{
    in_process(ask_addresses);
}

/* ---- modules ---- */

#define PTX_OF_5_MIB                                                                                         \
    ".version 7.0\n.target sm_50\n.global .align 4 .b8 v[5242880];\n.visible .entry k_1us(){ret;}\n"

static void
load_modules(void)
{
    CUcontext context, popped;
    CUmodule module, small;
    CUlibrary library;
    CUfunction function;
    CUkernel k;

    open_meter();
    open_device();
    OK(cuModuleLoadData(&module, PTX_OF_5_MIB));
    MUST(pages_used() == CONTEXT_PAGES + 3);
    OK(cuModuleLoadData(&small, "anything")); /* in the last of those pages */
    MUST(pages_used() == CONTEXT_PAGES + 3);
    OK(cuModuleUnload(module));
    MUST(pages_used() == CONTEXT_PAGES + 1);
    OK(cuLibraryLoadData(&library, PTX_OF_5_MIB, NULL, NULL, 0, NULL, NULL, 0));
    MUST(pages_used() == CONTEXT_PAGES + 1); /* loading is lazy */
    OK(cuLibraryGetKernel(&k, library, "k_1us"));
    OK(cuKernelGetFunction(&function, k));
    OK(cuKernelGetFunction(&function, k));
    MUST(pages_used() == CONTEXT_PAGES + 3);
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    MUST(pages_used() == 2 * CONTEXT_PAGES + 6); /* in each context of its own */
    OK(cuCtxPopCurrent_v2(&popped));
    OK(cuCtxDestroy_v2(context));
    OK(cuLibraryUnload(library));
    OK(cuModuleUnload(small));
    MUST(pages_used() == CONTEXT_PAGES);
}

static void
test_modules(void **state)
{
    in_process(load_modules);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_kinds), TEST(test_modules), TEST(test_full), TEST(test_copies), TEST(test_addresses),
    };

    return can_test() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
