/* Files of a store that are removed, moved or replaced while it is open. */

#include "store/sqlite.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "ports/crypto.h"

struct fixture {
    char folder[32], path[64], log[64], away[64];
    struct bh_store store;
    struct bh_err err;
};

static void
files_test_open(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    memcpy(f->folder, "/tmp/bh-files-XXXXXX", 21);
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/store.db", f->folder);
    snprintf(f->log, sizeof f->log, "%s/store.db-wal", f->folder);
    snprintf(f->away, sizeof f->away, "%s/away", f->folder);
    assert_int_equal(bh_store_sqlite_open(f->path, BH_STORE_WRITE, &bh_crypto_openssl, &f->store, &f->err),
                     BH_OK);
}

static void
files_test_close(struct fixture *f)
{
    static const char *const names[] = { "store.db", "store.db-wal", "store.db-shm", "store.db.lock",
                                         "away" };
    char path[64];

    f->store.ops->close(f->store.self);
    for (size_t i = 0; i < BH_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", f->folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(f->folder), 0);
}

static bh_rc
files_test_check(struct fixture *f)
{
    return f->store.ops->check_files(f->store.self, &f->err);
}

static void
test_files_that_go_are_named(void **unused)
{
    static const struct {
        const char *name;
        bool log, replaced;
        const char *says;
    } rows[] = {
        { "the database", false, false, "store.db was removed" },
        { "another in its place", false, true, "store.db was removed" },
        { "the log", true, false, "store.db-wal was removed" },
        { "another log", true, true, "store.db-wal was removed" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct fixture f;
        const char *victim;

        files_test_open(&f);
        victim = rows[i].log ? f.log : f.path;
        BH_CHECK_EQ(rows[i].name, files_test_check(&f), BH_OK);
        assert_int_equal(rename(victim, f.away), 0);
        if (rows[i].replaced)
            assert_int_equal(bh_file_replace(victim, "", 0, 0600, &f.err), BH_OK);
        BH_CHECK_EQ(rows[i].name, files_test_check(&f), BH_CONFLICT);
        BH_CHECK(rows[i].name, strstr(f.err.msg, rows[i].says));
        assert_int_equal(rename(f.away, victim), 0);
        BH_CHECK_EQ("back", files_test_check(&f), BH_OK);
        files_test_close(&f);
    }
    BH_CHECK_DONE();
}

/* What was put in its place is not read as if it were the store. */
static void
test_another_file_is_not_read(void **unused)
{
    struct fixture f;
    uint64_t count;

    files_test_open(&f);
    assert_int_equal(rename(f.path, f.away), 0);
    assert_int_equal(bh_file_replace(f.path, "", 0, 0600, &f.err), BH_OK);
    BH_CHECK_EQ("read", f.store.ops->count_rows(f.store.self, BH_STORE_JOBS, &count, &f.err), BH_UNAVAILABLE);
    assert_int_equal(rename(f.away, f.path), 0);
    BH_CHECK_EQ("back", f.store.ops->count_rows(f.store.self, BH_STORE_JOBS, &count, &f.err), BH_OK);
    BH_CHECK_DONE();
    files_test_close(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_files_that_go_are_named),
    cmocka_unit_test(test_another_file_is_not_read),
};

BH_TEST_MAIN(tests)
