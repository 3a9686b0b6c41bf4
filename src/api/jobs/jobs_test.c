#include "api/jobs/jobs.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static int
open_jobs(void **state)
{
    f = bh_fixture_open();
    for (uint64_t job = 1; job <= 250; job++)
        bh_fixture_put_job(f, job, job % 5 == 0 ? 4 : 2, job % 5 == 0 ? 2 : 1,
                           job % 2 ? "running" : "completed");
    return 0;
}

static int
close_jobs(void **state)
{
    bh_fixture_close(f);
    return 0;
}

/* Walks all pages; marks each job seen. */
static uint32_t
jobs_walk(uint32_t uid, const char *filter, uint32_t limit, uint8_t seen[256])
{
    const char *cursor = strstr(filter, "order=newest") ? "&before=" : "&after=";
    char query[128], next[32] = "";
    uint32_t pages = 0;

    memset(seen, 0, 256);
    do {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_json_value items;
        struct bh_err err;

        snprintf(query, sizeof query, "limit=%u%s%s%s", limit, filter, next[0] ? cursor : "", next);
        SEND(BH_GET, "/v1/jobs", .query = query, .uid = uid);
        assert_int_equal(got.status, 200);
        assert_int_equal(bh_json_parse(got.text, strlen(got.text), &json, &err), BH_OK);
        items = bh_json_get(bh_json_root(json), "items");
        for (size_t i = 0; i < bh_json_count(items); i++)
            seen[bh_json_number(bh_json_get(bh_json_at(items, i), "id"), 255)]++;
        BH_CHECK("page size", bh_json_count(items) <= limit);
        snprintf(next, sizeof next, "%s", bh_json_text(bh_json_get(bh_json_root(json), "next"), ""));
        pages++;
    } while (next[0] && pages < 300);
    return pages;
}

static void
a_job_shows_its_members(void **state)
{
    bh_fixture_submit(f, 1, 2, 1, 1);
    SEND(BH_GET, "/v1/jobs/1", .uid = ALICE);
    assert_int_equal(got.status, 200);
    BH_CHECK("its lease", strstr(got.text, "\"members\":[{\"lease\":1,\"member\":0,"));
    BH_CHECK("its state", strstr(got.text, "\"state\":\"starting\"}]"));
    SEND(BH_GET, "/v1/jobs/2", .uid = ALICE);
    BH_CHECK("none once it has ended", !strstr(got.text, "\"members\""));
    BH_CHECK_DONE();
}

static void
pages_cover_every_job_once(void **state)
{
    static const struct {
        const char *name, *filter;
        uint32_t uid, limit, pages, modulo, rest;
    } cases[] = {
        { "all on one page", "", 0, 1000, 1, 1, 0 },
        { "all by hundreds", "", 0, 100, 3, 1, 0 },
        { "all, exactly full pages", "", 0, 50, 5, 1, 0 },
        { "all, one by one", "", 0, 1, 250, 1, 0 },
        { "bob's", "", BOB, 7, 8, 5, 0 },
        { "bob's by tenant", "&tenant=other", 0, 100, 1, 5, 0 },
        { "running", "&active=true", 0, 100, 2, 2, 1 },
        { "by state", "&state=completed", 0, 100, 2, 2, 0 },
        { "bob's own", "&mine=true", BOB, 100, 1, 5, 0 },
        { "ended", "&ended=true", 0, 100, 2, 2, 0 },
        { "all, the newest first", "&order=newest", 0, 100, 3, 1, 0 },
        { "bob's, the newest first", "&order=newest", BOB, 7, 8, 5, 0 },
        { "ended, the newest first", "&ended=true&order=newest", 0, 20, 7, 2, 0 },
    };
    uint8_t seen[256];

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_CHECK_EQ(cases[i].name, jobs_walk(cases[i].uid, cases[i].filter, cases[i].limit, seen),
                    cases[i].pages);
        for (uint32_t job = 1; job <= 250; job++)
            BH_CHECK_EQ(cases[i].name, seen[job], job % cases[i].modulo == cases[i].rest ? 1 : 0);
    }
    BH_CHECK_DONE();
}

/* A page from the other end, and cursors that do not belong to the order. */
static const struct {
    const char *name, *query;
    uint32_t uid, status;
    const char *part; /* of the answer, or with '!' in front not of it */
} orders[] = {
    { "the newest", "order=newest&limit=1", CAROL, 200, "\"id\":250," },
    { "whose last is the cursor", "order=newest&limit=1", CAROL, 200, "\"next\":\"250\",\"total\":250}" },
    { "behind it", "order=newest&limit=1&before=250", CAROL, 200, "\"id\":249," },
    { "before the first", "order=newest&before=1", CAROL, 200, "{\"items\":[],\"total\":250}" },
    { "the last that ended", "ended=true&order=newest&limit=1", CAROL, 200, "\"id\":250," },
    { "not one that runs", "ended=true&limit=1", CAROL, 200, "!running" },
    { "both", "ended=true&active=true", CAROL, 400, "no job is both" },
    { "no such order", "order=random", CAROL, 400, "neither oldest nor newest" },
    { "after in the other order", "order=newest&after=3", CAROL, 400, "`before`" },
    { "before in the other order", "before=3", CAROL, 400, "order=newest" },
    { "no such GPU", "gpu=GPU-nothing", CAROL, 404, "no GPU GPU-nothing" },
    { "a GPU that no job was on", "gpu=GPU-b", CAROL, 200, "{\"items\":[]}" },
    { "a GPU's, the newest first", "gpu=GPU-a&order=newest&limit=1", CAROL, 200, "\"id\":248," },
    { "by whole UUIDs", "gpu=GPU-a&order=newest&limit=1", CAROL, 200, "\"gpus\":[\"GPU-a\"]," },
    { "the next of them", "gpu=GPU-a&order=newest&limit=1&before=248", CAROL, 200, "\"id\":10," },
    { "a tenant sees its own of them", "gpu=GPU-a&limit=1", BOB, 200, "\"id\":10," },
    { "and no others", "gpu=GPU-a", BOB, 200, "!\"id\":248," },
};

static void
jobs_set_partitions(uint64_t job, const char *partitions)
{
    struct bh_err err;
    const struct bh_job_change change = { .job = job,
                                          .state = "completed",
                                          .reason = "exited",
                                          .node = "n1",
                                          .partitions = partitions,
                                          .grade = "C",
                                          .ended_ns = 2000,
                                          .exit_status = -1 };

    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->change_job(f->store.self, &change, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
}

static void
the_newest_jobs_and_those_of_a_gpu(void **state)
{
    jobs_set_partitions(10, "GPU-a 1g.10gb@0");
    jobs_set_partitions(248, "GPU-77aa whole, n2/GPU-a whole");
    jobs_set_partitions(246, "GPU-ab 1g.10gb@0"); /* another that begins so */
    for (size_t i = 0; i < BH_COUNT(orders); i++) {
        bool absent = orders[i].part[0] == '!';

        SEND(BH_GET, "/v1/jobs", .query = orders[i].query, .uid = orders[i].uid);
        BH_CHECK_EQ(orders[i].name, got.status, orders[i].status);
        BH_CHECK(orders[i].name, !strstr(got.text, orders[i].part + absent) == absent);
    }
    BH_CHECK_DONE();
}

/* However many jobs there are, one request looks at a thousand. */
static void
a_scan_for_a_gpu_is_bounded(void **state)
{
    jobs_set_partitions(10, "GPU-a 1g.10gb@0");
    for (uint64_t job = 251; job <= 1100; job++)
        bh_fixture_put_job(f, job, 2, 1, "completed");
    SEND(BH_GET, "/v1/jobs", .query = "gpu=GPU-a&order=newest", .uid = CAROL);
    BH_CHECK_STR("none of the last thousand", got.text, "{\"items\":[],\"next\":\"101\"}");
    SEND(BH_GET, "/v1/jobs", .query = "gpu=GPU-a&order=newest&before=101", .uid = CAROL);
    BH_CHECK("found behind them", strstr(got.text, "\"id\":10,") && !strstr(got.text, "\"next\""));
    BH_CHECK_DONE();
}

static void
totals_count_what_may_be_seen(void **state)
{
    SEND(BH_GET, "/v1/jobs", .query = "limit=1", .uid = BOB);
    BH_CHECK("bob", strstr(got.text, "\"next\":\"5\",\"total\":50}"));
    SEND(BH_GET, "/v1/jobs", .query = "after=250", .uid = 0);
    BH_CHECK_STR("past the end", got.text, "{\"items\":[],\"total\":250}");
    BH_CHECK_DONE();
}

static void
a_job_has_all_its_members(void **state)
{
    SEND(BH_GET, "/v1/jobs/2", .uid = ALICE);
    BH_CHECK_STR(
        "ended", got.text,
        "{\"cause\":\"exited\",\"contract\":\"requeue\",\"count\":1,\"deadline_ns\":\"0\","
        "\"ended_ns\":\"2000\",\"exit_status\":3,\"gang\":1,\"grade\":\"C\",\"id\":2,\"kind\":\"batch\","
        "\"may\":[\"logs\",\"records\",\"submit\"],\"name\":\"name\\n\\\"<x>\",\"node\":\"n1\",\"partitions\":\"\",\"pieces\":\"\","
        "\"priority\":\"normal\",\"reason\":\"none\",\"restarts\":0,\"sku\":\"small\","
        "\"spec\":{\"args\":[\"sh\"],\"sku\":\"small\"},\"started_ns\":\"0\",\"state\":\"completed\",\"submitted_ns\":\"1000\","
        "\"tenant\":\"acme/vision\",\"time_limit_ns\":\"0\",\"user\":\"alice\"}");
    BH_CHECK_DONE();
}

/* acme/vision may have one small at once: its second one waits. */
static void
why_says_what_holds_it_back(void **state)
{
    bh_fixture_submit(f, 301, 2, 1, 1);
    bh_fixture_submit(f, 302, 2, 1, 1);
    bh_fixture_put_job(f, 301, 2, 1, "running");
    bh_fixture_put_job(f, 302, 2, 1, "pending");
    SEND(BH_GET, "/v1/jobs/302/why", .uid = ALICE);
    BH_CHECK_EQ("status", got.status, 200);
    BH_CHECK("sentence", strstr(got.text, "acme/vision is at its limit of 1 small: 1 in use, "
                                          "this job needs 1 more"));
    BH_CHECK("reason", strstr(got.text, "\"reason\":\"quota_sku\""));
    BH_CHECK("operands", strstr(got.text, "\"limit\":1,\"sku\":\"small\",\"tenant\":\"acme/vision\","
                                          "\"used\":1,\"wanted\":1"));
    SEND(BH_GET, "/v1/jobs/302", .uid = ALICE);
    BH_CHECK("in the job", strstr(got.text, "\"why\":{\"next\""));
    SEND(BH_GET, "/v1/jobs/301", .uid = ALICE);
    BH_CHECK("in one that runs, too", strstr(got.text, "\"why\"") != NULL);
    BH_CHECK_DONE();
}

/* A page's jobs are asked about at once: alice's two wait for her tenant's limit. */
static void
a_list_says_why_jobs_wait(void **state)
{
    uint64_t asked;

    bh_fixture_submit(f, 301, 2, 1, 1);
    for (uint64_t job = 302; job <= 303; job++) {
        bh_fixture_submit(f, job, 2, 1, 1);
        bh_fixture_put_job(f, job, 2, 1, "pending");
    }
    asked = f->asks;
    SEND(BH_GET, "/v1/jobs", .query = "why=true&after=301", .uid = ALICE);
    BH_CHECK_EQ("status", got.status, 200);
    BH_CHECK("sentence", strstr(got.text, "\"sentence\":\"acme/vision is at its limit of 1 small: 1 in use"));
    BH_CHECK("and of the next", strstr(strstr(got.text, "\"id\":303"), "\"sentence\":\"acme/vision is at"));
    BH_CHECK_EQ("one question", f->asks - asked, 1);
    SEND(BH_GET, "/v1/jobs", .query = "why=true&after=301&limit=1", .uid = ALICE);
    BH_CHECK("with the last row of a page",
             strstr(got.text, "\"sentence\"") && strstr(got.text, "\"next\":\"302\""));
    SEND(BH_GET, "/v1/jobs", .query = "after=301", .uid = ALICE);
    BH_CHECK("only when it is asked for", !strstr(got.text, "\"why\""));
    BH_CHECK_DONE();
}

/* What a caller may do depends on whose job it is and how far it is. */
static void
a_job_says_what_the_caller_may_do(void **state)
{
    static const struct {
        const char *name, *state;
        uint32_t uid;
        const char *may;
    } cases[] = {
        { "one's own that runs", "running", ALICE,
          "\"may\":[\"cancel\",\"exec\",\"logs\",\"records\",\"submit\",\"verify\"]" },
        { "one's own that waits", "pending", ALICE, "\"may\":[\"cancel\",\"logs\",\"records\",\"submit\"]" },
        { "one's own that has ended", "completed", ALICE, "\"may\":[\"logs\",\"records\",\"submit\"]" },
        { "another's, for an admin", "running", CAROL,
          "\"may\":[\"cancel\",\"exec\",\"logs\",\"records\",\"submit\",\"verify\"]" },
        { "another's, for a viewer", "running", DAVE, "\"may\":[]" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        bh_fixture_put_job(f, 300, 2, 1, cases[i].state);
        SEND(BH_GET, "/v1/jobs/300", .uid = cases[i].uid);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].may));
    }
    BH_CHECK_DONE();
}

/* Two whole GPUs are in use for a day, as is assumed; alice wants one, for a batch that may
 * run into its deadline. */
static void
one_that_waits_shows_the_room_kept_for_it(void **state)
{
    bh_fixture_submit(f, 401, 4, 2, 2);
    bh_fixture_submit(f, 402, 4, 2, 2);
    bh_fixture_submit(f, 403, 2, 1, 2);
    bh_fixture_submit(f, 404, 2, 1, 2);
    bh_fixture_put_job(f, 403, 2, 1, "pending");
    bh_fixture_put_job(f, 404, 2, 1, "pending");
    SEND(BH_GET, "/v1/jobs/403", .uid = ALICE);
    BH_CHECK("where", strstr(got.text, "\"reserved_on\":[{\"gpu\":\"GPU-"));
    BH_CHECK("what", strstr(got.text, "\"profile\":\"whole\",\"start\":0}],"));
    BH_CHECK("when", strstr(got.text, "\"reserved_ns\":\"86400000001000\""));
    SEND(BH_GET, "/v1/jobs/403/why", .uid = ALICE);
    BH_CHECK("why", strstr(got.text, "\"reserved_ns\":\"86400000001000\""));
    SEND(BH_GET, "/v1/jobs/404", .uid = ALICE);
    BH_CHECK("nothing for the next", got.status == 200 && !strstr(got.text, "reserved"));
    SEND(BH_GET, "/v1/jobs", .query = "start=true&state=pending", .uid = ALICE);
    BH_CHECK("in a list", strstr(got.text, "\"reserved_ns\":\"86400000001000\",\"restarts\""));
    SEND(BH_GET, "/v1/jobs", .query = "state=pending", .uid = ALICE);
    BH_CHECK("when it is asked for", !strstr(got.text, "reserved"));
    BH_CHECK_DONE();
}

static void check_schema(bh_json_value schemas, const char *name, bh_json_value reply);

/* What a reference in a schema stands for. */
static void
check_references(bh_json_value schemas, bh_json_value property, bh_json_value value)
{
    static const char prefix[] = "#/components/schemas/";
    const char *of = bh_json_text(bh_json_get(property, "$ref"), NULL);

    if (of && strcmp(of + sizeof prefix - 1, "job") != 0) /* that of bodies */
        check_schema(schemas, of + sizeof prefix - 1, value);
    for (size_t i = 0; bh_json_get(property, "items") && i < bh_json_count(value); i++)
        check_references(schemas, bh_json_get(property, "items"), bh_json_at(value, i));
}

/* Each member of the reply is described, and what is always there is there. */
static void
check_schema(bh_json_value schemas, const char *name, bh_json_value reply)
{
    bh_json_value schema = bh_json_get(schemas, name), required = bh_json_get(schema, "required");
    bh_json_value value;
    const char *key;
    void *cursor = NULL;

    BH_CHECK(name, schema);
    while (bh_json_next(reply, &cursor, &key, &value)) {
        bh_json_value property = bh_json_get(bh_json_get(schema, "properties"), key);

        BH_CHECK(key, property);
        check_references(schemas, property, value);
    }
    for (size_t i = 0; i < bh_json_count(required); i++)
        BH_CHECK(name, bh_json_get(reply, bh_json_text(bh_json_at(required, i), "?")));
}

static void
replies_are_as_the_api_describes_them(void **state)
{
    static const struct {
        const char *path, *query, *schema;
        /* clang-format off */
    } cases[] = {
        { "/v1/jobs", "start=true&limit=1", "job_list" },
        { "/v1/jobs/1", NULL, "job_shown" },     { "/v1/jobs/2", NULL, "job_shown" },
        { "/v1/jobs/403", NULL, "job_shown" },   { "/v1/jobs/1/why", NULL, "job_why" },
        { "/v1/jobs/403/why", NULL, "job_why" }, { "/v1/jobs/2/why", NULL, "job_why" },
    };
    /* clang-format on */
    BH_AUTO(bh_json_free) struct bh_json *described = NULL;
    struct bh_err err;

    SEND(BH_GET, "/openapi.json", .uid = ALICE);
    assert_int_equal(bh_json_parse(got.text, strlen(got.text), &described, &err), BH_OK);
    bh_fixture_submit(f, 401, 4, 2, 2);
    bh_fixture_submit(f, 402, 4, 2, 2);
    bh_fixture_submit(f, 403, 2, 1, 2);
    bh_fixture_put_job(f, 403, 2, 1, "pending");
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;

        SEND(BH_GET, cases[i].path, .query = cases[i].query, .uid = ALICE);
        BH_CHECK_EQ(cases[i].path, got.status, 200);
        assert_int_equal(bh_json_parse(got.text, strlen(got.text), &json, &err), BH_OK);
        check_schema(bh_json_get(bh_json_get(bh_json_root(described), "components"), "schemas"),
                     cases[i].schema, bh_json_root(json));
    }
    BH_CHECK_DONE();
}

/* What was destroyed is left out, and said to be. */
static void
an_erased_job_says_so(void **state)
{
    SEND(BH_GET, "/v1/jobs/1", .uid = ALICE);
    BH_CHECK("opened", strstr(got.text, "\"spec\":{\"args\":[\"sh\"],\"sku\":\"small\"}"));
    bh_fixture_put_sealed_name(f, 1, 2, "its \"name\"");
    SEND(BH_GET, "/v1/jobs", .uid = ALICE);
    BH_CHECK("name", strstr(got.text, "\"name\":\"its \\\"name\\\"\""));
    bh_fixture_shred(f, 2);
    SEND(BH_GET, "/v1/jobs", .uid = ALICE);
    BH_CHECK("its name, too", strstr(got.text, "\"name\":\"(erased)\""));
    SEND(BH_GET, "/v1/jobs/1", .uid = ALICE);
    BH_CHECK_EQ("answered", got.status, 200);
    BH_CHECK("erased", strstr(got.text, "\"erased\":true") && !strstr(got.text, "\"spec\""));
    BH_CHECK_DONE();
}

static void
put_image_document(void)
{
    const struct bh_document_row document = {
        .kind = BH_DOCUMENT_IMAGE,
        .version = 1,
        .key = "00000000000000000301",
        .value = "{\"digest\":\"" DIGEST "\"}",
    };
    struct bh_err err;

    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->put_document(f->store.self, &document, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
}

/* Of a gang's members the one that is furthest behind counts. */
static void
one_that_starts_shows_how_far_its_image_is(void **state)
{
    f->inventory =
        "{\"images\":[{\"done_bytes\":629145600,\"job\":301,\"stage\":\"fetching\",\"total_bytes\":838860801},"
        "{\"done_bytes\":1,\"job\":302,\"stage\":\"fetching\",\"total_bytes\":2}],\"node\":\"n1\"}";
    f->inventory_of_second =
        "{\"images\":[{\"done_bytes\":125829120,\"job\":301,\"stage\":\"fetching\",\"total_bytes\":838860801},"
        "{\"done_bytes\":0,\"job\":301,\"stage\":\"unpacking\",\"total_bytes\":0}],\"node\":\"n2\"}";
    bh_fixture_put_job(f, 301, 2, 1, "starting");
    SEND(BH_GET, "/v1/jobs/301", .uid = ALICE);
    BH_CHECK("how far", strstr(got.text, "\"image\":\"fetching 120 of 801 MiB\""));
    BH_CHECK("no digest yet", !strstr(got.text, "image_digest"));
    f->inventory_of_second = NULL;
    f->inventory =
        "{\"images\":[{\"done_bytes\":0,\"job\":301,\"stage\":\"unpacking\",\"total_bytes\":0}],\"node\":\"n1\"}";
    SEND(BH_GET, "/v1/jobs/301", .uid = ALICE);
    BH_CHECK("no amounts", strstr(got.text, "\"image\":\"unpacking\""));
    put_image_document();
    bh_fixture_put_job(f, 301, 2, 1, "running");
    SEND(BH_GET, "/v1/jobs/301", .uid = ALICE);
    BH_CHECK("not when it runs", !strstr(got.text, "\"image\":"));
    BH_CHECK("but which it is", strstr(got.text, "\"image_digest\":\"sha256:" DIGEST "\""));
    BH_CHECK_DONE();
}

/* After an end that the output says nothing of, `why` says what to do. */
static void
what_to_do_after_an_end(void **state)
{
    static const struct {
        const char *reason, *next;
    } cases[] = {
        { "out_of_memory", "submit it with more, --memory 4Gi" },
        { "time_limit", "submit it with a longer --time-limit" },
        { "exited", "`bulkhead logs` shows what it wrote" },
    };

    bh_fixture_put_job(f, 301, 2, 1, "failed");
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const struct bh_job_change change = {
            .job = 301, .state = "failed", .exit_status = -1, .reason = cases[i].reason
        };
        struct bh_err err;

        assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
        assert_int_equal(f->store.ops->change_job(f->store.self, &change, &err), BH_OK);
        assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
        SEND(BH_GET, "/v1/jobs/301/why", .uid = ALICE);
        BH_CHECK(cases[i].reason, strstr(got.text, cases[i].next));
    }
    SEND(BH_POST, "/v1/jobs", .uid = ALICE, .body = "{\"args\":[\"sh\"],\"sku\":\"smal\"}");
    BH_CHECK("a size that is nearly one", strstr(got.text, "did you mean small?"));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_jobs, close_jobs)
    const struct CMUnitTest tests[] = { TEST(pages_cover_every_job_once),
                                        TEST(the_newest_jobs_and_those_of_a_gpu),
                                        TEST(a_scan_for_a_gpu_is_bounded),
                                        TEST(totals_count_what_may_be_seen),
                                        TEST(a_job_has_all_its_members),
                                        TEST(a_job_shows_its_members),
                                        TEST(an_erased_job_says_so),
                                        TEST(why_says_what_holds_it_back),
                                        TEST(a_list_says_why_jobs_wait),
                                        TEST(a_job_says_what_the_caller_may_do),
                                        TEST(one_that_waits_shows_the_room_kept_for_it),
                                        TEST(one_that_starts_shows_how_far_its_image_is),
                                        TEST(replies_are_as_the_api_describes_them),
                                        TEST(what_to_do_after_an_end) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
