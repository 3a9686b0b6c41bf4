#include "checkpoint/sequence.h"

#include <stdio.h>

#include "base/assert.h"

struct sequence {
    const struct bh_checkpoint_driver *driver;
    const struct bh_checkpoint_request *request;
    struct bh_checkpoint_report *report;
};

/* False; the report gets the first that failed. */
static bool
checkpoint_sequence_fail(const struct sequence *sequence, const char *call, uint32_t pid, CUresult rc)
{
    struct bh_checkpoint_report *report = sequence->report;

    if (report->pid != 0)
        return false;
    report->pid = pid;
    snprintf(report->why, sizeof report->why, "%s of process %u: %s (%d)", call, pid,
             sequence->driver->name(sequence->driver->self, rc), (int)rc);
    return false;
}

static bool
sequence_fail_for(const struct sequence *sequence, uint32_t pid, CUprocessState state)
{
    struct bh_checkpoint_report *report = sequence->report;

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
    CUresult (*call)(const struct sequence *sequence, int pid);
};

static bool
sequence_step_one(const struct sequence *sequence, const struct step *step, uint32_t pid)
{
    const struct bh_checkpoint_driver *driver = sequence->driver;
    CUprocessState state;
    CUresult rc = driver->state(driver->self, (int)pid, &state);

    if (rc == CUDA_SUCCESS && state != step->from)
        return (uint32_t)state < 32 && (step->fine >> state & 1) != 0
                   ? true
                   : sequence_fail_for(sequence, pid, state);
    if (rc != CUDA_SUCCESS)
        return !driver->lives(driver->self, (int)pid)
               || checkpoint_sequence_fail(sequence, "cuCheckpointProcessGetState", pid, rc);
    rc = step->call(sequence, (int)pid);
    if (rc == CUDA_SUCCESS) {
        sequence->report->processes++;
        return true;
    }
    return !driver->lives(driver->self, (int)pid) || checkpoint_sequence_fail(sequence, step->name, pid, rc);
}

static CUresult
checkpoint_sequence_lock(const struct sequence *sequence, int pid)
{
    return sequence->driver->lock(sequence->driver->self, pid, sequence->request->lock_ms);
}

static CUresult
checkpoint_sequence_checkpoint(const struct sequence *sequence, int pid)
{
    return sequence->driver->checkpoint(sequence->driver->self, pid);
}

static CUresult
checkpoint_sequence_restore(const struct sequence *sequence, int pid)
{
    return sequence->driver->restore(sequence->driver->self, pid);
}

static CUresult
checkpoint_sequence_unlock(const struct sequence *sequence, int pid)
{
    return sequence->driver->unlock(sequence->driver->self, pid);
}

#define BIT(state) (1u << CU_PROCESS_STATE_##state)

static const struct step lock_step = { "cuCheckpointProcessLock", CU_PROCESS_STATE_RUNNING,
                                       BIT(LOCKED) | BIT(CHECKPOINTED), checkpoint_sequence_lock };
static const struct step checkpoint_step = { "cuCheckpointProcessCheckpoint", CU_PROCESS_STATE_LOCKED,
                                             BIT(CHECKPOINTED), checkpoint_sequence_checkpoint };
static const struct step restore_step = { "cuCheckpointProcessRestore", CU_PROCESS_STATE_CHECKPOINTED,
                                          BIT(LOCKED) | BIT(RUNNING), checkpoint_sequence_restore };
static const struct step unlock_step = { "cuCheckpointProcessUnlock", CU_PROCESS_STATE_LOCKED, BIT(RUNNING),
                                         checkpoint_sequence_unlock };

/* True when it went well for each; `anyway`: after one that failed the others are tried, too. */
static bool
sequence_step_all(const struct sequence *sequence, const struct step *step, bool anyway)
{
    bool well = true;

    sequence->report->processes = 0;
    for (uint32_t i = 0; i < sequence->request->pid_count && (well || anyway); i++)
        well = sequence_step_one(sequence, step, sequence->request->pids[i].pid) && well;
    return well;
}

static bool
sequence_restore(const struct sequence *sequence)
{
    bool restored = sequence_step_all(sequence, &restore_step, true);
    uint32_t processes = sequence->report->processes;
    bool unlocked = restored && sequence_step_all(sequence, &unlock_step, true);

    sequence->report->processes = processes;
    return unlocked;
}

void
bh_checkpoint_save(const struct bh_checkpoint_driver *driver, const struct bh_checkpoint_request *request,
                   struct bh_checkpoint_report *ret_report)
{
    const struct sequence sequence = { driver, request, ret_report };
    struct bh_checkpoint_report undone = { .end = BH_CHECKPOINT_DONE };
    const struct sequence back = { driver, request, &undone };

    BH_ASSERT(request->pid_count <= BH_CHECKPOINT_PIDS_MAX);
    *ret_report = (struct bh_checkpoint_report){ .end = BH_CHECKPOINT_DONE };
    if (sequence_step_all(&sequence, &lock_step, false)
        && sequence_step_all(&sequence, &checkpoint_step, false))
        return;
    ret_report->processes = 0;
    ret_report->end = sequence_restore(&back) ? BH_CHECKPOINT_REFUSED : BH_CHECKPOINT_FAILED;
}

void
bh_checkpoint_restore(const struct bh_checkpoint_driver *driver, const struct bh_checkpoint_request *request,
                      struct bh_checkpoint_report *ret_report)
{
    const struct sequence sequence = { driver, request, ret_report };

    BH_ASSERT(request->pid_count <= BH_CHECKPOINT_PIDS_MAX);
    *ret_report = (struct bh_checkpoint_report){ .end = BH_CHECKPOINT_DONE };
    if (!sequence_restore(&sequence))
        ret_report->end = BH_CHECKPOINT_FAILED;
}
