#include <string.h>

#include "base/test.h"
#include "model/unmanaged.h"

static const struct {
    const char *name;
    struct bh_unmanaged given;
    const char *why, *fix; /* NULL: nothing keeps it */
} cases[] = {
    { "site",
      { .gpu = "GPU-1", .node = "n1", .allowed = true },
      "the site file does not declare it managed",
      "gpus: [{uuid: GPU-1, managed: true}] in the site file" },
    { "driver",
      { .gpu = "GPU-1", .node = "n1", .in_site = true, .scrub_off = true },
      "its driver does not clear freed memory",
      "docs/scrub.md, driver_scrub_off" },
    { "node",
      { .gpu = "GPU-1", .node = "n1", .in_site = true },
      "node.conf of n1 does not name it",
      "gpus = GPU-1 in node.conf, and restart bulkhead-node" },
    { "instances",
      { .gpu = "GPU-1",
        .node = "n1",
        .in_site = true,
        .allowed = true,
        .count = 3,
        .instances = { { "1g.10gb", 6, 9 }, { "1g.10gb", 6, 9 }, { "3g.40gb", 0, 2 } } },
      "it has MIG instances that are not in its node's journal: 1g.10gb at 6 (GPU instance 9), "
      "3g.40gb at 0 (GPU instance 2)",
      "nvidia-smi mig -dci -gi 9,2 -i GPU-1 && nvidia-smi mig -dgi -gi 9,2 -i GPU-1" },
    { "none", { .gpu = "GPU-1", .node = "n1", .in_site = true, .allowed = true }, NULL, NULL },
};

static void
test_put(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_buf why, fix;
        bool put;

        bh_buf_init(&why, 1000);
        bh_buf_init(&fix, 1000);
        put = bh_unmanaged_put(&cases[i].given, &why, &fix);
        BH_CHECK_EQ(cases[i].name, put, cases[i].why != NULL);
        if (put) {
            BH_CHECK_STR(cases[i].name, bh_buf_text(&why), cases[i].why);
            BH_CHECK_STR(cases[i].name, bh_buf_text(&fix), cases[i].fix);
        }
        bh_buf_fini(&why);
        bh_buf_fini(&fix);
    }
    BH_CHECK_DONE();
}

/* No more are named than there is room for. */
static void
test_many(void **state)
{
    struct bh_unmanaged many = { .in_site = true };

    for (uint32_t i = 0; i < BH_UNMANAGED_INSTANCES_MAX + 3; i++)
        bh_unmanaged_add(&many, &(struct bh_unmanaged_instance){ "1g.10gb", i, i });
    BH_CHECK_EQ("count", many.count, BH_UNMANAGED_INSTANCES_MAX);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_put), cmocka_unit_test(test_many) };
BH_TEST_MAIN(tests)
