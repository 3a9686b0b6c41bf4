#include "lab/load/fair.h"

#include "base/test.h"
#include "base/time.h"
#include "lab/common/figures.h"

static void
test_figures(void **state)
{
    struct bh_figures figures = { 0 };

    BH_CHECK_EQ("none", bh_figures_quantile(&figures, 500), 0);
    for (uint64_t i = 100; i > 0; i--)
        bh_figures_add(&figures, i);
    BH_CHECK_EQ("mean", bh_figures_mean(&figures), 50);
    BH_CHECK_EQ("median", bh_figures_quantile(&figures, 500), 50);
    BH_CHECK_EQ("p95", bh_figures_quantile(&figures, 950), 95);
    BH_CHECK_EQ("most", bh_figures_quantile(&figures, 1000), 100);
    bh_figures_fini(&figures);
    BH_CHECK_DONE();
}

/* Capacity 12: who wants little gets it, and the rest goes by weight. */
static void
test_shares(void **state)
{
    static const struct {
        const char *what;
        double demands[3], weights[3], want[3];
        /* clang-format off */
    } rows[] = {
        { "enough for all", { 3, 4, 5 }, { 1, 1, 1 }, { 3, 4, 5 } },
        { "even", { 99, 99, 99 }, { 1, 1, 1 }, { 4, 4, 4 } },
        { "one leaves some", { 2, 99, 99 }, { 1, 1, 1 }, { 2, 5, 5 } },
        { "by weight", { 99, 99, 0 }, { 3, 1, 8 }, { 9, 3, 0 } },
        { "twice", { 1, 4, 99 }, { 1, 1, 1 }, { 1, 4, 7 } },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        double shares[3];

        bh_fair_shares(rows[i].demands, rows[i].weights, 3, 12, shares);
        for (int t = 0; t < 3; t++)
            BH_CHECK_EQ(rows[i].what, shares[t] * 1000 + 0.5, rows[i].want[t] * 1000 + 0.5);
    }
    BH_CHECK_DONE();
}

/* Two tenants of equal demand; the first has all of it done before the second begins. */
static void
test_judge(void **state)
{
    struct bh_load load = { 0 };
    struct bh_simulation_run run;
    struct bh_simulation_plan plan;
    struct bh_fair fair;
    struct bh_err err = { 0 };

    bh_load_set_rack(&load, 1, 1);
    bh_load_add_tenant(&load, "a", (bh_tenant_id){ 0 });
    bh_load_add_tenant(&load, "b", (bh_tenant_id){ 0 });
    for (uint32_t tenant = 1; tenant <= 2; tenant++)
        bh_load_add(&load, &(struct bh_simulation_job){ .work_ns = 10 * BH_NS_PER_S,
                                                        .count = 1,
                                                        .tenant = { tenant },
                                                        .sku = { 1 },
                                                        .priority = BH_PRIORITY_NORMAL });
    bh_load_guarantee(&load, 1000);
    BH_CHECK_EQ("guarantee", load.tenants[0].guarantee, BH_GPU_PARTS / 2);
    plan = bh_load_plan(&load);
    plan.window_ns = 5 * BH_NS_PER_S;
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
    bh_fair_judge(&load, &run, &fair);
    BH_CHECK_EQ("windows", fair.windows, 4);
    BH_CHECK_EQ("contended", fair.contended, 2);
    BH_CHECK_EQ("one had all: 1/2", fair.jain_bp, 5000);
    BH_CHECK_EQ("error", fair.error_max_bp, 5000);
    BH_CHECK_EQ("mean wait", fair.all.mean_ms, 5000);
    BH_CHECK_EQ("makespan", fair.makespan_s, 20);
    BH_CHECK_EQ("used", fair.used_whole_bp, 10000);
    BH_CHECK_EQ("entitled", fair.tenants[1].entitled_gpu_s, 15);
    BH_CHECK_EQ("finish ratio", fair.finish_p95_permille, 2000);
    bh_fair_fini(&fair);
    bh_simulation_run_fini(&run);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_figures), cmocka_unit_test(test_shares),
                                           cmocka_unit_test(test_judge) };
BH_TEST_MAIN(tests)
