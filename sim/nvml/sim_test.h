#ifndef BH_SIM_NVML_SIM_TEST_H
#define BH_SIM_NVML_SIM_TEST_H

/* A private simulated server for one test.  Tests only. */

#include "base/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bulkhead/nvml_abi.h"
#include "sim/machine/files.h"
#include "sim/machine/sim.h"

static char server_dir[64];

/* Make a state directory with this topology, and point the library at it. */
static inline void
server_new(const char *topology)
{
    char path[SIM_PATH_MAX];

    snprintf(server_dir, sizeof(server_dir), "/tmp/bulkhead-simdrv-test.XXXXXX");
    assert_non_null(mkdtemp(server_dir));
    assert_true(sim_path(path, "%s/topology", server_dir));
    assert_true(sim_put_file(path, 0644, topology, strlen(topology)));
    assert_int_equal(setenv("BULKHEAD_SIM_STATE", server_dir, 1), 0);
}

/* The same, and begin with it. */
static inline void
server_start(const char *topology)
{
    server_new(topology);
    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
}

static inline void
server_control(const char *text)
{
    char path[SIM_PATH_MAX];

    assert_true(sim_path(path, "%s/control", server_dir));
    assert_true(sim_put_file(path, 0600, text, strlen(text)));
}

static inline void
server_free(void)
{
    while (nvmlShutdown() == NVML_SUCCESS) {
    }
    assert_true(sim_remove_tree(server_dir));
}

/* A child of the test.  It ends when the test does: one that a failed check leaves behind keeps the
 * test's output open, and its reader waits for the end. */
static inline pid_t
fork_child(void)
{
    pid_t test = getpid(), pid = fork();

    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != test))
        _exit(1);
    return pid;
}

/* The driver's privileged calls want root, as the vendor's do. */
static inline nvmlDevice_t
gpu_at(unsigned index)
{
    nvmlDevice_t device = NULL;

    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
    return device;
}

struct pair {
    unsigned profile_id, start, size, ci_profile; /* in */
    nvmlGpuInstance_t gi;                         /* out */
    nvmlComputeInstance_t ci;
};

/* Create a GPU instance of this driver id and, in it, a compute instance;
 * returns the first failure. */
static inline nvmlReturn_t
create_pair(nvmlDevice_t device, struct pair *pair)
{
    nvmlGpuInstancePlacement_t placement = { pair->start, pair->size };
    nvmlReturn_t rc =
        nvmlDeviceCreateGpuInstanceWithPlacement(device, pair->profile_id, &placement, &pair->gi);

    if (rc != NVML_SUCCESS)
        return rc;
    return nvmlGpuInstanceCreateComputeInstance(pair->gi, pair->ci_profile, &pair->ci);
}

#endif
