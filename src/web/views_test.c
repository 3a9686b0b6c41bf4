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
#define BH_VIEW(view, path, section, title, command, extra) [BH_SITE_VIEW_##view] = path,
#define BH_PANEL(view, id, title, question, live, function)
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
};

static const char *const names[BH_SITE_VIEWS] = {
#define BH_VIEW(view, path, section, title, command, extra) [BH_SITE_VIEW_##view] = #view,
#define BH_PANEL(view, id, title, question, live, function)
#include "tables/panels.tbl"
#undef BH_VIEW
#undef BH_PANEL
};

/* Who asks, or what there is: in "member", v1_tenants_member.json goes before v1_tenants.json. */
static const char *round_name;

static bool crowded; /* the site is large (views_put_crowd) */

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
    size_t begin = (size_t)snprintf(ret, size, "%s/", fixture_folder), end;
    FILE *file = NULL;

    end = begin + (size_t)snprintf(ret + begin, size - begin, "%s", path + 1);
    for (char *at = ret + begin; *at; at++)
        *at = *at == '/' ? '_' : *at;
    if (round_name) {
        snprintf(ret + end, size - end, "_%s.json", round_name);
        file = fopen(ret, "r");
    }
    if (file)
        fclose(file);
    else
        snprintf(ret + end, size - end, ".json");
}

/* How the last question about records said that they be ordered. */
static char order_asked[16];
/* ---- a large site: 64 GPUs on 8 nodes, 200 jobs of 16 tenants ---- */

enum { CROWD_GPUS = 64, CROWD_JOBS = 200, CROWD_TENANTS = 16 };

/* Digits that do not repeat, as those of UUIDs. */
static uint32_t
crowd_digits(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void
crowd_put_partition(struct bh_buf *out, uint32_t gpu, uint32_t i)
{
    uint32_t job = 4000 + gpu * 3 + i * 7;

    bh_buf_printf(out,
                  "%s{\"id\":%u,\"job\":%u,\"profile\":\"2g.20gb\",\"slices\":2,\"start\":%u,\"state\":"
                  "\"leased\",\"tenant\":\"acme/team-%u/project\",\"units\":2}",
                  i ? "," : "", gpu * 4 + i, job, i * 2, (gpu + i) % CROWD_TENANTS);
}

static void
crowd_put_gpus(struct bh_buf *out)
{
    uint32_t state = 88172645;

    bh_buf_puts(out, "{\"items\":[");
    for (uint32_t i = 0; i < CROWD_GPUS; i++) {
        bh_buf_printf(
            out,
            "%s{\"compute_slices\":7,\"cordon\":\"no\",\"health\":\"ok\",\"index\":%u,\"managed\":true,"
            "\"memory_mib\":81559,\"memory_units\":8,\"memory_used_mib\":%u,\"mode\":\"mig\",\"model\":"
            "\"H100-80GB\",\"node\":\"node-%u\",\"partitions\":[",
            i ? "," : "", i % 8, 20000 + (i * 977) % 60000, i / 8);
        for (uint32_t k = 0; k < 3; k++)
            crowd_put_partition(out, i, k);
        bh_buf_printf(out,
                      "],\"power_mw\":%u000,\"temperature_c\":%u,\"used\":{\"gpus\":\"6/7\"},"
                      "\"uuid\":\"GPU-%08x-%04x-4%03x-8%03x-%08x%04x\"}",
                      200 + (i * 37) % 400, 40 + (i * 7) % 30, crowd_digits(&state),
                      crowd_digits(&state) & 0xffff, crowd_digits(&state) & 0xfff,
                      crowd_digits(&state) & 0xfff, crowd_digits(&state), crowd_digits(&state) & 0xffff);
    }
    bh_buf_puts(out, "]}");
}

static void
crowd_put_jobs(struct bh_buf *out)
{
    static const char *const skus[] = { "small", "medium", "large" };

    bh_buf_puts(out, "{\"items\":[");
    for (uint32_t i = 0; i < CROWD_JOBS; i++)
        bh_buf_printf(
            out,
            "%s{\"estimated_start_ns\":\"%llu\",\"id\":%u,\"name\":\"train-%u\",\"reason\":\"%s\",\"sku\":"
            "\"%s\",\"state\":\"pending\",\"tenant\":\"acme/team-%u/project\",\"user\":\"user-%u\"}",
            i ? "," : "", (unsigned long long)((1795878983 + (uint64_t)i * 433) * BH_NS_PER_S), 5000 + i * 3,
            i * 17, i % 3 ? "capacity" : "tenant_limit", skus[i % 3], i % CROWD_TENANTS, i % 40);
    bh_buf_puts(out, "]}");
}

static void
crowd_put_tenants(struct bh_buf *out)
{
    bh_buf_puts(out, "{\"items\":[");
    for (uint32_t i = 0; i < CROWD_TENANTS; i++)
        bh_buf_printf(out,
                      "%s{\"boundary\":\"hard\",\"guarantee\":\"%u\",\"guarantee_parts\":%u,\"limit\":\"16\","
                      "\"limit_parts\":67200,\"name\":\"acme/team-%u/project\",\"pending\":%u,\"running\":12,"
                      "\"used\":\"%u\",\"used_parts\":%u}",
                      i ? "," : "", i % 5, i % 5 * 4200, i, i * 3, i % 7, i % 7 * 4200);
    bh_buf_puts(out, "],\"whole_site\":true}");
}

/* False: the path has an answer that does not grow. */
static bool
views_put_crowd(const char *path, struct bh_buf *out)
{
    static const struct {
        const char *path;
        void (*put)(struct bh_buf *out);
    } rows[] = { { "/v1/gpus", crowd_put_gpus },
                 { "/v1/jobs", crowd_put_jobs },
                 { "/v1/tenants", crowd_put_tenants } };

    for (size_t i = 0; crowded && i < BH_COUNT(rows); i++)
        if (strcmp(rows[i].path, path) == 0) {
            rows[i].put(out);
            return true;
        }
    return false;
}

/* ---- asking ---- */

/* A list that a parameter narrows has a fixture of its own: v1_jobs_ended.json. */
static const char *
views_narrowed_by(const struct bh_request *request)
{
    if (strcmp(request->path, "/v1/jobs") != 0)
        return "";
    if (request->query(request, "gpu"))
        return "_gpu";
    return request->query(request, "ended") ? "_ended" : "";
}

static void
views_answer(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    char path[1024], asked[512];
    const char *order = strcmp(request->path, "/v1/records") == 0 ? request->query(request, "order") : NULL;

    if (order)
        snprintf(order_asked, sizeof order_asked, "%s", order);
    reply->status = 200;
    if (refused.path && strcmp(refused.path, request->path) == 0) {
        reply->status = refused.status;
        bh_buf_puts(&reply->body, "{\"error\":{\"message\":\"the store is <full>\"}}");
        return;
    }
    if (views_put_crowd(request->path, &reply->body))
        return;
    snprintf(asked, sizeof asked, "%s%s", request->path, views_narrowed_by(request));
    views_fixture_path(asked, path, sizeof path);
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
views_check_golden(enum bh_site_view view)
{
    struct bh_reply reply;
    char address[256], name[64];

    views_get(views_address(view, address), COOKIE, &reply);
    BH_CHECK_EQ(address, reply.status, 200);
    snprintf(name, sizeof name, "view_%s%s%s", names[view], round_name ? "_" : "",
             round_name ? round_name : "");
    for (char *at = name; *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at;
    BH_CHECK(name, bh_golden_matches(golden_folder, build_folder, name, bh_buf_text(&reply.body)));
    bh_buf_fini(&reply.body);
}

static void
whole_pages(void **state)
{
    for (enum bh_site_view view = 0; view < BH_SITE_VIEWS; view++)
        views_check_golden(view);
    BH_CHECK_DONE();
}

/* For a tenant's member, and where there is nothing yet: what to do first. */
static void
other_rounds(void **state)
{
    static const struct {
        const char *name;
        enum bh_site_view view;
    } rounds[] = {
        { "member", BH_SITE_VIEW_OVERVIEW }, { "empty", BH_SITE_VIEW_OVERVIEW },
        { "empty", BH_SITE_VIEW_GPU },       { "empty", BH_SITE_VIEW_TENANT },
        { "empty", BH_SITE_VIEW_FORECAST },  { "empty", BH_SITE_VIEW_SITE },
        { "empty", BH_SITE_VIEW_NODE },
    };

    for (size_t i = 0; i < BH_COUNT(rounds); i++) {
        round_name = rounds[i].name;
        views_check_golden(rounds[i].view);
    }
    round_name = NULL;
    BH_CHECK_DONE();
}

/* What a telephone on a slow line gets of 64 GPUs and 200 jobs: tests/web/size_test.py weighs it. */
static void
a_large_overview(void **state)
{
    struct bh_reply reply;
    char path[512];
    FILE *file;

    crowded = true;
    views_get("/", COOKIE, &reply);
    crowded = false;
    BH_CHECK_EQ("/", reply.status, 200);
    snprintf(path, sizeof path, "%s/overview_crowded.html", build_folder);
    file = fopen(path, "w");
    BH_CHECK(path, file && fwrite(reply.body.bytes, reply.body.length, 1, file) == 1);
    BH_CHECK_EQ(path, fclose(file), 0);
    bh_buf_fini(&reply.body);
    BH_CHECK_DONE();
}

static bool
views_has_header(const struct bh_reply *reply, const char *name, const char *value)
{
    for (uint32_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return strcmp(reply->headers[i].value, value) == 0;
    return false;
}

/* Each panel alone, and its JSON: the API's bytes, for no other site. */
static void
twins(void **state)
{
    for (const struct bh_panel_row *panel = bh_panel_rows(); panel->id; panel++) {
        struct bh_reply section, json;
        char address[256], begin[96];

        views_address(panel->view, address);
        /* only members see it */
        round_name = strcmp(panel->id, "share") == 0 ? "member" : NULL;
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
        BH_CHECK(panel->id, views_has_header(&json, "Cross-Origin-Resource-Policy", "same-origin"));
        bh_buf_fini(&section.body);
        bh_buf_fini(&json.body);
    }
    round_name = NULL;
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
    { "another's tenant", "/tenants/acme/vision", "/v1/tenants/acme/vision", 404, 404, "!vision" },
    { "no such node", "/nodes/vm", "/v1/nodes/vm", 404, 404, "!driver" },
    { "no site file for a member", "/site", "/v1/site", 403, 200, "!id=\"policies\"" },
    { "no moves for a member", "/forecast", "/v1/defrag", 403, 200, "!id=\"defrag\"" },
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
        cmocka_unit_test(whole_pages),       cmocka_unit_test(other_rounds),
        cmocka_unit_test(a_large_overview),  cmocka_unit_test(twins),
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
