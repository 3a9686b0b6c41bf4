/* Memory of all kinds in the simulated libcuda.so.1: what each takes of the GPU, to the
 * page, and that it comes back; in one process, and between several. */
#include "simdrv/sim_test.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "bulkhead/cuda_abi.h"
#include "simdrv/meter.h"
#include "simdrv/session.h"
#include "simdrv/publish.h"

#define MIB ((size_t)1 << 20)
#define PAGE (2 * MIB)
#define CONTEXT_PAGES 16 /* context=32 */

#define MUST(condition)                                                                    \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)
#define OK(call) MUST((call) == CUDA_SUCCESS)

static struct sim_meter *meter;

static void
open_meter(void)
{
    char folder[SIM_PATH_MAX];
    struct sim_gpu gpu;

    MUST(sim_session_open(0) == NVML_SUCCESS && sim_session_gpu(0, &gpu) == NVML_SUCCESS);
    MUST(sim_session_vram_path(&gpu, NULL, folder));
    meter = sim_meter_open(folder, &gpu, sim_memory_bytes(&gpu, NULL));
    MUST(meter != NULL);
}

static size_t
pages_used(void)
{
    return (size_t)(sim_meter_used(meter) / PAGE);
}

static void
in_process(void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static CUcontext
open_device(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static const CUmemAllocationProp on_device = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED,
    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
};
static const CUmemAccessDesc both_ways = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                           CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

/* ---- what each kind takes ---- */

static CUdeviceptr a, b;
static CUmemGenericAllocationHandle handle;

static void take_byte(void) { OK(cuMemAlloc_v2(&a, 1)); }
static void take_two_small(void) { OK(cuMemAlloc_v2(&a, 900 << 10)); OK(cuMemAlloc_v2(&b, 900 << 10)); }
static void take_three_small(void)
{
    static CUdeviceptr c;

    take_two_small();
    OK(cuMemAlloc_v2(&c, 900 << 10));
    OK(cuMemFree_v2(c));
}
static void take_mib(void) { OK(cuMemAlloc_v2(&a, MIB)); }
static void take_3_mib(void) { OK(cuMemAlloc_v2(&a, 3 * MIB)); }
static void give_a(void) { OK(cuMemFree_v2(a)); }
static void give_both(void) { give_a(); OK(cuMemFree_v2(b)); }

static void take_rows(void)
{
    size_t pitch;

    OK(cuMemAllocPitch_v2(&a, &pitch, 513, 4096, 4));
    MUST(pitch == 1024);
}

static void take_managed(void) { OK(cuMemAllocManaged(&a, 4 * MIB, 1)); memset((void *)(uintptr_t)a, 7, 4 * MIB); }
static void take_prefetched(void) { take_managed(); OK(cuMemPrefetchAsync(a, 3 * MIB, 0, NULL)); }
static void take_returned(void) { take_prefetched(); OK(cuMemPrefetchAsync(a, 3 * MIB, CU_DEVICE_CPU, NULL)); }
static void take_pinned(void) { void *p; OK(cuMemHostAlloc(&p, 4 * MIB, 0)); a = (uintptr_t)p; }
static void give_pinned(void) { OK(cuMemFreeHost((void *)(uintptr_t)a)); }
static void take_async(void) { OK(cuMemAllocAsync(&a, 1, NULL)); }
static void take_async_40(void) { OK(cuMemAllocAsync(&a, 40 * MIB, NULL)); }
static void give_async(void) { OK(cuMemFreeAsync(a, NULL)); OK(cuCtxSynchronize()); }
static void give_async_plainly(void) { give_a(); OK(cuCtxSynchronize()); }

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

static void take_object(void) { OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0)); }
static void give_object(void) { OK(cuMemRelease(handle)); }

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
static void give_mapped(void) { OK(cuMemUnmap(a, 4 * MIB)); OK(cuMemAddressFree(a, 1024 * MIB)); }

static void
take_unmapped(void)
{
    take_mapped();
    OK(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)(a + 5)));
    give_mapped();
}
static void take_addresses(void) { OK(cuMemAddressReserve(&a, 1ull << 36, 0, 0, 0)); }
static void give_addresses(void) { OK(cuMemAddressFree(a, 1ull << 36)); }

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
    OK(cuArray3DCreate_v2(&array, &(CUDA_ARRAY3D_DESCRIPTOR) { 1024, 1024, depth,
                                                               CU_AD_FORMAT_FLOAT, 1,
                                                               flags }));
}
static void take_flat(void) { take_shape(0, 0); }
static void take_deep(void) { take_shape(3, 0); }
static void take_sparse(void) { take_shape(0, CUDA_ARRAY3D_SPARSE); }
static void take_deferred(void)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;

    take_shape(0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    OK(cuArrayGetMemoryRequirements(&needs, array, 0));
    MUST(needs.size == 4 * MIB && needs.alignment == 65536);
}
static void give_array(void) { OK(cuArrayDestroy(array)); }
static void
take_levels(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = { 1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0 };

    OK(cuMipmappedArrayCreate(&mipmap, &shape, 99));
}
static void give_levels(void) { OK(cuMipmappedArrayDestroy(mipmap)); }

static CUcontext other;
static void take_context_1(void) { OK(cuCtxCreate(&other, 0, 0)); }
static void take_context_2(void) { OK(cuCtxCreate_v2(&other, 0, 0)); }
static void take_context_3(void) { OK(cuCtxCreate_v3(&other, NULL, 0, 0, 0)); }
static void take_context_4(void) { OK(cuCtxCreate_v4(&other, NULL, 0, 0)); take_byte(); }
static void give_context(void) { OK(cuCtxDestroy_v2(other)); }
static void take_heap(void) { OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 72 * MIB)); }
static void give_heap(void) { OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB)); }
static void take_stack(void) { OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)); }
static void give_stack(void) { OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024)); }
static void take_primary(void) { take_byte(); }
static void
give_primary(void)
{
    CUcontext context;

    OK(cuDevicePrimaryCtxReset_v2(0));
    MUST(pages_used() == 0);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}
static void take_old(void)
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
    { "sizes go up to whole pages", take_3_mib, give_a, 2 },
    { "rows of 1024", take_rows, give_a, 2 },
    { "of the oldest ABI", take_old, give_a, 2 },
    { "managed memory is at home", take_managed, give_a, 0 },
    { "prefetched memory is not", take_prefetched, give_a, 2 },
    { "until it goes back", take_returned, give_a, 0 },
    { "pinned memory is the host's", take_pinned, give_pinned, 0 },
    { "a pool grows by 32 MiB", take_async, give_async, 16 },
    { "by as many as it needs", take_async_40, give_async, 32 },
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
    { "a context, first ABI", take_context_1, give_context, CONTEXT_PAGES },
    { "a context, second ABI", take_context_2, give_context, CONTEXT_PAGES },
    { "a context, third ABI", take_context_3, give_context, CONTEXT_PAGES },
    { "a context with memory in it", take_context_4, give_context, CONTEXT_PAGES + 1 },
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
        if (pages_used() != base + kinds[i].pages ||
            free_before - free_after != kinds[i].pages * PAGE)
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
    (void)state;
    in_process(take_and_give);
}

/* ---- a full GPU ---- */

static CUresult full_alloc(void) { return cuMemAlloc_v2(&b, 1); }
static CUresult full_async(void) { return cuMemAllocAsync(&b, 1, NULL); }
static CUresult full_create(void) { return cuMemCreate(&handle, PAGE, &on_device, 0); }
static CUresult full_context(void) { return cuCtxCreate_v2(&other, 0, 0); }
static CUresult full_limit(void) { return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * MIB); }
static CUresult
full_array(void)
{
    return cuArrayCreate_v2(&array, &(CUDA_ARRAY_DESCRIPTOR) { 1, 1, CU_AD_FORMAT_FLOAT, 1 });
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
    (void)state;
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

static void
test_copies(void **state)
{
    (void)state;
    in_process(copy_ways);
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
    MUST(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type) ==
         CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemHostRegister_v2(pinned, 1, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemFree_v2(a));
    MUST(cuMemFree_v2(a) == CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&start, 1024));
    MUST(start == a); /* addresses come again at once */
}

static void
test_addresses(void **state)
{
    (void)state;
    in_process(ask_addresses);
}

/* ---- between processes ---- */

static int channel[2];

static void
send_fd(int fd)
{
    char word = '!', room[CMSG_SPACE(sizeof(int))] = "";
    struct iovec part = { &word, 1 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    MUST(sendmsg(channel[1], &message, 0) == 1);
}

static int
receive_fd(void)
{
    char word, room[CMSG_SPACE(sizeof(int))] = "";
    struct iovec part = { &word, 1 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    int fd;

    MUST(recvmsg(channel[0], &message, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void
export_and_die(void)
{
    int fd;

    open_device();
    take_object();
    OK(cuMemAddressReserve(&a, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(a, 4 * MIB, 0, handle, 0));
    OK(cuMemSetAccess(a, 4 * MIB, &both_ways, 1));
    OK(cuMemsetD32_v2(a, 0xabcd1234, MIB));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(fd);
    pause();
}

/* What was exported lives in a descriptor, in an importer, and not a moment longer. */
static void
import_object(void)
{
    pid_t pid;
    int fd, status;
    uint32_t word;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
    pid = fork();
    if (pid == 0)
        export_and_die();
    open_meter();
    fd = receive_fd();
    MUST(pages_used() == CONTEXT_PAGES + 2);
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    MUST(pages_used() == 2);
    open_device();
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    MUST(pages_used() == CONTEXT_PAGES + 2);
    OK(cuMemAddressReserve(&a, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(a, 4 * MIB, 0, handle, 0));
    OK(cuMemRelease(handle));
    OK(cuMemSetAccess(a, 4 * MIB, &both_ways, 1));
    OK(cuMemcpyDtoH_v2(&word, a + 4 * MIB - 4, 4));
    MUST(word == 0xabcd1234);
    OK(cuMemUnmap(a, 4 * MIB));
    MUST(pages_used() == CONTEXT_PAGES);
}

static void
offer_handles(void)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemPoolPtrExportData place;
    CUipcMemHandle ipc;
    CUmemoryPool pool;
    int fd;

    open_device();
    OK(cuMemAlloc_v2(&a, 100));
    OK(cuMemAlloc_v2(&a, 100));
    OK(cuMemsetD8_v2(a, 'i', 100));
    OK(cuIpcGetMemHandle(&ipc, a));
    MUST(cuIpcOpenMemHandle_v2(&b, ipc, 1) == CUDA_ERROR_INVALID_CONTEXT);
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&b, 100, pool, NULL));
    OK(cuMemsetD8Async(b, 'p', 100, NULL));
    OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolExportPointer(&place, b));
    send_fd(fd);
    MUST(write(channel[1], &ipc, sizeof ipc) == sizeof ipc);
    MUST(write(channel[1], &place, sizeof place) == sizeof place);
    pause();
}

static void
open_handles(void)
{
    CUmemPoolPtrExportData place;
    CUipcMemHandle ipc;
    CUmemoryPool pool;
    CUdeviceptr again;
    char letter;
    pid_t pid;
    int fd, status;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
    pid = fork();
    if (pid == 0)
        offer_handles();
    open_meter();
    fd = receive_fd();
    MUST(read(channel[0], &ipc, sizeof ipc) == sizeof ipc);
    MUST(read(channel[0], &place, sizeof place) == sizeof place);
    open_device();
    OK(cuIpcOpenMemHandle_v2(&a, ipc, 1));
    OK(cuIpcOpenMemHandle(&again, ipc, 1));
    MUST(a == again);
    OK(cuMemcpyDtoH_v2(&letter, a + 99, 1));
    MUST(letter == 'i');
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolImportPointer(&b, pool, &place));
    OK(cuMemcpyDtoH_v2(&letter, b, 1));
    MUST(letter == 'p');
    MUST(cuMemAllocFromPoolAsync(&again, 1, pool, NULL) == CUDA_ERROR_NOT_PERMITTED);
    MUST(pages_used() == 2 * CONTEXT_PAGES + 1 + 16);
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    MUST(pages_used() == CONTEXT_PAGES + 1 + 16);
    MUST(cuMemFree_v2(a) == CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcCloseMemHandle(a));
    MUST(pages_used() == CONTEXT_PAGES + 1 + 16);
    OK(cuIpcCloseMemHandle(a));
    OK(cuMemFreeAsync(b, NULL));
    MUST(pages_used() == CONTEXT_PAGES);
    MUST(cuIpcOpenMemHandle_v2(&a, ipc, 1) == CUDA_ERROR_INVALID_HANDLE);
}

static void
test_sharing(void **state)
{
    (void)state;
    in_process(import_object);
    in_process(open_handles);
}

/* ---- a storm ---- */

#define STORMERS 3
#define LIVE 64

static void
storm(unsigned seed)
{
    CUdeviceptr live[LIVE] = { 0 };
    CUmemGenericAllocationHandle objects[LIVE] = { 0 };

    open_device();
    for (;;) {
        unsigned at;

        seed = seed * 1664525u + 1013904223u;
        at = seed >> 16 & (LIVE - 1);
        if (live[at] != 0)
            OK(cuMemFree_v2(live[at]));
        if (objects[at] != 0)
            OK(cuMemRelease(objects[at]));
        live[at] = objects[at] = 0;
        if ((seed & 3) == 0)
            (void)cuMemAllocAsync(&live[at], (seed >> 8) % (64 * MIB) + 1, NULL);
        else if ((seed & 3) == 1)
            (void)cuMemCreate(&objects[at], ((seed >> 8) % 512 + 1) * PAGE, &on_device, 0);
        else
            (void)cuMemAlloc_v2(&live[at], (seed >> 6) % (900 * MIB) + 1);
    }
}

/* However they die, and whatever they do meanwhile: never more than there is, and each
 * user's bytes come to the sum; and nothing at the end. */
static void
weather_storm(void)
{
    static struct sim_meter_reading reading;
    pid_t pid[STORMERS];
    int status;

    open_meter();
    for (unsigned i = 0; i < STORMERS; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            storm(i + 1);
    }
    for (unsigned looks = 0, full = 0; looks < 20000 && full < 2000; looks++) {
        uint64_t sum = 0;

        sim_meter_read(meter, &reading);
        for (size_t i = 0; i < reading.users; i++)
            sum += reading.user[i].bytes;
        MUST(reading.used_bytes <= reading.total_bytes);
        MUST(sum == reading.used_bytes);
        full += reading.used_bytes > reading.total_bytes / 4;
        if (looks % 4000 == 3999) {
            MUST(kill(pid[0], SIGKILL) == 0 && waitpid(pid[0], &status, 0) == pid[0]);
            MUST(WIFSIGNALED(status));
            pid[0] = fork();
            if (pid[0] == 0)
                storm(looks);
        }
    }
    for (unsigned i = 0; i < STORMERS; i++) {
        MUST(kill(pid[i], SIGKILL) == 0 && waitpid(pid[i], &status, 0) == pid[i]);
        MUST(WIFSIGNALED(status)); /* it ended by no failed check */
    }
    MUST(pages_used() == 0);
}

static void
test_storm(void **state)
{
    (void)state;
    in_process(weather_storm);
}

/* ---- checkpoints ---- */

static void
serve(int asked, int answers)
{
    CUdeviceptr first, second;
    unsigned value = 1;
    char word;

    open_device();
    OK(cuMemAlloc_v2(&first, 5 * MIB));
    OK(cuMemAlloc_v2(&second, 100));
    OK(cuMemsetD32_v2(first, 0x11223344, 5 * MIB / 4));
    OK(cuMemsetD8_v2(second, 9, 100));
    MUST(write(answers, "!", 1) == 1);
    while (read(asked, &word, 1) == 1) {
        OK(cuMemcpyDtoH_v2(&value, first + 5 * MIB - 4, 4));
        MUST(value == 0x11223344);
        OK(cuMemcpyDtoH_v2(&value, second + 96, 4));
        MUST(value == 0x09090909);
        MUST(write(answers, "!", 1) == 1);
    }
    OK(cuMemFree_v2(first));
    OK(cuMemFree_v2(second));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    _exit(0);
}

static void
out_and_back(pid_t pid)
{
    CUprocessState state;
    CUdeviceptr place;

    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    MUST(pages_used() == CONTEXT_PAGES);
    OK(cuCheckpointProcessGetState(pid, &state));
    MUST(state == CU_PROCESS_STATE_CHECKPOINTED);
    MUST(cuCheckpointProcessUnlock(pid, NULL) == CUDA_ERROR_ILLEGAL_STATE);
    OK(cuMemAlloc_v2(&place, PAGE)); /* other pages come back to it */
    OK(cuMemsetD8_v2(place, 0xff, PAGE));
    OK(cuCheckpointProcessRestore(pid, NULL));
    OK(cuMemFree_v2(place));
    MUST(pages_used() == 2 * CONTEXT_PAGES + 4);
}

/* Twice, without a call of the process between; it finds its bytes, waits meanwhile, and
 * leaves nothing. */
static void
check_out(void)
{
    int ask[2], answer[2], status;
    CUprocessState state;
    size_t left, total;
    CUdeviceptr all;
    char word;
    pid_t pid;

    MUST(pipe(ask) == 0 && pipe(answer) == 0);
    pid = fork();
    if (pid == 0) {
        close(ask[1]);
        serve(ask[0], answer[1]);
    }
    MUST(read(answer[0], &word, 1) == 1);
    open_meter();
    open_device();
    MUST(cuCheckpointProcessGetState(1, &state) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuCheckpointProcessCheckpoint(pid, NULL) == CUDA_ERROR_ILLEGAL_STATE);
    OK(cuCheckpointProcessLock(pid, &(CUcheckpointLockArgs) { .timeoutMs = 10000 }));
    MUST(write(ask[1], "?", 1) == 1); /* its call waits */
    out_and_back(pid);
    out_and_back(pid);
    OK(cuCheckpointProcessUnlock(pid, NULL));
    MUST(read(answer[0], &word, 1) == 1);
    OK(cuCheckpointProcessLock(pid, NULL));
    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    OK(cuMemGetInfo_v2(&left, &total));
    OK(cuMemAlloc_v2(&all, left));
    MUST(cuCheckpointProcessRestore(pid, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree_v2(all));
    OK(cuCheckpointProcessRestore(pid, NULL));
    OK(cuCheckpointProcessUnlock(pid, NULL));
    MUST(write(ask[1], "?", 1) == 1 && read(answer[0], &word, 1) == 1);
    close(ask[1]);
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    MUST(pages_used() == CONTEXT_PAGES);
}

static void
test_checkpoints(void **state)
{
    (void)state;
    in_process(check_out);
}

/* ---- NVML ---- */

/* The same bytes, by process; and a child of fork has none of its parent's. */
static void
show_to_nvml(void)
{
    unsigned count = 4;
    nvmlProcessInfo_t list[4];
    nvmlMemory_t memory;
    int status;
    pid_t pid;

    OK(cuMemAlloc_v2(&a, 0) == CUDA_ERROR_NOT_INITIALIZED ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    open_meter();
    open_device();
    OK(cuMemAlloc_v2(&a, 30 * MIB));
    pid = fork();
    if (pid == 0) {
        CUcontext context;

        MUST(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED);
        MUST(cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED);
        pause();
    }
    MUST(nvmlInit_v2() == NVML_SUCCESS);
    MUST(nvmlDeviceGetComputeRunningProcesses_v3(gpu_at(0), &count, list) == NVML_SUCCESS);
    MUST(count == 1 && list[0].pid == (unsigned)getpid());
    MUST(list[0].usedGpuMemory == (CONTEXT_PAGES + 15) * PAGE);
    MUST(nvmlDeviceGetMemoryInfo(gpu_at(0), &memory) == NVML_SUCCESS);
    MUST(memory.used == (CONTEXT_PAGES + 15) * PAGE);
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
}

static void
test_nvml(void **state)
{
    (void)state;
    in_process(show_to_nvml);
}

static int
set_up(void **state)
{
    (void)state;
    server_new("node: 2x H100-80GB context=32\n");
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    server_free();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_kinds),   TEST(test_full),  TEST(test_copies), TEST(test_addresses),
        TEST(test_sharing), TEST(test_storm), TEST(test_nvml),
        TEST(test_checkpoints),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root: privileged calls cannot be tested");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
