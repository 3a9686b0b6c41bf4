#include "api/nodes/gpus.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static int
open_gpus(void **state)
{
    f = bh_fixture_open();
    return 0;
}

static int
close_gpus(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static void
others_partitions_are_used_parts_alone(void **state)
{
    bh_fixture_submit(f, 4242, 4, 2, 1);
    bh_fixture_answer_orders(f);
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK("no piece", !strstr(got.text, "\"profile\":\"1g.10gb\""));
    BH_CHECK("what is used", strstr(got.text, "\"used\":{\"compute\":600,"));
    BH_CHECK("not whose", !strstr(got.text, "4242") && !strstr(got.text, "\"tenant\""));
    BH_CHECK("not what it does",
             !strstr(got.text, "power_mw")); /* it is on GPU-a, which alone has a sample */
    SEND(BH_GET, "/v1/gpus", .uid = BOB);
    BH_CHECK("his own", strstr(got.text, "\"job\":4242,") && strstr(got.text, "\"tenant\":\"other\""));
    SEND(BH_GET, "/v1/gpus", .uid = 0);
    BH_CHECK("root sees all", strstr(got.text, "\"job\":4242,") && strstr(got.text, "\"tenant\":\"other\""));
    BH_CHECK_DONE();
}

static void
facts_come_from_the_node(void **state)
{
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK("product", strstr(got.text, "\"product\":\"NVIDIA H100 80GB HBM3\""));
    BH_CHECK("unknown utilisation is left out", !strstr(got.text, "utilisation"));
    BH_CHECK("parts", strstr(got.text, "\"idle\":{\"compute\":4200,\"gpus\":\"1\","
                                       "\"memory\":4200}"));
    BH_CHECK("both GPUs", strstr(got.text, "GPU-a") && strstr(got.text, "GPU-b"));
    f->inventory = NULL;
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK_EQ("without a node too", got.status, 200);
    BH_CHECK("no facts then", !strstr(got.text, "product"));
    SEND(BH_GET, "/v1/nodes", .uid = ALICE);
    BH_CHECK("its node is down",
             strstr(got.text, "{\"items\":[{\"cordon\":\"no\",\"held\":\"no\",\"name\":\"n1\",")
                 && strstr(got.text, "\"state\":\"down\"") && strstr(got.text, "\"total\":1}"));
    SEND(BH_GET, "/v1/status", .uid = ALICE);
    BH_CHECK("not connected", strstr(got.text, "\"connected\":false"));
    BH_CHECK_DONE();
}

/* The inventory is from when the node connected; samples come every few seconds. */
static void
sensors_are_those_sampled_last(void **state)
{
    f->inventory = "{\"gpus\":[{\"memory_used_mib\":7,\"product\":\"then\",\"uuid\":\"GPU-a\"}],"
                   "\"node\":\"n1\",\"samples\":{\"gpus\":[{\"memory_used_mib\":512,"
                   "\"product\":\"now\",\"temperature_c\":66,\"uuid\":\"GPU-a\"}]}}";
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK("memory", strstr(got.text, "\"memory_used_mib\":512"));
    BH_CHECK("temperature", strstr(got.text, "\"temperature_c\":66"));
    BH_CHECK_DONE();
}

#define READ "[{\"power_mw\":0,\"utilisation\":0,\"uuid\":\"GPU-a\"}]"
#define UNREAD "[{\"utilisation\":255,\"uuid\":\"GPU-a\"}]"

/* What the API says of GPU-a where its node's last samples have that. */
static const struct {
    const char *name, *sampled;
    const char *part; /* of the answer, or with '!' in front not of it */
} readings[] = {
    { "0 W is 0", READ, "\"power_mw\":0," },
    { "0 percent is 0", READ, "\"utilisation\":0," },
    { "when it was read", READ, "\"sampled_ns\":\"900000000007\"" },
    { "255 percent is unknown", UNREAD, "!utilisation" },
    { "what the driver does not give", UNREAD, "!power_mw" },
    { "no temperature", UNREAD, "!temperature_c" },
    { "no ECC errors", UNREAD, "!ecc_uncorrected" },
    { "a GPU without memory was not read", UNREAD, "!memory_mib" },
    { "the driver did not answer: not what it said when the node connected", "[]", "!temperature_c" },
    { "nor when", "[]", "!sampled_ns" },
    { "what does not change is known still", "[]", "\"product\":\"H100\"" },
};

static void
figures_that_are_not_known_are_left_out(void **state)
{
    static const char inventory[] =
        "{\"gpus\":[{\"product\":\"H100\",\"temperature_c\":99,\"uuid\":\"GPU-a\"}],\"inventory_ns\":5,"
        "\"node\":\"n1\",\"samples_ns\":900000000007,\"samples\":";
    char text[512];

    f->inventory = text;
    for (size_t i = 0; i < BH_COUNT(readings); i++) {
        bool absent = readings[i].part[0] == '!';

        snprintf(text, sizeof text, "%s{\"at_ns\":\"1\",\"gpus\":%s}}", inventory, readings[i].sampled);
        SEND(BH_GET, "/v1/gpus/GPU-a", .uid = CAROL);
        BH_CHECK(readings[i].name, !strstr(got.text, readings[i].part + absent) == absent);
    }
    snprintf(text, sizeof text, "%snull}", inventory);
    SEND(BH_GET, "/v1/gpus/GPU-a", .uid = CAROL);
    BH_CHECK("before the first sample",
             strstr(got.text, "\"temperature_c\":99") && strstr(got.text, "\"sampled_ns\":\"5\""));
    BH_CHECK_DONE();
}

static void
a_mig_instance_has_its_own_figures(void **state)
{
    bh_fixture_submit(f, 4242, 4, 2, 1);
    bh_fixture_answer_orders(f);
    f->inventory =
        "{\"gpus\":[{\"uuid\":\"GPU-a\"}],\"node\":\"n1\",\"samples\":{\"gpus\":[{\"utilisation\":255,"
        "\"uuid\":\"GPU-a\"}],\"instances\":[{\"busy_bp\":0,\"gpu\":\"GPU-a\",\"memory_used_mib\":"
        "12,\"partition\":1,\"sm_bp\":4300}]}}";
    SEND(BH_GET, "/v1/gpus/GPU-a", .uid = CAROL);
    BH_CHECK("busy", strstr(got.text, "\"busy_bp\":0,"));
    BH_CHECK("multiprocessors", strstr(got.text, "\"sm_bp\":4300,"));
    BH_CHECK("memory", strstr(got.text, "\"memory_used_mib\":12,"));
    SEND(BH_GET, "/v1/gpus/GPU-a", .uid = ALICE);
    BH_CHECK("another tenant's are not shown", !strstr(got.text, "busy_bp") && !strstr(got.text, "\":12,"));
    BH_CHECK("and it is said", strstr(got.text, "\"sensors_withheld\":true"));
    f->inventory = "{\"gpus\":[{\"uuid\":\"GPU-a\"}],\"node\":\"n1\",\"samples\":{\"at_ns\":\"1\"}}";
    SEND(BH_GET, "/v1/gpus/GPU-a", .uid = CAROL);
    BH_CHECK("not known", !strstr(got.text, "busy_bp") && !strstr(got.text, "memory_used_mib"));
    BH_CHECK_DONE();
}

/* `gpu`, `describe gpu` and `describe node` have it from the node's sample; whose job it was is for
 * who sees all. */
static void
why_a_gpu_is_fenced_is_with_it_and_its_node(void **state)
{
    static const char fenced[] =
        "{\"gpus\":[{\"index\":0,\"uuid\":\"GPU-a\"},{\"index\":1,\"uuid\":\"GPU-b\"}],\"node\":\"n1\","
        "\"samples\":{\"gpus\":[{\"fence_why\":\"\",\"uuid\":\"GPU-a\"},"
        "{\"fault\":5,\"fence_why\":\"job 7: seccomp\",\"uuid\":\"GPU-b\"}]}}";
    const struct bh_ev_gpu gpu = { .gpu = { 2 },
                                   .node = { 1 },
                                   .model = BH_GPU_H100_80GB,
                                   .managed = true,
                                   .mig_capable = true,
                                   .fenced = true,
                                   .keeps = true };

    f->inventory = fenced;
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK("not before the daemon knows", !strstr(got.text, "fenced_why"));
    bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_GPU, .u.gpu = gpu });
    SEND(BH_GET, "/v1/gpus", .uid = CAROL);
    BH_CHECK("the GPU", strstr(got.text, "\"fenced\":true,\"fenced_why\":\"job 7: seccomp\""));
    SEND(BH_GET, "/v1/nodes", .uid = CAROL);
    BH_CHECK("its node", strstr(got.text, "\"fenced_gpus\":[{\"gpu\":1,\"uuid\":\"GPU-b\","
                                          "\"why\":\"job 7: seccomp\"}]"));
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK("of what kind", strstr(got.text, "\"fenced_why\":\"an isolation check failed\""));
    SEND(BH_GET, "/v1/nodes", .uid = ALICE);
    BH_CHECK("there too", strstr(got.text, "\"why\":\"an isolation check failed\"}]"));
    BH_CHECK_DONE();
}

static void
each_node_speaks_for_its_own(void **state)
{
    f->inventory_of_second = "{\"cpus\":4,\"gpus\":[{\"product\":\"another\",\"uuid\":\"GPU-b\"}],"
                             "\"node\":\"n0\"}";
    SEND(BH_GET, "/v1/gpus", .uid = ALICE);
    BH_CHECK("the first's", strstr(got.text, "\"node\":\"n1\""));
    BH_CHECK("the second's", strstr(got.text, "\"node\":\"n0\""));
    BH_CHECK("its product", strstr(got.text, "\"product\":\"another\""));
    bh_fixture_put_node(f, 2, "n0");
    SEND(BH_GET, "/v1/nodes", .uid = ALICE);
    BH_CHECK("connected, and not settled", strstr(got.text, "\"state\":\"down\""));
    bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 2 }, true } });
    SEND(BH_GET, "/v1/nodes", .uid = ALICE);
    BH_CHECK("both are up", strstr(got.text, "\"total\":2") && !strstr(got.text, "down"));
    SEND(BH_GET, "/v1/status", .uid = ALICE);
    BH_CHECK("both are counted", strstr(got.text, "\"nodes\":2"));
    BH_CHECK_DONE();
}

static void
what_was_asked_for_is_for_operators(void **state)
{
    bh_fixture_submit(f, 501, 4, 2, 1);
    SEND(BH_GET, "/v1/status", .uid = CAROL);
    BH_CHECK("carol", strstr(got.text, "{\"asked_for\":[{\"model\":\"H100-80GB\",\"partitions\":1,"
                                       "\"pieces\":1,\"profile\":\"1g.10gb\"}],"));
    SEND(BH_GET, "/v1/status", .uid = ALICE);
    BH_CHECK("alice", got.status == 200 && !strstr(got.text, "asked_for"));
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_gpus, close_gpus)
    const struct CMUnitTest tests[] = { TEST(others_partitions_are_used_parts_alone),
                                        TEST(facts_come_from_the_node),
                                        TEST(sensors_are_those_sampled_last),
                                        TEST(figures_that_are_not_known_are_left_out),
                                        TEST(a_mig_instance_has_its_own_figures),
                                        TEST(each_node_speaks_for_its_own),
                                        TEST(why_a_gpu_is_fenced_is_with_it_and_its_node),
                                        TEST(what_was_asked_for_is_for_operators) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
