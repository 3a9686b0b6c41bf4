#include "checkpoint/sequence.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

/* ---- a driver that writes down what it is asked ---- */

enum { GONE = 9, PROCESSES = 3 };

static struct {
    int state[PROCESSES + 1]; /* by pid 1 to 3; GONE: has ended */
    char said[400];
    const char *refuses; /* "checkpoint2": that call fails, and the process stays */
    const char *breaks;  /* it fails, and the process is left FAILED */
    const char *ends;    /* the process ends in it */
} fake;

static CUresult
checkpoint_sequence_test_ask(const char *call, int pid, CUprocessState from, CUprocessState to)
{
    char what[32];
    size_t used = strlen(fake.said);

    snprintf(what, sizeof what, "%s%d", call, pid);
    snprintf(fake.said + used, sizeof fake.said - used, "%s%s", used ? " " : "", what);
    if (fake.state[pid] == GONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake.ends && strcmp(fake.ends, what) == 0)
        fake.state[pid] = GONE;
    if (fake.state[pid] == GONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake.breaks && strcmp(fake.breaks, what) == 0) {
        fake.state[pid] = CU_PROCESS_STATE_FAILED;
        return CUDA_ERROR_UNKNOWN;
    }
    if (fake.refuses && strcmp(fake.refuses, what) == 0)
        return CUDA_ERROR_NOT_READY;
    if (fake.state[pid] != (int)from)
        return CUDA_ERROR_ILLEGAL_STATE;
    fake.state[pid] = (int)to;
    return CUDA_SUCCESS;
}

static CUresult
get_state(void *self, int pid, CUprocessState *ret_state)
{
    if (fake.state[pid] == GONE)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_state = (CUprocessState)fake.state[pid];
    return CUDA_SUCCESS;
}

static CUresult
checkpoint_sequence_test_lock(void *self, int pid, unsigned timeout_ms)
{
    BH_CHECK_EQ("the time to come to rest", timeout_ms, 1234);
    return checkpoint_sequence_test_ask("lock", pid, CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED);
}

static CUresult
checkpoint_sequence_test_checkpoint(void *self, int pid)
{
    return checkpoint_sequence_test_ask("out", pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED);
}

static CUresult
checkpoint_sequence_test_restore(void *self, int pid)
{
    return checkpoint_sequence_test_ask("in", pid, CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED);
}

static CUresult
checkpoint_sequence_test_unlock(void *self, int pid)
{
    return checkpoint_sequence_test_ask("unlock", pid, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
}

static const char *
checkpoint_sequence_test_name_of(void *self, CUresult rc)
{
    return rc == CUDA_ERROR_NOT_READY ? "NOT_READY" : "OTHER";
}

static bool
checkpoint_sequence_test_lives(void *self, int pid)
{
    return fake.state[pid] != GONE;
}

static const struct bh_checkpoint_driver driver = { .state = get_state,
                                                    .lock = checkpoint_sequence_test_lock,
                                                    .checkpoint = checkpoint_sequence_test_checkpoint,
                                                    .restore = checkpoint_sequence_test_restore,
                                                    .unlock = checkpoint_sequence_test_unlock,
                                                    .name = checkpoint_sequence_test_name_of,
                                                    .lives = checkpoint_sequence_test_lives };

/* ---- the cases ---- */

enum {
    R = CU_PROCESS_STATE_RUNNING,
    L = CU_PROCESS_STATE_LOCKED,
    C = CU_PROCESS_STATE_CHECKPOINTED,
    F = CU_PROCESS_STATE_FAILED,
    TRANSIENT = 4
};

static const struct sequence_case {
    const char *name;
    bool back;
    int before[PROCESSES];
    const char *refuses, *breaks, *ends;
    enum bh_checkpoint_end end;
    uint32_t pid;
    int after[PROCESSES];
    const char *said;
} cases[] = {
    { "all go out",
      false,
      { R, R, R },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_DONE,
      0,
      { C, C, C },
      "lock1 lock2 lock3 out1 out2 out3" },
    { "a lock times out: those before it are unlocked",
      false,
      { R, R, R },
      "lock3",
      NULL,
      NULL,
      BH_CHECKPOINT_REFUSED,
      3,
      { R, R, R },
      "lock1 lock2 lock3 unlock1 unlock2" },
    { "the second cannot go out: the first comes back",
      false,
      { R, R, R },
      "out2",
      NULL,
      NULL,
      BH_CHECKPOINT_REFUSED,
      2,
      { R, R, R },
      "lock1 lock2 lock3 out1 out2 in1 unlock1 unlock2 unlock3" },
    { "the second is left bad: none computes beside it",
      false,
      { R, R, R },
      NULL,
      "out2",
      NULL,
      BH_CHECKPOINT_FAILED,
      2,
      { L, F, L },
      "lock1 lock2 lock3 out1 out2 in1" },
    { "one that ended before is none",
      false,
      { R, GONE, R },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_DONE,
      0,
      { C, GONE, C },
      "lock1 lock3 out1 out3" },
    { "one that ends meanwhile is none",
      false,
      { R, R, R },
      NULL,
      NULL,
      "out2",
      BH_CHECKPOINT_DONE,
      0,
      { C, GONE, C },
      "lock1 lock2 lock3 out1 out2 out3" },
    { "cut off after a lock: it goes on",
      false,
      { L, R, R },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_DONE,
      0,
      { C, C, C },
      "lock2 lock3 out1 out2 out3" },
    { "cut off half-way: it goes on",
      false,
      { C, L, L },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_DONE,
      0,
      { C, C, C },
      "out2 out3" },
    { "bad from before: nothing is begun with it",
      false,
      { R, F, R },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_FAILED,
      2,
      { L, F, R },
      "lock1" },
    { "all come back, and then compute",
      true,
      { C, C, C },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_DONE,
      0,
      { R, R, R },
      "in1 in2 in3 unlock1 unlock2 unlock3" },
    { "back from wherever each is",
      true,
      { R, L, C },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_DONE,
      0,
      { R, R, R },
      "in3 unlock2 unlock3" },
    { "one cannot come back: none computes",
      true,
      { C, C, C },
      "in2",
      NULL,
      NULL,
      BH_CHECKPOINT_FAILED,
      2,
      { L, C, L },
      "in1 in2 in3" },
    { "one cannot be unlocked",
      true,
      { C, C, C },
      "unlock2",
      NULL,
      NULL,
      BH_CHECKPOINT_FAILED,
      2,
      { R, L, R },
      "in1 in2 in3 unlock1 unlock2 unlock3" },
    { "a state that we do not know",
      true,
      { C, TRANSIENT, C },
      NULL,
      NULL,
      NULL,
      BH_CHECKPOINT_FAILED,
      2,
      { L, TRANSIENT, L },
      "in1 in3" },
};

static void
test_sequence(void **state)
{
    const struct bh_checkpoint_request request = { .lock_ms = 1234,
                                                   .pids = { { 1 }, { 2 }, { 3 } },
                                                   .pid_count = PROCESSES };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const struct sequence_case *one = &cases[i];
        struct bh_checkpoint_report report;

        memset(&fake, 0, sizeof fake);
        memcpy(&fake.state[1], one->before, sizeof one->before);
        fake.refuses = one->refuses;
        fake.breaks = one->breaks;
        fake.ends = one->ends;
        (one->back ? bh_checkpoint_restore : bh_checkpoint_save)(&driver, &request, &report);
        BH_CHECK_EQ(one->name, report.end, one->end);
        BH_CHECK_EQ(one->name, report.pid, one->pid);
        BH_CHECK_STR(one->name, fake.said, one->said);
        for (int pid = 0; pid < PROCESSES; pid++)
            BH_CHECK_EQ(one->name, fake.state[pid + 1], one->after[pid]);
    }
    BH_CHECK_DONE();
}

static void
test_reports_why(void **state)
{
    const struct bh_checkpoint_request request = { .lock_ms = 1234, .pids = { { 2 } }, .pid_count = 1 };
    struct bh_checkpoint_report report;

    memset(&fake, 0, sizeof fake);
    fake.refuses = "lock2";
    bh_checkpoint_save(&driver, &request, &report);
    BH_CHECK_STR("call, process and result", report.why,
                 "cuCheckpointProcessLock of process 2: NOT_READY (600)");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sequence),
    cmocka_unit_test(test_reports_why),
};

BH_TEST_MAIN(tests)
