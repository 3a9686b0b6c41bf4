#include "web/form.h"

#include "base/test.h"
#include "web/headers.h"

#define ORIGIN "https://gpu.example"
#define FORM "application/x-www-form-urlencoded"

static void
form_test_tokens(void **state)
{
    char token[BH_SECRET_TEXT], step_up[BH_SECRET_TEXT], other[BH_SECRET_TEXT];

    bh_csrf_token("secret", token);
    bh_csrf_token("secret", step_up);
    bh_csrf_token("secres", other);
    BH_CHECK_EQ("length", strlen(token), 43);
    BH_CHECK_STR("same for one", token, step_up);
    BH_CHECK("not for another", strcmp(token, other) != 0);
    BH_CHECK_DONE();
}

static void
received(void **state)
{
    static const struct {
        const char *name, *origin, *site, *type, *body;
        enum bh_identity_fault fault;
    } rows[] = {
        { "as it should be", ORIGIN, "same-origin", FORM, "csrf=%s&a=1", BH_FAULT_NONE },
        { "without Sec-Fetch-Site", ORIGIN, NULL, FORM, "csrf=%s&a=1", BH_FAULT_NONE },
        { "without Origin", NULL, "same-origin", FORM, "csrf=%s&a=1", BH_FAULT_NONE },
        { "with a charset", ORIGIN, NULL, FORM "; charset=UTF-8", "csrf=%s", BH_FAULT_NONE },
        { "another site", "https://evil.example", "cross-site", FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "a site beside", "https://www.gpu.example", "same-site", FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "a lie about the site", "https://evil.example", "same-origin", FORM, "csrf=%s",
          BH_FAULT_ELSEWHERE },
        { "no scheme", "gpu.example", NULL, FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "null", "null", NULL, FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "only same-site", NULL, "same-site", FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "typed into the address bar", NULL, "none", FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "no browser", NULL, NULL, FORM, "csrf=%s", BH_FAULT_ELSEWHERE },
        { "no token", ORIGIN, NULL, FORM, "a=1", BH_FAULT_ELSEWHERE },
        { "an empty token", ORIGIN, NULL, FORM, "csrf=", BH_FAULT_ELSEWHERE },
        { "another's token", ORIGIN, NULL, FORM, "csrf=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
          BH_FAULT_ELSEWHERE },
        { "longer", ORIGIN, NULL, FORM, "csrf=%sA", BH_FAULT_ELSEWHERE },
        { "two tokens", ORIGIN, NULL, FORM, "csrf=%s&csrf=x", BH_FAULT_FORM_DUPLICATE },
        { "a field twice", ORIGIN, NULL, FORM, "csrf=%s&a=1&a=2", BH_FAULT_FORM_DUPLICATE },
        { "JSON", ORIGIN, NULL, "application/json", "csrf=%s", BH_FAULT_FORM },
        { "almost a form", ORIGIN, NULL, FORM "x", "csrf=%s", BH_FAULT_FORM },
        { "of no type", ORIGIN, NULL, NULL, "csrf=%s", BH_FAULT_FORM },
        { "broken", ORIGIN, NULL, FORM, "csrf=%s&a=%%G1", BH_FAULT_FORM },
    };
    static struct bh_form form;
    char token[BH_SECRET_TEXT], body[512];

    bh_csrf_token("secret", token);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_request request = {
            .origin = rows[i].origin, .fetch_site = rows[i].site, .content_type = rows[i].type, .body = body
        };
        const char *mark = strstr(rows[i].body, "%s");
        size_t head = mark ? (size_t)(mark - rows[i].body) : strlen(rows[i].body);

        snprintf(body, sizeof body, "%.*s%s%s", (int)head, rows[i].body, mark ? token : "",
                 mark ? mark + 2 : "");
        request.body_length = strlen(body);
        BH_CHECK_EQ(rows[i].name, bh_form_receive(&request, ORIGIN, token, &form), rows[i].fault);
    }
    BH_CHECK_DONE();
}

static void
cookies(void **state)
{
    static const struct {
        const char *cookies, *value; /* NULL: none found */
        /* clang-format off */
    } rows[] = {
        { "s=abc", "abc" },     { "a=1; s=abc; b=2", "abc" },
        { "a=1;s=abc", "abc" }, { "s=", "" },
        { "s=a=b", "a=b" },     { "s=1234567", "1234567" },
        { "s=12345678", NULL }, { "S=abc", NULL },
        { "ss=abc", NULL },     { "as=abc", NULL },
        { "s", NULL },          { "s=a; s=b", NULL },
        { "s=a; s=a", NULL },   { "", NULL },
        { ";;; ", NULL },       { NULL, NULL },
    };
    /* clang-format on */
    char value[8];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_request request = { .cookie = rows[i].cookies };
        bool found = bh_cookie_find(&request, "s", value, sizeof value);
        const char *name = rows[i].cookies ? rows[i].cookies : "(none)";

        BH_CHECK_EQ(name, found, rows[i].value != NULL);
        if (found && rows[i].value)
            BH_CHECK_STR(name, value, rows[i].value);
    }
    BH_CHECK_DONE();
}

/* Nowhere but here. */
static void
next_paths(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        { "/account", true },
        { "/confirm?code=ABCD-EFGH&x=1", true },
        { "/", true },
        { "", false },
        { NULL, false },
        { "account", false },
        { "//evil.example", false },
        { "/\\evil.example", false },
        { "/\tevil", false },
        { "https://evil.example", false },
        { "/a#b", false },
        { "/a\r\nSet-Cookie: s=1", false },
        { "/%2f", false },
        { "/a?b=%2Fc", true },
        { "/a%3f?b=c", false },
        { "/:80", false },
        { "/@evil.example", false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const char *next = bh_next_path(rows[i].text, "fallback");

        BH_CHECK_STR(rows[i].text ? rows[i].text : "(none)", next, rows[i].good ? rows[i].text : "fallback");
    }
    BH_CHECK_DONE();
}

static const char *
header_of(const struct bh_reply *reply, const char *name)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return "";
}

static void
form_test_headers(void **state)
{
    struct bh_reply page = { 0 }, plain = { 0 }, asset = { 0 };
    const struct bh_asset *sheet = bh_asset_find(bh_asset_path("style.css"));

    bh_page_headers(&page, 403, true);
    bh_page_headers(&plain, 200, false);
    BH_CHECK_EQ("status", page.status, 403);
    BH_CHECK_STR("policy", header_of(&page, "Content-Security-Policy"),
                 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
                 "data:; frame-ancestors 'none'; base-uri 'none'; connect-src 'self'; "
                 "require-trusted-types-for 'script'; trusted-types bulkhead; form-action 'self'");
    BH_CHECK_STR("https", header_of(&page, "Strict-Transport-Security"), "max-age=63072000");
    BH_CHECK_STR("http", header_of(&plain, "Strict-Transport-Security"), "");
    BH_CHECK_STR("frames", header_of(&plain, "X-Frame-Options"), "DENY");
    assert_non_null(sheet);
    bh_buf_init(&asset.body, 1 << 20);
    bh_asset_reply(&asset, sheet);
    BH_CHECK_EQ("whole", asset.body.length, strlen(sheet->bytes));
    BH_CHECK("kept", strstr(header_of(&asset, "Cache-Control"), "immutable"));
    bh_buf_fini(&asset.body);
    BH_CHECK("no other", !bh_asset_find("/assets/style.css"));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(form_test_tokens), cmocka_unit_test(received),          cmocka_unit_test(cookies),
    cmocka_unit_test(next_paths),       cmocka_unit_test(form_test_headers),
};

BH_TEST_MAIN(tests)
