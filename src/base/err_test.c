#include "base/err.h"

#include <errno.h>

#include "base/test.h"

static void
test_set(void **state)
{
    struct bh_err err = { .hint = "old" };

    BH_CHECK_EQ("returns", bh_err_set(&err, BH_QUOTA, "tenant %s is over", "ml"), BH_QUOTA);
    BH_CHECK_EQ("code", err.rc, BH_QUOTA);
    BH_CHECK_STR("message", err.msg, "tenant ml is over");
    BH_CHECK_STR("no hint of an earlier error", err.hint, "");
    BH_CHECK_EQ("no foreign number", err.sys_kind, BH_SYS_NONE);
    BH_CHECK_DONE();
}

static void
test_wrap_keeps_the_rest(void **state)
{
    struct bh_err err;

    bh_err_sys(&err, BH_UNCERTAIN, BH_SYS_NVML, 999, "driver call timed out");
    bh_err_hint(&err, "read the %s again", "state");
    BH_CHECK_EQ("returns", bh_err_wrap(&err, "start lease %d", 7), BH_UNCERTAIN);
    BH_CHECK_STR("message", err.msg, "start lease 7: driver call timed out");
    BH_CHECK_STR("hint", err.hint, "read the state again");
    BH_CHECK_EQ("domain", err.sys_kind, BH_SYS_NVML);
    BH_CHECK_EQ("number", err.sys, 999);
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    int number;
    bh_rc rc;
    /* clang-format off */
} numbers[] = {
    { "EPERM", EPERM, BH_DENIED },         { "EACCES", EACCES, BH_DENIED },
    { "ENOENT", ENOENT, BH_NOT_FOUND },    { "ENOSPC", ENOSPC, BH_FULL },
    { "EDQUOT", EDQUOT, BH_FULL },         { "ETIMEDOUT", ETIMEDOUT, BH_TIMEOUT },
    { "ECONNREFUSED", ECONNREFUSED, BH_UNAVAILABLE }, { "EIO", EIO, BH_IO },
};
/* clang-format on */

static void
test_errno(void **state)
{
    for (size_t i = 0; i < BH_COUNT(numbers); i++) {
        struct bh_err err;
        char want[128];

        snprintf(want, sizeof want, "open x: %s", strerror(numbers[i].number));
        errno = numbers[i].number;
        BH_CHECK_EQ(numbers[i].name, bh_err_errno(&err, "open %s", "x"), numbers[i].rc);
        BH_CHECK_EQ(numbers[i].name, err.sys, numbers[i].number);
        BH_CHECK_EQ(numbers[i].name, err.sys_kind, BH_SYS_ERRNO);
        BH_CHECK_STR(numbers[i].name, err.msg, want);
    }
    BH_CHECK_DONE();
}

/* Quoted input is fit for a terminal and for JSON, wherever it was cut. */
static void
test_messages_are_clean(void **state)
{
    char longest[1000], cut[sizeof((struct bh_err *)0)->msg];
    struct bh_err err;

    bh_err_set(&err, BH_INVALID, "\"%s\"", "a\x1b[31m\n\xff");
    BH_CHECK_STR("control characters and stray bytes", err.msg, "\"a?[31m??\"");
    bh_err_set(&err, BH_INVALID, "\"%.4s\"", "abc\xc3\xa9");
    BH_CHECK_STR("cut in a character", err.msg, "\"abc?\"");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memset(cut, 'x', sizeof cut - 1);
    memcpy(cut + sizeof cut - sizeof " ...", " ...", sizeof " ...");
    bh_err_set(&err, BH_INVALID, "%s", longest);
    BH_CHECK_STR("cut to size", err.msg, cut);
    errno = EIO;
    bh_err_errno(&err, "%s", longest);
    BH_CHECK_STR("no room for errno's text", err.msg, cut);
    bh_err_wrap(&err, "%s", longest);
    BH_CHECK_STR("no room for the inner message", err.msg, cut);
    BH_CHECK_DONE();
}

/* A sentence that has no room ends between two words. */
static void
test_cut_between_words(void **state)
{
    char words[400], path[182];
    struct bh_err err;

    for (size_t i = 0; i < sizeof words; i++)
        words[i] = "some words "[i % 11];
    words[sizeof words - 1] = '\0';
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = '\0';
    bh_err_set(&err, BH_INVALID, "%s", words);
    BH_CHECK("a message", strcmp(err.msg + strlen(err.msg) - 10, " words ...") == 0
                              || strcmp(err.msg + strlen(err.msg) - 9, " some ...") == 0);
    bh_err_hint(&err, "%s", words);
    BH_CHECK("a hint", strcmp(err.hint + strlen(err.hint) - 10, " words ...") == 0
                           || strcmp(err.hint + strlen(err.hint) - 9, " some ...") == 0);
    bh_err_set(&err, BH_INVALID, "it is damaged, and has to be put back from its copy today");
    bh_err_wrap(&err, "%s", path);
    BH_CHECK("an inner message",
             strstr(err.msg, "ppp: it is damaged, and has to be put back from its copy ..."));
    BH_CHECK_DONE();
}

static void
test_codes(void **state)
{
    for (bh_rc rc = BH_OK; rc <= BH_BUG; rc++) {
        const char *name = bh_rc_name(rc);

        BH_CHECK_EQ(name, bh_rc_find(name), rc);
        BH_CHECK(name, bh_rc_http(rc) >= 200 && bh_rc_http(rc) < 600);
        BH_CHECK(name, bh_rc_exit(rc) >= 0 && bh_rc_exit(rc) <= 9);
        BH_CHECK(name, bh_rc_doc(rc)[0]);
    }
    BH_CHECK_STR("an unknown code", bh_rc_name((bh_rc)99), "bug");
    BH_CHECK_EQ("an unknown name", bh_rc_find("nonsense"), BH_BUG);
    BH_CHECK("full may pass", bh_rc_retryable(BH_FULL));
    BH_CHECK("uncertain is never retried blindly", !bh_rc_retryable(BH_UNCERTAIN));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_set),
    cmocka_unit_test(test_wrap_keeps_the_rest),
    cmocka_unit_test(test_errno),
    cmocka_unit_test(test_messages_are_clean),
    cmocka_unit_test(test_cut_between_words),
    cmocka_unit_test(test_codes),
};

BH_TEST_MAIN(tests)
