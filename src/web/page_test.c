/* What a page has in common with all others: who it is for, and what it says where the API refuses. */
#include "web/page.h"

#include "base/test.h"

#define SESSION "bs_abcdefghijkl_SECRET"

static struct {
    uint32_t status;
    const char *body;
    uint32_t questions, whoamis;
} api;

static void
page_test_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    api.questions++;
    api.whoamis += strcmp(request->path, "/v1/whoami") == 0;
    reply->status = api.status;
    reply->known = true;
    reply->principal = 7;
    snprintf(reply->who, sizeof reply->who, "ada");
    bh_buf_puts(&reply->body, api.body);
}

static bh_rc
page_test_random(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

static const char *
page_test_query(const struct bh_request *request, const char *name)
{
    return NULL;
}

static void
page_test_each_query(const struct bh_request *request,
                     void (*sink)(void *self, const char *name, const char *value), void *self)
{
}

/* Visit a page, or post `form` behind the token; the reply's headers lie in the arena. */
static void
page_test_visit(const char *path, const char *form, struct bh_arena *arena, struct bh_reply *ret_reply)
{
    static const struct bh_crypto_ops crypto = { .random = page_test_random };
    struct bh_web web = { .options = { .api = page_test_answer, .crypto = &crypto, .site = "GPUs" } };
    char token[BH_SECRET_TEXT], body[256] = "";
    struct bh_request request = { .method = form ? BH_POST : BH_GET,
                                  .path = path,
                                  .body = body,
                                  .cookie = "__Host-bulkhead=" SESSION,
                                  .host = "gpu.example",
                                  .origin = "https://gpu.example",
                                  .content_type = "application/x-www-form-urlencoded",
                                  .arena = arena,
                                  .query = page_test_query,
                                  .each_query = page_test_each_query };

    bh_csrf_token(SESSION, token);
    if (form)
        snprintf(body, sizeof body, "csrf=%s&%s", token, form);
    request.body_length = strlen(body);
    api.questions = api.whoamis = 0;
    bh_buf_init(&ret_reply->body, 1 << 20);
    bh_web_handle(&web, &request, ret_reply);
}

static const char *
page_test_header(const struct bh_reply *reply, const char *name)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return "";
}

/* The frame, buttons and an error page go by who asks. */
static void
who_it_is_for_is_asked_once(void **state)
{
    static const struct {
        const char *path, *body;
        uint32_t api_status, status, questions;
    } cases[] = {
        { "/layouts/rollback", "{\"roles\":[{\"role\":\"operator\",\"tenant\":\"*\"}]}", 200, 200, 1 },
        { "/layouts/rollback", "{\"roles\":[{\"role\":\"operator\",\"tenant\":\"acme\"}]}", 200, 404, 1 },
        { "/tenants", "{}", 403, 404, 2 },
        { "/tenants", "{\"via\":\"session\",\"scopes\":\"account.own\"}", 403, 303, 2 },
        { "/site", "{\"name\":\"ada\",\"roles\":[{\"role\":\"operator\",\"tenant\":\"*\"}]}", 200, 200, 5 },
        { "/submit", "{\"name\":\"ada\",\"items\":[]}", 200, 200, 4 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_reply reply = { 0 };

        api.status = cases[i].api_status;
        api.body = cases[i].body;
        page_test_visit(cases[i].path, NULL, arena, &reply);
        BH_CHECK_EQ(cases[i].path, reply.status, cases[i].status);
        BH_CHECK_EQ(cases[i].path, api.whoamis, 1);
        BH_CHECK_EQ(cases[i].path, api.questions, cases[i].questions);
        bh_buf_fini(&reply.body);
    }
    BH_CHECK_DONE();
}

static void
a_refusal_says_its_cause(void **state)
{
    static const struct {
        uint32_t status;
        const char *body, *location;
    } cases[] = {
        { 400, "{}", "/account?notice=malformed" },   { 401, "{}", "/signin?notice=session_over" },
        { 403, "{}", "/account?notice=denied" },      { 429, "{}", "/account?notice=busy" },
        { 500, "{}", "/account?notice=unavailable" }, { 503, "{}", "/account?notice=unavailable" },
        { 507, "{}", "/account?notice=full" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_reply reply = { 0 };
        char name[8];

        snprintf(name, sizeof name, "%u", cases[i].status);
        api.status = cases[i].status;
        api.body = cases[i].body;
        page_test_visit("/account/token/revoke", "id=7", arena, &reply);
        BH_CHECK_EQ(name, reply.status, 303);
        BH_CHECK_STR(name, page_test_header(&reply, "Location"), cases[i].location);
        bh_buf_fini(&reply.body);
    }
    BH_CHECK_DONE();
}

/* The browser forgets the session in any case; that it goes on at the server is said. */
static void
a_session_that_could_not_be_ended_is_not_called_ended(void **state)
{
    static const struct {
        uint32_t status;
        const char *location;
    } cases[] = {
        { 200, "/signedout" },
        { 401, "/signedout" },
        { 429, "/signin?notice=session_left" },
        { 503, "/signin?notice=session_left" },
        { 507, "/signin?notice=session_left" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_reply reply = { 0 };
        char name[8];

        snprintf(name, sizeof name, "%u", cases[i].status);
        api.status = cases[i].status;
        api.body = "{}";
        page_test_visit("/signout", "", arena, &reply);
        BH_CHECK_STR(name, page_test_header(&reply, "Location"), cases[i].location);
        BH_CHECK(name, strstr(page_test_header(&reply, "Set-Cookie"), "Max-Age=0"));
        bh_buf_fini(&reply.body);
    }
    BH_CHECK_DONE();
}

/* So that its connection counts for that principal. */
static void
a_page_says_whose_connection_it_is(void **state)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_reply reply = { 0 };

    api.status = 200;
    api.body = "{}";
    page_test_visit("/tenants", NULL, arena, &reply);
    BH_CHECK("known", reply.known);
    BH_CHECK_EQ("principal", reply.principal, 7);
    BH_CHECK_STR("name", reply.who, "ada");
    bh_buf_fini(&reply.body);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_it_is_for_is_asked_once), cmocka_unit_test(a_refusal_says_its_cause),
    cmocka_unit_test(a_session_that_could_not_be_ended_is_not_called_ended),
    cmocka_unit_test(a_page_says_whose_connection_it_is)
};

BH_TEST_MAIN(tests)
