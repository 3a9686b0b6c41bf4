/* The loads of kueue, philly and synth, as far as they need no data: that they are what their sources say,
 * and that the engine keeps its invariants over the beginning of each. */
#include "lab/load/load.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"
#include "lab/load/kueue.h"
#include "lab/load/run_test.h"
#include "lab/load/philly.h"
#include "lab/load/synth.h"

static void
test_kueue(void **state)
{
    const struct bh_kueue kueue = { BH_CONTRACT_REQUEUE, false };
    struct bh_load load = { 0 };
    struct bh_ev_tenant *queue;

    bh_kueue_make(&kueue, &load);
    assert_int_equal(load.workload_count, BH_KUEUE_WORKLOADS);
    assert_int_equal(bh_load_total_demand(&load) / BH_NS_PER_S, 39600);
    assert_int_equal(bh_load_gpus(&load), 600);
    assert_int_equal(load.tenant_count, 35);
    queue = &load.tenants[1];
    assert_int_equal(queue->guarantee, 20 * BH_GPU_PARTS);
    assert_int_equal(queue->limit, 120 * BH_GPU_PARTS);
    assert_int_equal(load.jobs[0].submit_ns / BH_NS_PER_MS, 100);
    assert_int_equal(load.jobs[load.job_count - 1].submit_ns / BH_NS_PER_MS, 60000);
    run_some(&load, 400);
    bh_load_fini(&load);
}

static void
test_synth(void **state)
{
    const struct bh_synth synth = { .nodes = 4, .jobs = 2000, .tenants = 5, .seed = 7 };
    struct bh_load load = { 0 }, again = { 0 };
    uint32_t ones = 0, first = 0;
    struct bh_err err;

    bh_synth_make(&synth, &load);
    bh_synth_make(&synth, &again);
    assert_memory_equal(load.jobs, again.jobs, 2000 * sizeof load.jobs[0]);
    for (uint32_t i = 0; i < 2000; i++) {
        ones += load.jobs[i].count == 1;
        first += load.jobs[i].tenant.v == 1;
    }
    assert_in_range(ones, 1450, 1600);
    assert_in_range(first, 800, 960); /* 1 / (1 + 1/2 + ... + 1/5) is 0.438 */
    assert_int_equal(bh_load_scale(&load, 1500, &err), BH_OK);
    assert_int_equal(bh_load_total_demand(&load) * 1000 / 1500 / bh_load_gpus(&load) / BH_NS_PER_S,
                     load.jobs[1999].submit_ns / BH_NS_PER_S);
    run_some(&load, 500);
    bh_load_fini(&load);
    bh_load_fini(&again);
}

/* Write `text` to a file and read it as Philly's. */
static bh_rc
read_text(const char *text, struct bh_load *load, struct bh_err *err)
{
    char path[] = "/tmp/bulkhead-philly-XXXXXX";
    int fd = mkstemp(path);
    bh_rc rc;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    *load = (struct bh_load){ 0 };
    rc = bh_philly_read(path, load, err);
    unlink(path);
    return rc;
}

#define HEAD "vc,submit_s,gpus,duration_s_v100,assigned_model\n"

static void
test_philly_text(void **state)
{
    static const struct {
        const char *text, *message;
        bh_rc rc;
    } rows[] = {
        { "", "there are no jobs", BH_INVALID },
        { HEAD, "there are no jobs", BH_INVALID },
        { "a,b\n", ":1: it does not begin with \"vc,submit_s,gpus,duration_s_v100\"", BH_INVALID },
        { HEAD "a,1,1,5,x\nb,2\n", ":3: 2 columns, wanted 4", BH_INVALID },
        { HEAD "a,1,9,5,x\n", ":2: gpus: ", BH_RANGE },
        { HEAD "a,1,0,5,x\n", ":2: a job wants a virtual cluster and a GPU", BH_INVALID },
        { HEAD "a,-1,1,5,x\n", ":2: submit_s: ", BH_INVALID },
        { HEAD "a,1,1,5.5,x\n", ":2: duration_s_v100: ", BH_INVALID },
    };
    struct bh_load load;
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_CHECK_EQ(rows[i].text, read_text(rows[i].text, &load, &err), rows[i].rc);
        if (!strstr(err.msg, rows[i].message))
            BH_CHECK_STR(rows[i].text, err.msg, rows[i].message);
        bh_load_fini(&load);
    }
    assert_int_equal(read_text(HEAD "a,7,2,50,x\nb,3,1,9,y\r\na,9,1,1", &load, &err), BH_OK);
    BH_CHECK_EQ("jobs", load.job_count, 3);
    BH_CHECK_EQ("sorted", load.jobs[0].submit_ns / BH_NS_PER_S, 3);
    BH_CHECK_EQ("tenants", load.tenant_count, 2);
    BH_CHECK_EQ("demand", bh_load_demand(&load, 0) / BH_NS_PER_S, 101);
    bh_load_fini(&load);
    BH_CHECK_EQ("no file", bh_philly_read("/tmp/bulkhead-philly-none/none.csv", &load, &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kueue),
    cmocka_unit_test(test_synth),
    cmocka_unit_test(test_philly_text),
};
BH_TEST_MAIN(tests)
