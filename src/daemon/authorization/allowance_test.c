/* No principal fills the site with pending jobs or tokens, not even within one batch. */
#include "daemon/authorization/allowance.h"

#include "base/time.h"
#include "daemon/batch/batch.h"
#include "daemon/changes/token_retention.h"
#include "daemon/fixture/fixture_test.h"
#include "daemon/owner/dispatch.h"
#include "policy/operations.h"

static struct fixture f;

static int
allowance_begin(void **state)
{
    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    f.config.jobs_waiting_max = 3;
    f.config.tokens_max = 2;
    return 0;
}

static int
allowance_end(void **state)
{
    fixture_teardown(&f);
    return 0;
}

static struct bh_command
token_command(const char *who, const char *whose)
{
    struct bh_token_request *request = bh_arena_alloc(f.arena, sizeof *request);

    *request = (struct bh_token_request){ .principal = whose };
    return (struct bh_command){ .op = BH_OP_TOKEN_CREATE, .caller = caller_named(&f, who), .token = request };
}

/* ---- tokens that open nothing ---- */

static bool
allowance_count_row(void *self, const struct bh_token_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

static bool
count_forgetting(void *self, uint64_t seq, const char *leaf, size_t length)
{
    *(uint32_t *)self += memmem(leaf, length, "\"verb\":\"token.forget\"", 21) != NULL;
    return true;
}

static uint32_t
token_rows(const char *id)
{
    const struct bh_token_filter filter = { .id = id };
    uint32_t count = 0;

    assert_int_equal(
        f.core.store.ops->list_tokens(f.core.store.self, &filter, allowance_count_row, &count, &f.err),
        BH_OK);
    return count;
}

/* Making and revoking tokens all day does not fill the store. */
static void
dead_tokens_are_bounded(void **state)
{
    struct bh_command revoke = { .op = BH_OP_TOKEN_REVOKE, .caller = caller_named(&f, "alice") };
    struct bh_command make = token_command("alice", NULL);
    char first[16] = "", kept[16] = "";
    uint32_t records = 0;

    assert_int_equal(fixture_run(&f, &make), BH_OK);
    snprintf(kept, sizeof kept, "%s", f.answer.token_id);
    for (uint32_t i = 0; i < BH_TOKENS_EXPIRED_MAX + 8; i++) {
        assert_int_equal(fixture_run(&f, &make), BH_OK);
        revoke.token_id = bh_arena_strdup(f.arena, f.answer.token_id);
        if (i == 0)
            snprintf(first, sizeof first, "%s", revoke.token_id);
        assert_int_equal(fixture_run(&f, &revoke), BH_OK);
    }
    BH_CHECK("so many, and what was not revoked", token_rows(NULL) <= BH_TOKENS_EXPIRED_MAX + 2);
    BH_CHECK_EQ("the one that is valid is there", token_rows(kept), 1);
    BH_CHECK_EQ("the oldest is forgotten", token_rows(first), 0);
    BH_CHECK_EQ("the newest is not", token_rows(revoke.token_id), 1);
    assert_int_equal(
        f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, count_forgetting, &records, &f.err),
        BH_OK);
    BH_CHECK("records say so", records >= 7);
    BH_CHECK_DONE();
}

/* In one batch: no commit between the commands. */
static void
jobs_are_counted_in_one_batch(void **state)
{
    static const bh_rc expected[] = { BH_OK, BH_OK, BH_OK, BH_QUOTA, BH_QUOTA };
    uint64_t first_refused;

    for (size_t i = 0; i < BH_COUNT(expected); i++) {
        struct bh_command command = submit_command(&f, alice_small);

        assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), expected[i]);
    }
    assert_string_equal(f.err.msg, "alice has 3 jobs that wait or are held, which is the most");
    first_refused = f.core.next_job;
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_QUOTA);
    assert_int_equal(f.core.next_job, first_refused);
}

static void
a_cancelled_job_makes_room(void **state)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL };

    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_QUOTA);
    cancel.caller = caller_named(&f, "alice");
    cancel.job = (bh_job_id){ f.core.next_job - 1 };
    assert_int_equal(fixture_run(&f, &cancel), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
}

static void
a_tenant_has_a_limit_with_all_below_it(void **state)
{
    f.config.tenant_jobs_waiting_max = 1;
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_QUOTA);
    assert_string_equal(f.err.msg, "the tenant has 1 jobs that wait or are held, which is the most");
}

static void
administrators_have_no_limit(void **state)
{
    struct submission roots = alice_small;

    roots.who = "root";
    f.config.tenant_jobs_waiting_max = 1;
    for (int i = 0; i < 5; i++)
        assert_int_equal(fixture_submit(&f, roots), BH_OK);
}

/* The disk as if it had so many bytes free, as of now. */
static void
allowance_leave(uint64_t free)
{
    f.config.disk_reserve = 1 << 20;
    f.core.disk = (struct bh_disk){ .checked_ns = bh_time_monotonic() + 3600 * BH_NS_PER_S,
                                    .capacity = { UINT64_MAX, free } };
}

/* Between two looks at the disk, which are a second apart: no commit either. */
static void
what_is_let_through_counts(void **state)
{
    struct bh_command small = submit_command(&f, alice_small), large = small;
    uint32_t let = 0;

    large.text_length = 1 << 20;
    allowance_leave(17 << 20);
    while (let < 100 && bh_allowance_check_disk(&f.core, &large, &f.err) == BH_OK)
        let++;
    BH_CHECK("as many as surely fit", let >= 3 && let <= 8);
    BH_CHECK_EQ("what is small still does", bh_allowance_check_disk(&f.core, &small, &f.err), BH_OK);
    allowance_leave(17 << 20);
    BH_CHECK_EQ("another look", bh_allowance_check_disk(&f.core, &large, &f.err), BH_OK);
    BH_CHECK_DONE();
}

/* What ends something is never refused for want of room. */
static void
a_full_disk_stops_no_ending(void **state)
{
    static const struct {
        enum bh_operation op;
        bh_rc rc;
        /* clang-format off */
    } rows[] = {
        { BH_OP_JOB_CANCEL, BH_OK },    { BH_OP_JOB_RELEASE, BH_OK },
        { BH_OP_TOKEN_REVOKE, BH_OK },  { BH_OP_TOKEN_CREATE, BH_FULL },
        { BH_OP_JOB_SUBMIT, BH_FULL },  { BH_OP_JOB_EXEC, BH_FULL },
    };
    /* clang-format on */

    allowance_leave(1 << 20);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const struct bh_command command = { .op = rows[i].op, .caller = caller_named(&f, "alice") };

        BH_CHECK_EQ(bh_operation_get(rows[i].op)->name, bh_allowance_check_disk(&f.core, &command, &f.err),
                    rows[i].rc);
    }
    BH_CHECK_DONE();
}

/* A job of alice's with a text of its own; not committed. */
static bh_rc
submit_long(const char *who)
{
    static uint32_t made;
    struct submission s = alice_small;
    struct bh_command command;
    char name[1024];

    s.who = who;
    command = submit_command(&f, s);
    snprintf(name, sizeof name, "{\"name\":\"%01000u\"}", ++made);
    command.text = bh_arena_strdup(f.arena, name);
    command.text_length = strlen(name);
    return bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err);
}

/* So many jobs' texts of 1 KiB, sealed 1.5, until they are too many; 100: never. */
static uint32_t
submit_until_refused(void)
{
    uint32_t taken = 0;

    while (taken < 100 && submit_long("alice") == BH_OK)
        taken++;
    return taken;
}

/* In one batch, over a restart, and when jobs have ended, too. */
static void
a_tenants_texts_are_bounded(void **state)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL };

    f.config.jobs_waiting_max = 0;
    f.config.tenant_texts_max = 16 << 10;
    BH_CHECK_EQ("as many as fit", submit_until_refused(), 11);
    BH_CHECK_EQ("as a limit", f.err.rc, BH_QUOTA);
    BH_CHECK(
        "which says whose and how much",
        strstr(f.err.msg,
               "acme/vision/train keeps 15 KiB of its jobs' specifications, commands and messages, of 16"));
    BH_CHECK_EQ("an administrator's", submit_long("root"), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    cancel.caller = caller_named(&f, "alice");
    for (uint64_t job = 1; job < f.core.next_job - 1; job++) {
        cancel.job = (bh_job_id){ job };
        assert_int_equal(fixture_run(&f, &cancel), BH_OK);
    }
    BH_CHECK_EQ("ended ones count", submit_until_refused(), 0);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    BH_CHECK_EQ("after a restart", submit_until_refused(), 0);
    f.config.tenant_texts_max += 3 << 10;
    BH_CHECK_EQ("to the byte", submit_until_refused(), 1);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    BH_CHECK_EQ("after a batch that failed", submit_until_refused(), 0);
    BH_CHECK_DONE();
}

/* A deadline that has passed. */
static void
what_cannot_end_in_time_is_refused(void **state)
{
    struct bh_command command = submit_command(&f, alice_small);

    command.numbers.deadline_ns = BH_NS_PER_S;
    for (int held = 0; held < 2; held++) {
        ((struct bh_job_spec *)command.spec)->hold = held;
        BH_CHECK_EQ("refused", fixture_run(&f, &command), BH_RANGE);
    }
    BH_CHECK_DONE();
}

/* A reserve that no disk has. */
static void
the_last_of_the_disk_is_for_administrators(void **state)
{
    struct bh_command alices = submit_command(&f, alice_small), roots = alices, dry = alices;
    struct bh_command own = alices;

    roots.caller = caller_named(&f, "root");
    dry.dry_run = own.system = true;
    assert_int_equal(bh_allowance_check_disk(&f.core, &alices, &f.err), BH_OK);
    f.config.disk_reserve = UINT64_MAX;
    f.core.disk.checked_ns = 0;
    assert_int_equal(bh_allowance_check_disk(&f.core, &alices, &f.err), BH_FULL);
    assert_string_equal(f.err.msg, "the disk is nearly full: what is left is kept for administrators");
    assert_int_equal(bh_allowance_check_disk(&f.core, &roots, &f.err), BH_OK);
    assert_int_equal(bh_allowance_check_disk(&f.core, &dry, &f.err), BH_OK);
    assert_int_equal(bh_allowance_check_disk(&f.core, &own, &f.err), BH_OK);
}

static void
tokens_are_counted(void **state)
{
    static const bh_rc expected[] = { BH_OK, BH_OK, BH_QUOTA };
    struct bh_command roots, revoke = { .op = BH_OP_TOKEN_REVOKE };

    for (size_t i = 0; i < BH_COUNT(expected); i++) {
        struct bh_command command = token_command("alice", NULL);

        assert_int_equal(bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err), expected[i]);
        if (i == 0)
            revoke.token_id = bh_arena_strdup(f.arena, f.answer.token_id);
    }
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    roots = token_command("root", "alice");
    assert_int_equal(fixture_run(&f, &roots), BH_OK); /* an administrator may */
    revoke.caller = caller_named(&f, "alice");
    assert_int_equal(fixture_run(&f, &revoke), BH_OK);
    roots = token_command("alice", NULL);
    assert_int_equal(fixture_run(&f, &roots), BH_QUOTA); /* two are valid again */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(jobs_are_counted_in_one_batch, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(a_cancelled_job_makes_room, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(a_tenant_has_a_limit_with_all_below_it, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(administrators_have_no_limit, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(tokens_are_counted, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(dead_tokens_are_bounded, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(a_tenants_texts_are_bounded, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(what_is_let_through_counts, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(a_full_disk_stops_no_ending, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(what_cannot_end_in_time_is_refused, allowance_begin, allowance_end),
    cmocka_unit_test_setup_teardown(the_last_of_the_disk_is_for_administrators, allowance_begin,
                                    allowance_end),
};
BH_TEST_MAIN(tests)
