#include "cli/login/stored_session.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

#define NOW 1000u

/* A private folder with a sessions file below it. */
struct fixture {
    char root[64], folder[96], path[BH_STORED_SESSION_PATH_MAX];
    struct bh_arena *arena;
    struct bh_err err;
};

static void
make_fixture(struct fixture *fixture)
{
    *fixture = (struct fixture){ .root = "/tmp/bulkhead-kept-test.XXXXXX", .arena = bh_arena_new(1 << 20) };
    assert_non_null(mkdtemp(fixture->root));
    snprintf(fixture->folder, sizeof fixture->folder, "%s/bulkhead", fixture->root);
    snprintf(fixture->path, sizeof fixture->path, "%s/sessions", fixture->folder);
}

static void
remove_fixture(struct fixture *fixture)
{
    unlink(fixture->path);
    rmdir(fixture->folder);
    unlink(fixture->folder);
    rmdir(fixture->root);
    bh_arena_free(fixture->arena);
}

static bh_rc
stored_session_test_put(struct fixture *fixture, const char *address, const char *id, uint64_t expires_ns)
{
    struct bh_stored_session stored = { address, expires_ns, id, "ada", "bs_secret" };

    return bh_stored_session_put(fixture->path, &stored, NOW, fixture->arena, &fixture->err);
}

static const char *
id_at(struct fixture *fixture, const char *address)
{
    struct bh_stored_session stored;

    return bh_stored_session_find(fixture->path, address, fixture->arena, &stored, &fixture->err) == BH_OK
               ? stored.id
               : "";
}

static mode_t
mode_of(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 ? found.st_mode & 07777 : 0;
}

static void
test_one_entry_a_server(void **state)
{
    struct fixture fixture;

    make_fixture(&fixture);
    BH_CHECK_STR("before", id_at(&fixture, "https://a"), "");
    BH_CHECK_EQ("no file", fixture.err.rc, BH_NOT_FOUND);
    BH_CHECK_EQ("first", stored_session_test_put(&fixture, "https://a", "s1", NOW + 1), BH_OK);
    BH_CHECK_EQ("second", stored_session_test_put(&fixture, "unix:/b", "s2", NOW + 1), BH_OK);
    BH_CHECK_EQ("again", stored_session_test_put(&fixture, "https://a", "s3", NOW + 1), BH_OK);
    BH_CHECK_STR("replaced", id_at(&fixture, "https://a"), "s3");
    BH_CHECK_STR("the other's", id_at(&fixture, "unix:/b"), "s2");
    BH_CHECK_STR("no other address", id_at(&fixture, "https://a/"), "");
    BH_CHECK_EQ("file", mode_of(fixture.path), 0600);
    BH_CHECK_EQ("folder", mode_of(fixture.folder), 0700);
    remove_fixture(&fixture);
    BH_CHECK_DONE();
}

static void
test_dropped(void **state)
{
    struct fixture fixture;
    struct bh_err err;

    make_fixture(&fixture);
    BH_CHECK_EQ("no file", bh_stored_session_drop(fixture.path, "https://a", "s1", fixture.arena, &err),
                BH_OK);
    BH_CHECK_EQ("kept", stored_session_test_put(&fixture, "https://a", "s1", NOW + 1), BH_OK);
    BH_CHECK_EQ("another id", bh_stored_session_drop(fixture.path, "https://a", "s0", fixture.arena, &err),
                BH_OK);
    BH_CHECK_STR("a newer session stays", id_at(&fixture, "https://a"), "s1");
    BH_CHECK_EQ("dropped", bh_stored_session_drop(fixture.path, "https://a", "s1", fixture.arena, &err),
                BH_OK);
    BH_CHECK_STR("gone", id_at(&fixture, "https://a"), "");
    BH_CHECK_EQ("ended", stored_session_test_put(&fixture, "https://a", "s2", NOW), BH_OK);
    BH_CHECK_EQ("another", stored_session_test_put(&fixture, "https://b", "s3", NOW + 1), BH_OK);
    BH_CHECK_STR("what is over goes with the next change", id_at(&fixture, "https://a"), "");
    remove_fixture(&fixture);
    BH_CHECK_DONE();
}

static const char *
device_at(struct fixture *fixture, const char *address, const char *name)
{
    const char *device = bh_stored_device(fixture->path, address, name, fixture->arena);

    return device ? device : "";
}

/* A device is of an account at a server, and outlives its sessions. */
static void
test_devices(void **state)
{
    struct bh_stored_device devices[] = { { "https://a", "d1", "ada" },
                                          { "https://a", "d2", "bob" },
                                          { "https://a", "d3", "ada" } };
    struct fixture fixture;
    char address[32];

    make_fixture(&fixture);
    BH_CHECK_STR("before", device_at(&fixture, "https://a", "ada"), "");
    for (size_t i = 0; i < BH_COUNT(devices); i++)
        BH_CHECK_EQ("kept", bh_stored_device_put(fixture.path, &devices[i], fixture.arena, &fixture.err),
                    BH_OK);
    BH_CHECK_EQ("session", stored_session_test_put(&fixture, "https://a", "s1", NOW + 1), BH_OK);
    BH_CHECK_EQ("dropped",
                bh_stored_session_drop(fixture.path, "https://a", "s1", fixture.arena, &fixture.err), BH_OK);
    BH_CHECK_STR("the newest", device_at(&fixture, "https://a", "ada"), "d3");
    BH_CHECK_STR("however it is written", device_at(&fixture, "https://a", "Ada"), "d3");
    BH_CHECK_STR("another's", device_at(&fixture, "https://a", "bob"), "d2");
    BH_CHECK_STR("elsewhere", device_at(&fixture, "https://b", "ada"), "");
    for (int i = 0; i < BH_STORED_SESSIONS_MAX; i++) {
        snprintf(address, sizeof address, "https://%d", i);
        devices[0].address = address;
        BH_CHECK_EQ(address, bh_stored_device_put(fixture.path, &devices[0], fixture.arena, &fixture.err),
                    BH_OK);
    }
    BH_CHECK_STR("the oldest goes", device_at(&fixture, "https://a", "bob"), "");
    BH_CHECK_STR("the newest stays", device_at(&fixture, "https://63", "ada"), "d1");
    BH_CHECK_STR("another kept one", device_at(&fixture, "https://0", "ada"), "d1");
    BH_CHECK_EQ("open to all", chmod(fixture.path, 0644), 0);
    BH_CHECK_STR("with the file, all is refused", device_at(&fixture, "https://0", "ada"), "");
    remove_fixture(&fixture);
    BH_CHECK_DONE();
}

static void
test_full(void **state)
{
    struct fixture fixture;
    char address[32];

    make_fixture(&fixture);
    for (int i = 0; i < BH_STORED_SESSIONS_MAX; i++) {
        snprintf(address, sizeof address, "https://%d", i);
        BH_CHECK_EQ(address, stored_session_test_put(&fixture, address, "s", NOW + 1), BH_OK);
    }
    BH_CHECK_EQ("one more", stored_session_test_put(&fixture, "https://more", "s", NOW + 1), BH_FULL);
    BH_CHECK_EQ("in place of another", stored_session_test_put(&fixture, "https://0", "t", NOW + 1), BH_OK);
    BH_CHECK_STR("replaced", id_at(&fixture, "https://0"), "t");
    remove_fixture(&fixture);
    BH_CHECK_DONE();
}

/* A file that another user can read, or could have written, is neither used nor overwritten. */
static const struct {
    const char *name;
    mode_t file, folder;
    uid_t owner; /* 0: the caller; needs root */
    bool link;   /* the file is a symbolic link to a good one */
    bh_rc rc;
    const char *message;
} untrusted[] = {
    { "good", 0600, 0700, 0, false, BH_OK, NULL },
    { "a folder that others may look into", 0600, 0755, 0, false, BH_OK, NULL },
    { "readable by the group", 0640, 0700, 0, false, BH_DENIED, "is open to other users" },
    { "readable by all", 0604, 0700, 0, false, BH_DENIED, "is open to other users" },
    { "writable by all", 0602, 0700, 0, false, BH_DENIED, "is open to other users" },
    { "a folder for all", 0600, 0777, 0, false, BH_DENIED, "is open to other users" },
    { "a folder for the group", 0600, 0770, 0, false, BH_DENIED, "is open to other users" },
    { "a link", 0600, 0700, 0, true, BH_DENIED, "is a symbolic link" },
    { "another's", 0600, 0700, 12345, false, BH_DENIED, "belongs to another user" },
};

static void
check_untrusted(size_t i)
{
    struct fixture fixture;
    struct bh_stored_session stored;
    char real[128];
    bh_rc rc;

    make_fixture(&fixture);
    snprintf(real, sizeof real, "%s/real", fixture.root);
    BH_CHECK_EQ(untrusted[i].name, stored_session_test_put(&fixture, "https://a", "s1", NOW + 1), BH_OK);
    if (untrusted[i].link) {
        BH_CHECK_EQ(untrusted[i].name, rename(fixture.path, real), 0);
        BH_CHECK_EQ(untrusted[i].name, symlink(real, fixture.path), 0);
    } else {
        BH_CHECK_EQ(untrusted[i].name, chmod(fixture.path, untrusted[i].file), 0);
    }
    if (untrusted[i].owner)
        BH_CHECK_EQ(untrusted[i].name, chown(fixture.path, untrusted[i].owner, 0), 0);
    BH_CHECK_EQ(untrusted[i].name, chmod(fixture.folder, untrusted[i].folder), 0);
    rc = bh_stored_session_find(fixture.path, "https://a", fixture.arena, &stored, &fixture.err);
    BH_CHECK_EQ(untrusted[i].name, rc, untrusted[i].rc);
    if (rc != BH_OK)
        BH_CHECK(untrusted[i].name, strstr(fixture.err.msg, untrusted[i].message));
    BH_CHECK_EQ(untrusted[i].name, stored_session_test_put(&fixture, "https://b", "s2", NOW + 1),
                untrusted[i].rc);
    unlink(real);
    remove_fixture(&fixture);
}

static void
test_untrusted(void **state)
{
    for (size_t i = 0; i < BH_COUNT(untrusted); i++)
        if (!untrusted[i].owner || geteuid() == 0)
            check_untrusted(i);
    BH_CHECK_DONE();
}

/* A link in the folder's place leads to a file that another user chose. */
static void
test_linked_folder(void **state)
{
    struct fixture fixture;
    struct bh_stored_session stored;
    char real[128];

    make_fixture(&fixture);
    snprintf(real, sizeof real, "%s/real", fixture.root);
    assert_int_equal(mkdir(real, 0700), 0); /* nothing else is wrong with it */
    assert_int_equal(symlink(real, fixture.folder), 0);
    BH_CHECK_EQ("found",
                bh_stored_session_find(fixture.path, "https://a", fixture.arena, &stored, &fixture.err),
                BH_DENIED);
    BH_CHECK_EQ("kept", stored_session_test_put(&fixture, "https://a", "s", NOW + 1), BH_DENIED);
    rmdir(real);
    remove_fixture(&fixture);
    BH_CHECK_DONE();
}

#define ENTRY(more)                                                                                          \
    "{\"address\":\"https://a\",\"expires_ns\":\"2000\",\"id\":\"s1\",\"name\":\"ada\"" more "}"

static const struct {
    const char *name, *text;
    bh_rc rc;
} damaged[] = {
    { "good", "{\"sessions\":[" ENTRY(",\"session\":\"bs_x\"") "],\"version\":1}\n", BH_OK },
    { "empty", "", BH_INVALID },
    { "no JSON", "bs_secret", BH_INVALID },
    { "cut off", "{\"sessions\":[{\"address\":\"https://a\",\"session\":\"bs_secret", BH_INVALID },
    { "without a secret", "{\"sessions\":[" ENTRY("") "],\"version\":1}", BH_INVALID },
    { "unknown key", "{\"sessions\":[],\"version\":1,\"bs_secret\":1}", BH_INVALID },
    { "another version", "{\"sessions\":[],\"version\":2}", BH_INVALID },
    { "a NUL", "{\"sessions\":[],\"version\":1,\"x\\u0000\":1}", BH_INVALID },
};

/* What is damaged is named, never quoted, and left as it is. */
static void
test_damaged(void **state)
{
    for (size_t i = 0; i < BH_COUNT(damaged); i++) {
        struct fixture fixture;
        struct bh_stored_session stored;
        bh_rc rc;

        make_fixture(&fixture);
        BH_CHECK_EQ(damaged[i].name, bh_dir_make(fixture.folder, 0700, &fixture.err), BH_OK);
        BH_CHECK_EQ(
            damaged[i].name,
            bh_file_replace(fixture.path, damaged[i].text, strlen(damaged[i].text), 0600, &fixture.err),
            BH_OK);
        rc = bh_stored_session_find(fixture.path, "https://a", fixture.arena, &stored, &fixture.err);
        BH_CHECK_EQ(damaged[i].name, rc, damaged[i].rc);
        if (rc != BH_OK) {
            BH_CHECK(damaged[i].name, strstr(fixture.err.msg, "is damaged"));
            BH_CHECK(damaged[i].name, !strstr(fixture.err.msg, "bs_"));
            BH_CHECK_EQ(damaged[i].name, stored_session_test_put(&fixture, "https://b", "s", NOW + 1),
                        BH_INVALID);
        }
        remove_fixture(&fixture);
    }
    BH_CHECK_DONE();
}

/* Larger than any file that was written here. */
static void
test_oversized(void **state)
{
    static char text[300 << 10];
    struct fixture fixture;
    struct bh_stored_session stored;

    make_fixture(&fixture);
    memset(text, ' ', sizeof text);
    assert_int_equal(bh_dir_make(fixture.folder, 0700, &fixture.err), BH_OK);
    assert_int_equal(bh_file_replace(fixture.path, text, sizeof text, 0600, &fixture.err), BH_OK);
    BH_CHECK_EQ("found",
                bh_stored_session_find(fixture.path, "https://a", fixture.arena, &stored, &fixture.err),
                BH_INVALID);
    remove_fixture(&fixture);
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *state_home, *home, *path; /* NULL path: none */
} paths[] = {
    { "the state folder", "/x/state", "/home/ada", "/x/state/bulkhead/sessions" },
    { "else home", NULL, "/home/ada", "/home/ada/.local/state/bulkhead/sessions" },
    { "an empty one is none", "", "/home/ada", "/home/ada/.local/state/bulkhead/sessions" },
    { "a relative one is none", "state", "/home/ada", "/home/ada/.local/state/bulkhead/sessions" },
    { "nothing", NULL, NULL, NULL },
    { "a relative home", NULL, "ada", NULL },
};

static void
stored_session_test_set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void
test_paths(void **state)
{
    for (size_t i = 0; i < BH_COUNT(paths); i++) {
        char path[BH_STORED_SESSION_PATH_MAX];
        struct bh_err err;
        bh_rc rc;

        stored_session_test_set("XDG_STATE_HOME", paths[i].state_home);
        stored_session_test_set("HOME", paths[i].home);
        rc = bh_stored_session_path(path, &err);
        BH_CHECK_EQ(paths[i].name, rc, paths[i].path ? BH_OK : BH_NOT_FOUND);
        if (rc == BH_OK)
            BH_CHECK_STR(paths[i].name, path, paths[i].path);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_entry_a_server),
    cmocka_unit_test(test_dropped),
    cmocka_unit_test(test_full),
    cmocka_unit_test(test_devices),
    cmocka_unit_test(test_untrusted),
    cmocka_unit_test(test_linked_folder),
    cmocka_unit_test(test_damaged),
    cmocka_unit_test(test_oversized),
    cmocka_unit_test(test_paths),
};
BH_TEST_MAIN(tests)
