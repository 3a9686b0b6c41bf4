#include "cli/command/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

/* Signals that end or stop the program: the terminal must echo again before they do. */
static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP };

static volatile sig_atomic_t caught;

static void
prompt_note_signal(int number)
{
    caught = number;
}

/* What signals did before the question. */
struct before {
    struct sigaction actions[BH_COUNT(signals)];
    sigset_t mask;
};

/* They come only while the answer is waited for: one that comes between the question and the
 * waiting would be forgotten until a key is pressed. */
static void
prompt_catch_signals(struct before *ret_before)
{
    struct sigaction action = { .sa_handler = prompt_note_signal };
    sigset_t blocked;

    sigemptyset(&action.sa_mask);
    sigemptyset(&blocked);
    caught = 0;
    for (size_t i = 0; i < BH_COUNT(signals); i++) {
        sigaddset(&blocked, signals[i]);
        sigaction(signals[i], &action, &ret_before->actions[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &ret_before->mask);
}

static void
prompt_release_signals(const struct before *before)
{
    for (size_t i = 0; i < BH_COUNT(signals); i++)
        sigaction(signals[i], &before->actions[i], NULL);
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
}

static void
prompt_forbid_core_dumps(void)
{
    struct rlimit none = { 0, 0 };

    setrlimit(RLIMIT_CORE, &none);      /* it may only fall: this cannot fail */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* nor this; core_pattern's programs heed no limit */
}

/* `mask`: of signals while it waits; NULL: as it is. */
static bh_rc
prompt_read_byte(int fd, const sigset_t *mask, char *ret_byte, bool *ret_end, struct bh_err *err)
{
    for (;;) {
        struct pollfd answer = { .fd = fd, .events = POLLIN };
        ssize_t got = ppoll(&answer, 1, NULL, mask) < 0 ? -1 : read(fd, ret_byte, 1);

        *ret_end = got == 0;
        if (got >= 0)
            return BH_OK;
        if (errno != EINTR || caught)
            return bh_err_errno(err, "reading the answer");
    }
}

/* *ret_end: the input ended before the line did. */
static bh_rc
prompt_read_line(int fd, const sigset_t *mask, char ret_text[BH_PROMPT_MAX], bool *ret_end,
                 struct bh_err *err)
{
    size_t length = 0;
    bool strange = false;
    bh_rc rc;
    char byte = 0;

    for (;;) {
        rc = prompt_read_byte(fd, mask, &byte, ret_end, err);
        if (rc != BH_OK || *ret_end || byte == '\n')
            break;
        strange = strange || (unsigned char)byte < 0x20 || byte == 0x7f;
        if (length < BH_PROMPT_MAX)
            ret_text[length++] = byte;
    }
    if (length > 0 && length < BH_PROMPT_MAX && ret_text[length - 1] == '\r') {
        length--; /* a line from elsewhere; the only control character it may have */
        strange = memchr(ret_text, '\r', length) != NULL;
    }
    if (rc == BH_OK && (length == BH_PROMPT_MAX || strange))
        rc = bh_err_set(err, BH_INVALID,
                        strange ? "a control character in the answer" : "the answer is too long");
    ret_text[rc == BH_OK ? length : 0] = '\0';
    return rc;
}

bh_rc
bh_prompt_read_line(int fd, char ret_text[BH_PROMPT_MAX], struct bh_err *err)
{
    bool end;

    prompt_forbid_core_dumps();
    return prompt_read_line(fd, NULL, ret_text, &end, err);
}

/* One question.  BH_UNCERTAIN: a signal came in between, and has done its work. */
static bh_rc
prompt_ask_once(int fd, const char *question, bool echo, char ret_text[BH_PROMPT_MAX], struct bh_err *err)
{
    struct before signals_before;
    struct termios before, now;
    bool end = false;
    bh_rc rc;

    if (tcgetattr(fd, &before) != 0)
        return bh_err_errno(err, "the terminal");
    now = before;
    now.c_lflag |= ICANON | ECHONL;
    now.c_lflag = echo ? now.c_lflag | ECHO : now.c_lflag & ~(tcflag_t)ECHO;
    prompt_catch_signals(&signals_before);
    if (tcsetattr(fd, TCSAFLUSH, &now) != 0)
        rc = bh_err_errno(err, "the terminal");
    else
        rc = bh_fd_write_all(fd, question, strlen(question), err);
    if (rc == BH_OK)
        rc = prompt_read_line(fd, &signals_before.mask, ret_text, &end, err);
    tcsetattr(fd, TCSAFLUSH, &before);
    prompt_release_signals(&signals_before);
    if (caught) {
        raise(caught);
        return BH_UNCERTAIN;
    }
    return rc == BH_OK && end ? bh_err_set(err, BH_IO, "no answer was given") : rc;
}

bh_rc
bh_prompt_ask_on(int fd, const char *question, bool echo, char ret_text[BH_PROMPT_MAX], struct bh_err *err)
{
    bh_rc rc;

    prompt_forbid_core_dumps();
    do
        rc = prompt_ask_once(fd, question, echo, ret_text, err);
    while (rc == BH_UNCERTAIN);
    return rc;
}

bh_rc
bh_prompt_ask(const char *question, bool echo, char ret_text[BH_PROMPT_MAX], struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return bh_err_set(err, BH_UNAVAILABLE, "no terminal to ask on");
    return bh_prompt_ask_on(fd, question, echo, ret_text, err);
}
