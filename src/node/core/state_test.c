#include "node/core/state.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/core/state_check.h"

static char folder[] = "/tmp/bh-state-XXXXXX";

static void
state_test_record(struct bh_node_state *state, struct bh_node_record record)
{
    struct bh_err err;

    assert_int_equal(bh_state_record(state, &record, &err), BH_OK);
}

static void
open_state(struct bh_node_state *state)
{
    struct bh_err err = { 0 };

    if (bh_state_open(state, folder, &err) != BH_OK)
        fail_msg("%s", err.msg);
}

static void
state_test_fill(struct bh_node_state *state)
{
    state_test_record(state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_ORDER,
                                               .order = 1,
                                               .message = BH_MSG_CARVE,
                                               .partition = { .partition = 5, .gpu = "GPU-1", .start = 2 } });
    state_test_record(state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_PARTITION,
                                               .partition = { .partition = 5, .gpu = "GPU-1", .gi = 7 } });
    state_test_record(state,
                      (struct bh_node_record){
                          .kind = BH_NODE_RECORD_OUTCOME, .order = 1, .at_ns = 99, .why = "all \"fine\"" });
    state_test_record(state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_PARTITION,
                                               .partition = { .partition = 6, .gpu = "GPU-1", .gi = 8 } });
    state_test_record(state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_GONE, .partition.partition = 6 });
    state_test_record(state,
                      (struct bh_node_record){
                          .kind = BH_NODE_RECORD_ORDER, .order = 2, .message = BH_MSG_START, .lease = 10 });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_LEASE,
                                                      .lease = 10,
                                                      .job = 3,
                                                      .slot = 0,
                                                      .lent = { { .partition = 5, .gpu = "GPU-1", .gi = 7 } },
                                                      .lent_count = 1,
                                                      .boot = "b" });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_STOPPING,
                                                      .lease = 10,
                                                      .why = "over its cap",
                                                      .outcome = BH_END_OVER_TIME });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_STOPPING, .lease = 10 });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_LEASE, .lease = 11, .slot = 1 });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_LEASE, .lease = 11 });
    state_test_record(
        state, (struct bh_node_record){ .kind = BH_NODE_RECORD_ORDER, .order = 3, .message = BH_MSG_STOP });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OUTCOME, .order = 3 });
    state_test_record(state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_ORDER, .order = 3 });
}

static void
state_test_check(const char *name, const struct bh_node_state *state)
{
    const struct bh_order *done = bh_state_order(state, 1), *open = bh_state_order(state, 2);
    const struct bh_job *job = bh_state_job(state, 10);

    BH_CHECK_EQ(name, state->order_count, 2);
    BH_CHECK_EQ(name, state->partition_count, 1);
    BH_CHECK_EQ(name, state->job_count, 1);
    BH_CHECK(name, done && done->done && done->outcome.at_ns == 99);
    BH_CHECK_STR(name, done ? done->outcome.why : "", "all \"fine\"");
    BH_CHECK(name, open && !open->done && open->record.lease == 10);
    BH_CHECK(name, !bh_state_order(state, 3) && !bh_state_job(state, 11));
    BH_CHECK(name, bh_state_partition(state, 5) && !bh_state_partition(state, 6));
    BH_CHECK(name, bh_state_partition_at(state, "GPU-1", 7) && !bh_state_partition_at(state, "GPU-2", 7));
    BH_CHECK(name, job && job->record.job == 3 && job->record.lent_count == 1 && job->record.lent[0].gi == 7
                       && job->pidfd == -1 && !job->ended);
    BH_CHECK(name, job && job->asked);
    BH_CHECK_STR(name, job ? job->stop_why : "", "over its cap");
    BH_CHECK_EQ(name, job ? job->stop_cause : 0, BH_END_OVER_TIME);
}

static void
test_replay(void **unused)
{
    struct bh_node_state state;

    open_state(&state);
    state_test_fill(&state);
    state_test_check("live", &state);
    bh_state_close(&state);
    open_state(&state);
    state_test_check("replayed", &state);
    bh_state_close(&state);
    open_state(&state);
    state_test_check("replayed from the rewritten journal", &state);
    bh_state_close(&state);
    BH_CHECK_DONE();
}

/* An outcome that the disk did not take counts, and is noted later. */
static void
test_unsaved(void **unused)
{
    struct bh_node_record outcome = {
        .kind = BH_NODE_RECORD_OUTCOME, .order = 90, .outcome = 2, .at_ns = 5, .why = "late"
    };
    const struct bh_order *order;
    struct bh_node_state state;
    struct bh_err err;
    bh_ns next;

    open_state(&state);
    state_test_record(&state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_ORDER, .order = 90, .message = 5 });
    bh_state_remember(&state, &outcome);
    BH_CHECK("known", bh_state_order(&state, 90)->done && state.unsaved);
    BH_CHECK_EQ("saved", bh_state_tick(&state, 1, &next, &err), BH_OK);
    BH_CHECK("once", !state.unsaved);
    bh_state_close(&state);
    open_state(&state);
    order = bh_state_order(&state, 90);
    BH_CHECK("replayed", order && order->done && order->outcome.outcome == 2);
    BH_CHECK_STR("with its text", order ? order->outcome.why : "", "late");
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_ORDER, .order = 90 });
    bh_state_close(&state);
    BH_CHECK_DONE();
}

/* All memory of unknown tenants, failed or not, also when read again; with a new epoch. */
static void
test_disown(void **unused)
{
    struct bh_node_state state;
    const struct bh_ownership_gpu *ownership;
    uint64_t generation;
    struct bh_err err;

    open_state(&state);
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-d", .units = 0xff },
                                                       .tenant = 7 });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-d", .units = 0x0f },
                                                       .clean = true });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-d", .units = 0x80 },
                                                       .tenant = 7,
                                                       .failed = true });
    state_test_record(&state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_ORDER, .order = 500, .message = 5 });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_ORDER, .order = 500 });
    BH_CHECK_EQ("reached", state.reached, 500);
    BH_CHECK_EQ("disowned", bh_state_forget_owners(&state, 400, 0, &err), BH_OK);
    generation = state.generation;
    for (int again = 0; again < 3; again++) { /* replayed, and replayed from what that rewrote */
        ownership = bh_ownership_map_find(&state.ownership, "GPU-d");
        BH_CHECK("there", ownership);
        for (uint32_t u = 0; ownership && u < BH_OWNERSHIP_UNITS; u++) {
            BH_CHECK("unknown",
                     !ownership->unit[u].clean && ownership->unit[u].tenant == BH_OWNERSHIP_UNKNOWN);
            BH_CHECK_EQ("failed", ownership->unit[u].failed, u == 7);
        }
        BH_CHECK_EQ("reached", state.reached, 400);
        BH_CHECK("another course", state.generation == generation && generation != 0);
        bh_state_close(&state);
        open_state(&state);
    }
    bh_state_close(&state);
    BH_CHECK_DONE();
}

/* Changes of marks are counted once each, however often the journal is read and rewritten.  A restored
 * journal has fewer; memory that is disowned anew counts more than the number received. */
static void
test_changes(void **unused)
{
    struct bh_node_record owned = { .kind = BH_NODE_RECORD_OWNER,
                                    .partition = { .gpu = "GPU-e", .units = 0x0f },
                                    .tenant = 7 };
    struct bh_node_record partition = { .kind = BH_NODE_RECORD_PARTITION,
                                        .partition = { .partition = 900,
                                                       .gpu = "GPU-e",
                                                       .gi = BH_SHARE_GI,
                                                       .profile = "25%:18Gi",
                                                       .cleared_for = 7 } };
    struct bh_node_state state;
    struct bh_err err;
    uint64_t changes;

    open_state(&state);
    changes = state.changes;
    state_test_record(&state, owned);
    owned.tenant = 8;
    owned.partition.units = 0x02;
    state_test_record(&state, owned);
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_RECEIPT,
                                                       .partition = { .gpu = "GPU-e", .units = 0x0f },
                                                       .receipt = { .order = 800, .gpu = "GPU-e" } });
    state_test_record(&state, partition);
    for (int again = 0; again < 3; again++) {
        BH_CHECK_EQ("counted", state.changes, changes + 3);
        BH_CHECK_EQ("cleared", bh_state_partition(&state, 900)->cleared_for, 7);
        bh_state_close(&state);
        open_state(&state);
    }
    BH_CHECK_EQ("disowned", bh_state_forget_owners(&state, state.reached, changes + 90, &err), BH_OK);
    for (int again = 0; again < 3; again++) {
        BH_CHECK_EQ("more than was told", state.changes, changes + 91);
        BH_CHECK_EQ("cleared for nobody", bh_state_partition(&state, 900)->cleared_for, 0);
        bh_state_close(&state);
        open_state(&state);
    }
    owned.tenant = 7;
    state_test_record(&state, owned);
    BH_CHECK_EQ("and goes on", state.changes, changes + 92);
    bh_state_close(&state);
    BH_CHECK_DONE();
}

static void
check_gap(const char *name, const struct bh_node_state *state, uint32_t unit, const char *profile,
          uint32_t from_count)
{
    const struct bh_ownership_gpu *ownership = bh_ownership_map_find(&state->ownership, "GPU-g");

    BH_CHECK_STR(name, ownership ? ownership->gap[unit].profile : "", profile);
    BH_CHECK_EQ(name, ownership ? ownership->gap[unit].from_count : 99, from_count);
}

/* Under which geometry memory was scrubbed, and who had it before, holds over a rewrite, behind which the
 * journal has receipts without their units. */
static void
test_gaps(void **unused)
{
    const struct bh_node_partition small = {
        .partition = 70, .gpu = "GPU-g", .profile = "1g.10gb", .start = 1, .units = 0x02
    };
    const struct bh_node_partition large = { .gpu = "GPU-g", .profile = "2g.20gb", .units = 0x03 };
    struct bh_node_record scrub = { .kind = BH_NODE_RECORD_RECEIPT,
                                    .partition = small,
                                    .receipt = {
                                        .order = 600, .gpu = "GPU-g", .profile = "1g.10gb", .start = 1 } };
    struct bh_node_record lease = {
        .kind = BH_NODE_RECORD_LEASE, .lent = { small }, .lent_count = 1, .tenant = 7, .job = 3
    };
    struct bh_node_state state;
    struct bh_err err;

    open_state(&state);
    state_test_record(&state, scrub);
    BH_CHECK_EQ("held", bh_state_record_owner(&state, &lease, &err), BH_OK);
    scrub.receipt.order++;
    state_test_record(&state, scrub);
    BH_CHECK_EQ("held", bh_state_record_owner(&state, &lease, &err), BH_OK);
    for (int again = 0; again < 3; again++) {
        check_gap("scrubbed", &state, 1, "1g.10gb", 2);
        check_gap("never scrubbed", &state, 0, BH_NO_SHAPE, 0);
        BH_CHECK("its own", bh_ownership_map_allows(&state.ownership, &small, 7));
        BH_CHECK("not another's", !bh_ownership_map_allows(&state.ownership, &small, 8));
        BH_CHECK("nor another geometry", !bh_ownership_map_allows(&state.ownership, &large, 7));
        bh_state_close(&state);
        open_state(&state);
    }
    BH_CHECK_EQ("disowned", bh_state_forget_owners(&state, 400, 0, &err), BH_OK);
    check_gap("disowned", &state, 1, BH_NO_SHAPE, 0);
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_RECEIPT, .order = 600 });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_RECEIPT, .order = 601 });
    bh_state_close(&state);
    BH_CHECK_DONE();
}

/* The journal as a version without gaps rewrote it, and what that version noted behind it: one more scrub. */
static void
test_marks_without_gaps(void **unused)
{
    const struct bh_node_partition small = {
        .partition = 71, .gpu = "GPU-o", .profile = "1g.10gb", .units = 0x01
    };
    const struct bh_node_partition large = { .gpu = "GPU-o", .profile = "2g.20gb", .units = 0x03 };
    struct bh_node_record scrub = { .kind = BH_NODE_RECORD_RECEIPT,
                                    .receipt = { .order = 700, .gpu = "GPU-o", .profile = "1g.10gb" } };
    struct bh_node_state state;

    open_state(&state);
    state_test_record(&state, scrub);
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-o", .units = 0x03 },
                                                       .tenant = 7 });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-o", .units = 0xfffc },
                                                       .tenant = BH_OWNERSHIP_UNKNOWN });
    BH_CHECK("not even its own", !bh_ownership_map_allows(&state.ownership, &small, 7));
    BH_CHECK("but a scrub is enough", bh_ownership_map_is_unknown(&state.ownership, &small, 7));
    scrub.partition = small;
    scrub.receipt.order++;
    state_test_record(&state, scrub);
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-o", .units = 0x01 },
                                                       .tenant = 7 });
    BH_CHECK("its own", bh_ownership_map_allows(&state.ownership, &small, 7));
    BH_CHECK("not beyond", !bh_ownership_map_allows(&state.ownership, &large, 7));
    for (uint64_t order = 700; order < 702; order++)
        state_test_record(&state,
                          (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_RECEIPT, .order = order });
    bh_state_close(&state);
    BH_CHECK_DONE();
}

/* A share that was scrubbed for a tenant before the memory's tenants became unknown. */
static void
test_disown_cleared(void **unused)
{
    struct bh_node_state state;
    struct bh_err err;

    open_state(&state);
    state_test_record(
        &state,
        (struct bh_node_record){
            .kind = BH_NODE_RECORD_PARTITION,
            .partition = {
                .partition = 80, .gpu = "GPU-s", .gi = BH_SHARE_GI, .units = 0xff, .profile = "25%:18Gi" } });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_OWNER,
                                                       .partition = { .gpu = "GPU-s", .units = 0xff },
                                                       .clean = true });
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_PARTITION,
                                                       .partition = { .partition = 80,
                                                                      .gpu = "GPU-s",
                                                                      .gi = BH_SHARE_GI,
                                                                      .units = 0xff,
                                                                      .profile = "25%:18Gi",
                                                                      .cleared_for = 7 } });
    bh_state_close(&state);
    open_state(&state);
    BH_CHECK_EQ("scrubbed for it", bh_state_partition(&state, 80)->cleared_for, 7);
    BH_CHECK_EQ("disowned", bh_state_forget_owners(&state, 400, 0, &err), BH_OK);
    BH_CHECK_EQ("not any more", bh_state_partition(&state, 80)->cleared_for, 0);
    bh_state_close(&state);
    open_state(&state);
    BH_CHECK_EQ("nor when read again", bh_state_partition(&state, 80)->cleared_for, 0);
    state_test_record(&state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_GONE, .partition.partition = 80 });
    bh_state_close(&state);
    BH_CHECK_DONE();
}

static void
test_slots(void **unused)
{
    struct bh_slots others = { .count = 0 };
    struct bh_node_state state;

    open_state(&state);
    BH_CHECK_EQ("first free", bh_state_free_slot(&state, 3, &others), 1);
    state_test_record(&state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_LEASE, .lease = 20, .slot = 1 });
    state_test_record(&state,
                      (struct bh_node_record){ .kind = BH_NODE_RECORD_LEASE, .lease = 21, .slot = 2 });
    BH_CHECK_EQ("none left", bh_state_free_slot(&state, 3, &others), 3);
    state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_FORGET_LEASE, .lease = 20 });
    BH_CHECK_EQ("given back", bh_state_free_slot(&state, 3, &others), 1);
    others = (struct bh_slots){ .slot = { 3, 1 }, .count = 2 };
    BH_CHECK_EQ("a guest's", bh_state_free_slot(&state, 3, &others), 3);
    bh_state_close(&state);
    BH_CHECK_DONE();
}

/* What no node writes is refused and not believed. */
static void
test_refused(void **unused)
{
    const struct bh_node_partition share = {
        .partition = 7, .gpu = "GPU-1", .profile = "25%:18Gi", .start = 3, .gi = BH_SHARE_GI + 3
    };
    const struct bh_node_partition other_slot = { .gpu = "GPU-1",
                                                  .profile = "25%:18Gi",
                                                  .gi = BH_SHARE_GI + 3 };
    const struct bh_node_partition whole = { .gpu = "GPU-1", .profile = "25%:18Gi", .gi = BH_WHOLE_GPU };
    const struct bh_node_partition nowhere = { .profile = "1g.10gb", .gi = 3 };
    const struct {
        const char *name;
        struct bh_node_record record;
        bh_rc rc;
    } cases[] = {
        { "order 0", { .kind = BH_NODE_RECORD_ORDER }, BH_INVALID },
        { "an order", { .kind = BH_NODE_RECORD_ORDER, .order = 1 }, BH_OK },
        { "a share", { .kind = BH_NODE_RECORD_PARTITION, .partition = share }, BH_OK },
        { "in another slot", { .kind = BH_NODE_RECORD_PARTITION, .partition = other_slot }, BH_INVALID },
        { "as a whole GPU", { .kind = BH_NODE_RECORD_PARTITION, .partition = whole }, BH_INVALID },
        { "of no GPU", { .kind = BH_NODE_RECORD_PARTITION, .partition = nowhere }, BH_INVALID },
        { "lent so", { .kind = BH_NODE_RECORD_LEASE, .lent = { nowhere }, .lent_count = 1 }, BH_INVALID },
        { "user ids", { .kind = BH_NODE_RECORD_LEASE, .slot = BH_JOBS_MAX }, BH_INVALID },
        { "none", { .kind = BH_NODE_RECORD_LEASE, .slot = BH_NO_SLOT }, BH_OK },
        { "a cause", { .kind = BH_NODE_RECORD_STOPPING, .outcome = BH_END_CAUSES }, BH_INVALID },
        { "a receipt", { .kind = BH_NODE_RECORD_RECEIPT, .receipt.gpu = "GPU-1" }, BH_INVALID },
        { "changes", { .kind = BH_NODE_RECORD_REACHED, .changes = UINT64_MAX }, BH_INVALID },
        { "owned units",
          { .kind = BH_NODE_RECORD_OWNER, .partition = { .gpu = "GPU-1", .units = 0x10000 } },
          BH_INVALID },
    };
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_state_check_record(&cases[i].record, &err), cases[i].rc);
    BH_CHECK_DONE();
}

static uint64_t
state_test_draw(uint64_t *random, const uint64_t *of, size_t count)
{
    *random = (*random ^ *random >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + 1;
    return of[(*random >> 33) % count];
}

/* A record of any kind, of values that mean something somewhere. */
static struct bh_node_record
state_test_any(uint64_t *random)
{
    static const uint64_t numbers[] = { 0,      1, 2, 3, 31, 32, BH_SHARE_GI, BH_SHARE_GI + 2, BH_WHOLE_GPU,
                                        1 << 16 };
    static const char *const profiles[] = { "", "1g.10gb", "whole", "25%:8Gi" }, *const gpus[] = { "",
                                                                                                   "GPU-1",
                                                                                                   "GPU-2" };
#define DRAW() state_test_draw(random, numbers, BH_COUNT(numbers))
    struct bh_node_record record = { .kind = (enum bh_node_record_kind)(DRAW() * 7 % BH_NODE_RECORD_KINDS),
                                     .order = DRAW() % 4,
                                     .lease = DRAW() % 4,
                                     .changes = DRAW(),
                                     .generation = DRAW(),
                                     .slot = (uint32_t)DRAW(),
                                     .outcome = (uint32_t)DRAW(),
                                     .rc = (uint32_t)DRAW(),
                                     .tenant = (uint32_t)DRAW() % 4,
                                     .clean = DRAW() & 1,
                                     .failed = DRAW() & 1,
                                     .beside = DRAW() & 1,
                                     .lent_count = DRAW() & 1,
                                     .pid_count = DRAW() % 3 };

    record.partition = (struct bh_node_partition){ .partition = DRAW() % 4,
                                                   .gi = (uint32_t)DRAW(),
                                                   .start = (uint32_t)DRAW(),
                                                   .units = (uint32_t)DRAW(),
                                                   .cleared_for = (uint32_t)(DRAW() & 1) };
    snprintf(record.partition.gpu, sizeof record.partition.gpu, "%s", gpus[DRAW() % BH_COUNT(gpus)]);
    snprintf(record.partition.profile, sizeof record.partition.profile, "%s",
             profiles[DRAW() % BH_COUNT(profiles)]);
    record.lent[0] = record.partition;
    record.receipt = (struct bh_msg_receipt){ .order = DRAW() % 4,
                                              .result = (uint32_t)DRAW() % BH_SCRUB_RESULTS,
                                              .method = (uint32_t)DRAW() % BH_SCRUB_METHODS,
                                              .beside = DRAW() & 1 };
    memcpy(record.receipt.gpu, record.partition.gpu, sizeof record.receipt.gpu);
    snprintf(record.why, sizeof record.why, "%s", DRAW() & 1 ? "why" : "");
#undef DRAW
    return record;
}

/* What a journal may say is never what an assert forbids. */
static void
test_any_records(void **unused)
{
    struct bh_node_state state;
    uint64_t random = 1, taken = 0;
    struct bh_err err;
    char path[80];

    snprintf(path, sizeof path, "%s/journal", folder);
    for (int journal = 0; journal < 15; journal++) {
        unlink(path);
        open_state(&state);
        for (int i = 0; i < 200; i++) {
            struct bh_node_record record = state_test_any(&random);

            if (bh_state_check_record(&record, &err) != BH_OK)
                continue;
            state_test_record(&state, record);
            taken++;
        }
        bh_state_close(&state);
        (void)!bh_state_open(&state, folder, &err); /* BH_INVALID: leases with the same user ids */
        bh_state_close(&state);
    }
    unlink(path);
    BH_CHECK("many are taken", taken > 700);
    BH_CHECK_DONE();
}

/* Whatever is cut off the end, the rest is a state and a new note can follow. */
static void
test_cut_anywhere(void **unused)
{
    char path[80], name[40];
    struct bh_node_state state;
    uint64_t size;

    snprintf(path, sizeof path, "%s/journal", folder);
    unlink(path);
    open_state(&state);
    state_test_fill(&state);
    size = bh_order_journal_size(state.journal);
    bh_state_close(&state);
    for (uint64_t cut = 0; cut < size; cut += 23) {
        unlink(path);
        open_state(&state);
        state_test_fill(&state);
        bh_state_close(&state);
        assert_int_equal(truncate(path, (off_t)cut), 0);
        snprintf(name, sizeof name, "cut at %llu", (unsigned long long)cut);
        open_state(&state);
        BH_CHECK(name, state.order_count <= 3 && state.job_count <= 2 && state.partition_count <= 2);
        state_test_record(&state, (struct bh_node_record){ .kind = BH_NODE_RECORD_ORDER, .order = 77 });
        BH_CHECK(name, bh_state_order(&state, 77));
        bh_state_close(&state);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),         cmocka_unit_test(test_unsaved),
        cmocka_unit_test(test_disown),         cmocka_unit_test(test_changes),
        cmocka_unit_test(test_gaps),           cmocka_unit_test(test_marks_without_gaps),
        cmocka_unit_test(test_disown_cleared), cmocka_unit_test(test_slots),
        cmocka_unit_test(test_cut_anywhere),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_any_records),
    };
    int failed;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!mkdtemp(folder))
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    bh_path_remove_tree(folder);
    return failed;
}
