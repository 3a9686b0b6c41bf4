#include "cli/login/account_qr.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "cli/login/login_browser.h"

void
bh_account_show_qr(const char *text)
{
    char program[PATH_MAX];
    const char *const argv[] = { program, "-t", "ANSIUTF8", "-o", "-", NULL };
    struct bh_process_options options;
    struct bh_err unread;
    int ends[2];
    pid_t child;
    bh_rc rc;

    if (!isatty(STDOUT_FILENO) || !bh_login_find_program("qrencode", program, sizeof program)
        || pipe2(ends, O_CLOEXEC) != 0)
        return;
    options = (struct bh_process_options){
        .argv = argv,
        .envp = (const char *const *)environ,
        .fds = { { STDIN_FILENO, ends[0] },
                 { STDOUT_FILENO, STDOUT_FILENO },
                 { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 3,
    };
    rc = bh_process_start(&options, &child, NULL, &unread);
    bh_fd_close(ends[0]);
    /* Less than a pipe holds; a qrencode that ends early is no failure of this command. */
    if (rc == BH_OK)
        (void)!bh_fd_write_all(ends[1], text, strlen(text), &unread);
    bh_fd_close(ends[1]);
    if (rc == BH_OK)
        bh_process_wait(child);
}
