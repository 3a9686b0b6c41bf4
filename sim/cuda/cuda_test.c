/* The contract of the simulated libcuda.so.1, through its exported names. */
#include "sim/cuda/program_test.h"

#include <errno.h>
#include <sys/stat.h>

/* ---- before anything ---- */

static void
nothing_before_init(void)
{
    CUdeviceptr address;
    CUcontext context;
    int count;

    MUST(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    MUST(cuMemAlloc_v2(&address, 1) == CUDA_ERROR_NOT_INITIALIZED);
    MUST(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_NOT_INITIALIZED);
    MUST(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuInit(0) == CUDA_SUCCESS);
    MUST(cuInit(0) == CUDA_SUCCESS);
    MUST(cuDeviceGetCount(NULL) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemAlloc_v2(&address, 1) == CUDA_ERROR_INVALID_CONTEXT);
    MUST(cuDevicePrimaryCtxRetain(&context, 7) == CUDA_ERROR_INVALID_DEVICE);
}

static void
test_init(void **state)
{
    in_process(nothing_before_init);
}

/* ---- allocations ---- */

static void
allocate(void)
{
    size_t left, total, less;
    CUdeviceptr address, other;
    uint8_t byte = 0;

    open_device();
    MUST(cuMemGetInfo_v2(&left, &total) == CUDA_SUCCESS);
    MUST(total - left - 400 * MIB < PAGE); /* what the context itself takes */
    MUST(cuMemAlloc_v2(&address, 0) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemAlloc_v2(&address, total + 1) == CUDA_ERROR_OUT_OF_MEMORY);
    MUST(cuMemAlloc_v2(&address, left) == CUDA_SUCCESS);
    MUST(cuMemAlloc_v2(&other, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    MUST(cuMemGetInfo_v2(&less, &total) == CUDA_SUCCESS && less == 0);
    MUST(cuMemcpyHtoD_v2(address + left, &byte, 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemcpyHtoD_v2(address + left - 1, "xy", 2) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemFree_v2(address + 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemFree_v2(address) == CUDA_SUCCESS);
    MUST(cuMemFree_v2(address) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemFree_v2(0) == CUDA_SUCCESS);
    MUST(cuMemcpyDtoH_v2(&byte, address, 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemGetInfo_v2(&less, &total) == CUDA_SUCCESS && less == left);
}

static void
test_allocation(void **state)
{
    in_process(allocate);
}

/* ---- bytes ---- */

/* Fills and copies against a plain array that goes the same way. */
static void
copy_and_fill(void)
{
    static uint8_t mirror[3 * 2 << 20], got[3 * 2 << 20];
    CUdeviceptr address;
    uint32_t seed = 7;

    open_device();
    MUST(cuMemAlloc_v2(&address, sizeof mirror) == CUDA_SUCCESS);
    for (int round = 0; round < 200; round++) {
        size_t at, length;

        seed = seed * 1664525u + 1013904223u;
        at = seed % sizeof mirror;
        length = (seed >> 8) % (round % 3 == 0 ? sizeof mirror : 9000u);
        length = length < sizeof mirror - at ? length : sizeof mirror - at;
        if (round % 4 == 0) {
            at &= ~(size_t)3;
            length &= ~(size_t)3;
            MUST(cuMemsetD32_v2(address + at, 0x5a5a5a5au, length / 4) == CUDA_SUCCESS);
            memset(mirror + at, 0x5a, length);
        } else if (round % 4 == 1) {
            MUST(cuMemsetD8_v2(address + at, (uint8_t)seed, length) == CUDA_SUCCESS);
            memset(mirror + at, (uint8_t)seed, length);
        } else {
            memset(got, (uint8_t)(seed >> 16), length);
            MUST(cuMemcpyHtoD_v2(address + at, got, length) == CUDA_SUCCESS);
            memcpy(mirror + at, got, length);
        }
        MUST(cuMemcpyDtoH_v2(got, address, sizeof got) == CUDA_SUCCESS);
        MUST(memcmp(got, mirror, sizeof got) == 0);
    }
    MUST(cuMemsetD32_v2(address + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemsetD32_v2(address, 0, SIZE_MAX / 2) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuMemcpyHtoD_v2(address, NULL, 1) == CUDA_ERROR_INVALID_VALUE);
}

static void
test_bytes(void **state)
{
    in_process(copy_and_fill);
}

static size_t
read_start(void *target, size_t length)
{
    CUdeviceptr address;

    open_device();
    MUST(cuMemAlloc_v2(&address, 64 * PAGE) == CUDA_SUCCESS);
    MUST(cuMemcpyDtoH_v2(target, address + 3 * PAGE, length) == CUDA_SUCCESS);
    MUST(cuMemcpyHtoD_v2(address + 3 * PAGE, "canary", 7) == CUDA_SUCCESS);
    return length;
}

static void
finds_nothing(void)
{
    char text[7] = "";

    read_start(text, sizeof text);
    MUST(text[0] == '\0');
}

static void
finds_canary(void)
{
    char text[7] = "";

    read_start(text, sizeof text);
    MUST(strcmp(text, "canary") == 0);
}

/* What a process leaves the next one does not see, unless the driver leaks. */
static void
test_residue(void **state)
{
    in_process(finds_nothing);
    in_process(finds_nothing);
    server_control("gpu=0 leak\n");
    in_process(finds_canary);
    server_control("");
    in_process(finds_nothing);
}

/* ---- several processes ---- */

static void
take_all_and_die(void)
{
    CUdeviceptr address;
    size_t left, total;

    open_device();
    MUST(cuMemGetInfo_v2(&left, &total) == CUDA_SUCCESS);
    MUST(cuMemAlloc_v2(&address, left) == CUDA_SUCCESS);
}

static void
share(void)
{
    CUdeviceptr address;
    pid_t pid;
    int status, pipes[2], round;
    char word;

    MUST(pipe(pipes) == 0);
    pid = fork_child();
    if (pid == 0) {
        open_device();
        MUST(cuMemAlloc_v2(&address, 8 * PAGE) == CUDA_SUCCESS);
        MUST(cuMemsetD8_v2(address, 'c', 8 * PAGE) == CUDA_SUCCESS);
        MUST(write(pipes[1], "!", 1) == 1);
        pause();
    }
    close(pipes[1]);
    MUST(read(pipes[0], &word, 1) == 1);
    open_device();
    MUST(cuMemAlloc_v2(&address, 8 * PAGE) == CUDA_SUCCESS);
    for (round = 0; round < 8; round++) { /* no page of the other process is this one's */
        MUST(cuMemcpyDtoH_v2(&word, address + (size_t)round * PAGE, 1) == CUDA_SUCCESS);
        MUST(word == '\0');
    }
    MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
}

/* Memory is each process's own while it lives, and free when it died. */
static void
test_processes(void **state)
{
    in_process(take_all_and_die);
    in_process(take_all_and_die);
    in_process(share);
}

/* ---- devices ---- */

static int expected_count;
static char expected_uuid[80];

static void
put_uuid(char text[80], const CUuuid *uuid)
{
    size_t used = (size_t)snprintf(text, 80, "%.4s", expected_uuid);

    for (size_t i = 0; i < sizeof uuid->bytes; i++)
        used += (size_t)snprintf(text + used, 80 - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                 (unsigned)(unsigned char)uuid->bytes[i]);
}

static void
count_devices(void)
{
    CUresult rc = cuInit(0);
    char uuid[80];
    CUuuid bytes;
    int count = -1;

    if (expected_count == 0) {
        MUST(rc == CUDA_ERROR_NO_DEVICE);
        return;
    }
    MUST(rc == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS);
    MUST(count == expected_count);
    MUST(cuDeviceGetUuid_v2(&bytes, 0) == CUDA_SUCCESS);
    put_uuid(uuid, &bytes);
    MUST(strcmp(uuid, expected_uuid) == 0);
}

static void
sees(const char *wanted, int count, const char *uuid)
{
    if (wanted != NULL)
        setenv("CUDA_VISIBLE_DEVICES", wanted, 1);
    expected_count = count;
    snprintf(expected_uuid, sizeof expected_uuid, "%s", uuid);
    in_process(count_devices);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* A device is what NVML calls by the same UUID, and CUDA_VISIBLE_DEVICES takes away. */
static void
test_visible(void **state)
{
    struct pair small = { .profile_id = 19, .start = 2, .size = 1 };
    char first[80], second[80], instance[80];
    nvmlReturn_t unused;
    nvmlDevice_t mig;

    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetUUID(gpu_at(0), first, sizeof first), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetUUID(gpu_at(1), second, sizeof second), NVML_SUCCESS);
    sees(NULL, 2, first);
    sees("1", 1, second);
    sees(second, 1, second);
    sees("1,0", 2, second);
    sees("0,9,1", 1, first);
    sees("", 0, "");
    sees("GPU-no", 0, "");
    assert_int_equal(nvmlDeviceSetMigMode(gpu_at(0), 1, &unused), NVML_SUCCESS);
    sees(NULL, 1, second);
    assert_int_equal(create_pair(gpu_at(0), &small), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpu_at(0), 0, &mig), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetUUID(mig, instance, sizeof instance), NVML_SUCCESS);
    sees(NULL, 2, instance);
    sees(instance, 1, instance);
    sees("0", 1, instance);
}

/* An instance finds what stands in its part of the GPU's memory, and nothing else. */
static void
test_instances(void **state)
{
    struct pair one = { .profile_id = 19, .start = 2, .size = 1 }, other = one;
    nvmlReturn_t unused;

    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceSetMigMode(gpu_at(0), 1, &unused), NVML_SUCCESS);
    server_control("gpu=0 leak\n");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_int_equal(create_pair(gpu_at(0), &one), NVML_SUCCESS);
    in_process(finds_nothing);
    assert_int_equal(nvmlComputeInstanceDestroy(one.ci), NVML_SUCCESS);
    assert_int_equal(nvmlGpuInstanceDestroy(one.gi), NVML_SUCCESS);
    other.start = 3;
    assert_int_equal(create_pair(gpu_at(0), &other), NVML_SUCCESS);
    in_process(finds_nothing);
    assert_int_equal(nvmlComputeInstanceDestroy(other.ci), NVML_SUCCESS);
    assert_int_equal(nvmlGpuInstanceDestroy(other.gi), NVML_SUCCESS);
    assert_int_equal(create_pair(gpu_at(0), &one), NVML_SUCCESS);
    in_process(finds_canary);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- finding the calls ---- */

static const struct {
    const char *name;
    int version;
    CUresult rc;
    CUdriverProcAddressQueryResult status;
} names[] = {
    { "cuInit", 2000, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS },
    { "cuMemAlloc", 13000, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS },
    { "cuMemAlloc", 2000, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS },
    { "cuMemCreate", 10010, CUDA_ERROR_NOT_FOUND, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT },
    { "cuMemAlloc_v2", 13000, CUDA_ERROR_NOT_FOUND, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND },
    { "cuGLInit", 13000, CUDA_ERROR_NOT_FOUND, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND },
};

static void
test_entry(void **state)
{
    CUdriverProcAddressQueryResult status;
    const char *text;
    void *function;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(cuGetProcAddress_v2(names[i].name, &function, names[i].version, 0, &status),
                         names[i].rc);
        assert_int_equal(status, names[i].status);
        assert_true((function != NULL) == (names[i].rc == CUDA_SUCCESS));
    }
    assert_int_equal(cuGetProcAddress_v2("cuDeviceGetUuid", &function, 9020, 0, NULL), 0);
    assert_ptr_equal(function, (void *)cuDeviceGetUuid);
    assert_int_equal(cuGetProcAddress("cuDeviceGetUuid", &function, 12000, 0), 0);
    assert_ptr_equal(function, (void *)cuDeviceGetUuid_v2);
    assert_int_equal(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), 0);
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
}

#define TEST(name) TEST_ON("node: 2x H100-80GB\n", name)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_init),      TEST(test_allocation), TEST(test_bytes),     TEST(test_residue),
        TEST(test_processes), TEST(test_visible),    TEST(test_instances), TEST(test_entry),
    };

    return can_test() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
