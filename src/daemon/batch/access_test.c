/* Datasets at the owner: what a submission, a start and the end of a grant lead to, and what the
 * records say of it. */

#include "daemon/batch/access.h"
#include "daemon/batch/batch.h"
#include "daemon/fixture/gpu_fixture_test.h"

#include "base/num.h"
#include "daemon/batch/record.h"
#include "daemon/batch/step.h"
#include "daemon/nodes/orders.h"

/* alice's jobs run in acme/vision, bob's in other; imagenet is acme's, out the site's other's. */
#define SITE(vision_grant, more)                                                                             \
    "tenants: [{name: acme}, {name: acme/vision}, {name: other}]\n"                                          \
    "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"                      \
    "principals: [{name: alice, uid: 2001}, {name: bob, uid: 2002}, {name: erin, uid: 2003}]\n"              \
    "bindings: [{role: developer, principal: alice, tenant: acme/vision},\n"                                 \
    "  {role: developer, principal: bob, tenant: other}, {role: admin, principal: erin, tenant: acme}]\n"    \
    "gpus: [{uuid: all, managed: true}]\n"                                                                   \
    "datasets:\n"                                                                                            \
    "- {name: imagenet, path: /data/imagenet, tenant: acme, grants: [" vision_grant "]" more "}\n"           \
    "- {name: secret, path: /data/secret, tenant: acme}\n"

#define READERS "{tenant: acme/vision, may: [mount, read]}"
#define COPIERS "{tenant: acme/vision, may: [mount, read, copy]}"

static bh_rc
submit_networked(struct fixture *f, const char *who, const char *tenant, const struct bh_mount_spec *mount,
                 enum bh_network_mode network)
{
    const char *args[] = { "true" };
    struct bh_mount_spec *mounts = bh_arena_alloc(f->arena, sizeof *mounts);
    struct bh_job_spec *spec = bh_arena_alloc(f->arena, sizeof *spec);
    struct bh_command command = { .op = BH_OP_JOB_SUBMIT, .caller = caller_named(f, who), .spec = spec };
    struct bh_buf text;

    *mounts = *mount;
    *spec = (struct bh_job_spec){
        .args = { args, 1 }, .tenant = tenant, .sku = "small", .mounts = { mounts, 1 }, .network = network
    };
    assert_int_equal(bh_spec_check(spec, &command.numbers, &f->err), BH_OK);
    bh_buf_init(&text, 1 << 16);
    bh_json_encode(&text, &bh_job_spec_fields, spec);
    command.text = bh_arena_strdup(f->arena, bh_buf_text(&text));
    command.text_length = strlen(command.text);
    bh_buf_fini(&text);
    return fixture_run(f, &command);
}

static bh_rc
submit_with(struct fixture *f, const char *who, const char *tenant, const struct bh_mount_spec *mount)
{
    return submit_networked(f, who, tenant, mount, BH_NETWORK_NONE);
}

static bh_rc
submit_reader(struct fixture *f)
{
    return submit_with(f, "alice", "acme/vision", &(struct bh_mount_spec){ .dataset = "imagenet" });
}

/* ---- the node's side: events by hand ---- */

static void
access_carve(struct fixture *f)
{
    const struct bh_effect *effect = order_of(f, BH_FX_CARVE);

    assert_non_null(effect);
    gpu_fixture_step(f,
                     (struct bh_event){ .kind = BH_EV_CARVED,
                                        .u.partition = { effect->partition.partition, BH_OUTCOME_OK, 0 } });
}

static void
answer_start(struct fixture *f)
{
    const struct bh_effect *effect = order_of(f, BH_FX_START);

    assert_non_null(effect);
    gpu_fixture_step(
        f, (struct bh_event){ .kind = BH_EV_STARTED, .u.lease = { effect->lease, BH_OUTCOME_OK, 0 } });
    bh_core_released(&f->core);
}

static void
end_lease(struct fixture *f, bh_lease_id lease, enum bh_end_cause cause)
{
    gpu_fixture_step(f, (struct bh_event){ .kind = BH_EV_ENDED, .u.ended = { lease, cause, 0, 1, false } });
}

static enum bh_end_cause
access_cause_of(const struct fixture *f, uint64_t job)
{
    struct bh_job_view view;

    assert_true(bh_view_job(f->core.state.engine, (bh_job_id){ job }, &view));
    return view.cause;
}

/* ---- records ---- */

struct records {
    const char *part[4]; /* what a leaf must hold; NULL: no more */
    uint32_t count;
};

static bool
count_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct records *records = self;
    char text[2048];

    snprintf(text, sizeof text, "%.*s", (int)length, leaf);
    for (int i = 0; i < 4; i++)
        if (records->part[i] && !strstr(text, records->part[i]))
            return true;
    records->count++;
    return true;
}

/* How many records hold all these parts. */
static uint32_t
count_records(struct fixture *f, const char *a, const char *b, const char *c, const char *d)
{
    struct records records = { { a, b, c, d }, 0 };

    assert_int_equal(
        f->core.store.ops->list_records(f->core.store.self, 0, UINT64_MAX - 1, count_leaf, &records, &f->err),
        BH_OK);
    return records.count;
}

#define ALLOWED "\"dec\":{\"allow\":true,\"rule\":3100}"
#define DATASET "\"obj\":{\"id\":1,\"type\":\"dataset\"}"
#define ACMES "\"tenant\":1,"
#define READS "\"verb\":\"dataset.read\""

/* ---- submission ---- */

static void
a_denied_submission_is_recorded_for_the_job_and_for_the_dataset(void **state)
{
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    BH_CHECK_EQ("allowed", submit_reader(&f), BH_OK);
    BH_CHECK_EQ("no right to write",
                submit_with(&f, "alice", "acme/vision",
                            &(struct bh_mount_spec){ .dataset = "imagenet", .write = true }),
                BH_DENIED);
    BH_CHECK_STR("why", f.err.msg,
                 "mounts[0]: imagenet: grants[0] gives mount, read, and no grant gives write");
    BH_CHECK_EQ(
        "of the job",
        count_records(&f, "\"allow\":false", "\"rule\":3004}", "\"tenant\":2,", "\"verb\":\"job.submit\""),
        1);
    BH_CHECK_EQ("of the dataset",
                count_records(&f, DATASET, "\"rule\":3004}", ACMES, "\"verb\":\"dataset.write\""), 1);
    BH_CHECK_EQ("no number was given out", f.core.next_job, 2);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A job that can send to a network can copy the data there. */
static void
a_network_is_a_place_to_copy_to(void **state)
{
    const struct bh_mount_spec mount = { .dataset = "imagenet" };
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    for (uint32_t mode = BH_NETWORK_NONE + 1; mode < BH_NETWORK_MODES; mode++) {
        BH_CHECK_EQ(bh_network_mode_names[mode], submit_networked(&f, "alice", "acme/vision", &mount, mode),
                    BH_DENIED);
        BH_CHECK_STR("why", f.err.msg,
                     "mounts[0]: imagenet: grants[0] gives mount, read, and no grant gives copy");
        BH_CHECK("names it", strstr(f.err.hint, bh_network_mode_names[mode]));
    }
    assert_int_equal(bh_core_record_refusals(&f.core, true, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    BH_CHECK_EQ("of the dataset", count_records(&f, DATASET, "\"rule\":3004}", ACMES, READS),
                BH_NETWORK_MODES - 1);
    assert_int_equal(fixture_apply(&f, SITE(COPIERS, "")), BH_OK);
    BH_CHECK_EQ("with copy", submit_networked(&f, "alice", "acme/vision", &mount, BH_NETWORK_TENANT), BH_OK);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_hidden_dataset_is_like_none(void **state)
{
    struct bh_err of_none, of_hidden;
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    BH_CHECK_EQ("none", submit_with(&f, "bob", "other", &(struct bh_mount_spec){ .dataset = "nothin" }),
                BH_NOT_FOUND);
    of_none = f.err;
    BH_CHECK_EQ("hidden", submit_with(&f, "bob", "other", &(struct bh_mount_spec){ .dataset = "secret" }),
                BH_NOT_FOUND);
    of_hidden = f.err;
    BH_CHECK_STR("none", of_none.msg, "mounts[0]: no dataset nothin that you may see");
    BH_CHECK_STR("hidden", of_hidden.msg, "mounts[0]: no dataset secret that you may see");
    BH_CHECK_STR("the same hint", of_hidden.hint, of_none.hint);
    assert_int_equal(bh_core_record_refusals(&f.core, true, &f.err), BH_OK);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    BH_CHECK_EQ("the same in his tenant's records",
                count_records(&f, "\"rule\":3001}", "\"tenant\":3,", "\"verb\":\"job.submit\"", NULL), 2);
    BH_CHECK_EQ("but its owner knows",
                count_records(&f, "\"obj\":{\"id\":2,\"type\":\"dataset\"}", "\"rule\":3002}", ACMES,
                              "\"actor\":{\"id\":"),
                1);
    BH_CHECK_EQ("also below its tenant",
                submit_with(&f, "alice", "acme/vision", &(struct bh_mount_spec){ .dataset = "secret" }),
                BH_NOT_FOUND);
    BH_CHECK_EQ("who may see it",
                submit_with(&f, "erin", "acme", &(struct bh_mount_spec){ .dataset = "secret" }), BH_DENIED);
    BH_CHECK_STR("is told why", f.err.msg, "mounts[0]: secret: no grant covers erin in acme");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* ---- starts ---- */

static void
a_start_is_recorded_before_it_happens(void **state)
{
    const struct bh_effect *start;
    struct bh_order_message order;
    const struct bh_msg_start *message;
    const struct bh_msg_mount *mount;
    struct fixture f;
    char number[40];

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    assert_int_equal(submit_reader(&f), BH_OK);
    BH_CHECK_EQ("not yet", count_records(&f, DATASET, NULL, NULL, NULL), 0);
    access_carve(&f);
    start = order_of(&f, BH_FX_START);
    assert_non_null(start);
    snprintf(number, sizeof number, "\"order\":%llu,", (unsigned long long)start->order);
    BH_CHECK_EQ("by whom, what, by which grant", count_records(&f, DATASET, ALLOWED, ACMES, READS), 1);
    BH_CHECK_EQ("for which start", count_records(&f, DATASET, number, "\"text\":\"", "\"res\":\"ok\""), 1);
    assert_int_equal(bh_orders_message(&f.core, start, f.arena, &order, &f.err), BH_OK);
    message = order.message;
    mount = message->mounts.items;
    BH_CHECK_STR("its folder", mount->source, "/data/imagenet");
    BH_CHECK_STR("its place", mount->target, "/datasets/imagenet");
    BH_CHECK("only to read", !mount->write);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* The text of a job that starts in the step that submits it is in no reader's view of the store. */
static void
a_start_in_the_same_step_as_the_submission_is_recorded_too(void **state)
{
    struct fixture f;
    bh_lease_id lease;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    assert_int_equal(submit_reader(&f), BH_OK);
    access_carve(&f);
    lease = order_of(&f, BH_FX_START)->lease;
    answer_start(&f);
    end_lease(&f, lease, BH_END_EXITED);
    assert_int_equal(submit_reader(&f), BH_OK);
    BH_CHECK("it starts at once", order_of(&f, BH_FX_START));
    BH_CHECK_EQ("both", count_records(&f, DATASET, ALLOWED, READS, NULL), 2);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_grant_that_is_taken_back_ends_the_job_at_its_start(void **state)
{
    const struct bh_effect *stop;
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    assert_int_equal(submit_reader(&f), BH_OK);
    assert_int_equal(fixture_apply(&f, SITE("{tenant: other, may: [mount, read]}", "")), BH_OK);
    access_carve(&f);
    stop = order_of(&f, BH_FX_STOP);
    BH_CHECK("it is not started", !order_of(&f, BH_FX_START));
    BH_CHECK("but stopped", stop);
    BH_CHECK_EQ("recorded", count_records(&f, DATASET, "\"rule\":3002}", ACMES, "\"res\":\"denied\""), 1);
    BH_CHECK_EQ("as is the job's end",
                count_records(&f, "\"cancel\":{\"cause\":\"dataset\",\"job\":1}", "\"verb\":\"job.refuse\"",
                              NULL, NULL),
                1);
    end_lease(&f, stop->lease, BH_END_START_FAILED);
    BH_CHECK_EQ("and why", access_cause_of(&f, 1), BH_END_DATASET);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK); /* replay leads to the same state, or fails */
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_grant_that_has_ended_does_too(void **state)
{
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    assert_int_equal(submit_reader(&f), BH_OK);
    assert_int_equal(
        fixture_apply(&f, SITE("{tenant: acme, may: [mount, read], until: '2020-01-01T00:00:00Z'}", "")),
        BH_OK);
    access_carve(&f);
    BH_CHECK("it is not started", !order_of(&f, BH_FX_START));
    BH_CHECK_EQ("recorded", count_records(&f, DATASET, "\"rule\":3005}", ACMES, READS), 1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_dataset_that_is_gone_cannot_be_mounted(void **state)
{
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    assert_int_equal(submit_reader(&f), BH_OK);
    assert_int_equal(
        fixture_apply(&f, "tenants: [{name: acme}, {name: acme/vision}]\n"
                          "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"
                          "principals: [{name: alice, uid: 2001}]\ngpus: [{uuid: all, managed: true}]\n"),
        BH_OK);
    access_carve(&f);
    BH_CHECK("it is not started", !order_of(&f, BH_FX_START));
    BH_CHECK_EQ("recorded under its old number", count_records(&f, DATASET, "\"rule\":3001}", READS, NULL),
                1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_place_that_a_grant_leaves_out_is_refused(void **state)
{
    struct fixture f;

    gpu_fixture_open_site(&f, SITE("{tenant: acme, may: [mount, read], to: {nodes: [n2]}}", ""));
    BH_CHECK_EQ("nobody knows yet", submit_reader(&f), BH_OK);
    access_carve(&f);
    BH_CHECK("it is not started", !order_of(&f, BH_FX_START));
    BH_CHECK_EQ("recorded", count_records(&f, DATASET, "\"rule\":3006}", ACMES, READS), 1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A node that was away hears its orders again. */
static void
an_order_that_is_said_again_is_judged_again(void **state)
{
    struct bh_order_message order;
    struct bh_effect start;
    struct fixture f;

    gpu_fixture_open_site(&f, SITE(READERS, ""));
    assert_int_equal(submit_reader(&f), BH_OK);
    access_carve(&f);
    start = *order_of(&f, BH_FX_START);
    bh_core_released(&f.core);
    assert_int_equal(fixture_apply(&f, SITE("", "")), BH_OK);
    BH_CHECK_EQ("not said", bh_orders_message(&f.core, &start, f.arena, &order, &f.err), BH_DENIED);
    assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
    BH_CHECK("but stopped", order_of(&f, BH_FX_STOP));
    BH_CHECK_EQ(
        "recorded",
        count_records(&f, "\"cancel\":{\"cause\":\"dataset\",\"job\":1}", "\"rule\":3002}", NULL, NULL), 1);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A job whose specification the store has not: what it mounts cannot be known. */
static void
a_start_of_who_knows_what_is_refused(void **state)
{
    struct fixture f;

    for (int datasets = 0; datasets < 2; datasets++) {
        struct bh_caller caller;
        struct bh_entry entry = {
            .actor = { .via = BH_VIA_SYSTEM }, .dec = { .allow = true }, .verb = "test", .job_name = "lost"
        };
        struct bh_event event = { .kind = BH_EV_SUBMIT };

        gpu_fixture_open_site(
            &f, datasets ? SITE(READERS, "")
                         : "tenants: [{name: acme}, {name: acme/vision}]\n"
                           "skus: [{name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}]\n"
                           "principals: [{name: alice, uid: 2001}]\ngpus: [{uuid: all, managed: true}]\n");
        caller = caller_named(&f, "alice");
        entry.submitter = &caller;
        event.u.submit = (struct bh_ev_submit){ .job = { 1 },
                                                .tenant = { 2 },
                                                .principal = { 1 },
                                                .sku = { 1 },
                                                .count = 1,
                                                .priority = BH_PRIORITY_NORMAL };
        assert_int_equal(bh_core_step(&f.core, &entry, &event, &f.err), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        access_carve(&f);
        BH_CHECK_EQ("only sites with datasets ask", order_of(&f, BH_FX_START) != NULL, !datasets);
        BH_CHECK_EQ("it ends",
                    count_records(&f, "\"cause\":\"dataset\"", "\"verb\":\"job.refuse\"", NULL, NULL),
                    datasets);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* ---- while it runs ---- */

static void
access_check(struct fixture *f)
{
    assert_int_equal(bh_access_check(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

static void
a_running_job_whose_grant_ends_is_recorded_once(void **state)
{
    struct fixture f;

    for (int stop = 0; stop < 2; stop++) {
        gpu_fixture_open_site(&f, stop ? SITE(READERS, ", on_expiry: stop") : SITE(READERS, ""));
        assert_int_equal(submit_reader(&f), BH_OK);
        access_carve(&f);
        answer_start(&f);
        access_check(&f);
        BH_CHECK_EQ("all is well", count_records(&f, DATASET, "\"allow\":false", NULL, NULL), 0);
        assert_int_equal(fixture_apply(&f, stop ? SITE("", ", on_expiry: stop") : SITE("", "")), BH_OK);
        access_check(&f);
        access_check(&f);
        BH_CHECK_EQ("once", count_records(&f, DATASET, "\"rule\":3002}", READS, NULL), 1);
        BH_CHECK_EQ(stop ? "stopped" : "kept", order_of(&f, BH_FX_STOP) != NULL, stop);
        assert_int_equal(fixture_apply(&f, stop ? SITE(READERS, ", on_expiry: stop") : SITE(READERS, "")),
                         BH_OK);
        access_check(&f);
        assert_int_equal(fixture_apply(&f, stop ? SITE("", ", on_expiry: stop") : SITE("", "")), BH_OK);
        access_check(&f);
        BH_CHECK_EQ("again when it is lost again", count_records(&f, DATASET, "\"rule\":3002}", READS, NULL),
                    2 - stop);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* Before it starts and while it runs: a job that has a network keeps it, so it may not have the rest. */
static void
a_job_with_a_network_loses_access_with_copy(void **state)
{
    const struct bh_mount_spec mount = { .dataset = "imagenet" };
    struct fixture f;

    for (int runs = 0; runs < 2; runs++) {
        gpu_fixture_open_site(&f, SITE(COPIERS, ", on_expiry: stop"));
        assert_int_equal(submit_networked(&f, "alice", "acme/vision", &mount, BH_NETWORK_TENANT), BH_OK);
        if (runs) {
            access_carve(&f);
            answer_start(&f);
            access_check(&f);
        }
        assert_int_equal(fixture_apply(&f, SITE(READERS, ", on_expiry: stop")), BH_OK);
        if (runs)
            access_check(&f);
        else
            access_carve(&f);
        BH_CHECK("it is not started", runs || !order_of(&f, BH_FX_START));
        BH_CHECK("but stopped", order_of(&f, BH_FX_STOP));
        BH_CHECK_EQ("recorded", count_records(&f, DATASET, "\"rule\":3004}", ACMES, READS), 1);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static void
running_jobs_are_looked_at_when_a_grant_ends(void **state)
{
    struct fixture f;
    uint64_t until_ns;

    assert_int_equal(bh_parse_utc("2100-01-01T00:00:00Z", &until_ns, &f.err), BH_OK);
    gpu_fixture_open_site(&f, SITE("{tenant: acme, may: [mount, read], until: '2100-01-01T00:00:00Z'}", ""));
    access_check(&f);
    BH_CHECK_EQ("then", f.core.access->check_ns, until_ns);
    assert_int_equal(fixture_apply(&f, SITE(READERS, "")), BH_OK);
    BH_CHECK_EQ("and when the site changes", f.core.access->check_ns, 0);
    access_check(&f);
    BH_CHECK_EQ("never else", f.core.access->check_ns, UINT64_MAX);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_denied_submission_is_recorded_for_the_job_and_for_the_dataset),
    cmocka_unit_test(a_network_is_a_place_to_copy_to),
    cmocka_unit_test(a_hidden_dataset_is_like_none),
    cmocka_unit_test(a_start_is_recorded_before_it_happens),
    cmocka_unit_test(a_start_in_the_same_step_as_the_submission_is_recorded_too),
    cmocka_unit_test(a_grant_that_is_taken_back_ends_the_job_at_its_start),
    cmocka_unit_test(a_grant_that_has_ended_does_too),
    cmocka_unit_test(a_dataset_that_is_gone_cannot_be_mounted),
    cmocka_unit_test(a_place_that_a_grant_leaves_out_is_refused),
    cmocka_unit_test(an_order_that_is_said_again_is_judged_again),
    cmocka_unit_test(a_start_of_who_knows_what_is_refused),
    cmocka_unit_test(a_running_job_whose_grant_ends_is_recorded_once),
    cmocka_unit_test(a_job_with_a_network_loses_access_with_copy),
    cmocka_unit_test(running_jobs_are_looked_at_when_a_grant_ends),
};
BH_TEST_MAIN(tests)
