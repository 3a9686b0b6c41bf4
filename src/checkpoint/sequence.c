#include "checkpoint/sequence.h"

#include <stdio.h>

#include "base/assert.h"

struct course {
    const struct bh_checkpoint_driver *driver;
    const struct bh_checkpoint_request *request;
    struct bh_checkpoint_report *report;
};

/* False; the report gets the first that failed. */
static bool
fail(const struct course *course, const char *call, uint32_t pid, CUresult rc)
{
    struct bh_checkpoint_report *report = course->report;

    if (report->pid != 0)
        return false;
    report->pid = pid;
    snprintf(report->why, sizeof report->why, "%s of process %u: %s (%d)", call, pid,
             course->driver->name(course->driver->self, rc), (int)rc);
    return false;
}

static bool
fail_for(const struct course *course, uint32_t pid, CUprocessState state)
{
    struct bh_checkpoint_report *report = course->report;

    if (report->pid != 0)
        return false;
    report->pid = pid;
    snprintf(report->why, sizeof report->why, "process %u was left in state %d by the driver", pid,
             (int)state);
    return false;
}

/* One call for one process, when it is in the state that the call begins with.  A process that
 * has ended needs none. */
struct step {
    const char *name;
    CUprocessState from;
    uint32_t fine; /* bit for each other state in which there is nothing to do */
    CUresult (*call)(const struct course *course, int pid);
};

static bool
step_one(const struct course *course, const struct step *step, uint32_t pid)
{
    const struct bh_checkpoint_driver *driver = course->driver;
    CUprocessState state;
    CUresult rc = driver->state(driver->self, (int)pid, &state);

    if (rc == CUDA_SUCCESS && state != step->from)
        return (uint32_t)state < 32 && (step->fine >> state & 1) != 0
                   ? true
                   : fail_for(course, pid, state);
    if (rc != CUDA_SUCCESS)
        return !driver->lives(driver->self, (int)pid)
               || fail(course, "cuCheckpointProcessGetState", pid, rc);
    rc = step->call(course, (int)pid);
    if (rc == CUDA_SUCCESS) {
        course->report->processes++;
        return true;
    }
    return !driver->lives(driver->self, (int)pid) || fail(course, step->name, pid, rc);
}

static CUresult
lock(const struct course *course, int pid)
{
    return course->driver->lock(course->driver->self, pid, course->request->lock_ms);
}

static CUresult
checkpoint(const struct course *course, int pid)
{
    return course->driver->checkpoint(course->driver->self, pid);
}

static CUresult
restore(const struct course *course, int pid)
{
    return course->driver->restore(course->driver->self, pid);
}

static CUresult
unlock(const struct course *course, int pid)
{
    return course->driver->unlock(course->driver->self, pid);
}

#define BIT(state) (1u << CU_PROCESS_STATE_##state)

static const struct step lock_step = { "cuCheckpointProcessLock", CU_PROCESS_STATE_RUNNING,
                                       BIT(LOCKED) | BIT(CHECKPOINTED), lock };
static const struct step checkpoint_step = { "cuCheckpointProcessCheckpoint",
                                             CU_PROCESS_STATE_LOCKED, BIT(CHECKPOINTED),
                                             checkpoint };
static const struct step restore_step = { "cuCheckpointProcessRestore",
                                          CU_PROCESS_STATE_CHECKPOINTED,
                                          BIT(LOCKED) | BIT(RUNNING), restore };
static const struct step unlock_step = { "cuCheckpointProcessUnlock", CU_PROCESS_STATE_LOCKED,
                                         BIT(RUNNING), unlock };

/* True when it went well for each; `anyway`: after one that failed the others are tried, too. */
static bool
step_all(const struct course *course, const struct step *step, bool anyway)
{
    bool well = true;

    course->report->processes = 0;
    for (uint32_t i = 0; i < course->request->pid_count && (well || anyway); i++)
        well = step_one(course, step, course->request->pids[i].pid) && well;
    return well;
}

static bool
give_back(const struct course *course)
{
    bool restored = step_all(course, &restore_step, true);
    uint32_t processes = course->report->processes;
    bool unlocked = restored && step_all(course, &unlock_step, true);

    course->report->processes = processes;
    return unlocked;
}

void
bh_checkpoint_take(const struct bh_checkpoint_driver *driver,
                   const struct bh_checkpoint_request *request,
                   struct bh_checkpoint_report *ret_report)
{
    const struct course course = { driver, request, ret_report };
    struct bh_checkpoint_report undone = { .end = BH_CHECKPOINT_DONE };
    const struct course back = { driver, request, &undone };

    BH_ASSERT(request->pid_count <= BH_CHECKPOINT_PIDS_MAX);
    *ret_report = (struct bh_checkpoint_report){ .end = BH_CHECKPOINT_DONE };
    if (step_all(&course, &lock_step, false) && step_all(&course, &checkpoint_step, false))
        return;
    ret_report->processes = 0;
    ret_report->end = give_back(&back) ? BH_CHECKPOINT_REFUSED : BH_CHECKPOINT_BAD;
}

void
bh_checkpoint_back(const struct bh_checkpoint_driver *driver,
                   const struct bh_checkpoint_request *request,
                   struct bh_checkpoint_report *ret_report)
{
    const struct course course = { driver, request, ret_report };

    BH_ASSERT(request->pid_count <= BH_CHECKPOINT_PIDS_MAX);
    *ret_report = (struct bh_checkpoint_report){ .end = BH_CHECKPOINT_DONE };
    if (!give_back(&course))
        ret_report->end = BH_CHECKPOINT_BAD;
}
