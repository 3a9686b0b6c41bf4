#include "keys/root.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

struct fixture {
    char folder[32], path[96];
    struct bh_root_options options;
    struct bh_root root;
    struct bh_err err;
};

static int
root_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    memcpy(f->folder, "/tmp/bh-root-XXXXXX", 20);
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/root.key", f->folder);
    f->options = (struct bh_root_options){ &bh_crypto_openssl, "", NULL, f->folder, true };
    return 0;
}

static int
root_tear_down(void **state)
{
    static const char *const names[] = { "root.key", "root.key.next", "bulkhead.root", "own" };
    struct fixture *f = *state;
    char path[96];

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", f->folder, names[i]);
        unlink(path);
    }
    rmdir(f->folder);
    free(f);
    return 0;
}

static void
root_put_file(struct fixture *f, const char *name, size_t bytes, mode_t mode)
{
    static const uint8_t content[64] = { 9, 8, 7 };

    snprintf(f->path, sizeof f->path, "%s/%s", f->folder, name);
    assert_int_equal(bh_file_replace(f->path, content, bytes, mode, &f->err), BH_OK);
    assert_int_equal(chmod(f->path, mode), 0);
}

static bh_rc
root_load(struct fixture *f)
{
    return bh_root_load(&f->options, &f->root, &f->err);
}

static void
is_made_once(void **state)
{
    struct fixture *f = *state;
    uint8_t first[32];
    struct stat status;

    f->options.make = false;
    BH_CHECK_EQ("none, and none may be made", root_load(f), BH_NOT_FOUND);
    f->options.make = true;
    BH_CHECK_EQ("made", root_load(f), BH_OK);
    BH_CHECK("told", f->root.made && f->root.replaceable && !f->root.staged);
    assert_int_equal(stat(f->path, &status), 0);
    BH_CHECK_EQ("mode", status.st_mode & 0777, 0600);
    memcpy(first, f->root.key, sizeof first);
    BH_CHECK_EQ("again", root_load(f), BH_OK);
    BH_CHECK("same", !f->root.made && memcmp(first, f->root.key, sizeof first) == 0);
    BH_CHECK_DONE();
}

static void
refuses_bad_files(void **state)
{
    static const struct {
        const char *name;
        size_t bytes;
        mode_t mode;
        bh_rc rc;
    } rows[] = {
        { "good", 32, 0600, BH_OK },
        { "read only", 32, 0400, BH_OK },
        { "group reads", 32, 0640, BH_DENIED },
        { "world reads", 32, 0604, BH_DENIED },
        { "group writes", 32, 0620, BH_DENIED },
        { "short", 31, 0600, BH_INVALID },
        { "long", 33, 0600, BH_INVALID },
        { "empty", 0, 0600, BH_INVALID },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        root_put_file(f, "root.key", rows[i].bytes, rows[i].mode);
        BH_CHECK_EQ(rows[i].name, root_load(f), rows[i].rc);
    }
    unlink(f->path);
    assert_int_equal(symlink("/etc/hostname", f->path), 0);
    BH_CHECK_EQ("link", root_load(f), BH_INVALID);
    BH_CHECK_DONE();
}

/* The parameter goes before a credential, that before the state folder. */
static void
has_an_order_of_places(void **state)
{
    struct fixture *f = *state;
    char own[96];

    assert_int_equal(root_load(f), BH_OK);
    f->options.credentials = f->folder;
    BH_CHECK_EQ("no credential", root_load(f), BH_OK);
    BH_CHECK_STR("state folder", strrchr(f->root.path, '/'), "/root.key");
    root_put_file(f, "bulkhead.root", 32, 0440); /* as systemd's access list shows */
    BH_CHECK_EQ("credential", root_load(f), BH_OK);
    BH_CHECK_STR("credential", strrchr(f->root.path, '/'), "/bulkhead.root");
    BH_CHECK_EQ("not ours to replace", bh_root_stage(&f->root, f->root.key, &f->err), BH_CONFLICT);
    root_put_file(f, "bulkhead.root", 32, 0444);
    BH_CHECK_EQ("world reads it", root_load(f), BH_DENIED);
    snprintf(own, sizeof own, "%s/own", f->folder);
    f->options.path = own;
    BH_CHECK_EQ("a configured one is never made", root_load(f), BH_NOT_FOUND);
    root_put_file(f, "own", 32, 0600);
    BH_CHECK_EQ("configured", root_load(f), BH_OK);
    BH_CHECK_STR("configured", strrchr(f->root.path, '/'), "/own");
    BH_CHECK_DONE();
}

static void
is_replaced_in_steps(void **state)
{
    const uint8_t next[32] = { 5, [31] = 6 };
    struct fixture *f = *state;
    uint8_t first[32];

    assert_int_equal(root_load(f), BH_OK);
    memcpy(first, f->root.key, sizeof first);
    BH_CHECK_EQ("stage", bh_root_stage(&f->root, next, &f->err), BH_OK);
    BH_CHECK_EQ("both", root_load(f), BH_OK);
    BH_CHECK("both",
             f->root.staged && memcmp(f->root.key, first, 32) == 0 && memcmp(f->root.next, next, 32) == 0);
    BH_CHECK_EQ("unstage", bh_root_unstage(&f->root, &f->err), BH_OK);
    BH_CHECK_EQ("the old one", root_load(f), BH_OK);
    BH_CHECK("the old one", !f->root.staged && memcmp(f->root.key, first, 32) == 0);
    BH_CHECK_EQ("stage", bh_root_stage(&f->root, next, &f->err), BH_OK);
    BH_CHECK_EQ("settle", bh_root_commit(&f->root, &f->err), BH_OK);
    BH_CHECK_EQ("the new one", root_load(f), BH_OK);
    BH_CHECK("the new one", !f->root.staged && memcmp(f->root.key, next, 32) == 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, root_set_up, root_tear_down)
    TEST(is_made_once),
    TEST(refuses_bad_files),
    TEST(has_an_order_of_places),
    TEST(is_replaced_in_steps),
};
BH_TEST_MAIN(tests)
