/* The openb replay on made-up files: what is refused and how it is said, orders, kinds, and
 * a run small enough to follow by hand. */
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "lab/openb/options.h"
#include "lab/openb/run.h"
#include "lab/openb/text.h"

static char folder[64];

static const char *
path_of(const char *name)
{
    static char path[2][256];
    static unsigned turn;

    snprintf(path[++turn % 2], sizeof path[0], "%s/%s", folder, name);
    return path[turn % 2];
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int
make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/bh_openb_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
    static const char *const names[] = { "nodes.csv", "pods.csv", "orders" };

    for (size_t i = 0; i < BH_COUNT(names); i++)
        unlink(path_of(names[i]));
    return rmdir(folder);
}

#define NODE_HEADER "sn,cpu_milli,memory_mib,gpu,model\n"
#define POD_HEADER "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

static const struct {
    const char *name, *text, *message; /* NULL: it is read */
    bh_rc rc;
} node_files[] = {
    { "good", NODE_HEADER "a,1000,2000,2,T4\n", NULL, BH_OK },
    { "no last newline", NODE_HEADER "a,1000,2000,2,T4", NULL, BH_OK },
    { "empty", "", ":0: the header is not", BH_INVALID },
    { "no rows", NODE_HEADER, ": 0 rows", BH_RANGE },
    { "other header", "sn,cpu\na,1\n", ":1: the header is not", BH_INVALID },
    { "too few fields", NODE_HEADER "a,1000,2000,2\n", ":2: 4 fields, the header has 5", BH_INVALID },
    { "too many fields", NODE_HEADER "a,1,2,2,T4\nb,1,2,2,T4,x\n", ":3: 6 fields", BH_INVALID },
    { "no name", NODE_HEADER ",1000,2000,2,T4\n", ":2: no name", BH_INVALID },
    { "blank line", NODE_HEADER "\na,1,2,2,T4\n", ":2: 1 fields", BH_INVALID },
    { "no number", NODE_HEADER "a,x,2000,2,T4\n", ":2: cpu_milli: ", BH_INVALID },
    { "a fraction", NODE_HEADER "a,1,2000.5,2,T4\n", ":2: memory_mib: ", BH_INVALID },
    { "too many GPUs", NODE_HEADER "a,1,2,17,T4\n", ":2: gpu: ", BH_RANGE },
    { "no model", NODE_HEADER "a,1,2,2,\n", ":2: a GPU model without a name", BH_INVALID },
};

static void
malformed_nodes_are_named(void **state)
{
    for (size_t i = 0; i < BH_COUNT(node_files); i++) {
        BH_AUTO(bh_arena_free)
        struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_openb_trace trace;
        struct bh_err err = { 0 };

        write_file("nodes.csv", node_files[i].text);
        BH_CHECK_EQ(node_files[i].name, bh_openb_read_nodes(path_of("nodes.csv"), arena, &trace, &err),
                    node_files[i].rc);
        if (node_files[i].message && !strstr(err.msg, node_files[i].message))
            BH_CHECK_STR(node_files[i].name, err.msg, node_files[i].message);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text, *message;
    bh_rc rc;
} pod_files[] = {
    { "good", POD_HEADER "a,1,2,1,500,T4|P100\n", NULL, BH_OK },
    { "without gpu_spec", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,2,1,500\n", NULL, BH_OK },
    { "part of two GPUs", POD_HEADER "a,1,2,2,500,\n", ":2: gpu_milli: a part of each of 2", BH_INVALID },
    { "part of none", POD_HEADER "a,1,2,0,500,\n", ":2: gpu_milli: 500 of no GPU", BH_INVALID },
    { "nothing of one", POD_HEADER "a,1,2,1,0,\n", ":2: gpu_milli: nothing", BH_INVALID },
    { "no whole parts", POD_HEADER "a,1,2,1,333,\n", ":2: gpu_milli: 333 is no multiple of 5", BH_INVALID },
    { "over a GPU", POD_HEADER "a,1,2,1,1001,\n", ":2: gpu_milli: ", BH_RANGE },
    { "empty model", POD_HEADER "b,1,2,0,0,\na,1,2,1,500,T4|\n", ":3: a GPU model without", BH_INVALID },
};

static void
malformed_pods_are_named(void **state)
{
    for (size_t i = 0; i < BH_COUNT(pod_files); i++) {
        BH_AUTO(bh_arena_free)
        struct bh_arena *arena = bh_arena_new(1 << 20);
        struct bh_openb_trace trace = { 0 };
        struct bh_err err = { 0 };

        write_file("pods.csv", pod_files[i].text);
        BH_CHECK_EQ(pod_files[i].name, bh_openb_read_pods(path_of("pods.csv"), arena, &trace, &err),
                    pod_files[i].rc);
        if (pod_files[i].message && !strstr(err.msg, pod_files[i].message))
            BH_CHECK_STR(pod_files[i].name, err.msg, pod_files[i].message);
    }
    BH_CHECK_DONE();
}

static const char small_nodes[] = NODE_HEADER "n2,64000,1000,2,T4\n"
                                              "n1,32000,1000,1,P100\n";
static const char small_pods[] = POD_HEADER "p3,1000,10,0,0,\n"
                                            "p1,2000,10,1,500,P100\n"
                                            "p2,4000,10,1,1000,\n"
                                            "p4,2000,20,1,500,P100\n";

static void
read_small(struct bh_arena *arena, struct bh_openb_trace *trace)
{
    struct bh_err err = { 0 };

    write_file("nodes.csv", small_nodes);
    write_file("pods.csv", small_pods);
    assert_int_equal(bh_openb_read_nodes(path_of("nodes.csv"), arena, trace, &err), BH_OK);
    assert_int_equal(bh_openb_read_pods(path_of("pods.csv"), arena, trace, &err), BH_OK);
}

static void
rows_are_sorted_by_name(void **state)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_openb_trace trace;

    read_small(arena, &trace);
    assert_int_equal(trace.node_count, 2);
    assert_string_equal(trace.nodes[0].name, "n1");
    assert_int_equal(trace.nodes[1].has.parts[1], BH_GPU_PARTS);
    assert_int_equal(trace.gpu_milli, 3000);
    assert_string_equal(trace.pods[0].name, "p1");
    assert_int_equal(trace.pods[0].shape.parts, BH_GPU_PARTS / 2);
    assert_int_equal(trace.pods[0].shape.models, 1 << trace.nodes[0].has.model);
    assert_int_equal(trace.pods[1].shape.models, UINT64_MAX);
}

static void
pods_fall_into_kinds(void **state)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_openb_trace trace;
    struct bh_openb_load load;
    struct bh_err err = { 0 };

    read_small(arena, &trace);
    assert_int_equal(bh_openb_load_read(&trace, arena, &load, &err), BH_OK);
    assert_int_equal(load.kind_count, 4);     /* p1 and p4 differ in memory, */
    assert_int_equal(load.expected_count, 3); /* which is not looked at here */
    assert_int_equal(load.expected[0].count, 2);
    assert_int_equal(load.expected[0].shape.memory_mib, 0);
    assert_int_equal(load.expected[1].shape.cpu_milli, 4000); /* more cores first */
    assert_int_equal(load.unexpected, 0);
}

static const struct {
    const char *name, *text, *message;
    bh_rc rc;
} orders[] = {
    { "good", "7;0,1;0\n42;1,0;3,2,1,0,0\n", NULL, BH_OK },
    { "no such seed", "7;0,1;0\n", "no order of seed 42", BH_NOT_FOUND },
    { "two fields", "42;1,0\n", ":1: 2 fields, not seed;nodes;pods", BH_INVALID },
    { "a node is missing", "42;1;0\n", ":1: 1 nodes, the cluster has 2", BH_INVALID },
    { "a node twice", "42;1,1;0\n", ":1: node 1 comes twice", BH_INVALID },
    { "no such pod", "42;1,0;4\n", ":1: ", BH_RANGE },
    { "no number", "7;1,0;0\n42;1,0;0,,1\n", ":2: ", BH_INVALID },
    { "no seed", "x;1,0;0\n", ":1: ", BH_INVALID },
};

static void
malformed_orders_are_named(void **state)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_openb_trace trace;

    read_small(arena, &trace);
    for (size_t i = 0; i < BH_COUNT(orders); i++) {
        struct bh_openb_order order = { .seed = 42 };
        struct bh_err err = { 0 };

        write_file("orders", orders[i].text);
        BH_CHECK_EQ(orders[i].name, bh_openb_order_read(path_of("orders"), &trace, arena, &order, &err),
                    orders[i].rc);
        if (orders[i].message && !strstr(err.msg, orders[i].message))
            BH_CHECK_STR(orders[i].name, err.msg, orders[i].message);
    }
    BH_CHECK_DONE();
}

static void
drawn_orders_follow_the_seed(void **state)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_openb_trace trace;
    struct bh_openb_order a = { .seed = 5 }, b = { .seed = 5 };
    struct bh_err err = { 0 };
    uint32_t asked = 0;

    read_small(arena, &trace);
    assert_int_equal(bh_openb_order_draw(&trace, arena, &a, &err), BH_OK);
    assert_int_equal(bh_openb_order_draw(&trace, arena, &b, &err), BH_OK);
    assert_int_equal(a.pods.count, b.pods.count);
    assert_memory_equal(a.pods.at, b.pods.at, a.pods.count * sizeof *a.pods.at);
    assert_int_equal(a.nodes.at[0] + a.nodes.at[1], 1);
    for (uint32_t i = 0; i < a.pods.count; i++)
        asked += trace.pods[a.pods.at[i]].shape.gpus * trace.pods[a.pods.at[i]].milli;
    assert_in_range(asked, 2900, 3900); /* 130 % of three GPUs, but for the last drawn */
}

/* Arrivals p2, p1, p4, p2, p2 on two nodes: the third whole GPU does not fit. */
static void
a_small_run_by_hand(void **state)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_openb_trace trace;
    struct bh_openb_load load;
    uint32_t nodes[] = { 1, 0 }, pods[] = { 1, 0, 3, 1, 1 };
    struct bh_openb_order order = { 1, { 2, nodes }, { 5, pods } };
    struct bh_openb_plan plan = { &trace, &load, &order, BH_PACK_FGD, 1, true };
    struct bh_openb_result result = { .nodes = 0 };
    struct bh_err err = { 0 };

    read_small(arena, &trace);
    assert_int_equal(bh_openb_load_read(&trace, arena, &load, &err), BH_OK);
    assert_int_equal(bh_openb_run(&plan, &result, &err), BH_OK);
    assert_int_equal(result.arrivals, 5);
    assert_int_equal(result.placed, 4);
    assert_int_equal(result.gpus, 3);
    BH_CHECK_EQ("33 % after the first", result.point[33] * 100, 3333);
    BH_CHECK_EQ("50 % after the second", result.point[50] * 100, 5000);
    BH_CHECK_EQ("100 % after the fourth", result.point[100] * 100, 10000);
    BH_CHECK("no arrival at 99 %", result.point[99] < 0);
    BH_CHECK_EQ("nothing is left", result.fragmented, 0);
    plan.scale = 3;
    assert_int_equal(bh_openb_run(&plan, &result, &err), BH_OK);
    assert_int_equal(result.nodes, 6);
    assert_int_equal(result.arrivals, 15);
    BH_CHECK_DONE();
}

/* After half the P100 is taken, two T4s and a half are free.  Of four pods expected two want
 * half a P100 and cannot use the T4s, one wants a whole GPU and cannot use the half, and one
 * wants none: (2 * 2 + 1/2 + 2 1/2) / 4 GPUs are of no use. */
static void
what_no_job_can_use_is_reported(void **state)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_openb_trace trace;
    struct bh_openb_load load;
    uint32_t nodes[] = { 1, 0 }, pods[] = { 0 };
    struct bh_openb_order order = { 1, { 2, nodes }, { 1, pods } };
    struct bh_openb_plan plan = { &trace, &load, &order, BH_PACK_BESTFIT, 1, false };
    struct bh_openb_result result = { .nodes = 0 };
    struct bh_err err = { 0 };

    read_small(arena, &trace);
    assert_int_equal(bh_openb_load_read(&trace, arena, &load, &err), BH_OK);
    assert_int_equal(bh_openb_run(&plan, &result, &err), BH_OK);
    assert_int_equal(result.placed, 1);
    assert_int_equal(result.fragmented, 7 * BH_GPU_PARTS / 4);
}

static const struct {
    const char *name;
    const char *arguments[6];
    const char *message;
    bh_rc rc;
} lines[] = {
    { "nothing", { NULL }, "--data is needed", BH_INVALID },
    { "no folder", { "--data", "/nowhere" }, "no openb_node_list", BH_NOT_FOUND },
    { "policy", { "--policy", "magic" }, "policy magic: expected one of", BH_INVALID },
    { "seeds backwards", { "--seeds", "5-4" }, "from 1 to", BH_RANGE },
    { "seeds in three", { "--seeds", "1-2-3" }, "not A or A-B", BH_INVALID },
    { "variant", { "--variant", "../etc" }, "not the name", BH_INVALID },
    { "scale", { "--scale", "0" }, "--scale: ", BH_RANGE },
    { "a word", { "word" }, "unknown option word", BH_INVALID },
    { "help", { "--help" }, NULL, BH_OK },
};

static void
wrong_options_are_named(void **state)
{
    for (size_t i = 0; i < BH_COUNT(lines); i++) {
        static struct bh_openb_options options;
        char **words = (char **)(uintptr_t)lines[i].arguments;
        struct bh_err err = { 0 };
        int count = 0;

        while (count < 6 && words[count])
            count++;
        BH_CHECK_EQ(lines[i].name, bh_openb_options_read(count, words, &options, &err), lines[i].rc);
        if (lines[i].message && !strstr(err.msg, lines[i].message))
            BH_CHECK_STR(lines[i].name, err.msg, lines[i].message);
    }
    BH_CHECK_DONE();
}

static void
missing_files_are_named(void **state)
{
    struct bh_openb_text text;
    struct bh_err err = { 0 };

    assert_int_equal(bh_openb_text_open("/nowhere/file", &text, &err), BH_NOT_FOUND);
    assert_non_null(strstr(err.msg, "/nowhere/file"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(malformed_nodes_are_named),  cmocka_unit_test(malformed_pods_are_named),
    cmocka_unit_test(rows_are_sorted_by_name),    cmocka_unit_test(pods_fall_into_kinds),
    cmocka_unit_test(malformed_orders_are_named), cmocka_unit_test(drawn_orders_follow_the_seed),
    cmocka_unit_test(a_small_run_by_hand),        cmocka_unit_test(what_no_job_can_use_is_reported),
    cmocka_unit_test(wrong_options_are_named),    cmocka_unit_test(missing_files_are_named),
};

int
main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
