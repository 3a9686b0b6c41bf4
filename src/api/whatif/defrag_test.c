#include "api/whatif/defrag.h"

#include <stdlib.h>

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"
#include "engine/step/engine.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

/* The node carries out all its orders. */
static void
defrag_wait(void)
{
    static const uint8_t kinds[BH_EFFECT_KINDS] = {
        [BH_FX_CARVE] = BH_EV_CARVED,
        [BH_FX_DESTROY] = BH_EV_DESTROYED,
        [BH_FX_START] = BH_EV_STARTED,
        [BH_FX_STOP] = BH_EV_ENDED,
    };
    struct bh_effect effect;

    while (bh_engine_outstanding(f->engine, (bh_node_id){ 1 }, &effect, 1)) {
        struct bh_event event = { .kind = (enum bh_event_kind)kinds[effect.kind] };

        if (event.kind == BH_EV_ENDED)
            event.u.ended = (struct bh_ev_ended){ .lease = effect.lease, .cause = BH_END_SIGNALLED };
        else if (event.kind == BH_EV_STARTED)
            event.u.lease.lease = effect.lease;
        else
            event.u.partition.partition = effect.partition.partition;
        bh_fixture_step(f, event);
    }
}

static void
set_mode(enum bh_defrag_mode mode)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(f->engine, &event.u.settings);
    event.u.settings.defrag.mode = mode;
    bh_fixture_step(f, event);
}

/* Two GPUs with one small job that writes checkpoints on each, and a large one that waits. */
static int
defrag_open_site(void **state)
{
    struct bh_event event = { .kind = BH_EV_SUBMIT };

    f = bh_fixture_open();
    set_mode(BH_DEFRAG_SUGGEST);
    for (uint64_t job = 301; job <= 308; job++) {
        event.u.submit = (struct bh_ev_submit){ .job = { job },
                                                .tenant = { 3 },
                                                .principal = { 1 },
                                                .sku = { 1 },
                                                .count = 1,
                                                .priority = BH_PRIORITY_NORMAL,
                                                .contract = BH_CONTRACT_CHECKPOINT,
                                                .grace_ns = 10000000000 };
        bh_fixture_step(f, event);
        defrag_wait();
    }
    for (uint64_t job = 302; job <= 307; job++)
        bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_CANCEL, .u.job = { { job } } });
    defrag_wait();
    bh_fixture_submit(f, 309, 4, 2, 2);
    defrag_wait();
    return 0;
}

static int
defrag_close_site(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static uint64_t
defrag_number(const char *key)
{
    const char *at = strstr(got.text, key);

    return at ? strtoull(at + strlen(key) + 1, NULL, 10) : 0;
}

/* The owner's events move no job, and the engine refuses them. */
static bool
refused_as(enum bh_reason_code code)
{
    static struct bh_step step;
    struct bh_event event = { .kind = BH_EV_MOVE, .now_ns = 1000, .u.move = f->moved };

    return bh_engine_step(f->engine, &event, &step) == BH_CONFLICT && step.verdict.code == code;
}

static void
the_plan_is_shown_with_its_operands(void **state)
{
    SEND(BH_GET, "/v1/defrag", .uid = CAROL);
    BH_CHECK_EQ("shown", got.status, 200);
    BH_CHECK("mode", strstr(got.text, "\"mode\":\"suggest\""));
    BH_CHECK("for whom", strstr(got.text, "\"for_job\":309"));
    BH_CHECK("who moves", strstr(got.text, "\"job\":301,\"tenant\":\"acme/speech\"")
                              || strstr(got.text, "\"job\":308,\"tenant\":\"acme/speech\""));
    BH_CHECK("where from", strstr(got.text, "\"from\":[{\"gpu\":\"GPU-"));
    BH_CHECK("where to", strstr(got.text, "\"to\":[{\"gpu\":\"GPU-"));
    /* a seventh of a GPU for ten seconds of grace and a minute: 600/4200 * 70 s, rounded up */
    BH_CHECK_EQ("cost", defrag_number("\"cost_gpu_ms\""), 10001);
    BH_CHECK("gain", defrag_number("\"gain_gpu_ms\"") >= 2 * 10001);
    BH_CHECK_EQ("sooner", defrag_number("\"sooner\""), 1);
    BH_CHECK_EQ("later", defrag_number("\"later\""), 0);
    BH_CHECK("saved", defrag_number("\"saved_gpu_ms\"") >= 2 * 10001);
    BH_CHECK_EQ("budget", defrag_number("\"moves_left\""), BH_DEFRAG_MOVES_DEFAULT);
    BH_CHECK("a token", strstr(got.text, "\"token\":\""));
    BH_CHECK_DONE();
}

static void
it_is_for_those_who_may(void **state)
{
    static const struct {
        const char *name;
        uint32_t uid;
        enum bh_method method;
        const char *body;
        uint32_t status;
        const char *says;
    } cases[] = {
        { "a developer does not see it", ALICE, BH_GET, NULL, 403, "site.view" },
        { "nor carry it out", ALICE, BH_POST, "{\"token\":\"0\"}", 403, "job.move" },
        { "no token", CAROL, BH_POST, "{}", 400, "token" },
        { "a long token", CAROL, BH_POST, "{\"token\":\"00000000000000001\"}", 400, "token" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        SEND(cases[i].method, "/v1/defrag", .body = cases[i].body, .uid = cases[i].uid);
        BH_CHECK_EQ(cases[i].name, got.status, cases[i].status);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].says));
        BH_CHECK(cases[i].name, !f->commanded);
    }
    BH_CHECK_DONE();
}

static void
another_token_moves_no_job(void **state)
{
    SEND(BH_POST, "/v1/defrag", .body = "{\"token\":\"0000000000000001\"}", .uid = CAROL);
    BH_CHECK("stale", refused_as(BH_REASON_DEFRAG_STALE));
    BH_CHECK_DONE();
}

/* The owner receives the plan that was shown, and the engine takes it. */
static void
the_plan_that_was_shown_is_carried_out(void **state)
{
    struct bh_event event = { .kind = BH_EV_MOVE };
    char body[80], token[20];
    const char *at;

    SEND(BH_GET, "/v1/defrag", .uid = CAROL);
    at = strstr(got.text, "\"token\":\"");
    assert_non_null(at);
    snprintf(token, sizeof token, "%.16s", at + 9);
    snprintf(body, sizeof body, "{\"token\":\"%s\"}", token);
    SEND(BH_POST, "/v1/defrag", .body = body, .uid = CAROL);
    BH_CHECK_EQ("taken", got.status, 200);
    BH_CHECK("commanded", f->commanded && f->command.op == BH_OP_DEFRAG_APPLY);
    BH_CHECK("who", strstr(got.text, "{\"moved\":[301]}") || strstr(got.text, "{\"moved\":[308]}"));
    event.u.move = f->moved;
    BH_CHECK_EQ("for whom", event.u.move.for_job.v, 309);
    bh_fixture_step(f, event);
    defrag_wait();
    SEND(BH_POST, "/v1/defrag", .body = body, .uid = CAROL);
    BH_CHECK("not twice: nobody is named", refused_as(BH_REASON_DEFRAG_STALE));
    SEND(BH_GET, "/v1/defrag", .uid = CAROL);
    BH_CHECK("no plan is left", !strstr(got.text, "\"plan\""));
    BH_CHECK("says so", strstr(got.text, "no moves are worth what they would lose"));
    BH_CHECK_DONE();
}

static void
off_is_off(void **state)
{
    set_mode(BH_DEFRAG_OFF);
    SEND(BH_GET, "/v1/defrag", .uid = CAROL);
    BH_CHECK_EQ("shown", got.status, 200);
    BH_CHECK("mode", strstr(got.text, "\"mode\":\"off\""));
    BH_CHECK("no plan", !strstr(got.text, "\"plan\""));
    SEND(BH_POST, "/v1/defrag", .body = "{\"token\":\"0\"}", .uid = CAROL);
    BH_CHECK("refused", refused_as(BH_REASON_DEFRAG_OFF));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, defrag_open_site, defrag_close_site)
    const struct CMUnitTest tests[] = { TEST(the_plan_is_shown_with_its_operands),
                                        TEST(it_is_for_those_who_may), TEST(another_token_moves_no_job),
                                        TEST(the_plan_that_was_shown_is_carried_out), TEST(off_is_off) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
