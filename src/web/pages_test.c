/* Every page that is not made of panels, against its golden file. */
#include <stdio.h>

#include "base/attr.h"
#include "web/account_pages.h"
#include "web/golden_test.h"
#include "web/signin_pages.h"

#define HOSTILE "</p><script>alert('1')</script>\"&"

static const char *golden_folder, *build_folder;

static const struct bh_page_frame nobody = { .site = "Example's GPUs", .csrf = "TOKEN" };
static const struct bh_page_frame ada = { .site = "Example's GPUs", .account = "ada", .csrf = "TOKEN" };
static const struct bh_page_frame ada_at_account = { .site = "Example's GPUs",
                                                     .account = "ada",
                                                     .csrf = "TOKEN",
                                                     .section = BH_SECTION_ACCOUNT,
                                                     .sees =
                                                         1u << BH_SECTION_OVERVIEW | 1u << BH_SECTION_ACCOUNT,
                                                     .narrow = true };
static const struct bh_signin_issuer issuers[] = { { "uni", "Example University" }, { "a&b", HOSTILE } };
static const bh_ns day = 86400 * BH_NS_PER_S, then = 1790000000 * BH_NS_PER_S;

static void
signin(struct bh_buf *out)
{
    bh_signin_page(out, &(struct bh_signin_view){ .frame = nobody,
                                                  .issuers = issuers,
                                                  .issuer_count = 2,
                                                  .passkey = true,
                                                  .local = true,
                                                  .account = "",
                                                  .next = "/confirm?code=A" });
}

static void
signin_refused(struct bh_buf *out)
{
    struct bh_signin_view view = { .frame = nobody, .local = true, .account = HOSTILE, .next = "" };

    view.frame.notice = BH_NOTICE_REFUSED;
    bh_signin_page(out, &view);
}

static void
signin_nobody(struct bh_buf *out)
{
    bh_signin_page(out, &(struct bh_signin_view){ .frame = nobody, .account = "", .next = "" });
}

static void
step_up(struct bh_buf *out)
{
    bh_step_up_page(out, &(struct bh_step_up_view){ ada, true, true, HOSTILE, "/account" });
}

static void
step_up_without_factor(struct bh_buf *out)
{
    bh_step_up_page(out, &(struct bh_step_up_view){ ada, false, false, "", "" });
}

static void
command_line(struct bh_buf *out)
{
    bh_command_line_page(
        out, &(struct bh_command_line_view){ ada, "abcDEF-_0123456789", "STATE", "4711", HOSTILE });
}

static void
pages_test_enrol(struct bh_buf *out)
{
    bh_enroll_page(out, &(struct bh_enroll_view){ nobody, "ada", true, false });
}

static void
password(struct bh_buf *out)
{
    bh_enroll_page(out, &(struct bh_enroll_view){ ada_at_account, "", false, true });
}

static void
pages_test_account(struct bh_buf *out)
{
    const struct bh_passkey_view passkeys[] = {
        { "aaaa", HOSTILE, then, then + day, true },
        { "bbbb", "key ring", then + day, 0, false },
    };
    const struct bh_token_view tokens[] = {
        { "7", "nightly", then, 0, then + 90 * day },
    };
    const struct bh_session_view sessions[] = {
        { "1", "password and passkey", "192.0.2.7", then, then + day, true },
        { "2", HOSTILE, "2001:db8::1", then, then, false },
    };

    bh_account_page(out, &(struct bh_account_view){ .frame = ada_at_account,
                                                    .passkeys = passkeys,
                                                    .passkey_count = 2,
                                                    .tokens = tokens,
                                                    .token_count = 1,
                                                    .sessions = sessions,
                                                    .session_count = 2,
                                                    .recovery_left = 9,
                                                    .totp = true,
                                                    .local = true });
}

static void
account_new(struct bh_buf *out)
{
    struct bh_account_view view = { .frame = ada_at_account };

    view.frame.notice = BH_NOTICE_ENROL_FIRST;
    bh_account_page(out, &view);
}

static void
totp(struct bh_buf *out)
{
    bh_totp_page(out, &(struct bh_totp_view){ ada_at_account, "otpauth://totp/Example:ada?secret=ABCDEFGH",
                                              "ABCDEFGH" });
}

static void
codes(struct bh_buf *out)
{
    static const char *const texts[] = { "ABCD-EFGH-JKMN-PQRS", "0123-4567-89AB-CDEF" };

    bh_codes_page(out, &(struct bh_codes_view){ ada_at_account, texts, 2 });
}

static void
error(struct bh_buf *out)
{
    bh_error_page(out, &(struct bh_error_view){ nobody, 404 });
}

/* To one who is signed in, with the navigation. */
static void
pages_put_error(struct bh_buf *out, uint32_t status)
{
    struct bh_error_view view = { ada_at_account, status };

    view.frame.section = BH_SECTION_NONE;
    bh_error_page(out, &view);
}

#define ERROR_PAGE(status)                                                                                   \
    static void error_##status(struct bh_buf *out)                                                           \
    {                                                                                                        \
        pages_put_error(out, status);                                                                        \
    }
ERROR_PAGE(400)
ERROR_PAGE(403)
ERROR_PAGE(404)
ERROR_PAGE(405)
ERROR_PAGE(429)
ERROR_PAGE(500)
ERROR_PAGE(503)

static void
error_unknown(struct bh_buf *out)
{
    bh_error_page(out, &(struct bh_error_view){ ada, 418 });
}

static void
signed_out(struct bh_buf *out)
{
    bh_signed_out_page(out, &(struct bh_signed_out_view){ nobody, "https://op.example/out?a=1&b=2" });
}

static const struct {
    const char *name;
    void (*render)(struct bh_buf *out);
} pages[] = {
    { "signin", signin },
    { "signin_refused", signin_refused },
    { "signin_nobody", signin_nobody },
    { "again", step_up },
    { "again_nothing", step_up_without_factor },
    { "command_line", command_line },
    { "enrol", pages_test_enrol },
    { "password", password },
    { "account", pages_test_account },
    { "account_new", account_new },
    { "totp", totp },
    { "codes", codes },
    { "error", error },
    { "error_400", error_400 },
    { "error_403", error_403 },
    { "error_404", error_404 },
    { "error_405", error_405 },
    { "error_429", error_429 },
    { "error_500", error_500 },
    { "error_503", error_503 },
    { "error_unknown", error_unknown },
    { "signed_out", signed_out },
};

static void
golden(void **state)
{
    for (size_t i = 0; i < BH_COUNT(pages); i++) {
        BH_AUTO(bh_buf_fini) struct bh_buf page = { .max = 1 << 20 };

        pages[i].render(&page);
        BH_CHECK(pages[i].name,
                 bh_golden_matches(golden_folder, build_folder, pages[i].name, bh_buf_text(&page)));
    }
    BH_CHECK_DONE();
}

static void
notices(void **state)
{
    for (enum bh_notice notice = 0; notice < BH_NOTICES; notice++)
        BH_CHECK_EQ(bh_notice_name(notice), bh_notice_find(bh_notice_name(notice)), notice);
    BH_CHECK_EQ("what is none", bh_notice_find("<script>"), BH_NOTICE_NONE);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(golden),
    cmocka_unit_test(notices),
};

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s GOLDEN-FOLDER BUILD-FOLDER\n", argv[0]);
        return 2;
    }
    golden_folder = argv[1];
    build_folder = argv[2];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
