/* Several processes on the simulated libcuda.so.1: what they share, that they die, how
 * they are put aside, and what NVML says of them. */
#include "sim/cuda/cuda_test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static CUdeviceptr a, b;
static CUmemGenericAllocationHandle handle;

/* ---- what passes between them ---- */

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
    OK(cuMemCreate(&handle, 4 * MIB, &on_device, 0));
    OK(cuMemAddressReserve(&a, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(a, 4 * MIB, 0, handle, 0));
    OK(cuMemSetAccess(a, 4 * MIB, &both_ways, 1));
    OK(cuMemsetD32_v2(a, 0xabcd1234, MIB));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    send_fd(fd);
    pause();
}

/* The slots as a job can write them. */
static struct sim_slot *
map_slots(void)
{
    char path[SIM_PATH_MAX];
    void *map;
    int fd;

    MUST(sim_path(path, "%s/vram/0-w/0", server_dir));
    fd = open(path, O_RDWR | O_CLOEXEC);
    map = mmap(NULL, SIM_SLOTS_MAX * sizeof(struct sim_slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(map != MAP_FAILED);
    close(fd);
    return map;
}

/* An object that says that it is larger than its pages is none. */
static void
import_forged(int fd)
{
    struct sim_slot *slots = map_slots();
    struct sim_slot *object = &slots[lseek(fd, 0, SEEK_CUR) / (off_t)sizeof(*object)];
    uint64_t bytes = object->bytes;

    MUST(object->kind == SIM_SLOT_SHARED && bytes == 4 * MIB);
    object->bytes = 64 * MIB;
    MUST(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
         == CUDA_ERROR_INVALID_VALUE);
    object->bytes = bytes;
    munmap(slots, SIM_SLOTS_MAX * sizeof(*slots));
}

/* What was exported lives in a descriptor, in an importer, and not a moment longer. */
static void
import_object(void)
{
    pid_t pid;
    int fd, status;
    uint32_t word;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
    pid = fork_child();
    if (pid == 0)
        export_and_die();
    open_meter();
    fd = receive_fd();
    MUST(pages_used() == CONTEXT_PAGES + 2);
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    MUST(pages_used() == 2);
    open_device();
    import_forged(fd);
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
    const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
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
    CUmemPoolPtrExportData place, forged;
    CUipcMemHandle ipc;
    CUmemoryPool pool;
    CUdeviceptr again;
    char letter;
    pid_t pid;
    int fd, status;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
    pid = fork_child();
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
    forged = place;
    memset((char *)&forged + 40, 0x7f, 8); /* as many bytes of it as there are not */
    MUST(cuMemPoolImportPointer(&b, pool, &forged) == CUDA_ERROR_INVALID_VALUE);
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
        pid[i] = fork_child();
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
            pid[0] = fork_child();
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
    pid = fork_child();
    if (pid == 0) {
        close(ask[1]);
        serve(ask[0], answer[1]);
    }
    MUST(read(answer[0], &word, 1) == 1);
    open_meter();
    open_device();
    MUST(cuCheckpointProcessGetState(1, &state) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuCheckpointProcessCheckpoint(pid, NULL) == CUDA_ERROR_ILLEGAL_STATE);
    OK(cuCheckpointProcessLock(pid, &(CUcheckpointLockArgs){ .timeoutMs = 10000 }));
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
    pid = fork_child();
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
    in_process(show_to_nvml);
}

/* A process that says that it has very many slots has one: a checkpoint goes by that. */
static void
map_many_slots(void)
{
    char path[SIM_PATH_MAX];
    int fd;

    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    open_device();
    MUST(sim_path(path, "%s/view/0-w/memory", server_dir));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    for (off_t page = 0; page < 3000; page += 2)
        MUST(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, page * 4096) != MAP_FAILED);
    send_fd(fd);
    pause();
}

static void
put_aside_many_slots(void)
{
    nvmlProcessInfo_t list[4];
    CUprocessState process;
    unsigned count = 4;
    int status;
    pid_t pid;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
    pid = fork_child();
    if (pid == 0)
        map_many_slots();
    close(channel[1]);
    close(receive_fd());
    OK(cuInit(0));
    OK(cuCheckpointProcessGetState(pid, &process));
    MUST(nvmlInit_v2() == NVML_SUCCESS);
    MUST(nvmlDeviceGetComputeRunningProcesses_v3(gpu_at(0), &count, list) == NVML_SUCCESS);
    MUST(count == 1 && list[0].pid == (unsigned)pid);
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
}

static void
test_many_slots(void **state)
{
    in_process(put_aside_many_slots);
}

/* One that says that it has one page, and that a restore moved it: the file of what is put aside
 * goes by the pages that are its own. */
static void
claim_one_page(void)
{
    char path[SIM_PATH_MAX], name[64] = "";
    struct sim_slot *slots;
    int aside = 3;

    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    open_device();
    slots = map_slots();
    for (; strncmp(name, "/memfd:bulkhead-sim-aside", 25) != 0; aside++) {
        MUST(aside < 64 && sim_path(path, "/proc/self/fd/%u", (unsigned)aside));
        (void)!readlink(path, name, sizeof(name) - 1);
    }
    aside--;
    MUST(ftruncate(aside, 4096 + (off_t)PAGE) == 0 && slots[1].held % 4096 == CONTEXT_PAGES);
    slots[1].held += 1 - CONTEXT_PAGES;
    send_fd(aside);
    pause();
}

static void
put_aside_more(void)
{
    uint32_t saved[2 * CONTEXT_PAGES], before = 0;
    int fd, status;
    pid_t pid;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0);
    pid = fork_child();
    if (pid == 0)
        claim_one_page();
    close(channel[1]);
    fd = receive_fd();
    OK(cuInit(0));
    OK(cuCheckpointProcessLock(pid, NULL));
    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    MUST(pread(fd, saved, sizeof(saved), 0) == (ssize_t)sizeof(saved));
    for (unsigned i = 0; i < CONTEXT_PAGES; i++) {
        MUST(i == 0 || saved[2 * i] == before + 1);
        before = saved[2 * i];
    }
    MUST(lseek(fd, 0, SEEK_END) == 4096 + CONTEXT_PAGES * (off_t)PAGE);
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
}

static void
test_one_page(void **state)
{
    in_process(put_aside_more);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sharing), TEST(test_storm),      TEST(test_checkpoints),
        TEST(test_nvml),    TEST(test_many_slots), TEST(test_one_page),
    };

    return can_test() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
