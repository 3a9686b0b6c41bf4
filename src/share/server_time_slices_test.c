/* Time slices as connected processes get and end them. */
#include "share/client_test.h"

static void
slices_rotate(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open one = lease_of(fixture, 1, 2), two = lease_of(fixture, 2, 2);
    struct client a, b;

    assert_int_equal(server_ask(fixture, &one), BH_OK);
    assert_int_equal(server_ask(fixture, &two), BH_OK);
    a = client_join(fixture, 1, new_one);
    b = client_join(fixture, 2, new_one);
    client_send(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 30000));
    client_send(&b, BH_SHARE_WANT);
    BH_CHECK("over", comes(&a, BH_SHARE_SHUT, 30000));
    BH_CHECK("not before it is drained", (slice_of(&b) & BH_SHARE_SHUT) != 0);
    client_send(&a, BH_SHARE_DRAINED);
    BH_CHECK("then", comes(&b, BH_SHARE_CONTENDED, 30000));
    client_send(&b, BH_SHARE_IDLE);
    BH_CHECK("shut", comes(&b, BH_SHARE_SHUT, 30000));
    client_send(&b, BH_SHARE_DRAINED);
    BH_CHECK("passed on", comes(&a, 0, 30000));
    close(a.fd);
    close(b.fd);
    close_lease(fixture, 1);
    close_lease(fixture, 2);
    BH_CHECK_DONE();
}

/* One that has a time slice while others wait knows when it ends.  When nothing more of it fits in,
 * the next one has it, or it continues; beside one that may come at any time there is no end. */
static void
a_slice_has_an_end(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open[] = { lease_of(fixture, 1, 2), lease_of(fixture, 2, 2),
                                    lease_of(fixture, 3, 2) };
    struct client a, b, beside;
    uint64_t until_ns;
    uint32_t slice;

    open[0].weight = 420;
    open[1].weight = 3780;
    open[2].latency = true;
    assert_int_equal(server_ask(fixture, &open[0]), BH_OK);
    assert_int_equal(server_ask(fixture, &open[1]), BH_OK);
    a = client_join(fixture, 1, new_one);
    b = client_join(fixture, 2, new_one);
    beside = client_join(fixture, 2, new_one);
    client_send(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 30000));
    BH_CHECK_EQ("no end", UNTIL_OF(a), 0);
    client_send(&b, BH_SHARE_WANT);
    client_send(&beside, BH_SHARE_WANT);
    BH_CHECK("others wait", comes(&a, BH_SHARE_CONTENDED, 30000));
    until_ns = UNTIL_OF(a);
    BH_CHECK("it ends", until_ns > 0 && until_ns < bh_time_monotonic() + long_round_ns);
    bh_time_sleep(20 * BH_NS_PER_MS); /* the other has nine times as much before it is ahead */
    client_send(&a, BH_SHARE_DRAINED);
    BH_CHECK("nothing more fits: handed over", comes(&b, BH_SHARE_CONTENDED, 30000));
    BH_CHECK("before it ended", bh_time_monotonic() < until_ns);
    BH_CHECK("shut, without an end", (slice_of(&a) & BH_SHARE_SHUT) != 0 && UNTIL_OF(a) == 0);
    slice = slice_of(&b);
    until_ns = UNTIL_OF(b);
    client_send(&b, BH_SHARE_DRAINED);
    BH_CHECK("received", server_ask(fixture, &open[0]) == BH_OK && server_ask(fixture, &open[0]) == BH_OK);
    BH_CHECK_EQ("one of two is not enough", slice_of(&b), slice);
    client_send(&beside, BH_SHARE_IDLE);
    for (int i = 0; i < 50000 && slice_of(&b) == slice; i++)
        bh_time_sleep(100000);
    BH_CHECK("it used less than the other: it goes on", comes(&b, BH_SHARE_CONTENDED, 0));
    BH_CHECK("to another end", UNTIL_OF(b) != until_ns);
    BH_CHECK("a latency share",
             server_ask(fixture, &open[2]) == BH_OK && server_ask(fixture, &open[2]) == BH_OK);
    BH_CHECK_EQ("no end", UNTIL_OF(b), 0);
    for (uint64_t lease = 3; lease > 0; close_lease(fixture, lease--))
        ;
    BH_CHECK_DONE();
}

static void
server_slices_test_allow(struct fixture *fixture, uint64_t lease, bool paused)
{
    struct bh_share_allow allow = { .lease = lease, .paused = paused };

    send_message(fixture, BH_SHARE_MSG_ALLOW, &allow);
}

/* One that is frozen in the middle of its time slice keeps no other out, and finds its own again. */
static void
one_is_paused(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open one = lease_of(fixture, 1, 2), two = lease_of(fixture, 2, 2);
    struct client a, b;

    assert_int_equal(server_ask(fixture, &one), BH_OK);
    assert_int_equal(server_ask(fixture, &two), BH_OK);
    a = client_join(fixture, 1, new_one);
    b = client_join(fixture, 2, new_one);
    client_send(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 30000));
    server_slices_test_allow(fixture, 1, true);
    BH_CHECK("shut", comes(&a, BH_SHARE_SHUT, 30000));
    client_send(&b, BH_SHARE_WANT);
    BH_CHECK("not waited for", comes(&b, 0, 30000));
    server_slices_test_allow(fixture, 1, false);
    BH_CHECK("it waits again", comes(&b, BH_SHARE_SHUT, 30000));
    client_send(&b, BH_SHARE_DRAINED);
    BH_CHECK("and has its time slice", comes(&a, BH_SHARE_CONTENDED, 30000));
    server_slices_test_allow(fixture, 9, true); /* no such lease: nothing */
    stop_server(fixture, SIGKILL);
    start_server(fixture);
    one.paused = true;
    assert_int_equal(server_ask(fixture, &one), BH_OK);
    assert_int_equal(server_ask(fixture, &two), BH_OK);
    BH_CHECK("paused as it was", comes(&b, 0, 30000));
    BH_CHECK("the other is shut", comes(&a, BH_SHARE_SHUT, 30000));
    close(a.fd);
    close(b.fd);
    close_lease(fixture, 1);
    close_lease(fixture, 2);
    BH_CHECK_DONE();
}

/* DRAINED names its time slice: one that names an earlier one is late. */
static void
late_words(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open one = lease_of(fixture, 9, 2), two = lease_of(fixture, 10, 2);
    struct bh_share_client_message late = { .word = BH_SHARE_DRAINED };
    struct client a, b;

    assert_int_equal(server_ask(fixture, &one), BH_OK);
    assert_int_equal(server_ask(fixture, &two), BH_OK);
    a = client_join(fixture, 9, new_one);
    b = client_join(fixture, 10, new_one);
    client_send(&a, BH_SHARE_WANT);
    BH_CHECK("alone", comes(&a, 0, 30000));
    late.slice = slice_of(&a);
    client_send(&b, BH_SHARE_WANT);
    BH_CHECK("over", comes(&a, BH_SHARE_SHUT, 30000));
    assert_int_equal(send(a.fd, &late, sizeof(late), 0), sizeof(late));
    BH_CHECK_EQ("heard", server_ask(fixture, &one), BH_OK); /* after it, and twice to be sure */
    BH_CHECK_EQ("heard", server_ask(fixture, &one), BH_OK);
    BH_CHECK("it is not drained", (slice_of(&b) & BH_SHARE_SHUT) != 0);
    client_send(&a, BH_SHARE_DRAINED);
    BH_CHECK("now", comes(&b, BH_SHARE_CONTENDED, 30000));
    close(a.fd);
    close(b.fd);
    close_lease(fixture, 9);
    close_lease(fixture, 10);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slices_rotate, set_up, tear_down),
        cmocka_unit_test_prestate_setup_teardown(a_slice_has_an_end, set_up, tear_down,
                                                 (void *)(uintptr_t)&long_round_ns),
        cmocka_unit_test_setup_teardown(one_is_paused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(late_words, set_up, tear_down),
    };

    if (geteuid() != 0)
        return 77; /* looks into other processes' memory maps */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
