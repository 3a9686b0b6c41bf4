/* GPUs that a node cannot read when it speaks first, or again. */

#include "daemon/batch/batch.h"
#include "daemon/nodes/inventory.h"

#include "daemon/fixture/fixture_test.h"
#include "daemon/nodes/faults.h"

static const char lost_uuid[] = "GPU-aaaaaaaa-0000", other_uuid[] = "GPU-bbbbbbbb-0000";

static const struct bh_msg_gpu whole = {
    .model = "H100-80GB", .product = "NVIDIA H100", .mig_capable = true, .allowed = true
};
/* As a driver answers for one that is off the bus: no name, no mode. */
static const struct bh_msg_gpu unread = { .fault = BH_FAULT_LOST, .allowed = true };

/* One inventory: the first GPU as given (NULL: not named), and the other, which is well. */
static bh_rc
inventory_read(struct fixture *f, const struct bh_msg_gpu *first, const char *uuid, const char *driver)
{
    struct bh_msg_gpu gpus[2] = { whole };
    struct bh_msg_inventory inventory = { .node = "n1", .gpus = { gpus, 1 } };
    bh_node_id node;
    bh_rc rc;

    snprintf(gpus[0].uuid, sizeof gpus[0].uuid, "%s", other_uuid);
    snprintf(inventory.driver, sizeof inventory.driver, "%s", driver);
    if (first) {
        gpus[1] = *first;
        snprintf(gpus[1].uuid, sizeof gpus[1].uuid, "%s", uuid);
        inventory.gpus.count = 2;
    }
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_catalog_name(f->core.catalog, BH_NAME_NODE, "n1", &node.v, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, NULL, &f->err), BH_OK);
    rc = bh_inventory_apply(&f->core, node, &inventory, &f->err);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
    return rc;
}

static bool
inventory_find(const struct fixture *f, const char *uuid, struct bh_gpu_view *ret_view)
{
    bh_gpu_id gpu = { bh_catalog_find(f->core.catalog, BH_NAME_GPU, uuid) };

    return gpu.v && bh_view_gpu(f->core.state.engine, gpu, ret_view);
}

/* The node says that the GPU's driver answers. */
static void
report_answering(struct fixture *f)
{
    struct bh_msg_health health = { .fault = BH_FAULT_NONE, .gi = UINT32_MAX, .recovery = UINT32_MAX };
    bh_node_id node = { bh_catalog_find(f->core.catalog, BH_NAME_NODE, "n1") };

    snprintf(health.gpu, sizeof health.gpu, "%s", lost_uuid);
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_faults_receive(&f->core, node, &health, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

/* What an inventory says of a GPU that was known, and what becomes of it. */
static void
a_known_one_is_kept(void **state)
{
    const struct bh_msg_gpu other_model = {
        .model = "A100-80GB", .product = "NVIDIA A100", .mig_capable = true, .allowed = true
    };
    const struct {
        const char *name, *uuid, *driver;
        const struct bh_msg_gpu *says;
        bool fenced;
    } cases[] = {
        { "it has no model", lost_uuid, "580", &unread, true },
        { "it has not even a name", "", "580", &unread, true },
        { "the driver names it no more", "", "580", NULL, true },
        { "the driver did not answer", "", "", NULL, false },
        { "it is of another model", lost_uuid, "580", &other_model, true },
        { "it is as it was", lost_uuid, "580", &whole, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct fixture f;
        struct bh_gpu_view view = { 0 };

        fixture_setup(&f);
        assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
        assert_int_equal(inventory_read(&f, &whole, lost_uuid, "580"), BH_OK);
        BH_CHECK_EQ(cases[i].name, inventory_read(&f, cases[i].says, cases[i].uuid, cases[i].driver), BH_OK);
        assert_true(inventory_find(&f, lost_uuid, &view));
        BH_CHECK_EQ(cases[i].name, view.model, bh_model_find("H100-80GB"));
        BH_CHECK_EQ(cases[i].name, view.mig_capable, true);
        BH_CHECK_EQ(cases[i].name, view.managed, true);
        BH_CHECK_EQ(cases[i].name, view.fenced, cases[i].fenced);
        assert_true(inventory_find(&f, other_uuid, &view));
        BH_CHECK_EQ(cases[i].name, view.fenced, false);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static void
it_is_back_with_its_inventory(void **state)
{
    struct bh_gpu_view view = { 0 };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    assert_int_equal(inventory_read(&f, &whole, lost_uuid, "580"), BH_OK);
    assert_int_equal(inventory_read(&f, &unread, lost_uuid, "580"), BH_OK);
    report_answering(&f);
    assert_true(inventory_find(&f, lost_uuid, &view));
    BH_CHECK("what stands on it is not known yet", view.fenced);
    assert_int_equal(inventory_read(&f, &whole, lost_uuid, "580"), BH_OK);
    assert_true(inventory_find(&f, lost_uuid, &view));
    BH_CHECK("back", !view.fenced && view.managed);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
one_that_was_never_read_is_taken_in_later(void **state)
{
    struct bh_gpu_view view = { 0 };
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    BH_CHECK_EQ("without a name", inventory_read(&f, &unread, "", "580"), BH_OK);
    BH_CHECK_EQ("without a model", inventory_read(&f, &unread, lost_uuid, "580"), BH_OK);
    BH_CHECK("not taken in", !inventory_find(&f, lost_uuid, &view));
    BH_CHECK("the other is", inventory_find(&f, other_uuid, &view) && !view.fenced);
    BH_CHECK_EQ("it answers", inventory_read(&f, &whole, lost_uuid, "580"), BH_OK);
    BH_CHECK("taken in", inventory_find(&f, lost_uuid, &view) && !view.fenced && view.managed);
    BH_CHECK_EQ("as what it is", view.model, bh_model_find("H100-80GB"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_known_one_is_kept),
    cmocka_unit_test(it_is_back_with_its_inventory),
    cmocka_unit_test(one_that_was_never_read_is_taken_in_later),
};

BH_TEST_MAIN(tests)
