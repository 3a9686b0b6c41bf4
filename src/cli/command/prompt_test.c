#include "cli/command/prompt.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

/* A terminal and a person at it, who types when the question is there. */
struct terminal {
    int ours, theirs; /* the person's end, the program's */
    const char *typed;
    char output[512]; /* until the program is done */
    bool echoed;      /* whether the terminal echoed while it was asked */
    pthread_t person;
};

static bool
echoes(int fd)
{
    struct termios now;

    assert_int_equal(tcgetattr(fd, &now), 0);
    return now.c_lflag & ECHO;
}

static size_t
prompt_test_read(struct terminal *t, size_t held, int wait_ms)
{
    struct pollfd watched = { .fd = t->ours, .events = POLLIN };
    ssize_t got = 0;

    while (held < sizeof t->output - 1 && poll(&watched, 1, wait_ms) > 0
           && (got = read(t->ours, t->output + held, sizeof t->output - 1 - held)) > 0) {
        held += (size_t)got;
        t->output[held] = '\0';
        if (strstr(t->output, "? ") && wait_ms > 500)
            break;
    }
    return held;
}

static void *
prompt_test_answer(void *self)
{
    struct terminal *t = self;
    struct bh_err unread;
    size_t held = prompt_test_read(t, 0, 25000); /* what is typed before the question is thrown away */

    t->echoed = echoes(t->ours);
    if (bh_fd_write_all(t->ours, t->typed, strlen(t->typed), &unread) == BH_OK)
        prompt_test_read(t, held, 100);
    return NULL;
}

static void
open_terminal(struct terminal *t, const char *typed)
{
    *t = (struct terminal){ .typed = typed };
    assert_int_equal(openpty(&t->ours, &t->theirs, NULL, NULL, NULL), 0);
}

static void
close_terminal(struct terminal *t)
{
    close(t->ours);
    close(t->theirs);
}

static const struct {
    const char *name, *typed;
    bool echo;
    bh_rc rc;
    const char *text;
} cases[] = {
    { "a secret", "correct horse\n", false, BH_OK, "correct horse" },
    { "a name", "ada\n", true, BH_OK, "ada" },
    { "nothing", "\n", false, BH_OK, "" },
    { "a line end from elsewhere", "secret\r\n", false, BH_OK, "secret" },
    { "corrected", "secres\x7ft\n", false, BH_OK, "secret" },
    { "not ASCII", "p\xc3\xa4ssword\n", false, BH_OK, "p\xc3\xa4ssword" },
    { "a control character", "a\x01z\n", false, BH_INVALID, "" },
    { "the end of input", "\x04", false, BH_IO, "" },
};

static void
test_asked(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char text[BH_PROMPT_MAX] = "?";
        struct terminal t;
        struct bh_err err;

        open_terminal(&t, cases[i].typed);
        assert_int_equal(pthread_create(&t.person, NULL, prompt_test_answer, &t), 0);
        BH_CHECK_EQ(cases[i].name, bh_prompt_ask_on(t.theirs, "who? ", cases[i].echo, text, &err),
                    cases[i].rc);
        pthread_join(t.person, NULL);
        BH_CHECK_STR(cases[i].name, text, cases[i].text);
        BH_CHECK_EQ(cases[i].name, t.echoed, cases[i].echo);
        BH_CHECK(cases[i].name, strncmp(t.output, "who? ", 5) == 0);
        if (strlen(cases[i].text) > 0)
            BH_CHECK_EQ(cases[i].name, strstr(t.output, cases[i].text) != NULL, cases[i].echo);
        BH_CHECK(cases[i].name, echoes(t.theirs));
        close_terminal(&t);
    }
    BH_CHECK_DONE();
}

/* A program that is ended while it asks leaves a terminal that echoes. */
static void
test_signal(void **state)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

    for (size_t i = 0; i < BH_COUNT(ending); i++) {
        struct terminal t;
        int status;
        pid_t child;

        open_terminal(&t, "");
        child = fork();
        if (child == 0) {
            char text[BH_PROMPT_MAX];
            struct bh_err err;

            _exit(bh_prompt_ask_on(t.theirs, "who? ", false, text, &err) == BH_OK ? 0 : 1);
        }
        prompt_test_read(&t, 0, 5000);
        BH_CHECK_STR("asked", t.output, "who? ");
        BH_CHECK("quiet", !echoes(t.theirs));
        kill(child, ending[i]);
        waitpid(child, &status, 0);
        BH_CHECK("ended by the signal", WIFSIGNALED(status) && WTERMSIG(status) == ending[i]);
        BH_CHECK("echoes again", echoes(t.theirs));
        close_terminal(&t);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *input;
    bh_rc rc;
    const char *first, *second;
} inputs[] = {
    { "two lines", "password\n123456\n", BH_OK, "password", "123456" },
    { "no end at the last", "password\n123456", BH_OK, "password", "123456" },
    { "one line", "password\n", BH_OK, "password", "" },
    { "nothing", "", BH_OK, "", "" },
    { "line ends from elsewhere", "password\r\n123456\r\n", BH_OK, "password", "123456" },
    { "blanks are the password's", " pass word \n", BH_OK, " pass word ", "" },
    { "a tab", "pass\tword\n1\n", BH_INVALID, "", "1" },
    { "two carriage returns", "pass\r\r\n1\n", BH_INVALID, "", "1" },
};

/* Lines of standard input; what is wrong with one is left behind with it. */
static void
test_lines(void **state)
{
    for (size_t i = 0; i < BH_COUNT(inputs); i++) {
        char first[BH_PROMPT_MAX], second[BH_PROMPT_MAX];
        struct bh_err err;
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(bh_fd_write_all(ends[1], inputs[i].input, strlen(inputs[i].input), &err), BH_OK);
        close(ends[1]);
        BH_CHECK_EQ(inputs[i].name, bh_prompt_read_line(ends[0], first, &err), inputs[i].rc);
        BH_CHECK_EQ(inputs[i].name, bh_prompt_read_line(ends[0], second, &err), BH_OK);
        BH_CHECK_STR(inputs[i].name, first, inputs[i].first);
        BH_CHECK_STR(inputs[i].name, second, inputs[i].second);
        close(ends[0]);
    }
    BH_CHECK_DONE();
}

static void
test_longest_line(void **state)
{
    char input[BH_PROMPT_MAX + 2], text[BH_PROMPT_MAX];
    struct bh_err err;

    for (size_t length = BH_PROMPT_MAX - 2; length <= BH_PROMPT_MAX + 1; length++) {
        int ends[2];

        memset(input, 'x', length);
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(bh_fd_write_all(ends[1], input, length, &err), BH_OK);
        close(ends[1]);
        BH_CHECK_EQ("length", bh_prompt_read_line(ends[0], text, &err),
                    length < BH_PROMPT_MAX ? BH_OK : BH_INVALID);
        BH_CHECK_EQ("length", strlen(text), length < BH_PROMPT_MAX ? length : 0);
        close(ends[0]);
    }
    BH_CHECK_DONE();
}

/* A secret in memory is in no core dump. */
static void
test_no_core_dump(void **state)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 0);
    assert_int_equal(limit.rlim_max, 0);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
}

int
main(void)
{
    static const int ignored[] = { SIGINT, SIGQUIT, SIGHUP }; /* by shells, of what they start
                                                              behind */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked),        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_longest_line),
        cmocka_unit_test(test_no_core_dump), /* after the questions */
    };

    for (size_t i = 0; i < BH_COUNT(ignored); i++)
        signal(ignored[i], SIG_DFL);
    if (posix_openpt(O_RDWR | O_NOCTTY) < 0) {
        puts("1..0 # SKIP this machine has no pseudo-terminals");
        return 0;
    }

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
