/* What NVML's calls show in a job with a share, on the simulated NVML.
 *
 *   view_test NULL_DRIVER SIMULATED_NVML */
#include "base/test.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bulkhead/nvml_abi.h"
#include "bulkhead/nvml_smi.h"
#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

#define OK(call) CHECK((call) == NVML_SUCCESS)

enum { CAP = 512, OVERHEAD = 3 };

/* ---- a lease of the GPUs 2 and 0 of three, in this order ---- */

static const unsigned gpu_of[] = { 2, 0 };

/* Of the driver's own library, in a child: the view is what the test is linked with. */
static int
learn_uuids(void *self)
{
    void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(&nvmlInit_v2) init;
    __typeof__(&nvmlDeviceGetHandleByIndex_v2) by_index;
    __typeof__(&nvmlDeviceGetUUID) get_uuid;

    CHECK(driver != NULL);
    init = (__typeof__(init))dlsym(driver, "nvmlInit_v2");
    by_index = (__typeof__(by_index))dlsym(driver, "nvmlDeviceGetHandleByIndex_v2");
    get_uuid = (__typeof__(get_uuid))dlsym(driver, "nvmlDeviceGetUUID");
    OK(init());
    for (unsigned i = 0; i < 2; i++) {
        char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE], *at = text + 4;
        nvmlDevice_t device;

        OK(by_index(gpu_of[i], &device));
        OK(get_uuid(device, text, sizeof(text)));
        for (unsigned byte = 0; byte < 16; byte++) {
            unsigned value;

            at += *at == '-';
            CHECK(sscanf(at, "%2x", &value) == 1);
            bh_sandbox.limits->device[i].uuid[byte] = (uint8_t)value;
            at += 2;
        }
    }
    return 0;
}

static void
open_share(void)
{
    bh_sandbox_share(2, CAP, 0);
    assert_int_equal(bh_sandbox_run(learn_uuids, NULL), 0);
    bh_sandbox.limits->device[0].overhead_units = OVERHEAD;
}

static void
take(uint32_t slot, uint32_t pid, int32_t units)
{
    atomic_store(&bh_sandbox.usage->pid[slot], pid);
    assert_true(bh_share_change(bh_sandbox.usage, 0, slot, units, BH_SHARE_UNITS_MAX));
}

/* ---- devices ---- */

static int
see_devices(void *self)
{
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    nvmlDevice_t device, again;
    nvmlPciInfo_t pci;
    unsigned count, index, minor;

    CHECK(nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED);
    CHECK(nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_ERROR_UNINITIALIZED);
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetCount_v2(&count));
    CHECK(count == 2);
    OK(nvmlDeviceGetCount(&count));
    CHECK(count == 2);
    CHECK(nvmlDeviceGetHandleByIndex_v2(2, &device) == NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < 2; i++) {
        OK(nvmlDeviceGetHandleByIndex_v2(i, &device));
        OK(nvmlDeviceGetMinorNumber(device, &minor));
        CHECK(minor == gpu_of[i]);
        OK(nvmlDeviceGetIndex(device, &index));
        CHECK(index == i);
        OK(nvmlDeviceGetUUID(device, text, sizeof(text)));
        OK(nvmlDeviceGetHandleByUUID(text, &again));
        CHECK(again == device);
        OK(nvmlDeviceGetPciInfo_v3(device, &pci));
        OK(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &again));
        CHECK(again == device);
    }
    count = 0; /* of all bus numbers only the lease's answer */
    for (unsigned bus = 0; bus < 256; bus++) {
        snprintf(text, sizeof(text), "00000000:%02X:00.0", bus);
        count += nvmlDeviceGetHandleByPciBusId_v2(text, &again) == NVML_SUCCESS;
    }
    CHECK(count == 2);
    OK(nvmlShutdown());
    return 0;
}

static void
only_the_leases_devices(void **state)
{
    open_share();
    BH_CHECK_EQ("devices", bh_sandbox_run(see_devices, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- memory ---- */

struct memory_case {
    const char *name;
    int32_t taken;
    uint32_t overhead, used; /* units */
};

static int
see_memory(void *self)
{
    const struct memory_case *wanted = self;
    nvmlMemory_v2_t second = { .version = nvmlMemory_v2_t_WORD };
    nvmlMemory_t first;
    nvmlDevice_t device;

    OK(nvmlInit_v2());
    OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    OK(nvmlDeviceGetMemoryInfo(device, &first));
    CHECK(first.total == CAP * BH_SHARE_UNIT_BYTES);
    CHECK(first.used == wanted->used * BH_SHARE_UNIT_BYTES);
    CHECK(first.free == first.total - first.used);
    OK(nvmlDeviceGetMemoryInfo_v2(device, &second));
    CHECK(second.total == first.total && second.used == first.used && second.free == first.free
          && second.reserved == 0);
    second.version++;
    CHECK(nvmlDeviceGetMemoryInfo_v2(device, &second) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    CHECK(nvmlDeviceGetMemoryInfo(device, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlDeviceGetHandleByIndex_v2(1, &device));
    OK(nvmlDeviceGetMemoryInfo(device, &first));
    CHECK(first.used == 0 && first.free == CAP * BH_SHARE_UNIT_BYTES);
    return 0;
}

static void
memory_is_the_shares(void **state)
{
    static const struct memory_case cases[] = {
        { "nothing", 0, 0, 0 },
        { "what the driver holds", 0, OVERHEAD, OVERHEAD },
        { "what was reserved", 100, 0, 100 },
        { "both", 100, OVERHEAD, 100 + OVERHEAD },
        { "full", CAP, 0, CAP },
        { "never below 0", CAP, OVERHEAD, CAP },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct memory_case one = cases[i];

        open_share();
        bh_sandbox.limits->device[0].overhead_units = one.overhead;
        if (one.taken > 0)
            take(4, 1, one.taken);
        BH_CHECK_EQ(one.name, bh_sandbox_run(see_memory, &one), 0);
    }
    BH_CHECK_DONE();
}

/* ---- processes ---- */

static int
see_users(void *self)
{
    uint32_t *pids = self;
    nvmlProcessInfo_t list[4];
    nvmlProcessInfo_v1_t old[4];
    nvmlProcessDetail_v1_t details[4];
    nvmlProcessDetailList_t detail = { .version = nvmlProcessDetailList_v1_t_WORD,
                                       .numProcArrayEntries = 4,
                                       .procArray = details };
    nvmlDevice_t device;
    unsigned count = 4;

    OK(nvmlInit_v2());
    OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list));
    CHECK(count == 2);
    CHECK(list[0].pid == pids[0] && list[0].usedGpuMemory == 30 * BH_SHARE_UNIT_BYTES);
    CHECK(list[1].pid == pids[1] && list[1].usedGpuMemory == 7 * BH_SHARE_UNIT_BYTES);
    CHECK(list[0].gpuInstanceId == NVML_INSTANCE_ID_NONE);
    count = 4;
    OK(nvmlDeviceGetComputeRunningProcesses(device, &count, old));
    CHECK(count == 2 && old[1].pid == pids[1]);
    OK(nvmlDeviceGetRunningProcessDetailList(device, &detail));
    CHECK(detail.numProcArrayEntries == 2 && details[1].pid == pids[1]);
    count = 0;
    CHECK(nvmlDeviceGetComputeRunningProcesses_v2(device, &count, NULL) == NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK(count == 2);
    OK(nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, list));
    CHECK(count == 0);
    OK(nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &count, list));
    CHECK(count == 0);
    OK(nvmlDeviceGetHandleByIndex_v2(1, &device));
    OK(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list));
    CHECK(count == 0);
    return 0;
}

typedef nvmlReturn_t list_call(nvmlDevice_t, unsigned *, struct bh_smi_process *);

/* As nvidia-smi asks: nothing of the driver's own table gets through. */
static int
see_table(void *self)
{
    static struct bh_smi_process list[4];
    static const unsigned char id[16] = BH_SMI_TABLE_ID, other[16] = { 1 };
    const uint32_t *pids = self;
    const void *answer = NULL;
    void *const *slots;
    nvmlDevice_t device;
    unsigned count = 4;

    CHECK(nvmlInternalGetExportTable(&answer, other) == NVML_ERROR_NOT_FOUND);
    OK(nvmlInternalGetExportTable(&answer, id));
    slots = answer;
    CHECK(slots[BH_SMI_SIZE] == (void *)(BH_SMI_SLOTS * sizeof(void *)));
    for (unsigned i = 1; i < BH_SMI_SLOTS; i++)
        CHECK(slots[i] == NULL || i == BH_SMI_IS_WATCHED || i >= BH_SMI_COMPUTE);
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    OK(((list_call *)slots[BH_SMI_COMPUTE])(device, &count, list));
    CHECK(count == 2 && list[0].pid == pids[0] && list[1].pid == pids[1]);
    CHECK(list[0].used_bytes == 30 * BH_SHARE_UNIT_BYTES);
    CHECK(list[0].gpu_instance == NVML_INSTANCE_ID_NONE);
    CHECK(strstr(list[0].name, "view") != NULL);
    count = 1;
    CHECK(((list_call *)slots[BH_SMI_COMPUTE])(device, &count, list) == NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK(count == 2);
    OK(((list_call *)slots[BH_SMI_GRAPHICS])(device, &count, list));
    CHECK(count == 0);
    return 0;
}

static int
stay(void *self)
{
    pause();
    return 0;
}

/* Two that live and hold memory; one that holds none, one that has died, one unknown. */
static void
only_the_leases_processes(void **state)
{
    uint32_t pids[2] = { (uint32_t)getpid(), 0 };
    pid_t gone, lives;

    open_share();
    gone = bh_sandbox_start(stay, NULL);
    kill(gone, SIGKILL);
    bh_sandbox_wait(gone);
    lives = bh_sandbox_start(stay, NULL);
    pids[1] = (uint32_t)lives;
    take(0, pids[0], 30);
    take(3, (uint32_t)gone, 5);
    take(5, 0, 9);
    atomic_store(&bh_sandbox.usage->pid[6], 1);
    take(511, pids[1], 20);
    take(511, pids[1], -13);
    BH_CHECK_EQ("settled", bh_sandbox_run(see_users, pids), 0);
    BH_CHECK_EQ("as nvidia-smi asks", bh_sandbox_run(see_table, pids), 0);
    /* As if the last one died between its change of the total and its own word. */
    bh_sandbox.usage->slot[511].held[0] = bh_share_held_pack(20, 1);
    BH_CHECK_EQ("not yet settled", bh_sandbox_run(see_users, pids), 0);
    kill(lives, SIGKILL);
    bh_sandbox_wait(lives);
    BH_CHECK_DONE();
}

/* ---- one word ---- */

static int
ask_for_words(void *self)
{
    nvmlReturn_t (*const refused[])(void) = {
#define VIEW_OWN(name)
#define VIEW_HIDDEN(name)
#define VIEW_REFUSED(name) (nvmlReturn_t(*)(void)) dlsym(RTLD_DEFAULT, #name),
#include "tables/nvml_view.tbl"
    };
    nvmlReturn_t (*const hidden[])(void) = {
#define VIEW_OWN(name)
#define VIEW_REFUSED(name)
#define VIEW_HIDDEN(name) (nvmlReturn_t(*)(void)) dlsym(RTLD_DEFAULT, #name),
#include "tables/nvml_view.tbl"
    };

    OK(nvmlInit_v2());
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        CHECK(refused[i] != NULL && refused[i]() == NVML_ERROR_NO_PERMISSION);
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        CHECK(hidden[i] != NULL && hidden[i]() == NVML_ERROR_NOT_SUPPORTED);
    return 0;
}

static int
pass_on(void *self)
{
    nvmlPciInfo_t pci;
    nvmlDevice_t device;
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];

    OK(nvmlInit_v2());
    OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    OK(nvmlDeviceGetName(device, name, sizeof(name)));
    CHECK(strstr(name, "H100") != NULL);
    OK(nvmlDeviceGetPciInfo_v3(device, &pci));
    CHECK(pci.pciDeviceId != 0);
    CHECK(strcmp(nvmlErrorString(NVML_SUCCESS), "no NVML library") != 0);
    return 0;
}

static void
the_rest(void **state)
{
    open_share();
    BH_CHECK_EQ("refused and hidden", bh_sandbox_run(ask_for_words, NULL), 0);
    BH_CHECK_EQ("passed on", bh_sandbox_run(pass_on, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- how busy ---- */

struct busy_case {
    const char *name;
    uint64_t flags, age_s;
    nvmlReturn_t rc;
    unsigned percent;
};

static int
see_busy(void *self)
{
    const struct busy_case *wanted = self;
    nvmlUtilization_t seen = { .gpu = 77, .memory = 77 };
    nvmlDevice_t device;

    OK(nvmlInit_v2());
    OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    CHECK(nvmlDeviceGetUtilizationRates(device, &seen) == wanted->rc);
    CHECK(seen.gpu == wanted->percent);
    CHECK(wanted->rc != NVML_SUCCESS || seen.memory == 0);
    CHECK(nvmlDeviceGetUtilizationRates(device, NULL) == NVML_ERROR_INVALID_ARGUMENT);
    return 0;
}

/* The simulated device does nothing: 0 is the driver's word. */
static void
busy_with_the_leases_work(void **state)
{
    static const struct busy_case cases[] = {
        { "not measured yet", 0, 0, NVML_ERROR_NOT_SUPPORTED, 77 },
        { "a quarter", BH_SHARE_BUSY_KNOWN | 250, 0, NVML_SUCCESS, 25 },
        { "rounded", BH_SHARE_BUSY_KNOWN | 255, 1, NVML_SUCCESS, 26 },
        { "all of it", BH_SHARE_BUSY_KNOWN | 1000, 1, NVML_SUCCESS, 100 },
        { "nothing", BH_SHARE_BUSY_KNOWN, 1, NVML_SUCCESS, 0 },
        { "no other was there", BH_SHARE_BUSY_KNOWN | BH_SHARE_BUSY_FREE | 1000, 1, NVML_SUCCESS, 0 },
        { "long ago", BH_SHARE_BUSY_KNOWN | 250, 10, NVML_ERROR_NOT_SUPPORTED, 77 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct busy_case one = cases[i];
        uint64_t now_s;
        int status;

        do { /* what is two seconds old is known no more: again where the look itself came late */
            now_s = bh_sandbox_now_ns() / UINT64_C(1000000000);
            open_share();
            bh_sandbox.limits->device[0].busy = one.flags == 0 ? 0 : (now_s - one.age_s) << 32 | one.flags;
            status = bh_sandbox_run(see_busy, &one);
        } while (status != 0 && bh_sandbox_now_ns() / UINT64_C(1000000000) > now_s);
        BH_CHECK_EQ(one.name, status, 0);
    }
    BH_CHECK_DONE();
}

/* ---- the server ---- */

static int
not_begun(void *self)
{
    unsigned count;

    CHECK(nvmlInit_v2() == NVML_ERROR_NOT_READY);
    CHECK(nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED);
    return 0;
}

/* Without the pages there is no view, and the whole GPU is not shown instead. */
static void
nothing_without_pages(void **state)
{
    static const struct {
        const char *name;
        enum sandbox_server server;
    } cases[] = {
        { "refused", SANDBOX_REFUSES }, { "foreign", SANDBOX_FOREIGN }, { "bare", SANDBOX_BARE },
        { "short", SANDBOX_SHORT },     { "forged", SANDBOX_FORGED },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        open_share();
        bh_sandbox.server = cases[i].server;
        BH_CHECK_EQ(cases[i].name, bh_sandbox_run(not_begun, NULL), 0);
    }
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_leases_devices),   cmocka_unit_test(memory_is_the_shares),
        cmocka_unit_test(only_the_leases_processes), cmocka_unit_test(the_rest),
        cmocka_unit_test(busy_with_the_leases_work), cmocka_unit_test(nothing_without_pages),
    };

    if (argc < 3 || !bh_sandbox_enter(argv[1]))
        return argc < 3;
    bh_sandbox_bring(argv[2], "libnvidia-ml.so.1");
    if (!bh_sandbox_simulate("node: 3x H100-80GB\n"))
        return 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
