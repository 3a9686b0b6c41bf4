#include "cli/output/view.h"

#include "base/json.h"
#include "base/test.h"
#include "base/yaml.h"
#include "cli/jobs/jobs.h"
#include "cli/output/output.h"
#include "cli/output/table.h"
#include "cli/output/views.h"

#define NOW 1000000000000000000

static void
test_table(void **state)
{
    struct bh_table *table = bh_table_new(3);
    struct bh_buf out;
    static const char *const cells[] = {
        "ID",
        "NAME",
        "REASON",
        "1",
        "\xc3\xa4\xc3\xb6",
        "a long reason that is not cut",
        "100",
        NULL,
        "",
        "2",
        "evil\x1b[2Jname",
        "r",
        "3",
        "\xe6\x97\xa5\xe6\x9c\xac",
        "two columns each",
        "4",
        "e\xcc\x81",
        "a combining accent",
        "5",
        "a\xe2\x80\xae"
        "b",
        "right to left",
        "6",
        "\xff\xc3",
        "no UTF-8",
    };

    for (size_t i = 0; i < BH_COUNT(cells); i++)
        bh_table_put(table, cells[i]);
    bh_buf_init(&out, 65536);
    bh_table_render(table, &out);
    assert_string_equal(bh_buf_text(&out), "ID   NAME          REASON\n"
                                           "1    \xc3\xa4\xc3\xb6            a long reason that is not cut\n"
                                           "100  -             -\n"
                                           "2    evil?[2Jname  r\n"
                                           "3    \xe6\x97\xa5\xe6\x9c\xac          two columns each\n"
                                           "4    e\xcc\x81             a combining accent\n"
                                           "5    a???b         right to left\n"
                                           "6    ??            no UTF-8\n");
    bh_buf_fini(&out);
    bh_table_free(table);
}

static struct bh_json *
view_test_parse(const char *text)
{
    struct bh_json *json = NULL;
    struct bh_err err;

    if (bh_json_parse(text, strlen(text), &json, &err) != BH_OK)
        fail_msg("%s: %s", text, err.msg);
    return json;
}

/* U+202E turns the order of writing, U+200B is not seen, U+0085 ends a line on some terminals. */
static void
test_unseen_characters(void **state)
{
#define UNSEEN                                                                                               \
    "\xe2\x80\xae"                                                                                           \
    "\xe2\x80\x8b"                                                                                           \
    "\xc2\x85"                                                                                               \
    "\xef\xbb\xbf"                                                                                           \
    "\x7f"
    BH_AUTO(bh_json_free)
    struct bh_json *json =
        view_test_parse("{\"spec\":{\"args\":[\"a" UNSEEN "\",\"b\\n\"],\"env\":[\"A=" UNSEEN "\"],"
                        "\"mounts\":[{\"source\":\"/" UNSEEN "\",\"target\":\"/" UNSEEN "\"}],"
                        "\"m" UNSEEN "\":{\"k" UNSEEN "\":\"v" UNSEEN "\"}}}");
    struct bh_buf out;

    bh_buf_init(&out, 65536);
    bh_view_describe(&out, bh_json_root(json), NOW);
    BH_CHECK("something", bh_buf_text(&out) && strstr(bh_buf_text(&out), "a????"));
    for (const char *at = bh_buf_text(&out); at && *at; at++)
        if (*at != '\n' && (*at < 0x20 || *at == 0x7f))
            BH_CHECK("shown", false);
    bh_buf_fini(&out);
    BH_CHECK_DONE();
}

static const struct {
    const char *name;
    enum bh_unpack_view cell;
    const char *key, *object, *text;
} cells[] = {
    { "text", BH_CELL_TEXT, "a", "{\"a\":\"x\"}", "x" },
    { "number", BH_CELL_TEXT, "a", "{\"a\":-5}", "-5" },
    { "flag", BH_CELL_TEXT, "a", "{\"a\":true}", "yes" },
    { "a bound", BH_CELL_BOUND, "a", "{\"a\":{\"firm\":true,\"gpus\":\"1.5\"}}", "1.5" },
    { "a guess", BH_CELL_BOUND, "a", "{\"a\":{\"firm\":false,\"partitions\":3}}", "3?" },
    { "kept", BH_CELL_HITS, "a", "{\"a\":{\"judged\":20,\"kept\":19}}", "19/20" },
    { "none fell due", BH_CELL_HITS, "a", "{\"a\":{\"judged\":0,\"kept\":0}}", "-" },
    { "permille", BH_CELL_PERMILLE, "a", "{\"a\":875}", "87.5%" },
    { "grow", BH_CELL_PROPOSAL, "a", "{\"a\":{\"gpus\":8,\"move\":\"grow\"}}", "grow by 8" },
    { "keep", BH_CELL_PROPOSAL, "a", "{\"a\":{\"gpus\":0,\"move\":\"keep\"}}", "keep" },
    { "null", BH_CELL_TEXT, "a", "{\"a\":null}", "" },
    { "absent", BH_CELL_TEXT, "b", "{\"a\":1}", "" },
    { "list", BH_CELL_TEXT, "a", "{\"a\":[\"x\",2]}", "x, 2" },
    { "members", BH_CELL_TEXT, "a", "{\"a\":{\"small\":2,\"large\":1}}", "small 2, large 1" },
    { "inside", BH_CELL_TEXT, "a.b.c", "{\"a\":{\"b\":{\"c\":7}}}", "7" },
    { "inside of no object", BH_CELL_TEXT, "a.b", "{\"a\":3}", "" },
    { "time", BH_CELL_TIME, "a", "{\"a\":\"1000000000000000000\"}", "2001-09-09T01:46:40Z" },
    { "no time", BH_CELL_TIME, "a", "{\"a\":\"0\"}", "" },
    { "a whole GPU", BH_CELL_PARTS, "a", "{\"a\":4200}", "1" },
    { "half a GPU", BH_CELL_PARTS, "a", "{\"a\":2100}", "0.5" },
    { "a seventh", BH_CELL_PARTS, "a", "{\"a\":600}", "0.143" },
    { "eight", BH_CELL_PARTS, "a", "{\"a\":33600}", "8" },
    { "GiB", BH_CELL_MIB, "a", "{\"a\":81920}", "80GiB" },
    { "MiB", BH_CELL_MIB, "a", "{\"a\":9984}", "9984MiB" },
    { "GPU-hours", BH_CELL_GPU_TIME, "a", "{\"a\":\"15120000000000000\"}", "1.000" },
    { "GPU-hours over 64 bits", BH_CELL_GPU_TIME, "a", "{\"a\":\"151200000000000000000000\"}",
      "10000000.000" },
    { "count", BH_CELL_COUNT, "a", "{\"a\":[1,2,3]}", "3" },
    { "not started", BH_CELL_RUNTIME, "", "{\"started_ns\":\"0\"}", "" },
    { "running", BH_CELL_RUNTIME, "", "{\"started_ns\":\"999999815000000000\"}", "3m05s" },
    { "ended", BH_CELL_RUNTIME, "", "{\"started_ns\":\"5000000000\",\"ended_ns\":\"9000000000\"}", "4s" },
    { "place", BH_CELL_PLACEMENT, "", "{\"node\":\"n1\",\"partitions\":\"GPU-1 1g.10gb@0\"}",
      "n1/GPU-1 1g.10gb@0" },
    { "no place", BH_CELL_PLACEMENT, "", "{\"node\":\"\",\"partitions\":\"\"}", "" },
    { "waits", BH_CELL_REASON, "", "{\"reason\":\"quota_gpu\",\"exit_status\":null}", "quota_gpu" },
    { "ended well", BH_CELL_REASON, "", "{\"reason\":\"none\",\"cause\":\"exited\",\"exit_status\":0}",
      "exited" },
    { "ended badly", BH_CELL_REASON, "", "{\"reason\":\"none\",\"cause\":\"exited\",\"exit_status\":7}",
      "exited(7)" },
    { "piece", BH_CELL_PARTITIONS, "p",
      "{\"p\":[{\"profile\":\"1g.10gb\",\"start\":2,\"state\":\"leased\",\"tenant\":\"acme\",\"job\":4},"
      "{\"profile\":\"whole\",\"start\":0,\"state\":\"idle\"}]}",
      "1g.10gb@2 leased acme job 4, whole@0 idle" },
    { "fenced", BH_CELL_GPU_STATE, "", "{\"fenced\":true,\"managed\":true}", "fenced" },
    { "fenced, and why", BH_CELL_GPU_STATE, "",
      "{\"fenced\":true,\"fenced_why\":\"job 7: device-fence\",\"managed\":true}",
      "fenced (job 7: device-fence)" },
    { "cordoned by verb", BH_CELL_GPU_STATE, "", "{\"managed\":true,\"health\":\"ok\",\"cordon\":\"cordon\"}",
      "cordoned" },
    { "drained node", BH_CELL_GPU_STATE, "",
      "{\"managed\":true,\"cordon\":\"no\",\"node_cordon\":\"drain\",\"partitions\":[{\"state\":\"idle\"}]}",
      "drained" },
    { "draining", BH_CELL_GPU_STATE, "",
      "{\"managed\":true,\"cordon\":\"drain_now\",\"partitions\":[{\"state\":\"leased\"}]}", "draining" },
    { "quarantined", BH_CELL_GPU_STATE, "",
      "{\"managed\":true,\"cordon\":\"cordon\",\"health\":\"quarantined\",\"fault\":\"XID 64, a row\"}",
      "quarantined (XID 64, a row)" },
    { "node", BH_CELL_NODE_STATE, "", "{\"state\":\"up\",\"cordon\":\"no\"}", "up" },
    { "node cordoned", BH_CELL_NODE_STATE, "", "{\"state\":\"up\",\"cordon\":\"cordon\"}", "up, cordoned" },
    { "node not verified", BH_CELL_NODE_STATE, "",
      "{\"state\":\"up\",\"cordon\":\"no\",\"isolation\":\"unfinished\","
      "\"isolation_again_ns\":\"1700000000000000000\"}",
      "up, isolation unfinished (being repeated)" },
    { "one GPU's", BH_CELL_NODE_STATE, "",
      "{\"state\":\"up\",\"cordon\":\"no\",\"isolation\":\"partly\",\"isolation_gpus_fenced\":1}",
      "up, isolation partly (fenced GPUs: 1)" },
    { "node with a hole", BH_CELL_NODE_STATE, "",
      "{\"state\":\"up\",\"cordon\":\"no\",\"isolation\":\"broken\"}", "up, isolation broken" },
    { "node verified", BH_CELL_NODE_STATE, "",
      "{\"state\":\"up\",\"cordon\":\"no\",\"isolation\":\"verified\"}", "up" },
    { "node to reboot", BH_CELL_NODE_STATE, "",
      "{\"state\":\"up\",\"cordon\":\"drain\",\"needs_reboot\":true}", "up, drained, needs a reboot" },
    { "node to check", BH_CELL_NODE_STATE, "", "{\"state\":\"up\",\"cordon\":\"no\",\"unchecked\":true}",
      "up, unchecked: jobs failed to start" },
    { "unmanaged", BH_CELL_GPU_STATE, "", "{\"managed\":false}", "unmanaged" },
    { "unmanaged", BH_CELL_GPU_STATE, "", "{\"managed\":false,\"foreign_instances\":2}",
      "unmanaged (foreign instances)" },
    { "assumed", BH_CELL_UNVERIFIED, "", "{\"assumed\":true}", "assumed" },
    { "quotas", BH_CELL_QUOTAS, "l",
      "{\"l\":[{\"sku\":\"small\",\"used\":1,\"limit\":2},"
      "{\"model\":\"H100-80GB\",\"used\":\"0.5\",\"limit\":null}]}",
      "small 1/2, H100-80GB 0.5/-" },
    { "budget", BH_CELL_BUDGET, "b",
      "{\"b\":{\"spent_gpu_hours\":\"1.50\","
      "\"gpu_hours\":\"2.00\",\"spent_money\":\"3.10\",\"period\":\"month\"}}",
      "1.50/2.00 GPU-h, 3.10/- a month" },
};

static void
test_cells(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cells); i++) {
        BH_AUTO(bh_json_free) struct bh_json *json = view_test_parse(cells[i].object);
        struct bh_column column = { "X", cells[i].key, cells[i].cell, false };
        char memory[512];
        struct bh_buf out;

        bh_buf_init_fixed(&out, memory, sizeof memory);
        bh_view_cell(&out, &column, bh_json_root(json), NOW);
        BH_CHECK_STR(cells[i].name, bh_buf_text(&out), cells[i].text);
    }
    BH_CHECK_DONE();
}

static void
test_jobs_table(void **state)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = view_test_parse(
        "[{\"id\":12,\"name\":\"train\",\"user\":\"alice\",\"tenant\":\"acme/vision\",\"sku\":\"small\","
        "\"state\":\"running\",\"started_ns\":\"999999997000000000\",\"node\":\"n1\","
        "\"partitions\":\"GPU-1 1g.10gb@0\",\"reason\":\"\"},"
        "{\"id\":13,\"name\":\"\",\"user\":\"bob\",\"tenant\":\"acme/speech\",\"sku\":\"large\","
        "\"state\":\"pending\",\"started_ns\":\"0\",\"node\":\"\",\"partitions\":\"\","
        "\"reason\":\"quota_gpu\"}]");
    struct bh_view_style style = { .headers = true, .now_ns = NOW };
    struct bh_buf out;

    bh_buf_init(&out, 65536);
    bh_view_table(&out, &bh_view_jobs, &style, bh_json_root(json));
    assert_string_equal(
        bh_buf_text(&out),
        "JOBID  NAME   USER   TENANT       SKU    STATE    TIME  NODE/GPU            REASON\n"
        "12     train  alice  acme/vision  small  running  3s    n1/GPU-1 1g.10gb@0  -\n"
        "13     -      bob    acme/speech  large  pending  -     -                   quota_gpu\n");
    bh_buf_fini(&out);
}

/* The names of the members that the views read are distinct and none is too wide. */
static void
test_views_fit(void **state)
{
    static const struct bh_view *const views[] = {
        &bh_view_jobs,
        &bh_view_gpus,
        &bh_view_nodes,
        &bh_view_tenants,
        &bh_view_quota,
        &bh_view_skus,
        &bh_view_datasets,
        &bh_view_usage,
        &bh_view_tokens,
        &bh_view_records,
        &bh_view_checkpoints,
        &bh_view_checks,
        &bh_view_forecast_tenants,
        &bh_view_forecast_pools,
        &bh_view_forecast_partitions,
        &bh_view_forecast_nodes,
    };

    for (size_t i = 0; i < BH_COUNT(views); i++) {
        BH_CHECK(views[i]->columns[0].header, views[i]->count <= BH_TABLE_COLUMNS_MAX);
        BH_CHECK(views[i]->columns[0].header, !views[i]->columns[0].wide);
    }
    BH_CHECK_DONE();
}

static const char document[] =
    "{\"name\":\"a b\",\"on\":true,\"n\":-3,\"none\":null,\"empty\":{},\"list\":[],"
    "\"words\":[\"yes\",\"plain\",\"12\",\"x: y\",\"-\"],"
    "\"tenants\":[{\"name\":\"acme\",\"limits\":[{\"sku\":\"small\",\"count\":2}]},{\"name\":\"b\"}]}";

static void
test_json(void **state)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = view_test_parse("{\"a\":[1,{\"b\":\"c\"}],\"d\":{},\"e\":[]}");
    struct bh_buf out;

    bh_buf_init(&out, 65536);
    bh_output_json(&out, bh_json_root(json));
    assert_string_equal(bh_buf_text(&out), "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"c\"\n    }\n"
                                           "  ],\n  \"d\": {},\n  \"e\": []\n}\n");
    bh_buf_fini(&out);
}

/* What is printed as YAML reads back as the same JSON. */
static void
test_yaml_round(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = view_test_parse(document), *back = NULL;
    struct bh_buf yaml, text, first, second;
    struct bh_err err;

    bh_buf_init(&yaml, 65536);
    bh_buf_init(&text, 65536);
    bh_buf_init(&first, 65536);
    bh_buf_init(&second, 65536);
    bh_output_yaml(&yaml, bh_json_root(json));
    if (bh_yaml_to_json(yaml.bytes, yaml.length, &text, &err) != BH_OK)
        fail_msg("%s\n%s", err.msg, bh_buf_text(&yaml));
    assert_int_equal(bh_json_parse(text.bytes, text.length, &back, &err), BH_OK);
    bh_output_json(&first, bh_json_root(json));
    bh_output_json(&second, bh_json_root(back));
    assert_string_equal(bh_buf_text(&first), bh_buf_text(&second));
    bh_buf_fini(&yaml);
    bh_buf_fini(&text);
    bh_buf_fini(&first);
    bh_buf_fini(&second);
}

static void
test_yaml_text(void **state)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = view_test_parse("{\"a\":[{\"b\":\"c\",\"d\":[1]},\"no\"],\"e\":{\"f\":\"g/h\"}}");
    struct bh_buf out;

    bh_buf_init(&out, 65536);
    bh_output_yaml(&out, bh_json_root(json));
    assert_string_equal(bh_buf_text(&out), "a:\n  - b: c\n    d:\n      - 1\n  - \"no\"\ne:\n  f: g/h\n");
    bh_buf_fini(&out);
}

/* What a site file changed is as many lines as apply printed. */
static void
test_describe_lines(void **state)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json =
        view_test_parse("{\"changes\":[\"a: 1 -> 2\",\"b: added (c, d)\"],\"args\":[\"sh\",\"-c\"]}");
    struct bh_buf out;

    bh_buf_init(&out, 4096);
    bh_view_describe(&out, bh_json_root(json), 0);
    assert_string_equal(bh_buf_text(&out),
                        "Changes:          \n  a: 1 -> 2\n  b: added (c, d)\nArgs:             sh, -c\n");
    bh_buf_fini(&out);
}

/* A key's old name is not shown beside the new one; alone it is a key like others. */
static void
test_deprecated_keys(void **state)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json =
        view_test_parse("{\"held\":{\"pieces\":3},\"partitions\":\"1g.10gb\",\"pieces\":\"1g.10gb\"}");
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = 4096 };

    bh_view_describe(&out, bh_json_root(json), 0);
    assert_string_equal(bh_buf_text(&out),
                        "Held:             \n  Pieces:         3\nPartitions:       1g.10gb\n");
}

static const struct {
    const char *name, *state, *cause;
    int64_t status;
    int exit;
} endings[] = {
    { "good", "completed", "exited", 0, 0 },
    { "its own status", "failed", "exited", 7, 7 },
    { "a signal", "failed", "signalled", 9, 137 },
    { "a signal, as a shell says it", "failed", "signalled", 137, 137 },
    { "cancelled before it ran", "cancelled", "cancelled", -1, 9 },
    { "time limit", "failed", "time_limit", -1, 9 },
    { "node lost", "failed", "node_lost", -1, 9 },
};

static void
test_statuses(void **state)
{
    for (size_t i = 0; i < BH_COUNT(endings); i++)
        BH_CHECK_EQ(endings[i].name,
                    bh_job_exit_status(endings[i].state, endings[i].cause, endings[i].status),
                    endings[i].exit);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table),          cmocka_unit_test(test_unseen_characters),
    cmocka_unit_test(test_cells),          cmocka_unit_test(test_jobs_table),
    cmocka_unit_test(test_views_fit),      cmocka_unit_test(test_json),
    cmocka_unit_test(test_yaml_round),     cmocka_unit_test(test_yaml_text),
    cmocka_unit_test(test_describe_lines), cmocka_unit_test(test_deprecated_keys),
    cmocka_unit_test(test_statuses),
};
BH_TEST_MAIN(tests)
