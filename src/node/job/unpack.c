#include "node/job/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "model/image.h"
#include "model/job.h"
#include "node/common/helper.h"
#include "node/common/path.h"
#include "node/common/registry.h"
#include "node/common/uid_ranges.h"
#include "node/core/scratch.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/job/job_log.h"
#include "node/job/order_answer.h"
#include "node/job/order_copy.h"
#include "node/sandbox/store.h"
#include "runtime/cgroup.h"
#include "runtime/oci.h"

enum { REPORT_MAX = 1024, UNPACK_PIDS = 256, UNPACK_CPU_MILLI = 2000 };

static const bh_ns PROGRESS_INTERVAL = BH_NS_PER_S;

struct bh_unpack {
    pid_t pid;
    int report_fd;
    bh_ns give_up_at;          /* monotonic */
    struct bh_order_copy copy; /* the START */
    char output[REPORT_MAX];   /* the last line of its report, as far as it came */
    size_t output_length;
    struct bh_msg_image now, shared; /* how far it is; what the daemon knows */
    char digest[BH_IMAGE_DIGEST_CHARS + 1];
};

static void
unpack_assert(const struct bh_unpack *unpack)
{
    BH_ASSERT(unpack->pid > 0 && unpack->report_fd >= 0 && unpack->give_up_at);
    BH_ASSERT(unpack->output_length < REPORT_MAX && unpack->copy.number == BH_MSG_START);
}

static bool
unpack_has_image(const struct bh_msg_start *start)
{
    return start->image && bh_image_is_packed(start->image);
}

bool
bh_unpack_wanted(const struct bh_msg_start *start)
{
    return unpack_has_image(start) || start->scratch_bytes > 0;
}

bool
bh_unpack_is_pending(const struct bh_node *node, uint64_t lease)
{
    const struct bh_job *job = bh_state_job(&node->state, lease);

    return job && job->unpack;
}

static void
unpack_free(struct bh_unpack *unpack)
{
    if (!unpack)
        return;
    bh_fd_close(unpack->report_fd);
    bh_order_copy_fini(&unpack->copy);
    free(unpack);
}
BH_AUTO_DEFINE(struct bh_unpack *, unpack_free)

/* ---- starting it ---- */

static bh_rc
unpack_open_layout(const struct bh_node *node, const struct bh_msg_start *start, const char *path,
                   int *ret_fd, struct bh_err *err)
{
    struct bh_path_request request = {
        path, "image_roots", &node->conf.image_roots, start->submitter_uid, start->submitter_gid, false
    };

    return bh_path_open(&request, ret_fd, err);
}

/* Limits of its own: it is not the job that unpacks. */
static bh_rc
unpack_make_group(const struct bh_node *node, const struct bh_msg_start *start, char *group, size_t size,
                  struct bh_err *err)
{
    struct bh_sandbox limits = { .pids = UNPACK_PIDS,
                                 .cpu_milli = UNPACK_CPU_MILLI,
                                 .memory_bytes = (uint64_t)node->conf.image_memory_mib << 20 };
    struct bh_cgroup_host host;
    char id[32];
    bh_rc rc = bh_cgroup_probe(node->conf.cgroup_mount, &host, err);

    bh_node_job_id(start->lease, id);
    bh_path_format(group, size, "%s/%s", node->conf.cgroup_parent, id);
    limits.id = id;
    limits.cgroup = group;
    return rc == BH_OK ? bh_cgroup_make(&host, &limits, err) : rc;
}

static void
unpack_add_owner(struct bh_helper *helper, const struct bh_msg_start *start)
{
    bool person = bh_path_is_person(start->submitter_uid);
    bool group = person && start->submitter_gid != 0 && start->submitter_gid != UINT32_MAX;

    bh_helper_word(helper, "--uid=%u", person ? start->submitter_uid : BH_PATH_NOBODY);
    bh_helper_word(helper, "--gid=%u", group ? start->submitter_gid : BH_PATH_NOBODY);
}

static bh_rc
unpack_find_tool(const char *name, const char *package, char ret_path[BH_NODE_PATH_MAX], struct bh_err *err)
{
    if (bh_helper_find(name, ret_path, BH_NODE_PATH_MAX))
        return BH_OK;
    bh_err_set(err, BH_UNAVAILABLE, "%s is not on this node, and images%s need it", name,
               strcmp(package, "skopeo") == 0 ? " of registries" : "");
    return bh_err_hint(err, "install %s (apt install %s), or set %s in node.conf", package, package, package);
}

/* A host that images come from, or that these may send to.  Docker Hub is asked under another
 * name than it is called by. */
static void
unpack_add_hosts(struct bh_helper *helper, const struct bh_conf *conf, const struct bh_registry *registry)
{
    bool hub = strcmp(registry->host, "docker.io") == 0;

    bh_helper_word(helper, "--host=%s%s:%u", registry->plain ? "http:" : "", registry->host, registry->port);
    if (hub)
        bh_helper_word(helper, "--host=registry-1.docker.io");
    for (uint32_t i = 0; i < conf->registry_hosts.count; i++)
        bh_helper_word(helper, "--host=%s", conf->registry_hosts.items[i]);
    for (uint32_t i = 0; i < conf->egress_deny.count; i++)
        bh_helper_word(helper, "--deny=%s", conf->egress_deny.items[i]);
}

static bh_rc
unpack_add_registry(struct bh_helper *helper, const struct bh_node *node, const struct bh_image *image,
                    struct bh_err *err)
{
    char skopeo[BH_NODE_PATH_MAX];
    struct bh_registry registry;
    bh_rc rc = bh_registries_find(&node->conf, image->path, &registry, err);

    if (rc != BH_OK)
        return rc;
    rc = unpack_find_tool(node->conf.skopeo, "skopeo", skopeo, err);
    if (rc != BH_OK)
        return rc;
    bh_helper_word(helper, "--source=%s", image->path);
    bh_helper_word(helper, "--skopeo=%s", skopeo);
    bh_helper_word(helper, "--auth=%s", node->conf.registry_auth);
    bh_helper_word(helper, "--stall=%u", node->conf.registry_stall_s);
    unpack_add_hosts(helper, &node->conf, &registry);
    return BH_OK;
}

static bh_rc
unpack_add_image(struct bh_helper *helper, const struct bh_node *node, const struct bh_msg_start *start,
                 int *ret_layout, struct bh_err *err)
{
    char store[BH_NODE_PATH_MAX], tool[BH_NODE_PATH_MAX];
    struct bh_image image;
    const char *fault = bh_image_parse(start->image, &image);
    bh_rc rc;

    if (fault)
        return bh_err_set(err, BH_INVALID, "image: \"%.80s\" %s", start->image, fault);
    rc = unpack_find_tool(node->conf.umoci, "umoci", tool, err);
    if (rc == BH_OK)
        rc = image.kind == BH_IMAGE_REGISTRY ? unpack_add_registry(helper, node, &image, err)
                                             : unpack_open_layout(node, start, image.path, ret_layout, err);
    if (rc == BH_OK)
        rc = bh_store_open(node, start->tenant, store, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "image %.100s", start->image);
    bh_helper_word(helper, "--store=%s", store);
    bh_helper_word(helper, "--umoci=%s", tool);
    bh_helper_word(helper, "--tag=%s", image.tag);
    bh_helper_word(helper, "--digest=%s", image.digest);
    bh_helper_word(helper, "--base=%u", bh_uid_range_first(&node->conf, bh_uid_range_of_images(&node->conf)));
    bh_helper_word(helper, "--lease=%" PRIu64, start->lease);
    bh_helper_word(helper, "--bytes-max=%" PRIu64, (uint64_t)node->conf.images_cap_mib << 20);
    unpack_add_owner(helper, start);
    return BH_OK;
}

static bh_rc
unpack_add_scratch(struct bh_helper *helper, const struct bh_node *node, const struct bh_msg_start *start,
                   struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    bh_rc rc = bh_scratch_acquire(node, bh_state_job(&node->state, start->lease), start->scratch_bytes, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "scratch");
    bh_scratch_path(node, start->lease, path);
    bh_helper_word(helper, "--scratch=%s", path);
    bh_helper_word(helper, "--scratch-bytes=%" PRIu64, start->scratch_bytes);
    return BH_OK;
}

static bh_rc
unpack_start_program(struct bh_node *node, const struct bh_msg_start *start, struct bh_unpack *unpack,
                     struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int layout = -1;
    struct bh_helper helper = { .count = 0 };
    int report[2] = { -1, -1 };
    char group[200];
    bh_rc rc = BH_OK;

    bh_helper_word(&helper, "%s/bulkhead-unpack", node->libexec);
    if (unpack_has_image(start))
        rc = unpack_add_image(&helper, node, start, &layout, err);
    if (rc != BH_OK)
        return rc;
    if (start->scratch_bytes > 0)
        rc = unpack_add_scratch(&helper, node, start, err);
    if (rc != BH_OK)
        return rc;
    rc = unpack_make_group(node, start, group, sizeof group, err);
    if (rc != BH_OK)
        return rc;
    bh_helper_word(&helper, "--cgroup-mount=%s", node->conf.cgroup_mount);
    bh_helper_word(&helper, "--cgroup=%s", group);
    if (pipe2(report, O_CLOEXEC) != 0 || fcntl(report[0], F_SETFL, O_NONBLOCK) != 0)
        return bh_err_errno(err, "pipe");
    rc = bh_helper_start(&helper, report[1], layout, &unpack->pid, err);
    close(report[1]);
    unpack->report_fd = report[0];
    return rc;
}

/* Each second, to hear how far it is. */
static bh_ns
unpack_next_check(const struct bh_unpack *unpack)
{
    bh_ns soon = bh_time_monotonic() + PROGRESS_INTERVAL;

    return soon < unpack->give_up_at ? soon : unpack->give_up_at;
}

bh_rc
bh_unpack_begin(struct bh_node *node, const struct bh_msg_start *start, struct bh_err *err)
{
    struct bh_job *job = bh_state_job(&node->state, start->lease);
    BH_AUTO(unpack_free)
    struct bh_unpack *unpack = calloc(1, sizeof *unpack);
    bh_rc rc;

    BH_ASSERT(job && unpack);
    BH_ASSERT(!job->ended && !job->running && !job->unpack);
    unpack->report_fd = -1;
    rc = bh_order_copy_init(&unpack->copy, BH_MSG_START, start, err);
    if (rc != BH_OK)
        return rc;
    rc = unpack_start_program(node, start, unpack, err);
    if (rc != BH_OK)
        return rc;
    unpack->now = (struct bh_msg_image){ .lease = start->lease, .job = start->job };
    if (unpack_has_image(start)) {
        bh_job_log_write(node, start, "%s image %.200s", *start->image == 'd' ? "fetching" : "unpacking",
                         start->image);
        bh_log(IMAGE_WANTED, BH_U64("lease", start->lease), BH_STR("image", start->image));
    }
    unpack->give_up_at = bh_time_monotonic() + node->conf.image_timeout_s * BH_NS_PER_S;
    job->pidfd = (int)syscall(SYS_pidfd_open, unpack->pid, 0);
    job->check_at = unpack_next_check(unpack);
    job->unpack = bh_steal(&unpack);
    return BH_OK;
}

/* ---- its course ---- */

/* "+STAGE DONE TOTAL" */
static void
unpack_receive_line(struct bh_unpack *unpack)
{
    uint64_t numbers[3] = { 0 };
    struct bh_err ignored;
    char *save = NULL, *word = strtok_r(unpack->output + 1, " ", &save);
    size_t count = 0;

    for (; word && count < BH_COUNT(numbers); word = strtok_r(NULL, " ", &save))
        if (bh_parse_u64(word, &numbers[count++], &ignored) != BH_OK)
            return;
    if (count < BH_COUNT(numbers) || numbers[0] == BH_IMAGE_READY || numbers[0] >= BH_IMAGE_STAGES)
        return;
    unpack->now.stage = (uint32_t)numbers[0];
    unpack->now.done_bytes = numbers[1];
    unpack->now.total_bytes = numbers[2];
}

/* Read its report: take the lines on its progress; the text behind them is the result. */
static void
unpack_read_progress(struct bh_unpack *unpack)
{
    char *output = unpack->output, *end;
    ssize_t n;

    while (unpack->output_length < REPORT_MAX - 1
           && (n = read(unpack->report_fd, output + unpack->output_length,
                        REPORT_MAX - 1 - unpack->output_length))
                  > 0) {
        unpack->output_length += (size_t)n;
        output[unpack->output_length] = '\0';
        while (*output == '+' && (end = strchr(output, '\n')) != NULL) {
            *end = '\0';
            unpack_receive_line(unpack);
            unpack->output_length -= (size_t)(end + 1 - output);
            memmove(output, end + 1, unpack->output_length + 1);
        }
    }
}

static void
unpack_send_progress(struct bh_node *node, struct bh_unpack *unpack)
{
    bool same =
        unpack->now.stage == unpack->shared.stage && unpack->now.done_bytes == unpack->shared.done_bytes;

    if (same || unpack->now.stage == BH_IMAGE_READY)
        return;
    unpack->shared = unpack->now;
    bh_node_send(node, BH_MSG_IMAGE, &unpack->now);
}

static void
unpack_send_ready(struct bh_node *node, const struct bh_job *job, const char *digest)
{
    struct bh_msg_image image = { .lease = job->record.lease, .job = job->record.job };

    bh_path_format(image.digest, sizeof image.digest, "%.64s", digest);
    bh_node_send(node, BH_MSG_IMAGE, &image);
}

void
bh_unpack_connected(struct bh_node *node)
{
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];
        char folder[BH_NODE_PATH_MAX];
        struct bh_err ignored;

        bh_state_assert_job(&node->state, job);
        if (job->unpack) {
            unpack_assert(job->unpack);
            job->unpack->shared.stage = BH_IMAGE_READY;
            unpack_send_progress(node, job->unpack);
        } else if (bh_store_folder(node, job->record.lease, folder, &ignored) == BH_OK && strrchr(folder, '/')
                   && bh_image_is_digest(strrchr(folder, '/') + 1)) {
            unpack_send_ready(node, job, strrchr(folder, '/') + 1);
        }
    }
}

/* ---- its end ---- */

/* The process is ended with all that it started, and what it left is cleared away. */
static void
unpack_end_program(struct bh_node *node, struct bh_job *job, const char *tenant)
{
    struct bh_unpack *unpack = job->unpack;
    struct bh_err ignored;
    char id[32];

    unpack_assert(unpack);
    bh_node_job_id(job->record.lease, id);
    (void)!node->runtime.ops->destroy(node->runtime.self, id, &ignored);
    kill(unpack->pid, SIGKILL);
    while (waitpid(unpack->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    bh_fd_close(job->pidfd);
    job->pidfd = -1;
    job->check_at = 0;
    if (tenant)
        bh_store_clear(node, tenant, job->record.lease);
}

/* "!RC\nmessage\nhint\n" */
static bh_rc
unpack_read_failure(char *text, struct bh_err *err)
{
    char *message = strchr(text, '\n'), *hint = message ? strchr(message + 1, '\n') : NULL;
    uint64_t rc = 0;

    if (!hint)
        return bh_err_set(err, BH_IO, "unpacking it failed without a message");
    *message++ = *hint++ = '\0';
    hint[strcspn(hint, "\n")] = '\0';
    if (bh_parse_u64(text, &rc, err) != BH_OK || rc == BH_OK || rc >= BH_BUG)
        rc = BH_IO;
    bh_err_set(err, (bh_rc)rc, "%s", message);
    return *hint ? bh_err_hint(err, "%s", hint) : err->rc;
}

static bh_rc
unpack_read_report(struct bh_unpack *unpack, struct bh_err *err)
{
    char *text = unpack->output;

    unpack_read_progress(unpack);
    if (unpack->output_length == 0)
        return bh_err_set(err, BH_IO, "unpacking it was ended from outside");
    if (text[0] == '!')
        return unpack_read_failure(text + 1, err);
    text[strcspn(text, "\n")] = '\0';
    if (strcmp(text, "none") == 0)
        return BH_OK;
    if (!bh_image_is_digest(text))
        return bh_err_set(err, BH_IO, "unpacking it ended with no digest");
    memcpy(unpack->digest, text, sizeof unpack->digest);
    return BH_OK;
}

/* Start the job, or answer that it cannot be. */
static void
unpack_start_job(struct bh_node *node, const struct bh_msg_start *start, bh_rc rc, const struct bh_err *err)
{
    struct bh_order_pending pending = {
        .number = BH_MSG_START, .order = start->order, .message = start, .err = *err
    };

    if (rc == BH_OK)
        rc = bh_job_start(node, start, &pending.err);
    if (rc != BH_OK)
        bh_job_give_up(node, start, &pending.err);
    bh_order_answer_with(node, &pending, rc, false);
}

/* Take the order back, end what runs for it, and continue with it if `rc` allows. */
static void
unpack_conclude(struct bh_node *node, struct bh_job *job, bh_rc rc, struct bh_err *err)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(BH_ORDER_COPY_BYTES_MAX);
    BH_AUTO(unpack_free)
    struct bh_unpack *unpack = job->unpack;
    struct bh_msg_start start = *(struct bh_msg_start *)bh_order_copy_message(&unpack->copy, arena);

    unpack_end_program(node, job, unpack_has_image(&start) ? start.tenant : NULL);
    if (rc != BH_OK && unpack_has_image(&start) && strncmp(err->msg, "scratch", 7) != 0)
        bh_err_wrap(err, "image %.100s", start.image);
    if (rc == BH_OK && unpack_has_image(&start))
        rc = *unpack->digest ? bh_store_use(node, job->record.lease, start.tenant, unpack->digest, err)
                             : bh_err_set(err, BH_BUG, "an image without a digest");
    job->unpack = NULL;
    if (unpack_has_image(&start))
        unpack_send_ready(node, job, rc == BH_OK ? unpack->digest : "");
    if (rc != BH_OK)
        bh_scratch_remove(node, start.lease);
    unpack_start_job(node, &start, rc, err);
    if (unpack_has_image(&start))
        bh_store_trim(node, start.tenant);
}

void
bh_unpack_check(struct bh_node *node, struct bh_job *job)
{
    struct bh_unpack *unpack = job->unpack;
    siginfo_t ended = { .si_pid = 0 };
    struct bh_err err = { 0 };
    bh_rc rc;

    bh_state_assert_job(&node->state, job);
    unpack_assert(unpack);
    if (waitid(P_PID, (id_t)unpack->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
        unpack_read_progress(unpack);
        unpack_send_progress(node, unpack);
        job->check_at = unpack_next_check(unpack);
        if (bh_time_monotonic() < unpack->give_up_at)
            return;
        rc = bh_err_set(&err, BH_TIMEOUT, "it was not ready within %u seconds", node->conf.image_timeout_s);
        bh_err_hint(&err, "image_timeout_s in node.conf is the limit");
    } else {
        rc = unpack_read_report(unpack, &err);
    }
    unpack_conclude(node, job, rc, &err);
}

/* Give up: the order is answered, and its lease forgotten. */
static void
unpack_cancel(struct bh_node *node, struct bh_job *job)
{
    struct bh_err err = { 0 };

    unpack_conclude(node, job, bh_err_set(&err, BH_CONFLICT, "the job was stopped before it was unpacked"),
                    &err);
}

bh_rc
bh_unpack_stop(struct bh_node *node, const struct bh_msg_stop *stop, struct bh_err *err)
{
    struct bh_job *job = bh_state_job(&node->state, stop->lease);

    bh_node_assert(node);
    if (job && job->unpack && stop->signal <= BH_SIGNAL_MAX)
        unpack_cancel(node, job);
    return bh_job_stop(node, stop, err);
}
