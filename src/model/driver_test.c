#include "model/driver.h"

#include "base/test.h"

static void
versions(void **state)
{
    static const struct {
        const char *name, *text;
        bh_rc rc;
        struct bh_driver_version version;
    } cases[] = {
        { "three numbers", "580.159.03", BH_OK, { 580, 159, 3 } },
        { "two numbers", "580.65", BH_OK, { 580, 65, 0 } },
        { "zeros", "0.0.0", BH_OK, { 0, 0, 0 } },
        { "four digits", "9999.9999.9999", BH_OK, { 9999, 9999, 9999 } },
        { "five digits", "580.15903", BH_INVALID, { 7, 7, 7 } },
        { "one number", "580", BH_INVALID, { 7, 7, 7 } },
        { "four numbers", "580.1.2.3", BH_INVALID, { 7, 7, 7 } },
        { "dot at the end", "580.159.", BH_INVALID, { 7, 7, 7 } },
        { "two dots", "580..159", BH_INVALID, { 7, 7, 7 } },
        { "a suffix", "580.159.03-open", BH_INVALID, { 7, 7, 7 } },
        { "a blank", " 580.159.03", BH_INVALID, { 7, 7, 7 } },
        { "a sign", "-580.159.03", BH_INVALID, { 7, 7, 7 } },
        { "nothing", "", BH_INVALID, { 7, 7, 7 } },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_driver_version version = { 7, 7, 7 };
        struct bh_err err;

        BH_CHECK_EQ(cases[i].name, bh_driver_parse(cases[i].text, &version, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, version.branch, cases[i].version.branch);
        BH_CHECK_EQ(cases[i].name, version.minor, cases[i].version.minor);
        BH_CHECK_EQ(cases[i].name, version.patch, cases[i].version.patch);
    }
    BH_CHECK_DONE();
}

/* CVE-2026-24197: the first builds that have it, and what is not listed. */
static void
repartition(void **state)
{
    static const struct {
        const char *name, *text;
        bool fixed;
    } cases[] = {
        { "R595 first build with it", "595.71.05", true },
        { "R595 one before", "595.71.04", false },
        { "R595 minor before", "595.45.99", false },
        { "R595 later", "595.80", true },
        { "R580 first build with it", "580.159.03", true },
        { "R580 one before", "580.159.02", false },
        { "R580 short form before", "580.65", false },
        { "R580 usual build", "580.65.06", false },
        { "R535 first build with it", "535.309.01", true },
        { "R535 before", "535.288.01", false },
        { "R550 is at its end", "550.163.01", false },
        { "R590 is at its end, newer than 580", "590.48.01", false },
        { "older than all", "470.256.02", false },
        { "newer branch than all", "610.10.01", true },
        { "no version at all", "", false },
        { "not a version", "unknown", false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_driver_is_fixed(cases[i].text, BH_DRIVER_REPARTITION), cases[i].fixed);
    BH_CHECK_DONE();
}

static void
driver_test_words(void **state)
{
    char text[80];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_driver_put_fixed(&out, BH_DRIVER_REPARTITION);
    BH_CHECK_STR("fixed builds", bh_buf_text(&out), "535.309.01, 580.159.03, 595.71.05");
    BH_CHECK_STR("cve", bh_driver_fix_cve(BH_DRIVER_REPARTITION), "CVE-2026-24197");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(versions), cmocka_unit_test(repartition),
                                           cmocka_unit_test(driver_test_words) };
BH_TEST_MAIN(tests)
