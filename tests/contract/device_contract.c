/* The contract of ports/device.h:
 *   device_contract BACK_END sim LIBRARY GPU_PROGRAM SIMLOAD  all, on simulated servers
 *   device_contract gpu-child sim-hang ...   a driver that never answers
 *   device_contract BACK_END real LIBRARY GPU_PROGRAM         what does not change a card
 * BACK_END is nvml (the library in this process) or gpu-child (through bulkhead-gpu). */
#include "ports/device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "device/nvml.h"
#include "node/gpu/gpu_client.h"

enum { ARENA = 4 << 20 };

static const char *library, *gpu_program, *simload;
static char server_dir[64], proc_root[80];

/* ---- back ends ---- */

struct fixture {
    struct bh_device device;
    struct bh_gpu_client *client; /* NULL: in this process */
    struct bh_arena *arena;
    struct bh_err err;
};

static void
open_in_process(struct fixture *f)
{
    struct bh_device_options options = { .library = library, .proc_root = proc_root };

    if (bh_device_nvml_open(&options, &f->device, &f->err) != BH_OK)
        fail_msg("%s", f->err.msg);
}

static void
open_child(struct fixture *f)
{
    char state[128];
    const char *env[] = { state, NULL };

    snprintf(state, sizeof state, "BULKHEAD_SIM_STATE=%s", server_dir);
    f->client = bh_gpu_client_new(&(struct bh_gpu_client_options){ .program = gpu_program,
                                                                   .library = library,
                                                                   .proc_root = proc_root,
                                                                   .env = env,
                                                                   .read_deadline = 3 * BH_NS_PER_S,
                                                                   .change_deadline = 3 * BH_NS_PER_S });
    f->device = bh_gpu_client_device(f->client);
}

static const struct back_end {
    const char *name;
    void (*open)(struct fixture *f);
} back_ends[] = {
    { "nvml", open_in_process },
    { "gpu-child", open_child },
};

static const struct back_end *back_end;

static struct fixture
device_open(void)
{
    struct fixture f = { .arena = bh_arena_new(ARENA) };

    back_end->open(&f);
    BH_CHECK_STR(back_end->name, f.device.ops->name, back_end->name);
    return f;
}

static void
device_close(struct fixture *f)
{
    f->device.ops->close(f->device.self);
    if (f->client)
        bh_gpu_client_free(f->client);
    bh_arena_free(f->arena);
}

static struct bh_inventory
scanned(struct fixture *f)
{
    struct bh_inventory inventory = { 0 };

    if (f->device.ops->scan(f->device.self, f->arena, &inventory, &f->err) != BH_OK)
        fail_msg("scan: %s", f->err.msg);
    return inventory;
}

static bh_rc
set_mig(struct fixture *f, const char *gpu, bool enabled)
{
    return f->device.ops->set_mig(f->device.self, gpu, enabled, &f->err);
}

static bh_rc
carve(struct fixture *f, const char *gpu, const char *profile, uint32_t start)
{
    struct bh_device_instance made;

    return f->device.ops->carve(f->device.self, gpu, profile, start, &made, &f->err);
}

static bh_rc
destroy(struct fixture *f, const char *gpu, uint32_t gi)
{
    return f->device.ops->destroy(f->device.self, gpu, gi, &f->err);
}

/* ---- a simulated server ---- */

static void
put_file(const char *name, const char *text)
{
    struct bh_err err;
    char path[256];

    snprintf(path, sizeof path, "%s/%s", server_dir, name);
    assert_int_equal(bh_file_replace(path, text, strlen(text), 0600, &err), BH_OK);
}

static int
run(const char *const *argv, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    int error;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    error = posix_spawn(ret_pid, argv[0], &files, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static struct fixture
server(const char *topology)
{
    snprintf(server_dir, sizeof server_dir, "/tmp/bh-device-contract-XXXXXX");
    assert_non_null(mkdtemp(server_dir));
    snprintf(proc_root, sizeof proc_root, "%s/proc", server_dir);
    assert_int_equal(setenv("BULKHEAD_SIM_STATE", server_dir, 1), 0);
    put_file("topology", topology);
    return device_open();
}

static void
server_end(struct fixture *f)
{
    const char *argv[] = { "/bin/rm", "-rf", server_dir, NULL };
    pid_t pid;

    device_close(f);
    assert_int_equal(run(argv, &pid), 0);
    waitpid(pid, NULL, 0);
    BH_CHECK_DONE();
}

#define TWO_H100 "node: 2x H100-80GB mig=on driver=580.159.03 seed=7\n"

/* ---- the contract ---- */

static void
test_scan(void **state)
{
    struct fixture f = server("node: 2x H100-80GB mig=on driver=580.159.03 seed=7\n"
                              "node: 1x A30-24GB\n");
    struct bh_inventory found = scanned(&f);

    BH_CHECK_STR("driver", found.driver, "580.159.03");
    assert_int_equal(found.gpu_count, 3);
    BH_CHECK_EQ("instances", found.instance_count, 0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct bh_device_gpu *gpu = &found.gpus[i];

        BH_CHECK_EQ("index", gpu->index, i);
        BH_CHECK_EQ("minor", gpu->minor, i);
        BH_CHECK_EQ("uuid", strncmp(gpu->uuid, "GPU-", 4), 0);
        BH_CHECK_EQ("uuid", strlen(gpu->uuid), 40);
        BH_CHECK_EQ("pci", strlen(gpu->pci), strlen("00000000:3B:00.0"));
        BH_CHECK("mig capable", gpu->mig_capable);
        BH_CHECK_EQ("mig", gpu->mig_enabled, i < 2);
        BH_CHECK("not lost", !gpu->lost);
        BH_CHECK_STR("product", gpu->product, i < 2 ? "NVIDIA H100 80GB HBM3" : "NVIDIA A30");
        BH_CHECK("memory", gpu->memory_mib > (i < 2 ? 80000 : 24000));
        BH_CHECK("temperature", gpu->temperature_c > 0 && gpu->temperature_c < 120);
        BH_CHECK("power", gpu->power_mw > 0);
        /* the driver measures no utilisation of a GPU in MIG mode */
        BH_CHECK_EQ("utilisation", gpu->utilisation, i < 2 ? 255 : 0);
    }
    BH_CHECK("names differ", strcmp(found.gpus[0].uuid, found.gpus[1].uuid) != 0);
    server_end(&f);
}

/* Every profile that tables/mig.tbl has of two models, at every start. */
static const struct {
    const char *model, *profile;
    uint32_t slices, units, starts, memory_mib;
} profiles[] = {
#define MIG_MODEL(...)
#define MIG_PROFILE(id, name, number, driver_id, slices, units, starts, most, mib, ...)                      \
    { #id, name, slices, units, starts, mib },
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
};

static void
check_carve(struct fixture *f, const struct bh_device_gpu *gpu, size_t row, uint32_t start)
{
    const char *name = profiles[row].profile;
    struct bh_device_instance made = { 0 };
    struct bh_inventory found;
    bh_rc rc = f->device.ops->carve(f->device.self, gpu->uuid, name, start, &made, &f->err);

    if (rc != BH_OK)
        fail_msg("%s at %u: %s", name, start, f->err.msg);
    BH_CHECK_STR(name, made.gpu, gpu->uuid);
    BH_CHECK_STR(name, made.profile, name);
    BH_CHECK_EQ(name, made.start, start);
    BH_CHECK_EQ(name, made.size, profiles[row].units);
    BH_CHECK_EQ(name, made.memory_mib, profiles[row].memory_mib);
    BH_CHECK_EQ(name, strncmp(made.uuid, "MIG-", 4), 0);
    BH_CHECK_EQ(name, made.ci, 0);
    BH_CHECK_EQ(name, made.gi_minor, 3 + 135 * gpu->minor + 9 * made.gi);
    BH_CHECK_EQ(name, made.ci_minor, made.gi_minor + 1);
    found = scanned(f);
    BH_CHECK_EQ(name, found.instance_count, 1);
    if (found.instance_count == 1) {
        found.instances[0].activity = made.activity; /* sampled since */
        BH_CHECK_EQ("as scanned", memcmp(&found.instances[0], &made, sizeof made), 0);
    }
    BH_CHECK_EQ(name, destroy(f, gpu->uuid, made.gi), BH_OK);
    BH_CHECK_EQ(name, scanned(f).instance_count, 0);
    bh_arena_reset(f->arena);
}

static void
test_carve_all(void **state)
{
    struct fixture f = server("node: 1x H100-80GB mig=on\nnode: 1x A30-24GB mig=on\n");
    struct bh_device_gpu gpus[2];

    memcpy(gpus, scanned(&f).gpus, sizeof gpus);
    for (size_t row = 0; row < BH_COUNT(profiles); row++) {
        bool h100 = strcmp(profiles[row].model, "H100_80GB") == 0;

        if (!h100 && strcmp(profiles[row].model, "A30_24GB") != 0)
            continue;
        for (uint32_t start = 0; start < 8; start++)
            if (profiles[row].starts & 1u << start)
                check_carve(&f, &gpus[h100 ? 0 : 1], row, start);
    }
    server_end(&f);
}

static void
test_refusals(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_inventory found = scanned(&f);
    const char *first = found.gpus[0].uuid, *second = found.gpus[1].uuid;
    const struct {
        const char *name, *gpu, *profile;
        uint32_t start;
        bh_rc rc;
    } cases[] = {
        { "fits", first, "3g.40gb", 0, BH_OK },
        { "same place", first, "3g.40gb", 0, BH_FULL },
        { "within it", first, "1g.10gb", 3, BH_FULL },
        { "beside it", first, "1g.10gb", 4, BH_OK },
        { "illegal start", first, "2g.20gb", 1, BH_INVALID },
        { "past the end", first, "1g.10gb", 7, BH_INVALID },
        { "no such profile", first, "9g.90gb", 0, BH_INVALID },
        { "whole", first, "whole", 0, BH_INVALID },
        { "empty name", first, "", 0, BH_INVALID },
        { "MIG is off", second, "1g.10gb", 0, BH_CONFLICT },
        { "no such GPU", "GPU-11111111-2222-3333-4444-555555555555", "1g.10gb", 0, BH_NOT_FOUND },
        { "not a GPU", "MIG-1", "1g.10gb", 0, BH_NOT_FOUND },
    };

    BH_CHECK_EQ("off", set_mig(&f, second, false), BH_OK);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, carve(&f, cases[i].gpu, cases[i].profile, cases[i].start), cases[i].rc);
    BH_CHECK_STR("named", f.err.msg, "MIG-1: not found");
    BH_CHECK_EQ("destroy unknown", destroy(&f, first, 14), BH_NOT_FOUND);
    BH_CHECK_EQ("destroy on unknown", destroy(&f, "GPU-1", 1), BH_NOT_FOUND);
    BH_CHECK_EQ("off with instances", set_mig(&f, first, false), BH_CONFLICT);
    BH_CHECK_STR("what to do", f.err.hint, "destroy its MIG instances first");
    BH_CHECK_EQ("mode of unknown", set_mig(&f, "GPU-1", true), BH_NOT_FOUND);
    BH_CHECK_EQ("two stand", scanned(&f).instance_count, 2);
    server_end(&f);
}

static void
test_set_mig(void **state)
{
    struct fixture f = server("node: 1x H100-80GB mig=off\nnode: 1x A30-24GB unbind=on\n"
                              "node: 1x A30-24GB unbind=off\n");
    struct bh_inventory found = scanned(&f);

    for (uint32_t i = 0; i < 2; i++) {
        BH_CHECK_EQ("on", set_mig(&f, found.gpus[i].uuid, true), BH_OK);
        BH_CHECK_EQ("still on", set_mig(&f, found.gpus[i].uuid, true), BH_OK);
        BH_CHECK("seen", scanned(&f).gpus[i].mig_enabled);
        BH_CHECK_EQ("off", set_mig(&f, found.gpus[i].uuid, false), BH_OK);
        BH_CHECK("seen", !scanned(&f).gpus[i].mig_enabled);
    }
    BH_CHECK_EQ("needs a reset", set_mig(&f, found.gpus[2].uuid, true), BH_CONFLICT);
    BH_CHECK("the hint says so", strstr(f.err.hint, "reset") != NULL);
    BH_CHECK_EQ("the number is kept", f.err.sys_kind, BH_SYS_NVML);
    BH_CHECK("not changed", !scanned(&f).gpus[2].mig_enabled);
    server_end(&f);
}

/* A compute instance that cannot be made takes its GPU instance along; one that cannot be undone is reported,
 * seen by scan, and can be destroyed later. */
static void
test_half_made(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_inventory found = scanned(&f);
    const char *gpu = found.gpus[0].uuid;

    put_file("control", "nvmlGpuInstanceCreateComputeInstance fail=INSUFFICIENT_RESOURCES\n");
    BH_CHECK_EQ("no CI", carve(&f, gpu, "2g.20gb", 0), BH_FULL);
    BH_CHECK_EQ("undone", scanned(&f).instance_count, 0);
    put_file("control", "nvmlComputeInstanceGetInfo_v2 fail=UNKNOWN\n");
    BH_CHECK_EQ("not read back", carve(&f, gpu, "2g.20gb", 0), BH_IO);
    put_file("control", "\n");
    BH_CHECK_EQ("undone", scanned(&f).instance_count, 0);
    put_file("control", "nvmlGpuInstanceCreateComputeInstance fail=UNKNOWN\n"
                        "nvmlGpuInstanceDestroy fail=UNKNOWN\n");
    BH_CHECK_EQ("left behind", carve(&f, gpu, "2g.20gb", 0), BH_UNCERTAIN);
    put_file("control", "\n");
    found = scanned(&f);
    assert_int_equal(found.instance_count, 1);
    BH_CHECK_STR("no uuid", found.instances[0].uuid, "");
    BH_CHECK_EQ("no CI", found.instances[0].ci, UINT32_MAX);
    BH_CHECK_STR("profile", found.instances[0].profile, "2g.20gb");
    BH_CHECK_EQ("destroyed", destroy(&f, gpu, found.instances[0].gi), BH_OK);
    BH_CHECK_EQ("clean", scanned(&f).instance_count, 0);
    server_end(&f);
}

/* An instance in use: its users are listed, and named in the refusal to destroy it. */
static void
test_in_use(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_device_instance made;
    struct bh_device_process *users = NULL;
    struct bh_inventory found = scanned(&f);
    const char *gpu = found.gpus[0].uuid;
    char view[32], name[64];
    const char *argv[] = { simload, "--mib", "100", "--seconds", "60", "--busy", "1", "--view", view, NULL };
    uint32_t count = 0;
    pid_t pid;

    assert_int_equal(f.device.ops->carve(f.device.self, gpu, "1g.10gb", 0, &made, &f.err), BH_OK);
    snprintf(view, sizeof view, "%u-%u", found.gpus[0].minor, made.gi);
    assert_int_equal(run(argv, &pid), 0);
    for (int turn = 0; turn < 2000 && count == 0; turn++) {
        bh_time_sleep(5 * BH_NS_PER_MS);
        assert_int_equal(f.device.ops->processes(f.device.self, gpu, f.arena, &users, &count, &f.err), BH_OK);
    }
    assert_int_equal(count, 1);
    BH_CHECK_EQ("pid", users[0].pid, pid);
    BH_CHECK_EQ("gi", users[0].gi, made.gi);
    BH_CHECK_EQ("ci", users[0].ci, made.ci);
    BH_CHECK_EQ("memory", users[0].memory_mib, 100);
    snprintf(name, sizeof name, "bulkhead-simloa %d: kill %d", (int)pid, (int)pid);
    BH_CHECK_EQ("in use", destroy(&f, gpu, made.gi), BH_CONFLICT);
    BH_CHECK_STR("by whom", f.err.hint, name);
    found = scanned(&f);
    found.instances[0].activity = made.activity;
    found.instances[0].memory_used_mib = made.memory_used_mib;
    BH_CHECK_EQ("intact", memcmp(&found.instances[0], &made, sizeof made), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    BH_CHECK_EQ("free", destroy(&f, gpu, made.gi), BH_OK);
    BH_CHECK_EQ("nobody", f.device.ops->processes(f.device.self, gpu, f.arena, &users, &count, &f.err),
                BH_OK);
    BH_CHECK_EQ("nobody", count, 0);
    server_end(&f);
}

/* How busy a GPU and an instance were between two scans; what stands there next begins anew. */
static void
test_activity(void **state)
{
    struct fixture f = server("node: 1x H100-80GB mig=on driver=580.159.03 seed=7\n"
                              "node: 1x A100-40GB\n");
    struct bh_inventory found = scanned(&f);
    struct bh_device_instance made;
    char view[32];
    const char *argv[] = { simload, "--mib", "1", "--seconds", "60", "--busy", "80", "--view", view, NULL };
    pid_t pid;

    BH_CHECK_EQ("one sample tells nothing", found.gpus[0].activity.busy_bp, BH_DEVICE_UNKNOWN);
    assert_int_equal(f.device.ops->carve(f.device.self, found.gpus[0].uuid, "1g.10gb", 0, &made, &f.err),
                     BH_OK);
    snprintf(view, sizeof view, "%u-%u", found.gpus[0].minor, made.gi);
    assert_int_equal(run(argv, &pid), 0);
    for (int turn = 0; turn < 400; turn++) {
        bh_arena_reset(f.arena);
        found = scanned(&f);
        if (found.instances[0].activity.busy_bp - 1 < 10000)
            break;
        bh_time_sleep(20 * BH_NS_PER_MS);
    }
    BH_CHECK("the instance", found.instances[0].activity.busy_bp - 1 < 10000);
    BH_CHECK("its tensor pipes", found.instances[0].activity.tensor_bp <= 2500);
    BH_CHECK("its memory", found.instances[0].memory_used_mib - 1 < 8);
    BH_CHECK("its GPU", found.gpus[0].activity.busy_bp <= 10000);
    BH_CHECK_EQ("before Hopper", found.gpus[1].activity.busy_bp, BH_DEVICE_UNKNOWN);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    BH_CHECK_EQ("destroyed", destroy(&f, found.gpus[0].uuid, found.instances[0].gi), BH_OK);
    BH_CHECK_EQ("another", carve(&f, found.gpus[0].uuid, "1g.10gb", 0), BH_OK);
    BH_CHECK_EQ("begins anew", scanned(&f).instances[0].activity.busy_bp, BH_DEVICE_UNKNOWN);
    server_end(&f);
}

/* What the driver gives is there, 0 included, and what it does not is unknown, never 0: in MIG mode the use
 * of the whole GPU, and rows while instances are on it. */
static void
test_sensors(void **state)
{
    struct fixture f = server("node: 1x H100-80GB mig=on driver=580.159.03 seed=7\n"
                              "node: 1x A100-40GB\n");
    struct bh_inventory found = scanned(&f);
    struct bh_device_sensors whole = { .gpu = "" }, divided = { .gpu = "" };

    assert_int_equal(carve(&f, found.gpus[0].uuid, "1g.10gb", 0), BH_OK);
    BH_CHECK_EQ("MIG", f.device.ops->sensors(f.device.self, found.gpus[0].uuid, &divided, &f.err), BH_OK);
    BH_CHECK_EQ("whole", f.device.ops->sensors(f.device.self, found.gpus[1].uuid, &whole, &f.err), BH_OK);
    BH_CHECK_EQ("SM clock at rest", whole.sm_clock_mhz, 345);
    BH_CHECK_EQ("memory clock", whole.memory_clock_mhz, 2619);
    BH_CHECK("memory temperature", whole.memory_temperature_c >= 38 && whole.memory_temperature_c < 90);
    BH_CHECK_EQ("use", whole.memory_percent + whole.encoder_percent + whole.decoder_percent, 0);
    BH_CHECK_EQ("reserved, licensed, no rows", whole.reserved_mib + whole.vgpu_licensed + whole.remap_failed,
                0);
    BH_CHECK_EQ("rows", whole.remapped_uncorrectable + whole.remapped_correctable, 0);
    BH_CHECK_EQ("PCIe", whole.pcie_replays + whole.pcie_transmit_bytes_s + whole.pcie_receive_bytes_s, 0);
    BH_CHECK("NVLink, energy", whole.nvlink_kib == 0 && whole.energy_mj < BH_DEVICE_UNKNOWN_64);
    BH_CHECK_EQ("in MIG mode", divided.memory_percent & divided.remap_failed, BH_DEVICE_UNKNOWN);
    BH_CHECK_EQ("no such GPU", f.device.ops->sensors(f.device.self, "GPU-none", &whole, &f.err),
                BH_NOT_FOUND);
    server_end(&f);
}

/* A GPU that fell off the bus is an entry in the inventory, not the end of it. */
static void
test_lost(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_inventory found = scanned(&f);
    struct bh_device_gpu first = found.gpus[0];

    put_file("control", "gpu=0 lost\n");
    found = scanned(&f);
    assert_int_equal(found.gpu_count, 2);
    BH_CHECK("lost", found.gpus[0].lost);
    BH_CHECK_STR("its name stays", found.gpus[0].uuid, first.uuid);
    BH_CHECK("the other is well", !found.gpus[1].lost);
    BH_CHECK("no carving", carve(&f, first.uuid, "1g.10gb", 0) == BH_NOT_FOUND);
    BH_CHECK_EQ("the other carves", carve(&f, found.gpus[1].uuid, "1g.10gb", 0), BH_OK);
    put_file("control", "\n");
    BH_CHECK("back", !scanned(&f).gpus[0].lost);
    server_end(&f);
}

static void
test_events(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_inventory found = scanned(&f);
    struct bh_device_event event = { 0 };
    bh_rc rc = BH_TIMEOUT;

    BH_CHECK_EQ("none", f.device.ops->next_event(f.device.self, 0, &event, &f.err), BH_TIMEOUT);
    /* a child registers when it has started: repeat the event until it is seen */
    for (int turn = 0; turn < 50 && rc == BH_TIMEOUT; turn++) {
        char text[64];

        snprintf(text, sizeof text, "gpu=1 xid=79 id=%d\n", turn);
        put_file("control", text);
        (void)scanned(&f); /* any call of a privileged process lets it happen */
        rc = f.device.ops->next_event(f.device.self, 100 * BH_NS_PER_MS, &event, &f.err);
    }
    BH_CHECK_EQ("came", rc, BH_OK);
    BH_CHECK_STR("gpu", event.gpu, found.gpus[1].uuid);
    BH_CHECK_EQ("xid", event.xid, 79);
    BH_CHECK_EQ("whole GPU", event.gi, UINT32_MAX);
    server_end(&f);
}

/* The kernel module's file has the last word about a minor. */
static void
test_minors(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_inventory found = scanned(&f);
    struct bh_device_instance made;
    char path[256];

    assert_int_equal(f.device.ops->carve(f.device.self, found.gpus[0].uuid, "1g.10gb", 0, &made, &f.err),
                     BH_OK);
    snprintf(path, sizeof path, "proc/driver/nvidia/capabilities/gpu0/mig/gi%u/access", made.gi);
    put_file(path, "DeviceFileMinor: 777\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
    BH_CHECK_EQ("from the file", scanned(&f).instances[0].gi_minor, 777);
    BH_CHECK_EQ("its own file", scanned(&f).instances[0].ci_minor, made.ci_minor);
    put_file(path, "nonsense\n");
    BH_CHECK_EQ("by the formula", scanned(&f).instances[0].gi_minor, made.gi_minor);
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/capabilities/gpu0/mig/gi%u/access", server_dir,
             made.gi);
    assert_int_equal(unlink(path), 0);
    BH_CHECK_EQ("without a file", scanned(&f).instances[0].gi_minor, made.gi_minor);
    server_end(&f);
}

static void
test_no_driver(void **state)
{
    struct bh_device device;
    struct bh_err err = { 0 };

    BH_CHECK_EQ(
        "no library",
        bh_device_nvml_open(&(struct bh_device_options){ .library = "/nonexistent/libnvidia-ml.so.1" },
                            &device, &err),
        BH_UNAVAILABLE);
    BH_CHECK("named", strstr(err.msg, "/nonexistent/libnvidia-ml.so.1") != NULL);
    setenv("BULKHEAD_SIM_STATE", "/nonexistent", 1);
    BH_CHECK_EQ("no driver",
                bh_device_nvml_open(&(struct bh_device_options){ .library = library }, &device, &err),
                BH_UNAVAILABLE);
    BH_CHECK_EQ("NVML's number", err.sys_kind, BH_SYS_NVML);
    BH_CHECK_DONE();
}

/* A driver call that never returns costs the child that made it, nothing else. */
static const struct {
    const char *name, *function;
    bool carves;
} hangs[] = {
    { "scan", "nvmlDeviceGetMemoryInfo_v2", false },
    { "carve", "nvmlDeviceCreateGpuInstanceWithPlacement", true },
    { "read back", "nvmlComputeInstanceGetInfo_v2", true },
};

static void
test_hangs(void **state)
{
    struct fixture f = server(TWO_H100);
    struct bh_device_gpu first = scanned(&f).gpus[0];

    for (size_t i = 0; i < BH_COUNT(hangs); i++) {
        struct bh_inventory inventory;
        char rule[96];
        bh_ns before = bh_time_monotonic(), span;

        snprintf(rule, sizeof rule, "%s gpu=0 hang count=1\n", hangs[i].function);
        put_file("control", rule);
        BH_CHECK_EQ(hangs[i].name,
                    hangs[i].carves ? carve(&f, first.uuid, "1g.10gb", (uint32_t)i)
                                    : f.device.ops->scan(f.device.self, f.arena, &inventory, &f.err),
                    BH_UNCERTAIN);
        span = bh_time_monotonic() - before;
        BH_CHECK("the deadline held", span < 4 * BH_NS_PER_S);
        put_file("control", "\n");
        BH_CHECK_EQ("the next scan works", scanned(&f).gpu_count, 2);
    }
    BH_CHECK_EQ("the truth", scanned(&f).instance_count, 1);
    server_end(&f);
}

/* The one child of a process; 0: none yet. */
static pid_t
child_of(pid_t parent)
{
    struct bh_err err;
    struct bh_buf out;
    char path[64], text[64];

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    bh_buf_init_fixed(&out, text, sizeof text);
    if (bh_file_read(path, sizeof text - 1, &out, &err) != BH_OK || !bh_buf_text(&out))
        return 0;
    return (pid_t)strtol(text, NULL, 10);
}

static bool
alive(pid_t pid)
{
    struct bh_err err;
    struct bh_buf out;
    char path[64], text[512];
    const char *state;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    bh_buf_init_fixed(&out, text, sizeof text);
    if (bh_file_read(path, sizeof text - 1, &out, &err) != BH_OK || !bh_buf_text(&out))
        return false;
    state = strrchr(text, ')');
    return state && strncmp(state, ") Z", 3) != 0;
}

/* A node that is killed takes its gpu children along, also one that hangs. */
static void
test_node_dies(void **state)
{
    struct fixture f = server(TWO_H100);
    pid_t node, child = 0;

    put_file("control", "nvmlDeviceGetMemoryInfo_v2 gpu=0 hang\n");
    node = fork();
    assert_true(node >= 0);
    if (node == 0) {
        struct fixture own = device_open();
        struct bh_inventory inventory;

        (void)!own.device.ops->scan(own.device.self, own.arena, &inventory, &own.err);
        _exit(0);
    }
    for (int turn = 0; turn < 2000 && child == 0; turn++) {
        bh_time_sleep(5 * BH_NS_PER_MS);
        child = child_of(node);
    }
    assert_true(child > 0);
    bh_time_sleep(300 * BH_NS_PER_MS); /* into the driver call */
    BH_CHECK("it runs", alive(child));
    kill(node, SIGKILL);
    waitpid(node, NULL, 0);
    for (int turn = 0; turn < 2000 && alive(child); turn++)
        bh_time_sleep(5 * BH_NS_PER_MS);
    BH_CHECK("it went along", !alive(child));
    server_end(&f);
}

/* ---- on a real card: nothing that changes it ---- */

static void
test_real_scan(void **state)
{
    struct fixture f = device_open();
    struct bh_inventory found = scanned(&f), again = scanned(&f);

    BH_CHECK("driver", found.driver[0] >= '1' && found.driver[0] <= '9');
    BH_CHECK("a GPU", found.gpu_count >= 1);
    BH_CHECK_EQ("same count", again.gpu_count, found.gpu_count);
    BH_CHECK_EQ("same instances", again.instance_count, found.instance_count);
    for (uint32_t i = 0; i < found.gpu_count && i < again.gpu_count; i++) {
        const struct bh_device_gpu *gpu = &found.gpus[i];

        printf("# %s %s %s minor %u, %u MiB (%llu used), %u C, %u mW, %u %%, MIG %s, ECC %llu\n", gpu->uuid,
               gpu->pci, gpu->product, gpu->minor, gpu->memory_mib, (unsigned long long)gpu->memory_used_mib,
               gpu->temperature_c, gpu->power_mw, gpu->utilisation,
               !gpu->mig_capable  ? "no"
               : gpu->mig_enabled ? "on"
                                  : "off",
               (unsigned long long)gpu->ecc_uncorrected);
        BH_CHECK_EQ("uuid", strncmp(gpu->uuid, "GPU-", 4), 0);
        BH_CHECK_STR("the same again", again.gpus[i].uuid, gpu->uuid);
        BH_CHECK("pci", strlen(gpu->pci) >= 12);
        BH_CHECK("product", gpu->product[0] != '\0');
        BH_CHECK("memory", gpu->memory_mib > 1000 && gpu->memory_used_mib <= gpu->memory_mib);
        BH_CHECK("temperature", gpu->temperature_c > 0 && gpu->temperature_c < 120);
        BH_CHECK("utilisation", gpu->utilisation <= 100 || gpu->utilisation == 255);
        BH_CHECK_EQ("activity of one sample", gpu->activity.busy_bp, BH_DEVICE_UNKNOWN);
    }
    for (uint32_t i = 0; i < found.instance_count; i++)
        printf("# %s %s on %s at %u:%u gi %u ci %u\n", found.instances[i].uuid, found.instances[i].profile,
               found.instances[i].gpu, found.instances[i].start, found.instances[i].size,
               found.instances[i].gi, found.instances[i].ci);
    device_close(&f);
    BH_CHECK_DONE();
}

/* GPM's numbers, where the board has them: Hopper and newer. */
static void
test_real_activity(void **state)
{
    struct fixture f = device_open();
    struct bh_inventory found = scanned(&f);
    struct bh_device_sensors read = { .gpu = "" };

    bh_time_sleep(BH_NS_PER_S);
    found = scanned(&f);
    for (uint32_t i = 0; i < found.gpu_count; i++) {
        const struct bh_device_activity *activity = &found.gpus[i].activity;
        const uint32_t parts[] = { activity->busy_bp, activity->sm_bp, activity->tensor_bp,
                                   activity->dram_bp };

        printf("# %s activity of 10000: busy %d, SM %d, tensor %d, DRAM %d\n", found.gpus[i].uuid,
               (int)parts[0], (int)parts[1], (int)parts[2], (int)parts[3]);
        for (size_t n = 0; n < BH_COUNT(parts); n++)
            BH_CHECK("a part, or unknown", parts[n] <= 10000 || parts[n] == BH_DEVICE_UNKNOWN);
        BH_CHECK("Hopper has it", !strstr(found.gpus[i].product, " H") || parts[0] != BH_DEVICE_UNKNOWN);
        BH_CHECK_EQ("sensors", f.device.ops->sensors(f.device.self, found.gpus[i].uuid, &read, &f.err),
                    BH_OK);
        printf("# %u MHz, energy %" PRIu64 " mJ, PCIe %" PRIu64 " B/s, license %d\n", read.sm_clock_mhz,
               read.energy_mj, read.pcie_transmit_bytes_s, (int)read.vgpu_licensed);
    }
    device_close(&f);
    BH_CHECK_DONE();
}

static void
test_real_reads(void **state)
{
    struct fixture f = device_open();
    struct bh_inventory found = scanned(&f);
    struct bh_device_process *users;
    struct bh_device_samples samples = { .since_us = 0 };
    struct bh_device_event event;
    uint32_t count, percent;
    bh_rc rc;

    for (uint32_t i = 0; i < found.gpu_count; i++)
        BH_CHECK_EQ(
            "processes",
            f.device.ops->processes(f.device.self, found.gpus[i].uuid, f.arena, &users, &count, &f.err),
            BH_OK);
    for (uint32_t i = 0; i < found.gpu_count; i++) {
        rc = f.device.ops->busy(f.device.self, found.gpus[i].uuid, f.arena, &samples, &f.err);
        BH_CHECK("who keeps it busy, or no samples",
                 rc == BH_OK || (rc == BH_UNAVAILABLE && found.gpus[i].mig_enabled));
        percent = 0;
        for (uint32_t k = 0; rc == BH_OK && k < samples.count; k++)
            percent += samples.items[k].percent;
        /* each sample counts for one process: the node judges by that */
        BH_CHECK("parts of one whole", rc != BH_OK || percent <= 100 + samples.count);
    }
    BH_CHECK_EQ("no such GPU",
                f.device.ops->processes(f.device.self, "GPU-11111111-2222-3333-4444-555555555555", f.arena,
                                        &users, &count, &f.err),
                BH_NOT_FOUND);
    rc = f.device.ops->next_event(f.device.self, 10 * BH_NS_PER_MS, &event, &f.err);
    BH_CHECK("no event, or none supported", rc == BH_TIMEOUT || rc == BH_UNAVAILABLE);
    device_close(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest sim_tests[] = {
    cmocka_unit_test(test_scan),      cmocka_unit_test(test_carve_all), cmocka_unit_test(test_refusals),
    cmocka_unit_test(test_set_mig),   cmocka_unit_test(test_half_made), cmocka_unit_test(test_in_use),
    cmocka_unit_test(test_lost),      cmocka_unit_test(test_events),    cmocka_unit_test(test_minors),
    cmocka_unit_test(test_no_driver), cmocka_unit_test(test_activity),  cmocka_unit_test(test_sensors),
};

/* Only where a child is what hangs. */
static const struct CMUnitTest hang_tests[] = {
    cmocka_unit_test(test_hangs),
    cmocka_unit_test(test_node_dies),
};

static const struct CMUnitTest real_tests[] = {
    cmocka_unit_test(test_real_scan),
    cmocka_unit_test(test_real_activity),
    cmocka_unit_test(test_real_reads),
};

int
main(int argc, char **argv)
{
    bool hang = argc == 6 && strcmp(argv[2], "sim-hang") == 0;
    bool sim = hang || (argc == 6 && strcmp(argv[2], "sim") == 0);

    for (size_t i = 0; argc > 1 && i < BH_COUNT(back_ends); i++)
        if (strcmp(back_ends[i].name, argv[1]) == 0)
            back_end = &back_ends[i];
    if (!back_end || (!sim && (argc != 5 || strcmp(argv[2], "real") != 0))) {
        fputs("usage: device_contract BACK_END sim LIBRARY GPU_PROGRAM SIMLOAD\n"
              "       device_contract BACK_END real LIBRARY GPU_PROGRAM\n",
              stderr);
        return 2;
    }
    if (sim && geteuid() != 0)
        return 77; /* the driver's privileged calls want root, as the vendor's do */
    library = argv[3];
    gpu_program = argv[4];
    simload = argv[argc - 1];
    snprintf(proc_root, sizeof proc_root, "/proc");
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (hang)
        return cmocka_run_group_tests(hang_tests, NULL, NULL);
    return sim ? cmocka_run_group_tests(sim_tests, NULL, NULL)
               : cmocka_run_group_tests(real_tests, NULL, NULL);
}
