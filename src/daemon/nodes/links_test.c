/* Two nodes and a core: each hears only what is its own, one that goes takes only its own
 * leases with it, and a name belongs to one socket. */

#include "daemon/batch/batch.h"
#include "daemon/fixture/scene_fixture_test.h"

#include "daemon/nodes/carried.h"
#include "daemon/nodes/inventory.h"
#include "daemon/nodes/orders.h"
#include "store/audit.h"

static void
submit_two(struct scene *s)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(fixture_submit(&s->f, whole), BH_OK);
    bh_node_links_release(s->links);
    for (int n = 0; n < STEPS; n++)
        scene_step(s);
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
    scene_step_until(&s, 1);
    BH_CHECK_EQ("the other's job", state_of(&s, 2), BH_JOB_RUNNING);
    BH_CHECK_EQ("nothing new for the other", peer_of_job(&s, 2)->starts, 1);

    /* it comes back with its job: nothing happened */
    peer_open(&s, gone);
    scene_step_until(&s, 2);
    BH_CHECK_EQ("still there", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_EQ("not started again", gone->starts, 1);
    BH_CHECK_EQ("KEEP names its lease only", gone->kept_leases, 1);
    BH_CHECK_EQ("and its piece only", gone->kept_partitions, 1);

    /* and now without: that job is lost with it, the other's is not */
    peer_close(&s, gone);
    scene_step_until(&s, 1);
    gone->lease = gone->partition = 0;
    peer_open(&s, gone);
    scene_step_until(&s, 2);
    BH_CHECK_EQ("the lost one was queued again", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_EQ("and started anew", gone->starts, 2);
    BH_CHECK_EQ("the other's job", state_of(&s, 2), BH_JOB_RUNNING);
    BH_CHECK_EQ("nothing new for the other", peer_of_job(&s, 2)->starts, 1);
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
    for (int n = 0; n < 30000 && (!s.peers[2].hellos || s.peers[2].io); n++) {
        scene_step(&s);
        bh_time_sleep(BH_NS_PER_MS);
    }
    BH_CHECK_EQ("it was asked", s.peers[2].hellos, 1);
    BH_CHECK_EQ("two are connected", scene_connected(&s), 2);
    BH_CHECK("the first keeps its connection", s.peers[0].io != NULL);
    BH_CHECK("the second has none", s.peers[2].io == NULL);
    BH_CHECK_EQ("and heard nothing", s.peers[2].keeps, 0);
    BH_CHECK_EQ("its GPU is not taken in", bh_catalog_find(s.f.core.catalog, BH_NAME_GPU, "GPU-c"), 0);
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
    scene_step_until(&s, 2);
    for (int i = 0; i < 2; i++) {
        BH_CHECK_EQ(s.peers[i].name, state_of(&s, 1 + (uint64_t)i), BH_JOB_RUNNING);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].starts, 1);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].kept_leases, 1);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].kept_partitions, 1);
    }
    BH_CHECK_DONE();
    close_scene(&s);
}

/* A node receives the highest number of marks that it ever reported: also after it reported a lower one,
 * which is why it receives it, and after the daemon restarted.  Another node has another number. */
static void
test_marks_are_kept(void **unused)
{
    static const struct {
        uint64_t says, hears;
    } turns[] = { { 40, 40 }, { 43, 43 }, { 41, 43 }, { 42, 43 }, { 44, 44 } };
    struct scene s;
    struct peer *peer;

    open_scene(&s, 2);
    peer = &s.peers[0];
    BH_CHECK_EQ("new", peer->kept_marks, 0);
    for (size_t i = 0; i < BH_COUNT(turns); i++) {
        peer_close(&s, peer);
        scene_step_until(&s, 1);
        peer->marks = turns[i].says;
        peer_open(&s, peer);
        scene_step_until(&s, 2);
        BH_CHECK_EQ("it had told", peer->kept_marks, turns[i].hears);
    }
    bh_node_links_reset(s.links);
    assert_int_equal(bh_core_abort(&s.f.core, &s.f.err), BH_OK);
    scene_step_until(&s, 2);
    BH_CHECK_EQ("after an abort", peer->kept_marks, 44);
    bh_node_links_free(s.links);
    close_core(&s.f);
    assert_int_equal(open_core(&s.f), BH_OK);
    s.links = bh_node_links_new(&s.f.core);
    peer->kept_marks = 0;
    scene_step_until(&s, 2);
    BH_CHECK_EQ("after a restart", peer->kept_marks, 44);
    BH_CHECK_EQ("another's", s.peers[1].kept_marks, 0);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* An aborted batch: what was received is forgotten, so the nodes must say it again. */
static void
test_a_reset_loses_nothing(void **unused)
{
    struct scene s;

    open_scene(&s, 2);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_reset(s.links);
    assert_int_equal(bh_core_abort(&s.f.core, &s.f.err), BH_OK);
    BH_CHECK_EQ("nobody is connected", scene_connected(&s), 0);
    scene_step_until(&s, 2);
    for (int i = 0; i < 2; i++) {
        BH_CHECK_EQ(s.peers[i].name, state_of(&s, 1 + (uint64_t)i), BH_JOB_RUNNING);
        BH_CHECK_EQ(s.peers[i].name, s.peers[i].starts, 1);
    }
    BH_CHECK_DONE();
    close_scene(&s);
}

static void
send_ended(struct peer *peer, enum bh_end_cause cause, uint64_t rx_bytes)
{
    struct bh_msg_ended ended = {
        .lease = peer->lease,
        .cause = cause,
        .carried = { .counted = rx_bytes > 0, .rx_bytes = rx_bytes, .tx_bytes = 10 * rx_bytes }
    };

    peer_send(peer, BH_MSG_ENDED, &ended);
}

static void
send_traffic(struct peer *peer, uint64_t rx_bytes)
{
    struct bh_msg_traffic_item item = { .lease = peer->lease, .job = 1, .rx_bytes = rx_bytes };

    peer_send(peer, BH_MSG_TRAFFIC, &(struct bh_msg_traffic){ .items = { &item, 1 } });
}

static struct bh_carried_row
carried(struct scene *s, enum bh_document_kind kind, uint64_t number)
{
    struct bh_carried_row row;

    assert_int_equal(bh_job_document_get(&s->f.core.store, kind, number, &row, &s->f.err), BH_OK);
    return row;
}

static bool
links_has_text(struct scene *s, const char *plain)
{
    struct bh_digest digest;
    const char *text;

    s->f.core.crypto->sha256(plain, strlen(plain), "", 0, digest.bytes);
    return s->f.core.store.ops->get_text(s->f.core.store.self, &digest, s->f.arena, &text, &s->f.err)
           == BH_OK;
}

struct links_record {
    struct scene *s;
    bool has_text;
    char note[64];
};

static bool
links_read_record(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct links_record *record = self;
    const struct bh_slice json = { leaf, length };
    struct bh_slice list, item;
    struct bh_buf note;
    size_t cursor = 0;

    record->has_text = bh_slice_get(json, "text", &item);
    assert_true(bh_slice_get(json, "sealed", &list) && bh_slice_next_item(list, &cursor, &item));
    bh_buf_init_fixed(&note, record->note, sizeof record->note);
    assert_int_equal(bh_keys_unseal(record->s->f.core.ring.keys, item, &note, &record->s->f.err), BH_OK);
    assert_non_null(bh_buf_text(&note));
    return true;
}

/* The record of an end has the node's explanation, whether it names what networks carried or not. */
static void
test_why_a_job_ended_is_kept(void **unused)
{
    struct scene s;
    struct bh_failure_row row;
    struct bh_msg_ended ended = { .cause = BH_END_OVER_CAP, .why = "over its cap" };

    for (int counted = 0; counted <= 1; counted++) {
        struct links_record record = { .s = &s };

        open_scene(&s, 1);
        assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
        bh_node_links_release(s.links);
        scene_step_until(&s, 1);
        ended.lease = s.peers[0].lease;
        ended.carried.counted = counted != 0;
        peer_send(&s.peers[0], BH_MSG_ENDED, &ended);
        for (int i = 0; i < 50 && state_of(&s, 1) == BH_JOB_RUNNING; i++)
            scene_step(&s);
        BH_CHECK_EQ("ended", state_of(&s, 1), BH_JOB_FAILED);
        assert_int_equal(bh_job_document_get(&s.f.core.store, BH_DOCUMENT_FAILURE, 1, &row, &s.f.err), BH_OK);
        assert_int_equal(s.f.core.store.ops->list_records(s.f.core.store.self, row.record, row.record,
                                                          links_read_record, &record, &s.f.err),
                         BH_OK);
        BH_CHECK_STR(counted ? "counted" : "alone", record.note, "over its cap");
        BH_CHECK_EQ("what it carried", record.has_text, counted);
        close_scene(&s);
    }
    BH_CHECK_DONE();
}

static bool
links_count_starts(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct bh_slice tenant;
    int *starts = self;

    if (memmem(leaf, length, "node.started", strlen("node.started")))
        *starts += bh_slice_get((struct bh_slice){ leaf, length }, "tenant", &tenant);
    return true;
}

/* A tenant's auditor sees what nodes answered about its leases. */
static void
test_a_start_is_its_tenants_business(void **unused)
{
    struct scene s;
    int starts = 0;

    open_scene(&s, 1);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    scene_step_until(&s, 1);
    assert_int_equal(s.f.core.store.ops->list_records(s.f.core.store.self, 0, UINT64_MAX >> 1,
                                                      links_count_starts, &starts, &s.f.err),
                     BH_OK);
    BH_CHECK_EQ("names its tenant", starts, 1);
    BH_CHECK_DONE();
    close_scene(&s);
}

/* Each end counts once, whatever is repeated, aborted or started again. */
static void
test_what_networks_carried_is_kept(void **unused)
{
    struct scene s;
    struct peer *peer = &s.peers[0];
    uint32_t tenant;

    open_scene(&s, 1);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    scene_step_until(&s, 1);
    tenant = bh_catalog_find(s.f.core.catalog, BH_NAME_TENANT, "acme/vision/train");
    send_traffic(peer, 5);
    scene_step(&s);
    BH_CHECK_EQ("what runs is not kept", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 0);
    send_ended(peer, BH_END_NODE_LOST, 7);
    send_ended(peer, BH_END_NODE_LOST, 7);
    assert_int_equal(bh_node_links_receive(s.links, &s.f.err), BH_OK);
    bh_node_links_reset(s.links);
    assert_int_equal(bh_core_abort(&s.f.core, &s.f.err), BH_OK);
    BH_CHECK_EQ("nor what was aborted", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 0);
    scene_step_until(&s, 1);
    send_ended(peer, BH_END_NODE_LOST, 7);
    send_ended(peer, BH_END_NODE_LOST, 7);
    scene_step_until(&s, 1);
    BH_CHECK_EQ("one lease", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 1);
    BH_CHECK_EQ("its bytes", carried(&s, BH_DOCUMENT_CARRIED, 1).sums.rx_bytes, 7);
    BH_CHECK("the record's text", links_has_text(&s, "{\"carried\":{\"counted\":true,\"rx_bytes\":7,"
                                                     "\"tx_bytes\":70},\"job\":1,\"lease\":1,"
                                                     "\"tenant\":3}"));
    BH_CHECK_EQ("queued again", peer->starts, 2);

    /* its machine goes down: what was said last counts */
    send_traffic(peer, 100);
    scene_step(&s);
    send_ended(peer, BH_END_EXITED, 0);
    scene_step_until(&s, 1);
    bh_node_links_free(s.links);
    close_core(&s.f);
    assert_int_equal(open_core(&s.f), BH_OK);
    s.links = bh_node_links_new(&s.f.core);
    BH_CHECK_EQ("both leases, after a start", carried(&s, BH_DOCUMENT_CARRIED, 1).leases, 2);
    BH_CHECK_EQ("their bytes", carried(&s, BH_DOCUMENT_CARRIED, 1).sums.rx_bytes, 107);
    BH_CHECK_EQ("the tenant's", carried(&s, BH_DOCUMENT_CARRIED_TENANT, tenant).sums.rx_bytes, 107);
    BH_CHECK_EQ("sent", carried(&s, BH_DOCUMENT_CARRIED_TENANT, tenant).sums.tx_bytes, 70);
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
send_image(struct peer *peer, uint32_t stage, uint64_t done_bytes, const char *digest)
{
    struct bh_msg_image image = {
        .lease = peer->lease, .job = 1, .stage = stage, .done_bytes = done_bytes, .total_bytes = 800
    };

    snprintf(image.digest, sizeof image.digest, "%s", digest);
    peer_send(peer, BH_MSG_IMAGE, &image);
}

static bool
has_image(struct scene *s, const char *digest)
{
    const struct bh_document_key key = { BH_DOCUMENT_IMAGE, "00000000000000000001" };
    struct bh_document_row row;

    return s->f.core.store.ops->get_document(s->f.core.store.self, &key, s->f.arena, &row, &s->f.err) == BH_OK
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
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    scene_step_until(&s, 2);
    if (other->lease) {
        other = peer;
        peer = &s.peers[1];
    }
    other->lease = peer->lease;
    records = s.f.core.journal.next_seq;
    send_image(peer, BH_IMAGE_FETCHING, 80, "");
    send_image(peer, BH_IMAGE_FETCHING, 120, "");
    send_image(peer, 99, 0, "");
    send_image(peer, BH_IMAGE_FETCHING, 120, "");
    scene_step(&s);
    BH_CHECK("how far", inventory_says(&s, fetching));
    send_image(peer, BH_IMAGE_READY, 0, "");
    scene_step(&s);
    BH_CHECK("it came to nothing",
             !inventory_says(&s, fetching) && inventory_says(&s, none) && !has_image(&s, ""));
    send_image(other, BH_IMAGE_READY, 0, DIGEST);
    scene_step(&s);
    BH_CHECK_EQ("of another node's lease", s.f.core.journal.next_seq, records);
    send_ended(other, BH_END_EXITED, 0);
    peer_send(other, BH_MSG_NOTICE, &(struct bh_msg_notice){ .lease = other->lease });
    scene_step(&s);
    BH_CHECK_EQ("nor its end, nor what happens to it", s.f.core.journal.next_seq, records);
    send_image(peer, BH_IMAGE_READY, 0, "../../../etc/passwd");
    scene_step(&s);
    BH_CHECK_EQ("that is no digest", s.f.core.journal.next_seq, records);
    send_image(peer, BH_IMAGE_READY, 0, DIGEST);
    send_image(peer, BH_IMAGE_READY, 0, DIGEST);
    scene_step(&s);
    send_image(peer, BH_IMAGE_READY, 0, DIGEST);
    scene_step(&s);
    BH_CHECK("which", has_image(&s, DIGEST));
    BH_CHECK_EQ("once", s.f.core.journal.next_seq, records + 1);
    peer->lease += 77;
    send_image(peer, BH_IMAGE_READY, 0, DIGEST);
    scene_step(&s);
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
    peer_path_of(&s, &s.peers[1], path);
    s.f.config.node_socket = path;
    s.links = bh_node_links_new(&s.f.core);
    scene_step(&s);
    peer_open(&s, &s.peers[0]); /* beside it: not asked for */
    peer_open(&s, &s.peers[1]);
    scene_step_until(&s, 1);
    BH_CHECK("the one that is named", s.peers[1].io && !s.peers[0].io);
    assert_int_equal(fixture_submit(&s.f, whole), BH_OK);
    bh_node_links_release(s.links);
    for (int n = 0; n < STEPS; n++)
        scene_step(&s);
    BH_CHECK_EQ("runs", state_of(&s, 1), BH_JOB_RUNNING);
    BH_CHECK_DONE();
    close_scene(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_orders_go_to_their_node),
    cmocka_unit_test(test_one_that_goes_takes_only_its_own),
    cmocka_unit_test(test_a_name_belongs_to_one_socket),
    cmocka_unit_test(test_the_daemon_restarts_with_both),
    cmocka_unit_test(test_marks_are_kept),
    cmocka_unit_test(test_a_reset_loses_nothing),
    cmocka_unit_test(test_why_a_job_ended_is_kept),
    cmocka_unit_test(test_a_start_is_its_tenants_business),
    cmocka_unit_test(test_what_networks_carried_is_kept),
    cmocka_unit_test(test_how_far_an_image_is_is_memory_and_which_it_is_a_record),
    cmocka_unit_test(test_a_file_is_one_node),
};

BH_TEST_MAIN(tests)
