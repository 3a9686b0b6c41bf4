/* A store that lacks rows is refused, before anything is written on top. */

#include "daemon/batch/missing_rows.h"
#include "daemon/fixture/fixture_test.h"

#include <sqlite3.h>

#include "daemon/batch/names.h"
#include "daemon/batch/snapshot.h"

static void
missing_rows_alter(const struct fixture *f, const char *statement)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof path, "%s/bulkhead.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, statement, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Three jobs, of which the first has ended; a snapshot stands for all but the last record. */
static void
missing_rows_fill(struct fixture *f)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .job = { 1 } };

    fixture_setup(f);
    assert_int_equal(bh_names_upgrade(&f->core, &f->err), BH_OK);
    assert_int_equal(fixture_apply(f, site_yaml), BH_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_submit(f, alice_small), BH_OK);
    cancel.caller = caller_named(f, "root");
    assert_int_equal(fixture_run(f, &cancel), BH_OK);
    assert_int_equal(bh_snapshot_write(&f->core, &f->err), BH_OK);
    assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
}

static void
test_a_start_without_a_row_is_refused(void **unused)
{
    static const struct {
        const char *name, *statement;
        const char *lacks; /* NULL: it starts */
    } rows[] = {
        { "nothing", "", NULL },
        { "a pending job", "delete from jobs where job = 3", "lacks job 3" },
        { "a job that has ended", "delete from jobs where job = 1", "lacks job 1" },
        { "all jobs", "delete from jobs", "lacks job 1" },
        { "a job, and another in its place", "update jobs set job = 9 where job = 2", "lacks job 2" },
        { "a record in the middle", "delete from records where seq = 3", "lacks record 3" },
        { "the first record", "delete from records where seq = 0", "lacks record 0" },
        { "all names", "delete from names", "lacks principal 1" },
        { "the name of a tenant", "delete from names where kind = 0 and id = 2", "lacks tenant 2" },
        { "the last tenant's name", "delete from names where kind = 0 and id = 3", "lacks tenant 3" },
        { "the name of a SKU", "delete from names where kind = 1", "lacks sku 1" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct fixture f;
        bh_rc rc;

        missing_rows_fill(&f);
        close_core(&f);
        missing_rows_alter(&f, rows[i].statement);
        rc = open_core(&f);
        BH_CHECK_EQ(rows[i].name, rc, rows[i].lacks ? BH_CONFLICT : BH_OK);
        if (rows[i].lacks && rc != BH_OK) {
            BH_CHECK(rows[i].name, strstr(f.err.msg, rows[i].lacks));
            BH_CHECK(rows[i].name, strstr(f.err.hint, "from a backup"));
        }
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* One that goes while bulkheadd runs: the owner ends instead of trying again. */
static void
test_a_row_that_goes_later_ends_the_daemon(void **unused)
{
    struct bh_command cancel = { .op = BH_OP_JOB_CANCEL, .job = { 2 } };
    struct fixture f;

    missing_rows_fill(&f);
    missing_rows_alter(&f, "delete from jobs where job = 2");
    cancel.caller = caller_named(&f, "root");
    BH_CHECK_EQ("cancel", bh_dispatch_run(&f.core, &cancel, f.arena, &f.answer, &f.err), BH_UNCERTAIN);
    BH_CHECK("names it", strstr(f.err.msg, "lacks job 2"));
    BH_CHECK("what to do", strstr(f.err.hint, "from a backup"));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_start_without_a_row_is_refused),
    cmocka_unit_test(test_a_row_that_goes_later_ends_the_daemon),
};

BH_TEST_MAIN(tests)
