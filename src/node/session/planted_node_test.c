/* Faults planted in the memory of a node that is in the midst of work: an assert must fail before the node
 * says, notes or asks for anything that one without the fault would not.
 *
 *   planted_node_test [FIRST_SEED [SEEDS [NAME]]]
 *   planted_node_test blind FIRST_SEED SEEDS
 *
 * The seed picks the object where there are several, and the value.  `blind` turns one bit anywhere in an
 * object: most make a value that could be, which no assert can see; nothing is held against that. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/gpu/gpu_internal.h"
#include "node/placement/health_state.h"
#include "node/placement/reset_hold.h"
#include "node/placement/survey_internal.h"
#include "node/session/planted_fixture_test.h"
#include "node/share/share_lease_internal.h"
#include "node/verify/verify_internal.h"

enum { LEAST_PERCENT = 90, TOO_LONG_S = 20, OUTPUT_MAX = 4096 };

/* ---- where ---- */

enum object {
    IN_NODE,
    IN_JOB,       /* `which`: its lease; 0: any that runs */
    IN_PARTITION, /* its number; 0: any */
    IN_ORDER,     /* its number; 0: any that is done */
    IN_RECEIPT,   /* any */
    IN_OWNERSHIP, /* of the GPU of that number */
    IN_PENDING,   /* that waits */
    IN_ORDERS,
    IN_RESET,
    IN_HEALTH,
    IN_GPU_HEALTH, /* any */
    IN_VERIFY,
    IN_SURVEY,
    IN_SHARES,
    IN_SHARE_ROW, /* any */
    IN_GPUS,
    IN_WATCHER
};

enum how {
    SET,       /* to `value` */
    FROM,      /* to `value` or one above */
    ADD,       /* `value` */
    FILL,      /* with letters, to the last byte */
    FLIP,      /* that bit */
    TO_NOWHERE /* a pointer that is NULL */
};

struct plant {
    const char *name;
    enum object in;
    uint32_t which;
    size_t offset, size;
    enum how how;
    int64_t value;
};

#define AT(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)
#define JOB(member) AT(bh_job, member)
#define PARTITION(member) AT(bh_node_partition, member)
#define ORDER(member) AT(bh_order, member)
#define NODE(member) AT(bh_node, member)
#define OWNERSHIP(member) AT(bh_ownership_gpu, member)

static const struct plant plants[] = {
    /* the node */
    { "greeted without a connection", IN_NODE, 0, NODE(link), TO_NOWHERE, 0 },
    { "more partitions to collect than there can be", IN_NODE, 0, NODE(orphaned_count), FROM,
      BH_NODE_PARTITIONS_MAX + 1 },
    { "more changes reported than made", IN_NODE, 0, NODE(reported_changes), FROM, 1 << 20 },
    { "fewer changes made than reported", IN_NODE, 0, NODE(state.changes), ADD, -3 },
    { "GPUs without a list", IN_NODE, 0, NODE(inventory.gpus), TO_NOWHERE, 0 },
    { "instances without a list", IN_NODE, 0, NODE(inventory.instances), TO_NOWHERE, 0 },
    { "a driver's version without an end", IN_NODE, 0, NODE(inventory.driver), FILL, 0 },
    { "a boot without an end", IN_NODE, 0, NODE(boot), FILL, 0 },
    { "no room for a scan", IN_NODE, 0, NODE(scan_arena), TO_NOWHERE, 0 },
    { "a watermark without a file", IN_NODE, 0, NODE(order_watermark.fd), SET, -1 },
    { "an error of a GPU without an end", IN_NODE, 0, NODE(gpu_errors[0].gpu), FILL, 0 },
    /* tables */
    { "no journal", IN_NODE, 0, NODE(state.journal), TO_NOWHERE, 0 },
    { "more jobs than room", IN_NODE, 0, NODE(state.job_count), FROM, 65 },
    { "more jobs than ever", IN_NODE, 0, NODE(state.job_capacity), FROM, BH_JOBS_MAX + 1 },
    { "no table of jobs", IN_NODE, 0, NODE(state.jobs), TO_NOWHERE, 0 },
    { "more orders than room", IN_NODE, 0, NODE(state.order_count), FROM, 65 },
    { "orders without room", IN_NODE, 0, NODE(state.order_capacity), SET, 0 },
    { "no table of orders", IN_NODE, 0, NODE(state.orders), TO_NOWHERE, 0 },
    { "more partitions than room", IN_NODE, 0, NODE(state.partition_count), FROM, 65 },
    { "no table of partitions", IN_NODE, 0, NODE(state.partitions), TO_NOWHERE, 0 },
    { "partitions beyond all", IN_NODE, 0, NODE(state.partition_capacity), FROM, BH_NODE_PARTITIONS_MAX + 1 },
    { "more receipts than room", IN_NODE, 0, NODE(state.receipt_count), FROM, 65 },
    { "no table of receipts", IN_NODE, 0, NODE(state.receipts), TO_NOWHERE, 0 },
    { "more GPUs owned than room", IN_NODE, 0, NODE(state.ownership.count), FROM, 65 },
    { "no ownership map", IN_NODE, 0, NODE(state.ownership.items), TO_NOWHERE, 0 },
    { "a GPU too many", IN_NODE, 0, NODE(state.ownership.capacity), FROM, BH_OWNERSHIP_GPUS_MAX + 1 },
    /* jobs */
    { "no such descriptor", IN_JOB, 0, JOB(pidfd), SET, -2 },
    { "no lease's record", IN_JOB, 0, JOB(record.kind), SET, BH_NODE_RECORD_ORDER },
    { "more lent than can be", IN_JOB, 0, JOB(record.lent_count), FROM, BH_WIRE_PARTITIONS_MAX + 1 },
    { "one lent too many", IN_JOB, LEASE_RUNS, JOB(record.lent_count), SET, 2 },
    { "user ids beyond all", IN_JOB, 0, JOB(record.slot), FROM, BH_JOBS_MAX },
    { "user ids of another", IN_JOB, LEASE_RUNS, JOB(record.slot), ADD, 1 },
    { "a boot id without an end", IN_JOB, 0, JOB(record.boot), FILL, 0 },
    { "a party without an end", IN_JOB, 0, JOB(record.party), FILL, 0 },
    { "ended while it runs", IN_JOB, 0, JOB(ended), SET, 1 },
    { "running although it has ended", IN_JOB, LEASE_ENDED, JOB(running), SET, 1 },
    { "frozen although it has ended", IN_JOB, LEASE_ENDED, JOB(frozen), SET, 1 },
    { "an end with a keeper", IN_JOB, LEASE_ENDED, JOB(pidfd), FROM, 90 },
    { "an end that is still to be killed", IN_JOB, LEASE_ENDED, JOB(kill_at), FROM, 1 },
    { "an end that is looked for", IN_JOB, LEASE_ENDED, JOB(check_at), FROM, 1 },
    { "an end behind a barrier", IN_JOB, LEASE_ENDED, JOB(barrier_at), FROM, 1 },
    { "the end of another lease", IN_JOB, LEASE_ENDED, JOB(end.lease), ADD, 1 },
    { "an end of no cause", IN_JOB, LEASE_ENDED, JOB(end.cause), FROM, BH_END_CAUSES },
    { "an end that has not come", IN_JOB, LEASE_ENDED, JOB(ended), SET, 0 },
    { "an end of a job that runs", IN_JOB, 0, JOB(end.lease), FROM, 1 },
    { "a signal that is none", IN_JOB, LEASE_STOPS, JOB(term_signal), FROM, BH_SIGNAL_MAX + 1 },
    { "a signal below all", IN_JOB, LEASE_STOPS, JOB(term_signal), SET, -9 },
    { "a signal to be sent, and which", IN_JOB, 0, JOB(term_at), FROM, 1 },
    { "a reason without a cause", IN_JOB, 0, JOB(stop_why), SET, 'x' },
    { "a cause without a reason", IN_JOB, 0, JOB(stop_cause), SET, BH_END_OVER_CAP },
    { "a cause that is none", IN_JOB, LEASE_STOPS, JOB(stop_cause), FROM, BH_END_CAUSES },
    { "a failed check without an end", IN_JOB, LEASE_STARTS, JOB(failed_check), FILL, 0 },
    { "a reason of lost memory without an end", IN_JOB, 0, JOB(unrestored), FILL, 0 },
    { "a charge without an end", IN_JOB, 0, JOB(isolation.charge), FILL, 0 },
    { "a barrier without a time", IN_JOB, LEASE_STARTS, JOB(barrier_until), SET, 0 },
    { "checks at a barrier beyond all", IN_JOB, LEASE_STARTS, JOB(barrier_checks), FROM, 9 },
    { "a start that nobody waits for", IN_JOB, LEASE_STARTS, JOB(start_order), SET, 0 },
    { "unbuilt without a start", IN_JOB, 0, JOB(unbuilt), SET, 1 },
    { "more processes put aside than can be", IN_JOB, 0, JOB(checkpointed_count), FROM,
      BH_CHECKPOINT_PIDS_MAX + 1 },
    { "processes put aside of none", IN_JOB, 0, JOB(checkpointed_count), FROM, 1 },
    { "a notice logged of nothing", IN_JOB, 0, JOB(isolation.pending_notices[0].logged), SET, 1 },
    { "lent on no GPU", IN_JOB, LEASE_RUNS, JOB(record.lent[0].gpu[0]), SET, 0 },
    { "lent on a GPU without an end", IN_JOB, LEASE_RUNS, JOB(record.lent[0].gpu), FILL, 0 },
    { "lent a whole GPU for an instance", IN_JOB, LEASE_RUNS, JOB(record.lent[0].gi), SET, BH_WHOLE_GPU },
    { "lent a share for an instance", IN_JOB, LEASE_RUNS, JOB(record.lent[0].gi), SET, BH_SHARE_GI },
    { "lent the slot of another share", IN_JOB, LEASE_SHARES, JOB(record.lent[0].gi), ADD, 1 },
    { "lent a slot beyond all", IN_JOB, LEASE_SHARES, JOB(record.lent[0].start), FROM, 32 },
    { "lent an instance for the whole GPU", IN_JOB, LEASE_SUSPENDED, JOB(record.lent[0].gi), FROM, 1 },
    { "lent memory units beyond all", IN_JOB, LEASE_RUNS, JOB(record.lent[0].units), FROM, 1 << 16 },
    /* partitions */
    { "of no GPU", IN_PARTITION, 0, PARTITION(gpu[0]), SET, 0 },
    { "of a GPU without an end", IN_PARTITION, 0, PARTITION(gpu), FILL, 0 },
    { "a uuid without an end", IN_PARTITION, 0, PARTITION(uuid), FILL, 0 },
    { "a profile without an end", IN_PARTITION, 0, PARTITION(profile), FILL, 0 },
    { "an instance as a whole GPU", IN_PARTITION, 101, PARTITION(gi), SET, BH_WHOLE_GPU },
    { "an instance as a share", IN_PARTITION, 101, PARTITION(gi), FROM, BH_SHARE_GI },
    { "a share as an instance", IN_PARTITION, 103, PARTITION(gi), FROM, 1 },
    { "a slot held by two", IN_PARTITION, 104, PARTITION(gi), ADD, -1 },
    { "a share in another slot", IN_PARTITION, 103, PARTITION(start), FROM, 2 },
    { "a slot beyond all", IN_PARTITION, 104, PARTITION(start), FROM, 32 },
    { "a whole GPU as an instance", IN_PARTITION, 105, PARTITION(gi), FROM, 1 },
    { "a whole GPU of another name", IN_PARTITION, 105, PARTITION(uuid[4]), SET, '9' },
    { "memory units beyond all", IN_PARTITION, 0, PARTITION(units), FROM, 1 << 16 },
    { "an instance cleared for a tenant", IN_PARTITION, 101, PARTITION(cleared_for), FROM, 1 },
    { "an instance by the name of a share", IN_PARTITION, 101, PARTITION(profile[1]), SET, ':' },
    /* orders */
    { "no order's record", IN_ORDER, 0, ORDER(record.kind), SET, BH_NODE_RECORD_LEASE },
    { "an order of no number", IN_ORDER, 121, ORDER(record.order), SET, 0 },
    { "an order lent too much", IN_ORDER, 0, ORDER(record.lent_count), FROM, BH_WIRE_PARTITIONS_MAX + 1 },
    { "the outcome of another order", IN_ORDER, 0, ORDER(outcome.order), ADD, 1 },
    { "an outcome that is none", IN_ORDER, 0, ORDER(outcome.outcome), FROM, 4 },
    { "an outcome without an end", IN_ORDER, 0, ORDER(outcome.why), FILL, 0 },
    { "done without an outcome", IN_ORDER, 122, ORDER(done), SET, 1 },
    { "an outcome that is not done", IN_ORDER, 0, ORDER(done), SET, 0 },
    { "not saved, and nothing to save", IN_ORDER, 0, ORDER(unsaved), SET, 1 },
    { "an order that waits, and was answered", IN_ORDER, 121, ORDER(done), SET, 1 },
    /* receipts and owners */
    { "a receipt of no order", IN_RECEIPT, 0, AT(bh_msg_receipt, order), SET, 0 },
    { "a receipt of no GPU", IN_RECEIPT, 0, AT(bh_msg_receipt, gpu[0]), SET, 0 },
    { "too many had it before", IN_RECEIPT, 0, AT(bh_msg_receipt, from_count), FROM,
      BH_RECEIPT_FROM_MAX + 1 },
    { "too many scrubs", IN_RECEIPT, 0, AT(bh_msg_receipt, by_count), FROM, BH_RECEIPT_BY_MAX + 1 },
    { "a result that is none", IN_RECEIPT, 0, AT(bh_msg_receipt, result), FROM, BH_SCRUB_RESULTS },
    { "a method that is none", IN_RECEIPT, 0, AT(bh_msg_receipt, method), FROM, BH_SCRUB_METHODS },
    { "a receipt without an end", IN_RECEIPT, 0, AT(bh_msg_receipt, why), FILL, 0 },
    { "clean and failed", IN_OWNERSHIP, 0, OWNERSHIP(unit[3].failed), SET, 1 },
    { "clean, of several", IN_OWNERSHIP, 0, OWNERSHIP(unit[3].several), SET, 1 },
    { "of several that are not listed", IN_OWNERSHIP, 0, OWNERSHIP(unit[0].several), SET, 1 },
    { "a receipt of memory that is not clean", IN_OWNERSHIP, 0, OWNERSHIP(unit[0].receipt), FROM, 1 },
    { "owners beyond all", IN_OWNERSHIP, 1, OWNERSHIP(owner_count), FROM, BH_RECEIPT_FROM_MAX + 1 },
    { "a gap of too many", IN_OWNERSHIP, 1, OWNERSHIP(gap[2].from_count), FROM, BH_RECEIPT_FROM_MAX + 1 },
    { "memory of no GPU", IN_OWNERSHIP, 2, OWNERSHIP(gpu[0]), SET, 0 },
    { "a gap without an end", IN_OWNERSHIP, 0, OWNERSHIP(gap[1].profile), FILL, 0 },
    { "a scrub of no result", IN_OWNERSHIP, 0, OWNERSHIP(unit[3].result), FROM, BH_SCRUB_RESULTS },
    /* orders under way */
    { "more orders than can wait", IN_ORDERS, 0, AT(bh_orders, waiting.count), FROM,
      BH_PENDING_ORDERS_MAX + 1 },
    { "more orders than a batch has", IN_ORDERS, 0, AT(bh_orders, count), FROM, BH_ORDERS_BATCH_MAX + 1 },
    { "one that waits twice", IN_ORDERS, 0, AT(bh_orders, waiting.count), ADD, 1 },
    { "no node", IN_ORDERS, 0, AT(bh_orders, node), TO_NOWHERE, 0 },
    { "one that waits, of no number", IN_PENDING, 0, AT(bh_pending_order, order), SET, 0 },
    { "one that waits, of nothing", IN_PENDING, 0, AT(bh_pending_order, copy.frame.length), SET, 0 },
    { "a start that is a destroy", IN_PENDING, 0, AT(bh_pending_order, start_of), FROM, 40 },
    { "a pause without an end", IN_PENDING, 0, AT(bh_pending_order, until), SET, 0 },
    { "on a GPU without an end", IN_PENDING, 0, AT(bh_pending_order, gpu), FILL, 0 },
    { "one that waits, for another kind", IN_PENDING, 0, AT(bh_pending_order, copy.number), FROM, 200 },
    /* beside the orders */
    { "a reset without a program", IN_RESET, 0, AT(bh_reset, state), SET, BH_RESET_RUNS },
    { "a state of no reset", IN_RESET, 0, AT(bh_reset, state), FROM, BH_RESET_OVER + 1 },
    { "a program without a reset", IN_RESET, 0, AT(bh_reset, pid), FROM, 1 << 22 },
    { "GPUs hidden without a reset", IN_RESET, 0, AT(bh_reset, before_count), FROM, 1 },
    { "a program that has gone", IN_RESET, 0, AT(bh_reset, pidfd), FROM, 90 },
    { "GPUs looked at beyond all", IN_HEALTH, 0, AT(bh_health_watch, count), FROM, BH_HEALTH_GPUS_MAX + 1 },
    { "missed beyond all", IN_HEALTH, 0, AT(bh_health_watch, missed_count), FROM, BH_HEALTH_MISSED_MAX + 1 },
    { "away, and never asked again", IN_GPU_HEALTH, 0, AT(bh_health_state, unresponsive), SET, 1 },
    { "given up in no way", IN_GPU_HEALTH, 0, AT(bh_health_state, given_up), FROM,
      BH_HEALTH_ASKED_SINCE + 1 },
    { "a GPU's name without an end", IN_GPU_HEALTH, 0, AT(bh_health_state, gpu), FILL, 0 },
    { "asked beyond all", IN_VERIFY, 0, AT(bh_verify, asked_count), FROM, BH_VERIFY_ASKED_MAX + 1 },
    { "an isolation that is none", IN_VERIFY, 0, AT(bh_verify, isolation), FROM, BH_ISOLATION_PARTLY_FAILED },
    { "failed, and tried again", IN_VERIFY, 0, AT(bh_verify, failed_node), SET, 1 },
    { "fences beyond all", IN_VERIFY, 0, AT(bh_verify, fences.count), FROM, BH_FENCES_MAX + 1 },
    { "checks beyond all", IN_VERIFY, 0, AT(bh_verify, own.count), FROM, BH_REPORT_CHECKS_MAX + 1 },
    { "why, without an end", IN_VERIFY, 0, AT(bh_verify, why), FILL, 0 },
    { "questions beyond all", IN_SURVEY, 0, AT(bh_survey, count), FROM, BH_SURVEY_QUESTIONS_MAX + 1 },
    { "asked nothing", IN_SURVEY, 0, AT(bh_survey, asked), SET, 1 },
    { "shares beyond all", IN_SHARES, 0, AT(bh_share_leases, count), FROM, BH_SHARE_LEASES_MAX + 1 },
    { "no program of shares", IN_SHARES, 0, AT(bh_share_leases, host), TO_NOWHERE, 0 },
    { "out of turns on no device", IN_SHARE_ROW, 0, AT(bh_share_lease_row, out_of_slice), FROM, 1 << 16 },
    { "beyond its turns below nothing", IN_SHARE_ROW, 0, AT(bh_share_lease_row, time[0].beyond_ns), SET, -1 },
    { "seen on a GPU without an end", IN_SHARE_ROW, 0, AT(bh_share_lease_row, observed.gpu), FILL, 0 },
    { "a notice of nothing", IN_SHARE_ROW, 0, AT(bh_share_lease_row, pending_notices[3].logged), SET, 1 },
    { "watchers beyond all", IN_GPUS, 0, AT(bh_gpu_client, watcher_count), FROM, BH_GPU_WATCHED_MAX + 1 },
    { "a child without a connection", IN_GPUS, 0, AT(bh_gpu_client, answering.pid), FROM, 1 << 22 },
    { "a child below all", IN_GPUS, 0, AT(bh_gpu_client, surveying.pid), SET, -1 },
    { "abandoned beyond all", IN_GPUS, 0, AT(bh_gpu_client, abandoned_count), FROM, 200 },
    { "a child of no number", IN_GPUS, 0, AT(bh_gpu_client, abandoned_count), SET, 1 },
    { "hidden beyond all", IN_GPUS, 0, AT(bh_gpu_client, hidden_count), FROM, BH_GPU_HIDDEN_MAX + 1 },
    { "asked, and waited for no longer", IN_GPUS, 0, AT(bh_gpu_client, asked), SET, 1 },
    { "no time to answer", IN_GPUS, 0, AT(bh_gpu_client, read_deadline), SET, 0 },
};

/* ---- planting ---- */

static void *
plant_find_job(struct bh_node *node, uint32_t lease, uint32_t seed)
{
    static const uint32_t running[] = { LEASE_RUNS, LEASE_SHARES, LEASE_SHARES_TOO };

    return bh_state_job(&node->state, lease ? lease : running[seed % BH_COUNT(running)]);
}

static void *
plant_find(struct planted_node *planted, const struct plant *plant, uint32_t seed)
{
    struct bh_node *node = &planted->node;
    uint32_t of_partitions[] = { 101, 103, 104, 105 }, of_orders[] = { 101, 102, 104, 105 };
    char gpu[BH_UUID_MAX];

    snprintf(gpu, sizeof gpu, "GPU-%u", plant->which);
    switch (plant->in) {
    case IN_NODE:
        return node;
    case IN_JOB:
        return plant_find_job(node, plant->which, seed);
    case IN_PARTITION:
        return bh_state_partition(&node->state, plant->which ? plant->which : of_partitions[seed % 4]);
    case IN_ORDER:
        return bh_state_order(&node->state, plant->which ? plant->which : of_orders[seed % 4]);
    case IN_RECEIPT:
        return &node->state.receipts[seed % node->state.receipt_count];
    case IN_OWNERSHIP:
        return (void *)(uintptr_t)bh_ownership_map_find(&node->state.ownership, gpu);
    case IN_PENDING:
        return &planted->orders->waiting.item[0];
    case IN_ORDERS:
        return planted->orders;
    case IN_RESET:
        return node->reset;
    case IN_HEALTH:
        return node->health;
    case IN_GPU_HEALTH:
        return &node->health->gpu_state[seed % node->health->count];
    case IN_VERIFY:
        return node->verify;
    case IN_SURVEY:
        return node->survey;
    case IN_SHARES:
        return node->share_leases;
    case IN_SHARE_ROW:
        return &node->share_leases->rows[seed % 2];
    case IN_GPUS:
        return node->gpus;
    case IN_WATCHER:
        return &node->gpus->watchers[0];
    }
    return NULL;
}

static void
plant_set(uint8_t *at, const struct plant *plant, uint32_t seed)
{
    int64_t value = 0;

    if (plant->how == FILL) {
        memset(at, 'a' + (int)(seed % 26), plant->size);
        return;
    }
    if (plant->how == FLIP) {
        *at ^= (uint8_t)(1 << plant->value);
        return;
    }
    memcpy(&value, at, plant->size < sizeof value ? plant->size : sizeof value);
    value = plant->how == SET    ? plant->value
            : plant->how == FROM ? plant->value + (int64_t)(seed * UINT32_C(2654435761) % 5)
            : plant->how == ADD  ? value + plant->value
                                 : 0;
    memcpy(at, &value, plant->size < sizeof value ? plant->size : sizeof value);
}

/* ---- one node ---- */

static char folder[32] = "/dev/shm/bh-planted-XXXXXX"; /* what is noted is synced: no disk waits */

/* In a process of its own.  What it says on standard error goes to `output`. */
static int
plant_run(const struct plant *plant, uint32_t seed, struct planted_trace *trace, int output)
{
    char world[80];
    int status = 0;
    pid_t pid;

    bh_path_format(world, sizeof world, "%s/world", folder);
    bh_path_remove_tree(world);
    mkdir(world, 0700);
    trace->length = 0;
    (void)!ftruncate(output, 0);
    pid = fork();
    if (pid == 0) {
        struct planted_node *planted;
        void *object;

        for (int number = 1; number < NSIG; number++)
            signal(number, SIG_DFL); /* cmocka goes on behind a crash */
        alarm(TOO_LONG_S);
        dup2(output, STDERR_FILENO);
        lseek(STDERR_FILENO, 0, SEEK_SET);
        planted = bh_planted_new(world, trace);
        object = plant ? plant_find(planted, plant, seed) : NULL;
        if (plant && !object)
            _exit(4);
        if (plant)
            plant_set((uint8_t *)object + plant->offset, plant, seed);
        bh_planted_play(planted);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

enum verdict { CAUGHT, WRONG, SILENT, VERDICTS };

static enum verdict
plant_judge(const struct planted_trace *twin, const struct planted_trace *trace, int status, const char *said)
{
    bool begins = trace->length <= twin->length && memcmp(trace->text, twin->text, trace->length) == 0;

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(said, "assertion failed") && begins)
        return CAUGHT;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && begins && trace->length == twin->length ? SILENT
                                                                                                    : WRONG;
}

/* Where it went another way, for who has to mend it. */
static void
plant_explain(const struct plant *plant, const struct planted_trace *twin, const struct planted_trace *trace,
              const char *said)
{
    uint32_t at = 0, from;

    while (at < trace->length && at < twin->length && trace->text[at] == twin->text[at])
        at++;
    for (from = at; from > 0 && twin->text[from - 1] != '\n'; from--)
        ;
    fprintf(stderr, "%s: differs at %u of %u: \"%.*s\" for \"%.*s\"; %s\n", plant->name, at, twin->length,
            (int)strcspn(trace->text + from, "\n") < 200 ? (int)strcspn(trace->text + from, "\n") : 200,
            trace->text + from,
            (int)strcspn(twin->text + from, "\n") < 200 ? (int)strcspn(twin->text + from, "\n") : 200,
            twin->text + from, strstr(said, "assertion") ? strstr(said, "assertion") : said);
}

static struct planted_trace *
plant_new_trace(void)
{
    void *trace =
        mmap(NULL, sizeof(struct planted_trace), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(trace != MAP_FAILED);
    return trace;
}

static uint32_t first_seed = 1, seeds = 1;
static const char *only;

static void
plant_all(uint32_t seed, const struct planted_trace *twin, int output, uint32_t counts[VERDICTS])
{
    struct planted_trace *trace = plant_new_trace();

    for (size_t i = 0; i < BH_COUNT(plants); i++) {
        char said[OUTPUT_MAX] = "";
        enum verdict verdict;
        int status;

        if (only && !strstr(plants[i].name, only))
            continue;
        status = plant_run(&plants[i], seed, trace, output);
        (void)!pread(output, said, sizeof said - 1, 0);
        trace->text[trace->length] = '\0';
        verdict = plant_judge(twin, trace, status, said);
        counts[verdict]++;
        if (verdict == SILENT)
            fprintf(stderr, "%s: no difference\n", plants[i].name);
        else if (verdict == WRONG || only)
            plant_explain(&plants[i], twin, trace, said);
    }
    munmap(trace, sizeof *trace);
}

/* One bit of any object. */
static struct plant
plant_blind(uint32_t seed)
{
    static const struct {
        enum object in;
        size_t size;
    } objects[] = {
        { IN_JOB, sizeof(struct bh_job) },
        { IN_JOB, offsetof(struct bh_job, record.lent[1]) },
        { IN_PARTITION, sizeof(struct bh_node_partition) },
        { IN_ORDER, sizeof(struct bh_order) },
        { IN_RECEIPT, sizeof(struct bh_msg_receipt) },
        { IN_OWNERSHIP, sizeof(struct bh_ownership_gpu) },
        { IN_PENDING, sizeof(struct bh_pending_order) },
        { IN_RESET, offsetof(struct bh_reset, err) },
        { IN_GPU_HEALTH, sizeof(struct bh_health_state) },
        { IN_SHARE_ROW, sizeof(struct bh_share_lease_row) },
        { IN_GPUS, sizeof(struct bh_gpu_client) },
    };
    uint64_t random = seed;
    size_t of, offset;

    for (int i = 0; i < 4; i++)
        random = (random ^ random >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + 1;
    of = random % BH_COUNT(objects);
    offset = (random >> 8) % objects[of].size;
    return (struct plant){ "blind", objects[of].in, 0, offset, 1, FLIP, (int64_t)(random >> 60 & 7) };
}

static void
test_blind(void **unused)
{
    int output = memfd_create("said", MFD_CLOEXEC);
    struct planted_trace *twin = plant_new_trace(), *trace = plant_new_trace();
    uint32_t counts[VERDICTS] = { 0 };

    BH_CHECK_EQ("the twin ends", plant_run(NULL, 0, twin, output), 0);
    for (uint32_t seed = first_seed; seed < first_seed + seeds; seed++) {
        const struct plant plant = plant_blind(seed);
        char said[OUTPUT_MAX] = "";
        int status = plant_run(&plant, seed, trace, output);
        enum verdict verdict;

        (void)!pread(output, said, sizeof said - 1, 0);
        verdict = plant_judge(twin, trace, status, said);
        counts[verdict]++;
        if (verdict == WRONG)
            fprintf(stderr, "object %u offset %zu bit %d\n", (unsigned)plant.in, plant.offset,
                    (int)plant.value);
    }
    printf("# blind: %u caught, %u wrong, %u without a difference\n", counts[CAUGHT], counts[WRONG],
           counts[SILENT]);
    close(output);
    BH_CHECK_DONE();
}

static void
test_planted(void **unused)
{
    int output = memfd_create("said", MFD_CLOEXEC);
    struct planted_trace *twin = plant_new_trace(), *again = plant_new_trace();

    BH_CHECK_EQ("the twin ends", plant_run(NULL, 0, twin, output), 0);
    BH_CHECK_EQ("and its twin", plant_run(NULL, 0, again, output), 0);
    BH_CHECK("they say the same",
             twin->length == again->length && memcmp(twin->text, again->text, twin->length) == 0);
    if (only && strcmp(only, "twin") == 0) {
        char said[OUTPUT_MAX] = "";

        (void)!pread(output, said, sizeof said - 1, 0);
        fprintf(stderr, "%s%s", twin->text, said);
    }
    for (uint32_t seed = first_seed; seed < first_seed + seeds; seed++) {
        uint32_t counts[VERDICTS] = { 0 }, told;

        plant_all(seed, twin, output, counts);
        told = counts[CAUGHT] + counts[WRONG];
        printf("# seed %u: %u planted, %u caught, %u wrong, %u without a difference\n", seed,
               told + counts[SILENT], counts[CAUGHT], counts[WRONG], counts[SILENT]);
        BH_CHECK("enough of them", only || told >= 100);
        BH_CHECK("caught", only || counts[CAUGHT] * 100 >= told * LEAST_PERCENT);
    }
    close(output);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_planted) };
    const struct CMUnitTest blind[] = { cmocka_unit_test(test_blind) };
    bool is_blind = argc > 1 && strcmp(argv[1], "blind") == 0;
    int failed;

    argc -= is_blind;
    argv += is_blind;
    first_seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : first_seed;
    seeds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : seeds;
    only = argc > 3 ? argv[3] : NULL;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (access("/dev/shm", W_OK) != 0)
        snprintf(folder, sizeof folder, "/tmp/bh-planted-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    failed = is_blind ? cmocka_run_group_tests(blind, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
    bh_path_remove_tree(folder);
    return failed;
}
