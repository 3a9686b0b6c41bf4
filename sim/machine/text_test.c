/* The two texts that users write: topology and control files. */
#include "base/test.h"

#include "sim/machine/control.h"
#include "sim/machine/geometry.h"
#include "sim/machine/topology.h"

static const struct {
    const char *name, *text;
    int line;
    unsigned gpus;
} topologies[] = {
    { "one line", "node: 8x H100-80GB\n", 0, 8 },
    { "no newline", "node: 1x A30-24GB", 0, 1 },
    { "comment and two lines", "# a\nnode: 2x A100-40GB mig=on # b\n\nnode: 3x B200-180GB\n", 0, 5 },
    { "all options", "node: 1x A30-24GB mig=off unbind=off seed=7 driver=570.1.2\n", 0, 1 },
    { "as many as there are minors", "node: 32x H100-80GB\n", 0, 32 },
    { "empty", "", 1, 0 },
    { "comment only", "# nothing\n", 2, 0 },
    { "too many", "node: 33x H100-80GB\n", 1, 0 },
    { "too many in all", "node: 20x H100-80GB\nnode: 20x H100-80GB\n", 2, 0 },
    { "unknown model", "node: 1x H100\n", 1, 0 },
    { "none", "node: 0x H100-80GB\n", 1, 0 },
    { "no x", "node: 8 H100-80GB\n", 1, 0 },
    { "bad switch", "node: 1x A30-24GB mig=yes\n", 1, 0 },
    { "bad driver", "node: 1x A30-24GB driver=a\n", 1, 0 },
    { "unknown option", "node: 1x A30-24GB\nnode: 1x A30-24GB colour=red\n", 2, 0 },
};

static void
test_topology(void **unused)
{
    static struct sim_state state;

    for (size_t i = 0; i < sizeof(topologies) / sizeof(topologies[0]); i++) {
        BH_CHECK_EQ(topologies[i].name, sim_topology_parse(topologies[i].text, &state), topologies[i].line);
        if (topologies[i].line == 0)
            BH_CHECK_EQ(topologies[i].name, state.system.gpus, topologies[i].gpus);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    int bad_line;
    enum sim_rule_kind kind;
    uint32_t gpu;
    uint64_t value, count;
} controls[] = {
    { "hang", "nvmlDeviceSetMigMode gpu=0 hang", 0, SIM_RULE_HANG, 0, 0, 0 },
    { "fail once", "nvmlInit fail=IN_USE count=1", 0, SIM_RULE_FAIL, SIM_NO_ID, 19, 1 },
    { "delay", "nvmlGpuInstanceDestroy delay-ms=1000", 0, SIM_RULE_DELAY, SIM_NO_ID, 1000, 0 },
    { "lost", "gpu=3 lost", 0, SIM_RULE_LOST, 3, 0, 0 },
    { "xid", "# x\ngpu=2 xid=79 gi=1 ci=0 id=a", 0, SIM_RULE_XID, 2, 79, 0 },
    { "ecc", "gpu=2 ecc-uncorrected=2", 0, SIM_RULE_ECC_UNCORRECTED, 2, 2, 0 },
    { "a wrong line leaves the right ones", "nonsense\ngpu=1 lost", 1, SIM_RULE_LOST, 1, 0, 0 },
    { "call without fault", "nvmlInit", 1, SIM_RULE_NONE, 0, 0, 0 },
    { "unknown code", "nvmlInit fail=NONE_SUCH", 1, SIM_RULE_NONE, 0, 0, 0 },
    { "fault of a call for a GPU", "gpu=1 hang", 1, SIM_RULE_NONE, 0, 0, 0 },
    { "fault of a GPU for a call", "nvmlInit gpu=1 lost", 1, SIM_RULE_NONE, 0, 0, 0 },
    { "two faults", "nvmlInit hang fail=IN_USE", 1, SIM_RULE_NONE, 0, 0, 0 },
    { "no number", "gpu=x lost", 1, SIM_RULE_NONE, 0, 0, 0 },
};

static void
test_control(void **unused)
{
    static struct sim_rules rules;

    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
        sim_control_parse(controls[i].text, &rules);
        BH_CHECK_EQ(controls[i].name, rules.bad_line, controls[i].bad_line);
        BH_CHECK_EQ(controls[i].name, rules.count, controls[i].kind != SIM_RULE_NONE);
        if (rules.count != 1)
            continue;
        BH_CHECK_EQ(controls[i].name, rules.rule[0].kind, controls[i].kind);
        BH_CHECK_EQ(controls[i].name, rules.rule[0].gpu, controls[i].gpu);
        BH_CHECK_EQ(controls[i].name, rules.rule[0].value, controls[i].value);
        BH_CHECK_EQ(controls[i].name, rules.rule[0].count, controls[i].count);
    }
    BH_CHECK_DONE();
}

/* A line happens once, a second line happens too, a line taken away and written
 * again happens again. */
static void
test_apply(void **unused)
{
    static struct sim_state state;
    static struct sim_rules rules;

    assert_int_equal(sim_topology_parse("node: 2x H100-80GB", &state), 0);
    sim_control_parse("gpu=1 xid=79\ngpu=0 lost\ngpu=1 ecc-uncorrected=2", &rules);
    BH_CHECK("first", sim_control_apply(&rules, &state));
    BH_CHECK_EQ("events", state.event_seq, 2);
    BH_CHECK_EQ("lost", state.gpu[0].lost, 1);
    BH_CHECK_EQ("errors", state.gpu[1].ecc.uncorrected[0], 2);
    BH_CHECK("again: no change", !sim_control_apply(&rules, &state));
    sim_control_parse("gpu=1 xid=79\ngpu=1 xid=79", &rules);
    BH_CHECK("one line more", sim_control_apply(&rules, &state));
    BH_CHECK_EQ("events", state.event_seq, 3);
    BH_CHECK_EQ("found again", state.gpu[0].lost, 0);
    sim_control_parse("", &rules);
    sim_control_apply(&rules, &state);
    sim_control_parse("gpu=1 xid=79", &rules);
    sim_control_apply(&rules, &state);
    BH_CHECK_EQ("written again", state.event_seq, 4);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_topology),
    cmocka_unit_test(test_control),
    cmocka_unit_test(test_apply),
};

BH_TEST_MAIN(tests)
