#include "node/share_lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/path.h"
#include "node/share.h"
#include "node/share_slot.h"

struct bh_share_leases {
    struct bh_share_host *host;
    uint64_t open[BH_SHARE_LEASES_MAX];
    uint32_t count;
    bh_ns tried_at; /* monotonic; when leases of before were asked for last */
    bh_ns compare_at; /* monotonic; when the driver is asked next */
};

const char *
bh_node_share_shim(const struct bh_node *node)
{
    return node->conf.shim_dir[0] != '\0' ? node->conf.shim_dir : BH_SHIM_DIR;
}

bool
bh_node_share_is(const struct bh_job *job)
{
    bool own = job->note.lease >= BH_SCRUB_LEASES; /* the node's: it works with the driver itself */

    for (uint32_t k = 0; k < job->note.lent_count && !own; k++)
        if (bh_share_slot_is(&job->note.lent[k]))
            return true;
    return false;
}

static void
lease_folder(const struct bh_node *node, uint64_t lease, const char *below,
             char ret_path[BH_NODE_PATH_MAX])
{
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%.300s/shares/%" PRIu64 "%s", node->conf.run_dir,
                   lease, below);
}

void
bh_node_share_door(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    lease_folder(node, lease, "/door", ret_path);
}

/* ---- bulkhead-share ---- */

static void
hear(void *self, const struct bh_share_notice *notice)
{
    static const char *const whats[] = {
        [BH_SHARE_NOTICE_FORGED] = "its page of GPU memory says what cannot be",
        [BH_SHARE_NOTICE_FULL] = "too many processes use its share",
        [BH_SHARE_NOTICE_STRANGER] = "a process asked for what is not its own",
        [BH_SHARE_NOTICE_STUCK] = "its work on the GPU does not end: others run beside it",
        [BH_SHARE_NOTICE_MORE] = "it has more GPU memory than it reserved: its cap is lower now",
    };

    (void)self;
    bh_log(SHARE_NOTICE, BH_U64("lease", notice->lease), BH_U64("pid", notice->pid),
           BH_STR("what", notice->kind < BH_SHARE_NOTICES ? whats[notice->kind] : "?"));
}

static struct bh_share_leases *
leases_of(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    char program[BH_NODE_PATH_MAX];

    if (leases)
        return leases;
    leases = calloc(1, sizeof *leases);
    BH_ASSERT(leases);
    bh_path_format(program, sizeof program, "%.480s/bulkhead-share", node->libexec);
    leases->host = bh_share_host_new(
        &(struct bh_share_host_options){ .program = program, .notice = hear });
    node->share_leases = leases;
    return leases;
}

/* ---- opening ---- */

static bh_rc
check_libraries(const struct bh_node *node, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];

    bh_path_format(path, sizeof path, "%.480s/libcuda.so.1", bh_node_share_shim(node));
    if (access(path, R_OK) != 0)
        return bh_err_set(err, BH_UNAVAILABLE,
                          "a share of a GPU cannot be enforced here: there is no %s", path);
    if (node->conf.driver_lib_dir[0] == '\0')
        return bh_err_set(err, BH_UNAVAILABLE, "a share of a GPU cannot be enforced here: "
                                               "the driver's libraries were not found; "
                                               "driver_search in node.conf says where");
    return BH_OK;
}

/* The folders; `driver` is where the driver's own libraries are bound, below the door. */
static bh_rc
make_folders(const struct bh_node *node, uint64_t lease, struct bh_err *err)
{
    static const struct {
        const char *below;
        mode_t mode;
    } rows[] = { { "", 0700 }, { "/door", 0755 }, { "/door/driver", 0755 } };
    char path[BH_NODE_PATH_MAX];
    bh_rc rc;

    bh_path_format(path, sizeof path, "%.480s/shares", node->conf.run_dir);
    rc = bh_dir_make(path, 0700, err);
    for (size_t i = 0; i < BH_COUNT(rows) && rc == BH_OK; i++) {
        lease_folder(node, lease, rows[i].below, path);
        if (mkdir(path, rows[i].mode) != 0 && errno != EEXIST)
            rc = bh_err_errno(err, "make folder %s", path);
    }
    return rc;
}

/* Which of the node's GPUs it is, by its minor: the same for all leases. */
static void
put_gpu(const struct bh_note_piece *lent, struct bh_share_open *open)
{
    struct bh_share_gpu *gpu = &open->gpus[open->gpu_count++];

    gpu->gpu = lent->minor % 32;
    memcpy(gpu->uuid, lent->gpu, sizeof gpu->uuid);
    gpu->cap_bytes = lent->cap_bytes;
    gpu->context_bytes = lent->context_bytes / BH_SHARE_UNIT_BYTES * BH_SHARE_UNIT_BYTES;
    gpu->memory_bytes = lent->cap_bytes;
    open->weight = lent->share_weight;
    open->hard = (lent->share_flags & BH_SHARE_IS_HARD) != 0;
    open->latency = (lent->share_flags & BH_SHARE_IS_LATENCY) != 0;
}

static bool
is_open(const struct bh_share_leases *leases, uint64_t lease)
{
    for (uint32_t i = 0; i < leases->count; i++)
        if (leases->open[i] == lease)
            return true;
    return false;
}

bh_rc
bh_node_share_open(struct bh_node *node, const struct bh_job *job, struct bh_err *err)
{
    struct bh_share_open open = { .lease = job->note.lease };
    struct bh_share_leases *leases;
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc;

    for (uint32_t k = 0; k < job->note.lent_count && open.gpu_count < BH_SHARE_DEVICES_MAX; k++)
        if (bh_share_slot_is(&job->note.lent[k]))
            put_gpu(&job->note.lent[k], &open);
    if (open.gpu_count == 0)
        return BH_OK;
    rc = check_libraries(node, err);
    if (rc == BH_OK)
        rc = make_folders(node, open.lease, err);
    if (rc != BH_OK)
        return rc;
    lease_folder(node, open.lease, "", folder);
    bh_path_format(open.folder, sizeof open.folder, "%.190s", folder);
    leases = leases_of(node);
    if (!is_open(leases, open.lease) && leases->count == BH_COUNT(leases->open))
        return bh_err_set(err, BH_FULL, "%d leases share GPUs on this node", BH_SHARE_LEASES_MAX);
    rc = bh_share_host_open(leases->host, &open, err);
    if (rc == BH_OK && !is_open(leases, open.lease))
        leases->open[leases->count++] = open.lease;
    return rc;
}

/* ---- closing ---- */

static bool
lives(const struct bh_node *node, uint64_t lease)
{
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (node->state.jobs[i].note.lease == lease)
            return !node->state.jobs[i].ended;
    return false;
}

static void
close_ended(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    char folder[BH_NODE_PATH_MAX];

    for (uint32_t i = leases->count; i-- > 0;) {
        uint64_t lease = leases->open[i];

        if (lives(node, lease))
            continue;
        bh_share_host_close(leases->host, lease);
        lease_folder(node, lease, "", folder);
        bh_path_remove_tree(folder);
        leases->open[i] = leases->open[--leases->count];
    }
}

/* Jobs of before this node was started have theirs in the journal. */
static void
open_adopted(struct bh_node *node)
{
    struct bh_err err;
    bh_ns now = bh_time_monotonic();

    if (node->share_leases && now < node->share_leases->tried_at + BH_NS_PER_S)
        return;
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        if (job->ended || !job->running || !bh_node_share_is(job) ||
            is_open(leases_of(node), job->note.lease))
            continue;
        if (bh_node_share_open(node, job, &err) != BH_OK)
            bh_log(EFFECT_FAILED, BH_STR("what", "share of a running job"), BH_ERRLOG(&err));
        node->share_leases->tried_at = now;
    }
}

/* ---- what the driver says ---- */

static uint64_t
bytes_of(const struct bh_node *node, uint64_t lease, const struct bh_device_process *processes,
         uint32_t count)
{
    uint64_t bytes = 0;
    struct bh_err ignored;
    bool inside;
    char id[32];

    bh_node_job_id(lease, id);
    for (uint32_t p = 0; p < count; p++) {
        inside = false;
        if (node->runtime.ops->has(node->runtime.self, id, (pid_t)processes[p].pid, &inside,
                                   &ignored) == BH_OK && inside)
            bytes += processes[p].memory_mib << 20;
    }
    return bytes;
}

/* Its shares in the order in which put_gpu named them. */
static void
tell_overhead(struct bh_node *node, const struct bh_job *job)
{
    struct bh_share_overhead said = { .lease = job->note.lease };

    for (uint32_t k = 0; k < job->note.lent_count; k++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
        const struct bh_note_piece *lent = &job->note.lent[k];
        struct bh_device_process *processes;
        uint32_t count = 0;
        struct bh_err ignored;

        if (!bh_share_slot_is(lent))
            continue;
        if (node->device.ops->processes(node->device.self, lent->gpu, arena, &processes, &count,
                                        &ignored) == BH_OK) {
            said.bytes = bytes_of(node, said.lease, processes, count);
            bh_share_host_overhead(node->share_leases->host, &said);
        }
        said.device++;
    }
}

static void
compare_with_driver(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    bh_ns now = bh_time_monotonic();

    if (leases->count == 0 || now < leases->compare_at)
        return;
    leases->compare_at = now + BH_NS_PER_S;
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        if (!job->ended && job->running && is_open(leases, job->note.lease))
            tell_overhead(node, job);
    }
}

void
bh_node_shares_turn(struct bh_node *node)
{
    open_adopted(node);
    if (!node->share_leases)
        return;
    close_ended(node);
    compare_with_driver(node);
    bh_share_host_turn(node->share_leases->host);
}

void
bh_node_shares_free(struct bh_node *node)
{
    if (node->share_leases)
        bh_share_host_free(node->share_leases->host);
    free(node->share_leases);
    node->share_leases = NULL;
}
