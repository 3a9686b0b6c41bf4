#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"
#include "daemon/changes/retention.h"

#include "api/documents/minimum.h"
#include "audit/verify.h"
#include "base/slice.h"
#include "daemon/batch/snapshot.h"
#include "daemon/fixture/failing_fixture_test.h"
#include "daemon/fixture/keys_fixture_test.h"
#include "store/audit.h"

/* The oldest records are removed: who may do it, when, and how far. */

enum { EARLY = 300, RECORDS = 700, LONG_AGO = 1 };

struct log {
    struct fixture f;
    char note[BH_NODE_RECORD_BYTES_MAX + 1];  /* of a checkpoint over all its records */
    char early[BH_NODE_RECORD_BYTES_MAX + 1]; /* of one over the first EARLY */
};

static bool
keep_note(void *self, const struct bh_checkpoint_row *row)
{
    snprintf(self, BH_NODE_RECORD_BYTES_MAX + 1, "%s", row->note);
    return true;
}

static void
retention_sign(struct log *log)
{
    struct bh_journal *journal = &log->f.core.journal;
    struct bh_store *store = &log->f.core.store;

    journal->asked_ns = 0;
    bh_journal_ask(journal, bh_core_now(&log->f.core), 1);
    assert_true(bh_journal_signed(journal));
    keys_fixture_must(&log->f, bh_core_begin(&log->f.core, &log->f.err));
    keys_fixture_must(&log->f, bh_core_commit(&log->f.core, &log->f.err));
    keys_fixture_must(&log->f,
                      store->ops->list_checkpoints(store->self, 0, keep_note, log->note, &log->f.err));
}

/* Records of something, in one transaction, until there are `count` of all. */
static void
retention_grow(struct log *log, uint64_t count)
{
    const struct bh_entry entry = { .verb = "test", .dec = { .allow = true } };
    struct fixture *f = &log->f;

    keys_fixture_must(f, bh_core_begin(&f->core, &f->err));
    while (f->core.journal.next_seq < count)
        keys_fixture_must(f, bh_core_record(&f->core, &entry, BH_OK, &f->err));
    keys_fixture_must(f, bh_core_commit(&f->core, &f->err));
}

/* RECORDS records and some, signed, and a snapshot behind them. */
static void
retention_fill(struct log *log, const char *site)
{
    struct fixture *f = &log->f;

    memset(log, 0, sizeof *log);
    fixture_setup(f);
    f->config.audit_retention = LONG_AGO;
    keys_fixture_must(f, fixture_apply(f, site));
    retention_grow(log, EARLY);
    retention_sign(log);
    memcpy(log->early, log->note, sizeof log->early);
    retention_grow(log, RECORDS);
    keys_fixture_must(f, bh_snapshot_write(&f->core, &f->err));
    keys_fixture_must(f, bh_core_commit(&f->core, &f->err));
    retention_sign(log);
}

static bh_rc
prune_by(struct log *log, const char *who, bool dry_run)
{
    struct bh_command command = { .op = BH_OP_AUDIT_PRUNE,
                                  .caller = caller_named(&log->f, who),
                                  .checkpoint = log->note,
                                  .dry_run = dry_run };

    return fixture_run(&log->f, &command);
}

static uint64_t
minimum_of(struct log *log)
{
    uint64_t minimum = 0;

    keys_fixture_must(&log->f, bh_minimum_read(&log->f.core.store, &minimum, &log->f.err));
    return minimum;
}

static bool
retention_is_whole(struct log *log)
{
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    bool whole;

    assert_non_null(verifier);
    bh_audit_verifier_init(verifier, log->f.core.crypto, &log->f.core.journal.key);
    whole = bh_store_audit(&log->f.core.store, verifier, &log->f.err) == BH_OK;
    free(verifier);
    return whole;
}

static bool
keep_time(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct bh_slice value;

    return bh_slice_get((struct bh_slice){ leaf, length }, "ts", &value) && bh_slice_u64(value, self);
}

static void
the_oldest_go(void **state)
{
    struct log log;

    retention_fill(&log, one_admin);
    BH_CHECK_EQ("a developer", prune_by(&log, "alice", false), BH_DENIED);
    BH_CHECK_EQ("an admin of a tenant", prune_by(&log, "dan", false), BH_DENIED);
    BH_CHECK_EQ("only asked", prune_by(&log, "carol", true), BH_OK);
    BH_CHECK_EQ("would go", log.f.answer.pruned, 512);
    BH_CHECK_EQ("did not", minimum_of(&log), 0);
    BH_CHECK_EQ("an admin", prune_by(&log, "carol", false), BH_OK);
    BH_CHECK_EQ("went", log.f.answer.pruned, 512);
    BH_CHECK_EQ("two bundles", minimum_of(&log), 512);
    BH_CHECK_EQ("recorded", leaves(&log.f, "audit.prune").count, 1);
    BH_CHECK("whole", retention_is_whole(&log));
    BH_CHECK_EQ("again", prune_by(&log, "carol", false), BH_OK);
    BH_CHECK_EQ("no more", log.f.answer.pruned, 0);
    BH_CHECK_EQ("recorded all the same", leaves(&log.f, "audit.prune").count, 2);
    reopen(&log.f);
    BH_CHECK_EQ("kept", minimum_of(&log), 512);
    BH_CHECK("whole after a start", retention_is_whole(&log));
    keys_fixture_cancel(&log.f, submit_canary(&log.f, "other"));
    retention_sign(&log);
    BH_CHECK("goes on", retention_is_whole(&log));
    fixture_teardown(&log.f);
    BH_CHECK_DONE();
}

static void
by_age(void **state)
{
    struct log log;
    struct bh_err err;
    uint64_t now_ns;

    retention_fill(&log, two_admins);
    log.f.config.audit_retention = 3600 * BH_NS_PER_S;
    BH_CHECK_EQ("all are young", prune_by(&log, "carol", false), BH_OK);
    BH_CHECK_EQ("none goes", log.f.answer.pruned, 0);
    now_ns = bh_core_now(&log.f.core);
    keys_fixture_must(&log.f, log.f.core.store.ops->list_records(log.f.core.store.self, 300, 300, keep_time,
                                                                 &log.f.config.audit_retention, &err));
    log.f.config.audit_retention = now_ns - log.f.config.audit_retention;
    BH_CHECK_EQ("some are old", prune_by(&log, "carol", false), BH_OK);
    BH_CHECK("not all of them", log.f.answer.pruned == 256 || log.f.answer.pruned == 512);
    fixture_teardown(&log.f);
    BH_CHECK_DONE();
}

/* What the caller's export does not hold stays. */
static void
as_far_as_the_export(void **state)
{
    struct log log;

    retention_fill(&log, two_admins);
    memcpy(log.note, log.early, sizeof log.note);
    BH_CHECK_EQ("an early export", prune_by(&log, "carol", false), BH_OK);
    BH_CHECK_EQ("one bundle", minimum_of(&log), 256);
    fixture_teardown(&log.f);
    BH_CHECK_DONE();
}

static void
what_stands_against_it(void **state)
{
    struct log log;
    char path[160];

    retention_fill(&log, held);
    BH_CHECK_EQ("a legal hold", prune_by(&log, "carol", false), BH_CONFLICT);
    keys_fixture_must(&log.f, fixture_apply(&log.f, two_admins));
    log.f.config.audit_retention = 0;
    BH_CHECK_EQ("kept for ever", prune_by(&log, "carol", false), BH_CONFLICT);
    log.f.config.audit_retention = LONG_AGO;
    log.note[strlen(log.note) - 6] ^= 1;
    BH_CHECK_EQ("a forged checkpoint", prune_by(&log, "carol", false), BH_INVALID);
    log.note[strlen(log.note) - 6] ^= 1;
    snprintf(path, sizeof path, "%s/snapshot-%llu.bin", log.f.folder,
             (unsigned long long)log.f.core.snapshot_seq);
    assert_int_equal(truncate(path, 100), 0);
    BH_CHECK_EQ("no usable snapshot", prune_by(&log, "carol", false), BH_CONFLICT);
    BH_CHECK_EQ("nothing went", minimum_of(&log), 0);
    fixture_teardown(&log.f);
    BH_CHECK_DONE();
}

/* The store of an earlier day, put back on purpose: what was pruned counts by its hashes. */
static void
put_back_to_an_earlier_day(void **state)
{
    static const char zero[] = "0\n";
    struct log log;
    char path[160];

    retention_fill(&log, two_admins);
    keys_fixture_must(&log.f, prune_by(&log, "carol", false));
    retention_sign(&log);
    close_core(&log.f);
    snprintf(path, sizeof path, "%s/audit.signed", log.f.folder);
    assert_int_equal(unlink(path), 0);
    BH_CHECK_EQ("missing", open_core(&log.f), BH_CONFLICT);
    BH_CHECK("says what to do", strstr(log.f.err.hint, "write 0 into audit.signed"));
    close_core(&log.f);
    keys_fixture_must(&log.f, bh_file_replace(path, zero, strlen(zero), 0600, &log.f.err));
    assert_int_equal(open_core(&log.f), BH_OK); /* as an administrator may decide */
    keys_fixture_cancel(&log.f, submit_canary(&log.f, "other"));
    retention_sign(&log);
    BH_CHECK("goes on", retention_is_whole(&log));
    fixture_teardown(&log.f);
    BH_CHECK_DONE();
}

/* Without its snapshot a pruned log cannot be started from, and says so. */
static void
a_lost_snapshot_is_no_silent_loss(void **state)
{
    struct log log;
    char path[160];

    retention_fill(&log, two_admins);
    keys_fixture_must(&log.f, prune_by(&log, "carol", false));
    snprintf(path, sizeof path, "%s/snapshot-%llu.bin", log.f.folder,
             (unsigned long long)log.f.core.snapshot_seq);
    close_core(&log.f);
    assert_int_equal(unlink(path), 0);
    BH_CHECK_EQ("refuses to start", open_core(&log.f), BH_CONFLICT);
    BH_CHECK("says why", strstr(log.f.err.msg, "pruned"));
    fixture_teardown(&log.f);
    BH_CHECK_DONE();
}

/* The n-th write fails: nothing went, or all of it with its record. */
static void
a_write_fails_anywhere(void **state)
{
    for (unsigned n = 1; n < 8; n++) {
        struct log log;
        struct bh_command command = { .op = BH_OP_AUDIT_PRUNE };
        bh_rc rc;

        retention_fill(&log, two_admins);
        open_failing(&log.f);
        command.caller = caller_named(&log.f, "carol");
        command.checkpoint = log.note;
        failing.calls = 0;
        failing.fails_at = n;
        rc = failing_attempt(&log.f, &command);
        BH_CHECK_EQ("together", minimum_of(&log), rc == BH_OK ? 512 : 0);
        BH_CHECK_EQ("recorded", leaves(&log.f, "audit.prune").count, rc == BH_OK);
        BH_CHECK("whole", retention_is_whole(&log));
        fixture_teardown(&log.f);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_oldest_go),
    cmocka_unit_test(by_age),
    cmocka_unit_test(as_far_as_the_export),
    cmocka_unit_test(what_stands_against_it),
    cmocka_unit_test(put_back_to_an_earlier_day),
    cmocka_unit_test(a_lost_snapshot_is_no_silent_loss),
    cmocka_unit_test(a_write_fails_anywhere),
};
BH_TEST_MAIN(tests)
