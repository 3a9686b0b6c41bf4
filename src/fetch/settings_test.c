#include "fetch/settings.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/test.h"

enum { ARGUMENTS_MAX = 8 };

/* As a program has them, which may be written to. */
static bh_rc
settings_test_parse(const char *const *texts, struct bh_fetch_settings *ret_settings, struct bh_err *err)
{
    static char memory[ARGUMENTS_MAX][128];
    char *argv[ARGUMENTS_MAX + 1] = { (char *)"bulkhead-fetch" };
    int argc = 1;

    for (; texts[argc - 1]; argc++) {
        snprintf(memory[argc - 1], sizeof memory[0], "%s", texts[argc - 1]);
        argv[argc] = memory[argc - 1];
    }
    return bh_fetch_settings_parse(argc, argv, ret_settings, err);
}

static void
arguments(void **state)
{
    static const struct {
        const char *name, *texts[ARGUMENTS_MAX];
        bh_rc rc;
    } rows[] = {
        { "none", { NULL }, BH_OK },
        { "all", { "--allow", "10.0.0.0/8", "--plain-loopback", "--timeout-ms", "7" }, BH_OK },
        { "a file", { "--ca", "/etc/passwd" }, BH_OK },
        { "no file", { "--ca", "/nowhere" }, BH_NOT_FOUND },
        { "an empty file", { "--ca", "/dev/null" }, BH_INVALID },
        { "another option", { "--verbose" }, BH_INVALID },
        { "no value", { "--ca" }, BH_INVALID },
        { "a word", { "now" }, BH_INVALID },
        { "no time", { "--timeout-ms", "0" }, BH_RANGE },
        { "an hour", { "--timeout-ms", "3600000" }, BH_RANGE },
        { "no block", { "--allow", "everybody" }, BH_INVALID },
        { "a certificate", { "--certificate", "a:/etc/passwd:/etc/passwd" }, BH_OK },
        { "no key", { "--certificate", "a:/etc/passwd" }, BH_INVALID },
        { "too many names", { "--certificate", "a:/etc/passwd:/etc/passwd:b" }, BH_INVALID },
        { "no name", { "--certificate", ":/etc/passwd:/etc/passwd" }, BH_INVALID },
        { "a long name",
          { "--certificate", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:b:c" },
          BH_INVALID },
        { "a name twice",
          { "--certificate", "a:/etc/passwd:/etc/passwd", "--certificate", "a:/etc/passwd:/etc/passwd" },
          BH_INVALID },
        { "no such key", { "--certificate", "a:/etc/passwd:/nowhere" }, BH_NOT_FOUND },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_fetch_settings settings;
        struct bh_err err;

        BH_CHECK_EQ(rows[i].name, settings_test_parse(rows[i].texts, &settings, &err), rows[i].rc);
        bh_fetch_settings_fini(&settings);
    }
    BH_CHECK_DONE();
}

static void
allowed(void **state)
{
    enum { STRICT, BLOCK, LOOPBACK, PROXY, KINDS };
    static const char *const options[KINDS][3] = {
        [STRICT] = { NULL },
        [BLOCK] = { "--allow", "10.1.0.0/16" },
        [LOOPBACK] = { "--plain-loopback" },
        [PROXY] = { "--proxy", "http://proxy:3128" },
    };
    static const struct {
        const char *address;
        bool plain, good[KINDS];
    } rows[] = {
        { "8.8.8.8", false, { true, true, true, true } },
        { "10.1.2.3", false, { false, true, false, true } },
        { "10.2.2.3", false, { false, false, false, true } },
        { "127.0.0.1", false, { false, false, false, true } },
        { "127.0.0.1", true, { false, false, true, false } },
        { "10.1.2.3", true, { false, false, false, false } },
        { "8.8.8.8", true, { false, false, false, false } },
    };

    for (int kind = STRICT; kind < KINDS; kind++) {
        struct bh_fetch_settings settings;
        struct bh_err err;

        assert_int_equal(settings_test_parse(options[kind], &settings, &err), BH_OK);
        for (size_t i = 0; i < BH_COUNT(rows); i++) {
            struct sockaddr_in to = { .sin_family = AF_INET };

            inet_pton(AF_INET, rows[i].address, &to.sin_addr);
            BH_CHECK_EQ(rows[i].address, bh_fetch_settings_allow(&settings, (const void *)&to, rows[i].plain),
                        rows[i].good[kind]);
        }
        bh_fetch_settings_fini(&settings);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(arguments),
    cmocka_unit_test(allowed),
};

BH_TEST_MAIN(tests)
