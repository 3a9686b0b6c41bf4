#include "node/sandbox/launch.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/log.h"
#include "node/common/helper.h"
#include "node/common/path.h"
#include "node/sandbox/keeper.h"
#include "node/sandbox/network.h"
#include "node/sandbox/sandbox_spec.h"

bh_rc
bh_launch_folder(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX],
                 struct bh_err *err)
{
    bh_node_job_folder(node, lease, ret_path);
    return mkdir(ret_path, 0700) != 0 && errno != EEXIST ? bh_err_errno(err, "make folder %s", ret_path)
                                                         : BH_OK;
}

/* It could be removed at any time, and the keeper that starts it is no place to say so. */
static bh_rc
open_runtime(struct bh_node *node, int *ret_fd, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];

    if (bh_helper_find(node->conf.runtime, path, sizeof path))
        return bh_sealed_open(&node->sealed_runtime, path, ret_fd, err);
    bh_err_set(err, BH_UNAVAILABLE, "%.150s is not on this node, and jobs need it", node->conf.runtime);
    return bh_err_hint(err, "install crun (apt install crun), or set runtime in node.conf");
}

bh_rc
bh_launch(struct bh_node *node, const struct bh_launch *launch, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 << 20);
    const struct bh_runtime *runtime = &node->runtime;
    struct bh_job *job = launch->job;
    struct bh_sandbox_spec_request spec = { node, launch->start, job, arena };
    struct bh_sandbox sandbox;
    char folder[BH_NODE_PATH_MAX], record[200];
    struct bh_keeper_request request = { .program = node->libexec,
                                         .folder = folder,
                                         .lease = job->record.lease,
                                         .cgroup_mount = node->conf.cgroup_mount,
                                         .sandbox = &sandbox,
                                         .stdio = launch->start->stdio,
                                         .log_fd = launch->log_fd,
                                         .barrier_fd = node->barrier_fd,
                                         .log_cap_bytes = launch->log_cap_bytes,
                                         .logs = { .folder = node->conf.log_dir,
                                                   .party = job->record.party,
                                                   .tenant = launch->start->tenant_id,
                                                   .bound_bytes = launch->log_bound_bytes } };
    bh_rc rc = open_runtime(node, &request.runtime_fd, err);

    bh_node_job_folder(node, job->record.lease, folder);
    if (rc != BH_OK)
        return rc;
    rc = bh_sandbox_spec_build(&spec, &sandbox, record, err);
    if (rc != BH_OK)
        return rc;
    rc = runtime->ops->prepare(runtime->self, &sandbox, err);
    if (rc != BH_OK)
        return rc;
    rc = runtime->ops->command(runtime->self, &sandbox, request.command, err);
    if (rc != BH_OK)
        return rc;
    if (*record)
        dprintf(launch->log_fd, "bulkhead: %s\n", record);
    rc = bh_keeper_start(&request, &job->pidfd, err);
    if (rc != BH_OK)
        return rc;
    job->ordered.memory_bytes = sandbox.memory_bytes;
    job->ordered.pids = sandbox.pids;
    return BH_OK;
}

bool
bh_launch_clear(struct bh_node *node, uint64_t lease)
{
    char folder[BH_NODE_PATH_MAX], id[32];
    struct bh_err err;

    bh_node_job_folder(node, lease, folder);
    bh_node_job_id(lease, id);
    if (node->runtime.ops->destroy(node->runtime.self, id, &err) != BH_OK) {
        bh_log(EFFECT_FAILED, BH_U64("lease", lease), BH_ERRLOG(&err));
        return false;
    }
    bh_networks_detach(node, lease);
    bh_sandbox_spec_remove(node, lease);
    bh_path_remove_tree(folder);
    return true;
}
