#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/test.h"

static char folder[64];

static int
fd_test_make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/bh-fd-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int
remove_entry(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    return remove(path);
}

static int
remove_folder(void **state)
{
    return nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *
in_folder(const char *name)
{
    static char path[4][160];
    static unsigned row;
    char *at = path[row++ % 4];

    snprintf(at, sizeof path[0], "%s/%s", folder, name);
    return at;
}

/* The file's text, or the failure's name. */
static const char *
fd_test_text_of(const char *path, size_t max)
{
    static char memory[64];
    struct bh_buf text;
    struct bh_err err = { 0 };
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, max, &text, &err);
    if (rc != BH_OK)
        return bh_rc_name(rc);
    return bh_buf_text(&text);
}

static void
test_replace_and_read(void **state)
{
    const char *path = in_folder("file");
    struct bh_err err = { 0 };
    struct stat found;

    BH_CHECK_EQ("new", bh_file_replace(path, "one", 3, 0600, &err), BH_OK);
    BH_CHECK_STR("new", fd_test_text_of(path, 3), "one");
    BH_CHECK_EQ("again", bh_file_replace(path, "other", 5, 0644, &err), BH_OK);
    BH_CHECK_STR("again", fd_test_text_of(path, 100), "other");
    BH_CHECK_EQ("mode", stat(path, &found) == 0 ? found.st_mode & 07777 : 0, 0644);
    BH_CHECK_EQ("no temporary file left", access(in_folder("file.new"), F_OK), -1);
    BH_CHECK_STR("larger than allowed", fd_test_text_of(path, 4), "full");
    BH_CHECK_EQ("empty", bh_file_replace(path, "", 0, 0600, &err), BH_OK);
    BH_CHECK_STR("empty", fd_test_text_of(path, 0), "");
    BH_CHECK_DONE();
}

/* Only what differs is written: the file's number says which. */
static void
test_keep(void **state)
{
    static const struct {
        const char *name, *text;
        mode_t mode;
        bool stays;
        /* clang-format off */
    } rows[] = {
        { "the same", "text", 0644, true },  { "another", "tixt", 0644, false },
        { "longer", "text and", 0644, false }, { "shorter", "tex", 0644, false },
        { "empty", "", 0644, false },        { "another mode", "text", 0600, false },
    };
    /* clang-format on */
    const char *path = in_folder("kept");
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct stat before, after;

        assert_int_equal(bh_file_replace(path, "text", 4, 0644, &err), BH_OK);
        assert_int_equal(stat(path, &before), 0);
        BH_CHECK_EQ(rows[i].name, bh_file_keep(path, rows[i].text, strlen(rows[i].text), rows[i].mode, &err),
                    BH_OK);
        assert_int_equal(stat(path, &after), 0);
        BH_CHECK_EQ(rows[i].name, before.st_ino == after.st_ino, rows[i].stays);
        BH_CHECK_EQ(rows[i].name, after.st_mode & 0777, rows[i].mode);
        BH_CHECK_STR(rows[i].name, fd_test_text_of(path, 60), rows[i].text);
    }
    unlink(path);
    BH_CHECK_EQ("made", bh_file_keep(path, "text", 4, 0644, &err), BH_OK);
    BH_CHECK_DONE();
}

static void
test_replace_does_not_follow_a_link(void **state)
{
    struct bh_err err = { 0 };

    BH_CHECK_EQ("victim", bh_file_replace(in_folder("victim"), "safe", 4, 0600, &err), BH_OK);
    assert_int_equal(symlink(in_folder("victim"), in_folder("linked.new")), 0);
    BH_CHECK_EQ("replace", bh_file_replace(in_folder("linked"), "new", 3, 0600, &err), BH_OK);
    BH_CHECK_STR("the link's target", fd_test_text_of(in_folder("victim"), 9), "safe");
    BH_CHECK_STR("the file", fd_test_text_of(in_folder("linked"), 9), "new");
    BH_CHECK_DONE();
}

static void
test_failures_name_the_file(void **state)
{
    char memory[16], longest[5000];
    struct bh_buf text;
    struct bh_err err = { 0 };

    BH_CHECK_STR("absent", fd_test_text_of(in_folder("absent"), 9), "not_found");
    BH_CHECK_EQ("no such folder", bh_file_replace(in_folder("no/file"), "", 0, 0600, &err), BH_NOT_FOUND);
    BH_CHECK("names the file", strstr(err.msg, "/no/file.new: No such file or directory"));
    assert_int_equal(mkdir(in_folder("dir"), 0700), 0);
    BH_CHECK_EQ("a folder in the way", bh_file_replace(in_folder("dir"), "", 0, 0600, &err), BH_IO);
    BH_CHECK_EQ("cleans up", access(in_folder("dir.new"), F_OK), -1);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    BH_CHECK_EQ("path too long", bh_file_replace(longest, "", 0, 0600, &err), BH_INVALID);
    BH_CHECK_EQ("more than the buffer", bh_file_replace(in_folder("big"), longest, 17, 0600, &err), BH_OK);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    BH_CHECK_EQ("more than the buffer", bh_file_read(in_folder("big"), 100, &text, &err), BH_FULL);
    BH_CHECK_DONE();
}

/* What has the name of a file of state; each is refused at once, with what it is. */
static void
fd_test_make_kinds(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/kind-socket", folder);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    close(listener);
    assert_int_equal(mkfifo(in_folder("kind-fifo"), 0600), 0);
    assert_int_equal(mkdir(in_folder("kind-folder"), 0700), 0);
    assert_int_equal(symlink(in_folder("kind-fifo"), in_folder("kind-link-to-fifo")), 0);
    assert_int_equal(symlink("/dev/null", in_folder("kind-link-to-device")), 0);
}

static void
test_open_never_waits(void **state)
{
    static const struct {
        const char *name, *kind, *unfollowed; /* unfollowed: with O_NOFOLLOW */
    } cases[] = {
        { "kind-fifo", "is a FIFO where", "is a FIFO where" },
        { "kind-folder", "is a folder where", "is a folder where" },
        { "kind-socket", "is a socket where", "is a socket where" },
        { "kind-link-to-fifo", "is a FIFO where", "is a symbolic link where" },
        { "kind-link-to-device", "is a device where", "is a symbolic link where" },
    };
    static const int flags[] = { O_RDONLY, O_WRONLY | O_CREAT, O_RDWR | O_CREAT,
                                 O_WRONLY | O_CREAT | O_TRUNC };
    struct bh_err err = { 0 };
    int fd = -1;

    fd_test_make_kinds();
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        for (size_t how = 0; how < BH_COUNT(flags); how++) {
            const char *path = in_folder(cases[i].name);

            BH_CHECK_EQ(cases[i].name, bh_file_open(path, flags[how], 0600, &fd, &err), BH_INVALID);
            BH_CHECK(cases[i].name, strstr(err.msg, path) && strstr(err.msg, cases[i].kind) && *err.hint);
            BH_CHECK_EQ(cases[i].name, bh_file_open(path, flags[how] | O_NOFOLLOW, 0600, &fd, &err),
                        BH_INVALID);
            BH_CHECK(cases[i].name, strstr(err.msg, cases[i].unfollowed));
            BH_CHECK_EQ(cases[i].name, bh_file_check(path, &err), BH_INVALID);
        }
    BH_CHECK_EQ("none yet", bh_file_check(in_folder("kind-none"), &err), BH_OK);
    BH_CHECK_EQ("untouched", fd, -1);
    BH_CHECK_DONE();
}

/* Programs inherit such descriptors. */
static void
test_open_gives_a_plain_descriptor(void **state)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_err err = { 0 };

    BH_CHECK_EQ("made", bh_file_open(in_folder("opened"), O_WRONLY | O_CREAT | O_APPEND, 0640, &fd, &err),
                BH_OK);
    BH_CHECK_EQ("its flags", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK), O_WRONLY | O_APPEND);
    BH_CHECK_EQ("not inherited unasked", fcntl(fd, F_GETFD), FD_CLOEXEC);
    BH_CHECK_DONE();
}

/* `--vkey <(command)`. */
static void
test_read_given_pipe(void **state)
{
    char memory[16], path[64];
    struct bh_err err = { 0 };
    struct bh_buf text;
    int pipe_fds[2];

    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    assert_int_equal(write(pipe_fds[1], "key", 3), 3);
    close(pipe_fds[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", pipe_fds[0]);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    BH_CHECK_EQ("state", bh_file_read(path, 9, &text, &err), BH_INVALID);
    BH_CHECK_EQ("given", bh_file_read_given(path, 9, &text, &err), BH_OK);
    BH_CHECK_STR("given", bh_buf_text(&text), "key");
    close(pipe_fds[0]);
    BH_CHECK_DONE();
}

static void
test_dir_make(void **state)
{
    struct bh_err err = { 0 };
    struct stat found;

    BH_CHECK_EQ("nested", bh_dir_make(in_folder("a/b/c"), 0700, &err), BH_OK);
    BH_CHECK("nested", stat(in_folder("a/b/c"), &found) == 0 && S_ISDIR(found.st_mode));
    BH_CHECK_EQ("again", bh_dir_make(in_folder("a/b/c"), 0700, &err), BH_OK);
    BH_CHECK_EQ("slashes", bh_dir_make(in_folder("a//d/"), 0700, &err), BH_OK);
    BH_CHECK_EQ("slashes", access(in_folder("a/d"), F_OK), 0);
    BH_CHECK_EQ("root", bh_dir_make("/", 0700, &err), BH_OK);
    BH_CHECK_EQ("empty", bh_dir_make("", 0700, &err), BH_INVALID);
    BH_CHECK_EQ("file", bh_file_replace(in_folder("plain"), "", 0, 0600, &err), BH_OK);
    BH_CHECK_EQ("a file in the way", bh_dir_make(in_folder("plain"), 0700, &err), BH_IO);
    BH_CHECK_EQ("below a file", bh_dir_make(in_folder("plain/x"), 0700, &err), BH_IO);
    BH_CHECK_DONE();
}

static void
test_socket(void **state)
{
    const char *path = in_folder("sock");
    BH_AUTO(bh_fd_close) int listener = -1, client = -1, server = -1;
    struct bh_err err = { 0 };
    struct bh_peer peer = { 0 };
    struct stat found;

    BH_CHECK_EQ("listen", bh_unix_listen(path, 0660, &listener, &err), BH_OK);
    BH_CHECK_EQ("mode", stat(path, &found) == 0 ? found.st_mode & 07777 : 0, 0660);
    BH_CHECK("close-on-exec", fcntl(listener, F_GETFD) & FD_CLOEXEC);
    BH_CHECK_EQ("connect", bh_unix_connect(path, &client, &err), BH_OK);
    server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    BH_CHECK_EQ("peer", bh_unix_peer(server, &peer, &err), BH_OK);
    BH_CHECK_EQ("pid", peer.pid, getpid());
    BH_CHECK_EQ("uid", peer.uid, geteuid());
    BH_CHECK_EQ("gid", peer.gid, getegid());
    BH_CHECK_DONE();
}

/* Strangers that connect faster than they are accepted leave room for others. */
static void
test_many_wait_to_be_accepted(void **state)
{
    enum { MANY = 700 };
    BH_AUTO(bh_fd_close) int listener = -1;
    static int clients[MANY];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct bh_err err = { 0 };
    uint32_t waiting = 0;

    assert_int_equal(bh_unix_listen(in_folder("many"), 0600, &listener, &err), BH_OK);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder("many"));
    for (uint32_t i = 0; i < MANY; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        waiting += clients[i] >= 0 && connect(clients[i], (struct sockaddr *)&address, sizeof address) == 0;
    }
    for (uint32_t i = 0; i < MANY; i++)
        bh_fd_close(clients[i]);
    BH_CHECK_EQ("all wait", waiting, MANY);
    BH_CHECK_DONE();
}

static void
test_peer_groups(void **state)
{
    int ends[2];
    gid_t mine[1024], theirs[1024];
    int count = getgroups((int)BH_COUNT(mine), mine);
    size_t reported = 99;
    struct bh_err err = { 0 };

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    BH_CHECK_EQ("groups", bh_unix_peer_groups(ends[0], theirs, BH_COUNT(theirs), &reported, &err), BH_OK);
    BH_CHECK_EQ("count", reported, count);
    BH_CHECK_EQ("same", memcmp(mine, theirs, (size_t)count * sizeof *mine), 0);
    bh_fd_close(ends[0]);
    BH_CHECK_EQ("no socket", bh_unix_peer_groups(-1, theirs, 1, &reported, &err), BH_IO);
    bh_fd_close(ends[1]);
    BH_CHECK_DONE();
}

static void
test_listen_replaces_only_the_dead(void **state)
{
    const char *path = in_folder("taken");
    int first = -1, second = -1;
    struct bh_err err = { 0 };

    BH_CHECK_EQ("first", bh_unix_listen(path, 0600, &first, &err), BH_OK);
    BH_CHECK_EQ("while it lives", bh_unix_listen(path, 0600, &second, &err), BH_CONFLICT);
    BH_CHECK("says so", strstr(err.msg, "another program listens there"));
    bh_fd_close(first);
    BH_CHECK_EQ("nothing listens", bh_unix_connect(path, &first, &err), BH_UNAVAILABLE);
    BH_CHECK_EQ("when it is dead", bh_unix_listen(path, 0600, &second, &err), BH_OK);
    bh_fd_close(second);
    BH_CHECK_EQ("file", bh_file_replace(in_folder("precious"), "x", 1, 0600, &err), BH_OK);
    BH_CHECK_EQ("a file", bh_unix_listen(in_folder("precious"), 0600, &second, &err), BH_CONFLICT);
    BH_CHECK_STR("is kept", fd_test_text_of(in_folder("precious"), 9), "x");
    BH_CHECK_EQ("no socket", bh_unix_connect(in_folder("none"), &first, &err), BH_UNAVAILABLE);
    BH_CHECK_DONE();
}

static void
test_socket_path_length(void **state)
{
    char path[109];
    int fd = -1;
    struct bh_err err = { 0 };

    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    BH_CHECK_EQ("listen", bh_unix_listen(path, 0600, &fd, &err), BH_INVALID);
    BH_CHECK_EQ("connect", bh_unix_connect(path, &fd, &err), BH_INVALID);
    BH_CHECK_EQ("untouched", fd, -1);
    BH_CHECK_DONE();
}

static void
test_write_all(void **state)
{
    int ends[2];
    char got[8] = "";
    struct bh_err err = { 0 };

    assert_int_equal(pipe(ends), 0);
    BH_CHECK_EQ("write", bh_fd_write_all(ends[1], "abc", 3, &err), BH_OK);
    BH_CHECK_EQ("read", read(ends[0], got, sizeof got), 3);
    BH_CHECK_STR("same", got, "abc");
    BH_CHECK_EQ("read-only end", bh_fd_write_all(ends[0], "abc", 3, &err), BH_IO);
    BH_CHECK_EQ("number", err.sys, EBADF);
    BH_CHECK_EQ("stolen", bh_fd_steal(&ends[0]) >= 0 && ends[0] == -1, 1);
    bh_fd_close(ends[1]);
    bh_fd_close(-1);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replace_and_read),
    cmocka_unit_test(test_keep),
    cmocka_unit_test(test_replace_does_not_follow_a_link),
    cmocka_unit_test(test_failures_name_the_file),
    cmocka_unit_test(test_open_never_waits),
    cmocka_unit_test(test_open_gives_a_plain_descriptor),
    cmocka_unit_test(test_read_given_pipe),
    cmocka_unit_test(test_dir_make),
    cmocka_unit_test(test_socket),
    cmocka_unit_test(test_many_wait_to_be_accepted),
    cmocka_unit_test(test_peer_groups),
    cmocka_unit_test(test_listen_replaces_only_the_dead),
    cmocka_unit_test(test_socket_path_length),
    cmocka_unit_test(test_write_all),
};

int
main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, fd_test_make_folder, remove_folder);
}
