#include "cli/command/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static volatile sig_atomic_t is_raw;
static int pipes[2] = { -1, -1 };

void
bh_terminal_restore(void)
{
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &before); /* safe in a handler */
    is_raw = 0;
}

/* A signal has its usual effect, after the terminal is as it was. */
static void
restore_and_end(int number)
{
    bh_terminal_restore();
    signal(number, SIG_DFL);
    raise(number);
}

void
bh_terminal_raw(void)
{
    static const int ends[] = { SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,  SIGABRT,
                                SIGSYS,  SIGALRM, SIGXCPU, SIGUSR1, SIGUSR2 };
    struct termios raw;

    if (is_raw || tcgetattr(STDIN_FILENO, &before) != 0)
        return;
    raw = before;
    cfmakeraw(&raw);
    atexit(bh_terminal_restore);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        signal(ends[i], restore_and_end);
    is_raw = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

bool
bh_terminal_size(uint16_t *ret_rows, uint16_t *ret_columns)
{
    struct winsize size;

    if ((ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
    return true;
}

static void
note_signal(int number)
{
    unsigned char byte = (unsigned char)number;

    (void)!write(pipes[1], &byte, 1);
}

int
bh_terminal_signals(void)
{
    static const int numbers[] = { SIGWINCH, SIGINT, SIGTERM, SIGQUIT, SIGHUP };
    struct sigaction action = { .sa_handler = note_signal };

    if (pipes[0] >= 0)
        return pipes[0];
    if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
    return pipes[0];
}

int
bh_terminal_next_signal(void)
{
    unsigned char byte;

    return pipes[0] >= 0 && read(pipes[0], &byte, 1) == 1 ? byte : 0;
}
