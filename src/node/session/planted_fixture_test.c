#include "node/session/planted_fixture_test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "model/job.h"
#include "node/common/exit_record.h"
#include "node/common/path.h"
#include "node/job/checkpoint.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/job/share_compare.h"
#include "node/partition/health.h"
#include "node/partition/partition.h"
#include "node/partition/reset.h"
#include "node/placement/handover.h"
#include "node/placement/health_state.h"
#include "node/placement/inventory.h"
#include "node/placement/survey.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/launch.h"
#include "node/sandbox/network.h"
#include "node/session/job_watch.h"
#include "node/session/report.h"
#include "node/session/session.h"
#include "node/session/survey_answer.h"
#include "node/share/share_lease.h"
#include "node/share/share_lease_internal.h"
#include "node/verify/verify.h"
#include "node/verify/verify_internal.h"

enum { INSTANCES_MAX = 16, PIDS_EACH = 90000, IN_USE = 19, SMALL_MIB = 9728, LARGE_MIB = 19968, GPUS = 3 };

static struct {
    struct planted_trace *trace;
    struct bh_device_gpu gpus[GPUS];
    struct bh_device_instance instances[INSTANCES_MAX];
    uint32_t instance_count, made;
    uint32_t busy;   /* so often destroying says that the instance is in use */
    uint32_t events; /* that are still to be reported */
    bh_ns now;       /* monotonic */
    int peer;        /* the daemon's end */
    int locks[LEASES_END];
} world;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            _exit(3);                                                                                        \
        }                                                                                                    \
    } while (0)

static void planted_trace_put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void
planted_trace_put(const char *format, ...)
{
    struct planted_trace *trace = world.trace;
    va_list args;
    int length;

    if (!trace)
        return;
    va_start(args, format);
    length = vsnprintf(trace->text + trace->length, PLANTED_TRACE_MAX - trace->length, format, args);
    va_end(args);
    CHECK(length >= 0 && (uint32_t)length < PLANTED_TRACE_MAX - trace->length);
    trace->length += (uint32_t)length;
}

static void
planted_trace_bytes(const char *what, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    planted_trace_put("%s ", what);
    for (size_t i = 0; i < length; i++)
        planted_trace_put(at[i] >= ' ' && at[i] < 127 ? "%c" : "\\%02x", at[i]);
    planted_trace_put("\n");
}

/* ---- what the node calls (the linker's --wrap) ---- */

bh_ns __wrap_bh_time_now(void);
bh_ns __wrap_bh_time_monotonic(void);
bh_ns __wrap_bh_time_boot(void);
void __wrap_bh_time_sleep(bh_ns span);
int __wrap_kill(pid_t pid, int number);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);
void __wrap_bh_node_send(struct bh_node *node, uint32_t number, const void *message);
void __real_bh_node_send(struct bh_node *node, uint32_t number, const void *message);
bh_rc __wrap_bh_order_journal_append(struct bh_order_journal *journal, const char *payload, size_t length,
                                     struct bh_err *err);
bh_rc __real_bh_order_journal_append(struct bh_order_journal *journal, const char *payload, size_t length,
                                     struct bh_err *err);

bh_rc __wrap_bh_launch(struct bh_node *node, const struct bh_launch *launch, struct bh_err *err);

bh_ns
__wrap_bh_time_now(void)
{
    return world.now + 1700000000 * BH_NS_PER_S;
}

bh_ns
__wrap_bh_time_monotonic(void)
{
    return world.now;
}

bh_ns
__wrap_bh_time_boot(void)
{
    return world.now + BH_NS_PER_S;
}

void
__wrap_bh_time_sleep(bh_ns span)
{
    world.now += span;
}

int
__wrap_kill(pid_t pid, int number)
{
    planted_trace_put("kill %d %d\n", (int)pid, number);
    return 0;
}

ssize_t
__wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
    memset(bytes, 0x5a, size);
    return (ssize_t)size;
}

void
__wrap_bh_node_send(struct bh_node *node, uint32_t number, const void *message)
{
    struct bh_buf frame;

    __real_bh_node_send(node, number, message);
    bh_buf_init(&frame, 1 << 20);
    bh_frame_encode(&frame, number, bh_message_fields(number), message);
    planted_trace_bytes(node->hello_received ? "send" : "unsent", frame.bytes, frame.length);
    bh_buf_fini(&frame);
}

bh_rc
__wrap_bh_order_journal_append(struct bh_order_journal *journal, const char *payload, size_t length,
                               struct bh_err *err)
{
    bh_rc rc = __real_bh_order_journal_append(journal, payload, length, err);

    planted_trace_bytes("journal", payload, length);
    return rc;
}

/* ---- the driver ---- */

static bh_rc
planted_scan(void *self, struct bh_arena *arena, struct bh_inventory *ret_inventory, struct bh_err *err)
{
    struct bh_inventory found = { .driver = "610.10", .gpu_count = GPUS };

    planted_trace_put("scan\n");
    found.gpus = bh_arena_alloc(arena, sizeof world.gpus);
    found.instances = bh_arena_alloc(arena, sizeof world.instances);
    memcpy(found.gpus, world.gpus, sizeof world.gpus);
    memcpy(found.instances, world.instances, sizeof world.instances);
    found.instance_count = world.instance_count;
    *ret_inventory = found;
    return BH_OK;
}

static bh_rc
planted_set_mig(void *self, const char *gpu, bool enabled, struct bh_err *err)
{
    planted_trace_put("set_mig %s %d\n", gpu, enabled);
    for (uint32_t i = 0; i < GPUS; i++)
        if (strcmp(world.gpus[i].uuid, gpu) == 0)
            world.gpus[i].mig_enabled = enabled;
    return BH_OK;
}

static bh_rc
planted_carve(void *self, const char *gpu, const char *profile, uint32_t start,
              struct bh_device_instance *ret_instance, struct bh_err *err)
{
    struct bh_device_instance *made = &world.instances[world.instance_count];

    planted_trace_put("carve %s %s %u\n", gpu, profile, start);
    CHECK(world.instance_count < INSTANCES_MAX);
    *made = (struct bh_device_instance){ .start = start,
                                         .size = 1,
                                         .gi = ++world.made,
                                         .memory_mib = profile[0] == '1' ? SMALL_MIB : LARGE_MIB,
                                         .gi_minor = 10 + world.made,
                                         .ci_minor = 50 + world.made,
                                         .activity = { .busy_bp = 2500 } };
    snprintf(made->gpu, sizeof made->gpu, "%s", gpu);
    snprintf(made->uuid, sizeof made->uuid, "MIG-%u", made->gi);
    snprintf(made->profile, sizeof made->profile, "%s", profile);
    world.instance_count++;
    *ret_instance = *made;
    return BH_OK;
}

static bh_rc
planted_destroy(void *self, const char *gpu, uint32_t gi, struct bh_err *err)
{
    planted_trace_put("destroy %s %u\n", gpu, gi);
    if (world.busy > 0) {
        world.busy--;
        bh_err_set(err, BH_CONFLICT, "instance %u is in use", gi);
        err->sys_kind = BH_SYS_NVML;
        err->sys = IN_USE;
        return BH_CONFLICT;
    }
    for (uint32_t i = 0; i < world.instance_count; i++)
        if (world.instances[i].gi == gi && strcmp(world.instances[i].gpu, gpu) == 0) {
            world.instances[i] = world.instances[--world.instance_count];
            return BH_OK;
        }
    return bh_err_set(err, BH_NOT_FOUND, "no instance %u", gi);
}

static bool
planted_lives(uint64_t lease)
{
    return lease < LEASES_END && world.locks[lease] >= 0;
}

/* The first process of each lease that shares the second GPU is on it. */
static bh_rc
planted_device_processes(void *self, const char *gpu, struct bh_arena *arena,
                         struct bh_device_process **ret_processes, uint32_t *ret_count, struct bh_err *err)
{
    struct bh_device_process *list = bh_arena_alloc(arena, 2 * sizeof *list);
    uint32_t count = 0;

    planted_trace_put("processes %s\n", gpu);
    for (uint32_t lease = LEASE_SHARES; lease <= LEASE_SHARES_TOO; lease++)
        if (planted_lives(lease) && strcmp(gpu, world.gpus[1].uuid) == 0)
            list[count++] = (struct bh_device_process){
                .pid = lease * PIDS_EACH + 1, .gi = UINT32_MAX, .ci = UINT32_MAX, .memory_mib = 700
            };
    *ret_processes = list;
    *ret_count = count;
    return BH_OK;
}

static bh_rc
planted_busy(void *self, const char *gpu, struct bh_arena *arena, struct bh_device_samples *samples,
             struct bh_err *err)
{
    planted_trace_put("busy %s %" PRIu64 "\n", gpu, samples->since_us);
    samples->count = 0;
    return BH_OK;
}

static bh_rc
planted_sensors(void *self, const char *gpu, struct bh_device_sensors *ret_sensors, struct bh_err *err)
{
    return bh_err_set(err, BH_UNAVAILABLE, "none");
}

static bh_rc
planted_health(void *self, const char *gpu, struct bh_device_health *ret_health, struct bh_err *err)
{
    planted_trace_put("health %s\n", gpu);
    *ret_health = (struct bh_device_health){ .recovery = 0 };
    return BH_OK;
}

static bh_rc
planted_next_event(void *self, bh_ns wait, struct bh_device_event *ret_event, struct bh_err *err)
{
    if (world.events == 0)
        return bh_err_set(err, BH_TIMEOUT, "nothing");
    world.events--;
    *ret_event = (struct bh_device_event){ .xid = 79, .gi = UINT32_MAX };
    snprintf(ret_event->gpu, sizeof ret_event->gpu, "%s", world.gpus[0].uuid);
    return BH_OK;
}

static void
planted_close(void *self)
{
}

static const struct bh_device_ops device_ops = {
    .name = "planted",
    .scan = planted_scan,
    .set_mig = planted_set_mig,
    .carve = planted_carve,
    .destroy = planted_destroy,
    .processes = planted_device_processes,
    .busy = planted_busy,
    .sensors = planted_sensors,
    .health = planted_health,
    .next_event = planted_next_event,
    .close = planted_close,
};

/* ---- the runtime ---- */

static bh_rc
planted_prepare(void *self, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    planted_trace_put("prepare %s\n", sandbox->id);
    return BH_OK;
}

static bh_rc
planted_command(void *self, const struct bh_sandbox *sandbox, const char *ret_argv[16], struct bh_err *err)
{
    return bh_err_set(err, BH_UNAVAILABLE, "nothing is run here");
}

static uint64_t
planted_lease_of(const char *id)
{
    return strtoull(id + 3, NULL, 10);
}

static bh_rc
planted_runtime_processes(void *self, const char *id, pid_t *ret_pids, uint32_t max, uint32_t *ret_count,
                          struct bh_err *err)
{
    uint64_t lease = planted_lease_of(id);

    planted_trace_put("inside %s\n", id);
    *ret_count = planted_lives(lease) ? 2 : 0;
    for (uint32_t i = 0; i < *ret_count && i < max; i++)
        ret_pids[i] = (pid_t)(lease * PIDS_EACH + i + 1);
    *ret_count = *ret_count < max ? *ret_count : max;
    return BH_OK;
}

static bh_rc
planted_has(void *self, const char *id, pid_t pid, bool *ret_inside, struct bh_err *err)
{
    *ret_inside = (uint64_t)pid / PIDS_EACH == planted_lease_of(id);
    return BH_OK;
}

static bh_rc
planted_freeze(void *self, const char *id, bool frozen, struct bh_err *err)
{
    planted_trace_put("freeze %s %d\n", id, frozen);
    return BH_OK;
}

static bh_rc
planted_signal(void *self, const char *id, int number, struct bh_err *err)
{
    planted_trace_put("signal %s %d\n", id, number);
    return BH_OK;
}

static bh_rc
planted_remove(void *self, const char *id, struct bh_err *err)
{
    planted_trace_put("remove %s\n", id);
    return BH_OK;
}

static bh_rc
planted_usage(void *self, const char *id, struct bh_sandbox_usage *ret_usage, struct bh_err *err)
{
    planted_trace_put("usage %s\n", id);
    *ret_usage = (struct bh_sandbox_usage){ .cpu_ns = 5, .bytes = 4096, .peak_bytes = 8192 };
    return BH_OK;
}

static const struct bh_runtime_ops runtime_ops = {
    .name = "planted",
    .prepare = planted_prepare,
    .command = planted_command,
    .processes = planted_runtime_processes,
    .has = planted_has,
    .freeze = planted_freeze,
    .signal = planted_signal,
    .destroy = planted_remove,
    .usage = planted_usage,
    .close = planted_close,
};

/* ---- the daemon ---- */

static void
planted_say(struct planted_node *planted, uint32_t number, const void *message)
{
    struct bh_buf frame;
    char ignored[4096];

    planted_trace_put("-- %s\n", bh_message_name(number));
    bh_buf_init(&frame, 1 << 20);
    bh_frame_encode(&frame, number, bh_message_fields(number), message);
    CHECK(write(world.peer, frame.bytes, frame.length) == (ssize_t)frame.length);
    bh_buf_fini(&frame);
    CHECK(planted->node.link);
    bh_session_read_frame(&planted->node, planted->orders);
    while (read(world.peer, ignored, sizeof ignored) > 0)
        ;
}

static void
planted_connect(struct planted_node *planted)
{
    struct bh_msg_hello hello = { .version = BH_WIRE_VERSION, .boot = 1, .site = "test" };
    int ends[2], bytes = 1 << 20;

    bh_node_disconnect(&planted->node);
    if (world.peer >= 0)
        close(world.peer);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    planted->node.link = bh_link_new(ends[0]);
    world.peer = ends[1];
    planted_say(planted, BH_MSG_HELLO, &hello);
}

static void
planted_order_carve(struct planted_node *planted, uint64_t partition, const char *profile, uint32_t start)
{
    bool share = strchr(profile, ':') != NULL, whole = strcmp(profile, "whole") == 0;
    struct bh_msg_carve carve = { .order = partition, .partition = partition, .start = start, .tenant = 7 };

    snprintf(carve.gpu, sizeof carve.gpu, "%s", world.gpus[share ? 1 : whole ? 2 : 0].uuid);
    snprintf(carve.profile, sizeof carve.profile, "%s", profile);
    if (share) {
        carve.cap_bytes = UINT64_C(8) << 30;
        carve.context_bytes = UINT64_C(512) << 20;
        carve.weight = 1050;
    }
    planted_say(planted, BH_MSG_CARVE, &carve);
}

static void
planted_order_lease(struct planted_node *planted, uint32_t number, uint64_t order, uint64_t lease)
{
    planted_say(planted, number, &(struct bh_msg_lease){ .order = order, .lease = lease });
}

static void
planted_order_stop(struct planted_node *planted, uint64_t order, uint64_t lease, bh_ns grace)
{
    planted_say(planted, BH_MSG_STOP,
                &(struct bh_msg_stop){ .order = order, .lease = lease, .grace_ns = grace });
}

static void
planted_order_start(struct planted_node *planted, uint64_t order, uint64_t partition)
{
    const char *args[] = { "/bin/true" };
    struct bh_msg_start start = {
        .order = order,
        .lease = order,
        .job = order,
        .args = { args, 1 },
        .image = "host",
        .cwd = "",
        .partitions = { { partition } },
        .partition_count = 1,
        .submitter_uid = 1000,
        .submitter_gid = 1000,
        .tenant_id = 7,
        .tenant = "org",
        .user = "ada",
        .sku = "small",
    };

    planted_say(planted, BH_MSG_START, &start);
}

/* ---- the clock ---- */

/* What the loop does when it turns (node_main.c), but for its descriptors. */
static void
planted_tick(struct planted_node *planted, bh_ns span)
{
    struct bh_node *node = &planted->node;

    world.now += span;
    planted_trace_put("-- after %" PRIu64 " ms\n", span / BH_NS_PER_MS);
    bh_job_watch_tick(node, world.now);
    bh_helper_sandboxes_tick(node, world.now);
    bh_scrubs_tick(node, world.now);
    bh_reset_tick(node, world.now);
    bh_checkpoints_tick(node, world.now);
    bh_orders_tick(planted->orders, world.now);
    bh_verify_tick(node, world.now);
    if (node->orphaned_count > 0)
        bh_session_collect(node);
    bh_survey_scan(node);
    bh_health_tick(node, world.now);
    bh_survey_answer_tick(node, world.now);
    bh_gpu_client_reap(node->gpus);
    planted_trace_put("next %" PRIu64 " %d %d\n", bh_node_shares_next(node), bh_reset_fd(node),
                      bh_gpu_client_response_fd(node->gpus));
    bh_node_shares_dispatch(node);
}

/* ---- bringing it up ---- */

static void
planted_make_conf(struct bh_node *node, const char *folder)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    char text[4096], path[BH_NODE_PATH_MAX];
    const char *const folders[] = { "state", "run", "logs", "boxes", "proc", "state/jobs" };
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(folders); i++) {
        bh_path_format(path, sizeof path, "%s/%s", folder, folders[i]);
        CHECK(mkdir(path, 0700) == 0);
    }
    snprintf(text, sizeof text,
             "state_dir = %s/state\nrun_dir = %s/run\nlog_dir = %s/logs\nproc_root = %s/proc\n"
             "cdi_dir = %s/cdi\ngpus = all\nverify_at_start = 0\nverify_sample = 0\ncheckpoint = 0\n"
             "cgroup_mount = %s/none\numoci = none\nskopeo = none\n",
             folder, folder, folder, folder, folder, folder);
    if (bh_conf_parse("node.conf", text, arena, &node->conf, &err) != BH_OK) {
        fprintf(stderr, "%s\n", err.msg);
        _exit(3);
    }
    node->conf.driver_lib_dir = "";
    bh_path_format(node->libexec, sizeof node->libexec, "%s/none", folder);
    bh_path_format(node->sandboxes, sizeof node->sandboxes, "%s/boxes", folder);
    snprintf(node->name, sizeof node->name, "n1");
    snprintf(node->boot, sizeof node->boot, "boot");
    snprintf(node->runtime_version, sizeof node->runtime_version, "crun 1.8");
}

static void
planted_make_tables(struct bh_node *node)
{
    struct bh_gpu_client_options options = { .program = "/nonexistent", .library = "none" };
    struct bh_err err;

    node->runtime = (struct bh_runtime){ &runtime_ops, NULL };
    node->device = (struct bh_device){ &device_ops, NULL };
    node->gpus = bh_gpu_client_new(&options);
    node->scan_arena = bh_arena_new(8 << 20);
    node->health = bh_health_watch_new();
    node->survey = bh_survey_new();
    node->helpers = bh_helper_sandboxes_new();
    node->scrubs = bh_scrubs_new();
    node->handover = bh_handover_new();
    node->reset = bh_reset_new();
    node->verify = bh_verify_new();
    node->checkpoints = bh_checkpoints_new();
    node->listener = node->claim_fd = -1;
    node->barrier_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    node->order_watermark.fd = memfd_create("reached", MFD_CLOEXEC);
    CHECK(bh_networks_open(node, &err) == BH_OK);
    CHECK(bh_state_open(&node->state, node->conf.state_dir, &err) == BH_OK);
}

/* A keeper that lives: its lock is held, by another open file than the node's. */
static void
planted_keep(struct bh_node *node, struct bh_job *job)
{
    char folder[BH_NODE_PATH_MAX], path[BH_NODE_PATH_MAX + 16];
    uint64_t lease = job->record.lease;

    bh_node_job_folder(node, lease, folder);
    CHECK(mkdir(folder, 0700) == 0 || errno == EEXIST);
    bh_path_format(path, sizeof path, "%s/keeper", folder);
    world.locks[lease] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(flock(world.locks[lease], LOCK_EX | LOCK_NB) == 0);
    job->pidfd = eventfd(0, EFD_CLOEXEC);
    job->running = job->sealed = true;
}

/* A job gets its keeper; a sandbox of the node's own is not made. */
bh_rc
__wrap_bh_launch(struct bh_node *node, const struct bh_launch *launch, struct bh_err *err)
{
    planted_trace_put("launch %" PRIu64 " %u\n", launch->start->lease, launch->job->record.slot);
    if (launch->start->lease >= BH_SCRUB_LEASES)
        return bh_err_set(err, BH_UNAVAILABLE, "nothing is run here");
    CHECK(launch->start->lease < LEASES_END);
    planted_keep(node, launch->job);
    return BH_OK;
}

/* It goes, and leaves what came of the job. */
static void
planted_end(struct bh_node *node, uint64_t lease)
{
    struct bh_msg_ended end = { .lease = lease, .cause = BH_END_EXITED, .started_ns = 1, .ended_ns = 2 };
    char folder[BH_NODE_PATH_MAX];
    struct bh_err err;

    bh_node_job_folder(node, lease, folder);
    CHECK(bh_exit_record_write(folder, &end, &err) == BH_OK);
    close(world.locks[lease]);
    world.locks[lease] = -1;
}

static struct bh_job *
planted_add_job(struct bh_node *node, uint64_t lease, uint64_t partition)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_LEASE,
                                     .lease = lease,
                                     .job = lease + 1000,
                                     .tenant = 7,
                                     .party = "org",
                                     .boot = "boot",
                                     .slot = bh_helper_sandbox_free_slot(node) };
    const struct bh_node_partition *lent = bh_state_partition(&node->state, partition);
    struct bh_err err;

    if (lent)
        record.lent[record.lent_count++] = *lent;
    CHECK(bh_state_record_owner(&node->state, &record, &err) == BH_OK);
    CHECK(bh_state_record(&node->state, &record, &err) == BH_OK);
    planted_keep(node, bh_state_job(&node->state, lease));
    return bh_state_job(&node->state, lease);
}

static void
planted_add_jobs(struct planted_node *planted)
{
    struct bh_node *node = &planted->node;
    struct bh_err err;
    struct bh_job *job;

    planted_add_job(node, LEASE_RUNS, 101);
    planted_add_job(node, LEASE_SHARES, 103);
    planted_add_job(node, LEASE_SHARES_TOO, 104);
    job = planted_add_job(node, LEASE_SUSPENDED, 105);
    job->frozen = true;
    CHECK(bh_state_record(
              &node->state,
              &(struct bh_node_record){ .kind = BH_NODE_RECORD_SUSPENDED, .lease = LEASE_SUSPENDED }, &err)
          == BH_OK);
    planted_add_job(node, LEASE_ENDED, 0);
    planted_end(node, LEASE_ENDED);
    bh_job_check(node, bh_state_job(&node->state, LEASE_ENDED));
    planted_add_job(node, LEASE_STOPS, 0);
    planted_order_stop(planted, 120, LEASE_STOPS, 3 * BH_NS_PER_S);
    planted_add_job(node, LEASE_STARTS, 0);
    CHECK(bh_state_record(&node->state,
                          &(struct bh_node_record){ .kind = BH_NODE_RECORD_ORDER,
                                                    .order = 121,
                                                    .message = BH_MSG_START,
                                                    .lease = LEASE_STARTS },
                          &err)
          == BH_OK);
    job = bh_state_job(&node->state, LEASE_STARTS);
    job->start_order = 121;
    job->unbuilt = true;
    bh_job_set_barrier(job);
}

static void
planted_add_shares(struct bh_node *node)
{
    struct bh_share_leases *leases;

    bh_node_shares_dispatch(node); /* makes the table; there is no shim, so nothing is opened */
    leases = node->share_leases;
    CHECK(leases);
    for (uint32_t i = 0; i < 2; i++)
        leases->rows[leases->count++] = (struct bh_share_lease_row){ .lease = LEASE_SHARES + i };
    bh_pending_notice_add(&leases->rows[0].pending_notices[0]);
    leases->rows[1].time[0].beyond_ns = BH_NS_PER_MS;
}

struct planted_node *
bh_planted_new(const char *folder, struct planted_trace *trace)
{
    struct planted_node *planted = calloc(1, sizeof *planted);
    struct bh_node *node = &planted->node;
    struct bh_err err;

    memset(&world, 0, sizeof world);
    memset(world.locks, -1, sizeof world.locks);
    world.peer = -1;
    world.now = 1000 * BH_NS_PER_S;
    for (uint32_t i = 0; i < GPUS; i++) {
        struct bh_device_gpu *gpu = &world.gpus[i];

        *gpu = (struct bh_device_gpu){ .product = "NVIDIA H100 80GB HBM3", .index = i, .minor = i };
        gpu->memory_mib = 81559;
        gpu->mig_capable = true;
        gpu->mig_enabled = i == 0;
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%u", i);
        snprintf(gpu->pci, sizeof gpu->pci, "0000:0%u:00.0", i);
    }
    planted_make_conf(node, folder);
    planted_make_tables(node);
    planted->orders = bh_orders_new(node);
    CHECK(bh_node_partition_scan(node, &err) == BH_OK);
    bh_health_state_learn(node);
    bh_gpu_client_watch(node->gpus, world.gpus[0].uuid, 0);
    planted_connect(planted);
    planted_order_carve(planted, 101, "1g.10gb", 0);
    planted_order_carve(planted, 102, "2g.20gb", 2);
    planted_order_carve(planted, 103, "25%:8Gi", 0);
    planted_order_carve(planted, 104, "25%:8Gi", 1);
    planted_order_carve(planted, 105, "whole", 0);
    planted_add_jobs(planted);
    planted_add_shares(node);
    world.busy = 1;
    planted_say(planted, BH_MSG_DESTROY, &(struct bh_msg_destroy){ .order = 122, .partition = 102 });
    world.trace = trace;
    return planted;
}

/* ---- its life ---- */

static void
planted_play_orders(struct planted_node *planted)
{
    planted_order_lease(planted, BH_MSG_SUSPEND, 130, LEASE_RUNS);
    planted_order_carve(planted, 106, "1g.10gb", 4);
    planted_order_carve(planted, 107, "25%:8Gi", 2);
    planted_say(planted, BH_MSG_DESTROY, &(struct bh_msg_destroy){ .order = 131, .partition = 101 });
    planted_say(planted, BH_MSG_TEST, &(struct bh_msg_gpu_order){ .order = 132, .gpu = "GPU-2" });
    planted_say(planted, BH_MSG_RESET, &(struct bh_msg_gpu_order){ .order = 133, .gpu = "GPU-2" });
    planted_order_lease(planted, BH_MSG_RESUME, 134, LEASE_SUSPENDED);
    planted_order_start(planted, 135, 107);
    planted_order_start(planted, 136, 105);
    planted_order_stop(planted, 137, LEASE_SHARES_TOO, BH_NS_PER_S);
    planted_order_carve(planted, 101, "1g.10gb", 0); /* again: answered from the journal */
}

static void
planted_play_reports(struct planted_node *planted)
{
    struct bh_node *node = &planted->node;

    world.events = 1;
    bh_health_events(node);
    bh_report_scanned(node, true);
    bh_report_inventory(node);
    planted_say(planted, BH_MSG_ACK,
                &(struct bh_msg_ack){ .order = 103, .lease = LEASE_ENDED, .receipt = 102 });
    planted_say(planted, BH_MSG_VERIFY, &(struct bh_msg_verify){ .request = 10, .lease = LEASE_RUNS });
}

static void
planted_play_ends(struct planted_node *planted)
{
    struct bh_node *node = &planted->node;
    struct bh_msg_retain_item leases[] = { { LEASE_SHARES }, { LEASE_SUSPENDED }, { LEASE_STARTS } };
    struct bh_msg_retain_item partitions[] = { { 103 }, { 105 } };
    struct bh_msg_retain retain = { .leases = { leases, BH_COUNT(leases) },
                                    .partitions = { partitions, BH_COUNT(partitions) } };

    planted_end(node, LEASE_STOPS);
    planted_end(node, LEASE_SHARES_TOO);
    for (uint32_t i = node->state.job_count; i-- > 0;)
        bh_job_watch_check(node, &node->state.jobs[i]);
    planted_say(planted, BH_MSG_RETAIN, &retain);
}

void
bh_planted_play(struct planted_node *planted)
{
    struct bh_node *node = &planted->node;
    struct bh_err err;

    planted_tick(planted, 200 * BH_NS_PER_MS);
    planted_play_orders(planted);
    planted_tick(planted, BH_NS_PER_S);
    planted_play_reports(planted);
    planted_tick(planted, 5 * BH_NS_PER_S);
    planted_play_ends(planted);
    planted_tick(planted, BH_NS_PER_S);
    planted_connect(planted);
    planted_tick(planted, 40 * BH_NS_PER_S);
    node->state.compact_above = 1;
    CHECK(bh_state_compact(&node->state, &err) == BH_OK);
    bh_gpu_client_hide(node->gpus, NULL, 0);
    bh_orders_drop(planted->orders, 132);
    planted_tick(planted, BH_NS_PER_S);
    planted_trace_put("end %u %u %u %u\n", node->state.order_count, node->state.partition_count,
                      node->state.job_count, node->state.receipt_count);
}
