#include "fetch/process.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/process.h"
#include "fetch/resolver_files.h"

enum { ARGUMENTS_MAX = 2 * (32 + 8) + 16 };

/* ---- the command ---- */

static void BH_PRINTF(2, 3) process_add(struct bh_fetch_command *command, const char *format, ...)
{
    size_t count = 0;
    va_list args;

    while (command->argv[count])
        count++;
    BH_ASSERT(count + 1 < ARGUMENTS_MAX);
    va_start(args, format);
    BH_ASSERT(vasprintf(&command->argv[count], format, args) >= 0);
    va_end(args);
}

static void
process_add_pair(struct bh_fetch_command *command, const char *name, const char *value)
{
    if (!value)
        return;
    process_add(command, "%s", name);
    process_add(command, "%s", value);
}

static bh_rc
process_check(const struct bh_fetch_options *options, struct bh_err *err)
{
    if (!options->program)
        return bh_err_set(err, BH_INVALID, "no fetch program");
    if (options->certificate_count > 8 || options->allow.count > 32)
        return bh_err_set(err, BH_INVALID, "too many client certificates or address blocks");
    if (options->proxy && strchr(options->proxy, '@'))
        return bh_err_set(err, BH_INVALID,
                          "the proxy has a password, which the list of processes would show");
    for (uint32_t i = 0; i < options->certificate_count; i++) {
        const struct bh_fetch_certificate *c = &options->certificates[i];

        if (strchr(c->name, ':') || strchr(c->certificate, ':') || strchr(c->key, ':'))
            return bh_err_set(err, BH_INVALID, "client certificate %s has a ':' in its names", c->name);
    }
    return BH_OK;
}

bh_rc
bh_fetch_command_make(const struct bh_fetch_options *options, struct bh_fetch_command *ret_command,
                      struct bh_err *err)
{
    struct bh_fetch_command command = { 0 };
    bh_rc rc = process_check(options, err);

    if (rc != BH_OK)
        return rc;
    command.argv = calloc(ARGUMENTS_MAX, sizeof *command.argv);
    BH_ASSERT(command.argv);
    process_add(&command, "%s", options->program);
    process_add_pair(&command, "--ca", options->ca);
    process_add_pair(&command, "--proxy", options->proxy);
    for (uint32_t i = 0; i < options->allow.count; i++)
        process_add_pair(&command, "--allow", options->allow.items[i]);
    if (options->plain_loopback)
        process_add(&command, "--plain-loopback");
    if (options->timeout_ms)
        process_add(&command, "--timeout-ms=%u", options->timeout_ms);
    for (uint32_t i = 0; i < options->certificate_count; i++) {
        const struct bh_fetch_certificate *c = &options->certificates[i];

        process_add(&command, "--certificate=%s:%s:%s", c->name, c->certificate, c->key);
    }
    *ret_command = command;
    return BH_OK;
}

void
bh_fetch_command_free(struct bh_fetch_command *command)
{
    for (size_t i = 0; command->argv && command->argv[i]; i++)
        free(command->argv[i]);
    free(command->argv);
    command->argv = NULL;
}

/* ---- the process ---- */

/* Which files are there: their numbers change when they are replaced. */
static uint64_t
process_files_now(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; bh_fetch_resolver_files[i]; i++) {
        struct stat now = { 0 };

        if (stat(bh_fetch_resolver_files[i], &now) == 0)
            sum += (now.st_ino * UINT64_C(0x9e3779b97f4a7c15) ^ now.st_dev) + i;
        sum = sum << 7 | sum >> 57;
    }
    return sum;
}

/* Only the socket, as descriptor 3, and standard error reach it; its environment tells the resolver to give
 * up early, and nothing else. */
static bh_rc
process_spawn(const struct bh_fetch_command *command, int socket, pid_t *ret_pid, struct bh_err *err)
{
    static const char *const environment[] = { "RES_OPTIONS=timeout:2 attempts:2", NULL };
    struct bh_process_options options = {
        .argv = (const char *const *)command->argv,
        .envp = environment,
        .fds = { { STDOUT_FILENO, STDERR_FILENO }, { STDERR_FILENO, STDERR_FILENO }, { 3, socket } },
        .fd_count = 3,
        .new_group = true,
    };

    if (bh_process_start(&options, ret_pid, NULL, err) != BH_OK)
        return err->rc = BH_UNAVAILABLE;
    return BH_OK;
}

bh_rc
bh_fetch_process_start(const struct bh_fetch_command *command, struct bh_fetch_process *ret_process,
                       struct bh_err *err)
{
    struct bh_fetch_process process = { .files = process_files_now() };
    int pair[2];
    bh_rc rc;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return bh_err_sys(err, BH_UNAVAILABLE, BH_SYS_ERRNO, errno, "cannot make a socket pair: %s",
                          strerror(errno));
    rc = process_spawn(command, pair[1], &process.pid, err);
    bh_fd_close(pair[1]);
    if (rc != BH_OK) {
        bh_fd_close(pair[0]);
        return rc;
    }
    process.link = bh_link_new(pair[0]);
    *ret_process = process;
    return BH_OK;
}

void
bh_fetch_process_end(struct bh_fetch_process *process)
{
    if (process->pid == 0)
        return;
    bh_link_free(bh_steal(&process->link));
    kill(process->pid, SIGKILL);
    bh_process_wait(process->pid);
    process->pid = 0;
}

bool
bh_fetch_process_stale(const struct bh_fetch_process *process)
{
    return process_files_now() != process->files;
}
