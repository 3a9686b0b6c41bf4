#include "model/dataset.h"

#include "base/test.h"

/* One grant, or one whole dataset, and what is said about it. */
#define MAY(...)                                                                                             \
    {                                                                                                        \
        (const char *[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)            \
    }

static void
grants_are_read(void **state)
{
    const struct {
        const char *name;
        struct bh_site_dataset_grant grant;
        bh_rc rc;
        uint32_t may;
        uint64_t until_ns;
        const char *says;
        /* clang-format off */
    } cases[] = {
        { "to all", { .tenant = "*", .may = MAY("mount", "read") }, BH_OK, 3, UINT64_MAX, "" },
        { "all rights", { .role = BH_ROLE_ADMIN, .may = MAY("copy", "write", "read", "mount") }, BH_OK, 15, UINT64_MAX, "" },
        { "said twice", { .label = "team", .may = MAY("read", "read") }, BH_OK, 2, UINT64_MAX, "" },
        { "until", { .principal = "a", .may = MAY("mount"), .until = "1970-01-01T00:00:02Z" }, BH_OK, 1, 2000000000, "" },
        { "for nobody", { .may = MAY("mount") }, BH_INVALID, 0, 0, "grants[0]: has no grantee" },
        { "nothing", { .tenant = "*" }, BH_INVALID, 0, 0, "grants[0]: may: is empty" },
        { "unknown right", { .tenant = "*", .may = MAY("mount", "own") }, BH_INVALID, 0, 0,
          "grants[0]: may: \"own\" is not one of mount, read, write, copy" },
        { "a day only", { .tenant = "*", .may = MAY("mount"), .until = "2027-01-01" }, BH_INVALID, 0, 0,
          "grants[0]: until: \"2027-01-01\" is not a moment like 2026-11-20T09:27:00Z" },
        { "another zone", { .tenant = "*", .may = MAY("mount"), .until = "2027-01-01T00:00:00+01:00" }, BH_INVALID, 0, 0, NULL },
        { "label without name", { .label = "=a", .may = MAY("mount") }, BH_INVALID, 0, 0,
          "grants[0]: label: \"=a\" is not understood" },
        { "label without value", { .label = "a=", .may = MAY("mount") }, BH_INVALID, 0, 0,
          "grants[0]: label: \"a=\" is not understood" },
        { "nowhere", { .tenant = "*", .may = MAY("mount"), .to = { .nodes = { (const char *[]){ "" }, 0 } } },
          BH_INVALID, 0, 0, "grants[0]: to: an empty list" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_site_dataset_grant grant = cases[i].grant;
        struct bh_site_dataset text = { .name = "d", .path = "/d", .grants = { &grant, 1 } };
        struct bh_dataset dataset = { .text = NULL };
        struct bh_err err = { .msg = "" };

        BH_CHECK_EQ(cases[i].name, bh_dataset_read(&text, &dataset, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, dataset.may[0], cases[i].may);
        BH_CHECK_EQ(cases[i].name, dataset.until_ns[0], cases[i].until_ns);
        if (cases[i].says)
            BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
    }
    BH_CHECK_DONE();
}

static void
names_and_folders_are_checked(void **state)
{
    static const struct {
        const char *name, *own, *path;
        bh_rc rc;
        const char *says;
        /* clang-format off */
    } cases[] = {
        { "right", "imagenet-2012", "/data/imagenet", BH_OK, "" },
        { "a folder like another", "d", "/etcetera", BH_OK, "" },
        { "odd name", "Image Net", "/d", BH_INVALID, "not a valid name" },
        { "relative", "d", "data", BH_INVALID, "path is not absolute" },
        { "upward", "d", "/data/../etc", BH_INVALID, "path leads upward with \"..\"" },
        { "everything", "d", "/", BH_INVALID, "path is the root folder" },
        { "of the sandbox", "d", "/usr/share/data", BH_INVALID, "path is in /usr, which every sandbox has" },
        { "the sandbox's itself", "d", "/etc", BH_INVALID, "path is in /etc, which every sandbox has" },
    };
    /* clang-format on */
    struct bh_site_dataset many = { .name = "d",
                                    .path = "/d",
                                    .grants = { NULL, BH_DATASET_GRANTS_MAX + 1 } };
    struct bh_dataset dataset;
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_site_dataset text = { .name = cases[i].own, .path = cases[i].path };

        err.msg[0] = '\0';
        BH_CHECK_EQ(cases[i].name, bh_dataset_read(&text, &dataset, &err), cases[i].rc);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].says);
    }
    BH_CHECK_EQ("too many grants", bh_dataset_read(&many, &dataset, &err), BH_RANGE);
    BH_CHECK_DONE();
}

static void
rights_are_said(void **state)
{
    BH_CHECK_STR("none", bh_data_rights_text(0), "nothing");
    BH_CHECK_STR("one", bh_data_rights_text(BH_DATA_COPY), "copy");
    BH_CHECK_STR("two", bh_data_rights_text(BH_DATA_MOUNT | BH_DATA_READ), "mount, read");
    BH_CHECK_STR("all", bh_data_rights_text(15), "mount, read, write, copy");
    assert_true(bh_fields_ordered(&bh_site_dataset_fields));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(grants_are_read),
                                           cmocka_unit_test(names_and_folders_are_checked),
                                           cmocka_unit_test(rights_are_said) };
BH_TEST_MAIN(tests)
