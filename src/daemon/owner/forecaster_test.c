/* The owner's forecasts: what is seen outlives the daemon, and what follows is a record. */

#include "daemon/batch/batch.h"
#include "daemon/fixture/fixture_test.h"

#include "daemon/owner/forecaster.h"

static const char guaranteed_yaml[] = "tenants:\n"
                                      "  - {name: acme, kind: organization, guarantee: 2}\n"
                                      "  - {name: acme/vision, kind: department, guarantee: 2}\n"
                                      "scheduling: {lending: forecast}\n";

/* Without a commit nothing of a look is durable. */
static void
forecaster_check(struct fixture *f, struct bh_forecaster *observer)
{
    assert_int_equal(bh_forecaster_update(observer, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

static struct bh_tenant_view
forecaster_tenant_of(struct fixture *f, const char *path)
{
    bh_tenant_id id = { bh_catalog_find(f->core.catalog, BH_NAME_TENANT, path) };
    struct bh_tenant_view view = { 0 };

    assert_true(bh_view_tenant(f->core.state.engine, id, bh_core_now(&f->core), &view));
    return view;
}

static void
test_what_follows_is_a_record(void **unused)
{
    struct bh_forecaster *observer;
    uint64_t records;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, guaranteed_yaml), BH_OK);
    records = f.core.journal.next_seq;
    observer = bh_forecaster_open(&f.core);
    forecaster_check(&f, observer);
    BH_CHECK_EQ("an outlook of each", f.core.journal.next_seq, records + 2);
    BH_CHECK_EQ("nothing is lent on a guess", forecaster_tenant_of(&f, "acme/vision").expected, 8400);
    forecaster_check(&f, observer);
    BH_CHECK_EQ("not before the next sample", f.core.journal.next_seq, records + 2);
    bh_forecaster_close(observer);
    close_core(&f);
    assert_int_equal(open_core(&f), BH_OK);
    BH_CHECK_EQ("replayed", forecaster_tenant_of(&f, "acme/vision").expected, 8400);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_nothing_is_recorded_that_is_not_used(void **unused)
{
    struct bh_forecaster *observer;
    uint64_t records;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, site_yaml), BH_OK);
    records = f.core.journal.next_seq;
    observer = bh_forecaster_open(&f.core);
    forecaster_check(&f, observer);
    BH_CHECK_EQ("records", f.core.journal.next_seq, records);
    BH_CHECK("but it is seen", bh_forecaster_series(observer)->count > 0);
    bh_forecaster_close(observer);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* The file stands after the first look in a slot: no orderly end is needed. */
static void
test_series_outlive_the_daemon(void **unused)
{
    const struct bh_forecast_series *series;
    struct bh_forecaster *observer, *again;
    struct fixture f;

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, guaranteed_yaml), BH_OK);
    observer = bh_forecaster_open(&f.core);
    forecaster_check(&f, observer);
    series = bh_forecaster_series(observer);
    again = bh_forecaster_open(&f.core);
    BH_CHECK_EQ("rows", bh_forecaster_series(again)->count, series->count);
    BH_CHECK("something", series->count > 0);
    BH_CHECK("the same",
             memcmp(bh_forecaster_series(again)->rows, series->rows, series->count * sizeof *series->rows)
                 == 0);
    bh_forecaster_close(again);
    bh_forecaster_close(observer);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
test_a_file_that_is_not_whole_is_left(void **unused)
{
    struct fixture f;
    struct bh_forecaster *observer;
    struct bh_buf file;
    char path[128];

    fixture_setup(&f);
    assert_int_equal(fixture_apply(&f, guaranteed_yaml), BH_OK);
    observer = bh_forecaster_open(&f.core);
    forecaster_check(&f, observer);
    bh_forecaster_close(observer);
    snprintf(path, sizeof path, "%s/forecast.bin", f.folder);
    bh_buf_init(&file, 1 << 20);
    assert_int_equal(bh_file_read(path, 1 << 20, &file, &f.err), BH_OK);
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const names[] = { "cut", "flipped", "empty" };
        size_t lengths[] = { file.length - 1, file.length, 0 };

        file.bytes[100] ^= i == 1;
        assert_int_equal(bh_file_replace(path, file.bytes, lengths[i], 0600, &f.err), BH_OK);
        file.bytes[100] ^= i == 1;
        observer = bh_forecaster_open(&f.core);
        BH_CHECK_EQ(names[i], bh_forecaster_series(observer)->count, 0);
        bh_forecaster_close(observer);
    }
    f.config.forecast_slot *= 2;
    assert_int_equal(bh_file_replace(path, file.bytes, file.length, 0600, &f.err), BH_OK);
    observer = bh_forecaster_open(&f.core);
    BH_CHECK_EQ("of another slot", bh_forecaster_series(observer)->count, 0);
    bh_forecaster_close(observer);
    bh_buf_fini(&file);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_what_follows_is_a_record),
    cmocka_unit_test(test_nothing_is_recorded_that_is_not_used),
    cmocka_unit_test(test_series_outlive_the_daemon),
    cmocka_unit_test(test_a_file_that_is_not_whole_is_left),
};

BH_TEST_MAIN(tests)
