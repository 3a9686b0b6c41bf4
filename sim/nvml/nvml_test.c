/* The exported calls, as a privileged program on a node makes them. */
#include "sim/nvml/sim_test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "bulkhead/nvml_smi.h"

static const char *const stubs[] = {
#define NVML_STUB(name) #name,
#include "tables/nvml.tbl"
};

static const char *const calls[] = {
#define NVML_CALL(name, params) #name,
#include "tables/nvml.tbl"
};

/* Enough zero arguments for any call: all are refused before they are read. */
typedef nvmlReturn_t any_call(void *, void *, void *, void *, void *, void *);

static nvmlReturn_t
call_by_name(const char *name)
{
    any_call *call = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, name);

    memcpy(&call, &symbol, sizeof(call));
    BH_CHECK(name, call != NULL);
    return call == NULL ? NVML_SUCCESS : call(NULL, NULL, NULL, NULL, NULL, NULL);
}

static void
test_before_init(void **unused)
{
    for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
        BH_CHECK_EQ(stubs[i], call_by_name(stubs[i]), NVML_ERROR_UNINITIALIZED);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strncmp(calls[i], "nvmlInit", 8) != 0)
            BH_CHECK_EQ(calls[i], call_by_name(calls[i]), NVML_ERROR_UNINITIALIZED);
    BH_CHECK_DONE();
}

/* After init, a call without a handle is refused and none of them crashes. */
static void
test_null_arguments(void **unused)
{
    server_start("node: 2x H100-80GB mig=on\n");
    for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
        BH_CHECK_EQ(stubs[i], call_by_name(stubs[i]), NVML_ERROR_NOT_SUPPORTED);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strncmp(calls[i], "nvmlInit", 8) != 0 && strcmp(calls[i], "nvmlShutdown") != 0)
            BH_CHECK_EQ(calls[i], call_by_name(calls[i]), NVML_ERROR_INVALID_ARGUMENT);
    server_free();
    BH_CHECK_DONE();
}

/* What the enumeration of profiles says agrees with what can be created. */
static void
check_profile(nvmlDevice_t device, unsigned number)
{
    nvmlGpuInstanceProfileInfo_t plain;
    nvmlGpuInstanceProfileInfo_v2_t named = { .version = nvmlGpuInstanceProfileInfo_v2_t_WORD };
    nvmlGpuInstancePlacement_t places[16];
    nvmlGpuInstance_t made[16];
    unsigned count = 16, left = 0;
    nvmlReturn_t rc = nvmlDeviceGetGpuInstanceProfileInfo(device, number, &plain);

    if (rc == NVML_ERROR_NOT_SUPPORTED)
        return;
    assert_int_equal(rc, NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetGpuInstanceProfileInfoV(device, number, &named), NVML_SUCCESS);
    BH_CHECK_EQ(named.name, named.id, plain.id);
    BH_CHECK_EQ(named.name, named.memorySizeMB, plain.memorySizeMB);
    BH_CHECK_EQ(named.name, nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, plain.id, places, &count),
                NVML_SUCCESS);
    BH_CHECK_EQ(named.name, nvmlDeviceGetGpuInstanceRemainingCapacity(device, plain.id, &left), NVML_SUCCESS);
    BH_CHECK_EQ(named.name, left, plain.instanceCount);
    for (unsigned i = 0; i < plain.instanceCount; i++)
        BH_CHECK_EQ(named.name,
                    nvmlDeviceCreateGpuInstanceWithPlacement(device, plain.id, &places[i], &made[i]),
                    NVML_SUCCESS);
    BH_CHECK_EQ(named.name, nvmlDeviceCreateGpuInstance(device, plain.id, &made[15]),
                NVML_ERROR_INSUFFICIENT_RESOURCES);
    BH_CHECK_EQ(named.name, nvmlDeviceCreateGpuInstanceWithPlacement(device, plain.id, &places[0], &made[15]),
                NVML_ERROR_INSUFFICIENT_RESOURCES);
    for (unsigned i = 0; i < plain.instanceCount; i++)
        BH_CHECK_EQ(named.name, nvmlGpuInstanceDestroy(made[i]), NVML_SUCCESS);
    BH_CHECK_EQ(named.name, nvmlGpuInstanceDestroy(made[0]), NVML_ERROR_INVALID_ARGUMENT);
}

static void
test_every_model(void **unused)
{
    static const char *const models[] = { "A30-24GB",  "A100-40GB",  "A100-80GB",  "H100-80GB",
                                          "H100-94GB", "H200-141GB", "B200-180GB", "RTXPRO6000-96GB" };
    char topology[64];

    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        snprintf(topology, sizeof(topology), "node: 1x %s mig=on\n", models[i]);
        server_new(topology);
        BH_CHECK_EQ(models[i], nvmlInit_v2(), NVML_SUCCESS);
        for (unsigned number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; number++)
            check_profile(gpu_at(0), number);
        server_free();
    }
    BH_CHECK_DONE();
}

static void
test_versions(void **unused)
{
    nvmlMemory_v2_t memory = { .version = 1 };
    nvmlGpuInstanceProfileInfo_v2_t v2 = { .version = 0x01000098 };
    union {
        nvmlGpuInstanceProfileInfo_v2_t v2;
        nvmlGpuInstanceProfileInfo_v3_t v3;
    } profile = { .v3 = { .version = nvmlGpuInstanceProfileInfo_v3_t_WORD } };

    server_start("node: 1x RTXPRO6000-96GB\n");
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo_v2(gpu_at(0), &memory),
                NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    memory.version = nvmlMemory_v2_t_WORD;
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo_v2(gpu_at(0), &memory), NVML_SUCCESS);
    BH_CHECK_EQ("memory", memory.total, 97887ull << 20);
    BH_CHECK_EQ("profile", nvmlDeviceGetGpuInstanceProfileInfoV(gpu_at(0), 0, &v2),
                NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    BH_CHECK_EQ("third version", nvmlDeviceGetGpuInstanceProfileInfoV(gpu_at(0), 10, &profile.v2),
                NVML_SUCCESS);
    BH_CHECK_STR("third version", profile.v3.name, "MIG 1g.24gb+gfx");
    BH_CHECK_EQ("third version", profile.v3.capabilities, NVML_GPU_INSTANCE_PROFILE_CAPS_GFX);
    BH_CHECK_EQ("past the last", nvmlDeviceGetGpuInstanceProfileInfo(gpu_at(0), 0x12, NULL),
                NVML_ERROR_INVALID_ARGUMENT);
    server_free();
    BH_CHECK_DONE();
}

static void
test_mig_device(void **unused)
{
    struct pair pair = { 9, 4, 4, 2, NULL, NULL };
    nvmlComputeInstanceInfo_t made;
    nvmlDeviceAttributes_t attributes;
    nvmlDevice_t mig, found, parent;
    nvmlMemory_t memory;
    nvmlUtilization_t utilization;
    char name[96], first[96], second[96];
    unsigned id;

    server_start("node: 2x H100-80GB mig=on\n");
    assert_int_equal(create_pair(gpu_at(1), &pair), NVML_SUCCESS);
    assert_int_equal(nvmlComputeInstanceGetInfo_v2(pair.ci, &made), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(gpu_at(1), 0, &mig), NVML_SUCCESS);
    BH_CHECK("same handle", mig == made.device && pair.gi == made.gpuInstance);
    BH_CHECK_EQ("no such device", nvmlDeviceGetMigDeviceHandleByIndex(gpu_at(1), 1, &found),
                NVML_ERROR_NOT_FOUND);
    BH_CHECK_EQ("name", nvmlDeviceGetName(mig, name, sizeof(name)), NVML_SUCCESS);
    BH_CHECK_STR("name", name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
    BH_CHECK_EQ("uuid", nvmlDeviceGetUUID(mig, first, sizeof(first)), NVML_SUCCESS);
    BH_CHECK_EQ("by uuid", nvmlDeviceGetHandleByUUID(first, &found), NVML_SUCCESS);
    BH_CHECK("by uuid", found == mig);
    BH_CHECK_EQ("parent", nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &parent), NVML_SUCCESS);
    BH_CHECK("parent", parent == gpu_at(1));
    BH_CHECK_EQ("gi id", nvmlDeviceGetGpuInstanceId(mig, &id), NVML_SUCCESS);
    BH_CHECK_EQ("gi id", id, 2);
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
    BH_CHECK_EQ("memory", memory.total, 40448ull << 20);
    BH_CHECK_EQ("attributes", nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_SUCCESS);
    BH_CHECK_EQ("attributes", attributes.multiprocessorCount, 60);
    BH_CHECK_EQ("parent busy", nvmlDeviceGetUtilizationRates(parent, &utilization), NVML_ERROR_NOT_SUPPORTED);
    BH_CHECK_EQ("mig power", nvmlDeviceGetPowerUsage(mig, &id), NVML_ERROR_NOT_SUPPORTED);
    BH_CHECK_EQ("gi with ci", nvmlGpuInstanceDestroy(pair.gi), NVML_ERROR_IN_USE);
    BH_CHECK_EQ("ci", nvmlComputeInstanceDestroy(pair.ci), NVML_SUCCESS);
    BH_CHECK_EQ("stale", nvmlDeviceGetUUID(mig, second, sizeof(second)), NVML_ERROR_INVALID_ARGUMENT);
    BH_CHECK_EQ("again", nvmlGpuInstanceCreateComputeInstance(pair.gi, 2, &pair.ci), NVML_SUCCESS);
    BH_CHECK_EQ("again", nvmlDeviceGetMigDeviceHandleByIndex(gpu_at(1), 0, &mig), NVML_SUCCESS);
    BH_CHECK_EQ("again", nvmlDeviceGetUUID(mig, second, sizeof(second)), NVML_SUCCESS);
    BH_CHECK("a new uuid every time", strcmp(first, second) != 0);
    server_free();
    BH_CHECK_DONE();
}

/* A child holds `mib` of the view's memory until it is killed; it sleeps or
 * keeps a CPU busy meanwhile. */
static pid_t
start_context(const char *view, unsigned mib, bool busy)
{
    char path[SIM_PATH_MAX], byte;
    int ready[2];
    pid_t pid;

    assert_true(sim_path(path, "%s/view/%s/memory", server_dir, view));
    assert_int_equal(pipe(ready), 0);
    pid = fork_child();
    if (pid == 0) {
        int fd = open(path, O_RDONLY);
        void *map = mmap(NULL, (size_t)mib << 20, PROT_READ, MAP_SHARED, fd, 0);

        if (map == MAP_FAILED || write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            if (!busy)
                pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void
stop_context(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The same list as nvidia-smi asks for it, by the table that it wants. */
static void
check_table(nvmlDevice_t device, pid_t pid)
{
    static const unsigned char id[16] = BH_SMI_TABLE_ID, other[16] = { 1 };
    static struct bh_smi_process list[2];
    const void *table = NULL;
    void *const *slots;
    nvmlReturn_t (*compute)(nvmlDevice_t, unsigned *, struct bh_smi_process *);
    unsigned count = 2;

    BH_CHECK_EQ("another", nvmlInternalGetExportTable(&table, other), NVML_ERROR_NOT_FOUND);
    BH_CHECK_EQ("nowhere", nvmlInternalGetExportTable(NULL, id), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlInternalGetExportTable(&table, id), NVML_SUCCESS);
    slots = table;
    BH_CHECK_EQ("its size", (uintptr_t)slots[BH_SMI_SIZE], BH_SMI_SLOTS * sizeof(void *));
    compute = (__typeof__(compute))slots[BH_SMI_COMPUTE];
    BH_CHECK_EQ("list", compute(device, &count, list), NVML_SUCCESS);
    BH_CHECK_EQ("list", count, 1);
    BH_CHECK_EQ("pid", list[0].pid, pid);
    BH_CHECK_EQ("bytes", list[0].used_bytes, 512ull << 20);
    BH_CHECK_EQ("gi", list[0].gpu_instance, 13);
    BH_CHECK("name", strstr(list[0].name, "nvml_test") != NULL);
    count = 0;
    BH_CHECK_EQ("no room", compute(device, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    BH_CHECK_EQ("no room", count, 1);
}

static void
test_contexts(void **unused)
{
    nvmlProcessInfo_t processes[4];
    nvmlMemory_t memory;
    struct pair pair = { 19, 6, 1, 0, NULL, NULL };
    nvmlComputeInstanceInfo_t made;
    nvmlReturn_t activation;
    unsigned count = 4;
    pid_t pid;

    server_start("node: 1x H100-80GB mig=on\n");
    assert_int_equal(create_pair(gpu_at(0), &pair), NVML_SUCCESS);
    assert_int_equal(nvmlComputeInstanceGetInfo_v2(pair.ci, &made), NVML_SUCCESS);
    pid = start_context("0-13", 512, false);
    BH_CHECK_EQ("list", nvmlDeviceGetComputeRunningProcesses_v3(made.device, &count, processes),
                NVML_SUCCESS);
    BH_CHECK_EQ("list", count, 1);
    BH_CHECK_EQ("pid", processes[0].pid, pid);
    BH_CHECK_EQ("bytes", processes[0].usedGpuMemory, 512ull << 20);
    BH_CHECK_EQ("gi", processes[0].gpuInstanceId, 13);
    check_table(made.device, pid);
    count = 0;
    BH_CHECK_EQ("size", nvmlDeviceGetComputeRunningProcesses_v3(gpu_at(0), &count, NULL),
                NVML_ERROR_INSUFFICIENT_SIZE);
    BH_CHECK_EQ("size", count, 1);
    BH_CHECK_EQ("used", nvmlDeviceGetMemoryInfo(made.device, &memory), NVML_SUCCESS);
    BH_CHECK_EQ("used", memory.used, 512ull << 20);
    BH_CHECK_EQ("destroy", nvmlComputeInstanceDestroy(pair.ci), NVML_ERROR_IN_USE);
    BH_CHECK_EQ("mode", nvmlDeviceSetMigMode(gpu_at(0), 0, &activation), NVML_SUCCESS);
    BH_CHECK_EQ("mode", activation, NVML_ERROR_IN_USE);
    stop_context(pid);
    BH_CHECK_EQ("after its death", nvmlComputeInstanceDestroy(pair.ci), NVML_SUCCESS);
    BH_CHECK_EQ("after its death", nvmlGpuInstanceDestroy(pair.gi), NVML_SUCCESS);
    BH_CHECK_EQ("mode", nvmlDeviceSetMigMode(gpu_at(0), 0, &activation), NVML_SUCCESS);
    BH_CHECK_EQ("mode", activation, NVML_SUCCESS);
    server_free();
    BH_CHECK_DONE();
}

/* One process that maps more files named `memory` than the first table of
 * contexts has room for. */
static void
crowd(int ready)
{
    char path[SIM_PATH_MAX];

    for (unsigned i = 0; i < 1500; i++) {
        if (!sim_path(path, "%s/crowd/%u", server_dir, i) || !sim_make_folders(path, 0700)
            || !sim_path(path, "%s/crowd/%u/memory", server_dir, i) || !sim_put_sparse(path, 0600, 4096))
            _exit(1);
        int fd = open(path, O_RDONLY);
        if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
            _exit(1);
        close(fd);
    }
    if (write(ready, "r", 1) == 1)
        pause();
    _exit(1);
}

static void
test_crowd(void **unused)
{
    nvmlProcessInfo_t process = { 0 };
    unsigned count = 1;
    char byte;
    int ready[2];
    pid_t many, one;

    server_start("node: 1x H100-80GB\n");
    assert_int_equal(pipe(ready), 0);
    many = fork_child();
    if (many == 0)
        crowd(ready[1]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    one = start_context("0-w", 3, false);
    BH_CHECK_EQ("not hidden", nvmlDeviceGetComputeRunningProcesses_v3(gpu_at(0), &count, &process),
                NVML_SUCCESS);
    BH_CHECK_EQ("not hidden", count, 1);
    BH_CHECK_EQ("not hidden", process.pid, one);
    stop_context(one);
    stop_context(many);
    server_free();
    BH_CHECK_DONE();
}

/* How many processes use the GPU, and whether its record of work is the one that a job wrote into. */
static unsigned
look_at_work(const char *path, const char *secret, bool *ret_there)
{
    unsigned count = 4;
    nvmlProcessInfo_t processes[4];
    char found[16] = "";
    int fd;

    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(gpu_at(0), &count, processes), NVML_SUCCESS);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    *ret_there = pread(fd, found, strlen(secret), 4096) > 0 && strcmp(found, secret) == 0;
    close(fd);
    return count;
}

/* Before a whole GPU changes hands its node asks which processes use it: when that is none, what a job wrote
 * into the record of work is gone. */
static void
test_begins_anew(void **unused)
{
    static const char secret[] = "SECRET";
    char path[SIM_PATH_MAX];
    bool there;
    pid_t pid;
    int fd;

    server_start("node: 1x H100-80GB\n");
    assert_true(sim_path(path, "%s/vram/0-w/work", server_dir));
    pid = start_context("0-w", 3, false);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, secret, strlen(secret), 4096), strlen(secret));
    close(fd);
    BH_CHECK_EQ("used", look_at_work(path, secret, &there), 1);
    BH_CHECK("stays while it is used", there);
    stop_context(pid);
    BH_CHECK_EQ("used no more", look_at_work(path, secret, &there), 0);
    BH_CHECK("is gone", !there);
    server_free();
    BH_CHECK_DONE();
}

/* Poll until the GPU is busy: a loaded machine may take its time. */
static unsigned
wait_busy(nvmlDevice_t device)
{
    nvmlUtilization_t utilization = { 0 };

    for (unsigned i = 0; i < 300 && utilization.gpu == 0; i++) {
        usleep(110000);
        assert_int_equal(nvmlDeviceGetUtilizationRates(device, &utilization), NVML_SUCCESS);
    }
    return utilization.gpu;
}

static void
test_utilization(void **unused)
{
    nvmlUtilization_t utilization = { 9, 9 };
    unsigned idle_mw = 0, busy_mw = 0;
    pid_t sleeper, worker;

    server_start("node: 1x H100-80GB\n");
    sleeper = start_context("0-w", 1, false);
    usleep(110000);
    BH_CHECK_EQ("a sleeper", nvmlDeviceGetUtilizationRates(gpu_at(0), &utilization), NVML_SUCCESS);
    BH_CHECK_EQ("a sleeper", utilization.gpu, 0);
    BH_CHECK_EQ("power", nvmlDeviceGetPowerUsage(gpu_at(0), &idle_mw), NVML_SUCCESS);
    BH_CHECK_EQ("idle power", idle_mw, 105000);
    worker = start_context("0-w", 1, true);
    BH_CHECK("a worker", wait_busy(gpu_at(0)) > 0);
    BH_CHECK_EQ("power", nvmlDeviceGetPowerUsage(gpu_at(0), &busy_mw), NVML_SUCCESS);
    BH_CHECK("more power", busy_mw > idle_mw && busy_mw <= 700000);
    stop_context(worker);
    stop_context(sleeper);
    server_free();
    BH_CHECK_DONE();
}

static void
test_faults(void **unused)
{
    nvmlGpuInstance_t gi;
    nvmlReturn_t activation;
    nvmlEventSet_t set;
    nvmlEventData_t event = { 0 };
    unsigned value;
    unsigned long long errors = 0;
    char uuid[96];
    pid_t pid;
    int status;

    server_start("node: 2x H100-80GB mig=on\n");
    assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceRegisterEvents(gpu_at(1), nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
    server_control("nvmlDeviceCreateGpuInstance gpu=0 fail=INSUFFICIENT_RESOURCES count=1\n"
                   "gpu=1 xid=79 gi=3\ngpu=1 ecc-uncorrected=2\nnvmlDeviceSetMigMode gpu=1 hang\n");
    BH_CHECK_EQ("other gpu", nvmlDeviceCreateGpuInstance(gpu_at(1), 19, &gi), NVML_SUCCESS);
    BH_CHECK_EQ("once", nvmlDeviceCreateGpuInstance(gpu_at(0), 19, &gi), NVML_ERROR_INSUFFICIENT_RESOURCES);
    BH_CHECK_EQ("and no more", nvmlDeviceCreateGpuInstance(gpu_at(0), 19, &gi), NVML_SUCCESS);
    BH_CHECK_EQ("event", nvmlEventSetWait_v2(set, &event, 1000), NVML_SUCCESS);
    BH_CHECK_EQ("xid", event.eventData, 79);
    BH_CHECK_EQ("gi", event.gpuInstanceId, 3);
    BH_CHECK_EQ("ci", event.computeInstanceId, 0xFFFFFFFFu);
    BH_CHECK_EQ("nothing more", nvmlEventSetWait_v2(set, &event, 0), NVML_ERROR_TIMEOUT);
    BH_CHECK_EQ("ecc",
                nvmlDeviceGetTotalEccErrors(gpu_at(1), NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
                                            &errors),
                NVML_SUCCESS);
    BH_CHECK_EQ("ecc", errors, 2);
    pid = fork_child();
    if (pid == 0) {
        nvmlDeviceSetMigMode(gpu_at(1), 1, &activation);
        _exit(0);
    }
    usleep(200000);
    BH_CHECK_EQ("hangs", waitpid(pid, &status, WNOHANG), 0);
    BH_CHECK_EQ("and blocks no change", nvmlDeviceSetMigMode(gpu_at(0), 1, &activation), NVML_SUCCESS);
    stop_context(pid);
    server_control("gpu=1 lost\n");
    BH_CHECK_EQ("lost", nvmlDeviceGetPowerUsage(gpu_at(1), &value), NVML_ERROR_GPU_IS_LOST);
    BH_CHECK_EQ("still named", nvmlDeviceGetUUID(gpu_at(1), uuid, sizeof(uuid)), NVML_SUCCESS);
    BH_CHECK_EQ("the other", nvmlDeviceGetPowerUsage(gpu_at(0), &value), NVML_SUCCESS);
    server_control("");
    BH_CHECK_EQ("back", nvmlDeviceGetPowerUsage(gpu_at(1), &value), NVML_SUCCESS);
    server_free();
    BH_CHECK_DONE();
}

/* A call that is slow, one that is not even simulated, a row that waits for a
 * reset. */
static void
test_slow_and_sick(void **unused)
{
    nvmlFieldValue_t recovery = { .fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION };
    struct timespec before, after;
    char serial[NVML_DEVICE_SERIAL_BUFFER_SIZE];

    server_start("node: 2x H100-80GB mig=on\n");
    server_control("gpu=1 recovery=1\nnvmlDeviceGetSerial "
                   "delay-ms=300\nnvmlVgpuTypeGetName fail=UNKNOWN\n");
    BH_CHECK_EQ("recovery", nvmlDeviceGetFieldValues(gpu_at(1), 1, &recovery), NVML_SUCCESS);
    BH_CHECK_EQ("recovery", recovery.value.ullVal, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
    BH_CHECK_EQ("unsimulated", call_by_name("nvmlVgpuTypeGetName"), NVML_ERROR_UNKNOWN);
    clock_gettime(CLOCK_MONOTONIC, &before);
    BH_CHECK_EQ("slow", nvmlDeviceGetSerial(gpu_at(1), serial, sizeof(serial)), NVML_SUCCESS);
    clock_gettime(CLOCK_MONOTONIC, &after);
    BH_CHECK("slow",
             (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 299);
    server_free();
    BH_CHECK_DONE();
}

static void
test_handles(void **unused)
{
    char buffer[8], firmware[NVML_GSP_FIRMWARE_VERSION_BUF_SIZE], driver[80];
    nvmlEnableState_t display;
    nvmlDevice_t old;
    unsigned value, most;

    server_new("node: 1x A100-40GB\n");
    BH_CHECK_EQ("first", nvmlInit_v2(), NVML_SUCCESS);
    BH_CHECK_EQ("second", nvmlInitWithFlags(0), NVML_SUCCESS);
    old = gpu_at(0);
    BH_CHECK("same pointer", old == gpu_at(0));
    BH_CHECK_EQ("garbage", nvmlDeviceGetIndex((nvmlDevice_t)(void *)buffer, &value),
                NVML_ERROR_INVALID_ARGUMENT);
    BH_CHECK_EQ("inside a handle", nvmlDeviceGetIndex((nvmlDevice_t)(void *)((char *)old + 1), &value),
                NVML_ERROR_INVALID_ARGUMENT);
    BH_CHECK_EQ("small buffer", nvmlDeviceGetName(old, buffer, sizeof(buffer)), NVML_ERROR_INSUFFICIENT_SIZE);
    BH_CHECK_EQ("firmware", nvmlDeviceGetGspFirmwareVersion(old, firmware), NVML_SUCCESS);
    BH_CHECK_EQ("driver", nvmlSystemGetDriverVersion(driver, sizeof(driver)), NVML_SUCCESS);
    BH_CHECK("firmware", strcmp(firmware, driver) == 0);
    BH_CHECK_EQ("display", nvmlDeviceGetDisplayActive(old, &display), NVML_SUCCESS);
    BH_CHECK_EQ("display", display, NVML_FEATURE_DISABLED);
    BH_CHECK_EQ("clock", nvmlDeviceGetApplicationsClock(old, NVML_CLOCK_SM, &value), NVML_SUCCESS);
    BH_CHECK_EQ("clock", nvmlDeviceGetMaxClockInfo(old, NVML_CLOCK_SM, &most), NVML_SUCCESS);
    BH_CHECK_EQ("clock", value, most);
    BH_CHECK_EQ("mig off", nvmlDeviceGetGpuInstanceById(old, 0, NULL), NVML_ERROR_NOT_SUPPORTED);
    BH_CHECK_EQ("one shutdown", nvmlShutdown(), NVML_SUCCESS);
    BH_CHECK_EQ("still open", nvmlDeviceGetIndex(old, &value), NVML_SUCCESS);
    BH_CHECK_EQ("the other", nvmlShutdown(), NVML_SUCCESS);
    BH_CHECK_EQ("closed", nvmlDeviceGetIndex(old, &value), NVML_ERROR_UNINITIALIZED);
    BH_CHECK_EQ("one too many", nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    BH_CHECK_EQ("anew", nvmlInit_v2(), NVML_SUCCESS);
    BH_CHECK_EQ("stale", nvmlDeviceGetIndex(old, &value), NVML_ERROR_INVALID_ARGUMENT);
    server_free();
    BH_CHECK_DONE();
}

/* Threads that come and go: a shutdown takes nothing from under a reader. */
static void *
come_and_go(void *self)
{
    unsigned *answers = self;
    char uuid[96];

    for (unsigned i = 0; i < 300; i++) {
        nvmlDevice_t device = NULL;

        if (nvmlInit_v2() != NVML_SUCCESS)
            continue;
        if (nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_SUCCESS
            && nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) == NVML_SUCCESS)
            ++*answers;
        nvmlShutdown();
        /* Without an initialisation of its own: any answer, but no crash. */
        nvmlDeviceGetUUID(device, uuid, sizeof(uuid));
    }
    return NULL;
}

static void
test_threads(void **unused)
{
    pthread_t thread[4];
    unsigned answers[4] = { 0 };

    server_new("node: 1x H100-80GB\n");
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, &answers[i]), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        BH_CHECK_EQ("every call of an initialised thread is answered", answers[i], 300);
    }
    server_free();
    BH_CHECK_DONE();
}

/* Busy per cent of an instance, through the samples that a MIG device has. */
static void
test_gpm(void **unused)
{
    nvmlGpmSupport_t support = { .version = NVML_GPM_SUPPORT_VERSION };
    static nvmlGpmMetricsGet_t get;
    nvmlGpmSample_t sample = NULL;

    server_start("node: 1x A100-40GB\nnode: 1x H100-80GB\n");
    BH_CHECK_EQ("ampere", nvmlGpmQueryDeviceSupport(gpu_at(0), &support), NVML_SUCCESS);
    BH_CHECK_EQ("ampere", support.isSupportedDevice, 0);
    assert_int_equal(nvmlGpmSampleAlloc(&sample), NVML_SUCCESS);
    BH_CHECK_EQ("ampere", nvmlGpmSampleGet(gpu_at(0), sample), NVML_ERROR_NOT_SUPPORTED);
    BH_CHECK_EQ("hopper", nvmlGpmSampleGet(gpu_at(1), sample), NVML_SUCCESS);
    get = (nvmlGpmMetricsGet_t){ .version = 1, .numMetrics = 2, .sample1 = sample, .sample2 = sample };
    get.metrics[0].metricId = NVML_GPM_METRIC_SM_UTIL;
    get.metrics[1].metricId = 60;
    BH_CHECK_EQ("metrics", nvmlGpmMetricsGet(&get), NVML_SUCCESS);
    BH_CHECK_EQ("sm", get.metrics[0].nvmlReturn, NVML_SUCCESS);
    BH_CHECK_EQ("nvlink", get.metrics[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(nvmlGpmSampleFree(sample), NVML_SUCCESS);
    server_free();
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_init),   cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_every_model),   cmocka_unit_test(test_versions),
        cmocka_unit_test(test_mig_device),    cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_gpm),           cmocka_unit_test(test_utilization),
        cmocka_unit_test(test_crowd),         cmocka_unit_test(test_threads),
        cmocka_unit_test(test_slow_and_sick), cmocka_unit_test(test_begins_anew),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root: privileged calls cannot be tested");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
