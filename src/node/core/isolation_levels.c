#include "node/core/isolation_levels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "model/driver.h"

enum { DMEM_BRANCH = 615 };

#define NOT_VERIFIED "not offered: not verified on hardware"

static bool
isolation_levels_driver_limits(const char *driver)
{
    struct bh_driver_version version;
    struct bh_err unused;

    return bh_driver_parse(driver, &version, &unused) == BH_OK && version.branch >= DMEM_BRANCH;
}

/* Whether the kernel has the control group controller of device memory. */
static bool
has_dmem(const struct bh_node *node)
{
    char path[BH_NODE_PATH_MAX], memory[512];
    struct bh_buf text;
    struct bh_err unused;

    snprintf(path, sizeof path, "%s/cgroup.controllers", node->conf.cgroup_mount);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    return bh_file_read(path, sizeof memory - 1, &text, &unused) == BH_OK && bh_buf_text(&text)
           && strstr(bh_buf_text(&text), "dmem");
}

static void
probe_driver_limit(const struct bh_node *node, struct bh_msg_grade *grade)
{
    bool driver = isolation_levels_driver_limits(node->inventory.driver), dmem = has_dmem(node);

    snprintf(grade->grade, sizeof grade->grade, "D");
    grade->found = driver && dmem;
    snprintf(grade->why, sizeof grade->why,
             NOT_VERIFIED "; driver %s %s memory by control group, "
                          "and the kernel has %s dmem controller",
             node->inventory.driver[0] ? node->inventory.driver : "(none)",
             driver ? "limits" : "is older than 615 and does not limit", dmem ? "the" : "no");
}

static void
probe_mps(const struct bh_node *node, struct bh_msg_grade *grade)
{
    static const char *const programs[] = { "/usr/bin/nvidia-cuda-mps-control",
                                            "/usr/local/bin/nvidia-cuda-mps-control" };

    snprintf(grade->grade, sizeof grade->grade, "E");
    for (size_t i = 0; i < BH_COUNT(programs); i++)
        grade->found = grade->found || access(programs[i], X_OK) == 0;
    snprintf(grade->why, sizeof grade->why, NOT_VERIFIED "; nvidia-cuda-mps-control is %s",
             grade->found ? "installed" : "not installed");
}

void
bh_isolation_levels_probe(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_grades)
{
    struct bh_msg_grade *grades = bh_arena_alloc(arena, 2 * sizeof *grades);

    *ret_grades = (struct bh_list){ grades, grades ? 2 : 0 };
    if (!grades)
        return;
    memset(grades, 0, 2 * sizeof *grades);
    probe_driver_limit(node, &grades[0]);
    probe_mps(node, &grades[1]);
}
