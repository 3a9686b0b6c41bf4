/* bulkhead-share as its two sides see it: the node on a socket, processes on that of their lease. */
#include "share/client_test.h"

/* ---- stories ---- */

static void
a_process_comes_and_dies(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 7, 1024);
    struct client me;
    pid_t other;
    int pipe_fds[2], tries = 30000;
    char byte;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    assert_int_equal(server_ask(fixture, &open), BH_OK); /* again: as before */
    me = client_join(fixture, 7, new_one);
    BH_CHECK_EQ("welcome", me.answer, BH_SHARE_WELCOME);
    BH_CHECK_EQ("cap", me.limits->device[0].cap_units, 512);
    BH_CHECK_EQ("uuid", me.limits->device[0].uuid[15], 0xff);
    BH_CHECK_EQ("shut", slice_of(&me) & BH_SHARE_SHUT, BH_SHARE_SHUT);
    BH_CHECK("mine", bh_share_change(me.usage, 0, (uint32_t)me.slot, 10, 512));
    assert_int_equal(pipe(pipe_fds), 0);
    other = fork();
    if (other == 0) {
        struct client it = client_join(fixture, 7, new_one);

        atomic_store(&it.usage->pid[it.slot], (uint32_t)getpid());
        if (it.slot != me.slot && bh_share_change(it.usage, 0, (uint32_t)it.slot, 500, 512))
            (void)!write(pipe_fds[1], "k", 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    BH_CHECK_EQ("both", bh_share_used(me.usage, 0), 510);
    BH_CHECK("not over the cap", !bh_share_change(me.usage, 0, (uint32_t)me.slot, 3, 512));
    kill(other, SIGKILL);
    BH_CHECK("given back by dying", falls_to(&me, 10));
    for (uint64_t i = 0; i < 2; i++) {
        struct bh_share_overhead more = { .lease = 7, .bytes = (10 + 4 * i) * 2 * MIB + MIB };

        send_message(fixture, BH_SHARE_MSG_OVERHEAD, &more);
    }
    BH_CHECK_EQ("again", server_ask(fixture, &open), BH_OK); /* and so they were received */
    BH_CHECK_EQ("the less of two, rounded up", atomic_load(&me.limits->device[0].overhead_units), 1);
    waitpid(other, NULL, 0);
    while (me.usage->pid[me.slot + 1] != 0 && tries-- > 0)
        bh_time_sleep(1000000);
    BH_CHECK_EQ("no process's", me.usage->pid[me.slot + 1], 0);
    close(me.fd);
    close_lease(fixture, 7);
    BH_CHECK_DONE();
}

/* What it reserved, what its driver's library asked for, what the driver says. */
static void
three_counts_are_reported(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 7, 1024);
    struct bh_share_overhead driver = { .lease = 7, .bytes = 77 * MIB };
    struct bh_share_state message = { 0 };
    const struct bh_share_lease_state *lease;
    struct client me;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    me = client_join(fixture, 7, new_one);
    send_message(fixture, BH_SHARE_MSG_OVERHEAD, &driver);
    BH_CHECK("reserved", bh_share_change(me.usage, 0, (uint32_t)me.slot, 10, 512));
    atomic_store(&me.usage->seen[me.slot].grains[0], 160);
    atomic_store(&me.usage->seen_kind[me.slot], BH_SHARE_SEEN_WHOLE);
    do { /* one may have been on its way */
        server_await(fixture, BH_SHARE_MSG_STATE, &message);
        lease = message.leases.items;
    } while (message.leases.count == 0 || lease->seen_kind == BH_SHARE_SEEN_NOT);
    BH_CHECK_EQ("charged", lease->used_bytes[0], 20 * MIB);
    BH_CHECK_EQ("asked for", lease->seen_mib[0], 10);
    BH_CHECK_EQ("whole", lease->seen_kind, BH_SHARE_SEEN_WHOLE);
    BH_CHECK_EQ("the driver", lease->driver_mib[0], 77);
    close(me.fd);
    close_lease(fixture, 7);
    BH_CHECK_DONE();
}

/* A reader sees the pages, has no slot, and what its process joined as stays. */
static void
one_observes(void **state)
{
    static const struct bh_share_hello look = { BH_SHARE_MAGIC, BH_SHARE_VERSION, BH_SHARE_OBSERVE, 0 };
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 6, 1024);
    struct client me, view, next;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    me = client_join(fixture, 6, new_one);
    BH_CHECK("mine", bh_share_change(me.usage, 0, (uint32_t)me.slot, 10, 512));
    view = client_join(fixture, 6, look);
    BH_CHECK_EQ("welcome", view.answer, BH_SHARE_WELCOME);
    BH_CHECK_EQ("no slot", view.slot, -1);
    BH_CHECK_EQ("what there is", bh_share_used(view.usage, 0), 10);
    close(view.fd);
    next = client_join(fixture, 6, look); /* the end of the first is known by now */
    BH_CHECK_EQ("again", next.answer, BH_SHARE_WELCOME);
    BH_CHECK_EQ("still mine", bh_share_used(me.usage, 0), 10);
    client_send(&me, BH_SHARE_WANT);
    BH_CHECK("and received", comes(&me, 0, 30000));
    close(next.fd);
    close(me.fd);
    close_lease(fixture, 6);
    BH_CHECK_DONE();
}

/* Two copies of the library in one process (dlmopen) have a slot each; what it began as before
 * another program has none. */
static int
two_copies(const struct fixture *fixture)
{
    struct client first = client_join(fixture, 5, new_one), second, third;

    if (!bh_share_change(first.usage, 0, (uint32_t)first.slot, 10, 512))
        return 1;
    second = client_join(fixture, 5, new_one);
    if (second.answer != BH_SHARE_WELCOME || second.slot == first.slot
        || !bh_share_change(second.usage, 0, (uint32_t)second.slot, 20, 512))
        return 2;
    client_send(&first, BH_SHARE_WANT);
    if (!comes(&first, 0, 30000) || bh_share_used(first.usage, 0) != 30)
        return 3;
    /* As exec does it: mappings and connections go, the process stays. */
    close(first.fd);
    close(second.fd);
    munmap(first.usage, sizeof(*first.usage));
    munmap(second.usage, sizeof(*second.usage));
    third = client_join(fixture, 5, new_one);
    return bh_share_used(third.usage, 0) == 0 ? 0 : 4;
}

static void
each_copy_has_a_slot(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 5, 1024);
    pid_t child;
    int status;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    child = fork();
    if (child == 0)
        _exit(two_copies(fixture));
    assert_int_equal(waitpid(child, &status, 0), child);
    BH_CHECK_EQ("both work", status, 0);
    close_lease(fixture, 5);
    BH_CHECK_DONE();
}

/* As many as there is room for; the next is refused at once, and the others lose nothing. */
static void
the_last_slot(void **state)
{
    static struct client client[BH_SHARE_SLOTS_MAX];
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 4, 1024);
    struct client late;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    for (int i = 0; i < BH_SHARE_SLOTS_MAX; i++) {
        client[i] = client_join(fixture, 4, new_one);
        if (client[i].answer != BH_SHARE_WELCOME)
            fail_msg("process %d", i);
        if (i > 0) /* one mapping is enough to look */
            munmap(client[i].usage, sizeof(*client[i].usage));
        munmap((void *)(uintptr_t)client[i].limits, sizeof(*client[i].limits));
    }
    BH_CHECK("mine", bh_share_change(client[0].usage, 0, (uint32_t)client[0].slot, 10, 512));
    late = client_join(fixture, 4, new_one);
    BH_CHECK_EQ("one too many", late.answer, BH_SHARE_FULL);
    for (int i = 0; i < 100 && fixture->notice.kind != BH_SHARE_NOTICE_FULL; i++)
        BH_CHECK_EQ("again", server_ask(fixture, &open), BH_OK); /* and what comes before is received */
    BH_CHECK_EQ("the node is notified", fixture->notice.kind, BH_SHARE_NOTICE_FULL);
    BH_CHECK_EQ("of this lease", fixture->notice.lease, 4);
    BH_CHECK_EQ("nothing lost", bh_share_used(client[0].usage, 0), 10);
    for (int i = 0; i < BH_SHARE_SLOTS_MAX; i++)
        close(client[i].fd);
    close(late.fd);
    close_lease(fixture, 4);
    BH_CHECK_DONE();
}

/* Killed and started anew: what was reserved stays, processes that died meanwhile are found. */
static void
started_anew(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 3, 1024);
    struct client me, again;
    int pipe_fds[2];
    pid_t other;
    char byte;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    me = client_join(fixture, 3, new_one);
    BH_CHECK("mine", bh_share_change(me.usage, 0, (uint32_t)me.slot, 5, 512));
    assert_int_equal(pipe(pipe_fds), 0);
    other = fork();
    if (other == 0) {
        struct client it = client_join(fixture, 3, new_one);

        bh_share_change(it.usage, 0, (uint32_t)it.slot, 100, 512);
        (void)!write(pipe_fds[1], "k", 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    stop_server(fixture, SIGKILL);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    BH_CHECK_EQ("not reaped", bh_share_used(me.usage, 0), 105);
    start_server(fixture);
    assert_int_equal(server_ask(fixture, &open), BH_OK);
    BH_CHECK("found and reaped", falls_to(&me, 5));
    again = client_join(fixture, 3, (struct bh_share_hello){ BH_SHARE_MAGIC, BH_SHARE_VERSION, me.slot, 0 });
    BH_CHECK_EQ("its slot", again.slot, me.slot);
    BH_CHECK_EQ("the same page", bh_share_used(again.usage, 0), 5);
    client_send(&again, BH_SHARE_WANT);
    BH_CHECK("and time slices", comes(&me, 0, 30000));
    close(me.fd);
    close(again.fd);
    close_lease(fixture, 3);
    BH_CHECK_DONE();
}

static void
server_refused(void **state)
{
    enum { STRANGER = BH_SHARE_NOTICE_STRANGER };
    static const struct {
        const char *name;
        struct bh_share_hello hello;
        uint32_t answer, notified;
    } cases[] = {
        { "another version", { BH_SHARE_MAGIC, 9, -1, 0 }, BH_SHARE_BAD_VERSION, STRANGER },
        { "another thing", { 1, BH_SHARE_VERSION, -1, 0 }, BH_SHARE_BAD_VERSION, STRANGER },
        { "another's slot", { BH_SHARE_MAGIC, BH_SHARE_VERSION, 5, 0 }, BH_SHARE_STRANGER, STRANGER },
        { "a static program",
          { BH_SHARE_MAGIC, BH_SHARE_VERSION, BH_SHARE_STATIC, 0 },
          BH_SHARE_STRANGER,
          BH_SHARE_NOTICE_STATIC },
        { "no slot", { BH_SHARE_MAGIC, BH_SHARE_VERSION, 1 << 20, 0 }, BH_SHARE_STRANGER, STRANGER },
    };
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 4, 2), bad = open;
    struct bh_share_notice notice;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct client it = client_join(fixture, 4, cases[i].hello);

        BH_CHECK_EQ(cases[i].name, it.answer, cases[i].answer);
        server_await(fixture, BH_SHARE_MSG_NOTICE, &notice);
        BH_CHECK_EQ(cases[i].name, notice.kind, cases[i].notified);
        BH_CHECK_EQ(cases[i].name, notice.pid, getpid());
        close(it.fd);
    }
    close_lease(fixture, 4);
    bad.gpus[0].cap_bytes++;
    BH_CHECK_EQ("no units", server_ask(fixture, &bad), BH_INVALID);
    bad = open;
    snprintf(bad.gpus[0].uuid, sizeof(bad.gpus[0].uuid), "GPU-xyz");
    BH_CHECK_EQ("no UUID", server_ask(fixture, &bad), BH_INVALID);
    BH_CHECK_DONE();
}

/* More in a slot than was ever reserved: reported, and not made good by others' memory. */
static void
forged(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 5, 2);
    struct bh_share_notice notice;
    struct client me;
    pid_t other;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    other = fork();
    if (other == 0) {
        struct client it = client_join(fixture, 5, new_one);

        memset(it.usage->slot, 0x5a, sizeof(it.usage->slot));
        _exit(0);
    }
    waitpid(other, NULL, 0);
    server_await(fixture, BH_SHARE_MSG_NOTICE, &notice);
    BH_CHECK_EQ("reported", notice.kind, BH_SHARE_NOTICE_FORGED);
    BH_CHECK_EQ("of which process", notice.pid, other);
    me = client_join(fixture, 5, new_one);
    BH_CHECK("its slot is not given again", me.answer == BH_SHARE_WELCOME && me.slot > 0);
    close(me.fd);
    close_lease(fixture, 5);
    BH_CHECK_DONE();
}

/* One that joined before an update goes on counting in its own page: none joins beside it. */
static void
outdated(void **state)
{
    static const int32_t slots[] = { 0, BH_SHARE_OBSERVE, -1 };
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 11, 1024);
    struct bh_share_overhead driver = { .lease = 11, .bytes = 900 * MIB };
    struct client it;
    int pipe_fds[2], tries = 30000;
    pid_t old;
    char byte;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    assert_int_equal(pipe(pipe_fds), 0);
    old = fork();
    if (old == 0) {
        it = client_join(fixture, 11, new_one);
        munmap(it.usage, sizeof(*it.usage));
        if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_create("bulkhead-usage", 0), 0)
            != MAP_FAILED)
            (void)!write(pipe_fds[1], "k", 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    stop_server(fixture, SIGKILL);
    start_server(fixture);
    assert_int_equal(server_ask(fixture, &open), BH_OK);
    BH_CHECK_EQ("reported at once", fixture->notice.kind, BH_SHARE_NOTICE_OUTDATED);
    for (int k = 0; k < 5; k++) /* memory that is not in its page is not reported */
        send_message(fixture, BH_SHARE_MSG_OVERHEAD, &driver);
    for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
        it = client_join(fixture, 11,
                         (struct bh_share_hello){ BH_SHARE_MAGIC, BH_SHARE_VERSION, slots[i], 0 });
        BH_CHECK_EQ("kept out", it.answer, BH_SHARE_BAD_VERSION);
        close(it.fd);
    }
    for (int k = 0; k < 100 && fixture->notice.pid != (uint32_t)getpid(); k++)
        assert_int_equal(server_ask(fixture, &open), BH_OK);
    BH_CHECK_EQ("which process", fixture->notice.pid, getpid());
    BH_CHECK_EQ("why", fixture->notice.kind, BH_SHARE_NOTICE_OUTDATED);
    kill(old, SIGKILL);
    waitpid(old, NULL, 0);
    do {
        it = client_join(fixture, 11, new_one);
        close(it.fd);
    } while (it.answer != BH_SHARE_WELCOME && tries-- > 0);
    BH_CHECK("until it is gone", tries > 0);
    close_lease(fixture, 11);
    BH_CHECK_DONE();
}

/* A slot has one process, and what was reserved in it stays reserved. */
static void
anothers_slot(void **state)
{
    struct fixture *fixture = *state;
    struct bh_share_open open = lease_of(fixture, 8, 1024);
    struct client me, thief;
    int pipe_fds[2];
    pid_t other;
    char slot;

    assert_int_equal(server_ask(fixture, &open), BH_OK);
    assert_int_equal(pipe(pipe_fds), 0);
    other = fork();
    if (other == 0) {
        struct client it = client_join(fixture, 8, new_one);

        bh_share_change(it.usage, 0, (uint32_t)it.slot, 100, 512);
        slot = (char)it.slot;
        (void)!write(pipe_fds[1], &slot, 1);
        pause();
    }
    assert_int_equal(read(pipe_fds[0], &slot, 1), 1);
    thief = client_join(fixture, 8, (struct bh_share_hello){ BH_SHARE_MAGIC, BH_SHARE_VERSION, slot, 0 });
    BH_CHECK_EQ("refused", thief.answer, BH_SHARE_STRANGER);
    close(thief.fd);
    me = client_join(fixture, 8, new_one);
    BH_CHECK("another", me.slot >= 0 && me.slot != slot);
    BH_CHECK_EQ("still reserved", bh_share_used(me.usage, 0), 100);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    BH_CHECK("until it dies", falls_to(&me, 0));
    close(me.fd);
    close_lease(fixture, 8);
    BH_CHECK_DONE();
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_copy_has_a_slot, set_up, tear_down), /* others leave mappings */
        cmocka_unit_test_setup_teardown(outdated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_comes_and_dies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(three_counts_are_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_observes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_last_slot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(started_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(server_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(anothers_slot, set_up, tear_down),
    };

    if (geteuid() != 0)
        return 77; /* looks into other processes' memory maps */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
