#include "model/path.h"

#include "base/test.h"

static void
tenant_paths(void **state)
{
    static const struct {
        const char *path;
        bool valid;
    } cases[] = {
        { "acme", true },        { "acme/vision/train", true }, { "", false },
        { "/acme", false },      { "acme/", false },            { "acme//vision", false },
        { "acme/..", false },    { "Acme", false },             { "acme/vi sion", false },
        { "acme/\x01", false },
        { "a23456789012345678901234567890123456789012345678901234567890123", true },
        { "a234567890123456789012345678901234567890123456789012345678901234", false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].path, bh_tenant_path_valid(cases[i].path), cases[i].valid);
    BH_CHECK_EQ("depth of a root", bh_tenant_path_depth("acme"), 0);
    BH_CHECK_EQ("depth of a project", bh_tenant_path_depth("acme/vision/train"), 2);
    BH_CHECK("parent", bh_tenant_path_is_parent("acme", "acme/vision"));
    BH_CHECK("not a grandparent", !bh_tenant_path_is_parent("acme", "acme/vision/train"));
    BH_CHECK("not a prefix", !bh_tenant_path_is_parent("ac", "acme/vision"));
    BH_CHECK("a root has none", !bh_tenant_path_is_parent("acme", "acme"));
    BH_CHECK_DONE();
}

static void
file_paths(void **state)
{
    static const struct {
        const char *path, *fault;
    } cases[] = {
        { "/", NULL },
        { "/work/data", NULL },
        { "/work/data/", NULL },
        { "/work/..data", NULL },
        { "work", "is not absolute" },
        { "", "is not absolute" },
        { "/work/../etc", "leads upward with \"..\"" },
        { "/..", "leads upward with \"..\"" },
        { "/work/./x", "has an empty part or \".\"" },
        { "//work", "has an empty part or \".\"" },
        { "/work\n", "has a control character" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *fault = bh_file_path_fault(cases[i].path);

        BH_CHECK_STR(cases[i].path, fault ? fault : "", cases[i].fault ? cases[i].fault : "");
    }
    BH_CHECK("itself", bh_file_path_within("/work/data", "/work/data"));
    BH_CHECK("below", bh_file_path_within("/work/data/", "/work/data/x"));
    BH_CHECK("beside", !bh_file_path_within("/work/data", "/work/database"));
    BH_CHECK("above", !bh_file_path_within("/work/data", "/work"));
    BH_CHECK("all", bh_file_path_within("/", "/work"));
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(tenant_paths),
                                        cmocka_unit_test(file_paths) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
