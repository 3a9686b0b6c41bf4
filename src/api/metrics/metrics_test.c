/* The whole text of a scrape, against metrics_golden.txt; `--update` writes that anew. */
#include "api/metrics/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "api/documents/job_document.h"
#include "api/fixture_test.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/test.h"

static const char *golden_path;
static bool update;
static struct received got;

/* A node whose name needs escaping; job 1 has a lease there, job 9 is unknown. */
/* clang-format off */
#define INVENTORY(NODE) \
    "{\"driver\":\"580.159.03\",\"gpus\":[" \
    "{\"index\":0,\"memory_mib\":81559,\"memory_used_mib\":7,\"pci\":\"00000000:10:00.0\"," \
    "\"product\":\"NVIDIA H100 80GB HBM3\",\"utilisation\":255,\"uuid\":\"GPU-a\"}," \
    "{\"index\":1,\"memory_mib\":81559,\"minor\":1,\"pci\":\"00000000:20:00.0\"," \
    "\"product\":\"NVIDIA H100 80GB HBM3\",\"temperature_c\":30,\"uuid\":\"GPU-b\"}]," \
    "\"node\":\"" NODE "\"," \
    "\"samples\":{\"at_ns\":\"1\",\"gpus\":[{\"busy_bp\":10000,\"dram_bp\":4294967295,\"ecc_uncorrected\":3,\"memory_used_mib\":81600," \
    "\"power_mw\":70125,\"sm_bp\":4205,\"temperature_c\":41,\"tensor_bp\":1,\"utilisation\":99,\"uuid\":\"GPU-a\"}," \
    "{\"busy_bp\":0,\"dram_bp\":0,\"ecc_uncorrected\":0,\"memory_used_mib\":0,\"sm_bp\":0,\"tensor_bp\":0," \
    "\"temperature_c\":30,\"utilisation\":0,\"uuid\":\"GPU-b\"}]," \
    "\"instances\":[{\"busy_bp\":2550,\"dram_bp\":0,\"gi\":9,\"gpu\":\"GPU-a\",\"memory_mib\":9984," \
    "\"memory_used_mib\":400,\"partition\":1,\"profile\":\"1g.10gb\",\"sm_bp\":2000}," \
    "{\"gi\":13,\"gpu\":\"GPU-a\",\"memory_mib\":9984,\"memory_used_mib\":0,\"profile\":\"1g.10gb\"}," \
    "{\"gi\":1,\"gpu\":\"GPU-unknown\"}]," \
    "\"sensors\":[{\"decoder_percent\":0,\"encoder_percent\":3,\"energy_mj\":9007199254740991,\"gpu\":\"GPU-b\"," \
    "\"memory_clock_mhz\":2619,\"memory_percent\":12,\"memory_temperature_c\":44,\"nvlink_kib\":5," \
    "\"pcie_receive_bytes_s\":2000,\"pcie_replays\":0,\"pcie_transmit_bytes_s\":1000,\"remap_failed\":0," \
    "\"remapped_correctable\":1,\"remapped_uncorrectable\":2,\"reserved_mib\":551,\"sm_clock_mhz\":1980," \
    "\"vgpu_licensed\":0},{\"gpu\":\"GPU-a\",\"sm_clock_mhz\":345}]," \
    "\"xids\":[{\"count\":2,\"gpu\":\"GPU-b\",\"xid\":31},{\"count\":1,\"gpu\":\"GPU-unknown\",\"xid\":31}]," \
    "\"samples\":[{\"cpu_ns\":1500000000,\"gpu_memory_mib\":2,\"gpu_utilisation\":37,\"lease\":1,\"memory_bytes\":4096," \
    "\"share_cap_bytes\":4194304,\"share_charged_bytes\":2097152,\"share_driver_bytes\":1048576,\"share_turn_ns\":2500000000}," \
    "{\"cpu_ns\":1,\"lease\":77}]}," \
    "\"traffic\":[{\"denied_packets\":1,\"job\":1,\"rx_bytes\":20,\"tx_bytes\":30}," \
    "{\"job\":9,\"rx_bytes\":1}]}"
/* clang-format on */
static const char inventory[] = INVENTORY("n\\\"1\\\\\\n"), plain[] = INVENTORY("n1");

static void
metrics_put(struct fixture *f, const struct bh_document_row *document)
{
    struct bh_err err;

    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->put_document(f->store.self, document, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
}

static void
put_notices(struct fixture *f, uint64_t job)
{
    char key[BH_JOB_DOCUMENT_KEY_SIZE];

    bh_job_document_key(job, key);
    metrics_put(f, &(struct bh_document_row){
                       .kind = BH_DOCUMENT_NOTICES,
                       .key = key,
                       .version = 1,
                       .value = "{\"items\":[{\"count\":3,\"first_ns\":\"1\",\"kind\":\"more\","
                                "\"last_ns\":\"2\"}]}" });
}

static void
put_carried(struct fixture *f, enum bh_document_kind kind, uint64_t number, uint64_t rx_bytes)
{
    const struct bh_carried_row row = {
        { .counted = true, .rx_bytes = rx_bytes, .tx_bytes = 2 * rx_bytes, .denied_packets = 4 }, 1
    };
    char key[BH_JOB_DOCUMENT_KEY_SIZE], json_memory[400];
    struct bh_document_row document = { .kind = kind, .key = key, .version = 1 };
    struct bh_buf json;

    bh_job_document_key(number, key);
    bh_buf_init_fixed(&json, json_memory, sizeof json_memory);
    bh_json_encode(&json, &bh_carried_row_fields, &row);
    document.value = bh_buf_text(&json);
    metrics_put(f, &document);
}

/* Job 2 as the store has it: why it waits is there. */
static void
put_pending(struct fixture *f)
{
    const struct bh_job_row row = {
        .job = 2, .tenant_id = 2, .count = 1, .state = "pending", .reason = "quota_sku", .exit_status = -1
    };
    struct bh_err err;

    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->put_job(f->store.self, &row, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
}

static void
guarantee(struct fixture *f, bh_tenant_id tenant, uint64_t parts)
{
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_tenant_view view;

    assert_true(bh_view_tenant(f->engine, tenant, 0, &view));
    event.u.tenant = view.settings;
    event.u.tenant.guarantee = parts;
    event.u.tenant.quotas[event.u.tenant.quota_count++] =
        (struct bh_tenant_quota){ BH_QUOTA_MODEL, BH_GPU_H100_80GB, .limit = BH_UNLIMITED,
                                  .guarantee = parts };
    bh_fixture_step(f, event);
}

/* alice's job 1 of acme/vision runs; 2 waits for the quota; bob's 3 of other runs, too. */
static struct fixture *
metrics_open_site(void)
{
    struct fixture *f = bh_fixture_open();

    f->inventory = inventory;
    bh_fixture_submit(f, 1, 2, 1, 1);
    bh_fixture_submit(f, 2, 2, 1, 1);
    bh_fixture_submit(f, 3, 4, 2, 2);
    bh_fixture_answer_orders(f);
    put_carried(f, BH_DOCUMENT_CARRIED, 1, 100);
    put_carried(f, BH_DOCUMENT_CARRIED_TENANT, 2, 1000);
    put_carried(f, BH_DOCUMENT_CARRIED_TENANT, 4, 5);
    put_notices(f, 1);
    put_notices(f, 3); /* no share's job: left out */
    put_pending(f);
    guarantee(f, (bh_tenant_id){ 4 }, 2100);
    bh_fixture_put_record(f, 0, "{}");
    for (uint32_t i = 0; i < BH_TALLIES; i++)
        f->tally[i] = i;
    return f;
}

static void
scrape(struct fixture *f, uint32_t uid, const char *accept)
{
    bh_fixture_send(f, &(struct sent){ .method = BH_GET, .path = "/metrics", .uid = uid, .accept = accept },
                    &got);
    BH_CHECK_EQ("status", got.status, 200);
}

static void
the_text_is_the_golden_one(void **state)
{
    struct fixture *f = metrics_open_site();
    struct bh_buf golden;
    struct bh_err err;

    scrape(f, CAROL, NULL);
    BH_CHECK_STR("type", got.content_type, "text/plain; version=0.0.4; charset=utf-8");
    if (update)
        assert_int_equal(bh_file_replace(golden_path, got.text, strlen(got.text), 0644, &err), BH_OK);
    bh_buf_init(&golden, 1 << 20);
    assert_int_equal(bh_file_read(golden_path, 1 << 20, &golden, &err), BH_OK);
    BH_CHECK_STR("text", got.text, bh_buf_text(&golden));
    bh_buf_fini(&golden);
    BH_CHECK_DONE();
    bh_fixture_close(f);
}

static uint64_t
sum_in(const char *text, const char *name, const char *dimension)
{
    uint64_t sum = 0;
    size_t length = strlen(name);

    for (const char *at = text; *at; at = strchr(at, '\n') + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '{' && strstr(at, dimension)
            && strstr(at, dimension) < strchr(at, '\n'))
            sum += strtoull(strchr(at, '}') + 2, NULL, 10);
    return sum;
}

/* A total is of the store, as it is there. */
static void
totals_are_the_stores(void **state)
{
    struct fixture *f = metrics_open_site();

    scrape(f, CAROL, NULL);
    BH_CHECK_EQ("all tenants'", sum_in(got.text, "bulkhead_tenant_network_receive_bytes_total", "tenant"),
                1005);
    BH_CHECK_DONE();
    bh_fixture_close(f);
}

static void
all_parts_are_somewhere(void **state)
{
    struct fixture *f = metrics_open_site();

    scrape(f, CAROL, "text/plain");
    BH_CHECK_EQ("compute", sum_in(got.text, "bulkhead_parts", "\"compute\""), 2 * 4200);
    BH_CHECK_EQ("memory", sum_in(got.text, "bulkhead_parts", "\"memory\""), 2 * 4200);
    BH_CHECK_EQ("a small piece and a whole GPU", sum_in(got.text, "bulkhead_tenant_parts", "\"compute\""),
                600 + 4200);
    BH_CHECK_DONE();
    bh_fixture_close(f);
}

static void
a_tenants_viewer_sees_its_subtree_alone(void **state)
{
    static const struct {
        const char *name;
        uint32_t uid;
        const char *sees, *not [4];
    } cases[] = {
        { "alice", ALICE, "tenant=\"acme/vision\"", { "other", "\"acme\"", "acme/speech", "bulkhead_gpu" } },
        { "bob", BOB, "tenant=\"other\"", { "acme", "GPU-a", "bulkhead_queue_jobs", "bulkhead_parts" } },
        { "dave",
          DAVE,
          "tenant=\"acme/vision\",job_id=\"1\"",
          { "other", "gpu=\"1\"", "bulkhead_parts", "bulkhead_commit" } },
        { "alice's instance alone",
          ALICE,
          "GPU_I_ID=\"9\"",
          { "GPU_I_ID=\"13\"", "gpu=\"1\"", "DCGM_FI_DEV_GPU_TEMP", "DCGM_EXP" } },
        { "bob's GPU",
          BOB,
          "DCGM_FI_DEV_SM_CLOCK{gpu=\"1\"",
          { "GPU_I_ID", "gpu=\"0\"", "bulkhead_gpu_health", "acme" } },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct fixture *f = metrics_open_site();

        scrape(f, cases[i].uid, NULL);
        BH_CHECK(cases[i].name, strstr(got.text, cases[i].sees));
        for (size_t n = 0; n < BH_COUNT(cases[i].not ); n++)
            BH_CHECK(cases[i].not [n], !strstr(got.text, cases[i].not [n]));
        bh_fixture_close(f);
    }
    BH_CHECK_DONE();
}

static void
open_metrics_is_for_who_asks(void **state)
{
    struct fixture *f = metrics_open_site();

    scrape(f, ALICE, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    BH_CHECK_STR("type", got.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    BH_CHECK_STR("end", got.text + strlen(got.text) - 6, "# EOF\n");
    BH_CHECK("of ended leases and of those that run",
             strstr(got.text, "bulkhead_job_network_receive_bytes_total{tenant=\"acme/vision\","
                              "job_id=\"1\"} 120\n"));
    BH_CHECK_DONE();
    bh_fixture_close(f);
}

/* For a scraper with a target for each node: GPU 0 of one is not GPU 0 of another. */
static void
a_scrape_of_a_node_has_its_devices(void **state)
{
    struct fixture *f = metrics_open_site();
    struct sent sent = { .method = BH_GET, .path = "/metrics", .query = "node=n1", .uid = CAROL };

    f->inventory = plain;
    bh_fixture_send(f, &sent, &got);
    BH_CHECK_EQ("status", got.status, 200);
    BH_CHECK("its devices", strstr(got.text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"1\""));
    BH_CHECK("how they are", strstr(got.text, "bulkhead_gpu_health{UUID=\"GPU-a\""));
    BH_CHECK("nothing else", !strstr(got.text, "bulkhead_jobs") && !strstr(got.text, "bulkhead_parts"));
    sent.uid = ALICE;
    bh_fixture_send(f, &sent, &got);
    BH_CHECK("a tenant's own",
             strstr(got.text, "GPU_I_ID=\"9\"") && !strstr(got.text, "bulkhead_gpu_health"));
    sent.query = "node=n2";
    bh_fixture_send(f, &sent, &got);
    BH_CHECK_EQ("another", got.status, 404);
    BH_CHECK("which", strstr(got.text, "no node n2 is connected"));
    BH_CHECK_DONE();
    bh_fixture_close(f);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_the_golden_one),
        cmocka_unit_test(totals_are_the_stores),
        cmocka_unit_test(all_parts_are_somewhere),
        cmocka_unit_test(a_tenants_viewer_sees_its_subtree_alone),
        cmocka_unit_test(open_metrics_is_for_who_asks),
        cmocka_unit_test(a_scrape_of_a_node_has_its_devices),
    };

    if (argc < 2)
        return 2;
    golden_path = argv[1];
    update = argc > 2 && strcmp(argv[2], "--update") == 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
