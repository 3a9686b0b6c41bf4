#include "node/common/helper.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/process.h"

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

bh_rc
bh_helper_start(struct bh_helper *helper, int output, int fd, pid_t *ret_pid, struct bh_err *err)
{
    static const char *const env[] = { "PATH=" BH_HELPER_PATH, NULL };
    struct bh_process_options options = {
        .argv = (const char *const *)helper->argv,
        .envp = env,
        .fds = { { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 1,
    };

    if (output >= 0)
        options.fds[options.fd_count++] = (struct bh_process_fd){ STDOUT_FILENO, output };
    if (fd >= 0)
        options.fds[options.fd_count++] = (struct bh_process_fd){ BH_HELPER_FD, fd };
    return bh_process_start(&options, ret_pid, NULL, err);
}
