#include "engine/read/why.h"

#include "engine/step/fixture_test.h"

static struct bh_ev_submit
why_test_limited(uint32_t tenant, uint32_t sku, uint64_t time_limit_ns)
{
    struct bh_ev_submit submit = bh_fixture_submission(tenant, sku, 1);

    submit.time_limit_ns = time_limit_ns;
    return submit;
}

static void
a_quota_is_named_with_who_holds_it_and_when_it_frees(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_reason why;
    uint64_t holder, job;

    bh_fixture_tenant(fixture,
                      (struct bh_ev_tenant){
                          .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .limit = 1300 });
    bh_fixture_submit_running(fixture, why_test_limited(21, 1, 9000));
    holder = bh_fixture_submit_running(fixture, why_test_limited(21, 1, 5000));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_QUOTA_GPU);
    assert_int_equal(why.tenant.v, 2);
    assert_int_equal(why.limit, 1300);
    assert_int_equal(why.used, 1200);
    assert_int_equal(why.wanted, 600);
    assert_int_equal(why.job.v, holder);
    assert_int_equal(why.frees_at_ns, bh_fixture_job(fixture, holder).started_ns + 5000);
    bh_fixture_close(fixture);
}

static void
full_gpus_are_named_with_the_first_to_end(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_reason why;
    uint64_t first, job;

    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    first = bh_fixture_submit_running(fixture, why_test_limited(31, 3, 700));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_NO_CAPACITY);
    assert_int_equal(why.sku.v, 3);
    assert_int_equal(why.wanted, 1);
    assert_int_equal(why.used, 2);
    assert_int_equal(why.job.v, first);
    assert_int_equal(why.frees_at_ns, bh_fixture_job(fixture, first).started_ns + 700);
    bh_fixture_close(fixture);
}

static void
free_parts_in_the_wrong_shape_are_counted(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 2));
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 1));
    /* half of GPU 2 has room for 3g.40gb only where the small one stands */
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_NO_CAPACITY);
    bh_fixture_cancel(fixture, job);
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 4));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_NO_CAPACITY);
    bh_fixture_close(fixture);
}

static void
scattered_room_is_no_shape(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_reason why;
    uint64_t job;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 2)); /* now half a GPU is free */
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 2));
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_NO_CAPACITY);
    bh_fixture_close(fixture);

    fixture = bh_fixture_site(2);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 7));
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)); /* 7 units of GPU 2 are free */
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 2));
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_NO_CAPACITY);
    bh_fixture_close(fixture);
}

static void
a_boundary_is_named_with_the_neighbour(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_reason why;
    uint64_t neighbor, job;

    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_DEPARTMENT,
                                                      .boundary = BH_BOUNDARY_FORTRESS });
    neighbor = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_BOUNDARY);
    assert_int_equal(why.job.v, neighbor);
    assert_int_equal(why.gpu.v, 1);
    bh_fixture_close(fixture);
}

/* What is expected is a promise only where all who must leave have a time limit. */
static void
what_is_kept_is_a_guess_where_anybody_has_no_limit(void **state)
{
    static const uint64_t hour_ns = UINT64_C(3600000000000);
    static const struct {
        const char *name;
        uint64_t first_ns, second_ns; /* limits; 0: none */
        bool fortress, assumed;
    } rows[] = {
        { "both limited", 1, 2, false, false },       { "neither", 0, 0, false, true },
        { "the first to leave", 0, 48, false, true }, { "the last to leave", 1, 0, false, true },
        { "neighbours, limited", 1, 2, true, false }, { "neighbours without", 0, 0, true, true },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_reason why;
        uint64_t job;

        bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                          .parent = { 1 },
                                                          .kind = BH_TENANT_DEPARTMENT,
                                                          .boundary = rows[i].fortress ? BH_BOUNDARY_FORTRESS
                                                                                       : BH_BOUNDARY_NONE });
        bh_fixture_submit_running(fixture, why_test_limited(31, 1, rows[i].first_ns * hour_ns));
        bh_fixture_submit_running(fixture, why_test_limited(31, 1, rows[i].second_ns * hour_ns));
        job = bh_fixture_submit(fixture, bh_fixture_submission(21, rows[i].fortress ? 1 : 3, 1));
        why = bh_fixture_why(fixture, job);
        BH_CHECK_EQ(rows[i].name, why.code, rows[i].fortress ? BH_REASON_BOUNDARY : BH_REASON_NO_CAPACITY);
        BH_CHECK(rows[i].name, why.frees_at_ns > 0);
        BH_CHECK_EQ(rows[i].name, why.assumed, rows[i].assumed);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* A time limit counts before the job starts, and a job that was ordered to end has its grace, however long it
 * was to run.  Two hold one GPU that is wanted whole. */
static void
who_starts_or_stops_is_known_to_leave(void **state)
{
    static const uint64_t minute_ns = UINT64_C(60000000000);
    static const struct {
        const char *name;
        uint64_t limit, deadline, grace; /* minutes, of the second */
        bool starts, cancelled, assumed, leaving;
        uint64_t frees; /* minutes; 0: not reported here */
    } rows[] = {
        { "runs", .limit = 120, .frees = 120 },
        { "starts", .limit = 120, .starts = true, .frees = 120 },
        { "stops, with a limit", .limit = 120, .grace = 90, .cancelled = true, .leaving = true, .frees = 90 },
        { "stops, without", .grace = 90, .cancelled = true, .leaving = true, .frees = 90 },
        { "stops, before the other", .grace = 5, .cancelled = true, .frees = 60 },
        { "has a deadline, later than is assumed", .deadline = 48 * 60, .assumed = true },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit second = why_test_limited(31, 1, rows[i].limit * minute_ns);
        uint64_t began_ns, holder, job;
        struct bh_reason why;

        second.grace_ns = rows[i].grace * minute_ns;
        bh_fixture_submit_running(fixture, why_test_limited(31, 1, 60 * minute_ns));
        began_ns = fixture->now_ns;
        second.deadline_ns = rows[i].deadline ? began_ns + rows[i].deadline * minute_ns : 0;
        holder = bh_fixture_submit(fixture, second);
        if (!rows[i].starts)
            bh_fixture_finish_effects(fixture);
        if (rows[i].cancelled)
            BH_CHECK_EQ(rows[i].name, bh_fixture_cancel(fixture, holder), BH_OK);
        job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
        why = bh_fixture_why(fixture, job);
        BH_CHECK_EQ(rows[i].name, why.code, BH_REASON_NO_CAPACITY);
        BH_CHECK_EQ(rows[i].name, why.assumed, rows[i].assumed);
        BH_CHECK_EQ(rows[i].name, why.leaving, rows[i].leaving);
        if (rows[i].frees)
            BH_CHECK_EQ(rows[i].name, (why.frees_at_ns - began_ns) / minute_ns, rows[i].frees);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* The same of a quota that one job holds. */
static void
a_quotas_holder_starts_or_stops(void **state)
{
    static const uint64_t minute_ns = UINT64_C(60000000000);

    for (int stops = 0; stops < 2; stops++) {
        struct bh_fixture *fixture = bh_fixture_site(2);
        struct bh_ev_submit first = why_test_limited(21, 1, stops ? 0 : 9 * minute_ns);
        struct bh_reason why;
        uint64_t holder, job;

        first.grace_ns = 9 * minute_ns;
        bh_fixture_tenant(fixture,
                          (struct bh_ev_tenant){
                              .tenant = { 2 }, .parent = { 1 }, .kind = BH_TENANT_DEPARTMENT, .limit = 600 });
        holder = stops ? bh_fixture_submit_running(fixture, first) : bh_fixture_submit(fixture, first);
        if (stops)
            assert_int_equal(bh_fixture_cancel(fixture, holder), BH_OK);
        job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
        why = bh_fixture_why(fixture, job);
        assert_int_equal(why.code, BH_REASON_QUOTA_GPU);
        assert_int_equal(why.job.v, holder);
        assert_int_equal(why.leaving, stops);
        assert_int_equal((why.frees_at_ns - fixture->now_ns) / minute_ns, 9);
        bh_fixture_close(fixture);
    }
}

static void
the_plain_reasons(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1)), never;

    assert_int_equal(bh_fixture_why(fixture, 999).code, BH_REASON_UNKNOWN_JOB);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_STARTING);
    assert_int_equal(bh_fixture_why(fixture, job).gpu.v, 1);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_RUNNING);
    never = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 2)); /* there is one GPU */
    assert_int_equal(bh_fixture_why(fixture, never).code, BH_REASON_NEVER_SHAPE);
    bh_fixture_close(fixture);
}

/* Asked when a job comes, before it is taken.  Tenant 21's SKU 3 is a whole GPU. */
static void
what_no_node_can_ever_hold_is_known_at_once(void **state)
{
    static const struct {
        const char *name;
        uint32_t sku, count, gang;
        uint64_t limit; /* 0: it could be held */
    } cases[] = {
        { "all GPUs", 3, 2, 0, 0 },
        { "one more", 3, 3, 0, 2 },
        { "a gang on them", 3, 1, 2, 0 },
        { "a gang of one more", 3, 1, 3, 2 },
        { "members of two, for which there is one node", 3, 2, 2, 2 },
        { "all small pieces", 1, 14, 0, 0 },
        { "one small piece more", 1, 15, 0, 14 },
    };
    struct bh_fixture *fixture = bh_fixture_site(2);

    bh_fixture_submit_running(fixture,
                              bh_fixture_submission(21, 3, 1)); /* what is in use now does not count */
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_ev_submit submit = bh_fixture_submission(21, cases[i].sku, cases[i].count);
        struct bh_reason why = { 0 };

        submit.gang = cases[i].gang;
        BH_CHECK_EQ(cases[i].name, bh_engine_shapes_ever(fixture->engine, &submit, &why),
                    cases[i].limit == 0);
        BH_CHECK_EQ(cases[i].name, why.limit, cases[i].limit);
    }
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

/* The GPUs may come later: such a job waits for them. */
static void
without_a_gpu_every_number_may_come(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(0);
    struct bh_ev_submit submit = bh_fixture_submission(21, 3, 16);
    struct bh_reason why = { 0 };

    assert_true(bh_engine_shapes_ever(fixture->engine, &submit, &why));
    bh_fixture_close(fixture);
}

static void
room_kept_for_another_is_said(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit low = bh_fixture_submission(21, 2, 1), high = bh_fixture_submission(21, 3, 1);
    uint64_t big, small;

    low.priority = BH_PRIORITY_LOW;
    bh_fixture_submit_running(fixture, low);
    high.priority = BH_PRIORITY_HIGH;
    big = bh_fixture_submit(fixture, high); /* wants all of it */
    small = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_why(fixture, big).code, BH_REASON_PREEMPTING);
    assert_int_equal(bh_fixture_why(fixture, small).code, BH_REASON_BEHIND);
    assert_int_equal(bh_fixture_why(fixture, small).job.v, big);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_quota_is_named_with_who_holds_it_and_when_it_frees),
    cmocka_unit_test(full_gpus_are_named_with_the_first_to_end),
    cmocka_unit_test(free_parts_in_the_wrong_shape_are_counted),
    cmocka_unit_test(scattered_room_is_no_shape),
    cmocka_unit_test(a_boundary_is_named_with_the_neighbour),
    cmocka_unit_test(what_is_kept_is_a_guess_where_anybody_has_no_limit),
    cmocka_unit_test(who_starts_or_stops_is_known_to_leave),
    cmocka_unit_test(a_quotas_holder_starts_or_stops),
    cmocka_unit_test(the_plain_reasons),
    cmocka_unit_test(what_no_node_can_ever_hold_is_known_at_once),
    cmocka_unit_test(without_a_gpu_every_number_may_come),
    cmocka_unit_test(room_kept_for_another_is_said),
};
BH_TEST_MAIN(tests)
