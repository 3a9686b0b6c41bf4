/* Every page of panels before an API that answers from fixtures/: v1_gpus.json is what GET /v1/gpus
 * says.  A panel without a fixture fails. */
#include <stdio.h>

#include "base/attr.h"
#include "web/golden_test.h"
#include "web/view.h"

#define SESSION "bs_abcdefghijkl_SECRET"
#define COOKIE "__Host-bulkhead=" SESSION

static const char *golden_folder, *build_folder, *fixture_folder;

/* The address under which a page is tried, where it has a variable part. */
static const char *const addresses[BH_SITE_VIEWS] = {
#define BH_VIEW(view, path, section, title, command) [BH_SITE_VIEW_##view] = path,
#define BH_PANEL(view, id, title, question, live, function)
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
};

static const char *const names[BH_SITE_VIEWS] = {
#define BH_VIEW(view, path, section, title, command) [BH_SITE_VIEW_##view] = #view,
#define BH_PANEL(view, id, title, question, live, function)
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
};

/* What the API refuses in this round. */
static struct {
    const char *path;
    uint32_t status;
} refused;

static const char *parameter_name, *parameter_value; /* of the page's query */

/* "/v1/jobs/1/why" has v1_jobs_1_why.json. */
static void
views_fixture_path(const char *path, char *ret, size_t size)
{
    size_t begin = (size_t)snprintf(ret, size, "%s/", fixture_folder);

    snprintf(ret + begin, size - begin, "%s.json", path + 1);
    for (char *at = ret + begin; *at; at++)
        *at = *at == '/' ? '_' : *at;
}

/* How the last question about records said that they be ordered. */
static char order_asked[16];

static void
views_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    char path[1024];
    const char *order = strcmp(request->path, "/v1/records") == 0 ? request->query(request, "order") : NULL;

    if (order)
        snprintf(order_asked, sizeof order_asked, "%s", order);
    reply->status = 200;
    if (refused.path && strcmp(refused.path, request->path) == 0) {
        reply->status = refused.status;
        bh_buf_puts(&reply->body, "{\"error\":{\"message\":\"the store is <full>\"}}");
        return;
    }
    views_fixture_path(request->path, path, sizeof path);
    bh_golden_read(path, &reply->body);
    if (reply->body.length == 0)
        fprintf(stderr, "no fixture %s\n", path);
    BH_CHECK(request->path, reply->body.length > 0);
}

static bh_rc
views_zeros(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

static bh_ns
views_now(void)
{
    return 1795878983 * BH_NS_PER_S;
}

static const char *
views_query(const struct bh_request *request, const char *name)
{
    return parameter_name && strcmp(name, parameter_name) == 0 ? parameter_value : NULL;
}

static void
views_each_query(const struct bh_request *request,
                 void (*sink)(void *self, const char *name, const char *value), void *self)
{
    if (parameter_name)
        sink(self, parameter_name, parameter_value);
}

/* Asks for a page; the reply's body is the caller's to release. */
static void
views_get(const char *path, const char *cookie, struct bh_reply *ret_reply)
{
    static const struct bh_crypto_ops crypto = { .random = views_zeros };
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 << 20);
    struct bh_web *web = bh_web_new(&(struct bh_web_options){
        .api = views_answer, .crypto = &crypto, .site = "Example's GPUs", .now = views_now });
    const struct bh_request request = { .method = BH_GET,
                                        .path = path,
                                        .body = "",
                                        .cookie = cookie,
                                        .host = "gpu.example",
                                        .arena = arena,
                                        .query = views_query,
                                        .each_query = views_each_query };

    *ret_reply = (struct bh_reply){ 0 };
    bh_buf_init(&ret_reply->body, 4 << 20);
    bh_web_handle(web, &request, ret_reply);
    bh_web_free(web);
}

/* The page's address with something for its variable part that the fixtures have. */
static const char *
views_address(enum bh_site_view view, char text[256])
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = 256 };
    static const struct {
        const char *begin, *sample;
    } samples[] = { { "/jobs/", "1" },   { "/gpus/", "GPU-1bd7ab2e-68fb-5ff7-a349-1d1db48e1912" },
                    { "/nodes/", "vm" }, { "/tenants/", "acme/vision" },
                    { "/audit/", "1" },  { "", "1" } };
    size_t i = 0;

    while (strncmp(addresses[view], samples[i].begin, strlen(samples[i].begin)) != 0)
        i++;
    for (const char *at = addresses[view]; *at; at++) {
        if (*at == '{') {
            bh_buf_puts(&out, samples[i].sample);
            at = strchr(at, '}');
        } else {
            bh_buf_putc(&out, *at);
        }
    }
    snprintf(text, 256, "%s", bh_buf_text(&out));
    return text;
}

static void
whole_pages(void **state)
{
    for (enum bh_site_view view = 0; view < BH_SITE_VIEWS; view++) {
        struct bh_reply reply;
        char address[256], name[64];

        views_get(views_address(view, address), COOKIE, &reply);
        BH_CHECK_EQ(address, reply.status, 200);
        snprintf(name, sizeof name, "view_%s", names[view]);
        for (char *at = name; *at; at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at;
        BH_CHECK(name, bh_golden_matches(golden_folder, build_folder, name, bh_buf_text(&reply.body)));
        bh_buf_fini(&reply.body);
    }
    BH_CHECK_DONE();
}

/* Each panel alone, and its JSON: the API's bytes. */
static void
twins(void **state)
{
    for (const struct bh_panel_row *panel = bh_panel_rows(); panel->id; panel++) {
        struct bh_reply section, json;
        char address[256], begin[96];

        views_address(panel->view, address);
        parameter_value = panel->id;
        parameter_name = "panel";
        views_get(address, COOKIE, &section);
        parameter_name = "json";
        views_get(address, COOKIE, &json);
        parameter_name = NULL;
        snprintf(begin, sizeof begin, "<section class=\"panel\" id=\"%s\"", panel->id);
        BH_CHECK_EQ(panel->id, section.status, 200);
        BH_CHECK(panel->id, strncmp(bh_buf_text(&section.body), begin, strlen(begin)) == 0);
        BH_CHECK_EQ(panel->id, json.status, 200);
        BH_CHECK(panel->id, bh_buf_text(&json.body)[0] == '{');
        bh_buf_fini(&section.body);
        bh_buf_fini(&json.body);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *page;
    const char *refused;
    uint32_t answer, status;
    const char *part; /* in the page, or with '!' in front not in it */
} refusals[] = {
    { "not allowed: left out", "/", "/v1/nodes", 403, 200, "!id=\"nodes\"" },
    { "not there: left out", "/", "/v1/nodes", 404, 200, "!id=\"nodes\"" },
    { "out of order: said", "/", "/v1/nodes", 503, 200, "unavailable: the store is &lt;full&gt;" },
    { "too often: said", "/", "/v1/nodes", 429, 200, "unavailable: the store" },
    { "searched by what is not there: said", "/audit", "/v1/records", 404, 200, "the store is &lt;full&gt;" },
    { "searched wrongly: said", "/audit", "/v1/records", 400, 200,
      "<p class=\"notice bad\" role=\"alert\">" },
    { "the only thing is out of order", "/keys", "/v1/keys", 503, 503, "Unavailable" },
    { "the only thing is asked too often", "/keys", "/v1/keys", 429, 429, "Too many requests" },
    { "the proof is not to be seen: left out", "/audit/1", "/v1/records/1/proof", 404, 200, "!id=\"proof\"" },
    { "the record is not to be seen", "/audit/1", "/v1/records/1", 404, 404, "!id=\"proof\"" },
    { "the object is not there", "/jobs/1", "/v1/jobs/1", 404, 404, "!train" },
    { "the object is not the caller's to see", "/jobs/1", "/v1/jobs/1", 403, 404, "!train" },
    { "the session is over", "/jobs/1", "/v1/jobs/1", 401, 303, "" },
};

static void
refused_questions(void **state)
{
    for (size_t i = 0; i < BH_COUNT(refusals); i++) {
        bool absent = refusals[i].part[0] == '!';
        struct bh_reply reply;

        refused.path = refusals[i].refused;
        refused.status = refusals[i].answer;
        views_get(refusals[i].page, COOKIE, &reply);
        BH_CHECK_EQ(refusals[i].name, reply.status, refusals[i].status);
        BH_CHECK(refusals[i].name, !strstr(bh_buf_text(&reply.body), refusals[i].part + absent) == absent);
        bh_buf_fini(&reply.body);
    }
    refused.path = NULL;
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *value; /* a parameter of the page's address */
    const char *order;        /* what the API is asked for */
    const char *part;         /* of the page, or with '!' in front not of it */
} searches[] = {
    { "verb", "job.submit", "newest", "<a href=\"/audit?verb=job.submit&amp;before=4\">Older</a>" },
    { "verb", "job.submit", "newest", "!>Newer<" },
    { "verb", "\"><script>", "newest", "value=\"&quot;&gt;&lt;script&gt;\"" },
    { "before", "50", "newest", "<a href=\"/audit?after=49&amp;order=oldest\">Newer</a>" },
    { "before", "no number", "newest", "!>Newer<" },
    { "order", "oldest", "oldest", "<a href=\"/audit?after=4&amp;order=oldest\">Newer</a>" },
    { "order", "oldest", "oldest", "!>Older<" },
    { "decision", "deny", "newest", "<option value=\"deny\" selected>denied</option>" },
};

static void
searches_keep_what_was_asked(void **state)
{
    for (size_t i = 0; i < BH_COUNT(searches); i++) {
        bool absent = searches[i].part[0] == '!';
        struct bh_reply reply;

        parameter_name = searches[i].name;
        parameter_value = searches[i].value;
        views_get("/audit", COOKIE, &reply);
        parameter_name = NULL;
        BH_CHECK_STR(searches[i].value, order_asked, searches[i].order);
        BH_CHECK(searches[i].part, !strstr(bh_buf_text(&reply.body), searches[i].part + absent) == absent);
        bh_buf_fini(&reply.body);
    }
    BH_CHECK_DONE();
}

/* Strangers are sent to sign in, whatever the page and whether or not it is there. */
static void
strangers(void **state)
{
    for (enum bh_site_view view = 0; view < BH_SITE_VIEWS; view++) {
        struct bh_reply reply;
        char address[256];

        views_get(views_address(view, address), NULL, &reply);
        BH_CHECK_EQ(address, reply.status, 303);
        bh_buf_fini(&reply.body);
    }
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pages),       cmocka_unit_test(twins),
        cmocka_unit_test(refused_questions), cmocka_unit_test(searches_keep_what_was_asked),
        cmocka_unit_test(strangers),
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
