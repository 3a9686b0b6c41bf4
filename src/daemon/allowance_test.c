/* Nobody fills the site with waiting jobs or tokens, not even within one batch. */
#include "daemon/allowance.h"
#include "daemon/fixture_test.h"

static struct fixture f;

static int
begin(void **state)
{
    setup(&f);
    assert_int_equal(apply(&f, site_yaml), BH_OK);
    f.config.jobs_waiting_max = 3;
    f.config.tokens_max = 2;
    return 0;
}

static int
end(void **state)
{
    teardown(&f);
    return 0;
}

static struct bh_command
token_command(const char *who, const char *whose)
{
    struct bh_token_request *request = bh_arena_alloc(f.arena, sizeof *request);

    *request = (struct bh_token_request){ .principal = whose };
    return (struct bh_command){ .op = BH_OP_TOKEN_CREATE, .caller = caller_named(&f, who),
                                .token = request };
}

/* In one batch: no commit between the commands. */
static void
jobs_are_counted_in_one_batch(void **state)
{
    static const bh_rc expected[] = { BH_OK, BH_OK, BH_OK, BH_QUOTA, BH_QUOTA };
    uint64_t first_refused;

    for (size_t i = 0; i < BH_COUNT(expected); i++) {
        struct bh_command command = submit_command(&f, alice_small);

        assert_int_equal(bh_command_run(&f.core, &command, f.arena, &f.answer, &f.err),
                         expected[i]);
    }
    assert_string_equal(f.err.msg,
                        "alice has 3 jobs that wait or are held, which is the most");
    first_refused = f.core.next_job;
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    assert_int_equal(submit(&f, alice_small), BH_QUOTA);
    assert_int_equal(f.core.next_job, first_refused);
}

static void
a_cancelled_job_makes_room(void **state)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL };

    for (int i = 0; i < 3; i++)
        assert_int_equal(submit(&f, alice_small), BH_OK);
    assert_int_equal(submit(&f, alice_small), BH_QUOTA);
    cancel.caller = caller_named(&f, "alice");
    cancel.job = (bh_job_id){ f.core.next_job - 1 };
    assert_int_equal(run(&f, &cancel), BH_OK);
    assert_int_equal(submit(&f, alice_small), BH_OK);
}

static void
a_tenant_has_a_limit_with_all_below_it(void **state)
{
    f.config.tenant_jobs_waiting_max = 1;
    assert_int_equal(submit(&f, alice_small), BH_OK);
    assert_int_equal(submit(&f, alice_small), BH_QUOTA);
    assert_string_equal(f.err.msg,
                        "the tenant has 1 jobs that wait or are held, which is the most");
}

static void
administrators_have_no_limit(void **state)
{
    struct submission roots = alice_small;

    roots.who = "root";
    f.config.tenant_jobs_waiting_max = 1;
    for (int i = 0; i < 5; i++)
        assert_int_equal(submit(&f, roots), BH_OK);
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
    f.core.disk.looked_ns = 0;
    assert_int_equal(bh_allowance_check_disk(&f.core, &alices, &f.err), BH_FULL);
    assert_string_equal(f.err.msg,
                        "the disk is nearly full: what is left is kept for administrators");
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

        assert_int_equal(bh_command_run(&f.core, &command, f.arena, &f.answer, &f.err),
                         expected[i]);
        if (i == 0)
            revoke.token_id = bh_arena_strdup(f.arena, f.answer.token_id);
    }
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    roots = token_command("root", "alice");
    assert_int_equal(run(&f, &roots), BH_OK); /* an administrator may */
    revoke.caller = caller_named(&f, "alice");
    assert_int_equal(run(&f, &revoke), BH_OK);
    roots = token_command("alice", NULL);
    assert_int_equal(run(&f, &roots), BH_QUOTA); /* two are valid again */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_are_counted_in_one_batch, begin, end),
        cmocka_unit_test_setup_teardown(a_cancelled_job_makes_room, begin, end),
        cmocka_unit_test_setup_teardown(a_tenant_has_a_limit_with_all_below_it, begin, end),
        cmocka_unit_test_setup_teardown(administrators_have_no_limit, begin, end),
        cmocka_unit_test_setup_teardown(tokens_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(the_last_of_the_disk_is_for_administrators, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
