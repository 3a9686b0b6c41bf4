/* Processes that share one state, and die while they change it. */
#include "sim/nvml/sim_test.h"

#include <dirent.h>
#include <signal.h>
#include <time.h>

#include "sim/machine/control.h"
#include "sim/machine/store.h"

#define KILLS 100u

static void
test_two_processes(void **unused)
{
    nvmlGpuInstance_t gi;
    unsigned left = 0;
    int status;
    pid_t pid;

    server_start("node: 1x H100-80GB mig=on\n");
    pid = fork_child();
    if (pid == 0) /* a handle of the parent's is no handle of another program's: take a new one */
        _exit(nvmlInit_v2() == NVML_SUCCESS && nvmlDeviceCreateGpuInstance(gpu_at(0), 14, &gi) == NVML_SUCCESS
                  ? 0
                  : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    BH_CHECK_EQ("child", status, 0);
    BH_CHECK_EQ("its instance is ours", nvmlDeviceGetGpuInstanceById(gpu_at(0), 5, &gi), NVML_SUCCESS);
    BH_CHECK_EQ("left", nvmlDeviceGetGpuInstanceRemainingCapacity(gpu_at(0), 14, &left), NVML_SUCCESS);
    BH_CHECK_EQ("left", left, 2);
    server_free();
    BH_CHECK_DONE();
}

static void
churn(void)
{
    struct pair pair = { 19, 2, 1, 0, NULL, NULL };

    if (nvmlInit_v2() != NVML_SUCCESS)
        _exit(1);
    for (;;) {
        if (create_pair(gpu_at(0), &pair) == NVML_SUCCESS)
            nvmlComputeInstanceDestroy(pair.ci);
        if (nvmlDeviceGetGpuInstanceById(gpu_at(0), 9, &pair.gi) == NVML_SUCCESS) {
            if (nvmlGpuInstanceGetComputeInstanceById(pair.gi, 0, &pair.ci) == NVML_SUCCESS)
                nvmlComputeInstanceDestroy(pair.ci);
            nvmlGpuInstanceDestroy(pair.gi);
        }
    }
}

static unsigned
count_entries(const char *name)
{
    char path[SIM_PATH_MAX];
    DIR *folder = sim_path(path, "%s/%s", server_dir, name) ? opendir(path) : NULL;
    const struct dirent *entry;
    unsigned count = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Folders of views that show something; those of places where nothing stands are empty. */
static unsigned
count_views(void)
{
    char path[SIM_PATH_MAX];
    DIR *folder = sim_path(path, "%s/view", server_dir) ? opendir(path) : NULL;
    const struct dirent *entry;
    unsigned count = 0;

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        count +=
            entry->d_name[0] != '.' && sim_path(path, "view/%s", entry->d_name) && count_entries(path) > 0;
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* After a kill: the next change works, and the files agree with the state. */
static void
check_usable(void)
{
    struct pair pair = { 9, 4, 4, 2, NULL, NULL };
    unsigned left = 0, instances;

    BH_CHECK_EQ("create", create_pair(gpu_at(0), &pair), NVML_SUCCESS);
    BH_CHECK_EQ("left", nvmlDeviceGetGpuInstanceRemainingCapacity(gpu_at(0), 19, &left), NVML_SUCCESS);
    instances = 1 + (4 - left); /* the 3g leaves four starts; the dead process held the rest */
    BH_CHECK_EQ("views", count_views(), instances);
    BH_CHECK_EQ("capabilities", count_entries("proc/driver/nvidia/capabilities/gpu0/mig"), instances);
    BH_CHECK_EQ("destroy", nvmlComputeInstanceDestroy(pair.ci), NVML_SUCCESS);
    BH_CHECK_EQ("destroy", nvmlGpuInstanceDestroy(pair.gi), NVML_SUCCESS);
}

static void
test_kills(void **unused)
{
    struct sim_store *store = NULL;
    unsigned random = 1, unfinished = 0;

    server_start("node: 1x H100-80GB mig=on\n");
    assert_int_equal(sim_store_open(server_dir, &store), NVML_SUCCESS);
    for (unsigned round = 0; round < KILLS && bh_test_failures == 0; round++) {
        pid_t pid = fork_child();

        if (pid == 0)
            churn();
        random = random * 1103515245u + 12345u;
        usleep(2000 + (random >> 16) % 8000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        unfinished += sim_store_published(store) != sim_store_generation(store);
        check_usable();
    }
    print_message("# %u of %u kills left files to be put right\n", unfinished, KILLS);
    sim_store_close(store);
    server_free();
    BH_CHECK_DONE();
}

static uint64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A process that stands still with the lock, its draft half written, holds up
 * no reader; and when it is killed, no writer. */
static void
test_lock_holder(void **unused)
{
    struct sim_store *store = NULL;
    struct sim_state *draft;
    nvmlMemory_t memory;
    nvmlGpuInstance_t gi;
    unsigned current, pending;
    char byte;
    int ready[2];
    uint64_t start;
    pid_t pid;

    server_start("node: 1x H100-80GB mig=on\n");
    assert_int_equal(pipe(ready), 0);
    pid = fork_child();
    if (pid == 0) {
        if (sim_store_open(server_dir, &store) != NVML_SUCCESS
            || sim_store_begin(store, &draft) != NVML_SUCCESS)
            _exit(1);
        memset(draft, 0xff, sizeof(*draft));
        if (write(ready[1], "r", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    start = now_ms();
    BH_CHECK_EQ("mode", nvmlDeviceGetMigMode(gpu_at(0), &current, &pending), NVML_SUCCESS);
    BH_CHECK_EQ("mode", current, 1);
    BH_CHECK_EQ("memory", nvmlDeviceGetMemoryInfo(gpu_at(0), &memory), NVML_SUCCESS);
    BH_CHECK("not after the 30 s that one waits for the lock", now_ms() - start < 25000);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    BH_CHECK_EQ("writer", nvmlDeviceCreateGpuInstance(gpu_at(0), 0, &gi), NVML_SUCCESS);
    server_free();
    BH_CHECK_DONE();
}

/* Until the process waits for something. */
static void
await_asleep(pid_t pid)
{
    char path[64], state = '\0';

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    for (uint64_t until = now_ms() + 30000; state != 'S' && now_ms() < until; usleep(1000)) {
        FILE *file = fopen(path, "re");

        if (file == NULL || fscanf(file, "%*d %*s %c", &state) != 1)
            state = '\0';
        if (file != NULL)
            fclose(file);
    }
    BH_CHECK_EQ("waits", state, 'S');
}

/* One that takes up the control file before another writes it anew, and waits then for its change,
 * undoes nothing of it: what happens once has happened. */
static void
test_older_rules(void **unused)
{
    static const char older[] = "gpu=0 xid=13\n", newer[] = "gpu=0 xid=13\ngpu=0 xid=43\n";
    struct sim_store *store = NULL;
    struct sim_state *draft;
    struct sim_rules rules;
    nvmlEventData_t event;
    nvmlEventSet_t set;
    unsigned count, seen = 0;
    int status;
    pid_t pid;

    server_start("node: 1x H100-80GB\n");
    assert_int_equal(nvmlEventSetCreate(&set), NVML_SUCCESS);
    assert_int_equal(nvmlDeviceRegisterEvents(gpu_at(0), nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
    assert_int_equal(sim_store_open(server_dir, &store), NVML_SUCCESS);
    assert_int_equal(sim_store_begin(store, &draft), NVML_SUCCESS);
    server_control(older);
    pid = fork_child();
    if (pid == 0) /* once with the file as it reads it first, once with what there is then */
        _exit(nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS || nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS);
    await_asleep(pid);
    server_control(newer);
    sim_control_parse(newer, &rules);
    BH_CHECK("changes", sim_control_apply(&rules, draft));
    sim_store_commit(store);
    sim_store_end(store);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    BH_CHECK_EQ("child", status, 0);
    while (nvmlEventSetWait_v2(set, &event, 0) == NVML_SUCCESS)
        seen++;
    BH_CHECK_EQ("each once", seen, 2);
    sim_store_close(store);
    server_free();
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_lock_holder),
        cmocka_unit_test(test_older_rules),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root: privileged calls cannot be tested");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
