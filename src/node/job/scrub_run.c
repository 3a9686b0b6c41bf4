#include "node/job/scrub_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/json.h"
#include "node/common/path.h"
#include "node/core/driver.h"
#include "node/sandbox/isolation_checks.h"

enum { PIDS = 256 };
#define POLL_INTERVAL (2 * BH_NS_PER_MS)
#define KILL_INTERVAL (50 * BH_NS_PER_MS)
#define KILL_TIMEOUT (5 * BH_NS_PER_S)

/* ---- is there anything to run? ---- */

bool
bh_scrub_has_helper(const struct bh_node *node, char *ret_why, size_t size)
{
    struct bh_driver_paths found;
    char path[BH_NODE_PATH_MAX];

    bh_path_format(path, sizeof path, "%s/bulkhead-scrub", node->libexec);
    if (access(path, X_OK) != 0) {
        snprintf(ret_why, size, "there is no %.150s", path);
        return false;
    }
    bh_path_format(path, sizeof path, "%.480s/libcuda.so.1", node->conf.driver_lib_dir);
    bh_node_driver_find(&node->conf, "libcuda.so.1", &found);
    if (found.count > 0 || (node->conf.driver_lib_dir[0] != '\0' && access(path, R_OK) == 0))
        return true;
    snprintf(ret_why, size, "there is no libcuda.so.1");
    return false;
}

/* ---- one run ---- */

static bh_ns
time_left(const struct bh_node *node)
{
    return bh_time_monotonic() + node->conf.scrub_timeout_ms * BH_NS_PER_MS;
}

bh_rc
bh_scrub_run_begin(struct bh_node *node, const struct bh_node_partition *partition, uint64_t most,
                   struct bh_scrub_run *run, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    uint64_t seed = bh_time_monotonic();
    const char *args[] = { BH_ROOTFS_LIBEXEC "/scrub",
                           "--uuid",
                           partition->uuid,
                           "--seed",
                           bh_arena_printf(arena, "%" PRIu64, seed),
                           "--most",
                           bh_arena_printf(arena, "%" PRIu64, most) };
    const char *env[] = { bh_arena_printf(arena, "CUDA_VISIBLE_DEVICES=%s", partition->uuid) };
    struct bh_msg_start start = {
        .lease = BH_SCRUB_LEASES + partition->partition,
        .job = BH_SCRUB_LEASES + partition->partition,
        .cwd = "",
        .pids = PIDS < node->conf.pids_max ? PIDS : node->conf.pids_max,
        .submitter_uid = BH_PATH_NOBODY,
        .submitter_gid = BH_PATH_NOBODY,
        .args = { args, BH_COUNT(args) },
        .env = { env, BH_COUNT(env) },
    };
    struct bh_helper_sandbox_request request = { .start = &start, .lent = partition, .alone = true };

    BH_ASSERT(args[4] && args[6] && env[0]);
    *run = (struct bh_scrub_run){ .step = BH_SCRUB_RUN_BUILDS, .until = time_left(node) };
    return bh_helper_sandbox_start(node, &request, &run->helper, err);
}

static void
kill_for(struct bh_node *node, struct bh_scrub_run *run)
{
    run->step = BH_SCRUB_RUN_DIES;
    run->until = bh_time_monotonic() + KILL_TIMEOUT;
    bh_helper_sandbox_kill(node, run->helper);
}

/* It is inspected like a job before it begins (node/verify/start_barrier.h). */
static void
scrub_run_release(struct bh_node *node, struct bh_scrub_run *run)
{
    struct bh_report report;
    bh_rc rc;

    if (!bh_isolation_checks_of_helper(node, run->helper, &report) || bh_report_is_trespass(&report))
        return; /* inspected again: a trespassing job is ended meanwhile */
    rc = bh_report_result(&report) == BH_CHECK_PASS
             ? bh_helper_sandbox_release(run->helper, &run->why)
             : bh_err_set(&run->why, BH_UNAVAILABLE, "the helper's sandbox: %.160s", report.why);
    run->step = BH_SCRUB_RUN_WORKS;
    run->until = time_left(node);
    if (rc != BH_OK)
        kill_for(node, run);
}

/* The last line that begins with the word and has only the report. */
static bh_rc
read_report(const struct bh_scrub_run *run, struct bh_scrub_report *ret_report, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    char text[BH_HELPER_SANDBOX_OUTPUT_MAX];
    const char *line = NULL;
    bh_rc rc;

    bh_helper_sandbox_read(run->helper, text);
    for (const char *at = text; (at = strstr(at, BH_SCRUB_PREFIX)); at++)
        line = at + strlen(BH_SCRUB_PREFIX);
    if (!line || !strchr(line, '\n'))
        return bh_err_set(err, BH_IO, "the helper died%s%.150s", *text ? ": " : " without a message", text);
    rc = bh_json_decode(line, strcspn(line, "\n"), &bh_scrub_report_fields, ret_report, arena, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "the helper's answer");
}

bool
bh_scrub_run_advance(struct bh_node *node, struct bh_scrub_run *run, bh_ns *ret_next,
                     struct bh_scrub_report *ret_report, struct bh_err *ret_err)
{
    bh_ns now = bh_time_monotonic();
    bool ended = bh_helper_sandbox_has_ended(run->helper);

    if (!ended && run->step == BH_SCRUB_RUN_BUILDS)
        scrub_run_release(node, run);
    if (!ended && run->step != BH_SCRUB_RUN_DIES && now >= run->until) {
        bh_err_set(&run->why, BH_TIMEOUT, "the helper did not end within %u ms", node->conf.scrub_timeout_ms);
        kill_for(node, run);
    } else if (!ended && run->step == BH_SCRUB_RUN_DIES) {
        bh_helper_sandbox_kill(node, run->helper);
    }
    if (!ended && now < run->until) {
        *ret_next = run->step == BH_SCRUB_RUN_BUILDS ? now + POLL_INTERVAL
                    : run->step == BH_SCRUB_RUN_DIES ? now + KILL_INTERVAL
                                                     : run->until;
        return false;
    }
    *ret_err = run->why;
    if (run->step != BH_SCRUB_RUN_DIES)
        ret_err->rc = read_report(run, ret_report, ret_err);
    bh_helper_sandbox_remove(node, run->helper);
    run->helper = NULL;
    return true;
}
