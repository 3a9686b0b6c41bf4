/* What operators' forms ask of the API, and where the browser goes then. */
#include <stdio.h>

#include "base/attr.h"
#include "base/test.h"
#include "web/form.h"
#include "web/web.h"

#define SESSION "bs_abcdefghijkl_SECRET"
#define GPU "GPU-1bd7ab2e"

/* ---- the API ---- */

static struct {
    uint32_t status; /* of what is asked but for who asks */
    const char *body, *role;
    char asked[2048]; /* "POST /v1/cordon {...};" */
} api;

static void
operate_test_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    size_t used = strlen(api.asked);

    reply->status = 200;
    if (strcmp(request->path, "/v1/whoami") == 0) {
        bh_buf_printf(&reply->body, "{\"name\":\"erin\",\"roles\":[{\"role\":\"%s\",\"tenant\":\"*\"}]}",
                      api.role);
        return;
    }
    snprintf(api.asked + used, sizeof api.asked - used, "%s %s%s%s;", bh_method_names[request->method],
             request->path, request->body[0] ? " " : "", request->body);
    reply->status = api.status;
    bh_buf_puts(&reply->body, api.body ? api.body : "{}");
}

static const char *parameters; /* the query; NULL: none */

static const char *
operate_test_query(const struct bh_request *request, const char *name)
{
    static struct bh_form form;

    if (!parameters || bh_form_parse(parameters, strlen(parameters), &form) != BH_FAULT_NONE)
        return NULL;
    return bh_form_get(&form, name);
}

static void
operate_test_each(const struct bh_request *request,
                  void (*sink)(void *self, const char *name, const char *value), void *self)
{
}

static bh_rc
operate_test_zeros(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

/* ---- the cases ---- */

#define TARGET "folder=%2Fgpus%2F&target=" GPU
#define REFUSAL "{\"error\":{\"message\":\"alice may not use <gpu.cordon>\",\"next\":\"ask an operator\"}}"
#define WHATIF                                                                                               \
    "{\"assumption\":\"nothing else happens\",\"changes\":[{\"after_ns\":\"1795878983000000000\",\"job\":7," \
    "\"kind\":\"requeued\",\"tenant\":\"acme/vision\"}]}"
#define PLAN                                                                                                 \
    "{\"plan\":{\"cost_gpu_ms\":1000,\"gain_gpu_ms\":60000,\"moves\":[{\"job\":7,\"tenant\":\"acme\"}],"     \
    "\"token\":\"t1\"}}"

static const struct row {
    const char *name;
    enum bh_method method;
    const char *path, *query, *form, *role;
    uint32_t api_status;
    const char *api_body;
    uint32_t status;
    const char *asked, *location, *body; /* NULL: none; not looked at */
} rows[] = {
    { .name = "cordon",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=cordon&" TARGET "&reason=fan+noise",
      .status = 303,
      .asked = "POST /v1/cordon {\"target\":\"" GPU "\",\"reason\":\"fan noise\"};",
      .location = "/gpus/" GPU "?notice=cordoned" },
    { .name = "uncordon",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=uncordon&" TARGET,
      .status = 303,
      .asked = "POST /v1/uncordon {\"target\":\"" GPU "\"};",
      .location = "/gpus/" GPU "?notice=uncordoned" },
    { .name = "clear a fault",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=clear&" TARGET,
      .status = 303,
      .asked = "POST /v1/uncordon {\"target\":\"" GPU "\",\"clear_fault\":true};",
      .location = "/gpus/" GPU "?notice=cleared" },
    { .name = "drain a node at once",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=drain_now&folder=%2Fnodes%2F&target=n%201",
      .status = 303,
      .asked = "POST /v1/drain {\"target\":\"n 1\",\"now\":true};",
      .location = "/nodes/n%201?notice=draining" },
    { .name = "a verb that is none",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=burn&" TARGET,
      .status = 400 },
    { .name = "a folder that leads elsewhere",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=cordon&folder=%2F%2Fevil%2F&target=x",
      .status = 400 },
    { .name = "refused",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=cordon&" TARGET,
      .api_status = 403,
      .api_body = REFUSAL,
      .status = 403,
      .asked = "POST /v1/cordon {\"target\":\"" GPU "\"};",
      .body = "alice may not use &lt;gpu.cordon&gt;" },
    { .name = "no longer there",
      .method = BH_POST,
      .path = "/hold",
      .form = "&verb=cordon&" TARGET,
      .api_status = 404,
      .status = 303,
      .asked = "POST /v1/cordon {\"target\":\"" GPU "\"};",
      .location = "/gpus/" GPU "?notice=gone" },
    { .name = "what a drain would do",
      .path = "/hold",
      .query = TARGET,
      .api_body = WHATIF,
      .status = 200,
      .asked =
          "POST /v1/whatif {\"drain\":\"" GPU "\"};POST /v1/whatif {\"drain\":\"" GPU "\",\"now\":true};",
      .body = "is stopped and queued again" },
    { .name = "what a drain would do, for others",
      .path = "/hold",
      .query = TARGET,
      .api_status = 403,
      .status = 404,
      .asked = "POST /v1/whatif {\"drain\":\"" GPU "\"};" },
    { .name = "rollback asks again",
      .path = "/layouts/rollback",
      .status = 200,
      .body = "no job ends for it" },
    { .name = "rollback, for others", .path = "/layouts/rollback", .role = "viewer", .status = 404 },
    { .name = "rollback",
      .method = BH_POST,
      .path = "/layouts/rollback",
      .form = "",
      .status = 303,
      .asked = "POST /v1/layouts/rollback;",
      .location = "/site?notice=rolled_back" },
    { .name = "moves ask again",
      .path = "/defrag",
      .api_body = PLAN,
      .status = 200,
      .asked = "GET /v1/defrag;",
      .body = "value=\"t1\"" },
    { .name = "a plan that is gone",
      .path = "/defrag",
      .status = 303,
      .asked = "GET /v1/defrag;",
      .location = "/forecast?notice=plan_gone" },
    { .name = "moves",
      .method = BH_POST,
      .path = "/defrag",
      .form = "&token=t1",
      .status = 303,
      .asked = "POST /v1/defrag {\"token\":\"t1\"};",
      .location = "/forecast?notice=moving" },
    { .name = "declined",
      .method = BH_POST,
      .path = "/defrag/decline",
      .form = "&token=t1",
      .status = 303,
      .location = "/forecast?notice=declined" },
    { .name = "verify",
      .method = BH_POST,
      .path = "/verify",
      .form = "&node=vm",
      .status = 303,
      .asked = "POST /v1/verify;",
      .location = "/nodes/vm?notice=verified" },
    { .name = "policies",
      .method = BH_POST,
      .path = "/site/policies/test",
      .form = "",
      .api_body =
          "{\"denied\":1,\"items\":[{\"entry\":\"kinds\",\"job\":3,\"sentence\":\"not <this>\"}],\"tested\":9}",
      .status = 200,
      .asked = "POST /v1/policy/test {};",
      .body = "not &lt;this&gt;" },
    { .name = "without a token", .method = BH_POST, .path = "/hold", .form = NULL, .status = 403 },
};

static const char *
operate_test_location(const struct bh_reply *reply)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, "Location") == 0)
            return reply->headers[i].value;
    return "";
}

static void
operate_test_row(const struct row *row)
{
    static const struct bh_crypto_ops crypto = { .random = operate_test_zeros };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 << 20);
    struct bh_web *web =
        bh_web_new(&(struct bh_web_options){ .api = operate_test_answer, .crypto = &crypto, .site = "GPUs" });
    char form[1024] = "", token[BH_SECRET_TEXT];
    struct bh_request request = { .method = row->method,
                                  .path = row->path,
                                  .body = form,
                                  .cookie = "__Host-bulkhead=" SESSION,
                                  .host = "gpu.example",
                                  .origin = "https://gpu.example",
                                  .content_type = "application/x-www-form-urlencoded",
                                  .arena = arena,
                                  .query = operate_test_query,
                                  .each_query = operate_test_each };
    struct bh_reply reply = { 0 };

    bh_csrf_token(SESSION, token);
    if (row->form)
        snprintf(form, sizeof form, "csrf=%s%s", token, row->form);
    request.body_length = strlen(form);
    parameters = row->query;
    api.role = row->role ? row->role : "admin";
    api.status = row->api_status ? row->api_status : 200;
    api.body = row->api_body;
    api.asked[0] = '\0';
    bh_buf_init(&reply.body, 1 << 20);
    bh_web_handle(web, &request, &reply);
    BH_CHECK_EQ(row->name, reply.status, row->status);
    BH_CHECK_STR(row->name, api.asked, row->asked ? row->asked : "");
    BH_CHECK_STR(row->name, operate_test_location(&reply), row->location ? row->location : "");
    BH_CHECK(row->name, !row->body || strstr(bh_buf_text(&reply.body), row->body));
    bh_buf_fini(&reply.body);
    bh_web_free(web);
}

static void
forms(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        operate_test_row(&rows[i]);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(forms) };
BH_TEST_MAIN(tests)
