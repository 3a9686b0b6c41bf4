#include "node/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

bool
bh_helper_find(const char *name, char *ret_path, size_t size)
{
    for (const char *at = BH_HELPER_PATH; at && !strchr(name, '/'); at = strchr(at, ':')) {
        at += *at == ':';
        snprintf(ret_path, size, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (access(ret_path, X_OK) == 0)
            return true;
    }
    snprintf(ret_path, size, "%s", name);
    return strchr(name, '/') && access(name, X_OK) == 0;
}

void
bh_helper_word(struct bh_helper *helper, const char *format, ...)
{
    char *text = helper->text[helper->count];
    va_list args;
    int length;

    BH_ASSERT(helper->count < BH_HELPER_WORDS);
    va_start(args, format);
    length = vsnprintf(text, BH_HELPER_WORD_MAX, format, args);
    va_end(args);
    BH_ASSERT(length >= 0 && length < BH_HELPER_WORD_MAX);
    helper->argv[helper->count++] = text;
    helper->argv[helper->count] = NULL;
}

/* The descriptor is made from a copy above it, so that it is not closed on the way. */
bh_rc
bh_helper_start(struct bh_helper *helper, int output, int fd, pid_t *ret_pid,
                struct bh_err *err)
{
    char path[] = ("PATH=" BH_HELPER_PATH);
    char *env[] = { path, NULL };
    BH_AUTO(bh_fd_close)
    int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 10) : -1;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    int failed;

    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (copy >= 0)
        posix_spawn_file_actions_adddup2(&actions, copy, BH_HELPER_FD);
    failed = posix_spawn(ret_pid, helper->argv[0], &actions, &attr, helper->argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    errno = failed;
    return failed ? bh_err_errno(err, "start %s", helper->argv[0]) : BH_OK;
}
