/* The pages before an API whose answers a row gives. */
#include "web/web.h"

#include "base/test.h"
#include "web/form.h"
#include "web/page.h"

#define SESSION "bs_abcdefghijkl_SECRET"
#define SIGNED_IN "a=1; __Host-bulkhead=" SESSION
#define BEFORE "__Host-bulkhead-form=0123456789012345678901234567890123456789012"
#define STEP_UP "Bearer realm=\"bulkhead\", error=\"insufficient_user_authentication\""
#define CHALLENGE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
#define COMMAND_LINE "challenge=" CHALLENGE "&state=S-_1&host=ws%201&port=4711"
#define ACCOUNT                                                                                              \
    "{\"name\":\"ada\",\"password\":true,\"recovery_left\":3,\"totp\":true,\"passkeys\":["                   \
    "{\"created_ns\":\"1790000000000000000\",\"id\":\"aaaa\",\"name\":\"key ring\"}]}"

static struct {
    uint32_t status;
    const char *body;
    const char *challenge; /* WWW-Authenticate */
    char asked[2048];      /* all questions: "POST /v1/sign-in {...} Bearer x;" */
} api;

static const char *parameters; /* the query: "name=value" or NULL */

static void
web_test_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    size_t used = strlen(api.asked);

    snprintf(api.asked + used, sizeof api.asked - used, "%s %s%s%s%s%s;", bh_method_names[request->method],
             request->path, request->body[0] ? " " : "", request->body, request->authorization ? " " : "",
             request->authorization ? request->authorization : "");
    reply->status = api.status;
    bh_buf_puts(&reply->body, api.body ? api.body : "{}");
    if (api.challenge)
        bh_reply_header(reply, "WWW-Authenticate", api.challenge);
}

static bh_rc
zeros(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

static const char *
web_test_query(const struct bh_request *request, const char *name)
{
    static struct bh_form form;

    if (!parameters || bh_form_parse(parameters, strlen(parameters), &form) != BH_FAULT_NONE)
        return NULL;
    return bh_form_get(&form, name);
}

static void
each_query(const struct bh_request *request, void (*sink)(void *self, const char *name, const char *value),
           void *self)
{
    static struct bh_form form;

    if (parameters && bh_form_parse(parameters, strlen(parameters), &form) == BH_FAULT_NONE)
        for (uint32_t i = 0; i < form.count; i++)
            sink(self, form.pairs[i].name, form.pairs[i].value);
}

struct row {
    const char *name;
    enum bh_method method;
    const char *path, *query, *cookie, *accept;
    const char *form; /* posted, behind the token; NULL: the token is missing */
    uint32_t api_status;
    const char *api_body, *challenge;
    uint32_t status;
    const char *asked, *header, *body; /* `header` and `body` are parts */
    bool not_body;                     /* that part must not be there */
};

/* The reply's headers, one a line. */
static void
put_headers(const struct bh_reply *reply, struct bh_buf *out)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        bh_buf_printf(out, "%s: %s\n", reply->headers[i].name, reply->headers[i].value);
}

static void
web_test_check(struct bh_web *web, const struct row *row)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    char token[BH_SECRET_TEXT], form[1024] = "", header_text[4096];
    struct bh_request request = { .method = row->method,
                                  .path = row->path,
                                  .body = form,
                                  .cookie = row->cookie,
                                  .accept = row->accept,
                                  .host = "gpu.example",
                                  .origin = "https://gpu.example",
                                  .content_type = "application/x-www-form-urlencoded",
                                  .arena = arena,
                                  .query = web_test_query,
                                  .each_query = each_query };
    struct bh_reply reply = { 0 };
    struct bh_buf headers;
    const char *body;

    parameters = row->query;
    bh_csrf_token(row->cookie && strstr(row->cookie, SESSION) ? SESSION : BEFORE + 21, token);
    if (row->form)
        snprintf(form, sizeof form, "csrf=%s%s", token, row->form);
    request.body_length = strlen(form);
    api.status = row->api_status;
    api.body = row->api_body;
    api.challenge = row->challenge;
    api.asked[0] = '\0';
    bh_buf_init(&reply.body, 1 << 20);
    bh_web_handle(web, &request, &reply);
    bh_buf_init_fixed(&headers, header_text, sizeof header_text);
    put_headers(&reply, &headers);
    body = bh_buf_text(&reply.body);
    BH_CHECK_EQ(row->name, reply.status, row->status);
    BH_CHECK_STR(row->name, api.asked, row->asked ? row->asked : "");
    if (row->header && !strstr(bh_buf_text(&headers), row->header))
        BH_CHECK_STR(row->name, bh_buf_text(&headers), row->header);
    if (row->body && !strstr(body, row->body) != row->not_body)
        BH_CHECK_STR(row->name, body, row->body);
    BH_CHECK(row->name, !strstr(body, "SECRET")); /* no session in a page */
    bh_buf_fini(&reply.body);
}

static const char session_cookie[] =
    "Set-Cookie: __Host-bulkhead=" SESSION "; Path=/; Secure; HttpOnly; SameSite=Lax\n";
static const char no_cookie[] = "Set-Cookie: __Host-bulkhead=; Path=/; Secure; HttpOnly; "
                                "SameSite=Lax; Max-Age=0\n";

static const struct row rows[] = {
    { .name = "the root, for a stranger",
      .path = "/",
      .status = 303,
      .header = "Location: /signin?next=%2F\n" },
    { .name = "the sign-in page",
      .path = "/signin",
      .query = "next=/account",
      .api_status = 200,
      .api_body = "{\"accounts\":true,\"issuers\":[{\"name\":\"corp\"}],\"passkeys\":true}",
      .status = 200,
      .asked = "GET /v1/sign-in;",
      .header = "Set-Cookie: __Host-bulkhead-form=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                "AAAA; Path=/; Secure; HttpOnly; SameSite=Lax\n",
      .body = "name=\"next\" value=\"/account\"" },
    { .name = "the sign-in page's policy",
      .path = "/signin",
      .api_status = 200,
      .status = 200,
      .asked = "GET /v1/sign-in;",
      .header = "Content-Security-Policy: default-src 'none';" },
    { .name = "a place to go to that is elsewhere",
      .path = "/signin",
      .query = "next=//evil.example",
      .api_status = 200,
      .api_body = "{\"accounts\":true}",
      .status = 200,
      .asked = "GET /v1/sign-in;",
      .body = "evil",
      .not_body = true },
    { .name = "a notice there is none of",
      .path = "/signin",
      .query = "notice=<b>oops",
      .api_status = 200,
      .status = 200,
      .asked = "GET /v1/sign-in;",
      .body = "oops",
      .not_body = true },
    { .name = "signing in",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada&password=p%22w&code=123456",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"code\":\"123456\",\"host\":"
               "\"browser\",\"password\":\"p\\\"w\"};",
      .header = session_cookie },
    { .name = "signing in from a browser that did before",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE "; __Host-bulkhead-device=d1",
      .form = "&account=ada",
      .api_status = 201,
      .api_body = "{\"device\":\"d2\",\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"device\":\"d1\",\"host\":"
               "\"browser\"};",
      .header = "Set-Cookie: __Host-bulkhead-device=d2; Path=/; Secure; HttpOnly; "
                "SameSite=Lax; Max-Age=31536000\n" },
    { .name = "signing in on the way to somewhere",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada&next=%2Fagain",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};",
      .header = "Location: /again\n" },
    { .name = "signing in on the way to evil",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada&next=https%3A%2F%2Fevil.example",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};",
      .header = "Location: /\n" },
    { .name = "signing in anew leaves the old session",
      .method = BH_POST,
      .path = "/signin",
      .cookie = SIGNED_IN,
      .form = "&account=ada",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-out Bearer " SESSION
               ";POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};" },
    { .name = "a session that is none",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada",
      .api_status = 201,
      .api_body = "{\"session\":\"a; Domain=evil\"}",
      .status = 403,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};GET /v1/sign-in;" },
    { .name = "a session that would end its cookie",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada",
      .api_status = 201,
      .api_body = "{\"session\":\"bs_a;b\"}",
      .status = 403,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};GET /v1/sign-in;" },
    { .name = "refused",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=%3Cada%3E&password=x",
      .api_status = 401,
      .api_body = "{\"accounts\":true,\"error\":{\"message\":\"no such account\"}}",
      .status = 403,
      .asked = "POST /v1/sign-in {\"account\":\"<ada>\",\"host\":\"browser\",\"password\":"
               "\"x\"};GET /v1/sign-in;",
      .body = "value=\"&lt;ada&gt;\"" },
    { .name = "refused without saying why",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada",
      .api_status = 401,
      .api_body = "{\"accounts\":true,\"error\":{\"message\":\"no such account\"}}",
      .status = 403,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};GET /v1/sign-in;",
      .body = "no such account",
      .not_body = true },
    { .name = "too often",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada",
      .api_status = 401,
      .api_body = "{\"accounts\":true,\"error\":{\"message\":\"too many attempts with "
                  "this name or from here\"}}",
      .status = 403,
      .asked = "POST /v1/sign-in {\"account\":\"ada\",\"host\":\"browser\"};GET "
               "/v1/sign-in;",
      .body = "Too many attempts." },
    { .name = "without the token",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .status = 403,
      .body = "Not allowed" },
    { .name = "with a token but without the cookie",
      .method = BH_POST,
      .path = "/signin",
      .form = "&account=ada",
      .status = 403 },
    { .name = "a field twice",
      .method = BH_POST,
      .path = "/signin",
      .cookie = BEFORE,
      .form = "&account=ada&account=eve",
      .status = 400 },
    { .name = "a passkey's answer goes on as it is",
      .method = BH_POST,
      .path = "/signin/passkey",
      .cookie = BEFORE,
      .form = "&answer=%7B%22a%22%3A1%7D",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in {\"a\":1};",
      .header = session_cookie },
    { .name = "options for a passkey",
      .method = BH_POST,
      .path = "/signin/passkey/options",
      .cookie = BEFORE,
      .form = "",
      .api_status = 200,
      .api_body = "{\"challenge\":\"x\"}",
      .status = 200,
      .asked = "POST /v1/sign-in/challenge;",
      .body = "{\"challenge\":\"x\"}" },
    { .name = "the account, for a stranger",
      .path = "/account",
      .status = 303,
      .header = "Location: /signin?next=%2Faccount\n" },
    { .name = "the account, with a cookie that is none",
      .path = "/account",
      .cookie = "__Host-bulkhead=bh_abc",
      .status = 303,
      .header = "Location: /signin?next=%2Faccount\n" },
    { .name = "the account, with two cookies",
      .path = "/account",
      .cookie = SIGNED_IN "; __Host-bulkhead=bs_other",
      .status = 303,
      .header = "Location: /signin?next=%2Faccount\n" },
    { .name = "the account",
      .path = "/account",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = ACCOUNT,
      .status = 200,
      .asked = "GET /v1/account Bearer " SESSION ";GET /v1/tokens Bearer " SESSION
               ";GET /v1/sessions Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";",
      .body = "key ring" },
    { .name = "tokens that work, and one's own",
      .path = "/account",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = "{\"name\":\"ada\",\"items\":[{\"id\":\"t1\",\"note\":\"nightly\","
                  "\"principal\":\"ada\",\"state\":\"valid\"},{\"id\":\"t2\",\"note\":"
                  "\"weekly\",\"principal\":\"ada\",\"state\":\"revoked\"}]}",
      .status = 200,
      .asked = "GET /v1/account Bearer " SESSION ";GET /v1/tokens Bearer " SESSION
               ";GET /v1/sessions Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";",
      .body = "<strong>nightly</strong>" },
    { .name = "but no others",
      .path = "/account",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = "{\"name\":\"ada\",\"items\":[{\"id\":\"t1\",\"note\":\"nightly\","
                  "\"principal\":\"bob\",\"state\":\"valid\"},{\"id\":\"t2\",\"note\":"
                  "\"nightly\",\"principal\":\"ada\",\"state\":\"revoked\"}]}",
      .status = 200,
      .asked = "GET /v1/account Bearer " SESSION ";GET /v1/tokens Bearer " SESSION
               ";GET /v1/sessions Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";",
      .body = "nightly",
      .not_body = true },
    { .name = "the account of a session that is over",
      .path = "/account",
      .cookie = SIGNED_IN,
      .api_status = 401,
      .status = 303,
      .asked = "GET /v1/account Bearer " SESSION ";",
      .header = no_cookie },
    { .name = "the account while the API cannot",
      .path = "/account",
      .cookie = SIGNED_IN,
      .api_status = 503,
      .status = 503,
      .asked = "GET /v1/account Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "removing a passkey",
      .method = BH_POST,
      .path = "/account/passkey/remove",
      .cookie = SIGNED_IN,
      .form = "&id=a-_9",
      .api_status = 200,
      .status = 303,
      .asked = "DELETE /v1/account/passkeys/a-_9 Bearer " SESSION ";",
      .header = "Location: /account?notice=passkey_removed\n" },
    { .name = "removing the last factor",
      .method = BH_POST,
      .path = "/account/passkey/remove",
      .cookie = SIGNED_IN,
      .form = "&id=a",
      .api_status = 409,
      .status = 303,
      .asked = "DELETE /v1/account/passkeys/a Bearer " SESSION ";",
      .header = "Location: /account?notice=last_factor\n" },
    { .name = "an id that leads elsewhere",
      .method = BH_POST,
      .path = "/account/session/end",
      .cookie = SIGNED_IN,
      .form = "&id=..%2Ftokens%2Fx",
      .status = 303,
      .header = "Location: /account?notice=malformed\n" },
    { .name = "with the token of another session",
      .method = BH_POST,
      .path = "/account/session/end",
      .cookie = "__Host-bulkhead=bs_other_one; x=" SESSION,
      .form = "&id=a",
      .status = 403,
      .asked = "GET /v1/whoami Bearer bs_other_one;" },
    { .name = "what asks for a second factor",
      .method = BH_POST,
      .path = "/account/recovery",
      .cookie = SIGNED_IN,
      .form = "",
      .api_status = 401,
      .challenge = STEP_UP,
      .status = 303,
      .asked = "POST /v1/account/recovery Bearer " SESSION ";",
      .header = "Location: /again?next=/account\n" },
    { .name = "the page that asks for it",
      .path = "/again",
      .query = "next=/account",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = ACCOUNT,
      .status = 200,
      .asked = "GET /v1/account Bearer " SESSION ";GET /v1/sessions Bearer " SESSION ";",
      .body = "Use the code" },
    { .name = "the page that asks for it, of a provider's session",
      .path = "/again",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = "{\"items\":[{\"issuer\":\"corp\",\"this\":true}]}",
      .status = 200,
      .asked = "GET /v1/account Bearer " SESSION ";GET /v1/sessions Bearer " SESSION ";",
      .body = "href=\"/signin/provider?provider=corp&amp;again=1\"" },
    { .name = "showing it",
      .method = BH_POST,
      .path = "/again",
      .cookie = SIGNED_IN,
      .form = "&code=123456&next=%2Faccount",
      .api_status = 200,
      .status = 303,
      .asked = "POST /v1/prove {\"code\":\"123456\"} Bearer " SESSION ";",
      .header = "Location: /account\n" },
    { .name = "showing it with a passkey",
      .method = BH_POST,
      .path = "/again/passkey",
      .cookie = SIGNED_IN,
      .form = "&answer=%7B%7D&next=%2Faccount",
      .api_status = 200,
      .status = 303,
      .asked = "POST /v1/prove {} Bearer " SESSION ";",
      .header = "Location: /account\n" },
    { .name = "recovery codes",
      .method = BH_POST,
      .path = "/account/recovery",
      .cookie = SIGNED_IN,
      .form = "",
      .api_status = 200,
      .api_body = "{\"recovery\":[\"ABCD-EFGH\"]}",
      .status = 200,
      .asked = "POST /v1/account/recovery Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";",
      .body = "<li>ABCD-EFGH</li>" },
    { .name = "a new authenticator app",
      .method = BH_POST,
      .path = "/account/totp/new",
      .cookie = SIGNED_IN,
      .form = "",
      .api_status = 200,
      .api_body = "{\"address\":\"otpauth://totp/a?secret=AB\",\"secret\":\"AB\"}",
      .status = 200,
      .asked = "POST /v1/account/totp Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";",
      .body = "data:image/svg+xml" },
    { .name = "its first code",
      .method = BH_POST,
      .path = "/account/totp",
      .cookie = SIGNED_IN,
      .form = "&code=123456",
      .api_status = 200,
      .status = 303,
      .asked = "PUT /v1/account/totp {\"code\":\"123456\"} Bearer " SESSION ";",
      .header = "Location: /account?notice=totp_added\n" },
    { .name = "a first code that is not the app's",
      .method = BH_POST,
      .path = "/account/totp",
      .cookie = SIGNED_IN,
      .form = "&code=123456",
      .api_status = 400,
      .status = 303,
      .asked = "PUT /v1/account/totp {\"code\":\"123456\"} Bearer " SESSION ";",
      .header = "Location: /account?notice=refused\n" },
    { .name = "a first passkey, with its recovery codes",
      .method = BH_POST,
      .path = "/account/passkey",
      .cookie = SIGNED_IN,
      .form = "&answer=%7B%7D",
      .api_status = 201,
      .api_body = "{\"recovery\":[\"ABCD-EFGH\"]}",
      .status = 200,
      .asked = "POST /v1/account/passkeys {} Bearer " SESSION ";"
               "GET /v1/whoami Bearer " SESSION ";",
      .body = "<li>ABCD-EFGH</li>" },
    { .name = "a passkey more",
      .method = BH_POST,
      .path = "/account/passkey",
      .cookie = SIGNED_IN,
      .form = "&answer=%7B%7D",
      .api_status = 201,
      .status = 303,
      .asked = "POST /v1/account/passkeys {} Bearer " SESSION ";",
      .header = "Location: /account?notice=passkey_added\n" },
    { .name = "a new password, mistyped",
      .method = BH_POST,
      .path = "/account/password",
      .cookie = SIGNED_IN,
      .form = "&old=a&password=bbbbbbbbbbbb&repeated=cccccccccccc",
      .status = 400,
      .asked = "GET /v1/whoami Bearer " SESSION ";",
      .body = "The two passwords differ." },
    { .name = "a new password",
      .method = BH_POST,
      .path = "/account/password",
      .cookie = SIGNED_IN,
      .form = "&old=a&password=bbbbbbbbbbbb&repeated=bbbbbbbbbbbb",
      .api_status = 200,
      .api_body = ACCOUNT,
      .status = 303,
      .asked = "GET /v1/account Bearer " SESSION
               ";PUT /v1/account/password {\"account\":\"ada\",\"old\":\"a\",\"password\":"
               "\"bbbbbbbbbbbb\"} Bearer " SESSION ";",
      .header = "Location: /signin?notice=password_set\n" },
    { .name = "a first visit",
      .method = BH_POST,
      .path = "/enrol",
      .cookie = BEFORE,
      .form = "&account=ada&code=C&password=bbbbbbbbbbbb&repeated=bbbbbbbbbbbb",
      .api_status = 200,
      .api_body = "{\"accounts\":true}",
      .status = 303,
      .asked = "GET /v1/sign-in;PUT /v1/account/password {\"account\":\"ada\",\"enrol\":"
               "\"C\",\"password\":\"bbbbbbbbbbbb\"};",
      .header = "Location: /signin?notice=password_set\n" },
    { .name = "the very first visit",
      .method = BH_POST,
      .path = "/enrol",
      .cookie = BEFORE,
      .form = "&account=ada&code=C&password=bbbbbbbbbbbb&repeated=bbbbbbbbbbbb",
      .api_status = 201,
      .api_body = "{\"accounts\":false,\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "GET /v1/sign-in;POST /v1/sign-in/first {\"account\":\"ada\",\"code\":"
               "\"C\",\"password\":\"bbbbbbbbbbbb\"};",
      .header = session_cookie },
    { .name = "a command line",
      .path = "/sign-in/command-line",
      .query = COMMAND_LINE,
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = ACCOUNT,
      .status = 200,
      .asked = "GET /v1/account Bearer " SESSION ";",
      .header = "form-action 'self' http://127.0.0.1:4711\n",
      .body = "<p class=\"code\">abcdefgh</p>" },
    { .name = "of somebody who is not signed in",
      .path = "/sign-in/command-line",
      .query = COMMAND_LINE,
      .status = 303,
      .header = "Location: /signin?next=%2Fsign-in%2Fcommand-line%3Fchallenge%3D" CHALLENGE
                "%26state%3DS-_1%26host%3Dws%25201%26port%3D4711\n" },
    { .name = "on the way there",
      .path = "/signin",
      .query = "next=%2Fsign-in%2Fcommand-line%3Fhost%3Dws%25201",
      .api_status = 200,
      .status = 200,
      .api_body = "{\"accounts\":true}",
      .asked = "GET /v1/sign-in;",
      .body = "name=\"next\" value=\"/sign-in/command-line?host=ws%201\"" },
    { .name = "a listener without a port",
      .path = "/sign-in/command-line",
      .query = "challenge=" CHALLENGE "&state=S&host=h&port=0",
      .cookie = SIGNED_IN,
      .status = 400,
      .asked = "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "a listener elsewhere",
      .path = "/sign-in/command-line",
      .query = "challenge=" CHALLENGE "&state=S&host=h&port=80%40evil.example",
      .cookie = SIGNED_IN,
      .status = 400,
      .asked = "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "a challenge that is none",
      .path = "/sign-in/command-line",
      .query = "challenge=short&state=S&host=h&port=80",
      .cookie = SIGNED_IN,
      .status = 400,
      .asked = "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "a state that would add a parameter",
      .path = "/sign-in/command-line",
      .query = "challenge=" CHALLENGE "&state=S%26code%3Dx&host=h&port=80",
      .cookie = SIGNED_IN,
      .status = 400,
      .asked = "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "yes to a command line",
      .method = BH_POST,
      .path = "/sign-in/command-line",
      .cookie = SIGNED_IN,
      .form = "&answer=yes&" COMMAND_LINE,
      .api_status = 200,
      .api_body = "{\"code\":\"0123\"}",
      .status = 303,
      .asked =
          "POST /v1/sign-in/grant {\"challenge\":\"" CHALLENGE "\",\"host\":\"ws 1\"} Bearer " SESSION ";",
      .header = "Location: http://127.0.0.1:4711/?code=0123&state=S-_1\n" },
    { .name = "no to a command line",
      .method = BH_POST,
      .path = "/sign-in/command-line",
      .cookie = SIGNED_IN,
      .form = "&answer=no&" COMMAND_LINE,
      .status = 303,
      .header = "Location: http://127.0.0.1:4711/?error=access_denied&state=S-_1\n" },
    { .name = "yes from elsewhere",
      .method = BH_POST,
      .path = "/sign-in/command-line",
      .cookie = SIGNED_IN,
      .status = 403,
      .asked = "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "to a provider",
      .path = "/signin/provider",
      .query = "provider=corp&next=%2Fagain%3Fnext%3D%2Faccount",
      .api_status = 200,
      .api_body = "{\"address\":\"https://op.example/?x=1\",\"id\":\"00ff\"}",
      .status = 303,
      .asked = "POST /v1/sign-in/issuer {\"again\":false,\"issuer\":\"corp\"};",
      .header = "Set-Cookie: __Host-bulkhead-login=00ff.%2Fagain%3Fnext%3D%2Faccount; "
                "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600\n"
                "Location: https://op.example/?x=1\n" },
    { .name = "a provider that is silent",
      .path = "/signin/provider",
      .query = "provider=corp",
      .api_status = 503,
      .status = 503,
      .asked = "POST /v1/sign-in/issuer {\"again\":false,\"issuer\":\"corp\"};"
               "GET /v1/sign-in;" },
    { .name = "back from a provider",
      .path = "/signin/callback",
      .query = "code=C%2F1&state=S",
      .cookie = "__Host-bulkhead-login=00ff.%2Fagain%3Fnext%3D%2Faccount",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in/issuer/00ff {\"query\":\"code=C%2F1&state=S\"};",
      .header = session_cookie },
    { .name = "and on to where it began",
      .path = "/signin/callback",
      .query = "code=C",
      .cookie = "__Host-bulkhead-login=00ff.%2Fagain%3Fnext%3D%2Faccount",
      .api_status = 201,
      .api_body = "{\"session\":\"" SESSION "\"}",
      .status = 303,
      .asked = "POST /v1/sign-in/issuer/00ff {\"query\":\"code=C\"};",
      .header = "Location: /again?next=/account\n" },
    { .name = "back, having shown again who one is",
      .path = "/signin/callback",
      .query = "code=C",
      .cookie = SIGNED_IN "; __Host-bulkhead-login=00ff.%2Faccount",
      .api_status = 200,
      .api_body = "{\"level\":\"code\"}",
      .status = 303,
      .asked = "POST /v1/sign-in/issuer/00ff {\"query\":\"code=C\"} Bearer " SESSION ";",
      .header = "Location: /account\n" },
    { .name = "back without having gone",
      .path = "/signin/callback",
      .query = "code=C",
      .api_status = 200,
      .status = 403,
      .asked = "GET /v1/sign-in;" },
    { .name = "back with an id that leads elsewhere",
      .path = "/signin/callback",
      .query = "code=C",
      .cookie = "__Host-bulkhead-login=../x.%2F",
      .api_status = 200,
      .status = 403,
      .asked = "GET /v1/sign-in;" },
    { .name = "signing out",
      .method = BH_POST,
      .path = "/signout",
      .cookie = SIGNED_IN,
      .form = "",
      .api_status = 200,
      .status = 303,
      .asked = "POST /v1/sign-out Bearer " SESSION ";",
      .header = no_cookie },
    { .name = "signing out of a provider's session",
      .method = BH_POST,
      .path = "/signout",
      .cookie = SIGNED_IN,
      .form = "",
      .api_status = 200,
      .api_body = "{\"logout\":\"https://op.example/out\"}",
      .status = 200,
      .asked = "POST /v1/sign-out Bearer " SESSION ";",
      .header = no_cookie,
      .body = "href=\"https://op.example/out\"" },
    { .name = "a page before a second factor",
      .path = "/tenants",
      .cookie = SIGNED_IN,
      .api_status = 403,
      .api_body = "{\"via\":\"session\",\"scopes\":\"account.own session.own\"}",
      .status = 303,
      .asked = "GET /v1/tenants Bearer " SESSION ";GET /v1/whoami Bearer " SESSION ";",
      .header = "Location: /account\n" },
    { .name = "a page in another way",
      .method = BH_DELETE,
      .path = "/account",
      .cookie = SIGNED_IN,
      .status = 405,
      .asked = "GET /v1/whoami Bearer " SESSION ";",
      .header = "Allow: GET\n" },
    { .name = "a page of panels in another way", .method = BH_POST, .path = "/jobs", .status = 405 },
    { .name = "what is not there, to a stranger",
      .path = "/nothing",
      .status = 404,
      .body = "<a href=\"/signin\">Sign in</a>" },
    { .name = "what is not there, to a person",
      .path = "/nothing",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = "{\"name\":\"ada\",\"roles\":[{\"role\":\"auditor\"}]}",
      .status = 404,
      .asked = "GET /v1/whoami Bearer " SESSION ";",
      .body = "<a href=\"/audit\">Audit</a>" },
    { .name = "an asset of another version", .path = "/assets/style.000000000000.css", .status = 404 },
    { .name = "metrics", .path = "/metrics", .api_status = 200, .status = 200, .asked = "GET /metrics;" },
    { .name = "a proof as a file",
      .path = "/audit/proof",
      .query = "record=7",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = "{\"proof\":\"c2sp.org/tlog-proof@v1\\n\"}",
      .status = 200,
      .asked = "GET /v1/records/7/proof Bearer " SESSION ";",
      .header = "Content-Disposition: attachment; filename=\"7.tlog-proof\"\n",
      .body = "c2sp.org/tlog-proof@v1\n" },
    { .name = "a proof of what is no record",
      .path = "/audit/proof",
      .query = "record=7%0A%22",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .status = 404,
      .asked = "GET /v1/whoami Bearer " SESSION ";" },
    { .name = "a proof that is not to be had",
      .path = "/audit/proof",
      .query = "record=7",
      .cookie = SIGNED_IN,
      .api_status = 404,
      .status = 404,
      .asked = "GET /v1/records/7/proof Bearer " SESSION ";GET /v1/whoami Bearer " SESSION ";" },
    { .name = "a proof after the session",
      .path = "/audit/proof",
      .query = "record=7",
      .cookie = SIGNED_IN,
      .api_status = 401,
      .status = 303,
      .asked = "GET /v1/records/7/proof Bearer " SESSION ";",
      .header = "Location: /signin?next=%2Faudit%2Fproof%3Frecord%3D7&notice=session_over\n" },
    { .name = "whether one log begins another",
      .path = "/audit/consistency",
      .query = "old=1&new=2",
      .cookie = SIGNED_IN,
      .api_status = 200,
      .api_body = "{\"hashes\":[]}",
      .status = 200,
      .asked = "GET /v1/consistency Bearer " SESSION ";",
      .body = "{\"hashes\":[]}" },
};

static void
pages(void **state)
{
    static const struct bh_crypto_ops crypto = { .random = zeros };
    struct bh_web *web =
        bh_web_new(&(struct bh_web_options){ .api = web_test_answer, .crypto = &crypto, .site = "GPUs" });

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        web_test_check(web, &rows[i]);
    bh_web_free(web);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(pages) };

BH_TEST_MAIN(tests)
