#include "node/job/scrub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/utf8.h"
#include "node/common/path.h"
#include "node/core/driver_scrub.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/job/scrub_run.h"
#include "node/placement/handover.h"
#include "node/placement/placement.h"
#include "node/placement/share_slot.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/occupancy.h"

enum { LEAST_PERCENT = 80 };

/* A run that did not end is repeated after a pause that doubles.  A helper that took too long is tried only
 * once more. */
enum { INTERRUPTIONS_MAX = 4, TIMEOUTS_MAX = 2 };
#define PAUSE_FIRST (100 * BH_NS_PER_MS)
#define PAUSE_MOST (2 * BH_NS_PER_S)
#define GONE_WITHIN (30 * BH_NS_PER_S) /* what is left of a helper that was killed */
#define GONE_POLL_INTERVAL (10 * BH_NS_PER_MS)

/* ---- is it due? ---- */

struct bh_scrub_request
bh_scrub_request_of(const struct bh_node_record *order)
{
    return (struct bh_scrub_request){ .order = order->order,
                                      .partition = order->partition.partition,
                                      .tenant = order->tenant,
                                      .job = order->job };
}

/* Either a share was scrubbed for the tenant and no lease has had memory of its GPU since, or the memory
 * holds no other tenant's bytes. */
static bool
scrub_may_have(const struct bh_node *node, const struct bh_node_partition *partition, uint32_t tenant)
{
    return (bh_placement_is_share(partition) && partition->cleared_for == tenant)
           || bh_ownership_map_allows(&node->state.ownership, partition, tenant);
}

bool
bh_scrub_is_due(const struct bh_node *node, const struct bh_scrub_request *request)
{
    const struct bh_node_partition *partition = bh_state_partition(&node->state, request->partition);

    return partition && !scrub_may_have(node, partition, request->tenant);
}

/* The partition at the placement that the lease was lent: a resumed lease may get another one. */
static const struct bh_node_partition *
scrub_partition_of(const struct bh_node *node, const struct bh_node_partition *lent)
{
    const struct bh_node_partition *now = bh_state_partition_at(&node->state, lent->gpu, lent->gi);

    return now ? now : lent;
}

bh_rc
bh_scrub_check(const struct bh_node *node, const struct bh_node_record *lease, struct bh_err *err)
{
    bh_state_assert_lease(lease);
    for (uint32_t i = 0; i < lease->lent_count; i++) {
        if (!scrub_may_have(node, scrub_partition_of(node, &lease->lent[i]), lease->tenant))
            return bh_err_set(err, BH_CONFLICT,
                              "memory of partition %" PRIu64 " was another tenant's and has no receipt",
                              lease->lent[i].partition);
    }
    return BH_OK;
}

/* ---- the table of those under way ---- */

struct scrub {
    enum { FREE, RUNS, OVER } state;
    struct bh_scrub_request request;
    struct bh_node_record record; /* the receipt, as far as it goes */
    struct bh_scrub_run run;
    uint64_t most;        /* bytes that it may take; 0: all */
    bh_ns check_at;       /* monotonic; while no run is under way, when the next one begins */
    bh_ns pause, gone_by; /* between two runs; when the helper before must have gone */
    uint32_t interruptions, timeouts;
    bool logged;       /* its receipt is written, and its last helper has not gone yet */
    bool left;         /* no order waits for it */
    bool was_bad;      /* a run has read back something else than it filled */
    struct bh_err err; /* when over: the result */
};

struct bh_scrubs {
    struct scrub scrub[BH_SCRUBS_MAX];
};

static void
scrub_assert(const struct scrub *scrub)
{
    const struct bh_msg_receipt *receipt = &scrub->record.receipt;

    BH_ASSERT(scrub->state <= OVER);
    if (scrub->state == FREE)
        return;
    BH_ASSERT(scrub->request.order != 0 && receipt->order == scrub->request.order);
    BH_ASSERT(scrub->record.partition.partition == scrub->request.partition);
    BH_ASSERT(receipt->partition == scrub->request.partition && receipt->tenant == scrub->request.tenant);
    BH_ASSERT(scrub->record.kind == BH_NODE_RECORD_RECEIPT && scrub->pause <= PAUSE_MOST);
    BH_ASSERT(scrub->interruptions <= INTERRUPTIONS_MAX && scrub->timeouts <= TIMEOUTS_MAX);
    BH_ASSERT(scrub->state == RUNS || (!scrub->left && !scrub->logged && !scrub->run.helper));
    BH_ASSERT(!scrub->logged || (scrub->gone_by && !scrub->run.helper));
    bh_state_assert_receipt(receipt);
    bh_state_assert_partition(&scrub->record.partition);
}

struct bh_scrubs *
bh_scrubs_new(void)
{
    struct bh_scrubs *scrubs = calloc(1, sizeof *scrubs);

    BH_ASSERT(scrubs);
    return scrubs;
}

void
bh_scrubs_free(struct bh_scrubs *scrubs)
{
    free(scrubs);
}

static struct scrub *
scrub_find(const struct bh_node *node, uint64_t order, uint64_t partition)
{
    for (uint32_t i = 0; i < BH_SCRUBS_MAX; i++) {
        struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state != FREE && !scrub->left && scrub->request.order == order
            && scrub->request.partition == partition)
            return scrub;
    }
    return NULL;
}

bool
bh_scrub_runs(const struct bh_node *node, uint64_t order)
{
    for (uint32_t i = 0; i < BH_SCRUBS_MAX; i++) {
        const struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state == RUNS && scrub->request.order == order)
            return true;
    }
    return false;
}

bool
bh_scrub_runs_on(const struct bh_node *node, const char *gpu)
{
    for (uint32_t i = 0; i < BH_SCRUBS_MAX; i++) {
        const struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state == RUNS && strcmp(scrub->record.partition.gpu, gpu) == 0)
            return true;
    }
    return false;
}

/* One that is under way where the lease has its placements, for any tenant. */
static bool
scrub_runs_at(const struct bh_node *node, const struct bh_node_record *lease)
{
    for (uint32_t i = 0; i < BH_SCRUBS_MAX; i++) {
        const struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state == RUNS && bh_placement_overlaps(lease, &scrub->record.partition))
            return true;
    }
    return false;
}

/* A place for a scrub of that GPU; NULL: it must wait for another. */
static struct scrub *
scrub_find_slot(const struct bh_node *node, const char *gpu)
{
    struct scrub *slot = NULL;

    BH_ASSERT(*gpu);
    for (uint32_t i = 0; i < BH_SCRUBS_MAX && !slot; i++) {
        struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state == FREE)
            slot = scrub;
    }
    return bh_scrub_runs_on(node, gpu) ? NULL : slot;
}

/* ---- what is made of an answer ---- */

/* Where the library is not, nothing can be filled: then the instance that was made anew,
 * and the driver's own scrubbing, have to do, if node.conf lets them. */
static bh_rc
scrub_accept_unsampled(const struct bh_node *node, struct bh_msg_receipt *receipt, const char *why,
                       struct bh_err *err)
{
    bool whole = strcmp(receipt->profile, "whole") == 0;

    receipt->method = whole ? BH_SCRUB_NONE : BH_SCRUB_RECREATE;
    receipt->result = BH_SCRUB_INTERRUPTED;
    snprintf(receipt->why, sizeof receipt->why, "%.199s", why);
    if (node->conf.scrub_required)
        return bh_err_set(err, BH_UNAVAILABLE, "not sampled, but scrub_required is set: %.120s", why);
    if (receipt->driver == BH_DRIVER_SCRUB_OFF)
        return bh_err_set(err, BH_UNAVAILABLE, "not sampled, and the driver does not clear memory: %.120s",
                          why);
    receipt->result = BH_SCRUB_UNSAMPLED;
    return BH_OK;
}

/* What the helper says is held against what the partition is. */
static bh_rc
scrub_judge(const struct bh_node_partition *partition, const struct bh_scrub_report *report,
            struct bh_msg_receipt *receipt, struct bh_err *err)
{
    uint64_t least = receipt->beside ? 1 : ((uint64_t)partition->memory_mib << 20) / 100 * LEAST_PERCENT;

    receipt->method = BH_SCRUB_FILL;
    receipt->bytes = report->bytes;
    receipt->samples = report->samples;
    receipt->residue = report->residue;
    receipt->unfilled = report->unfilled;
    receipt->result = BH_SCRUB_INTERRUPTED;
    if (report->end == BH_SCRUB_END_REFUSED)
        return bh_err_set(err, BH_IO, "%s", report->why);
    if (report->end == BH_SCRUB_END_UNFILLED || report->unfilled > 0) {
        receipt->result = BH_SCRUB_FAILED;
        return bh_err_set(err, BH_IO,
                          "%" PRIu64 " of %" PRIu64 " samples do not read back as "
                          "they were filled",
                          report->unfilled, report->samples);
    }
    if (strcmp(report->uuid, partition->uuid) != 0)
        return bh_err_set(err, BH_IO, "the helper filled %s instead of %s", report->uuid, partition->uuid);
    if (report->bytes < least || report->samples == 0)
        return bh_err_set(err, BH_IO, "the helper filled only %" PRIu64 " bytes", report->bytes);
    receipt->result = receipt->beside ? BH_SCRUB_PARTIAL : BH_SCRUB_CLEAN;
    return BH_OK;
}

/* ---- its course ---- */

static void
scrub_begin_receipt(const struct bh_node *node, const struct bh_scrub_request *request,
                    const struct bh_node_partition *partition, struct bh_msg_receipt *receipt)
{
    *receipt = (struct bh_msg_receipt){
        .order = request->order,
        .partition = request->partition,
        .tenant = request->tenant,
        .job = request->job,
        .start = partition->start,
        .begun_ns = bh_time_now(),
        .driver = bh_driver_scrub_read(node),
        .result = BH_SCRUB_INTERRUPTED,
        .memory_bytes = (uint64_t)partition->memory_mib << 20,
    };
    snprintf(receipt->gpu, sizeof receipt->gpu, "%s", partition->gpu);
    snprintf(receipt->uuid, sizeof receipt->uuid, "%s", partition->uuid);
    snprintf(receipt->profile, sizeof receipt->profile, "%s", partition->profile);
    bh_ownership_map_list_owners(&node->state.ownership, partition, receipt);
}

/* What was done, and nothing else. */
static void
scrub_log_receipt(const struct bh_msg_receipt *receipt)
{
    if (receipt->result == BH_SCRUB_FAILED)
        bh_log(SCRUB_FAILED, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
               BH_STR("why", receipt->why));
    else if (receipt->result == BH_SCRUB_INTERRUPTED)
        bh_log(SCRUB_INTERRUPTED, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
               BH_STR("why", receipt->why));
    else if (receipt->result == BH_SCRUB_UNSAMPLED)
        bh_log(NOT_SCRUBBED, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
               BH_STR("why", receipt->why));
    else if (receipt->result == BH_SCRUB_PARTIAL)
        bh_log(SCRUBBED_PARTLY, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
               BH_U64("bytes", receipt->bytes), BH_U64("of", receipt->memory_bytes),
               BH_U64("residue", receipt->residue), BH_STR("why", receipt->why));
    else
        bh_log(SCRUBBED, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
               BH_STR("method", bh_scrub_method_names[receipt->method]), BH_U64("bytes", receipt->bytes),
               BH_U64("residue", receipt->residue));
}

/* A scrub is over when no process of its helper uses the partition, which may be used at once.  A process
 * that stays keeps every tenant from the partition. */
static void
scrub_finish(struct bh_node *node, struct scrub *scrub)
{
    bh_ns now = bh_time_monotonic();

    BH_ASSERT(scrub->state == RUNS);
    scrub_assert(scrub);
    scrub->gone_by = scrub->logged ? scrub->gone_by : now + GONE_WITHIN;
    scrub->logged = bh_helper_sandbox_holds(node, &scrub->record.partition) && now < scrub->gone_by;
    scrub->check_at = now + GONE_POLL_INTERVAL;
    if (scrub->logged)
        return;
    if (bh_helper_sandbox_holds(node, &scrub->record.partition) && scrub->err.rc == BH_OK)
        bh_err_set(&scrub->err, BH_UNAVAILABLE, "the helper that scrubbed partition %" PRIu64 " does not end",
                   scrub->request.partition);
    scrub->state = scrub->left ? FREE : OVER;
}

/* The receipt is noted and sent, and the scrub waits for the order that asked for it. */
static void
scrub_conclude(struct bh_node *node, struct scrub *scrub)
{
    struct bh_msg_receipt *receipt = &scrub->record.receipt;
    bh_rc rc = scrub->err.rc, recorded;
    struct bh_err refused;

    BH_ASSERT(scrub->state == RUNS && !scrub->logged && !scrub->run.helper);
    if (rc != BH_OK && !*receipt->why)
        snprintf(receipt->why, sizeof receipt->why, "%.199s", scrub->err.msg);
    bh_utf8_scrub(receipt->why);
    receipt->ended_ns = bh_time_now();
    recorded = bh_state_record(&node->state, &scrub->record, &refused);
    scrub_log_receipt(receipt);
    if (recorded == BH_OK)
        bh_node_send(node, BH_MSG_RECEIPT, receipt);
    if (rc == BH_OK && recorded != BH_OK)
        scrub->err = refused;
    if (scrub->err.rc != BH_OK)
        bh_err_wrap(&scrub->err, "scrub of partition %" PRIu64 " on GPU %s", scrub->request.partition,
                    scrub->record.partition.gpu);
    scrub_finish(node, scrub);
}

/* Another run after a pause, or the last failure. */
static void
scrub_try_later(struct bh_node *node, struct scrub *scrub, bool more)
{
    BH_ASSERT(scrub->state == RUNS);
    scrub->record.receipt.result = BH_SCRUB_INTERRUPTED; /* bad memory is bad twice */
    if (!more || scrub->left) {
        scrub_conclude(node, scrub);
        return;
    }
    scrub->pause = !scrub->pause                   ? PAUSE_FIRST
                   : scrub->pause > PAUSE_MOST / 2 ? PAUSE_MOST
                                                   : 2 * scrub->pause;
    scrub->check_at = bh_time_monotonic() + scrub->pause;
}

void
bh_scrub_leave(struct bh_node *node, uint64_t order)
{
    for (uint32_t i = 0; i < BH_SCRUBS_MAX; i++) {
        struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state == FREE || scrub->request.order != order)
            continue;
        scrub->left = true;
        if (scrub->state == OVER)
            scrub->state = FREE;
        else if (!scrub->logged && !scrub->run.helper) /* in a pause: there is no other run */
            scrub_try_later(node, scrub, false);
    }
}

/* One more run.  What is left of the last one, or of one of a node that was killed, must have gone
 * before. */
static void
scrub_try_run(struct bh_node *node, struct scrub *scrub)
{
    bh_ns now = bh_time_monotonic();
    bool gone;
    bh_rc rc;

    BH_ASSERT(scrub->state == RUNS && !scrub->logged);
    scrub->run = (struct bh_scrub_run){ 0 };
    scrub->gone_by = scrub->gone_by ? scrub->gone_by : now + GONE_WITHIN;
    rc = bh_scrub_run_begin(node, &scrub->record.partition, scrub->most, &scrub->run, &scrub->err);
    gone = rc != BH_CONFLICT && rc != BH_FULL;
    if (rc == BH_OK) {
        scrub->record.receipt.tries++;
        scrub->gone_by = 0;
        scrub->check_at = now;
        return;
    }
    scrub->interruptions += gone;
    scrub_try_later(node, scrub, gone ? scrub->interruptions < INTERRUPTIONS_MAX : now < scrub->gone_by);
}

/* A run is over that does not end the scrub. */
static void
scrub_record_interruption(struct bh_node *node, struct scrub *scrub)
{
    bool late = scrub->err.rc == BH_TIMEOUT;

    scrub->interruptions += !late;
    scrub->timeouts += late;
    scrub_try_later(node, scrub, scrub->interruptions < INTERRUPTIONS_MAX && scrub->timeouts < TIMEOUTS_MAX);
}

/* Bytes that do not read back are filled a second time before the memory is called bad. */
static void
scrub_record_bad(struct bh_node *node, struct scrub *scrub)
{
    bool again = scrub->was_bad;

    scrub->was_bad = true;
    if (again)
        scrub_conclude(node, scrub);
    else if (scrub->left)
        scrub_try_later(node, scrub, false);
    else
        scrub_try_run(node, scrub);
}

/* How many shares ran beside it is a separate number: not every reader of this text knows them. */
static void
scrub_explain_part(struct bh_msg_receipt *receipt)
{
    snprintf(receipt->why, sizeof receipt->why,
             "%" PRIu64 " of %" PRIu64
             " MiB: leases that share the GPU used the rest, or it was promised to them",
             receipt->bytes >> 20, receipt->memory_bytes >> 20);
}

/* Those that run beside it left no page free. */
static bool
scrub_has_none(const struct bh_msg_receipt *receipt, const struct bh_scrub_report *report)
{
    return receipt->beside && report->end == BH_SCRUB_END_CLEAN && report->bytes == 0;
}

static void
scrub_record_report(struct bh_node *node, struct scrub *scrub, const struct bh_scrub_report *report)
{
    struct bh_msg_receipt *receipt = &scrub->record.receipt;

    scrub->run.helper = NULL;
    if (scrub->err.rc != BH_OK) {
        scrub_record_interruption(node, scrub);
        return;
    }
    if (report->end == BH_SCRUB_END_NO_LIBRARY || scrub_has_none(receipt, report)) {
        scrub->err.rc = scrub_accept_unsampled(
            node, receipt, *report->why ? report->why : "other leases use all memory", &scrub->err);
        scrub_conclude(node, scrub);
        return;
    }
    scrub->err.rc = scrub_judge(&scrub->record.partition, report, receipt, &scrub->err);
    if (receipt->result == BH_SCRUB_PARTIAL)
        scrub_explain_part(receipt);
    if (scrub->err.rc == BH_OK)
        scrub_conclude(node, scrub);
    else if (receipt->result == BH_SCRUB_FAILED)
        scrub_record_bad(node, scrub);
    else
        scrub_record_interruption(node, scrub);
}

static bool
scrub_is_beside(const struct bh_node *node, const struct bh_node_partition *partition)
{
    return bh_placement_is_share(partition) && bh_share_slot_neighbours(node, partition->gpu).leases > 0;
}

/* Whether there is something to fill, and something to fill it with; else why not.  Beside others
 * only what none of them was promised. */
static bool
scrub_can_fill(const struct bh_node *node, struct scrub *scrub, char *ret_why, size_t size)
{
    const struct bh_node_partition *partition = &scrub->record.partition;
    struct bh_share_neighbours beside = bh_share_slot_neighbours(node, partition->gpu);

    if (!bh_scrub_has_helper(node, ret_why, size))
        return false;
    if (!scrub->record.receipt.beside)
        return true;
    scrub->most = bh_share_slot_free_bytes(node, partition, &beside);
    if (scrub->most == 0)
        snprintf(
            ret_why, size,
            "all memory was promised to other leases of the GPU, and the driver clears what it allocates");
    return scrub->most > 0;
}

static void
scrub_begin(struct bh_node *node, struct scrub *scrub, const struct bh_scrub_request *request)
{
    const struct bh_node_partition *partition = bh_state_partition(&node->state, request->partition);
    char why[200];

    BH_ASSERT(partition && scrub->state == FREE);
    *scrub = (struct scrub){ .state = RUNS, .request = *request, .record.kind = BH_NODE_RECORD_RECEIPT };
    scrub->record.partition = *partition;
    scrub_begin_receipt(node, request, &scrub->record.partition, &scrub->record.receipt);
    if (bh_placement_is_share(partition))
        scrub->record.receipt.neighbors = bh_share_slot_neighbours(node, partition->gpu).leases;
    scrub->record.receipt.beside = scrub->record.receipt.neighbors > 0;
    if (scrub_can_fill(node, scrub, why, sizeof why)) {
        scrub->record.receipt.method = BH_SCRUB_FILL;
        scrub_try_run(node, scrub);
        return;
    }
    scrub->err.rc = scrub_accept_unsampled(node, &scrub->record.receipt, why, &scrub->err);
    scrub_conclude(node, scrub);
}

/* Take it on as far as it goes now. */
static void
scrub_advance(struct bh_node *node, struct scrub *scrub, bh_ns now)
{
    struct bh_scrub_report report;

    if (scrub->logged)
        scrub_finish(node, scrub);
    else if (!scrub->run.helper && scrub->check_at <= now)
        scrub_try_run(node, scrub);
    else if (scrub->run.helper && (scrub->check_at <= now || bh_helper_sandbox_has_ended(scrub->run.helper))
             && bh_scrub_run_advance(node, &scrub->run, &scrub->check_at, &report, &scrub->err))
        scrub_record_report(node, scrub, &report);
}

bh_ns
bh_scrubs_tick(struct bh_node *node, bh_ns now)
{
    bh_ns next = 0;

    for (uint32_t i = 0; i < BH_SCRUBS_MAX; i++) {
        struct scrub *scrub = &node->scrubs->scrub[i];

        scrub_assert(scrub);
        if (scrub->state == RUNS)
            scrub_advance(node, scrub, now);
        if (scrub->state == RUNS)
            next = bh_node_sooner(next, scrub->check_at);
    }
    return next;
}

/* ---- asking ---- */

/* The answer of a scrub that was begun for the request; or begin one, when it is due. */
static bh_rc
scrub_ask(struct bh_node *node, const struct bh_scrub_request *request, bool due, bool *ret_waits,
          struct bh_err *err)
{
    struct scrub *scrub = scrub_find(node, request->order, request->partition);
    const struct bh_node_partition *partition = bh_state_partition(&node->state, request->partition);

    BH_ASSERT(request->order != 0 && (!due || partition));
    *ret_waits = false;
    if (!scrub && !due)
        return BH_OK;
    if (!scrub) {
        scrub = scrub_find_slot(node, partition->gpu);
        if (scrub)
            scrub_begin(node, scrub, request);
    }
    *ret_waits = !scrub || scrub->state == RUNS;
    if (*ret_waits)
        return BH_OK;
    *err = scrub->err;
    scrub->state = FREE;
    return err->rc;
}

bh_rc
bh_scrub_before(struct bh_node *node, const struct bh_scrub_request *request, bool *ret_waits,
                struct bh_err *err)
{
    bh_rc rc = bh_handover_check(node, bh_state_partition(&node->state, request->partition), request->tenant,
                                 ret_waits, err);

    if (rc != BH_OK || *ret_waits)
        return rc;
    return scrub_ask(node, request, bh_scrub_is_due(node, request), ret_waits, err);
}

bh_rc
bh_scrub_repeat_failed(struct bh_node *node, const struct bh_scrub_request *request, bool *ret_waits,
                       struct bh_err *err)
{
    const struct bh_node_partition *partition = bh_state_partition(&node->state, request->partition);

    *ret_waits = partition && bh_handover_is_held(node, partition);
    if (*ret_waits)
        return BH_OK;
    return scrub_ask(node, request,
                     partition && bh_ownership_map_has_failed(&node->state.ownership, partition)
                         && !scrub_is_beside(node, partition),
                     ret_waits, err);
}

/* One of the lease's partitions.  Of memory that shares have together, all that is not the tenant's is
 * scrubbed; of other memory, what has an unknown tenant. */
static bh_rc
scrub_prepare_partition(struct bh_node *node, const struct bh_scrub_request *request,
                        const struct bh_node_partition *partition, bool *ret_waits, struct bh_err *err)
{
    bool due = bh_scrub_is_due(node, request);
    bh_rc rc = BH_OK;

    *ret_waits = false;
    if (!bh_placement_is_share(partition))
        return scrub_ask(
            node, request,
            due && bh_ownership_map_is_unknown(&node->state.ownership, partition, request->tenant), ret_waits,
            err);
    if (bh_scrub_runs_on(node, partition->gpu)) { /* it may take all that there is */
        *ret_waits = true;
        return BH_OK;
    }
    if (due && !scrub_find(node, request->order, request->partition))
        rc = bh_share_slot_check_memory(node, partition, request->tenant, err);
    if (rc == BH_OK)
        rc = scrub_ask(node, request, due, ret_waits, err);
    return rc == BH_OK && due && !*ret_waits
               ? bh_share_slot_clear(node, request->partition, request->tenant, err)
               : rc;
}

/* What was cleaned for another job, and goes to this one as it is, has a receipt that says by which
 * scrub: its own tenant may not see that one. */
static bh_rc
scrub_prove_partition(struct bh_node *node, const struct bh_scrub_request *request,
                      const struct bh_node_partition *partition, struct bh_err *err)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_RECEIPT, .partition = *partition };
    struct bh_msg_receipt *receipt = &record.receipt;
    bh_rc rc;

    scrub_begin_receipt(node, request, partition, receipt);
    if (!bh_ownership_map_prove(&node->state.ownership, partition, receipt))
        return BH_OK;
    receipt->method = BH_SCRUB_EARLIER;
    receipt->ended_ns = receipt->begun_ns;
    if (receipt->by_count == 0)
        snprintf(receipt->why, sizeof receipt->why, "the receipt of its scrub is lost");
    rc = bh_state_record(&node->state, &record, err);
    if (rc != BH_OK)
        return rc;
    bh_log(SCRUBBED_EARLIER, BH_STR("gpu", receipt->gpu), BH_U64("partition", receipt->partition),
           BH_U64("receipt", receipt->by[0].receipt));
    bh_node_send(node, BH_MSG_RECEIPT, receipt);
    return BH_OK;
}

static bh_rc
scrub_prove(struct bh_node *node, const struct bh_node_record *lease, uint64_t order, struct bh_err *err)
{
    bh_rc rc = bh_scrub_check(node, lease, err);

    for (uint32_t i = 0; i < lease->lent_count && rc == BH_OK; i++) {
        const struct bh_node_partition *partition = scrub_partition_of(node, &lease->lent[i]);
        struct bh_scrub_request request = { order, partition->partition, lease->tenant, lease->job };

        rc = scrub_prove_partition(node, &request, partition, err);
    }
    return rc;
}

bh_rc
bh_scrub_prepare(struct bh_node *node, const struct bh_node_record *lease, uint64_t order, bool *ret_waits,
                 struct bh_err *err)
{
    bh_rc rc = BH_OK;

    bh_node_assert(node);
    BH_ASSERT(order != 0);
    *ret_waits = scrub_runs_at(node, lease);
    if (!*ret_waits)
        rc = bh_occupancy_check_lease(node, lease, err);
    for (uint32_t i = 0; i < lease->lent_count && rc == BH_OK && !*ret_waits; i++) {
        const struct bh_node_partition *partition = scrub_partition_of(node, &lease->lent[i]);
        struct bh_scrub_request request = { order, partition->partition, lease->tenant, lease->job };

        rc = bh_handover_check(node, partition, lease->tenant, ret_waits, err);
        if (rc == BH_OK && !*ret_waits)
            rc = scrub_prepare_partition(node, &request, partition, ret_waits, err);
    }
    return rc == BH_OK && !*ret_waits ? scrub_prove(node, lease, order, err) : rc;
}

/* ---- telling the daemon ---- */

void
bh_scrub_repeat(struct bh_node *node)
{
    for (uint32_t i = 0; i < node->state.receipt_count; i++) {
        bh_state_assert_receipt(&node->state.receipts[i]);
        bh_node_send(node, BH_MSG_RECEIPT, &node->state.receipts[i]);
    }
}

void
bh_scrub_acknowledge(struct bh_node *node, uint64_t order)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_FORGET_RECEIPT, .order = order };
    struct bh_err err;

    if (bh_state_record(&node->state, &record, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("order", order), BH_ERRLOG(&err));
}
