#include "api/site/usage.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"
#include "engine/step/engine.h"

enum { SPEECH = 3, JOB = 7, SECOND_NS = 1000000000 };

static const uint64_t NOW_NS = NOW_S * UINT64_C(1000000000); /* when it is asked */

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static int
open_usage(void **state)
{
    f = bh_fixture_open();
    return 0;
}

static int
close_usage(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static void
step_at(uint64_t now_ns, struct bh_event event)
{
    static struct bh_step step;

    event.now_ns = now_ns;
    event.seq = ++f->seq;
    assert_int_equal(bh_engine_step(f->engine, &event, &step), BH_OK);
}

/* acme/speech runs a job for a second and is removed; acme/vision runs one on. */
static void
two_of_acme_use_something(void)
{
    struct bh_job_view view;
    struct bh_event ended = { .kind = BH_EV_ENDED, .u.ended.cause = BH_END_EXITED };

    bh_fixture_submit(f, JOB, SPEECH, 1, 1);
    bh_fixture_submit(f, JOB + 1, 2, 1, 1);
    bh_fixture_answer_orders(f);
    assert_true(bh_view_job(f->engine, (bh_job_id){ JOB }, &view));
    ended.u.ended.lease = view.lease;
    step_at(SECOND_NS, ended);
    step_at(SECOND_NS, (struct bh_event){ .kind = BH_EV_TICK });
    step_at(SECOND_NS, (struct bh_event){ .kind = BH_EV_TENANT_REMOVE, .u.tenant.tenant = { SPEECH } });
}

static uint64_t
usage_number_at(bh_json_value object, const char *key)
{
    return bh_json_number(bh_json_get(object, key), 0);
}

/* The row of that tenant in the last answer; NULL: it has none. */
static bh_json_value
usage_row_of(bh_json_value items, const char *tenant)
{
    for (size_t i = 0; i < bh_json_count(items); i++)
        if (strcmp(bh_json_text(bh_json_get(bh_json_at(items, i), "tenant"), ""), tenant) == 0)
            return bh_json_at(items, i);
    return NULL;
}

static struct bh_json *
usage_of(uint32_t uid)
{
    struct bh_json *json = NULL;
    struct bh_err err;

    SEND(BH_GET, "/v1/usage", .uid = uid);
    assert_int_equal(got.status, 200);
    assert_int_equal(bh_json_parse(got.text, strlen(got.text), &json, &err), BH_OK);
    return json;
}

static void
rows_add_up_and_roll_up(void **state)
{
    static const char *const keys[] = { "compute_part_ns", "memory_part_ns" };
    struct bh_json *json;
    bh_json_value items, acme, sums;

    two_of_acme_use_something();
    json = usage_of(CAROL);
    items = bh_json_get(bh_json_root(json), "items");
    sums = bh_json_get(bh_json_get(bh_json_root(json), "sums"), "tenants");
    acme = usage_row_of(items, "acme");
    for (size_t k = 0; k < BH_COUNT(keys); k++) {
        uint64_t rows = 0;

        for (size_t i = 0; i < bh_json_count(items); i++)
            rows += usage_number_at(bh_json_at(items, i), keys[k]);
        BH_CHECK_EQ(keys[k], rows, usage_number_at(sums, keys[k]));
        BH_CHECK_EQ(keys[k], usage_number_at(acme, keys[k]), 0);
        BH_CHECK_EQ(keys[k], usage_number_at(bh_json_get(acme, "with_below"), keys[k]),
                    usage_number_at(usage_row_of(items, "acme/vision"), keys[k])
                        + usage_number_at(usage_row_of(items, "acme/speech"), keys[k]));
    }
    BH_CHECK_EQ("what it used", usage_number_at(usage_row_of(items, "acme/speech"), keys[0]),
                UINT64_C(600) * (SECOND_NS - 1000));
    bh_json_free(json);
    BH_CHECK_DONE();
}

static void
a_removed_tenant_keeps_its_row(void **state)
{
    struct bh_dir_tenant tenants[4];
    struct bh_json *json;
    bh_json_value items;

    two_of_acme_use_something();
    assert_int_equal(f->dir.tenant_count, BH_COUNT(tenants));
    memcpy(tenants, f->dir.tenants, sizeof tenants);
    tenants[SPEECH - 1].gone = true;
    f->dir.tenants = tenants;
    json = usage_of(CAROL);
    items = bh_json_get(bh_json_root(json), "items");
    BH_CHECK("it says so", bh_json_truth(bh_json_get(usage_row_of(items, "acme/speech"), "removed")));
    BH_CHECK("others are there", !bh_json_get(usage_row_of(items, "acme/vision"), "removed"));
    bh_json_free(json);
    BH_CHECK_DONE();
}

/* What is unheard is settled later, and then nothing else has gone down. */
static void
a_silent_node_has_a_line_of_its_own(void **state)
{
    static const char *const parts[] = { "tenants", "idle", "unusable", "unheard" };
    struct bh_event node = { .kind = BH_EV_NODE, .u.node = { .node = { 1 } } };
    uint64_t unusable[2];

    two_of_acme_use_something();
    step_at(SECOND_NS, node);
    for (uint64_t turn = 0; turn < 2; turn++) {
        struct bh_json *json;
        bh_json_value sums;
        uint64_t sum = 0;

        node.u.node.up = true; /* in the second turn it is back, and the job runs on */
        if (turn == 1)
            step_at(NOW_NS, node);
        json = usage_of(CAROL);
        sums = bh_json_get(bh_json_root(json), "sums");
        for (size_t i = 0; i < BH_COUNT(parts); i++)
            sum += usage_number_at(bh_json_get(sums, parts[i]), "compute_part_ns");
        BH_CHECK_EQ("physical", sum, usage_number_at(bh_json_get(sums, "physical"), "compute_part_ns"));
        BH_CHECK_EQ("unheard", usage_number_at(bh_json_get(sums, "unheard"), "compute_part_ns"),
                    turn == 0 ? UINT64_C(600) * (NOW_NS - SECOND_NS) : 0);
        BH_CHECK("no cause of the rest", !bh_json_get(bh_json_get(sums, "unusable_by"), "unheard"));
        unusable[turn] = usage_number_at(bh_json_get(sums, "unusable"), "compute_part_ns");
        bh_json_free(json);
    }
    BH_CHECK("never goes down", unusable[1] >= unusable[0]);
    BH_CHECK_DONE();
}

static void
one_tenant_is_asked_for(void **state)
{
    two_of_acme_use_something();
    SEND(BH_GET, "/v1/usage", .query = "tenant=acme/vision", .uid = CAROL);
    BH_CHECK_EQ("asked", got.status, 200);
    BH_CHECK("its own", strstr(got.text, "\"tenant\":\"acme/vision\""));
    BH_CHECK("no other", !strstr(got.text, "\"tenant\":\"acme\""));
    BH_CHECK("no sums, which are the site's", !strstr(got.text, "\"sums\""));
    SEND(BH_GET, "/v1/usage", .query = "tenant=other", .uid = ALICE);
    BH_CHECK_EQ("one that the caller may not see", got.status, 404);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(one_tenant_is_asked_for, open_usage, close_usage),
    cmocka_unit_test_setup_teardown(rows_add_up_and_roll_up, open_usage, close_usage),
    cmocka_unit_test_setup_teardown(a_silent_node_has_a_line_of_its_own, open_usage, close_usage),
    cmocka_unit_test_setup_teardown(a_removed_tenant_keeps_its_row, open_usage, close_usage),
};
BH_TEST_MAIN(tests)
