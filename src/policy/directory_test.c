#include "policy/directory.h"

#include "base/attr.h"
#include "base/test.h"

/* clang-format off */
static const struct bh_dir_tenant tenants[] = {
    { { 1 }, { 0 }, "acme", BH_TENANT_ORGANIZATION, false },
    { { 2 }, { 1 }, "acme/vision", BH_TENANT_DEPARTMENT, false },
    { { 3 }, { 1 }, "acme/old", BH_TENANT_DEPARTMENT, true },
    { { 4 }, { 5 }, "loop", BH_TENANT_PROJECT, false }, /* damaged: a circle */
    { { 5 }, { 4 }, "loop/b", BH_TENANT_PROJECT, false },
};
/* clang-format on */
static const struct bh_dir_sku skus[] = { { { 1 }, "small", "2", "8Gi", false },
                                          { { 2 }, "old", NULL, NULL, true } };
static const struct bh_dir_principal principals[] = {
    { { 1 }, "alice", 1001, .identity = "corp/alice" },
    { { 2 }, "robot", UINT32_MAX, .service = true },
    { { 3 }, "left", 1003, .gone = true, .identity = "corp/left" },
};
static const struct bh_dir_group groups[] = { { 7, "corp/a" }, { 9, "corp/b" } };
static const struct bh_dir_step_up step_ups[] = { { "site.apply", BH_LEVEL_PASSKEY, 5 },
                                                  { "site.apply", BH_LEVEL_CODE, 9 } };
static const struct bh_dir_gpu gpus[] = { { { 1 }, "GPU-a" }, { { 2 }, "GPU-b" } };
static const struct bh_dir_mount mounts[] = { { "/work/data", { 2 }, false },
                                              { "/work/out", { 1 }, true },
                                              { "/shared", { 0 }, false } };
static const struct bh_directory dir = {
    .tenants = tenants,
    .tenant_count = BH_COUNT(tenants),
    .skus = skus,
    .sku_count = BH_COUNT(skus),
    .principals = principals,
    .principal_count = BH_COUNT(principals),
    .gpus = gpus,
    .gpu_count = BH_COUNT(gpus),
    .mounts = mounts,
    .mount_count = BH_COUNT(mounts),
    .groups = groups,
    .group_count = BH_COUNT(groups),
    .step_ups = step_ups,
    .step_up_count = BH_COUNT(step_ups),
};

static void
people_and_groups_of_providers_are_found(void **state)
{
    BH_CHECK_EQ("known", bh_directory_principal_known(&dir, "corp/alice")->id.v, 1);
    BH_CHECK("not there any more", !bh_directory_principal_known(&dir, "corp/left"));
    BH_CHECK("of another provider", !bh_directory_principal_known(&dir, "corq/alice"));
    BH_CHECK_EQ("group", bh_directory_group(&dir, "corp/b")->id, 9);
    BH_CHECK("no group", !bh_directory_group(&dir, "corp/B"));
    BH_CHECK_EQ("the first row counts", bh_directory_step_up(&dir, "site.apply")->within_ns, 5);
    BH_CHECK("asks for nothing", !bh_directory_step_up(&dir, "site.appl"));
    BH_CHECK_DONE();
}

static void
names_find_what_is_there_and_ids_find_all(void **state)
{
    BH_CHECK_EQ("tenant", bh_directory_tenant_named(&dir, "acme/vision")->id.v, 2);
    BH_CHECK("gone by name", !bh_directory_tenant_named(&dir, "acme/old"));
    BH_CHECK_STR("gone by id", bh_directory_tenant(&dir, (bh_tenant_id){ 3 })->path, "acme/old");
    BH_CHECK("no such", !bh_directory_tenant(&dir, (bh_tenant_id){ 0 }));
    BH_CHECK_EQ("sku", bh_directory_sku_named(&dir, "small")->id.v, 1);
    BH_CHECK("gone sku", !bh_directory_sku_named(&dir, "old"));
    BH_CHECK("gone sku by id", bh_directory_sku(&dir, (bh_sku_id){ 2 }));
    BH_CHECK_EQ("principal", bh_directory_principal_named(&dir, "robot")->id.v, 2);
    BH_CHECK("gone principal", !bh_directory_principal_named(&dir, "left"));
    BH_CHECK("gone principal by id", bh_directory_principal(&dir, (bh_principal_id){ 3 }));
    BH_CHECK_EQ("uid", bh_directory_principal_uid(&dir, 1001)->id.v, 1);
    BH_CHECK("gone uid", !bh_directory_principal_uid(&dir, 1003));
    BH_CHECK("no uid is nobody", !bh_directory_principal_uid(&dir, UINT32_MAX));
    BH_CHECK_EQ("gpu", bh_directory_gpu_uuid(&dir, "GPU-b")->id.v, 2);
    BH_CHECK_STR("gpu by id", bh_directory_gpu(&dir, (bh_gpu_id){ 1 })->uuid, "GPU-a");
    BH_CHECK_DONE();
}

static void
within_walks_up(void **state)
{
    static const struct {
        const char *name;
        uint32_t above, tenant;
        bool within;
        /* clang-format off */
    } cases[] = {
        { "itself", 2, 2, true },      { "parent", 1, 2, true },  { "child", 2, 1, false },
        { "sibling", 2, 3, false },    { "the site", 0, 2, true }, { "unknown", 1, 9, false },
        { "nobody", 1, 0, false },     { "a circle ends", 1, 4, false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(
            cases[i].name,
            bh_directory_within(&dir, (bh_tenant_id){ cases[i].above }, (bh_tenant_id){ cases[i].tenant }),
            cases[i].within);
    BH_CHECK_DONE();
}

static void
mounts_belong_to_tenants(void **state)
{
    static const struct {
        const char *name, *path;
        uint32_t tenant;
        bool write, allowed;
    } cases[] = {
        { "own folder", "/work/data/a", 2, false, true },
        { "not for writing", "/work/data/a", 2, true, false },
        { "the parent's", "/work/out", 2, true, true },
        { "the child's", "/work/data", 1, false, false },
        { "for all", "/shared/x", 1, false, true },
        { "beside", "/work/database", 2, false, false },
        { "nobody's", "/etc", 2, false, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name,
                    bh_directory_mount(&dir, (bh_tenant_id){ cases[i].tenant }, cases[i].path, cases[i].write)
                        != NULL,
                    cases[i].allowed);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(people_and_groups_of_providers_are_found),
    cmocka_unit_test(names_find_what_is_there_and_ids_find_all),
    cmocka_unit_test(within_walks_up),
    cmocka_unit_test(mounts_belong_to_tenants),
};
BH_TEST_MAIN(tests)
