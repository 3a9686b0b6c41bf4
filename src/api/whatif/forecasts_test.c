#include "api/whatif/forecasts.h"

#include <string.h>

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

enum { LEARNT = 24 }; /* slots until the near bound is firm */

static struct fixture *f;
static struct received got;

static int
open_forecast(void **state)
{
    struct bh_event event = { .kind = BH_EV_TENANT };

    f = bh_fixture_open();
    f->slots = LEARNT;
    event.u.tenant = (struct bh_ev_tenant){ .tenant = { 2 },
                                            .parent = { 1 },
                                            .kind = BH_TENANT_DEPARTMENT,
                                            .limit = BH_UNLIMITED,
                                            .guarantee = 8400 };
    bh_fixture_step(f, event);
    bh_fixture_submit(f, 1, 2, 1, 2);
    return 0;
}

static int
close_forecast(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static struct bh_json *
forecasts_fetch(uint32_t uid)
{
    struct bh_json *json;
    struct bh_err err;

    bh_fixture_send(f, &(struct sent){ BH_GET, "/v1/forecast", .uid = uid }, &got);
    assert_int_equal(got.status, 200);
    assert_int_equal(bh_json_parse(got.text, strlen(got.text), &json, &err), BH_OK);
    return json;
}

static bh_json_value
first_of(const struct bh_json *json, const char *list)
{
    return bh_json_at(bh_json_get(bh_json_root(json), list), 0);
}

static uint64_t
forecasts_number(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), UINT64_MAX);
}

/* One of two guaranteed GPUs has been in use for as long as is known. */
static void
a_tenant_sees_what_may_be_lent(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = forecasts_fetch(0);
    bh_json_value tenant = first_of(json, "tenants"),
                  near = bh_json_get(bh_json_get(tenant, "bounds"), "near");

    BH_CHECK_STR("who", bh_json_text(bh_json_get(tenant, "name"), ""), "acme/vision");
    BH_CHECK_EQ("guarantee", forecasts_number(tenant, "guarantee_parts"), 8400);
    BH_CHECK_EQ("level", forecasts_number(tenant, "level_parts"), 4200);
    BH_CHECK_EQ("lends", forecasts_number(tenant, "lends_parts"), 4200);
    BH_CHECK_STR("in GPUs", bh_json_text(bh_json_get(tenant, "lends"), ""), "1");
    BH_CHECK("firm", bh_json_truth(bh_json_get(near, "firm")));
    BH_CHECK_EQ("changes", forecasts_number(near, "changes"), LEARNT - 2);
    BH_CHECK_EQ("ahead", forecasts_number(near, "ahead_ns"), 2000000000);
    BH_CHECK("kept what was judged",
             forecasts_number(near, "judged") > 0
                 && forecasts_number(near, "kept") == forecasts_number(near, "judged"));
    BH_CHECK_DONE();
}

static void
on_a_guess_nothing_is_lent(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_json_value tenant;

    f->slots = 3;
    json = forecasts_fetch(0);
    tenant = first_of(json, "tenants");
    BH_CHECK_EQ("lends", forecasts_number(tenant, "lends_parts"), 0);
    BH_CHECK_EQ("expected", forecasts_number(tenant, "expected_parts"), 8400);
    BH_CHECK("a guess", strstr(got.text, "\"firm\":false"));
    BH_CHECK_DONE();
}

static void
a_pool_is_proposed_to_grow(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_json_value pool, proposal;

    for (uint64_t job = 2; job < 5; job++)
        bh_fixture_submit(f, job, 4, 2, 2);
    json = forecasts_fetch(0);
    pool = first_of(json, "pools");
    proposal = bh_json_get(pool, "proposal");
    BH_CHECK_EQ("there are", forecasts_number(pool, "gpus"), 2);
    BH_CHECK_EQ("asked for", forecasts_number(pool, "level_parts"), 4 * 4200);
    BH_CHECK_STR("move", bh_json_text(bh_json_get(proposal, "move"), ""), "grow");
    BH_CHECK_EQ("to", forecasts_number(proposal, "wanted"), 5);
    BH_CHECK_EQ("guaranteed", forecasts_number(proposal, "least"), 2);
    BH_CHECK_DONE();
}

static void
a_full_node_is_hot(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;

    bh_fixture_submit(f, 2, 4, 2, 2);
    json = forecasts_fetch(0);
    BH_CHECK("hot", bh_json_truth(bh_json_get(first_of(json, "nodes"), "hot")));
    BH_CHECK_EQ("full", forecasts_number(first_of(json, "nodes"), "projected_permille"), 1000);
    BH_CHECK_DONE();
}

/* Alice develops in acme/vision; Bob in other, which is guaranteed nothing. */
static void
who_sees_what(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *alice = forecasts_fetch(ALICE);

    BH_CHECK_EQ("her own", bh_json_count(bh_json_get(bh_json_root(alice), "tenants")), 1);
    BH_CHECK_EQ("no pools", bh_json_count(bh_json_get(bh_json_root(alice), "pools")), 0);
    BH_CHECK_EQ("no nodes", bh_json_count(bh_json_get(bh_json_root(alice), "nodes")), 0);
    bh_json_free(forecasts_fetch(BOB));
    BH_CHECK("not hers", !strstr(got.text, "acme"));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_forecast, close_forecast)
    const struct CMUnitTest tests[] = { TEST(a_tenant_sees_what_may_be_lent),
                                        TEST(on_a_guess_nothing_is_lent), TEST(a_pool_is_proposed_to_grow),
                                        TEST(a_full_node_is_hot), TEST(who_sees_what) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
