/* What a node says of a job's share: a record, and the job's document. */
#include "daemon/batch/batch.h"
#include "daemon/nodes/notices.h"

#include "daemon/fixture/fixture_test.h"
#include "daemon/nodes/inventory.h"

/* A node whose name is given, with a GPU; its number. */
static bh_node_id
notices_add_node(struct fixture *f, const char *name, const char *uuid)
{
    struct bh_msg_gpu gpu = { .model = "H100-80GB", .mig_capable = true, .allowed = true };
    struct bh_msg_inventory inventory = { .gpus = { &gpu, 1 } };
    bh_node_id node;

    snprintf(inventory.node, sizeof inventory.node, "%s", name);
    snprintf(gpu.uuid, sizeof gpu.uuid, "%s", uuid);
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_catalog_name(f->core.catalog, BH_NAME_NODE, name, &node.v, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, NULL, &f->err), BH_OK);
    assert_int_equal(bh_inventory_apply(&f->core, node, &inventory, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, &(struct bh_node_offer){ 0, 0 }, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
    return node;
}

static void
check_document(struct fixture *f, const char *name, const char *wanted)
{
    const struct bh_document_key key = { BH_DOCUMENT_NOTICES, "00000000000000000001" };
    struct bh_document_row row = { .value = "" };

    (void)!f->core.store.ops->get_document(f->core.store.self, &key, f->arena, &row, &f->err);
    BH_CHECK_STR(name, row.value, wanted);
}

struct last {
    char leaf[2048];
};

static bool
notices_store_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct last *last = self;

    snprintf(last->leaf, sizeof last->leaf, "%.*s", (int)length, leaf);
    return true;
}

static void
check_record(struct fixture *f, const char *verb)
{
    uint64_t seq = f->core.journal.next_seq - 1;
    struct last last = { "" };
    char wanted[64];

    assert_int_equal(
        f->core.store.ops->list_records(f->core.store.self, seq, seq, notices_store_leaf, &last, &f->err),
        BH_OK);
    snprintf(wanted, sizeof wanted, "\"verb\":\"%s\"", verb);
    BH_CHECK(last.leaf, strstr(last.leaf, wanted) != NULL);
    BH_CHECK(last.leaf, strstr(last.leaf, "\"tenant\":3") != NULL); /* acme/vision/train */
}

#define MORE_2 "{\"items\":[{\"count\":2,\"first_ns\":\"100\",\"kind\":\"more\",\"last_ns\":\"100\"}]}"
#define MORE_5_FULL_1                                                                                        \
    "{\"items\":[{\"count\":5,\"first_ns\":\"100\",\"kind\":\"more\",\"last_ns\":\"300\"},"                  \
    "{\"count\":1,\"first_ns\":\"200\",\"kind\":\"full\",\"last_ns\":\"200\"}]}"

/* One batch after the other; `records` is how many are made of each. */
static const struct {
    const char *name;
    bool other_node, other_lease;
    uint32_t kind, count;
    uint64_t at_ns;
    bool commit;
    uint64_t records;
    const char *verb, *document;
} cases[] = {
    { "the first", false, false, BH_JOB_NOTICE_MORE, 2, 100, true, 1, "share.more", MORE_2 },
    { "another kind", false, false, BH_JOB_NOTICE_FULL, 1, 200, false, 1, NULL, NULL },
    { "in one batch", false, false, BH_JOB_NOTICE_MORE, 3, 300, true, 1, "share.more", MORE_5_FULL_1 },
    { "of a newer node", false, false, BH_JOB_NOTICES, 1, 400, true, 0, NULL, MORE_5_FULL_1 },
    { "nonsense", false, false, UINT32_MAX, 1, 400, true, 0, NULL, MORE_5_FULL_1 },
    { "of another node's lease", true, false, BH_JOB_NOTICE_MORE, 1, 400, true, 0, NULL, MORE_5_FULL_1 },
    { "of a lease that is over", false, true, BH_JOB_NOTICE_MORE, 1, 400, true, 0, NULL, MORE_5_FULL_1 },
};

static void
notices_read(struct fixture *f, size_t row, bh_node_id node, uint64_t lease)
{
    const struct bh_msg_notice notice = {
        .lease = lease, .at_ns = cases[row].at_ns, .kind = cases[row].kind, .count = cases[row].count
    };
    uint64_t before = f->core.journal.next_seq;

    assert_int_equal(bh_notices_record(&f->core, node, &notice, &f->err), BH_OK);
    if (cases[row].commit)
        assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
    BH_CHECK_EQ(cases[row].name, f->core.journal.next_seq - before, cases[row].records);
    if (cases[row].document)
        check_document(f, cases[row].name, cases[row].document);
    if (cases[row].verb)
        check_record(f, cases[row].verb);
}

/* Both outlive the daemon; a replay of the journal comes to the same state beside them. */
static void
each_is_a_record_and_counts(void **state)
{
    struct bh_job_view job = { 0 };
    bh_node_id node, other;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    node = notices_add_node(&f, "n1", "GPU-a");
    assert_int_equal(fixture_submit(&f, alice_small), BH_OK);
    other = notices_add_node(&f, "n2", "GPU-b");
    assert_true(bh_view_job(f.core.state.engine, (bh_job_id){ 1 }, &job));
    assert_true(job.lease.v != 0);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        notices_read(&f, i, cases[i].other_node ? other : node, job.lease.v + cases[i].other_lease);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    check_document(&f, "by the next daemon", MORE_5_FULL_1);
    BH_CHECK("with its job", bh_view_job(f.core.state.engine, (bh_job_id){ 1 }, &job));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_is_a_record_and_counts),
};
BH_TEST_MAIN(tests)
