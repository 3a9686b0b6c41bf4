#include "cli/account_qr.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/login_browser.h"

static void
become_qrencode(const char *program, int from)
{
    if (dup2(from, STDIN_FILENO) < 0)
        _exit(127);
    execl(program, program, "-t", "ANSIUTF8", "-o", "-", (char *)NULL);
    _exit(127);
}

void
bh_account_show_qr(const char *text)
{
    char program[PATH_MAX];
    struct bh_err unread;
    int ends[2], status;
    pid_t child;

    if (!isatty(STDOUT_FILENO) || !bh_login_find_program("qrencode", program, sizeof program)
        || pipe2(ends, O_CLOEXEC) != 0)
        return;
    child = fork();
    if (child == 0)
        become_qrencode(program, ends[0]);
    bh_fd_close(ends[0]);
    /* Less than a pipe holds; a qrencode that ends early is no failure of ours. */
    if (child > 0 && bh_fd_write_all(ends[1], text, strlen(text), &unread) != BH_OK)
        status = 0;
    bh_fd_close(ends[1]);
    if (child > 0)
        waitpid(child, &status, 0);
}
