#include "api/metrics/series.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static int
open_series(void **state)
{
    f = bh_fixture_open();
    bh_fixture_submit(f, 1, 2, 1, 1);
    bh_fixture_put_job(f, 1, 2, 1, "running");
    return 0;
}

static int
close_series(void **state)
{
    bh_fixture_close(f);
    return 0;
}

/* Who sees what: alice develops in acme/vision, dave views acme, carol administers the site. */
static const struct {
    const char *name, *query;
    uint32_t uid, status;
    const char *says;
} requests[] = {
    { "her own job", "object=job/1", ALICE, 200, "\"object\":\"job/1\"" },
    { "a job below her tenant's parent", "object=job/1", DAVE, 200, "\"object\":\"job/1\"" },
    { "another tenant's job", "object=job/1", BOB, 404, "no job/1 that you may see" },
    { "no job", "object=job/9", BOB, 404, "no job/9 that you may see" },
    { "no number", "object=job/x", ALICE, 404, "no job/x that you may see" },
    { "her tenant", "object=tenant/acme/vision", ALICE, 200, "\"gpus_held\"" },
    { "her tenant's parent", "object=tenant/acme", ALICE, 404, "no tenant/acme that you may see" },
    { "a GPU, of a tenant's developer", "object=gpu/GPU-a", ALICE, 404, "no gpu/GPU-a that you may see" },
    { "a GPU, of the site", "object=gpu/GPU-a", CAROL, 200, "\"temperature\"" },
    { "no GPU", "object=gpu/GPU-z", CAROL, 404, "no gpu/GPU-z" },
    { "a node", "object=node/n1", CAROL, 200, "\"power\"" },
    { "no node", "object=node/n7", CAROL, 404, "no node/n7" },
    { "the site", "object=site", CAROL, 200, "\"leased\"" },
    { "the site, of a tenant's developer", "object=site", ALICE, 403, "usage.view" },
    { "no object", "", CAROL, 400, "object is missing" },
    { "no such kind", "object=disk/1", CAROL, 400, "has no series" },
    { "a kind alone", "object=job", CAROL, 400, "has no series" },
    { "a kind without a name", "object=job/", CAROL, 400, "has no series" },
    { "the site with a name", "object=site/x", CAROL, 400, "has no series" },
    { "one quantity", "object=job/1&quantity=memory", ALICE, 200, "\"title\":\"Main memory used\"" },
    { "another kind's quantity", "object=job/1&quantity=idle", ALICE, 400, "no job has \\\"idle\\\"" },
    { "no such span", "object=job/1&span=year", ALICE, 400, "none of hour, day, month" },
    { "a span and a moment", "object=job/1&span=day&since=2h", ALICE, 400, "exclude each other" },
    { "a moment to come", "object=job/1&since=2100-01-01T00:00:00Z", ALICE, 400, "yet to come" },
    { "no points", "object=job/1&points=0", ALICE, 400, "at least 1" },
};

static void
objects_are_seen_by_rights(void **state)
{
    for (size_t i = 0; i < BH_COUNT(requests); i++) {
        SEND(BH_GET, "/v1/series", .query = requests[i].query, .uid = requests[i].uid);
        BH_CHECK_EQ(requests[i].name, got.status, requests[i].status);
        BH_CHECK(requests[i].name, strstr(got.text, requests[i].says));
    }
    BH_CHECK_DONE();
}

/* The store is asked for the object with the tenant that it is of. */
static void
stored_names_have_the_tenant(void **state)
{
    static const struct {
        const char *query, *asked;
    } cases[] = {
        { "object=job/1", "job 1 of 2" },
        { "object=tenant/acme/vision", "tenant 2 acme/vision of 2" },
        { "object=gpu/GPU-a", "gpu GPU-a of 0" },
        { "object=site", "site site of 0" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        f->series_of[0] = '\0';
        SEND(BH_GET, "/v1/series", .query = cases[i].query, .uid = CAROL);
        BH_CHECK_STR(cases[i].query, f->series_of, cases[i].asked);
    }
    BH_CHECK_DONE();
}

/* The fake has samples in every tenth interval. */
static void
points_are_as_many_as_fit(void **state)
{
    static const struct {
        const char *name, *query;
        uint64_t step_s;
        size_t points;
    } cases[] = {
        { "an hour", "object=site&quantity=idle&points=361", 10, 37 },
        { "an hour, merged by two", "object=site&quantity=idle&points=240", 20, 37 },
        { "a day", "object=site&quantity=idle&span=day&points=1441", 60, 144 },
        { "a day, merged", "object=site&quantity=idle&span=day&points=100", 900, 96 },
        { "of ten days that there are", "object=site&quantity=idle&span=month&points=240", 4500, 112 },
        { "one point", "object=site&quantity=idle&points=1", 3610, 2 },
        { "since half an hour", "object=site&quantity=idle&since=30m&points=3000", 10, 19 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        struct bh_err err;
        bh_json_value root, row;

        SEND(BH_GET, "/v1/series", .query = cases[i].query, .uid = CAROL);
        assert_int_equal(bh_json_parse(got.text, strlen(got.text), &json, &err), BH_OK);
        root = bh_json_root(json);
        row = bh_json_at(bh_json_get(root, "items"), 0);
        BH_CHECK_EQ(cases[i].name, bh_json_number(bh_json_get(root, "step_ns"), 0) / 1000000000,
                    cases[i].step_s);
        BH_CHECK_EQ(cases[i].name, bh_json_count(bh_json_get(row, "points")), cases[i].points);
        BH_CHECK_EQ(cases[i].name,
                    bh_json_number(bh_json_get(bh_json_at(bh_json_get(row, "points"), 0), "mean"), 0), 30);
    }
    BH_CHECK_DONE();
}

static void
what_is_not_kept_is_unavailable(void **state)
{
    bh_fixture_keep_no_series(f);
    SEND(BH_GET, "/v1/series", .query = "object=job/1", .uid = ALICE);
    BH_CHECK_EQ("her own", got.status, 503);
    BH_CHECK("says why", strstr(got.text, "samples over time are not kept here"));
    SEND(BH_GET, "/v1/series", .query = "object=job/1", .uid = BOB);
    BH_CHECK_EQ("another's is not there all the same", got.status, 404);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(objects_are_seen_by_rights, open_series, close_series),
    cmocka_unit_test_setup_teardown(stored_names_have_the_tenant, open_series, close_series),
    cmocka_unit_test_setup_teardown(points_are_as_many_as_fit, open_series, close_series),
    cmocka_unit_test_setup_teardown(what_is_not_kept_is_unavailable, open_series, close_series),
};

BH_TEST_MAIN(tests)
