#include "engine/placement/filter.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static void
only_what_the_filter_names_counts(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    const struct bh_engine *engine = fixture->engine;
    struct quota of_sku = { .scope = BH_QUOTA_SKU, .of = 1 };
    struct bh_wanted held = { .tenant = tenant_find(engine, 21),
                              .sku = sku_find(engine, 1),
                              .count = 2,
                              .equivalent = 1200,
                              .principal = 7 };
    struct {
        const char *name;
        struct bh_filter filter;
        uint64_t counted;
    } cases[] = {
        { "everybody", { 0 }, 1200 },
        { "from above", { .tenant = tenant_find(engine, 2) }, 1200 },
        { "from beside", { .tenant = tenant_find(engine, 31) }, 0 },
        { "the principal", { .principal = 7 }, 1200 },
        { "another principal", { .principal = 8 }, 0 },
        { "partitions of the SKU", { .quota = &of_sku }, 2 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        BH_CHECK_EQ(cases[i].name, bh_filter_counts(engine, &cases[i].filter, &held), cases[i].counted);
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

/* A job that is imagined gone frees what it holds, and so what fits below a limit. */
static void
who_is_gone_makes_room(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t id = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    struct bh_search search = { .engine = fixture->engine };
    struct bh_filter all = { 0 };
    struct bh_reason why = { .limit = 1000, .used = 600, .wanted = 600 };

    assert_int_equal(bh_filter_freed(&search, &all), 0);
    assert_false(bh_filter_fits(&search, &all, &why));
    search.gone[search.gone_count++] = job_find(fixture->engine, id);
    assert_int_equal(bh_filter_freed(&search, &all), 600);
    assert_true(bh_filter_fits(&search, &all, &why));
    assert_int_equal(why.used, 0);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_what_the_filter_names_counts),
    cmocka_unit_test(who_is_gone_makes_room),
};
BH_TEST_MAIN(tests)
