#include "model/path.h"

#include "base/test.h"

static void
tenant_paths(void **state)
{
    static const struct {
        const char *path;
        bool valid;
        /* clang-format off */
    } cases[] = {
        { "acme", true },        { "acme/vision/train", true }, { "", false },
        { "/acme", false },      { "acme/", false },            { "acme//vision", false },
        { "acme/..", false },    { "Acme", false },             { "acme/vi sion", false },
        { "acme/\x01", false },
        { "a23456789012345678901234567890123456789012345678901234567890123", true },
        { "a234567890123456789012345678901234567890123456789012345678901234", false },
    };
    /* clang-format on */

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

static void
places_in_a_sandbox(void **state)
{
    static const struct {
        const char *path, *fault;
    } cases[] = {
        { "/home/ada/work", NULL },
        { "/tmp/x", NULL },
        { "/device", NULL },
        { "/", "is the root itself" },
        { "/a/", "ends with a slash" },
        { "/dev", "is below /dev, which belongs to the sandbox" },
        { "/usr/x", "is below /usr, which belongs to the sandbox" },
    };
    char path[BH_SANDBOX_PATH_MAX + 2];

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *fault = bh_sandbox_path_fault(cases[i].path);

        BH_CHECK_STR(cases[i].path, fault ? fault : "", cases[i].fault ? cases[i].fault : "");
    }
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 200 == 0 ? '/' : 'a';
    path[BH_SANDBOX_PATH_MAX + 1] = '\0';
    BH_CHECK_STR("one too long", bh_sandbox_path_fault(path),
                 "is longer than 1000 bytes, the limit for a path inside a job");
    path[BH_SANDBOX_PATH_MAX] = path[BH_SANDBOX_PATH_MAX - 1] = '\0';
    BH_CHECK("long enough", !bh_sandbox_path_fault(path));
    path[200] = 'a';
    BH_CHECK_STR("a long part", bh_sandbox_path_fault(path), "has a part longer than 255 bytes");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(tenant_paths), cmocka_unit_test(file_paths),
                                           cmocka_unit_test(places_in_a_sandbox) };
BH_TEST_MAIN(tests)
