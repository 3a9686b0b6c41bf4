/* The daemon's heart without HTTP and without a node: commands in, records and rows out,
 * and the same state after every kind of restart. */

#include "daemon/batch/abandoned_orders.h"
#include "daemon/batch/batch.h"
#include "daemon/fixture/fixture_test.h"
#include "daemon/owner/dispatch.h"

#include <inttypes.h>

#include <sqlite3.h>

#include "daemon/batch/record.h"
#include "daemon/batch/snapshot.h"
#include "daemon/nodes/orders.h"

static void
digest_of(const struct fixture *f, uint8_t ret_digest[32])
{
    bh_state_digest(&f->core.state, f->core.crypto, ret_digest);
}

static bool
core_count_row(void *self, const struct bh_job_row *row)
{
    ++*(uint32_t *)self;
    return row->job != 0;
}

static uint32_t
count_jobs(struct fixture *f)
{
    struct bh_job_filter filter = { .limit = 10000 };
    uint32_t count = 0;

    assert_int_equal(
        f->core.store.ops->list_jobs(f->core.store.self, &filter, core_count_row, &count, &f->err), BH_OK);
    return count;
}

static bh_ns
two_hours_ahead(void)
{
    return bh_time_now() + 7200 * BH_NS_PER_S;
}

/* Records are dated by engine time: a step of the wall clock does not reach them, and over a
 * restart it does not either. */
static void
test_a_clock_step_is_not_followed(void **unused)
{
    struct fixture f;
    uint64_t before;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    before = f.core.journal.last_ts_ns;
    f.core.clock.source.wall = two_hours_ahead;
    for (int i = 0; i < 100; i++)
        bh_clock_tick(&f.core.clock);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    BH_CHECK("goes on", f.core.journal.last_ts_ns > before);
    BH_CHECK("by itself", f.core.journal.last_ts_ns - before < 600 * BH_NS_PER_S);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    BH_CHECK("after a restart", f.core.journal.last_ts_ns - before < 600 * BH_NS_PER_S);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_state_survives_a_restart(void **unused)
{
    struct fixture f;
    uint8_t before[32], after[32];
    uint64_t records;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    BH_CHECK_EQ("jobs are numbered from 1", f.answer.job.v, 5);
    digest_of(&f, before);
    records = f.core.journal.next_seq;
    close_core(&f);

    assert_int_equal(open_core(&f), BH_OK);
    digest_of(&f, after);
    assert_memory_equal(before, after, 32);
    BH_CHECK_EQ("records", f.core.journal.next_seq, records);
    BH_CHECK_EQ("rows", count_jobs(&f), 5);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    BH_CHECK_EQ("numbers go on", f.answer.job.v, 6);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_snapshot_and_journal_lead_to_the_same_state(void **unused)
{
    struct fixture f;
    uint8_t before[32], after[32];
    struct bh_err err;
    char path[160];

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    assert_int_equal(bh_snapshot_write(&f.core, &err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &err), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    digest_of(&f, before);
    snprintf(path, sizeof path, "%s/snapshot-%" PRIu64 ".bin", f.folder, f.core.snapshot_seq);
    close_core(&f);

    assert_int_equal(open_core(&f), BH_OK);
    assert_true(f.core.snapshot_seq > 0);
    digest_of(&f, after);
    assert_memory_equal(before, after, 32);
    close_core(&f);

    /* a damaged snapshot is not used: everything is replayed, past its digest */
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(open_core(&f), BH_OK);
    assert_true(f.core.snapshot_seq == 0);
    digest_of(&f, after);
    assert_memory_equal(before, after, 32);
    fixture_teardown(&f);
}

/* A tenant's keys, which its first submission would make. */
static void
make_keys(struct fixture *f, const char *tenant)
{
    char memory[400];
    struct bh_buf item;
    bh_tenant_id id = { bh_catalog_find(f->core.catalog, BH_NAME_TENANT, tenant) };

    bh_buf_init_fixed(&item, memory, sizeof memory);
    assert_int_equal(bh_core_seal(&f->core, id, (struct bh_slice){ "x", 1 }, &item, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

/* An order that the engine knows nothing of gets its outcome in the log once it is old enough, and
 * only one. */
static void
test_what_nothing_waits_for_is_abandoned(void **unused)
{
    enum { ORDER = 4711, SINCE = 1000 };
    static const struct {
        const char *name;
        uint64_t before_ns, records;
    } turns[] = {
        { "too young", SINCE, 0 },
        { "old enough", SINCE + 1, 1 },
        { "and no more", SINCE + 1, 0 },
    };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    bh_open_orders_add(&f.core.open_orders, ORDER, SINCE);
    for (size_t i = 0; i < BH_COUNT(turns); i++) {
        uint64_t records = f.core.journal.next_seq;

        assert_int_equal(bh_abandoned_orders_record(&f.core, turns[i].before_ns, &f.err), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        BH_CHECK_EQ(turns[i].name, f.core.journal.next_seq - records, turns[i].records);
    }
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* What is left of a snapshot in a log that an older or newer build began: only a digest of the
 * same layout says anything. */
static void
test_snapshots_of_other_layouts_are_passed_over(void **unused)
{
    static const uint8_t digest[32] = { 1 };
    struct bh_entry entry = { .dec = { .allow = true },
                              .phase = BH_PHASE_EVENT,
                              .verb = "snapshot",
                              .obj = { "snapshot", 7 },
                              .text = digest };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(bh_core_record(&f.core, &entry, BH_OK, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    close_core(&f);
    BH_CHECK_EQ("from before layouts were named", open_core(&f), BH_OK);
    bh_state_snapshot_type(entry.obj.type);
    assert_int_equal(bh_core_record(&f.core, &entry, BH_OK, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    close_core(&f);
    BH_CHECK_EQ("of this one", open_core(&f), BH_CONFLICT);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_refusals_change_nothing_and_are_recorded(void **unused)
{
    static const struct {
        const char *name;
        struct submission submission;
        bh_rc rc;
    } cases[] = {
        { "another's tenant", { "alice", "acme/vision", "small", NULL, 0, 1 }, BH_DENIED },
        { "high priority", { "alice", "acme/vision/train", "small", NULL, BH_PRIORITY_HIGH, 1 }, BH_DENIED },
        { "unknown tenant", { "alice", "acme/nobody", "small", NULL, 0, 1 }, BH_NOT_FOUND },
        { "unknown sku", { "alice", "acme/vision/train", "huge", NULL, 0, 1 }, BH_NOT_FOUND },
        { "never within quota", { "alice", "acme/vision/train", "small", NULL, 0, 3 }, BH_QUOTA },
    };
    struct fixture f;
    uint8_t before[32], after[32];

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    make_keys(&f, "acme/vision/train");
    digest_of(&f, before);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        uint64_t refusals = f.core.refusals.seen;

        BH_CHECK_EQ(cases[i].name, fixture_submit(&f, cases[i].submission), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, f.core.refusals.seen, refusals + 1);
        digest_of(&f, after);
        BH_CHECK_EQ(cases[i].name, memcmp(before, after, 32), 0);
    }
    BH_CHECK_EQ("rows", count_jobs(&f), 0);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A grace longer than the site allows is refused with the limit; dry run or not. */
static void
test_a_grace_has_a_most(void **unused)
{
    struct bh_command command;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    command = submit_command(&f, alice_small);
    for (int dry = 0; dry < 2; dry++) {
        command.dry_run = dry;
        command.numbers.grace_ns = 601 * BH_NS_PER_S;
        BH_CHECK_EQ("more", fixture_run(&f, &command), BH_RANGE);
        BH_CHECK_STR("which", f.err.msg, "grace: 601 s is more than the 600 s that this site allows");
        command.numbers.grace_ns = 600 * BH_NS_PER_S;
        BH_CHECK_EQ("as much", fixture_run(&f, &command), BH_OK);
    }
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_a_repeated_key_is_one_job(void **unused)
{
    struct submission keyed = alice_small;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    keyed.key = "k-1";
    assert_int_equal(fixture_submit(&f, keyed), BH_OK);
    assert_null(f.answer.replayed);
    assert_int_equal(fixture_submit(&f, keyed), BH_OK);
    assert_non_null(f.answer.replayed);
    BH_CHECK_EQ("rows", count_jobs(&f), 1);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* What a site file says of scheduling is in force once it is applied; without it, the
 * defaults are again. */
static void
test_scheduling_is_applied(void **unused)
{
    struct bh_ev_settings settings;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, "scheduling: {order: drf, half_life: never, backfill: off,"
                                       " assumed_run: 2h, min_runtime: 10m, lending: forecast,"
                                       " hotspots: on, preshape: on, defrag: on,"
                                       " defrag_gain_percent: 300, defrag_gpu_hours: 1.5,"
                                       " defrag_moves: 3, defrag_rest: 1h}"),
                     BH_OK);
    bh_view_settings(f.core.state.engine, &settings);
    BH_CHECK_EQ("order", settings.order, BH_ORDER_DRF);
    BH_CHECK("half-life", settings.half_life_ns == BH_UNLIMITED);
    BH_CHECK_EQ("backfill", settings.backfill, false);
    BH_CHECK_EQ("assumed", settings.assumed_run_ns, 7200000000000);
    BH_CHECK_EQ("least", settings.min_runtime_ns, 600000000000);
    BH_CHECK_EQ("lending", settings.lending, BH_LEND_FORECAST);
    BH_CHECK("hot", settings.hotspots && settings.preshape);
    BH_CHECK_EQ("defrag", settings.defrag.mode, BH_DEFRAG_ON);
    BH_CHECK_EQ("gain", settings.defrag.gain_percent, 300);
    BH_CHECK_EQ("lost", settings.defrag.lost_gpu_s, 5400);
    BH_CHECK_EQ("moves", settings.defrag.moves, 3);
    BH_CHECK_EQ("rest", settings.defrag.rest_ns, 3600000000000);
    assert_int_equal(fixture_apply(&f, "{}"), BH_OK);
    bh_view_settings(f.core.state.engine, &settings);
    BH_CHECK_EQ("order again", settings.order, BH_ORDER_FAIR_TREE);
    BH_CHECK_EQ("7 days", settings.half_life_ns, BH_HALF_LIFE_DEFAULT_NS);
    BH_CHECK_EQ("backfill again", settings.backfill, true);
    BH_CHECK_EQ("a day", settings.assumed_run_ns, BH_ASSUMED_RUN_DEFAULT_NS);
    BH_CHECK_EQ("none", settings.min_runtime_ns, 0);
    BH_CHECK_EQ("all", settings.lending, BH_LEND_ALL);
    BH_CHECK("off again", !settings.hotspots && !settings.preshape);
    BH_CHECK_EQ("off again", settings.defrag.mode, BH_DEFRAG_OFF);
    BH_CHECK_EQ("moves again", settings.defrag.moves, BH_DEFRAG_MOVES_DEFAULT);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* Two requests with one key in one batch: the second must see the first's answer before
 * any reader of the store can. */
static void
test_a_key_repeated_in_one_batch_is_one_job(void **unused)
{
    const char *args[] = { "true" };
    struct bh_job_spec spec = { .args = { args, 1 }, .tenant = "acme/vision/train", .sku = "small" };
    struct bh_command command = { .op = BH_OP_JOB_SUBMIT, .spec = &spec, .text = "{}", .text_length = 2 };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(bh_spec_check(&spec, &command.numbers, &f.err), BH_OK);
    command.caller = caller_named(&f, "alice");
    command.caller.idempotency_key = "k-2";
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), BH_OK);
        BH_CHECK_EQ("repeated", f.answer.replayed != NULL, i == 1);
    }
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    BH_CHECK_EQ("rows", count_jobs(&f), 1);
    command.dry_run = command.admission_only = true; /* no node has what it asks for any more */
    assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), BH_OK);
    BH_CHECK("an answer that was given stands", f.answer.replayed);
    command.caller.idempotency_key = "k-3";
    assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), BH_OK);
    BH_CHECK("a trial has none", !f.answer.replayed);
    command.dry_run = command.admission_only = false;
    assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), BH_OK);
    BH_CHECK("and leaves its key free", !f.answer.replayed);
    command.caller.idempotency_key = "k-2";
    command.caller.request.bytes[0] ^= 1;
    BH_CHECK_EQ("another body", fixture_run(&f, &command), BH_CONFLICT);
    BH_CHECK("what helps", strstr(f.err.hint, "take another key"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A binding whose tenant is gone grants nothing; least of all the whole site. */
static void
test_a_removed_tenant_leaves_no_role_behind(void **unused)
{
    static const char without[] = "tenants:\n"
                                  "  - {name: acme, kind: organization}\n"
                                  "principals: [{name: alice, uid: 2001}]\n"
                                  "bindings: []\n"
                                  "gpus: [{uuid: all, managed: true}]\n";
    const struct bh_directory *dir;
    struct bh_subject alice;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    f.prune = true; /* acme/vision has another below */
    assert_int_equal(fixture_apply(&f, without), BH_OK);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    alice = caller_named(&f, "alice").subject;
    dir = bh_catalog_get(f.core.catalog);
    BH_CHECK_EQ("site", bh_authz_check(dir, &alice, "job.submit", (bh_tenant_id){ 0 }).allow, 0);
    BH_CHECK("tenant is back", bh_directory_tenant_named(dir, "acme/vision/train"));
    for (uint32_t i = 0; i < dir->binding_count; i++)
        BH_CHECK("no binding on the site", dir->bindings[i].tenant.v != 0);
    bh_catalog_put(f.core.catalog, dir);
    BH_CHECK_EQ("again", fixture_submit(&f, alice_small), BH_OK);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A store whose next commit fails, around the real one. */
static const struct bh_store_ops *real_ops;
static int commits_to_fail;

static bh_rc
failing_commit(void *self, struct bh_err *err)
{
    if (commits_to_fail > 0) {
        commits_to_fail--;
        return bh_err_set(err, BH_FULL, "the disk is full");
    }
    return real_ops->commit(self, err);
}

static void
test_a_failed_commit_leaves_nothing(void **unused)
{
    static struct bh_store_ops ops;
    struct fixture f;
    struct bh_command release = { .op = BH_OP_JOB_CANCEL, .job = { 1 } };
    uint8_t before[32], after[32];
    uint64_t records;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    digest_of(&f, before);
    records = f.core.journal.next_seq;

    real_ops = f.core.store.ops;
    ops = *real_ops;
    ops.commit = failing_commit;
    f.core.store.ops = &ops;
    commits_to_fail = 1;
    release.caller = caller_named(&f, "root");
    assert_int_equal(bh_dispatch_run(&f.core, &release, f.arena, &f.answer, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_FULL);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    digest_of(&f, after);
    assert_memory_equal(before, after, 32);
    BH_CHECK_EQ("records", f.core.journal.next_seq, records);

    assert_int_equal(fixture_run(&f, &release), BH_OK);
    BH_CHECK_EQ("state", f.answer.state, BH_JOB_CANCELLED);
    f.core.store.ops = real_ops;
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A repeated command is refused with the job's state. */
static void
test_a_command_that_comes_too_late_names_the_state(void **unused)
{
    static const struct {
        const char *name;
        enum bh_operation op;
        bh_rc rc;
        const char *says;
    } steps[] = {
        { "release what waits", BH_OP_JOB_RELEASE, BH_CONFLICT, "job 1 is pending, not held" },
        { "cancel", BH_OP_JOB_CANCEL, BH_OK, NULL },
        { "cancel again", BH_OP_JOB_CANCEL, BH_CONFLICT, "job 1 has ended already: cancelled" },
        { "release", BH_OP_JOB_RELEASE, BH_CONFLICT, "job 1 has ended already: cancelled" },
    };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    for (size_t i = 0; i < BH_COUNT(steps); i++) {
        struct bh_command command = { .op = steps[i].op, .job = { 1 } };

        command.caller = caller_named(&f, "root");
        BH_CHECK_EQ(steps[i].name, fixture_run(&f, &command), steps[i].rc);
        if (steps[i].says)
            BH_CHECK_STR(steps[i].name, f.err.msg, steps[i].says);
    }
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
drop_last_record(const struct fixture *f)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/bulkhead.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "delete from records where seq = (select max(seq) from records)", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

/* ---- the watermark: what was signed stands outside the store, too ---- */

static void
core_sign(struct fixture *f)
{
    f->core.journal.asked_ns = 0;
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

static void
test_a_log_shorter_than_signed_is_refused(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    core_sign(&f);
    close_core(&f);
    drop_last_record(&f);
    BH_CHECK_EQ("open", open_core(&f), BH_CONFLICT);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* Change the closed store by a statement. */
static void
alter(const struct fixture *f, const char *statement)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/bulkhead.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, statement, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void
write_watermark(const struct fixture *f, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/audit.signed", f->folder);
    assert_int_equal(unlink(path), 0);
    if (text)
        assert_int_equal(bh_file_replace(path, text, strlen(text), 0600, &(struct bh_err){ 0 }), BH_OK);
}

/* The store as of an earlier moment, checkpoints and all: whole in itself. */
static void
test_a_store_put_back_to_an_earlier_day_is_refused(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    core_sign(&f);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    core_sign(&f);
    close_core(&f);
    alter(&f, "delete from records where seq = (select max(seq) from records);"
              "delete from checkpoints where size > (select count(*) from records)");
    BH_CHECK_EQ("open", open_core(&f), BH_CONFLICT);
    BH_CHECK("says so", strstr(f.err.msg, "were signed"));
    close_core(&f);
    write_watermark(&f, "0\n");
    BH_CHECK_EQ("as an administrator may decide", open_core(&f), BH_OK);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* As many records, and no checkpoint that would tell. */
static void
test_another_log_of_the_same_length_is_refused(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    core_sign(&f);
    close_core(&f);
    alter(&f, "delete from checkpoints;"
              "update records set leaf = cast(replace(leaf, '\"boot\":1', '\"boot\":2') as blob) "
              "where seq = (select max(seq) from records)");
    BH_CHECK_EQ("open", open_core(&f), BH_CONFLICT);
    BH_CHECK("says so", strstr(f.err.msg, "does not begin with"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* The way on after a refusal does not lead past records that are at odds with the snapshot. */
static void
test_a_watermark_of_nothing_passes_no_other_records(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(bh_snapshot_write(&f.core, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    core_sign(&f);
    close_core(&f);
    alter(&f, "update records set leaf = x'', hash = zeroblob(32) where seq = 0");
    write_watermark(&f, "0\n");
    BH_CHECK_EQ("open", open_core(&f), BH_CONFLICT);
    BH_CHECK("says where to look", strstr(f.err.hint, "audit verify --store"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_a_missing_or_damaged_watermark_is_refused(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    core_sign(&f);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    close_core(&f);
    BH_CHECK_EQ("more than it says is fine", open_core(&f), BH_OK);
    close_core(&f);
    write_watermark(&f, "7 abc\n");
    BH_CHECK_EQ("damaged", open_core(&f), BH_INVALID);
    close_core(&f);
    write_watermark(&f, NULL);
    BH_CHECK_EQ("missing", open_core(&f), BH_CONFLICT);
    BH_CHECK("says what to do", strstr(f.err.hint, "kept elsewhere"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A signature that a failed commit takes back covers committed records only: what is
 * written instead of the lost ones continues it. */
static void
test_a_failed_commit_was_never_signed(void **unused)
{
    struct fixture f;
    uint64_t committed;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    committed = f.core.journal.next_seq;
    f.core.journal.asked_ns = 0;
    assert_int_equal(bh_core_begin(&f.core, &f.err), BH_OK);
    assert_int_equal(bh_core_record(&f.core, &(struct bh_entry){ .verb = "test" }, BH_OK, &f.err), BH_OK);
    BH_CHECK("signed", bh_journal_signed(&f.core.journal));
    assert_int_equal(bh_journal_checkpoint(&f.core.journal, &f.err), BH_OK);
    BH_CHECK_EQ("signed", f.core.journal.checkpoints.watermark_size, committed);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    core_sign(&f);
    BH_CHECK("goes on", f.core.journal.checkpoints.watermark_size > committed);
    close_core(&f);
    BH_CHECK_EQ("open", open_core(&f), BH_OK);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* ---- the signer may die ---- */

static void
test_records_go_on_without_a_signer(void **unused)
{
    struct fixture f;
    uint64_t before;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    core_sign(&f);
    before = f.core.journal.signed_size;
    f.signer_gone = true;
    for (int i = 0; i < 3; i++) {
        BH_CHECK_EQ("recorded", fixture_submit(&f, alice_small), BH_OK);
        core_sign(&f);
    }
    BH_CHECK_EQ("not signed", f.core.journal.signed_size, before);
    f.signer_gone = false;
    for (int i = 0; i < 3; i++) /* it is found, says how far it is, and signs */
        core_sign(&f);
    BH_CHECK_EQ("signed", f.core.journal.signed_size, f.core.journal.next_seq);
    close_core(&f);
    BH_CHECK_EQ("starts", open_core(&f), BH_OK);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* It signed, and died before it could say so. */
static void
test_a_signature_that_was_not_heard_of(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    core_sign(&f);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    f.core.journal.asked_ns = 0;
    bh_journal_ask(&f.core.journal, bh_core_now(&f.core), 1);
    BH_CHECK("signed", f.signer_answers);
    f.signer_answers = false;
    f.signer_gone = true;
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    BH_CHECK("not heard of", f.core.journal.signed_size < f.core.journal.checkpoints.since.to);
    f.signer_gone = false;
    for (int i = 0; i < 3; i++)
        core_sign(&f);
    BH_CHECK_EQ("goes on", f.core.journal.signed_size, f.core.journal.next_seq);
    close_core(&f);
    BH_CHECK_EQ("starts", open_core(&f), BH_OK);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* Its disk failed, after the mark was replaced. */
static void
test_a_signature_that_failed_half_way(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    core_sign(&f);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    f.core.journal.asked_ns = 0;
    bh_journal_ask(&f.core.journal, bh_core_now(&f.core), 1);
    f.signed_answer.rc = BH_IO;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
        core_sign(&f);
    }
    BH_CHECK_EQ("goes on", f.core.journal.signed_size, f.core.journal.next_seq);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_no_start_without_a_signer(void **unused)
{
    struct fixture f;

    fixture_setup(&f);
    close_core(&f);
    f.signer_gone = true;
    BH_CHECK_EQ("open", open_core(&f), BH_UNAVAILABLE);
    BH_CHECK("says so", strstr(f.err.msg, "signer"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_a_site_file_is_applied_wholly_or_not_at_all(void **unused)
{
    struct fixture f;
    uint8_t before[32], after[32];

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    digest_of(&f, before);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    BH_CHECK_EQ("nothing to change", f.answer.changes.count, 0);
    digest_of(&f, after);
    BH_CHECK_EQ("same state", memcmp(before, after, 32), 0);

    /* small is still wanted by a pending job */
    BH_CHECK_EQ("refused", fixture_apply(&f, "tenants: [{name: acme}, {name: acme/new}]\nskus: []\n"),
                BH_CONFLICT);
    digest_of(&f, after);
    BH_CHECK_EQ("nothing changed", memcmp(before, after, 32), 0);
    BH_CHECK_EQ("no new name", bh_catalog_find(f.core.catalog, BH_NAME_TENANT, "acme/new"), 0);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_clock_step_is_not_followed),
    cmocka_unit_test(test_state_survives_a_restart),
    cmocka_unit_test(test_snapshot_and_journal_lead_to_the_same_state),
    cmocka_unit_test(test_what_nothing_waits_for_is_abandoned),
    cmocka_unit_test(test_snapshots_of_other_layouts_are_passed_over),
    cmocka_unit_test(test_refusals_change_nothing_and_are_recorded),
    cmocka_unit_test(test_a_grace_has_a_most),
    cmocka_unit_test(test_a_repeated_key_is_one_job),
    cmocka_unit_test(test_scheduling_is_applied),
    cmocka_unit_test(test_a_key_repeated_in_one_batch_is_one_job),
    cmocka_unit_test(test_a_removed_tenant_leaves_no_role_behind),
    cmocka_unit_test(test_a_failed_commit_leaves_nothing),
    cmocka_unit_test(test_a_command_that_comes_too_late_names_the_state),
    cmocka_unit_test(test_a_log_shorter_than_signed_is_refused),
    cmocka_unit_test(test_a_store_put_back_to_an_earlier_day_is_refused),
    cmocka_unit_test(test_another_log_of_the_same_length_is_refused),
    cmocka_unit_test(test_a_watermark_of_nothing_passes_no_other_records),
    cmocka_unit_test(test_a_missing_or_damaged_watermark_is_refused),
    cmocka_unit_test(test_a_failed_commit_was_never_signed),
    cmocka_unit_test(test_records_go_on_without_a_signer),
    cmocka_unit_test(test_a_signature_that_was_not_heard_of),
    cmocka_unit_test(test_a_signature_that_failed_half_way),
    cmocka_unit_test(test_no_start_without_a_signer),
    cmocka_unit_test(test_a_site_file_is_applied_wholly_or_not_at_all),
};

BH_TEST_MAIN(tests)
