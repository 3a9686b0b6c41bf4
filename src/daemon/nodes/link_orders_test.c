/* What becomes of an order: it has one outcome in the log, however late and by whichever connection. */

#include "daemon/batch/batch.h"
#include "daemon/fixture/scene_fixture_test.h"

#include "audit/verify.h"
#include "daemon/nodes/inventory.h"
#include "daemon/nodes/orders.h"
#include "store/audit.h"

enum { LEAF_SIZE = 4096 };

static void
test_what_was_not_answered_is_said_again_to_its_node(void **unused)
{
    struct scene s;
    struct peer *mute, *other;
    uint64_t order;

    open_scene(&s, 2);
    s.peers[0].mute = s.peers[1].mute = true;
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < 4; n++)
        scene_step(&s);
    mute = s.peers[0].carves ? &s.peers[0] : &s.peers[1];
    other = mute == &s.peers[0] ? &s.peers[1] : &s.peers[0];
    BH_CHECK_EQ("ordered once", mute->carves, 1);
    order = mute->order;
    peer_close(&s, mute);
    scene_step_until(&s, 1);
    mute->mute = other->mute = false;
    peer_open(&s, mute);
    scene_step_until(&s, 2);
    BH_CHECK_EQ("ordered again", mute->carves, 2);
    BH_CHECK_EQ("by the same number", mute->order, order);
    BH_CHECK_EQ("not elsewhere", other->carves, 0);
    BH_CHECK_EQ("runs", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* The log verifies, and so many of its orders are without an outcome, or unknown. */
static void
check_orders(struct scene *s, const char *name, uint32_t open, uint32_t unknown)
{
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);

    assert_non_null(verifier);
    bh_audit_verifier_init(verifier, s->f.core.crypto, &s->f.core.journal.key);
    if (bh_store_audit(&s->f.core.store, verifier, &s->f.err) != BH_OK)
        fail_msg("%s: %s", name, s->f.err.msg);
    BH_CHECK_EQ(name, verifier->orders.open, open);
    BH_CHECK_EQ(name, verifier->orders.unknown, unknown);
    free(verifier);
}

static void
test_the_outcome_of_an_order_is_unknown_after_a_start_and_then_reported(void **unused)
{
    struct scene s;

    open_scene(&s, 1);
    s.peers[0].mute = true;
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    scene_step(&s);
    check_orders(&s, "ordered", 1, 0);
    for (int start = 0; start < 2; start++) {
        bh_node_links_free(s.links);
        close_core(&s.f);
        assert_int_equal(open_core(&s.f), BH_OK);
        assert_int_equal(bh_orders_unknown(&s.f.core, &s.f.err), BH_OK);
        assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
        check_orders(&s, "started again", 1, 1);
        s.links = bh_node_links_new(&s.f.core);
    }
    s.peers[0].mute = false;
    scene_step_until(&s, 1);
    BH_CHECK_EQ("runs", state_of(&s, 1), BH_JOB_RUNNING);
    check_orders(&s, "told", 0, 0);
    assert_int_equal(bh_orders_unknown(&s.f.core, &s.f.err), BH_OK);
    BH_CHECK("nothing to say", !s.f.core.open);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* A scene of one node that was ordered to start a job, and has not answered yet. */
static void
open_with_start_unanswered(struct scene *s)
{
    open_scene(s, 1);
    s->peers[0].slow = true;
    assert_int_equal(fixture_submit(&s->f, whole), BH_OK);
    bh_node_links_release(s->links);
    for (int n = 0; n < STEPS; n++)
        scene_step(s);
    BH_CHECK_EQ("ordered", s->peers[0].starts, 1);
}

/* A job is cancelled while it starts: that it did start is in the log all the same. */
static void
test_an_answer_that_comes_too_late_is_recorded(void **unused)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .job = { 1 } };
    struct scene s;

    open_with_start_unanswered(&s);
    cancel.caller = caller_named(&s.f, "root");
    assert_int_equal(fixture_run(&s.f, &cancel), BH_OK);
    bh_node_links_release(s.links);
    scene_step(&s);
    check_orders(&s, "not answered", 1, 0);
    for (int twice = 0; twice < 2; twice++) {
        send_done(&s.peers[0], s.peers[0].start_order);
        scene_step(&s);
        scene_step(&s);
        check_orders(&s, "answered once", 0, 0);
    }
    BH_CHECK_DONE();
    close_scene(&s);
}

/* The job began and ended while its node was away: START is not sent again, so it has no answer. */
static void
test_a_start_without_an_answer_is_closed_with_its_job(void **unused)
{
    for (int restart = 0; restart < 2; restart++) {
        struct bh_msg_ended ended = { .cause = BH_END_EXITED, .unasked = true };
        struct bh_job_view view;
        struct scene s;

        open_with_start_unanswered(&s);
        ended.lease = s.peers[0].lease;
        s.peers[0].untold = &ended;
        s.peers[0].lease = 0;
        if (restart) {
            bh_node_links_free(s.links);
            close_core(&s.f);
            assert_int_equal(open_core(&s.f), BH_OK);
            s.links = bh_node_links_new(&s.f.core);
        } else {
            bh_node_links_reset(s.links);
        }
        scene_step_until(&s, 1);
        BH_CHECK("the job has ended", !bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &view));
        BH_CHECK_EQ("not ordered again", s.peers[0].starts, 1);
        check_orders(&s, restart ? "the daemon was away" : "the connection broke", 0, 0);
        BH_CHECK_DONE();
        close_scene(&s);
    }
}

/* Orders that went to another node on an open connection may still be answered. */
static void
test_a_node_that_comes_closes_no_order_of_another(void **unused)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .job = { 1 } };
    struct peer *slow, *other;
    struct scene s;

    open_scene(&s, 2);
    s.peers[0].slow = s.peers[1].slow = true;
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < STEPS; n++)
        scene_step(&s);
    slow = peer_of_job(&s, 1);
    other = slow == &s.peers[0] ? &s.peers[1] : &s.peers[0];
    cancel.caller = caller_named(&s.f, "root");
    assert_int_equal(fixture_run(&s.f, &cancel), BH_OK);
    bh_node_links_release(s.links);
    peer_close(&s, other);
    scene_step_until(&s, 1);
    peer_open(&s, other);
    scene_step_until(&s, 2);
    check_orders(&s, "not answered", 1, 0);
    send_done(slow, slow->start_order);
    scene_step(&s);
    scene_step(&s);
    check_orders(&s, "answered", 0, 0);
    BH_CHECK_DONE();
    close_scene(&s);
}

static bool
link_orders_read_row(void *self, const struct bh_job_row *row)
{
    *(struct bh_job_row *)self = *row;
    return true;
}

static uint64_t
used_s(struct scene *s, bh_tenant_id tenant)
{
    struct bh_tenant_view view;

    assert_true(bh_view_tenant(s->f.core.state.engine, tenant, bh_core_now(&s->f.core), &view));
    return (uint64_t)(view.compute_ns / BH_GPU_PARTS / BH_NS_PER_S);
}

static uint64_t
ended_of(struct scene *s, uint64_t job)
{
    struct bh_job_row row = { 0 };

    assert_int_equal(
        s->f.core.store.ops->get_job(s->f.core.store.self, job, link_orders_read_row, &row, &s->f.err),
        BH_OK);
    return row.ended_ns;
}

static bool
read_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    snprintf(self, LEAF_SIZE, "%.*s", (int)length, leaf);
    return true;
}

/* Whether the record that the job's row names says that it ended. */
static bool
is_ended_by_its_record(struct scene *s, uint64_t job)
{
    char leaf[LEAF_SIZE] = "", item[60];
    struct bh_job_row row = { 0 };
    const struct bh_store *store = &s->f.core.store;

    assert_int_equal(store->ops->get_job(store->self, job, link_orders_read_row, &row, &s->f.err), BH_OK);
    assert_int_equal(
        store->ops->list_records(store->self, row.ended_by, row.ended_by, read_leaf, leaf, &s->f.err), BH_OK);
    snprintf(item, sizeof item, "\"ended\":\"%llu\",\"job\":%llu,", (unsigned long long)row.ended_ns,
             (unsigned long long)job);
    return strstr(leaf, item) != NULL;
}

/* The daemon was away for 2 hours, and half an hour after it went the job ended. */
static void
test_an_end_reported_late(void **unused)
{
    const uint64_t hour_ns = 3600 * BH_NS_PER_S;
    struct bh_msg_ended ended = { .cause = BH_END_EXITED, .unasked = true, .late_ns = hour_ns + hour_ns / 2 };
    struct bh_job_view job = { 0 };
    uint64_t ran_s;
    struct scene s;

    open_scene(&s, 1);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    scene_step_until(&s, 1);
    assert_true(bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &job));
    bh_clock_tick(&s.f.core.clock);
    bh_node_links_free(s.links);
    close_core(&s.f);
    assert_int_equal(open_core(&s.f), BH_OK);
    s.links = bh_node_links_new(&s.f.core);
    s.f.core.clock.base_ns += (int64_t)(2 * hour_ns);
    assert_int_equal(bh_inventory_lose_all(&s.f.core, bh_clock_last_saved(&s.f.core.clock), &s.f.err), BH_OK);
    assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
    BH_CHECK("pays for nothing that nobody heard of", used_s(&s, job.tenant) <= 60);
    ended.lease = s.peers[0].lease;
    s.peers[0].untold = &ended;
    scene_step_until(&s, 1);
    ran_s = (ended_of(&s, 1) - job.started_ns) / BH_NS_PER_S;
    BH_CHECK("ran for half an hour", ran_s >= 1800 && ran_s < 1900);
    BH_CHECK("its row names the record that says so", is_ended_by_its_record(&s, 1));
    BH_CHECK("and pays for that", used_s(&s, job.tenant) >= 1800 && used_s(&s, job.tenant) < 1900);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* The answer to a start comes two hours late, and says that the job began half an hour after the
 * order. */
static void
test_a_start_reported_late(void **unused)
{
    const uint64_t hour_ns = 3600 * BH_NS_PER_S;
    struct bh_msg_outcome outcome = { .late_ns = hour_ns + hour_ns / 2 };
    struct bh_job_view job = { 0 };
    struct scene s;
    uint64_t since_s;

    open_with_start_unanswered(&s);
    s.f.core.clock.base_ns += (int64_t)(2 * hour_ns);
    outcome.order = s.peers[0].start_order;
    peer_send(&s.peers[0], BH_MSG_OUTCOME, &outcome);
    scene_step(&s);
    scene_step(&s);
    assert_true(bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &job));
    BH_CHECK("it runs", job.started_ns > 0);
    since_s = (bh_core_now(&s.f.core) - job.started_ns) / BH_NS_PER_S;
    BH_CHECK("since the node says", since_s >= 5400 && since_s < 5500);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* Its specification is gone: the start cannot be sent, and does not wait for an answer for ever. */
static void
test_an_order_that_cannot_be_said_has_failed(void **unused)
{
    struct bh_job_view view = { 0 };
    struct bh_digest digest;
    struct scene s;

    open_scene(&s, 1);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    assert_true(bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &view));
    memcpy(digest.bytes, view.spec, sizeof digest.bytes);
    assert_int_equal(bh_core_begin(&s.f.core, &s.f.err), BH_OK);
    assert_int_equal(s.f.core.store.ops->drop_text(s.f.core.store.self, &digest, &s.f.err), BH_OK);
    assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < STEPS; n++)
        scene_step(&s);
    BH_CHECK_EQ("carved for", s.peers[0].carves, 1);
    BH_CHECK_EQ("never sent", s.peers[0].starts, 0);
    BH_CHECK_EQ("the job has failed", state_of(&s, 1), BH_JOB_FAILED);
    BH_CHECK_DONE();
    close_scene(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_what_was_not_answered_is_said_again_to_its_node),
    cmocka_unit_test(test_the_outcome_of_an_order_is_unknown_after_a_start_and_then_reported),
    cmocka_unit_test(test_an_answer_that_comes_too_late_is_recorded),
    cmocka_unit_test(test_a_start_without_an_answer_is_closed_with_its_job),
    cmocka_unit_test(test_a_node_that_comes_closes_no_order_of_another),
    cmocka_unit_test(test_an_end_reported_late),
    cmocka_unit_test(test_a_start_reported_late),
    cmocka_unit_test(test_an_order_that_cannot_be_said_has_failed),
};

BH_TEST_MAIN(tests)
