#include "node/placement/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/common/path.h"
#include "node/core/gpu_error.h"
#include "node/core/ownership_map.h"
#include "node/core/state_check.h"
#include "node/placement/devices.h"
#include "node/placement/health_state.h"
#include "node/placement/open_files.h"
#include "node/placement/placement.h"
#include "node/placement/trespass.h"

enum { GPUS_MAX = 64, PIDS_MAX = 4096, FINDINGS_MAX = 64, MISSES_MAX = 3, IN_FLIGHT_MAX = 16 };
enum { NOBODY = 0, UNKNOWN = UINT32_MAX }; /* beside the numbers of tenants */
#define LOOK_WITHIN (20 * BH_NS_PER_S)
#define IN_FLIGHT_PATIENCE (2 * BH_NS_PER_S)
#define CHECK_INTERVAL (50 * BH_NS_PER_MS)

/* What the child finds.  The last one has no lease: it has looked at all. */
struct handover_finding {
    uint64_t lease;
    uint32_t pid, found; /* enum bh_open_found */
};

struct handover_place {
    char gpu[BH_UUID_MAX];
    uint32_t by[BH_OWNERSHIP_UNITS]; /* the tenant whose jobs could have passed on what was open */
    uint32_t leavings;               /* of jobs that could */
    bh_ns held_at;                   /* monotonic; when an order first found it held, or 0 */
};

struct bh_handover {
    struct handover_place places[GPUS_MAX];
    uint32_t place_count;
    pid_t pid;                          /* of the child that looks, or 0 */
    int output;                         /* its findings */
    bool dying;                         /* it had its time, and was killed */
    uint32_t leavings;                  /* of the GPU, when it began */
    struct bh_node_partition partition; /* that it looks for */
    bh_ns until, check_at;              /* monotonic; it is killed; none begins before */
    uint32_t misses;                    /* looks in a row that came to nothing */
    struct {
        uint64_t lease;
        bh_ns since;
    } in_flight[IN_FLIGHT_MAX];
};

struct bh_handover *
bh_handover_new(void)
{
    struct bh_handover *handover = calloc(1, sizeof *handover);

    BH_ASSERT(handover);
    handover->output = -1;
    return handover;
}

static void
handover_assert(const struct bh_handover *handover)
{
    BH_ASSERT(handover->place_count <= BH_COUNT(handover->places) && handover->misses < MISSES_MAX);
    BH_ASSERT(handover->pid >= 0 && (handover->pid > 0) == (handover->output >= 0));
    BH_ASSERT(!handover->dying || handover->pid > 0);
    BH_ASSERT(handover->pid == 0 || handover->until);
}

/* Does not wait for its end: its reads may hang in the kernel.  False: it has not ended. */
static bool
handover_end_look(struct bh_handover *handover)
{
    if (handover->pid > 0) {
        kill(handover->pid, SIGKILL);
        handover->dying = waitpid(handover->pid, NULL, WNOHANG) == 0;
    }
    if (handover->dying)
        return false;
    bh_fd_close(handover->output);
    handover->pid = 0;
    handover->output = -1;
    return true;
}

void
bh_handover_free(struct bh_handover *handover)
{
    if (!handover)
        return;
    (void)handover_end_look(handover);
    bh_fd_close(handover->output);
    free(handover);
}

/* ---- where it is needed ---- */

/* Of a GPU that is not known yet, it is unknown which jobs could.  NULL: there is no room. */
static struct handover_place *
handover_place_of(struct bh_handover *handover, const char *gpu)
{
    uint32_t at = 0;

    handover_assert(handover);
    while (at < handover->place_count && strcmp(handover->places[at].gpu, gpu) != 0) {
        BH_STATE_ASSERT_TEXT(handover->places[at].gpu);
        at++;
    }
    if (at == GPUS_MAX)
        return NULL;
    if (at == handover->place_count) {
        snprintf(handover->places[at].gpu, BH_UUID_MAX, "%s", gpu);
        for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++)
            handover->places[at].by[u] = UNKNOWN;
        handover->place_count++;
    }
    return &handover->places[at];
}

static uint32_t
handover_units_of(const struct bh_node_partition *partition)
{
    return partition->units ? partition->units & BH_OWNERSHIP_ALL : BH_OWNERSHIP_ALL;
}

static bool
handover_needs_look(struct bh_handover *handover, const struct bh_node_partition *partition, uint32_t tenant)
{
    const struct handover_place *place = handover_place_of(handover, partition->gpu);

    for (uint32_t u = 0; u < BH_OWNERSHIP_UNITS; u++)
        if (handover_units_of(partition) >> u & 1
            && (!place || (place->by[u] != NOBODY && place->by[u] != tenant)))
            return true;
    return false;
}

void
bh_handover_left(struct bh_node *node, const struct bh_job *job)
{
    bh_state_assert_job(&node->state, job);
    for (uint32_t i = 0; !job->sealed && i < job->record.lent_count; i++) {
        const struct bh_node_partition *partition = &job->record.lent[i];
        struct handover_place *place = handover_place_of(node->handover, partition->gpu);
        uint32_t tenant = job->record.tenant;

        for (uint32_t u = 0; place && u < BH_OWNERSHIP_UNITS; u++)
            if (handover_units_of(partition) >> u & 1)
                place->by[u] = place->by[u] == NOBODY || place->by[u] == tenant ? tenant : UNKNOWN;
        if (place)
            place->leavings++;
    }
}

static void
handover_set_clear(struct bh_handover *handover, const struct bh_node_partition *partition)
{
    struct handover_place *place = handover_place_of(handover, partition->gpu);

    for (uint32_t u = 0; place && u < BH_OWNERSHIP_UNITS; u++)
        if (handover_units_of(partition) >> u & 1)
            place->by[u] = NOBODY;
}

/* ---- which leases are concerned ---- */

/* Lent the same files: now, or before it was suspended. */
static bool
handover_has_place(const struct bh_job *job, const struct bh_node_partition *partition)
{
    for (uint32_t i = 0; i < job->record.lent_count; i++) {
        const struct bh_node_partition *lent = &job->record.lent[i];
        bool instance = bh_placement_is_instance(lent);

        if (strcmp(lent->gpu, partition->gpu) == 0 && instance == bh_placement_is_instance(partition)
            && (!instance || lent->gi == partition->gi))
            return true;
    }
    return false;
}

static bool
handover_is_to_be_looked_at(const struct bh_job *job, const struct bh_node_partition *partition)
{
    return !job->ended && !job->sealed && job->running && !handover_has_place(job, partition);
}

/* The driver's files of the partition that the job has none of its own of. */
static bool
handover_list_wanted(const struct bh_node *node, const struct bh_job *job,
                     const struct bh_node_partition *partition, struct bh_open_wanted *ret_wanted)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_sandbox_device of_partition[8], own[2 + 3 * BH_WIRE_PARTITIONS_MAX];
    const struct bh_param_list *templates = &node->conf.job_driver_mount;
    struct bh_node_record lease = { .lent_count = 1, .lent[0] = *partition };
    uint32_t count = bh_devices_of(node, &lease, of_partition);
    uint32_t own_count = bh_devices_of(node, &job->record, own);
    bool room = true;

    *ret_wanted = (struct bh_open_wanted){ .device_count = 0 };
    for (uint32_t i = 0; i < count; i++) {
        bool has = false;

        for (uint32_t k = 0; k < own_count; k++)
            has |= own[k].major == of_partition[i].major && own[k].minor == of_partition[i].minor;
        if (has)
            continue;
        ret_wanted->devices[ret_wanted->device_count].major = of_partition[i].major;
        ret_wanted->devices[ret_wanted->device_count++].minor = of_partition[i].minor;
    }
    for (uint32_t i = 0; i < templates->count && room; i++) {
        const char *text = templates->items[i], *colon = strchr(text, ':');
        const char *source = colon ? bh_devices_fill(arena, text, (size_t)(colon - text), partition) : NULL;

        room = !source || bh_open_want_folder(ret_wanted, source);
    }
    return room;
}

/* ---- the child ---- */

static void
handover_look_at_job(const struct bh_node *node, const struct bh_job *job,
                     const struct bh_node_partition *partition, int output)
{
    static pid_t pids[PIDS_MAX];
    struct handover_finding finding = { .lease = job->record.lease };
    struct bh_open_wanted wanted;
    struct bh_err ignored;
    uint32_t count = 0;
    char id[32];

    bh_node_job_id(job->record.lease, id);
    if (!handover_list_wanted(node, job, partition, &wanted)
        || node->runtime.ops->processes(node->runtime.self, id, pids, PIDS_MAX, &count, &ignored) != BH_OK)
        _exit(1); /* without the last finding: nothing is known */
    for (uint32_t i = 0; i < count && i < PIDS_MAX && finding.found < BH_OPEN_MAPPED; i++) {
        enum bh_open_found found = bh_open_look(pids[i], &wanted);

        if (found <= finding.found)
            continue;
        finding.found = found;
        finding.pid = (uint32_t)pids[i];
    }
    if (finding.found != BH_OPEN_NONE && write(output, &finding, sizeof finding) != (ssize_t)sizeof finding)
        _exit(1);
}

/* It keeps nothing of the node's open, whose end others wait for. */
static void
handover_look(const struct bh_node *node, const struct bh_node_partition *partition, int output)
{
    const struct handover_finding last = { .lease = 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    output = dup2(output, STDIN_FILENO);
    if (output < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
        _exit(1);
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (handover_is_to_be_looked_at(&node->state.jobs[i], partition))
            handover_look_at_job(node, &node->state.jobs[i], partition, output);
    _exit(write(output, &last, sizeof last) == (ssize_t)sizeof last ? 0 : 1);
}

static uint32_t
handover_leavings_of(struct bh_handover *handover, const struct bh_node_partition *partition)
{
    const struct handover_place *place = handover_place_of(handover, partition->gpu);

    return place ? place->leavings : 0;
}

static bh_rc
handover_begin_look(struct bh_node *node, const struct bh_node_partition *partition, struct bh_err *err)
{
    struct bh_handover *handover = node->handover;
    int ends[2];

    handover_assert(handover);
    BH_ASSERT(handover->pid == 0);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return bh_err_errno(err, "make a pipe");
    handover->pid = fork();
    if (handover->pid == 0)
        handover_look(node, partition, ends[1]);
    bh_fd_close(ends[1]);
    if (handover->pid < 0) {
        handover->pid = 0;
        bh_fd_close(ends[0]);
        return bh_err_errno(err, "start reading what jobs have open");
    }
    handover->output = ends[0];
    handover->partition = *partition;
    handover->until = bh_time_monotonic() + LOOK_WITHIN;
    handover->leavings = handover_leavings_of(handover, partition);
    return BH_OK;
}

/* ---- what follows ---- */

/* Descriptors that no process takes from a socket: most are in transit for a moment only. */
static bool
handover_lie_long(struct bh_handover *handover, uint64_t lease, bh_ns now)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < IN_FLIGHT_MAX; i++) {
        if (handover->in_flight[i].lease == lease)
            return now - handover->in_flight[i].since >= IN_FLIGHT_PATIENCE;
        if (handover->in_flight[i].since < handover->in_flight[at].since)
            at = i; /* the oldest goes */
    }
    handover->in_flight[at].lease = lease;
    handover->in_flight[at].since = now;
    return false;
}

static void
handover_judge(struct bh_node *node, const struct handover_finding *finding, bh_ns now)
{
    struct bh_handover *handover = node->handover;
    struct bh_job *job = bh_state_job(&node->state, finding->lease);

    if (!job || job->ended)
        return;
    if (finding->found == BH_OPEN_IN_FLIGHT && handover_lie_long(handover, finding->lease, now))
        bh_trespass_accuse(job, &handover->partition, finding->pid,
                           "leaves descriptors in a socket that may be of");
    else if (finding->found == BH_OPEN_MAPPED)
        bh_trespass_accuse(job, &handover->partition, finding->pid, "has mapped files of");
    else if (finding->found == BH_OPEN_HELD)
        bh_trespass_accuse(job, &handover->partition, finding->pid, "has open files of");
}

/* Those whose sockets were seen empty. */
static void
handover_forget_in_flight(struct bh_handover *handover, const struct handover_finding *findings,
                          uint32_t count)
{
    for (uint32_t i = 0; i < IN_FLIGHT_MAX; i++) {
        bool again = false;

        for (uint32_t k = 0; k < count; k++)
            again |=
                findings[k].lease == handover->in_flight[i].lease && findings[k].found == BH_OPEN_IN_FLIGHT;
        if (!again)
            handover->in_flight[i].lease = handover->in_flight[i].since = 0;
    }
}

/* The search is over, or had its time.  A process that left the placement meanwhile is searched for again. */
static bh_rc
handover_take_look(struct bh_node *node, bh_ns now, struct bh_err *err)
{
    struct bh_handover *handover = node->handover;
    struct handover_finding findings[FINDINGS_MAX];
    ssize_t got = read(handover->output, findings, sizeof findings);
    uint32_t count = got > 0 ? (uint32_t)((size_t)got / sizeof findings[0]) : 0;
    bool whole = count > 0 && findings[count - 1].lease == 0;

    BH_ASSERT(handover->pid > 0);
    for (uint32_t i = 0; i < count && findings[i].lease; i++)
        handover_judge(node, &findings[i], now);
    if (whole)
        handover_forget_in_flight(handover, findings, count - 1);
    if (whole && count == 1 && handover_leavings_of(handover, &handover->partition) == handover->leavings)
        handover_set_clear(handover, &handover->partition);
    if (handover_end_look(handover))
        handover->check_at = now + CHECK_INTERVAL;
    handover->until = now + LOOK_WITHIN; /* where it does not go */
    handover->misses = count > 0 ? 0 : handover->misses + 1;
    if (handover->misses < MISSES_MAX)
        return BH_OK;
    handover->misses = 0;
    return bh_err_set(err, BH_TIMEOUT, "what jobs have open of GPU %s could not be read",
                      handover->partition.gpu);
}

/* Its findings are read when it has ended: they fit into the pipe. */
static bool
handover_has_ended(const struct bh_handover *handover, bh_ns now)
{
    siginfo_t ended = { .si_pid = 0 };

    return now >= handover->until
           || (waitid(P_PID, (id_t)handover->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0
               && ended.si_pid != 0);
}

static bool
handover_is_anybody_there(const struct bh_node *node, const struct bh_node_partition *partition)
{
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (handover_is_to_be_looked_at(&node->state.jobs[i], partition))
            return true;
    return false;
}

bh_rc
bh_handover_check(struct bh_node *node, const struct bh_node_partition *partition, uint32_t tenant,
                  bool *ret_waits, struct bh_err *err)
{
    struct bh_handover *handover = node->handover;
    bh_ns now = bh_time_monotonic();
    bh_rc rc = BH_OK;

    bh_node_assert(node);
    handover_assert(handover);
    *ret_waits = false;
    if (tenant == NOBODY || !handover_needs_look(handover, partition, tenant))
        return BH_OK;
    if (!handover_is_anybody_there(node, partition)) {
        handover_set_clear(handover, partition);
        return BH_OK;
    }
    if (handover->pid && handover_has_ended(handover, now))
        rc = handover_take_look(node, now, err);
    if (rc != BH_OK)
        return rc;
    if (handover_needs_look(handover, partition, tenant)) {
        *ret_waits = true;
        if (!handover->pid && now >= handover->check_at)
            rc = handover_begin_look(node, partition, err);
    }
    return rc;
}

/* The order waits while that is so, and its submitter sees why. */
static void
handover_explain(struct bh_node *node, const char *gpu)
{
    struct bh_err why;

    bh_err_set(&why, BH_CONFLICT, "a process of a job without a lease on it holds it: that job is ended");
    bh_gpu_error_record(node, gpu, &why);
}

/* A process that sits in the kernel may never end: then the order fails, as when a foreign process has the
 * file. */
static bool
handover_wait_while(struct bh_node *node, const char *gpu, bool held)
{
    struct handover_place *place = handover_place_of(node->handover, gpu);
    bh_ns now = bh_time_monotonic();

    if (!place)
        return false;
    place->held_at = !held ? 0 : place->held_at ? place->held_at : now;
    if (held)
        handover_explain(node, gpu);
    return held && now - place->held_at < node->conf.destroy_wait_ms * BH_NS_PER_MS;
}

bool
bh_handover_is_held(struct bh_node *node, const struct bh_node_partition *partition)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    bool whole = strcmp(partition->profile, "whole") == 0, held = false;
    struct bh_node_partition place = *partition;
    struct bh_device_process *processes;
    struct bh_err ignored;
    uint32_t count = 0;

    if (whole)
        place.gi = BH_WHOLE_GPU; /* not noted yet when it is carved */
    else if (!*partition->uuid)
        return false; /* an instance that is to be carved: no process can be on it */
    if (!handover_needs_look(node->handover, &place, NOBODY) || bh_health_is_unresponsive(node, place.gpu)
        || node->device.ops->processes(node->device.self, place.gpu, arena, &processes, &count, &ignored)
               != BH_OK)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!bh_placement_is_share(&place) && (whole || place.gi == processes[i].gi))
            held |= bh_trespass_charge(node, &place, processes[i].pid, 0);
    return handover_wait_while(node, place.gpu, held);
}
