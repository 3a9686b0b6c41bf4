/* Each refusal is in the log, alone or counted, whatever becomes of the batch. */
#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"
#include "daemon/owner/dispatch.h"
#include "daemon/state/refusals.h"

#include "daemon/fixture/fixture_test.h"
#include "daemon/owner/unauthenticated.h"

static struct fixture f;

static int
refusals_begin(void **state)
{
    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    return 0;
}

static int
refusals_end(void **state)
{
    fixture_teardown(&f);
    return 0;
}

/* What the log has of a result. */
struct sum {
    const char *res;
    uint64_t records, refusals;
    bool allowed;
};

static bool
add_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct sum *sum = self;
    struct bh_record record;
    struct bh_err err;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &err), BH_OK);
    if (strcmp(record.res, sum->res) != 0)
        return true;
    sum->records++;
    sum->refusals += record.count ? record.count : 1;
    sum->allowed = sum->allowed || record.dec.allow;
    return true;
}

static struct sum
refusals_sum_up(const char *res)
{
    struct sum sum = { .res = res };

    assert_int_equal(
        f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, add_record, &sum, &f.err), BH_OK);
    return sum;
}

/* alice may not cordon. */
static bh_rc
refusals_refuse(void)
{
    static const struct bh_cordon_request request = { .target = "n1" };
    struct bh_command command = { .op = BH_OP_CORDON,
                                  .caller = caller_named(&f, "alice"),
                                  .cordon = &request };

    return bh_dispatch_run(&f.core, &command, f.arena, &f.answer, &f.err);
}

static void
write_all(void)
{
    assert_int_equal(bh_core_record_refusals(&f.core, true, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
}

static void
check_sum(const char *res, uint64_t records, uint64_t refusals)
{
    struct sum sum = refusals_sum_up(res);

    assert_int_equal(sum.records, records);
    assert_int_equal(sum.refusals, refusals);
    assert_false(sum.allowed);
}

static void
repeated_ones_are_one_record(void **state)
{
    for (int i = 0; i < 3540; i++) {
        assert_int_equal(refusals_refuse(), BH_DENIED);
        if (i % 256 == 0)
            assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    }
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    check_sum("denied", 1, 1); /* the window is not over */
    write_all();
    check_sum("denied", 2, 3540);
    write_all(); /* nothing more was counted */
    check_sum("denied", 2, 3540);
}

static void
the_window_ends(void **state)
{
    f.config.refusal_window = 1;
    assert_int_equal(refusals_refuse(), BH_DENIED);
    assert_int_equal(refusals_refuse(), BH_DENIED);
    assert_int_equal(bh_core_record_refusals(&f.core, false, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    check_sum("denied", 2, 2);
}

static void
others_are_records_of_their_own(void **state)
{
    struct submission high = alice_small;
    struct bh_command rotate = { .op = BH_OP_KEY_ROTATE, .caller = caller_named(&f, "alice") };

    high.priority = BH_PRIORITY_HIGH;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(refusals_refuse(), BH_DENIED);
        assert_int_equal(fixture_submit(&f, high), BH_DENIED);
        assert_int_equal(fixture_run(&f, &rotate), BH_DENIED);
    }
    check_sum("denied", 3, 3);
    write_all();
    check_sum("denied", 6, 6);
}

/* What names jobs that may or may not be there is one kind of refusal, whatever the number. */
static void
numbers_do_not_tell_them_apart(void **state)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .caller = caller_named(&f, "alice") };
    struct sum sum;

    for (uint64_t job = 100; job < 200; job++) {
        cancel.job.v = job;
        assert_int_equal(fixture_run(&f, &cancel), BH_NOT_FOUND);
    }
    write_all();
    sum = refusals_sum_up("not_found");
    assert_int_equal(sum.records, 2);
    assert_int_equal(sum.refusals, 100);
}

/* Nor do GPUs and nodes: a site has many, and the folds are of all its users. */
static void
nor_do_targets(void **state)
{
    const struct bh_caller alice = caller_named(&f, "alice");
    struct sum sum;

    for (uint32_t gpu = 0; gpu < 100; gpu++) {
        char name[40];
        const struct bh_counted_refusal what = { { BH_OP_CORDON, .target = name }, BH_DENIED, 1 };
        uint32_t id;

        snprintf(name, sizeof name, "GPU-%u", gpu);
        assert_int_equal(bh_catalog_name(f.core.catalog, BH_NAME_GPU, name, &id, &f.err), BH_OK);
        assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    }
    write_all();
    sum = refusals_sum_up("denied");
    assert_int_equal(sum.records, 2);
    assert_int_equal(sum.refusals, 100);
}

static void
an_aborted_batch_loses_none(void **state)
{
    assert_int_equal(refusals_refuse(), BH_DENIED);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK); /* with it the first's record */
    assert_int_equal(refusals_refuse(), BH_DENIED);
    assert_int_equal(refusals_refuse(), BH_DENIED);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    assert_int_equal(bh_core_record_refusals(&f.core, true, &f.err), BH_OK);
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK); /* with it the counted one */
    write_all();
    check_sum("denied", 2, 2);
}

/* Who holds the verb and is refused all the same was not allowed. */
static void
no_refusal_says_allowed(void **state)
{
    static const bh_rc refusals[] = { BH_DENIED, BH_UNAUTHENTICATED };
    const struct bh_caller alice = caller_named(&f, "alice");

    for (size_t i = 0; i < BH_COUNT(refusals); i++) {
        const struct bh_counted_refusal what = { { BH_OP_KEY_SHRED, { true, 41 } }, refusals[i], 3 };

        assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
        write_all();
        check_sum(bh_rc_name(refusals[i]), 2, 3);
    }
}

static bool
keep_object(void *self, uint64_t seq, const char *leaf, size_t length)
{
    static char scratch[BH_RECORD_BYTES_MAX + 64];
    struct bh_record record;
    struct bh_err err;

    assert_int_equal(bh_record_decode(leaf, length, scratch, &record, &err), BH_OK);
    *(struct bh_record_object *)self = record.obj;
    return true;
}

static bool
keep_rest(void *self, uint64_t seq, const char *leaf, size_t length)
{
    snprintf(self, 512, "%.*s", (int)length, leaf);
    return true;
}

/* A refusal that the API decided is one of the deed that was asked about, with whose business it is
 * and what was named; one that the owner meets before it knows has what the API knew. */
static void
verb_tenant_and_object_are_recorded(void **state)
{
    const struct bh_caller alice = caller_named(&f, "alice");
    const struct bh_counted_refusal what = {
        { BH_OP_WHATIF, .verb = "site.apply", .tenant = { 2 }, .object = { "tenant", 3 } }, BH_DENIED, 1
    };
    struct bh_command verify = { .op = BH_OP_JOB_VERIFY, .caller = alice, .job = { 4711 }, .tenant = { 2 } };
    char leaf[512];

    assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    assert_int_equal(f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, keep_rest, leaf, &f.err),
                     BH_OK);
    assert_non_null(strstr(leaf, "\"obj\":{\"id\":3,\"type\":\"tenant\"}"));
    assert_non_null(strstr(leaf, "\"tenant\":2,"));
    assert_non_null(strstr(leaf, "\"verb\":\"site.apply\""));
    assert_int_equal(fixture_run(&f, &verify), BH_NOT_FOUND);
    assert_int_equal(f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, keep_rest, leaf, &f.err),
                     BH_OK);
    assert_non_null(strstr(leaf, "\"tenant\":2,"));
    assert_non_null(strstr(leaf, "\"verb\":\"isolation.verify\""));
}

/* What was counted names its object where that is one. */
static void
the_only_object_is_recorded(void **state)
{
    static const struct {
        const char *name;
        uint64_t jobs[4], told;
    } rows[] = {
        { "the same again and again", { 1, 1, 1, 1 }, 1 },
        { "the first was another", { 2, 1, 1, 1 }, 1 },
        { "several", { 1, 2, 2, 1 }, 0 },
        { "and back", { 1, 1, 2, 1 }, 0 },
    };
    const struct bh_caller alice = caller_named(&f, "alice");

    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_record_object last = { .id = 0 };

        memset(&f.core.refusals, 0, sizeof f.core.refusals);
        for (size_t n = 0; n < BH_COUNT(rows[i].jobs); n++) {
            const struct bh_counted_refusal what = { { BH_OP_JOB_EXEC, .job = { rows[i].jobs[n] } },
                                                     BH_DENIED,
                                                     2 };

            assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
            if (n == 0) { /* of two one is counted: it goes with the first's record */
                assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
                write_all();
            }
        }
        write_all();
        assert_int_equal(
            f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, keep_object, &last, &f.err),
            BH_OK);
        BH_CHECK_STR(rows[i].name, last.type, "job");
        BH_CHECK_EQ(rows[i].name, last.id, rows[i].told);
    }
    BH_CHECK_DONE();
}

/* A refused deed names what it was about where there is such a thing, and else nothing. */
static void
what_was_named_is_recorded(void **state)
{
    static const struct {
        const char *name;
        struct bh_refused_request tried;
        struct bh_record_object obj;
        /* clang-format off */
    } rows[] = {
        { "a node", { BH_OP_CORDON, .target = "n1" }, { "node", 1 } },
        { "a GPU", { BH_OP_DRAIN, .target = "GPU-1" }, { "gpu", 1 } },
        { "no GPU", { BH_OP_UNCORDON, .target = "GPU-canary" }, { "", 0 } },
        { "a job", { BH_OP_JOB_EXEC, .job = { 1 } }, { "job", 1 } },
        { "no job", { BH_OP_JOB_ATTACH, .job = { 4711 } }, { "", 0 } },
    };
    /* clang-format on */
    const struct bh_caller alice = caller_named(&f, "alice");
    uint32_t id;

    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    assert_int_equal(bh_catalog_name(f.core.catalog, BH_NAME_NODE, "n1", &id, &f.err), BH_OK);
    assert_int_equal(bh_catalog_name(f.core.catalog, BH_NAME_GPU, "GPU-1", &id, &f.err), BH_OK);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const struct bh_counted_refusal what = { rows[i].tried, BH_DENIED, 1 };
        struct bh_record_object last = { .id = 0 };

        assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        assert_int_equal(
            f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, keep_object, &last, &f.err),
            BH_OK);
        BH_CHECK_STR(rows[i].name, last.type, rows[i].obj.type);
        BH_CHECK_EQ(rows[i].name, last.id, rows[i].obj.id);
    }
    BH_CHECK_DONE();
}

/* Many at once are one record with their number where the table has no place for them. */
static void
a_full_table_loses_none(void **state)
{
    const struct bh_caller alice = caller_named(&f, "alice");
    const struct bh_counted_refusal what = { { BH_OP_CORDON, { false, 0 } }, BH_DENIED, 7 };

    for (uint32_t i = 0; i < BH_REFUSAL_GROUPS_MAX; i++)
        f.core.refusals.groups[i].until_ns = UINT64_MAX;
    assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    check_sum("denied", 1, 7);
}

static bh_rc
turn_away(uint32_t uid, enum bh_operation op)
{
    const struct bh_caller stranger = { .via = BH_VIA_PEER, .subject.uid = uid };
    const struct bh_counted_refusal what = { { .op = op }, BH_UNAUTHENTICATED, 1 };

    return bh_command_refused(&f.core, &stranger, &what);
}

/* However many user ids an attacker has: some have records of their own, the others share one, each attempt
 * is counted, and known callers keep their rows. */
static void
strangers_do_not_fill_the_log(void **state)
{
    enum { USERS = 5000 };

    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t uid = 100000; uid < 100000 + USERS; uid++)
            assert_int_equal(turn_away(uid, BH_OP_JOB_LIST), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    check_sum("unauthenticated", BH_REFUSAL_GROUPS_UNKNOWN, BH_REFUSAL_GROUPS_UNKNOWN);
    for (uint32_t i = 0; i < BH_REFUSAL_GROUPS_ALL; i++)
        if (i < BH_REFUSAL_GROUPS_MAX || i >= BH_REFUSAL_GROUPS_MAX + BH_REFUSAL_GROUPS_UNKNOWN)
            assert_int_equal(f.core.refusals.groups[i].until_ns, 0);
    write_all();
    check_sum("unauthenticated", 2 * BH_REFUSAL_GROUPS_UNKNOWN, 2 * USERS);
}

/* Nor one of them, by asking for all there is. */
static void
one_stranger_is_one_kind(void **state)
{
    char leaf[512];

    for (int op = 0; op < BH_OPERATIONS; op++)
        assert_int_equal(turn_away(4242, (enum bh_operation)op), BH_OK);
    write_all();
    check_sum("unauthenticated", 2, BH_OPERATIONS);
    assert_int_equal(f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, keep_rest, leaf, &f.err),
                     BH_OK);
    assert_non_null(strstr(leaf, "\"uid\":4242"));
    assert_non_null(strstr(leaf, "\"verb\":\"caller.unknown\""));
}

/* Whatever strangers show, the log grows by so much in a window and no more, and those who are
 * known keep their places. */
static void
credentials_of_no_user_take_no_row(void **state)
{
    struct bh_refusals *refusals = &f.core.refusals;
    uint64_t before;
    struct sum sum;

    for (uint32_t i = 0; i < BH_REFUSAL_GROUPS_MAX + BH_REFUSAL_GROUPS_UNKNOWN; i++) /* of others */
        refusals->groups[i].until_ns = UINT64_MAX;
    before = f.core.journal.next_seq;
    for (uint32_t round = 0; round < 20; round++) {
        struct bh_unauthenticated unauthenticated = { .items = { { 0 } } };

        for (uint64_t token = 0; token < 1000; token++)
            bh_unauthenticated_add(&unauthenticated, token * (round + 1));
        assert_int_equal(bh_unauthenticated_record(&f.core, &unauthenticated, &f.err), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    }
    assert_true(f.core.journal.next_seq - before <= BH_REFUSAL_GROUPS_UNAUTHENTICATED);
    for (uint32_t i = 0; i < BH_REFUSAL_GROUPS_MAX + BH_REFUSAL_GROUPS_UNKNOWN; i++) {
        assert_int_equal(refusals->groups[i].until_ns, UINT64_MAX);
        refusals->groups[i].until_ns = 0;
    }
    write_all();
    sum = refusals_sum_up("unauthenticated");
    assert_int_equal(sum.refusals, 20000);
    assert_true(sum.records <= 2 * BH_REFUSAL_GROUPS_UNAUTHENTICATED);
    assert_false(sum.allowed);
}

/* Nor do principals that may not enrol an account, whichever it is. */
static void
nor_do_accounts(void **state)
{
    const struct bh_caller alice = caller_named(&f, "alice");

    for (uint64_t id = 1; id <= 100; id++) {
        const struct bh_counted_refusal what = { { BH_OP_ACCOUNT_RESET, .object = { "account", id } },
                                                 BH_DENIED,
                                                 1 };

        assert_int_equal(bh_command_refused(&f.core, &alice, &what), BH_OK);
    }
    write_all();
    check_sum("denied", 2, 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(repeated_ones_are_one_record, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(the_window_ends, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(others_are_records_of_their_own, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(numbers_do_not_tell_them_apart, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(nor_do_targets, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(nor_do_accounts, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(credentials_of_no_user_take_no_row, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(no_refusal_says_allowed, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(what_was_named_is_recorded, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(verb_tenant_and_object_are_recorded, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(the_only_object_is_recorded, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(a_full_table_loses_none, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(strangers_do_not_fill_the_log, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(one_stranger_is_one_kind, refusals_begin, refusals_end),
    cmocka_unit_test_setup_teardown(an_aborted_batch_loses_none, refusals_begin, refusals_end),
};
BH_TEST_MAIN(tests)
