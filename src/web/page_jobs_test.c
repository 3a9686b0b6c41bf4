/* Pages about a job that are forms or follow one, before an API that answers from fixtures/: what it is
 * asked, and what they come to.  A POST to /v1/jobs has post_v1_jobs.json. */
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "web/form.h"
#include "web/golden_test.h"
#include "web/page.h"

#define SESSION "bs_abcdefghijkl_SECRET"
#define COOKIE "__Host-bulkhead=" SESSION

static const char *golden_folder, *build_folder, *fixture_folder;

/* What the API refuses in this round: POSTs alone, or all. */
static struct {
    const char *path, *body;
    uint32_t status;
    bool posts;
} refused;

/* The last POST that the API was asked. */
static struct {
    char path[256], query[256], body[4096], key[64], bearer[64];
} posted;

static struct bh_form given; /* the visit's query */

static void
jobs_put_parameter(void *self, const char *name, const char *value)
{
    bh_form_put(self, name, value);
}

static void
jobs_keep(const struct bh_request *request)
{
    struct bh_buf query;

    bh_buf_init_fixed(&query, posted.query, sizeof posted.query);
    request->each_query(request, jobs_put_parameter, &query);
    if (!bh_buf_text(&query))
        posted.query[0] = '\0';
    snprintf(posted.path, sizeof posted.path, "%s", request->path);
    snprintf(posted.body, sizeof posted.body, "%s", request->body);
    snprintf(posted.key, sizeof posted.key, "%s", request->idempotency_key ? request->idempotency_key : "");
    snprintf(posted.bearer, sizeof posted.bearer, "%s", request->authorization);
}

static void
jobs_stream_begin(void *self, const struct bh_waker *waker)
{
}

static long
jobs_stream_read(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    uint32_t *left = self;

    if (*left == 0)
        return BH_STREAM_OVER;
    (*left)--;
    return snprintf(memory, size, "line\n");
}

static void
jobs_stream_close(void *self)
{
}

static void
jobs_answer_fixture(const struct bh_request *request, struct bh_reply *reply)
{
    char path[1024];
    size_t begin = (size_t)snprintf(path, sizeof path, "%s/", fixture_folder);

    snprintf(path + begin, sizeof path - begin, "%s%s.json", request->method == BH_POST ? "post_" : "",
             request->path + 1);
    for (char *at = path + begin; *at; at++)
        *at = *at == '/' ? '_' : *at;
    bh_golden_read(path, &reply->body);
    if (reply->body.length == 0)
        bh_buf_puts(&reply->body, "{\"id\":17}");
}

static void
jobs_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    static uint32_t left;

    reply->status = 200;
    if (request->method == BH_POST)
        jobs_keep(request);
    if (refused.path && strcmp(refused.path, request->path) == 0
        && (!refused.posts || request->method == BH_POST)) {
        reply->status = refused.status;
        bh_buf_puts(&reply->body, refused.body ? refused.body : "{\"error\":{\"message\":\"no\"}}");
    } else if (strstr(request->path, "/logs")) {
        left = 2;
        reply->content_type = "text/plain; charset=utf-8";
        reply->stream = (struct bh_stream){ jobs_stream_begin, jobs_stream_read, jobs_stream_close, &left };
    } else {
        jobs_answer_fixture(request, reply);
    }
}

static bh_rc
jobs_zeros(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

static bh_ns
jobs_now(void)
{
    return 1795878983 * BH_NS_PER_S;
}

static const char *
jobs_query(const struct bh_request *request, const char *name)
{
    return bh_form_get(&given, name);
}

static void
jobs_each_query(const struct bh_request *request,
                void (*sink)(void *self, const char *name, const char *value), void *self)
{
    for (uint32_t i = 0; i < given.count; i++)
        sink(self, given.pairs[i].name, given.pairs[i].value);
}

/* GET, or POST of a form where `form` is one; the reply's body is the caller's to release. */
struct visit {
    const char *path, *query, *form;
    struct bh_reply reply;
    char stream[256], location[256], disposition[128]; /* copied: headers live as long as the request */
};

static void
jobs_read_stream(struct visit *visit)
{
    struct bh_stream *stream = &visit->reply.stream;
    static const struct bh_waker none = { 0 };
    size_t length = 0;
    bh_ns again;
    long got;

    if (!stream->read)
        return;
    stream->begin(stream->self, &none);
    while (
        (got = stream->read(stream->self, visit->stream + length, sizeof visit->stream - length - 1, &again))
        > 0)
        length += (size_t)got;
    stream->close(stream->self);
}

static const char *
jobs_header(const struct bh_reply *reply, const char *name)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return "";
}

static void
jobs_visit(struct visit *visit)
{
    static const struct bh_crypto_ops crypto = { .random = jobs_zeros };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 << 20);
    struct bh_web *web = bh_web_new(&(struct bh_web_options){
        .api = jobs_answer, .crypto = &crypto, .site = "Example's GPUs", .now = jobs_now });
    char token[BH_SECRET_TEXT], body[4096] = "";
    const char *query = visit->query ? visit->query : "";
    struct bh_request request = { .method = visit->form ? BH_POST : BH_GET,
                                  .path = visit->path,
                                  .body = body,
                                  .cookie = COOKIE,
                                  .host = "gpu.example",
                                  .origin = "https://gpu.example",
                                  .content_type = "application/x-www-form-urlencoded",
                                  .arena = arena,
                                  .query = jobs_query,
                                  .each_query = jobs_each_query };

    bh_csrf_token(SESSION, token);
    if (visit->form)
        request.body_length =
            (size_t)snprintf(body, sizeof body, "csrf=%s%s%s", token, visit->form[0] ? "&" : "", visit->form);
    given.count = 0;
    if (query[0])
        assert_int_equal(bh_form_parse(query, strlen(query), &given), BH_FAULT_NONE);
    memset(&posted, 0, sizeof posted);
    bh_buf_init(&visit->reply.body, 4 << 20);
    bh_web_handle(web, &request, &visit->reply);
    jobs_read_stream(visit);
    snprintf(visit->location, sizeof visit->location, "%s", jobs_header(&visit->reply, "Location"));
    snprintf(visit->disposition, sizeof visit->disposition, "%s",
             jobs_header(&visit->reply, "Content-Disposition"));
    bh_web_free(web);
}

#define JOB_FORM                                                                                                      \
    "tenant=acme%2Fvision%2Ftrain&sku=small&args=sh+-c+'echo+%22%3Cb%3E%22'%0D%0A--x&mounts=dataset%3Dimagenet%0D%0A" \
    "%2Fdata%3A%2Fin%3Arw&count=2&network=egress&hold=true&env=A%3D1&once=ONCE"

static const struct {
    const char *golden, *path, *query, *form;
    const char *refused, *answer;
    uint32_t status;
} pages[] = {
    { "submit", "/submit", NULL, NULL, NULL, NULL, 200 },
    { "submit_like", "/submit", "like=1", NULL, NULL, NULL, 200 },
    { "submit_preview", "/submit", NULL, JOB_FORM "&do=preview", NULL, NULL, 200 },
    { "submit_refused", "/submit", NULL, JOB_FORM "&do=submit", "/v1/jobs",
      "{\"error\":{\"message\":\"mounts[1]: acme/vision/train may not mount </p><b>\",\"next\":\"an admin can add it\"}}",
      403 },
    { "submit_malformed", "/submit", NULL, "sku=small&args='a&once=ONCE&do=submit", NULL, NULL, 400 },
    { "job_cancel", "/jobs/1/cancel", NULL, NULL, NULL, NULL, 200 },
    { "job_verify", "/jobs/1/verify", NULL, "", NULL, NULL, 200 },
};

static void
whole_pages(void **state)
{
    for (size_t i = 0; i < BH_COUNT(pages); i++) {
        struct visit visit = { pages[i].path, pages[i].query, pages[i].form };

        refused.path = pages[i].refused;
        refused.body = pages[i].answer;
        refused.status = 403;
        refused.posts = true;
        jobs_visit(&visit);
        BH_CHECK_EQ(pages[i].golden, visit.reply.status, pages[i].status);
        BH_CHECK(pages[i].golden, bh_golden_matches(golden_folder, build_folder, pages[i].golden,
                                                    bh_buf_text(&visit.reply.body)));
        bh_buf_fini(&visit.reply.body);
    }
    memset(&refused, 0, sizeof refused);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *path, *form;
    const char *asked, *query, *body; /* of the API */
    const char *refused;              /* with this path, and this status: */
    uint32_t answer, status;
    const char *location;
} changes[] = {
    { "cancel", "/jobs/1/cancel", "", "/v1/jobs/1/cancel", "", "", NULL, 0, 303,
      "/jobs/1?notice=job_cancelled" },
    { "cancel at once", "/jobs/1/cancel", "now=true", "/v1/jobs/1/cancel", "now=true", "", NULL, 0, 303,
      "/jobs/1?notice=job_cancelled" },
    { "release", "/jobs/1/release", "", "/v1/jobs/1/release", "", "", NULL, 0, 303,
      "/jobs/1?notice=job_released" },
    { "it has ended meanwhile", "/jobs/1/cancel", "", "/v1/jobs/1/cancel", "", "", "/v1/jobs/1/cancel", 409,
      303, "/jobs/1?notice=job_changed" },
    { "it may not", "/jobs/1/release", "", "/v1/jobs/1/release", "", "", "/v1/jobs/1/release", 403, 303,
      "/jobs/1?notice=job_changed" },
    { "it is not there", "/jobs/1/release", "", "/v1/jobs/1/release", "", "", "/v1/jobs/1/release", 404, 404,
      "" },
    { "the session is over", "/jobs/1/verify", "", "/v1/jobs/1/verify", "", "", "/v1/jobs/1/verify", 401, 303,
      "/signin?notice=session_over" },
    { "the service is not there", "/jobs/1/release", "", "/v1/jobs/1/release", "", "", "/v1/jobs/1/release",
      503, 303, "/jobs/1?notice=unavailable" },
    { "asked too often", "/jobs/1/release", "", "/v1/jobs/1/release", "", "", "/v1/jobs/1/release", 429, 303,
      "/jobs/1?notice=busy" },
    { "submit", "/submit", JOB_FORM "&do=submit", "/v1/jobs", "",
      "{\"tenant\":\"acme/vision/train\",\"sku\":\"small\",\"args\":[\"sh\",\"-c\",\"echo \\\"<b>\\\"\",\"--x\"],"
      "\"mounts\":[{\"dataset\":\"imagenet\"},{\"source\":\"/data\",\"target\":\"/in\",\"write\":true}],\"count\":2,"
      "\"network\":\"egress\",\"hold\":true,\"env\":[\"A=1\"]}",
      NULL, 0, 303, "/jobs/0?notice=job_submitted" },
};

static void
what_is_posted_is_asked(void **state)
{
    for (size_t i = 0; i < BH_COUNT(changes); i++) {
        struct visit visit = { changes[i].path, NULL, changes[i].form };

        refused.path = changes[i].refused;
        refused.status = changes[i].answer;
        jobs_visit(&visit);
        BH_CHECK_EQ(changes[i].name, visit.reply.status, changes[i].status);
        BH_CHECK_STR(changes[i].name, visit.location, changes[i].location);
        BH_CHECK_STR(changes[i].name, posted.path, changes[i].asked);
        BH_CHECK_STR(changes[i].name, posted.query, changes[i].query);
        BH_CHECK_STR(changes[i].name, posted.body, changes[i].body);
        BH_CHECK_STR(changes[i].name, posted.bearer, "Bearer " SESSION);
        bh_buf_fini(&visit.reply.body);
    }
    memset(&refused, 0, sizeof refused);
    BH_CHECK_DONE();
}

/* The key under which a form submits. */
static void
jobs_submit(const char *form, char key[64])
{
    struct visit visit = { "/submit", NULL, form };

    jobs_visit(&visit);
    bh_buf_fini(&visit.reply.body);
    snprintf(key, 64, "%s", posted.key);
}

static void
a_form_submits_once(void **state)
{
    char first[64], again[64], changed[64], other[64];

    jobs_submit(JOB_FORM "&do=submit", first);
    jobs_submit(JOB_FORM "&do=submit", again);
    jobs_submit(JOB_FORM "&name=x&do=submit", changed);
    jobs_submit("sku=small&args=true&once=TWICE&do=submit", other);
    BH_CHECK("a key", first[0]);
    BH_CHECK_STR("the same when it is sent twice", again, first);
    BH_CHECK("another for another job", strcmp(changed, first) != 0);
    BH_CHECK("and for another form", strcmp(other, first) != 0);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *path;
    uint32_t answer; /* of the API; 0: well */
    uint32_t status;
    const char *stream, *disposition;
} outputs[] = {
    { "a file", "/jobs/1/log/file", 0, 200, "line\nline\n", "attachment; filename=\"job-1.log\"" },
    { "live", "/jobs/1/log/live", 0, 200, "line\nline\n", "" },
    { "not to be read", "/jobs/1/log/file", 403, 404, "", "" },
    { "not there", "/jobs/1/log/file", 404, 404, "", "" },
    { "live, not to be read", "/jobs/1/log/live", 403, 404, "", "" },
    { "too many streams", "/jobs/1/log/live", 429, 200, "", "" },
    { "the session is over", "/jobs/1/log/live", 401, 200, "", "" },
    { "too many files", "/jobs/1/log/file", 429, 429, "", "" },
};

static void
output_is_passed_on(void **state)
{
    for (size_t i = 0; i < BH_COUNT(outputs); i++) {
        struct visit visit = { outputs[i].path, "member=1&offset=7", NULL };

        refused.path = outputs[i].answer ? "/v1/jobs/1/logs" : NULL;
        refused.status = outputs[i].answer;
        jobs_visit(&visit);
        BH_CHECK_EQ(outputs[i].name, visit.reply.status, outputs[i].status);
        BH_CHECK_STR(outputs[i].name, visit.stream, outputs[i].stream);
        BH_CHECK_STR(outputs[i].name, visit.disposition, outputs[i].disposition);
        bh_buf_fini(&visit.reply.body);
    }
    memset(&refused, 0, sizeof refused);
    BH_CHECK_DONE();
}

/* What may not be seen has the bytes of what is not there. */
static void
a_guess_says_nothing(void **state)
{
    static const char *const paths[] = { "/jobs/1/cancel", "/jobs/1/log/file", "/jobs/1/log/live" };

    for (size_t i = 0; i < BH_COUNT(paths); i++) {
        struct visit foreign = { paths[i] }, absent = { paths[i] };

        refused.path = strstr(paths[i], "log") ? "/v1/jobs/1/logs" : "/v1/jobs/1";
        refused.status = 403;
        jobs_visit(&foreign);
        refused.status = 404;
        jobs_visit(&absent);
        BH_CHECK_EQ(paths[i], foreign.reply.status, 404);
        BH_CHECK_STR(paths[i], bh_buf_text(&foreign.reply.body), bh_buf_text(&absent.reply.body));
        bh_buf_fini(&foreign.reply.body);
        bh_buf_fini(&absent.reply.body);
    }
    memset(&refused, 0, sizeof refused);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pages),          cmocka_unit_test(what_is_posted_is_asked),
        cmocka_unit_test(a_form_submits_once),  cmocka_unit_test(output_is_passed_on),
        cmocka_unit_test(a_guess_says_nothing),
    };

    if (argc != 4) {
        fprintf(stderr, "usage: %s GOLDEN-FOLDER BUILD-FOLDER FIXTURE-FOLDER\n", argv[0]);
        return 2;
    }
    golden_folder = argv[1];
    build_folder = argv[2];
    fixture_folder = argv[3];
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
