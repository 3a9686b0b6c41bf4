#ifndef BH_RUNTIME_OBSTACLE_TEST_H
#define BH_RUNTIME_OBSTACLE_TEST_H

#include <unistd.h>

#include "runtime/cgroup.h"
#include "runtime/crun.h"

/* Why sandboxes cannot be made here, or NULL. */
static inline const char *
bh_test_sandbox_obstacle(void)
{
    struct bh_cgroup_host host;
    struct bh_err err;
    char version[40];

    if (geteuid() != 0)
        return "needs root";
    if (bh_crun_version("crun", version, sizeof version, &err) != BH_OK)
        return "crun is not installed";
    if (bh_cgroup_probe("/sys/fs/cgroup", &host, &err) != BH_OK)
        return "no control groups";
    return NULL;
}

#endif
