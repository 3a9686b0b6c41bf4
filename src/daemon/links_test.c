/* Two nodes and a core: each hears only what is its own, one that goes takes only its own
 * leases with it, and a name belongs to one socket. */

#include "daemon/peer_fixture_test.h"

#include "base/time.h"
#include "audit/verify.h"
#include "daemon/carried.h"
#include "daemon/inventory.h"
#include "daemon/orders.h"
#include "store/audit.h"

static const char whole_yaml[] =
    "tenants:\n"
    "  - {name: acme, kind: organization}\n"
    "  - {name: acme/vision, kind: department}\n"
    "  - {name: acme/vision/train, kind: project}\n"
    "skus:\n"
    "  - {name: large, grade: B, models: [{model: H100-80GB, profile: whole}]}\n"
    "principals: []\n"
    "bindings: []\n"
    "gpus: [{uuid: all, managed: true}]\n";

enum { LEAF_ROOM = 4096 };

static const struct submission whole = { "root", "acme/vision/train", "large", NULL, 0, 1 };

/* ---- the owner's side ---- */

/* As one turn of the owner's loop. */
static void
turn(struct scene *s)
{
    struct bh_err *err = &s->f.err;

    bh_node_links_connect(s->links);
    for (int i = 0; i < NODES_MAX; i++)
        peer_turn(s, &s->peers[i]);
    assert_int_equal(bh_node_links_settle(s->links, err), BH_OK);
    assert_int_equal(bh_node_links_receive(s->links, err), BH_OK);
    assert_int_equal(bh_core_commit(&s->f.core, err), BH_OK);
    bh_node_links_release(s->links);
}

static uint32_t
connected(struct scene *s)
{
    uint32_t cursor = 0, count = 0;
    struct bh_buf json;

    bh_buf_init(&json, 1 << 20);
    while (bh_node_links_inventory(s->links, &cursor, &json))
        count++;
    bh_buf_fini(&json);
    return count;
}

/* Connections come after a pause of some milliseconds; then everything is said at once. */
static void
turns_until(struct scene *s, uint32_t nodes)
{
    for (int n = 0; n < 3000 && connected(s) != nodes; n++) {
        turn(s);
        bh_time_sleep(BH_NS_PER_MS);
    }
    assert_int_equal(connected(s), nodes);
    for (int n = 0; n < TURNS; n++)
        turn(s);
}

static void
close_scene(struct scene *s)
{
    bh_node_links_free(s->links);
    for (int i = 0; i < NODES_MAX; i++)
        if (s->peers[i].listener >= 0)
            peer_close(s, &s->peers[i]);
    assert_int_equal(rmdir(s->folder), 0);
    teardown(&s->f);
}

static void
open_scene(struct scene *s, uint32_t nodes)
{
    static const struct peer peers[NODES_MAX] = {
        { .file = "a.sock", .name = "node-a", .gpu = "GPU-a", .listener = -1 },
        { .file = "b.sock", .name = "node-b", .gpu = "GPU-b", .listener = -1 },
        { .file = "c.sock", .name = "node-a", .gpu = "GPU-c", .listener = -1 },
    };

    memset(s, 0, sizeof *s);
    setup(&s->f);
    snprintf(s->folder, sizeof s->folder, "/tmp/bh-links-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    s->f.config.node_socket = s->folder;
    assert_int_equal(apply(&s->f, whole_yaml), BH_OK);
    memcpy(s->peers, peers, sizeof s->peers);
    s->links = bh_node_links_new(&s->f.core);
    for (uint32_t i = 0; i < nodes; i++)
        peer_open(s, &s->peers[i]);
    turns_until(s, nodes);
}

static enum bh_job_state
state_of(const struct scene *s, uint64_t job)
{
    struct bh_job_view view = { 0 };

    assert_true(bh_view_job(s->f.core.state.engine, (bh_job_id){ job }, &view));
    return view.state;
}

static struct peer *
peer_of_job(struct scene *s, uint64_t job)
{
    struct bh_job_view view = { 0 };
    const char *name;

    assert_true(bh_view_job(s->f.core.state.engine, (bh_job_id){ job }, &view));
    name = bh_catalog_name_of(s->f.core.catalog, BH_NAME_NODE, view.node.v);
    assert_non_null(name);
    return strcmp(name, "node-a") == 0 ? &s->peers[0] : &s->peers[1];
}

static void
submit_two(struct scene *s)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(submit(&s->f, whole), BH_OK);
    bh_node_links_release(s->links);
    for (int n = 0; n < TURNS; n++)
        turn(s);
}

/* ---- what is promised ---- */

static void
test_orders_go_to_their_node(void **unused)
{
    struct scene s;

    open_scene(&s, 2);
    submit_two(&s);
    for (int i = 0; i < 2; i++) {
        struct peer *peer = &s.peers[i];

        BH_CHECK_EQ(peer->name, peer->carves, 1);
        BH_CHECK_EQ(peer->name, peer->starts, 1);
        BH_CHECK_STR(peer->name, peer->carved_on, peer->gpu);
        BH_CHECK_EQ(peer->name, state_of(&s, 1 + (uint64_t)i), BH_JOB_RUNNING);
    }
    BH_CHECK("two leases", s.peers[0].lease != s.peers[1].lease);
    BH_CHECK_DONE();
    close_scene(&s);
}

static void
test_one_that_goes_takes_only_its_own(void **unused)
{
    struct scene s;
    struct peer *gone;

    open_scene(&s, 2);
    submit_two(&s);
    gone = peer_of_job(&s, 1);
    peer_close(&s, gone);
    turns_until(&s, 1);
    BH_CHECK_EQ("the other's job", state_of(&s, 2), BH_JOB_RUNNING);
    BH_CHECK_EQ("nothing new for the other", peer_of_job(&s, 2)->starts, 1);

    /* it comes back with its job: nothing happened */
    peer_open(&s, gone);
    turns_until(&s, 2);
    BH_CHECK_EQ("still there", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_EQ("not started again", gone->starts, 1);
    BH_CHECK_EQ("KEEP names its lease only", gone->kept_leases, 1);
    BH_CHECK_EQ("and its piece only", gone->kept_pieces, 1);

    /* and now without: that job is lost with it, the other's is not */
    peer_close(&s, gone);
    turns_until(&s, 1);
    gone->lease = gone->piece = 0;
    peer_open(&s, gone);
    turns_until(&s, 2);
    BH_CHECK_EQ("the lost one was queued again", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_EQ("and started anew", gone->starts, 2);
    BH_CHECK_EQ("the other's job", state_of(&s, 2), BH_JOB_RUNNING);
    BH_CHECK_EQ("nothing new for the other", peer_of_job(&s, 2)->starts, 1);
    BH_CHECK_DONE();
    close_scene(&s);
}

static void
test_what_was_not_answered_is_said_again_to_its_node(void **unused)
{
    struct scene s;
    struct peer *mute, *other;
    uint64_t order;

    open_scene(&s, 2);
    s.peers[0].mute = s.peers[1].mute = true;
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < 4; n++)
        turn(&s);
    mute = s.peers[0].carves ? &s.peers[0] : &s.peers[1];
    other = mute == &s.peers[0] ? &s.peers[1] : &s.peers[0];
    BH_CHECK_EQ("ordered once", mute->carves, 1);
    order = mute->order;
    peer_close(&s, mute);
    turns_until(&s, 1);
    mute->mute = other->mute = false;
    peer_open(&s, mute);
    turns_until(&s, 2);
    BH_CHECK_EQ("ordered again", mute->carves, 2);
    BH_CHECK_EQ("by the same number", mute->order, order);
    BH_CHECK_EQ("not elsewhere", other->carves, 0);
    BH_CHECK_EQ("runs", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_DONE();
    close_scene(&s);
}

static void
test_a_name_belongs_to_one_socket(void **unused)
{
    struct scene s;

    open_scene(&s, 2);
    submit_two(&s);
    peer_open(&s, &s.peers[2]); /* calls itself node-a, too */
    for (int n = 0; n < 3000 && (!s.peers[2].hellos || s.peers[2].io); n++) {
        turn(&s);
        bh_time_sleep(BH_NS_PER_MS);
    }
    BH_CHECK_EQ("it was asked", s.peers[2].hellos, 1);
    BH_CHECK_EQ("two are connected", connected(&s), 2);
    BH_CHECK("the first keeps its connection", s.peers[0].io != NULL);
    BH_CHECK("the second has none", s.peers[2].io == NULL);
    BH_CHECK_EQ("and heard nothing", s.peers[2].keeps, 0);
    BH_CHECK_EQ("its GPU is not taken in",
                bh_catalog_find(s.f.core.catalog, BH_NAME_GPU, "GPU-c"), 0);
    BH_CHECK_EQ("jobs go on", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_EQ("jobs go on", state_of(&s, 2), BH_JOB_RUNNING);
    BH_CHECK_DONE();
    close_scene(&s);
}

static void
test_the_daemon_restarts_with_both(void **unused)
{
    struct scene s;

    open_scene(&s, 2);
    submit_two(&s);
    bh_node_links_free(s.links);
    close_core(&s.f);
    assert_int_equal(open_core(&s.f), BH_OK);
    s.links = bh_node_links_new(&s.f.core);
    turns_until(&s, 2);
    for (int i = 0; i < 2; i++) {
        BH_CHECK_EQ(s.peers[i].name, state_of(&s, 1 + (uint64_t)i), BH_JOB_RUNNING);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].starts, 1);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].kept_leases, 1);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].kept_pieces, 1);
    }
    BH_CHECK_DONE();
    close_scene(&s);
}

/* An aborted batch: what was received is forgotten, so the nodes must say it again. */
static void
test_a_reset_loses_nothing(void **unused)
{
    struct scene s;

    open_scene(&s, 2);
    assert_int_equal(submit(&s.f, whole), BH_OK);
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_reset(s.links);
    assert_true(bh_core_abort(&s.f.core));
    BH_CHECK_EQ("nobody is connected", connected(&s), 0);
    turns_until(&s, 2);
    for (int i = 0; i < 2; i++) {
        BH_CHECK_EQ(s.peers[i].name, state_of(&s, 1 + (uint64_t)i), BH_JOB_RUNNING);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].starts, 1);
    }
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
test_what_became_of_an_order_is_unknown_after_a_start_and_then_told(void **unused)
{
    struct scene s;

    open_scene(&s, 1);
    s.peers[0].mute = true;
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    turn(&s);
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
    turns_until(&s, 1);
    BH_CHECK_EQ("runs", state_of(&s, 1), BH_JOB_RUNNING);
    check_orders(&s, "told", 0, 0);
    assert_int_equal(bh_orders_unknown(&s.f.core, &s.f.err), BH_OK);
    BH_CHECK("nothing to say", !s.f.core.open);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* A scene of one node that was told to start a job, and has not said yet whether it did. */
static void
open_with_start_unanswered(struct scene *s)
{
    open_scene(s, 1);
    s->peers[0].slow = true;
    assert_int_equal(submit(&s->f, whole), BH_OK);
    bh_node_links_release(s->links);
    for (int n = 0; n < TURNS; n++)
        turn(s);
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
    assert_int_equal(run(&s.f, &cancel), BH_OK);
    bh_node_links_release(s.links);
    turn(&s);
    check_orders(&s, "not answered", 1, 0);
    for (int twice = 0; twice < 2; twice++) {
        say_done(&s.peers[0], s.peers[0].start_order);
        turn(&s);
        turn(&s);
        check_orders(&s, "answered once", 0, 0);
    }
    BH_CHECK_DONE();
    close_scene(&s);
}

/* The job began and ended while nobody heard its node: START is not sent again, so it has no answer. */
static void
test_a_start_that_nobody_heard_of_is_closed_with_its_job(void **unused)
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
        turns_until(&s, 1);
        BH_CHECK("the job has ended", !bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &view));
        BH_CHECK_EQ("not ordered again", s.peers[0].starts, 1);
        check_orders(&s, restart ? "the daemon was away" : "the connection broke", 0, 0);
        BH_CHECK_DONE();
        close_scene(&s);
    }
}

/* What another node was told on a connection that stands, it may still answer. */
static void
test_a_node_that_comes_closes_no_order_of_another(void **unused)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .job = { 1 } };
    struct peer *slow, *other;
    struct scene s;

    open_scene(&s, 2);
    s.peers[0].slow = s.peers[1].slow = true;
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < TURNS; n++)
        turn(&s);
    slow = peer_of_job(&s, 1);
    other = slow == &s.peers[0] ? &s.peers[1] : &s.peers[0];
    cancel.caller = caller_named(&s.f, "root");
    assert_int_equal(run(&s.f, &cancel), BH_OK);
    bh_node_links_release(s.links);
    peer_close(&s, other);
    turns_until(&s, 1);
    peer_open(&s, other);
    turns_until(&s, 2);
    check_orders(&s, "not answered", 1, 0);
    say_done(slow, slow->start_order);
    turn(&s);
    turn(&s);
    check_orders(&s, "answered", 0, 0);
    BH_CHECK_DONE();
    close_scene(&s);
}

static void
say_ended(struct peer *peer, enum bh_end_cause cause, uint64_t rx_bytes)
{
    struct bh_msg_ended ended = { .lease = peer->lease,
                                  .cause = cause,
                                  .carried = { .counted = rx_bytes > 0,
                                               .rx_bytes = rx_bytes,
                                               .tx_bytes = 10 * rx_bytes } };

    say(peer, BH_MSG_ENDED, &ended);
}

static void
say_traffic(struct peer *peer, uint64_t rx_bytes)
{
    struct bh_msg_traffic_item item = { .lease = peer->lease,
                                        .job = 1,
                                        .rx_bytes = rx_bytes };

    say(peer, BH_MSG_TRAFFIC, &(struct bh_msg_traffic){ .items = { &item, 1 } });
}

static struct bh_carried_row
carried(struct scene *s, enum bh_document_kind kind, uint64_t number)
{
    struct bh_carried_row row;

    assert_int_equal(bh_carried_get(&s->f.core.store, kind, number, &row, &s->f.err),
                     BH_OK);
    return row;
}

static bool
has_text(struct scene *s, const char *plain)
{
    struct bh_digest digest;
    const char *text;

    s->f.core.crypto->sha256(plain, strlen(plain), "", 0, digest.bytes);
    return s->f.core.store.ops->get_text(s->f.core.store.self, &digest, s->f.arena, &text,
                                         &s->f.err) == BH_OK;
}

/* Each end counts once, whatever is repeated, aborted or started again. */
static void
test_what_networks_carried_is_kept(void **unused)
{
    struct scene s;
    struct peer *peer = &s.peers[0];
    uint32_t tenant;

    open_scene(&s, 1);
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    turns_until(&s, 1);
    tenant = bh_catalog_find(s.f.core.catalog, BH_NAME_TENANT, "acme/vision/train");
    say_traffic(peer, 5);
    turn(&s);
    BH_CHECK_EQ("what runs is not kept", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 0);
    say_ended(peer, BH_END_NODE_LOST, 7);
    say_ended(peer, BH_END_NODE_LOST, 7);
    assert_int_equal(bh_node_links_receive(s.links, &s.f.err), BH_OK);
    bh_node_links_reset(s.links);
    assert_true(bh_core_abort(&s.f.core));
    BH_CHECK_EQ("nor what was aborted", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 0);
    turns_until(&s, 1);
    say_ended(peer, BH_END_NODE_LOST, 7);
    say_ended(peer, BH_END_NODE_LOST, 7);
    turns_until(&s, 1);
    BH_CHECK_EQ("one lease", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 1);
    BH_CHECK_EQ("its bytes", carried(&s, BH_DOCUMENT_CARRIED, 1).sums.rx_bytes, 7);
    BH_CHECK("the record's text",
             has_text(&s, "{\"carried\":{\"counted\":true,\"rx_bytes\":7,"
                          "\"tx_bytes\":70},\"job\":1,\"lease\":1,"
                          "\"tenant\":3}"));
    BH_CHECK_EQ("queued again", peer->starts, 2);

    /* its machine goes down: what was said last counts */
    say_traffic(peer, 100);
    turn(&s);
    say_ended(peer, BH_END_EXITED, 0);
    turns_until(&s, 1);
    bh_node_links_free(s.links);
    close_core(&s.f);
    assert_int_equal(open_core(&s.f), BH_OK);
    s.links = bh_node_links_new(&s.f.core);
    BH_CHECK_EQ("both leases, after a start", carried(&s, BH_DOCUMENT_CARRIED, 1).leases,
                2);
    BH_CHECK_EQ("their bytes", carried(&s, BH_DOCUMENT_CARRIED, 1).sums.rx_bytes, 107);
    BH_CHECK_EQ("the tenant's",
                carried(&s, BH_DOCUMENT_CARRIED_TENANT, tenant).sums.rx_bytes, 107);
    BH_CHECK_EQ("sent", carried(&s, BH_DOCUMENT_CARRIED_TENANT, tenant).sums.tx_bytes, 70);
    BH_CHECK_DONE();
    close_scene(&s);
}

static bool
take_row(void *self, const struct bh_job_row *row)
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

    assert_int_equal(s->f.core.store.ops->get_job(s->f.core.store.self, job, take_row, &row,
                                                  &s->f.err), BH_OK);
    return row.ended_ns;
}

static bool
take_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    (void)seq;
    snprintf(self, LEAF_ROOM, "%.*s", (int)length, leaf);
    return true;
}

/* Whether the record that the job's row names says that it ended. */
static bool
is_ended_by_its_record(struct scene *s, uint64_t job)
{
    char leaf[LEAF_ROOM] = "", item[60];
    struct bh_job_row row = { 0 };
    const struct bh_store *store = &s->f.core.store;

    assert_int_equal(store->ops->get_job(store->self, job, take_row, &row, &s->f.err), BH_OK);
    assert_int_equal(store->ops->list_records(store->self, row.ended_by, row.ended_by, take_leaf,
                                              leaf, &s->f.err), BH_OK);
    snprintf(item, sizeof item, "\"ended\":\"%llu\",\"job\":%llu,",
             (unsigned long long)row.ended_ns, (unsigned long long)job);
    return strstr(leaf, item) != NULL;
}

/* The daemon was away for 2 hours, and half an hour after it went the job ended. */
static void
test_an_end_told_late(void **unused)
{
    const uint64_t hour_ns = 3600 * BH_NS_PER_S;
    struct bh_msg_ended ended = { .cause = BH_END_EXITED, .unasked = true,
                                  .late_ns = hour_ns + hour_ns / 2 };
    struct bh_job_view job = { 0 };
    uint64_t ran_s;
    struct scene s;

    open_scene(&s, 1);
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    turns_until(&s, 1);
    assert_true(bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &job));
    bh_clock_turn(&s.f.core.clock);
    bh_node_links_free(s.links);
    close_core(&s.f);
    assert_int_equal(open_core(&s.f), BH_OK);
    s.links = bh_node_links_new(&s.f.core);
    s.f.core.clock.base_ns += (int64_t)(2 * hour_ns);
    assert_int_equal(bh_inventory_lose_all(&s.f.core, bh_clock_heard(&s.f.core.clock), &s.f.err),
                     BH_OK);
    assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
    BH_CHECK("pays for nothing that nobody heard of", used_s(&s, job.tenant) <= 60);
    ended.lease = s.peers[0].lease;
    s.peers[0].untold = &ended;
    turns_until(&s, 1);
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
test_a_start_told_late(void **unused)
{
    const uint64_t hour_ns = 3600 * BH_NS_PER_S;
    struct bh_msg_outcome outcome = { .late_ns = hour_ns + hour_ns / 2 };
    struct bh_job_view job = { 0 };
    struct scene s;
    uint64_t since_s;

    open_with_start_unanswered(&s);
    s.f.core.clock.base_ns += (int64_t)(2 * hour_ns);
    outcome.order = s.peers[0].start_order;
    say(&s.peers[0], BH_MSG_OUTCOME, &outcome);
    turn(&s);
    turn(&s);
    assert_true(bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &job));
    BH_CHECK("it runs", job.started_ns > 0);
    since_s = (bh_core_now(&s.f.core) - job.started_ns) / BH_NS_PER_S;
    BH_CHECK("since the node says", since_s >= 5400 && since_s < 5500);
    BH_CHECK_DONE();
    close_scene(&s);
}

static bool
inventory_says(struct scene *s, const char *part)
{
    uint32_t cursor = 0;
    struct bh_buf json;
    bool found;

    bh_buf_init(&json, 1 << 20);
    while (bh_node_links_inventory(s->links, &cursor, &json))
        ;
    found = strstr(bh_buf_text(&json), part) != NULL;
    bh_buf_fini(&json);
    return found;
}

static void
say_image(struct peer *peer, uint32_t stage, uint64_t done_bytes, const char *digest)
{
    struct bh_msg_image image = { .lease = peer->lease, .job = 1, .stage = stage,
                                  .done_bytes = done_bytes, .total_bytes = 800 };

    snprintf(image.digest, sizeof image.digest, "%s", digest);
    say(peer, BH_MSG_IMAGE, &image);
}

static bool
has_image(struct scene *s, const char *digest)
{
    const struct bh_document_key key = { BH_DOCUMENT_IMAGE, "00000000000000000001" };
    struct bh_document_row row;

    return s->f.core.store.ops->get_document(s->f.core.store.self, &key, s->f.arena, &row,
                                             &s->f.err)
               == BH_OK
           && strstr(row.value, digest) != NULL;
}

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* How far it is is forgotten with the connection; which it is is recorded once for a digest. */
static void
test_how_far_an_image_is_is_memory_and_which_it_is_a_record(void **unused)
{
    static const char fetching[] = "\"images\":[{\"done_bytes\":120,\"job\":1,"
                                   "\"stage\":\"fetching\",\"total_bytes\":800}]";
    static const char none[] = "\"images\":[]";
    struct scene s;
    struct peer *peer = &s.peers[0], *other = &s.peers[1];
    uint64_t records;

    open_scene(&s, 2);
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    turns_until(&s, 2);
    if (other->lease) {
        other = peer;
        peer = &s.peers[1];
    }
    other->lease = peer->lease;
    records = s.f.core.journal.next_seq;
    say_image(peer, BH_IMAGE_FETCHING, 80, "");
    say_image(peer, BH_IMAGE_FETCHING, 120, "");
    say_image(peer, 99, 0, "");
    say_image(peer, BH_IMAGE_FETCHING, 120, "");
    turn(&s);
    BH_CHECK("how far", inventory_says(&s, fetching));
    say_image(peer, BH_IMAGE_READY, 0, "");
    turn(&s);
    BH_CHECK("it came to nothing", !inventory_says(&s, fetching) && inventory_says(&s, none)
                                       && !has_image(&s, ""));
    say_image(other, BH_IMAGE_READY, 0, DIGEST);
    turn(&s);
    BH_CHECK_EQ("of another node's lease", s.f.core.journal.next_seq, records);
    say_ended(other, BH_END_EXITED, 0);
    say(other, BH_MSG_NOTICE, &(struct bh_msg_notice){ .lease = other->lease });
    turn(&s);
    BH_CHECK_EQ("nor its end, nor what happens to it", s.f.core.journal.next_seq, records);
    say_image(peer, BH_IMAGE_READY, 0, "../../../etc/passwd");
    turn(&s);
    BH_CHECK_EQ("that is no digest", s.f.core.journal.next_seq, records);
    say_image(peer, BH_IMAGE_READY, 0, DIGEST);
    say_image(peer, BH_IMAGE_READY, 0, DIGEST);
    turn(&s);
    say_image(peer, BH_IMAGE_READY, 0, DIGEST);
    turn(&s);
    BH_CHECK("which", has_image(&s, DIGEST));
    BH_CHECK_EQ("once", s.f.core.journal.next_seq, records + 1);
    peer->lease += 77;
    say_image(peer, BH_IMAGE_READY, 0, DIGEST);
    turn(&s);
    BH_CHECK_EQ("of a lease that is not", s.f.core.journal.next_seq, records + 1);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* node_socket names one socket, which may come later than the daemon. */
static void
test_a_file_is_one_node(void **unused)
{
    struct scene s;
    char path[108];

    open_scene(&s, 0);
    bh_node_links_free(s.links);
    path_of(&s, &s.peers[1], path);
    s.f.config.node_socket = path;
    s.links = bh_node_links_new(&s.f.core);
    turn(&s);
    peer_open(&s, &s.peers[0]); /* beside it: not asked for */
    peer_open(&s, &s.peers[1]);
    turns_until(&s, 1);
    BH_CHECK("the one that is named", s.peers[1].io && !s.peers[0].io);
    assert_int_equal(submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < TURNS; n++)
        turn(&s);
    BH_CHECK_EQ("runs", state_of(&s, 1), BH_JOB_RUNNING);
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
    assert_int_equal(submit(&s.f, whole), BH_OK);
    assert_true(bh_view_job(s.f.core.state.engine, (bh_job_id){ 1 }, &view));
    memcpy(digest.bytes, view.spec, sizeof digest.bytes);
    assert_int_equal(bh_core_begin(&s.f.core, &s.f.err), BH_OK);
    assert_int_equal(s.f.core.store.ops->drop_text(s.f.core.store.self, &digest, &s.f.err), BH_OK);
    assert_int_equal(bh_core_commit(&s.f.core, &s.f.err), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < TURNS; n++)
        turn(&s);
    BH_CHECK_EQ("carved for", s.peers[0].carves, 1);
    BH_CHECK_EQ("never sent", s.peers[0].starts, 0);
    BH_CHECK_EQ("the job has failed", state_of(&s, 1), BH_JOB_FAILED);
    BH_CHECK_DONE();
    close_scene(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_orders_go_to_their_node),
    cmocka_unit_test(test_one_that_goes_takes_only_its_own),
    cmocka_unit_test(test_what_was_not_answered_is_said_again_to_its_node),
    cmocka_unit_test(test_a_name_belongs_to_one_socket),
    cmocka_unit_test(test_the_daemon_restarts_with_both),
    cmocka_unit_test(test_a_reset_loses_nothing),
    cmocka_unit_test(test_what_became_of_an_order_is_unknown_after_a_start_and_then_told),
    cmocka_unit_test(test_an_answer_that_comes_too_late_is_recorded),
    cmocka_unit_test(test_a_start_that_nobody_heard_of_is_closed_with_its_job),
    cmocka_unit_test(test_a_node_that_comes_closes_no_order_of_another),
    cmocka_unit_test(test_an_end_told_late),
    cmocka_unit_test(test_a_start_told_late),
    cmocka_unit_test(test_an_order_that_cannot_be_said_has_failed),
    cmocka_unit_test(test_what_networks_carried_is_kept),
    cmocka_unit_test(test_how_far_an_image_is_is_memory_and_which_it_is_a_record),
    cmocka_unit_test(test_a_file_is_one_node),
};

BH_TEST_MAIN(tests)
