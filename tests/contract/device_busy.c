/* Which processes keep a GPU busy, as ports/device.h says it, on a simulated server:
 *   device_busy LIBRARY GPU_PROGRAM BURN     in this process, and through bulkhead-gpu */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "device/nvml.h"
#include "node/gpu/gpu_client.h"

static const char *library, *gpu_program, *burn;
static char server_dir[64], cuda[256];

static pid_t
run(const char *const *argv)
{
    posix_spawn_file_actions_t files;
    pid_t pid;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&pid, argv[0], &files, NULL, (char *const *)argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    return pid;
}

/* Work with the simulated libcuda.so.1; "0" has a context and none. */
static pid_t
start_burn(const char *kernel)
{
    const char *argv[] = { burn,   "--library", cuda,  "--kernel", kernel, "--loops-per-ms",
                           "1000", "--time",    "60s", NULL };

    return run(argv);
}

static uint32_t
busy_now(const struct bh_device *device, struct bh_arena *arena, const char *gpu,
         struct bh_device_samples *samples)
{
    struct bh_err err;

    bh_arena_reset(arena);
    *samples = (struct bh_device_samples){ .since_us = 0 };
    BH_CHECK_EQ("asks", device->ops->busy(device->self, gpu, arena, samples, &err), BH_OK);
    return samples->count;
}

/* Until a process is busy, or this one has ended: a sanitizer's library is not for burn. */
static uint32_t
await_busy(const struct bh_device *device, struct bh_arena *arena, const char *gpu,
           struct bh_device_samples *samples, pid_t pid)
{
    siginfo_t ended = { 0 };
    uint32_t count = 0;

    for (int turn = 0; turn < 2000 && count == 0 && ended.si_pid == 0; turn++) {
        bh_time_sleep(5 * BH_NS_PER_MS);
        count = busy_now(device, arena, gpu, samples);
        waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT);
    }
    if (ended.si_pid != 0)
        print_message("# burn cannot load this build's libcuda.so.1\n");
    BH_CHECK("somebody", count > 0 || ended.si_pid != 0);
    return count;
}

static void
check(const struct bh_device *device)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_device_samples samples = { .since_us = 0 };
    struct bh_inventory found;
    char whole[48], divided[48];
    struct bh_err err;
    pid_t pid, idle;

    assert_int_equal(device->ops->scan(device->self, arena, &found, &err), BH_OK);
    memcpy(whole, found.gpus[0].uuid, sizeof whole);
    memcpy(divided, found.gpus[1].uuid, sizeof divided);
    BH_CHECK_EQ("nobody", busy_now(device, arena, whole, &samples), 0);
    idle = start_burn("0");
    pid = start_burn("1ms");
    for (uint32_t i = await_busy(device, arena, whole, &samples, pid); i-- > 0;) {
        BH_CHECK_EQ("the one that works", samples.items[i].pid, pid);
        BH_CHECK("a part", samples.items[i].percent >= 1 && samples.items[i].percent <= 100);
    }
    BH_CHECK_EQ("in MIG mode", device->ops->busy(device->self, divided, arena, &samples, &err),
                BH_UNAVAILABLE);
    BH_CHECK_EQ("no such GPU", device->ops->busy(device->self, "GPU-none", arena, &samples, &err),
                BH_NOT_FOUND);
    kill(pid, SIGKILL);
    kill(idle, SIGKILL);
    waitpid(pid, NULL, 0);
    waitpid(idle, NULL, 0);
}

static void
test_in_process(void **state)
{
    const struct bh_device_options options = { .library = library, .proc_root = "/proc" };
    struct bh_device device;
    struct bh_err err;

    assert_int_equal(bh_device_nvml_open(&options, &device, &err), BH_OK);
    check(&device);
    device.ops->close(device.self);
    BH_CHECK_DONE();
}

static void
test_child(void **state)
{
    char sim[128];
    const char *env[] = { sim, NULL };
    const struct bh_gpu_client_options options = {
        .program = gpu_program, .library = library, .proc_root = "/proc", .env = env
    };
    struct bh_gpu_client *client;
    struct bh_device device;

    snprintf(sim, sizeof sim, "BULKHEAD_SIM_STATE=%s", server_dir);
    client = bh_gpu_client_new(&options);
    device = bh_gpu_client_device(client);
    check(&device);
    bh_gpu_client_free(client);
    BH_CHECK_DONE();
}

static int
set_up(void **state)
{
    static const char topology[] = "node: 1x H100-80GB\nnode: 1x H100-80GB mig=on\n";
    struct bh_err err;
    char path[128];

    snprintf(server_dir, sizeof server_dir, "/tmp/bh-device-busy-XXXXXX");
    if (!mkdtemp(server_dir) || setenv("BULKHEAD_SIM_STATE", server_dir, 1) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/topology", server_dir);
    return bh_file_replace(path, topology, sizeof topology - 1, 0600, &err) == BH_OK ? 0 : -1;
}

static int
tear_down(void **state)
{
    const char *argv[] = { "/bin/rm", "-rf", server_dir, NULL };

    waitpid(run(argv), NULL, 0);
    return 0;
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_child, set_up, tear_down),
    };

    if (argc != 4)
        return 2;
    if (geteuid() != 0)
        return 77; /* the driver's privileged calls want root, as the vendor's do */
    library = argv[1];
    gpu_program = argv[2];
    burn = argv[3];
    snprintf(cuda, sizeof cuda, "%.*slibcuda.so.1", (int)(strrchr(library, '/') + 1 - library), library);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
