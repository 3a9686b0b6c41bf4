#include "model/image.h"

#include "base/test.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define NAMES_NONE "names no registry: write it in full, as docker.io/library/debian:12"
#define NO_REPOSITORY "has an invalid repository"

static const char *
image_test_said(const char *fault)
{
    return fault ? fault : "is fine";
}

static void
test_parse(void **state)
{
    static const struct {
        const char *text, *image, *entry; /* the fault of each; NULL: none */
    } cases[] = {
        { "host", NULL, NULL },
        { "dir:/srv/a", NULL, NULL },
        { "oci:/srv/a:2.4", NULL, NULL },
        { ("oci:/srv/a@sha256:" HEX), NULL, NULL },
        { "oci:/srv/a", "has no tag", NULL },
        { "oci:/srv/a@sha256", "has no tag", NULL },
        { ("sha256:" HEX), "has no path", NULL },
        { "", "is not known", "is not known" },
        { "docker://nvcr.io/nvidia/pytorch:24.10-py3", NULL, NULL },
        { ("docker://nvcr.io/nvidia/pytorch@sha256:" HEX), NULL, NULL },
        { "docker://127.0.0.1:5000/a_b/c-d:1", NULL, NULL },
        { "docker://nvcr.io/nvidia", "has no tag", NULL },
        { "docker://nvcr.io", "has no repository", NULL },
        { "docker://nvcr.io@sha256", "has no repository", NULL },
        { "docker://nvcr.io:443", "has no repository", NULL },
        { "docker://x/y:z", NAMES_NONE, NAMES_NONE },
        { "docker://debian:12", "has no repository", NULL },
        { "docker://", NAMES_NONE, NAMES_NONE },
        { "docker://nvcr.io:0/a:1", "has an invalid port", "has an invalid port" },
        { "docker://nvcr.io:65536/a:1", "has an invalid port", "has an invalid port" },
        { "docker://nvcr.io:/a:1", "has an invalid port", "has an invalid port" },
        { "docker://NVCR.io/a:1", "has an invalid registry", "has an invalid registry" },
        { "docker://u@nvcr.io/a:1", NAMES_NONE, NAMES_NONE },
        { "docker://u:p@nvcr.io/a:1", "has an invalid port", "has an invalid port" },
        { "docker://nvcr.io/../a:1", NO_REPOSITORY, NO_REPOSITORY },
        { "docker://nvcr.io//a:1", NO_REPOSITORY, NO_REPOSITORY },
        { "docker://nvcr.io/a/:1", NO_REPOSITORY, NO_REPOSITORY },
        { "docker://nvcr.io/A:1", NO_REPOSITORY, NO_REPOSITORY },
        { "docker://nvcr.io/a?b:1", NO_REPOSITORY, NO_REPOSITORY },
        { "docker://nvcr.io/a:b/c", "has an invalid tag", "has an invalid tag" },
        { "dir:srv", "is not absolute", "is not absolute" },
        { "oci:srv:1", "is not absolute", "is not absolute" },
        { "dir:/srv/../etc", "leads upward with \"..\"", "leads upward with \"..\"" },
        { "oci:/srv/../etc:1", "leads upward with \"..\"", "leads upward with \"..\"" },
        { "oci:/srv/a:", "has an invalid tag", "has an invalid tag" },
        { "oci:/srv/a:-x", "has an invalid tag", "has an invalid tag" },
        { "oci:/srv/a:b:c", "has an invalid tag", "has an invalid tag" },
        { "oci:/srv/a:b/c", "has an invalid tag", "has an invalid tag" },
        { "oci:/srv/a@sha256:12", "has a digest that is not sha256: and 64 hexadecimal digits",
          "has a digest that is not sha256: and 64 hexadecimal digits" },
        { ("oci:/srv/a@sha512:" HEX), "has a digest that is not sha256: and 64 hexadecimal digits",
          "has a digest that is not sha256: and 64 hexadecimal digits" },
        { "sha256:x", "is not sha256: and 64 hexadecimal digits",
          "is not sha256: and 64 hexadecimal digits" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_image image;

        BH_CHECK_STR(cases[i].text, image_test_said(bh_image_parse(cases[i].text, &image)),
                     image_test_said(cases[i].image));
        BH_CHECK_STR(cases[i].text, image_test_said(bh_image_parse_entry(cases[i].text, &image)),
                     image_test_said(cases[i].entry));
    }
    BH_CHECK_DONE();
}

static void
test_allows(void **state)
{
    static const struct {
        const char *entry, *image;
        bool allows;
    } cases[] = {
        { "host", "host", true },
        { "host", "dir:/a", false },
        { "dir:/", "host", false },
        { "dir:/srv", "dir:/srv/a", true },
        { "dir:/srv", "dir:/srv2", false },
        { "dir:/srv", "oci:/srv/a:1", false },
        { "oci:/srv", "oci:/srv/a:1", true },
        { "oci:/srv", "oci:/srv2:1", false },
        { "oci:/srv/a:1", "oci:/srv/a:1", true },
        { "oci:/srv/a:1", "oci:/srv/a:2", false },
        { "oci:/srv/a:1", ("oci:/srv/a@sha256:" HEX), false },
        { "oci:/srv@sha256", ("oci:/srv/a@sha256:" HEX), true },
        { "oci:/srv@sha256", "oci:/srv/a:1", false },
        { ("sha256:" HEX), ("oci:/srv/a@sha256:" HEX), true },
        { ("sha256:" HEX), ("oci:/srv/a@sha256:" OTHER), false },
        { ("sha256:" HEX), "oci:/srv/a:1", false },
        { "docker://nvcr.io", "docker://nvcr.io/nvidia/pytorch:1", true },
        { "docker://nvcr.io", "docker://nvcr.io:444/nvidia/pytorch:1", false },
        { "docker://nvcr.io/nvidia", "docker://nvcr.io/nvidia/pytorch:1", true },
        { "docker://nvcr.io/nvidia", "docker://nvcr.io/nvidia2/pytorch:1", false },
        { "docker://nvcr.io/nvidia", "oci:/srv/a:1", false },
        { "oci:/", "docker://nvcr.io/nvidia/pytorch:1", false },
        { "docker://nvcr.io/nvidia@sha256", "docker://nvcr.io/nvidia/pytorch:1", false },
        { "docker://nvcr.io/nvidia@sha256", ("docker://nvcr.io/nvidia/a@sha256:" HEX), true },
        { ("sha256:" HEX), ("docker://nvcr.io/nvidia/a@sha256:" HEX), true },
        { ("sha256:" HEX), ("docker://nvcr.io/nvidia/a@sha256:" OTHER), false },
        /* entries within entries */
        { "oci:/srv", ("sha256:" HEX), false },
        { "oci:/srv@sha256", "oci:/srv", false },
        { "oci:/srv", "oci:/srv@sha256", true },
        { ("sha256:" HEX), ("oci:/srv@sha256:" HEX), true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_image entry, image;

        assert_null(bh_image_parse_entry(cases[i].entry, &entry));
        assert_null(bh_image_parse_entry(cases[i].image, &image));
        BH_CHECK_EQ(cases[i].image, bh_image_allows(&entry, &image), cases[i].allows);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_parse), cmocka_unit_test(test_allows) };
BH_TEST_MAIN(tests)
