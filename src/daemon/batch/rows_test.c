/* What a job's row says of where it is. */

#include "daemon/batch/batch.h"
#include "daemon/batch/rows.h"

#include "daemon/fixture/gpu_fixture_test.h"
#include "daemon/nodes/inventory.h"

enum { NODES = 3, GPUS = 8 };

/* A node with eight GPUs, "GPU-n1-0000..." and on. */
static void
rows_add_node(struct fixture *f, uint32_t number)
{
    struct bh_msg_gpu gpus[GPUS];
    struct bh_msg_inventory inventory = { .gpus = { gpus, GPUS } };
    bh_node_id node;

    snprintf(inventory.node, sizeof inventory.node, "n%u", number);
    for (uint32_t i = 0; i < GPUS; i++) {
        gpus[i] = (struct bh_msg_gpu){ .model = "H100-80GB", .mig_capable = true, .allowed = true };
        snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "GPU-n%u-0000%u", number, i);
    }
    assert_int_equal(bh_core_begin(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_catalog_name(f->core.catalog, BH_NAME_NODE, inventory.node, &node.v, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, NULL, &f->err), BH_OK);
    assert_int_equal(bh_inventory_apply(&f->core, node, &inventory, &f->err), BH_OK);
    assert_int_equal(bh_inventory_node(&f->core, node, &(struct bh_node_offer){ 0, 0 }, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

static bool
take_partitions(void *self, const struct bh_job_row *row)
{
    snprintf(self, 512, "%s", row->partitions);
    return true;
}

static void
partitions_of_all_members(void **state)
{
    static const struct {
        const char *name;
        uint32_t gang;
        const char *first, *last;
    } cases[] = {
        { "one node", 3, "GPU-n1-00000 whole, GPU-n1-00001 whole, ", ", GPU-n1-00002 whole" },
        { "another's is named", 9, "GPU-n1-00000 whole, ", ", n2/GPU-n2-00000 whole" },
        { "more than fit", 24, "GPU-n1-00000 whole, ", " whole, ..." },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct submission wanted = { "root", "acme/vision/train", "large", NULL, 0, 1, cases[i].gang };
        char partitions[512] = "";
        struct fixture f;

        fixture_setup(&f);
        assert_int_equal(fixture_apply(&f, whole_yaml), BH_OK);
        for (uint32_t node = 1; node <= NODES; node++)
            rows_add_node(&f, node);
        assert_int_equal(fixture_submit(&f, wanted), BH_OK);
        assert_int_equal(f.core.store.ops->get_job(f.core.store.self, 1, take_partitions, partitions, &f.err),
                         BH_OK);
        BH_CHECK(partitions, strncmp(partitions, cases[i].first, strlen(cases[i].first)) == 0);
        BH_CHECK_STR(cases[i].name, partitions + strlen(partitions) - strlen(cases[i].last), cases[i].last);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(partitions_of_all_members),
};

BH_TEST_MAIN(tests)
