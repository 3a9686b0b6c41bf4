#include "node/session/job_watch.h"

#include <dirent.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "node/common/path.h"
#include "node/core/state_check.h"
#include "node/job/checkpoint.h"
#include "node/job/job.h"
#include "node/job/unpack.h"
#include "node/verify/lease_check.h"
#include "node/verify/start_barrier.h"
#include "runtime/cgroup.h"

void
bh_job_watch_check(struct bh_node *node, struct bh_job *job)
{
    bh_state_assert_job(&node->state, job);
    if (job->unpack)
        bh_unpack_check(node, job);
    else
        bh_job_check(node, job);
}

static void
job_watch_tick(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    bh_state_assert_job(&node->state, job);
    bh_job_stop_due(node, job, now);
    if (job->barrier_at && job->barrier_at <= now && !job->frozen && !job->ended)
        bh_start_barrier_tick(node, job, now);
    bh_lease_check_tick(node, job, now);
    if (job->check_at && job->check_at <= now)
        bh_job_watch_check(node, job); /* may forget it: last */
}

bh_ns
bh_job_watch_tick(struct bh_node *node, bh_ns now)
{
    bh_ns next = 0;

    bh_node_assert(node);
    bh_lease_check_charged(node);
    for (uint32_t i = node->state.job_count; i-- > 0;)
        job_watch_tick(node, &node->state.jobs[i], now);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        next =
            bh_node_sooner(bh_node_sooner(bh_node_sooner(next, job->kill_at), job->term_at), job->check_at);
        next = bh_node_sooner(next, job->frozen || job->ended ? 0 : job->barrier_at);
        next = bh_node_sooner(next, bh_lease_check_due(job));
    }
    return next;
}

/* ---- after a start of the node ---- */

/* The lease in a name like "bh-12" or "12", or 0. */
static uint64_t
lease_in(const char *name)
{
    struct bh_err ignored;
    uint64_t lease = 0;

    if (strncmp(name, "bh-", 3) == 0)
        name += 3;
    return bh_parse_u64(name, &lease, &ignored) == BH_OK ? lease : 0;
}

static void
end_orphan(struct bh_node *node, const char *id)
{
    struct bh_err err;

    bh_log(JOB_COLLECTED, BH_STR("container", id));
    if (node->runtime.ops->destroy(node->runtime.self, id, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("container", id), BH_ERRLOG(&err));
}

/* Containers below the node's own control group that are not in the journal. */
static void
end_orphans(struct bh_node *node)
{
    static struct bh_cgroup_names found;
    struct bh_cgroup_host cgroups;
    struct bh_err ignored;

    if (bh_cgroup_probe(node->conf.cgroup_mount, &cgroups, &ignored) != BH_OK
        || bh_cgroup_list(&cgroups, node->conf.cgroup_parent, &found, &ignored) != BH_OK)
        return;
    for (uint32_t i = 0; i < found.count; i++) {
        uint64_t lease = lease_in(found.names[i]);

        if (lease && !bh_state_job(&node->state, lease))
            end_orphan(node, found.names[i]);
    }
}

/* Their folders; one whose keeper still writes is left for the next start. */
static void
remove_orphan_folders(struct bh_node *node)
{
    char path[BH_NODE_PATH_MAX];
    DIR *dir;

    bh_path_format(path, sizeof path, "%s/jobs", node->conf.state_dir);
    dir = opendir(path);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        uint64_t lease = lease_in(entry->d_name);

        if (!lease || bh_state_job(&node->state, lease))
            continue;
        bh_node_job_folder(node, lease, path);
        bh_path_remove_tree(path);
    }
    closedir(dir);
}

void
bh_job_watch_adopt(struct bh_node *node)
{
    end_orphans(node);
    remove_orphan_folders(node);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        struct bh_job *job = &node->state.jobs[i];

        bh_job_watch_check(node, job);
        if (job->ended)
            continue;
        bh_job_adopt_frozen(node, job);
        bh_checkpoint_adopt(node, job);
        bh_job_set_barrier(job); /* it may wait for the node that died */
        bh_lease_check_adopt(job);
    }
}
