/* What a job sees: one instance, through its view folder and device nodes. */
#include "sim/nvml/sim_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MAJOR_GPU 195
#define MAJOR_CAPS 235

static bool
add_node(const char *path, unsigned major, unsigned minor)
{
    return mknod(path, S_IFCHR | 0666, makedev(major, minor)) == 0;
}

static bool
add_gpu_nodes(void)
{
    return mkdir("/dev/nvidia-caps", 0755) == 0 && add_node("/dev/nvidiactl", MAJOR_GPU, 255)
           && add_node("/dev/nvidia1", MAJOR_GPU, 1);
}

/* A mount namespace with a /dev of its own, and GPU 1 in it. */
static bool
make_dev(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
           && mount("tmpfs", "/dev", "tmpfs", 0, NULL) == 0 && add_gpu_nodes();
}

/* Become a job: with a /dev of its own, and one view folder at the place where a job
 * finds it. */
static bool
enter_job(const char *view)
{
    const char *job = "/dev/job"; /* on the private tmpfs: nothing stays behind */
    char source[SIM_PATH_MAX], target[SIM_PATH_MAX];

    if (!sim_path(source, "%s/view/%s", server_dir, view) || !make_dev())
        return false;
    if (!sim_path(target, "%s/view", job) || mkdir(job, 0755) != 0 || mkdir(target, 0755) != 0)
        return false;
    return mount(source, target, NULL, MS_BIND, NULL) == 0 && setenv("BULKHEAD_SIM_STATE", job, 1) == 0;
}

static int
status_of(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Whether a job's surroundings can be made here. */
static bool
jobs_can_be_made(void)
{
    pid_t pid = fork_child();

    if (pid == 0)
        _exit(!make_dev());
    return status_of(pid) == 0;
}

/* Run `body` in a child that is a job with this view; its status is the count
 * of failed checks. */
static void
in_job(const char *view, void (*body)(void))
{
    pid_t pid;

    while (nvmlShutdown() == NVML_SUCCESS) {
    }
    pid = fork_child();
    if (pid == 0) {
        bh_test_failures = 0;
        if (!enter_job(view))
            _exit(77);
        body();
        _exit(bh_test_failures);
    }
    BH_CHECK_EQ(view, status_of(pid), 0);
}

/* GPU 1 with a 1g at 0 (gi 7) and a 3g at 4 (gi 2). */
static void
carve(void)
{
    struct pair small = { 19, 0, 1, 0, NULL, NULL }, large = { 9, 4, 4, 2, NULL, NULL };

    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    assert_int_equal(create_pair(gpu_at(1), &small), NVML_SUCCESS);
    assert_int_equal(create_pair(gpu_at(1), &large), NVML_SUCCESS);
}

static void
mig_job(void)
{
    nvmlDevice_t gpu, mig = NULL, other;
    nvmlMemory_t memory;
    nvmlGpuInstance_t gi;
    nvmlReturn_t activation;
    char name[96];
    unsigned count = 9, current = 0, pending = 0, minor = 0, index = 9;

    BH_CHECK_EQ("init", nvmlInit_v2(), NVML_SUCCESS);
    BH_CHECK_EQ("count", nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    BH_CHECK_EQ("no cap nodes, no device", count, 0);
    BH_CHECK_EQ("no cap nodes, no device", nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_ERROR_NO_PERMISSION);
    BH_CHECK("nodes", add_node("/dev/nvidia-caps/nvidia-cap156", MAJOR_CAPS, 156)
                          && add_node("/dev/nvidia-caps/nvidia-cap157", MAJOR_CAPS, 157));
    BH_CHECK_EQ("count", nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
    BH_CHECK_EQ("one", count, 1);
    BH_CHECK_EQ("gpu", nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
    BH_CHECK_EQ("second", nvmlDeviceGetHandleByIndex_v2(1, &other), NVML_ERROR_INVALID_ARGUMENT);
    BH_CHECK_EQ("index", nvmlDeviceGetIndex(gpu, &index), NVML_SUCCESS);
    BH_CHECK_EQ("index", index, 0);
    BH_CHECK_EQ("minor", nvmlDeviceGetMinorNumber(gpu, &minor), NVML_SUCCESS);
    BH_CHECK_EQ("minor", minor, 1);
    BH_CHECK_EQ("mode", nvmlDeviceGetMigMode(gpu, &current, &pending), NVML_SUCCESS);
    BH_CHECK_EQ("mode", current, 1);
    BH_CHECK_EQ("mig", nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_SUCCESS);
    BH_CHECK_EQ("only one", nvmlDeviceGetMigDeviceHandleByIndex(gpu, 1, &other), NVML_ERROR_NOT_FOUND);
    BH_CHECK_EQ("name", nvmlDeviceGetName(mig, name, sizeof(name)), NVML_SUCCESS);
    BH_CHECK_STR("name", name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
    BH_CHECK_EQ("memory", memory.total, 40448ull << 20);
    BH_CHECK_EQ("sum of all", nvmlDeviceGetMemoryInfo(gpu, &memory), NVML_ERROR_NO_PERMISSION);
    BH_CHECK_EQ("create", nvmlDeviceCreateGpuInstance(gpu, 19, &gi), NVML_ERROR_NO_PERMISSION);
    BH_CHECK_EQ("mode", nvmlDeviceSetMigMode(gpu, 0, &activation), NVML_ERROR_NO_PERMISSION);
}

static void
own_process(void)
{
    char path[SIM_PATH_MAX];
    nvmlDevice_t gpu, mig = NULL;
    nvmlMemory_t memory = { 0 };
    nvmlProcessInfo_t process[2];
    unsigned count = 2;
    int fd;

    BH_CHECK("nodes", add_node("/dev/nvidia-caps/nvidia-cap201", MAJOR_CAPS, 201)
                          && add_node("/dev/nvidia-caps/nvidia-cap202", MAJOR_CAPS, 202));
    BH_CHECK_EQ("init", nvmlInit_v2(), NVML_SUCCESS);
    BH_CHECK_EQ("gpu", nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
    BH_CHECK_EQ("mig", nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, &mig), NVML_SUCCESS);
    BH_CHECK("path", sim_path(path, "%s/view/memory", getenv("BULKHEAD_SIM_STATE")));
    fd = open(path, O_RDONLY);
    BH_CHECK("map", mmap(NULL, 100 << 20, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
    BH_CHECK_EQ("used", memory.used, 100 << 20);
    BH_CHECK_EQ("list", nvmlDeviceGetComputeRunningProcesses_v3(mig, &count, process), NVML_SUCCESS);
    BH_CHECK_EQ("list", count, 1);
    BH_CHECK_EQ("pid", process[0].pid, getpid());
    BH_CHECK("read-only", open(path, O_WRONLY) < 0 || geteuid() == 0);
}

static void
whole_job(void)
{
    nvmlDevice_t gpu;
    nvmlMemory_t memory = { 0 };
    unsigned current = 9, pending = 9;

    BH_CHECK_EQ("init", nvmlInit_v2(), NVML_SUCCESS);
    BH_CHECK_EQ("gpu", nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
    BH_CHECK_EQ("mode", nvmlDeviceGetMigMode(gpu, &current, &pending), NVML_SUCCESS);
    BH_CHECK_EQ("mode", current, 0);
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo(gpu, &memory), NVML_SUCCESS);
    BH_CHECK_EQ("memory", memory.total, 81559ull << 20);
    unlink("/dev/nvidiactl");
    BH_CHECK_EQ("without its node", nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_ERROR_NO_PERMISSION);
}

/* GPU 1: gi 2 has access minor 3 + 135 + 18 = 156, its ci 0 157; gi 7 has 201
 * and 202. */
static void
test_mig_view(void **unused)
{
    server_new("node: 2x H100-80GB mig=on\n");
    carve();
    in_job("1-2", mig_job);
    in_job("1-7", own_process);
    assert_int_equal(setenv("BULKHEAD_SIM_STATE", server_dir, 1), 0);
    server_free();
    BH_CHECK_DONE();
}

static void
test_whole_view(void **unused)
{
    server_start("node: 2x H100-80GB\n");
    in_job("1-w", whole_job);
    server_free();
    BH_CHECK_DONE();
}

static void
test_no_driver(void **unused)
{
    server_new("");
    BH_CHECK("nothing there", nvmlInit_v2() != NVML_SUCCESS);
    assert_true(sim_remove_tree(server_dir));
    BH_CHECK_EQ("not even a folder", nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mig_view),
        cmocka_unit_test(test_whole_view),
        cmocka_unit_test(test_no_driver),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!jobs_can_be_made()) {
        puts("1..0 # SKIP needs root, mount namespaces and device nodes");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
