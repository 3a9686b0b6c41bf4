#include "node/checkpoint.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/utf8.h"
#include "model/driver.h"
#include "model/job.h"
#include "node/checkpoint_run.h"
#include "node/job.h"
#include "node/path.h"
#include "node/share_lease.h"
#include "node/scrub.h"
#include "node/share_slot.h"
#include "runtime/readback.h"

enum { COURSES_MAX = 16, LEAST_BRANCH = 570, WHY_MAX = 300 };
#define PROBE_GLANCE (2 * BH_NS_PER_MS)

static const char helper_stuck[] = "a helper sits in the driver and does not end";

/* A job on its way out or back. */
struct course {
    enum { FREE, GOES, AWAY, COMES, OVER, STUCK } step; /* STUCK: over, but its helper is not */
    uint64_t lease, order;          /* order 0: none, after a start of the node */
    struct bh_checkpoint_run run;
    bh_ns look_at;                  /* monotonic */
    bool bad;                       /* over: its processes are not as they were */
    bool undoes;                    /* it comes back because it could not go */
    char why[WHY_MAX];              /* over: why it did not go, or could not come back */
};

struct bh_checkpoints {
    struct course course[COURSES_MAX];
    char missing[100];              /* why the calls are not there; "": they are */
    bool adopts;                    /* jobs of before wait for a place in the table */
};

struct bh_checkpoints *
bh_checkpoints_new(void)
{
    struct bh_checkpoints *checkpoints = calloc(1, sizeof *checkpoints);

    BH_ASSERT(checkpoints);
    snprintf(checkpoints->missing, sizeof checkpoints->missing, "not looked for yet");
    return checkpoints;
}

void
bh_checkpoints_free(struct bh_checkpoints *checkpoints)
{
    for (uint32_t i = 0; checkpoints && i < COURSES_MAX; i++)
        if (checkpoints->course[i].run.pid)
            kill(checkpoints->course[i].run.pid, SIGKILL);
    free(checkpoints);
}

/* ---- can it be done here? ---- */

void
bh_checkpoint_probe(struct bh_node *node)
{
    char *missing = node->checkpoints->missing;
    struct bh_checkpoint_report report;
    struct bh_checkpoint_run run;
    struct bh_err err;
    bh_ns next;
    bh_rc rc = bh_checkpoint_run_begin(node, NULL, BH_CHECKPOINT_PROBE, &run, &err);

    while (rc == BH_OK
           && !bh_checkpoint_run_go_on(&run, bh_time_monotonic(), &next, &report, &err))
        bh_time_sleep(PROBE_GLANCE);
    if (rc == BH_OK)
        rc = err.rc;
    snprintf(missing, sizeof node->checkpoints->missing, "%.99s",
             rc != BH_OK                         ? err.msg
             : report.end == BH_CHECKPOINT_DONE  ? ""
                                                 : report.why);
    bh_utf8_scrub(missing);
}

static bool
has_calls(const struct bh_node *node, char *ret_why, size_t size)
{
    const char *driver = node->inventory.driver;
    struct bh_driver_version version;
    struct bh_err ignored;

    if (!node->conf.checkpoint)
        snprintf(ret_why, size, "checkpoint = 0 in node.conf");
    else if (bh_driver_parse(driver, &version, &ignored) != BH_OK)
        snprintf(ret_why, size, "the driver's version is not known");
    else if (version.branch < LEAST_BRANCH)
        snprintf(ret_why, size, "driver %.40s is older than %d", driver, LEAST_BRANCH);
    else if (*node->checkpoints->missing)
        snprintf(ret_why, size, "%s", node->checkpoints->missing);
    else
        return true;
    return false;
}

void
bh_checkpoint_describe(const struct bh_node *node, char *ret_text, size_t size)
{
    char why[WHY_MAX];

    if (has_calls(node, why, sizeof why))
        snprintf(ret_text, size, "yes");
    else
        snprintf(ret_text, size, "no: %.140s", why);
}

/* ---- can it be done with this job? ---- */

/* The vendor's calls know no MIG; and the instance may be carved anew meanwhile, as another. */
static bool
has_instance(const struct bh_job *job)
{
    for (uint32_t i = 0; i < job->note.lent_count; i++)
        if (bh_share_slot_is_instance(&job->note.lent[i]))
            return true;
    return false;
}

static uint64_t
available_bytes(void)
{
    char memory[4096];
    struct bh_buf text;
    struct bh_err ignored;
    const char *line;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    if (bh_file_read("/proc/meminfo", sizeof memory - 1, &text, &ignored) != BH_OK)
        return 0;
    line = strstr(bh_buf_text(&text), "MemAvailable:");
    return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10 : 0;
}

/* The driver keeps what it takes off the GPU in memory of the job's own processes. */
static bool
has_room(const struct bh_node *node, uint64_t lease, uint64_t mib, char *ret_why, size_t size)
{
    struct bh_sandbox_usage usage = { 0 };
    struct bh_limits limits = { 0 };
    struct bh_cgroup_host groups;
    uint64_t room, available = available_bytes() >> 20;
    char id[32], path[BH_NODE_PATH_MAX];
    struct bh_err err;
    bh_rc rc;

    bh_node_job_id(lease, id);
    bh_path_format(path, sizeof path, "%s/%s", node->conf.cgroup_parent, id);
    rc = bh_cgroup_probe(node->conf.cgroup_mount, &groups, &err);
    if (rc == BH_OK)
        rc = bh_readback_limits(&groups, path, &limits, &err);
    if (rc == BH_OK)
        rc = node->runtime.ops->usage(node->runtime.self, id, &usage, &err);
    if (rc != BH_OK) {
        snprintf(ret_why, size, "%.200s", err.msg);
        return false;
    }
    usage.bytes -= usage.file_bytes < usage.bytes ? usage.file_bytes : usage.bytes;
    room = limits.memory_bytes < usage.bytes ? 0 : (limits.memory_bytes - usage.bytes) >> 20;
    if (room < mib)
        snprintf(ret_why, size, "%" PRIu64 " MiB on the GPU do not fit into the %" PRIu64
                 " MiB that are left of the job's memory limit", mib, room);
    else if (available < mib)
        snprintf(ret_why, size, "%" PRIu64 " MiB on the GPU do not fit into the %" PRIu64
                 " MiB of main memory that this machine has left", mib, available);
    return room >= mib && available >= mib;
}

static bool
can_go(const struct bh_node *node, const struct bh_job *job, const struct bh_job_on_gpu *on_gpu,
       char *ret_why, size_t size)
{
    if (!has_calls(node, ret_why, size))
        return false;
    if (has_instance(job))
        snprintf(ret_why, size, "the driver's checkpoint calls do not know MIG instances");
    else if (on_gpu->count > BH_COUNT(on_gpu->pids))
        snprintf(ret_why, size, "%u of its processes use the GPU: more than %d", on_gpu->count,
                 BH_CHECKPOINT_PIDS_MAX);
    else
        return has_room(node, job->note.lease, on_gpu->memory_mib, ret_why, size);
    return false;
}

/* ---- the table ---- */

static struct course *
find(const struct bh_node *node, uint64_t lease)
{
    for (uint32_t i = 0; i < COURSES_MAX; i++) {
        struct course *course = &node->checkpoints->course[i];

        if (course->step != FREE && course->lease == lease)
            return course;
    }
    return NULL;
}

static struct course *
find_room(const struct bh_node *node)
{
    for (uint32_t i = 0; i < COURSES_MAX; i++)
        if (node->checkpoints->course[i].step == FREE)
            return &node->checkpoints->course[i];
    return NULL;
}

static bool
is_under_way(const struct course *course)
{
    return course->step == GOES || course->step == COMES;
}

bool
bh_checkpoint_runs(const struct bh_node *node, uint64_t order)
{
    for (uint32_t i = 0; i < COURSES_MAX; i++) {
        const struct course *course = &node->checkpoints->course[i];

        if (is_under_way(course) && course->order == order)
            return true;
    }
    return false;
}

/* Its helper may still sit in the driver: then nobody else is sent to that job. */
static void
let_go(struct course *course)
{
    if (bh_checkpoint_run_is_stuck(&course->run))
        course->step = STUCK;
    else
        *course = (struct course){ .step = FREE };
}

/* ---- notes ---- */

static bh_rc
note_aside(struct bh_node *node, const struct bh_job *job, const struct bh_job_on_gpu *on_gpu,
           struct bh_err *err)
{
    struct bh_note note = { .kind = BH_NOTE_ASIDE, .lease = job->note.lease,
                            .pid_count = on_gpu->count };
    bh_rc rc;

    memcpy(note.pids, on_gpu->pids, sizeof note.pids);
    rc = bh_state_note(&node->state, &note, err);
    return rc == BH_OK ? bh_state_sync(&node->state, err) : rc;
}

/* Not noted is not lost: what is given back twice is given back once. */
static void
note_back(struct bh_node *node, uint64_t lease)
{
    struct bh_note note = { .kind = BH_NOTE_BACK, .lease = lease };
    struct bh_err err;

    if (bh_state_job(&node->state, lease) && bh_state_note(&node->state, &note, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", lease), BH_ERRLOG(&err));
}

/* ---- its steps ---- */

static void
add_why(struct course *course, const char *why)
{
    size_t used = strlen(course->why);

    snprintf(course->why + used, sizeof course->why - used, "%s%.*s", used ? "; then: " : "",
             WHY_MAX / 2, why);
    bh_utf8_scrub(course->why);
}

static bh_rc
begin(struct bh_node *node, struct course *course, enum bh_checkpoint_action action,
      struct bh_err *err)
{
    const struct bh_job *job = bh_state_job(&node->state, course->lease);
    bh_rc rc = job && !job->ended
                   ? bh_checkpoint_run_begin(node, job, action, &course->run, err)
                   : bh_err_set(err, BH_CONFLICT, "the job has ended");

    course->look_at = bh_time_monotonic();
    if (rc != BH_OK)
        return rc;
    bh_node_share_pause(node, course->lease); /* locked, it could not answer to a turn */
    course->step = action == BH_CHECKPOINT_TAKE ? GOES : COMES;
    return BH_OK;
}

static void
fail(struct course *course, const char *why)
{
    add_why(course, why);
    course->bad = true;
    course->step = OVER;
}

/* What was done, or may have been, is undone. */
static void
send_back(struct bh_node *node, struct course *course, const char *why)
{
    struct bh_err err;

    add_why(course, why);
    course->undoes = true;
    if (bh_checkpoint_run_is_stuck(&course->run))
        fail(course, helper_stuck);
    else if (begin(node, course, BH_CHECKPOINT_BACK, &err) != BH_OK)
        fail(course, err.msg);
}

static void
end_going(struct bh_node *node, struct course *course, const struct bh_checkpoint_report *report,
          const struct bh_err *err)
{
    if (err->rc != BH_OK || report->end == BH_CHECKPOINT_BAD) {
        send_back(node, course, err->rc != BH_OK ? err->msg : report->why);
        return;
    }
    if (report->end == BH_CHECKPOINT_DONE) {
        bh_log(MEMORY_ASIDE, BH_U64("lease", course->lease),
               BH_U64("processes", report->processes));
        course->step = AWAY;
        return;
    }
    add_why(course, report->why);
    note_back(node, course->lease);
    bh_node_share_resume(node, course->lease);
    course->step = OVER;
}

static void
end_coming(struct bh_node *node, struct course *course, const struct bh_checkpoint_report *report,
           const struct bh_err *err)
{
    if (err->rc != BH_OK || report->end != BH_CHECKPOINT_DONE) {
        fail(course, err->rc != BH_OK ? err->msg : report->why);
        return;
    }
    bh_log(MEMORY_BACK, BH_U64("lease", course->lease), BH_U64("processes", report->processes));
    note_back(node, course->lease);
    bh_node_share_resume(node, course->lease);
    course->step = OVER;
}

/* A job whose processes cannot go on ends, and says why. */
static void
end_job(struct bh_node *node, const struct course *course)
{
    struct bh_job *job = bh_state_job(&node->state, course->lease);
    struct bh_msg_stop stop = { .lease = course->lease };
    struct bh_err err;

    bh_log(MEMORY_LOST, BH_U64("lease", course->lease), BH_STR("why", course->why));
    if (!job || job->ended)
        return;
    snprintf(job->unrestored, sizeof job->unrestored, "its GPU memory could not be given back: %.150s",
             course->why);
    bh_utf8_scrub(job->unrestored);
    if (bh_job_stop(node, &stop, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", course->lease), BH_ERRLOG(&err));
}

bool
bh_checkpoint_ended(struct bh_job *job)
{
    if (!*job->unrestored)
        return false;
    job->end.cause = BH_END_RESUME_FAILED;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->unrestored);
    return true;
}

static void
look(struct bh_node *node, struct course *course, bh_ns now)
{
    struct bh_checkpoint_report report = { 0 };
    struct bh_err err = { 0 };

    if (!bh_checkpoint_run_go_on(&course->run, now, &course->look_at, &report, &err))
        return;
    if (course->step == GOES)
        end_going(node, course, &report, &err);
    else
        end_coming(node, course, &report, &err);
}

static struct course *
open_course(struct bh_node *node, uint64_t lease, uint64_t order)
{
    struct course *course = find_room(node);

    if (course)
        *course = (struct course){ .lease = lease, .order = order, .run.output_fd = -1 };
    return course;
}

void
bh_checkpoint_adopt(struct bh_node *node, struct bh_job *job)
{
    struct course *course;
    struct bh_err err;
    bh_rc rc;

    if (!job->aside || job->ended || job->asked || bh_job_is_suspended(job)
        || find(node, job->note.lease))
        return;
    course = open_course(node, job->note.lease, 0);
    node->checkpoints->adopts = node->checkpoints->adopts || !course;
    if (!course)
        return;
    rc = bh_job_check_places(node, &job->note, &err); /* it must not come back beside another */
    if (rc == BH_OK)
        rc = bh_scrub_check(node, &job->note, &err);
    if (rc == BH_OK)
        rc = begin(node, course, BH_CHECKPOINT_BACK, &err);
    if (rc != BH_OK)
        fail(course, err.msg);
}

static void
adopt_others(struct bh_node *node)
{
    if (!node->checkpoints->adopts || !find_room(node))
        return;
    node->checkpoints->adopts = false;
    for (uint32_t i = 0; i < node->state.job_count; i++)
        bh_checkpoint_adopt(node, &node->state.jobs[i]);
}

bh_ns
bh_checkpoints_tick(struct bh_node *node, bh_ns now)
{
    bh_ns next = 0;

    adopt_others(node);
    for (uint32_t i = 0; i < COURSES_MAX; i++) {
        struct course *course = &node->checkpoints->course[i];

        if (is_under_way(course) && course->look_at <= now)
            look(node, course, now);
        if (course->step == STUCK || (course->step == OVER && course->order == 0)) {
            if (course->step == OVER && course->bad)
                end_job(node, course);
            let_go(course);
        }
        if (is_under_way(course) && (!next || course->look_at < next))
            next = course->look_at;
    }
    return next;
}

/* ---- asking ---- */

/* Put it aside when it holds something.  NULL, and `ret_waits`: there is no place for it yet; or
 * without: there is nothing to put aside, or `ret_why` it cannot be. */
static struct course *
begin_going(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
            char ret_why[WHY_MAX])
{
    struct bh_job *job = bh_state_job(&node->state, order->lease);
    struct bh_job_on_gpu on_gpu;
    struct course *course;
    struct bh_err err;

    if (!job || job->ended || !job->running || bh_job_is_suspended(job)
        || bh_job_gpu_list(node, job, &on_gpu, &err) != BH_OK || on_gpu.count == 0
        || !can_go(node, job, &on_gpu, ret_why, WHY_MAX))
        return NULL;
    course = open_course(node, order->lease, order->order);
    *ret_waits = course == NULL;
    if (!course)
        return NULL;
    if (note_aside(node, job, &on_gpu, &err) == BH_OK) {
        if (begin(node, course, BH_CHECKPOINT_TAKE, &err) == BH_OK)
            return course;
        note_back(node, order->lease);
    }
    snprintf(ret_why, WHY_MAX, "%.200s", err.msg);
    let_go(course);
    return NULL;
}

/* It keeps the GPU. */
static bh_rc
hold(uint64_t lease, const char *why, bool *ret_held, struct bh_err *err)
{
    *ret_held = true;
    bh_log(MEMORY_KEPT, BH_U64("lease", lease), BH_STR("why", why));
    snprintf(err->msg, sizeof err->msg, "%.230s", why);
    return BH_OK;
}

/* Nothing of it is on the GPU any more, or there never was: freeze it, and look. */
static bh_rc
freeze(struct bh_node *node, struct course *course, bool *ret_held, struct bh_err *err)
{
    uint64_t lease = course->lease;
    bh_rc rc = bh_job_suspend(node, lease, ret_held, err);

    if (rc == BH_OK && !*ret_held) {
        let_go(course);
        return rc;
    }
    send_back(node, course, rc == BH_OK ? "it holds the GPU although its memory was put aside"
                                        : err->msg);
    *ret_held = false;
    return BH_OK;
}

/* What was begun for another order, or after a start of the node, must end first. */
static bool
is_in_the_way(const struct course *course, uint64_t order)
{
    return course && (course->order != order || course->step == STUCK);
}

static bh_rc
suspend_now(struct bh_node *node, uint64_t lease, const char *why, bool *ret_held,
            struct bh_err *err)
{
    bh_rc rc = bh_job_suspend(node, lease, ret_held, err);

    return rc == BH_OK && *ret_held ? hold(lease, why, ret_held, err) : rc;
}

bh_rc
bh_checkpoint_suspend(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_held,
                      bool *ret_waits, struct bh_err *err)
{
    struct course *course = find(node, order->lease);
    char why[WHY_MAX] = "it has a context on the GPU, or has just begun";
    bh_rc rc = BH_OK;

    *ret_held = *ret_waits = false;
    if (is_in_the_way(course, order->order)) {
        *ret_waits = course->step != STUCK;
        return *ret_waits ? BH_OK : hold(order->lease, helper_stuck, ret_held, err);
    }
    if (!course)
        course = begin_going(node, order, ret_waits, why);
    if (!course)
        return *ret_waits ? BH_OK : suspend_now(node, order->lease, why, ret_held, err);
    if (course->step == AWAY)
        rc = freeze(node, course, ret_held, err);
    *ret_waits = is_under_way(course);
    if (course->step == OVER) {
        rc = hold(order->lease, course->why, ret_held, err);
        let_go(course);
    }
    return rc;
}

/* It is thawed, and its memory is away. */
static bh_rc
begin_coming(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
             struct bh_err *err)
{
    struct course *course = open_course(node, order->lease, order->order);

    *ret_waits = true;
    if (course && begin(node, course, BH_CHECKPOINT_BACK, err) != BH_OK)
        fail(course, err->msg);
    return BH_OK;
}

bh_rc
bh_checkpoint_resume(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
                     struct bh_err *err)
{
    struct course *course = find(node, order->lease);
    const struct bh_job *job;
    bh_rc rc;

    if (course && course->step == STUCK)
        return bh_err_set(err, BH_UNAVAILABLE, "%s", helper_stuck);
    *ret_waits = course && (is_in_the_way(course, order->order) || course->step != OVER);
    if (*ret_waits)
        return BH_OK;
    if (!course) {
        rc = bh_job_resume(node, order, ret_waits, err);
        job = bh_state_job(&node->state, order->lease);
        return rc == BH_OK && !*ret_waits && job->aside ? begin_coming(node, order, ret_waits, err) : rc;
    }
    rc = BH_OK;
    if (course->bad) {
        end_job(node, course);
        rc = bh_err_set(err, BH_IO, "its GPU memory could not be given back: %.170s", course->why);
    }
    let_go(course);
    return rc;
}
