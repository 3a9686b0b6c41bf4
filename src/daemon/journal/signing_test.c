/* The real bulkhead-signer, as a child and at a socket of its own.
 *
 *   signing_test PROGRAM */
#include "daemon/journal/signing.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "base/test.h"
#include "base/time.h"

static const char *program;

struct fixture {
    char folder[32], socket[64];
    struct bh_daemon_config config;
    struct bh_signing_process *process;
    struct bh_signing port;
    struct bh_signer_reply answer;
    struct bh_err err;
};

static void
signing_setup(struct fixture *f)
{
    *f = (struct fixture){ .folder = "/tmp/bh-signing-XXXXXX" };
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->socket, sizeof f->socket, "%s/signer.sock", f->folder);
    f->config = (struct bh_daemon_config){ .state_dir = f->folder, .signer = program, .signer_socket = "" };
    f->process = bh_signing_process_new(&f->config);
    f->port = bh_signing_process_port(f->process);
}

static void
signing_teardown(struct fixture *f)
{
    DIR *folder;
    struct dirent *entry;

    bh_signing_process_free(f->process);
    folder = opendir(f->folder);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    assert_int_equal(rmdir(f->folder), 0);
}

static bool
signing_ask(struct fixture *f)
{
    const struct bh_signer_request hello = { .version = BH_SIGNER_VERSION,
                                             .number = 9,
                                             .name = "log.example/a" };

    return f->port.ops->ask(f->port.self, &hello);
}

static bh_rc
receive(struct fixture *f)
{
    return f->port.ops->receive(f->port.self, 30 * BH_NS_PER_S, &f->answer, &f->err);
}

static bool
signing_connected(struct fixture *f)
{
    return f->port.ops->connected(f->port.self);
}

static bool
connects(struct fixture *f)
{
    for (int i = 0; i < 30000 && !signing_connected(f); i++)
        bh_time_sleep(BH_NS_PER_MS);
    return signing_connected(f);
}

/* The one child of this program. */
static pid_t
child_of_mine(void)
{
    char text[64] = "";
    uint64_t pid = 0;
    struct bh_err err;
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    bh_fd_close(fd);
    text[strcspn(text, " ")] = '\0';
    return bh_parse_u64(text, &pid, &err) == BH_OK ? (pid_t)pid : 0;
}

static void
a_child_that_dies_is_started_again(void **state)
{
    char vkey[BH_SIGNER_VKEYS_MAX];
    struct fixture f;

    signing_setup(&f);
    BH_CHECK("connected", signing_connected(&f));
    BH_CHECK("asked", signing_ask(&f));
    BH_CHECK_EQ("answered", receive(&f), BH_OK);
    BH_CHECK_EQ("number", f.answer.number, 9);
    BH_CHECK("key", strncmp(f.answer.vkeys, "log.example/a+", 14) == 0);
    memcpy(vkey, f.answer.vkeys, sizeof vkey);
    for (int deaths = 0; deaths < 3; deaths++) {
        assert_true(child_of_mine() > 0);
        kill(child_of_mine(), SIGKILL);
        BH_CHECK_EQ("gone", receive(&f), BH_UNAVAILABLE);
        BH_CHECK("not at once", !signing_connected(&f));
        BH_CHECK("not asked", !signing_ask(&f));
        BH_CHECK("again", connects(&f));
        BH_CHECK("asked again", signing_ask(&f));
        BH_CHECK_EQ("answered again", receive(&f), BH_OK);
        BH_CHECK_STR("the same key", f.answer.vkeys, vkey);
    }
    BH_CHECK_DONE();
    signing_teardown(&f);
    BH_CHECK_EQ("no child is left", child_of_mine(), 0);
    BH_CHECK_DONE();
}

/* Why it cannot sign is said by itself. */
static void
a_key_that_others_may_read(void **state)
{
    char path[64];
    struct fixture f;

    signing_setup(&f);
    BH_CHECK("connected", signing_connected(&f) && signing_ask(&f));
    BH_CHECK_EQ("good", receive(&f), BH_OK);
    snprintf(path, sizeof path, "%s/audit.key", f.folder);
    assert_int_equal(chmod(path, 0644), 0);
    kill(child_of_mine(), SIGKILL);
    BH_CHECK_EQ("gone", receive(&f), BH_UNAVAILABLE);
    BH_CHECK("again", connects(&f) && signing_ask(&f));
    BH_CHECK_EQ("answers", receive(&f), BH_OK);
    BH_CHECK_EQ("that it does not", f.answer.rc, BH_DENIED);
    BH_CHECK("why", strstr(f.answer.why, "may be used by others"));
    BH_CHECK_DONE();
    signing_teardown(&f);
}

static void
no_program(void **state)
{
    struct fixture f;

    signing_setup(&f);
    f.config.signer = "/nonexistent/bulkhead-signer";
    bh_signing_process_free(f.process);
    f.process = bh_signing_process_new(&f.config);
    f.port = bh_signing_process_port(f.process);
    if (signing_connected(&f)) /* as some tools' posix_spawn has it, which then ends at once */
        signing_ask(&f);
    BH_CHECK_EQ("gone", receive(&f), BH_UNAVAILABLE);
    BH_CHECK_DONE();
    signing_teardown(&f);
}

/* A signer of its own, for processes of user `uid`. */
static pid_t
start_signer(struct fixture *f, uint32_t uid)
{
    char number[16];
    char *const argv[] = { (char *)(uintptr_t)program,
                           (char *)(uintptr_t) "--dir",
                           f->folder,
                           (char *)(uintptr_t) "--socket",
                           f->socket,
                           (char *)(uintptr_t) "--peer",
                           number,
                           NULL };
    char *const environment[] = { NULL };
    pid_t pid;

    snprintf(number, sizeof number, "%u", uid);
    assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environment), 0);
    return pid;
}

static void
at_a_socket(void **state)
{
    struct fixture f;
    pid_t pid;

    signing_setup(&f);
    f.config.signer_socket = f.socket;
    bh_signing_process_free(f.process);
    f.process = bh_signing_process_new(&f.config);
    f.port = bh_signing_process_port(f.process);
    BH_CHECK("nobody there", !signing_connected(&f));
    for (int i = 0; i < 2; i++) { /* for this signer, and then for another */
        pid = start_signer(&f, geteuid() + (uint32_t)i);
        BH_CHECK("connected", connects(&f));
        signing_ask(&f);
        BH_CHECK_EQ("answered", receive(&f), i ? BH_UNAVAILABLE : BH_OK);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        if (i == 0)
            BH_CHECK_EQ("gone", receive(&f), BH_UNAVAILABLE);
    }
    BH_CHECK_DONE();
    signing_teardown(&f);
}

/* Started beside us, it does not listen yet when we first ask. */
static void
awaited_at_a_socket(void **state)
{
    struct fixture f;
    pid_t pid;

    signing_setup(&f);
    BH_CHECK("a child of ours is not awaited", bh_signing_process_await(f.process, 0));
    f.config.signer_socket = f.socket;
    bh_signing_process_free(f.process);
    f.process = bh_signing_process_new(&f.config);
    f.port = bh_signing_process_port(f.process);
    BH_CHECK("nobody comes", !bh_signing_process_await(f.process, 0));
    pid = start_signer(&f, geteuid());
    BH_CHECK("it comes", bh_signing_process_await(f.process, bh_test_scaled(30) * BH_NS_PER_S));
    BH_CHECK("connected", signing_connected(&f));
    signing_ask(&f);
    BH_CHECK_EQ("answered", receive(&f), BH_OK);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    BH_CHECK_DONE();
    signing_teardown(&f);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_dies_is_started_again),
        cmocka_unit_test(a_key_that_others_may_read),
        cmocka_unit_test(no_program),
        cmocka_unit_test(at_a_socket),
        cmocka_unit_test(awaited_at_a_socket),
    };

    if (argc != 2)
        return 2;
    program = argv[1];
    bh_log_setup("signing_test", false, BH_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
