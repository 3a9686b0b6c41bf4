/* bulkhead-node: the only part of Bulkhead that is root on a GPU server.  One thread, one
 * poll loop, no network: it does what its connection's table of orders allows, within
 * node.conf, and writes each order down before it begins it. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/common/path.h"
#include "node/common/registry.h"
#include "node/core/claim.h"
#include "node/core/driver.h"
#include "node/core/host.h"
#include "node/core/scratch.h"
#include "node/job/checkpoint.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/job/share_compare.h"
#include "node/job/stream.h"
#include "node/orders/order.h"
#include "node/orders/order_watermark.h"
#include "node/partition/health.h"
#include "node/partition/partition.h"
#include "node/partition/reset.h"
#include "node/placement/cdi.h"
#include "node/placement/handover.h"
#include "node/placement/health_state.h"
#include "node/placement/share_slot.h"
#include "node/placement/survey.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/network.h"
#include "node/sandbox/store.h"
#include "node/session/epoch.h"
#include "node/session/job_mapping.h"
#include "node/session/job_watch.h"
#include "node/session/report.h"
#include "node/session/session.h"
#include "node/session/survey_answer.h"
#include "node/share/share_lease.h"
#include "node/verify/start_barrier.h"
#include "node/verify/verify.h"
#include "runtime/crun.h"

enum {
    HELPERS_AT = 8,
    EVENTS_AT = HELPERS_AT + BH_HELPER_SANDBOXES_MAX,
    FIXED_POLLS = EVENTS_AT + BH_GPU_WATCHED_MAX,
    EXIT_USAGE = 2
};
#define COLLECT_INTERVAL (200 * BH_NS_PER_MS)

/* ---- the partitions of the program ---- */

static bh_rc
node_make_folders(struct bh_node *node, struct bh_err *err)
{
    char jobs[BH_NODE_PATH_MAX];
    const char *const own[] = { node->conf.state_dir, jobs, node->conf.log_dir, node->conf.run_dir,
                                node->sandboxes };
    bh_rc rc;

    bh_path_format(jobs, sizeof jobs, "%s/jobs", node->conf.state_dir);
    bh_path_format(node->sandboxes, sizeof node->sandboxes, "%s/boxes", node->conf.run_dir);
    rc = bh_dir_make(jobs, 0700, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_dir_make(node->conf.log_dir, 0750, err);
    if (rc != BH_OK)
        return rc;
    if (lchown(node->conf.log_dir, 0, node->conf.daemon_gid) != 0)
        return bh_err_errno(err, "give %s to the daemon's group", node->conf.log_dir);
    rc = bh_dir_make(node->conf.run_dir, 0755, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_dir_make(node->sandboxes, 0711, err);
    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < BH_COUNT(own); i++) {
        rc = bh_host_check_folder(own[i], err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

static bh_rc
node_open_barrier(struct bh_node *node, struct bh_err *err)
{
    node->barrier_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return node->barrier_fd < 0 ? bh_err_errno(err, "make an event counter") : BH_OK;
}

static bh_rc
node_open_runtime(struct bh_node *node, struct bh_err *err)
{
    char state[BH_NODE_PATH_MAX];
    struct bh_crun_options options = { .program = node->conf.runtime,
                                       .state = state,
                                       .cgroup_mount = node->conf.cgroup_mount,
                                       .cgroup_parent = node->conf.cgroup_parent,
                                       .strict = node->conf.seccomp_strict };
    bh_rc rc = bh_crun_version(node->conf.runtime, node->runtime_version, sizeof node->runtime_version, err);

    bh_path_format(state, sizeof state, "%s/crun", node->sandboxes);
    return rc == BH_OK ? bh_crun_open(&options, &node->runtime, err) : rc;
}

static bh_rc
node_open_gpus(struct bh_node *node, struct bh_err *err)
{
    char program[BH_NODE_PATH_MAX + 16];
    const char *env[BH_PARAM_LIST_MAX + 1] = { 0 };
    struct bh_gpu_client_options options = {
        .program = program,
        .library = node->conf.nvml_library,
        .proc_root = node->conf.proc_root,
        .env = env,
        .change_deadline = node->conf.call_timeout_ms * BH_NS_PER_MS,
    };

    for (uint32_t i = 0; i < node->conf.driver_env.count; i++)
        env[i] = node->conf.driver_env.items[i];
    bh_path_format(program, sizeof program, "%s/bulkhead-gpu", node->libexec);
    node->gpus = bh_gpu_client_new(&options);
    node->device = bh_gpu_client_device(node->gpus);
    node->health = bh_health_watch_new();
    node->survey = bh_survey_new();
    node->scan_arena = bh_arena_new(8 << 20);
    if (bh_node_partition_scan(node, err) != BH_OK) /* a server may wait for its driver */
        bh_log(EFFECT_FAILED, BH_STR("what", "scan"), BH_ERRLOG(err));
    for (uint32_t i = 0; i < node->inventory.gpu_count; i++)
        bh_log(GPU_FOUND, BH_STR("gpu", node->inventory.gpus[i].uuid),
               BH_STR("product", node->inventory.gpus[i].product));
    return BH_OK;
}

static bh_rc
node_open_listener(struct bh_node *node, struct bh_err *err)
{
    bh_rc rc = bh_unix_listen(node->conf.socket, 0600, &node->listener, err);

    if (rc != BH_OK)
        return rc;
    if (chown(node->conf.socket, node->conf.daemon_uid, (gid_t)-1) != 0)
        return bh_err_errno(err, "give %s to the daemon", node->conf.socket);
    return BH_OK;
}

/* What runs beside jobs and orders. */
static void
node_make_tables(struct bh_node *node)
{
    node->helpers = bh_helper_sandboxes_new();
    node->scrubs = bh_scrubs_new();
    node->handover = bh_handover_new();
    node->reset = bh_reset_new();
    node->verify = bh_verify_new();
    node->checkpoints = bh_checkpoints_new();
}

static bh_rc
node_open_rootfs(struct bh_node *node, struct bh_err *err)
{
    bh_driver_read_places(node);
    return bh_rootfs_open(&node->conf, node->sandboxes, node->libexec, &node->rootfs, err);
}

static bh_rc
node_open_state(struct bh_node *node, struct bh_err *err)
{
    return bh_state_open(&node->state, node->conf.state_dir, err);
}

static bh_rc
node_reconcile(struct bh_node *node, struct bh_err *err)
{
    return bh_node_partition_reconcile(node, NULL, err);
}

/* In this order: each needs those before it. */
static bh_rc (*const openers[])(struct bh_node *node, struct bh_err *err) = {
    bh_host_lock,      bh_host_isolate,     bh_host_describe,        node_open_barrier,
    node_open_runtime, bh_claim_groups,     bh_networks_open,        node_open_rootfs,
    node_open_state,   bh_node_epochs_open, bh_order_watermark_open, bh_store_sweep,
    node_open_gpus,    node_reconcile,
};

static bh_rc
node_open_all(struct bh_node *node, struct bh_err *err)
{
    bh_rc rc = node_make_folders(node, err);

    node_make_tables(node);
    for (size_t i = 0; i < BH_COUNT(openers) && rc == BH_OK; i++)
        rc = openers[i](node, err);
    if (rc != BH_OK)
        return rc;
    bh_checkpoint_probe(node);
    return BH_OK;
}

static void
node_close_all(struct bh_node *node)
{
    bh_helper_sandboxes_free(node);
    bh_claim_leave(node); /* without jobs, nothing of this node stays behind */
    bh_node_disconnect(node);
    bh_order_watermark_close(node);
    bh_fd_close(node->listener);
    if (node->gpus)
        bh_gpu_client_free(node->gpus);
    if (node->runtime.ops)
        node->runtime.ops->close(node->runtime.self);
    bh_sealed_close(&node->sealed_runtime);
    bh_fd_close(node->barrier_fd);
    bh_health_watch_free(node->health);
    bh_survey_free(node->survey);
    bh_rootfs_close(node->rootfs);
    bh_networks_close(node->networks);
    if (node->scan_arena)
        bh_arena_free(node->scan_arena);
    bh_verify_free(node->verify);
    bh_node_shares_free(node);
    bh_scrubs_free(node->scrubs);
    bh_handover_free(node->handover);
    bh_reset_free(node->reset);
    bh_checkpoints_free(node->checkpoints);
    bh_state_close(&node->state);
}

/* ---- the loop ---- */

struct node_loop {
    struct bh_node *node;
    struct bh_orders *orders;
    struct bh_node_streams *streams;
    int signals;
    struct pollfd *polls;
    uint64_t *leases; /* polls[FIXED_POLLS + i] is the keeper of leases[i] */
    uint32_t watched;
};

static void
node_list_fds(struct pollfd *polls, uint32_t capacity, const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < capacity; i++)
        polls[i] = (struct pollfd){ .fd = i < count ? fds[i] : -1, .events = POLLIN };
}

static bool
node_has_events(const struct node_loop *loop)
{
    for (uint32_t i = EVENTS_AT; i < FIXED_POLLS; i++)
        if (loop->polls[i].revents)
            return true;
    return false;
}

static void
node_list_polls(struct node_loop *loop)
{
    struct bh_node *node = loop->node;
    int helpers[BH_HELPER_SANDBOXES_MAX], events[BH_GPU_WATCHED_MAX];

    loop->polls[0] = (struct pollfd){ .fd = loop->signals, .events = POLLIN };
    loop->polls[1] = (struct pollfd){ .fd = node->listener, .events = POLLIN };
    loop->polls[2] = (struct pollfd){ .fd = -1 };
    if (node->link)
        loop->polls[2] =
            (struct pollfd){ .fd = bh_link_fd(node->link), .events = bh_link_interest(node->link) };
    loop->polls[3] = (struct pollfd){ .fd = bh_networks_watch(node), .events = POLLIN };
    loop->polls[4] = (struct pollfd){ .fd = bh_node_streams_fd(loop->streams), .events = POLLIN };
    loop->polls[5] = (struct pollfd){ .fd = bh_reset_fd(node), .events = POLLIN };
    loop->polls[6] = (struct pollfd){ .fd = bh_gpu_client_response_fd(node->gpus), .events = POLLIN };
    loop->polls[7] = (struct pollfd){ .fd = node->barrier_fd, .events = POLLIN };
    node_list_fds(loop->polls + HELPERS_AT, BH_HELPER_SANDBOXES_MAX, helpers,
                  bh_helper_sandboxes_fds(node, helpers));
    node_list_fds(loop->polls + EVENTS_AT, BH_GPU_WATCHED_MAX, events,
                  bh_gpu_client_event_fds(node->gpus, events));
    loop->watched = 0;
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        if (job->pidfd < 0)
            continue;
        loop->leases[loop->watched] = job->record.lease;
        loop->polls[FIXED_POLLS + loop->watched++] = (struct pollfd){ .fd = job->pidfd, .events = POLLIN };
    }
}

/* What runs beside the loop first: orders wait for it. */
static bh_ns
node_tick_orders(struct node_loop *loop, bh_ns now)
{
    struct bh_node *node = loop->node;
    bh_ns next = bh_job_watch_tick(node, now);

    next = bh_node_sooner(next, bh_helper_sandboxes_tick(node, now));
    next = bh_node_sooner(next, bh_scrubs_tick(node, now));
    next = bh_node_sooner(next, bh_reset_tick(node, now));
    next = bh_node_sooner(next, bh_checkpoints_tick(node, now));
    next = bh_node_sooner(next, bh_orders_tick(loop->orders, now));
    return bh_node_sooner(next, bh_verify_tick(node, now));
}

/* Things that are due by time; how long poll may wait, in ms, or -1. */
static int
node_tick(struct node_loop *loop)
{
    struct bh_node *node = loop->node;
    bh_ns now = bh_time_monotonic(), next = node_tick_orders(loop, now);

    if (node->orphaned_count > 0 && node->collect_at <= now) {
        bh_session_collect(node);
        node->collect_at = now + COLLECT_INTERVAL;
    }
    if (node->orphaned_count > 0)
        next = bh_node_sooner(next, node->collect_at);
    if (node->hello_received && node->sample_at <= now) {
        bh_survey_scan(node);
        node->sample_at = now + node->conf.sample_interval_ms * BH_NS_PER_MS;
    }
    if (node->hello_received)
        next = bh_node_sooner(next, node->sample_at);
    next = bh_node_sooner(next, bh_disk_watch_tick(node, now));
    next = bh_node_sooner(next, bh_health_tick(node, now));
    next = bh_node_sooner(next, bh_survey_answer_tick(node, now));
    next = bh_node_sooner(next, bh_node_shares_next(node));
    bh_job_mapping_tick(node);
    if (!next)
        return -1;
    return next <= now ? 0 : (int)((next - now) / BH_NS_PER_MS) + 1;
}

static void
node_check_keepers(struct node_loop *loop)
{
    for (uint32_t i = 0; i < loop->watched; i++) {
        struct bh_job *job;

        if (!loop->polls[FIXED_POLLS + i].revents)
            continue;
        job = bh_state_job(&loop->node->state, loop->leases[i]);
        if (job)
            bh_job_watch_check(loop->node, job);
    }
}

static void
node_write_link(struct bh_node *node)
{
    struct bh_err err;

    if (node->link && bh_link_flush(node->link, &err) != BH_OK)
        bh_node_disconnect(node);
}

static bh_rc
node_dispatch(struct node_loop *loop, bool *ret_stop, struct bh_err *err)
{
    struct bh_node *node = loop->node;
    int wait = node_tick(loop);

    node_list_polls(loop);
    if (poll(loop->polls, FIXED_POLLS + loop->watched, wait) < 0 && errno != EINTR)
        return bh_err_errno(err, "poll");
    bh_gpu_client_reap(node->gpus);
    *ret_stop = loop->polls[0].revents != 0;
    node_check_keepers(loop);
    if (node_has_events(loop))
        bh_health_events(node);
    if (loop->polls[3].revents)
        bh_networks_repair(node);
    if (loop->polls[2].revents & POLLOUT)
        node_write_link(node);
    if (node->link && loop->polls[2].revents & (POLLIN | POLLHUP | POLLERR))
        bh_session_read_frame(node, loop->orders);
    if (loop->polls[1].revents)
        bh_session_accept(node);
    if (loop->polls[4].revents)
        bh_node_streams_dispatch(loop->streams);
    if (loop->polls[7].revents)
        bh_start_barrier_notified(node);
    bh_node_shares_dispatch(node);
    if (bh_state_compact(&node->state, err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "rewrite of the journal"), BH_ERRLOG(err));
    return BH_OK;
}

static bh_rc
node_open_signals(int *ret_fd, struct bh_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? bh_err_errno(err, "wait for signals") : BH_OK;
}

static bh_rc
node_run(struct bh_node *node, struct bh_err *err)
{
    BH_AUTO(bh_orders_free) struct bh_orders *orders = bh_orders_new(node);
    struct node_loop loop = { .node = node, .orders = orders };
    bool stop = false;
    bh_rc rc = node_open_signals(&loop.signals, err);

    if (rc != BH_OK)
        return rc;
    bh_orders_repair(orders);
    bh_job_watch_adopt(node);
    bh_cdi_reconcile(node);
    bh_scratch_sweep(node);
    bh_networks_restore(node);
    bh_verify_begin(node);
    rc = node_open_listener(node, err);
    if (rc == BH_OK)
        rc = bh_node_streams_open(node, &loop.streams, err);
    loop.polls = calloc(FIXED_POLLS + BH_JOBS_MAX, sizeof *loop.polls);
    loop.leases = calloc(BH_JOBS_MAX, sizeof *loop.leases);
    BH_ASSERT(loop.polls && loop.leases);
    if (rc == BH_OK)
        bh_log(READY, BH_STR("socket", node->conf.socket));
    while (rc == BH_OK && !stop)
        rc = node_dispatch(&loop, &stop, err);
    if (stop)
        bh_log(STOPPING, BH_STR("jobs", "keep running under their keepers"));
    bh_node_streams_close(loop.streams);
    free(loop.polls);
    free(loop.leases);
    bh_fd_close(loop.signals);
    return rc;
}

/* ---- the command line ---- */

static const char usage[] =
    "usage: bulkhead-node --config FILE [--log-json] [--foreground]\n"
    "       bulkhead-node --help | --help-config | --version\n"
    "\n"
    "Runs jobs and carves GPUs for bulkheadd on this machine, as root, within node.conf.\n"
    "\n"
    "  --config FILE   node.conf, usually /etc/bulkhead/node.conf\n"
    "  --log-json      log lines as JSON\n"
    "  --foreground    stay in the foreground (the only way it runs)\n"
    "  --help-config   the parameters of node.conf\n";

struct node_options {
    const char *config;
    bool json;
};

/* -1: continue; else the exit status. */
static int
node_read_options(int argc, char **argv, struct node_options *options)
{
    /* clang-format off */
    static const struct option names[] = {
        { "config", required_argument, NULL, 'c' },   { "log-json", no_argument, NULL, 'j' },
        { "foreground", no_argument, NULL, 'f' },     { "help", no_argument, NULL, 'h' },
        { "help-config", no_argument, NULL, 'p' },    { "version", no_argument, NULL, 'v' },
        { 0 },
    };
    /* clang-format on */

    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (option) {
        case 'c':
            options->config = optarg;
            break;
        case 'j':
            options->json = true;
            break;
        case 'f':
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'p':
            bh_conf_help();
            return 0;
        case 'v':
            puts("bulkhead-node " BH_VERSION);
            return 0;
        default:
            fputs(usage, stderr);
            return EXIT_USAGE;
        }
    }
    if (!options->config || optind != argc) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    return -1;
}

int
main(int argc, char **argv)
{
    static struct bh_node node = {
        .listener = -1, .order_watermark.fd = -1, .claim_fd = -1, .barrier_fd = -1
    };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct node_options options = { 0 };
    int status = node_read_options(argc, argv, &options);
    struct bh_err err = { 0 };
    bh_rc rc;

    if (status >= 0)
        return status;
    bh_log_setup("bulkhead-node", options.json, BH_LOG_INFO);
    rc = bh_conf_read(options.config, arena, &node.conf, &err);
    if (rc == BH_OK)
        rc = bh_registries_check(&node.conf, &err);
    if (rc != BH_OK) {
        bh_log(CONFIG_REFUSED, BH_ERRLOG(&err), BH_STR("next", err.hint));
        return bh_rc_exit(rc);
    }
    umask(022);
    (void)!setgroups(0, NULL);
    rc = node_open_all(&node, &err);
    if (rc == BH_OK)
        rc = node_run(&node, &err);
    if (rc != BH_OK)
        bh_log(FAILED, BH_ERRLOG(&err), BH_STR("next", err.hint));
    node_close_all(&node);
    return bh_rc_exit(rc);
}
