#include "cli/audit/audit_verifier.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/process.h"

enum { STATUS_BAD = 1, STATUS_EXEC_FAILED = 127, ARGUMENTS_MAX = 160 };

static bool
verifier_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* A sibling of the file at `path`. */
static void
verifier_put_sibling(char found[PATH_MAX], const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    snprintf(found, PATH_MAX, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}

/* Where `up` publishes it, and where the daemon keeps it. */
static const char *const standard_keys[] = { "/var/lib/bulkhead/audit.vkey",
                                             "/var/lib/bulkhead/daemon/audit.vkey" };

bh_rc
bh_verifier_key(const struct bh_cli *cli, const char *sibling, const char *name, char ret_path[PATH_MAX],
                struct bh_err *err)
{
    const char *key = cli->args->options[BH_OPT_VKEY].text;

    if (key) {
        snprintf(ret_path, PATH_MAX, "%s", key);
        return BH_OK;
    }
    if (sibling)
        verifier_put_sibling(ret_path, sibling, name);
    else
        verifier_put_sibling(ret_path, cli->client.socket, "../audit.vkey");
    for (size_t i = 0; !sibling && !verifier_exists(ret_path) && i < BH_COUNT(standard_keys); i++)
        snprintf(ret_path, PATH_MAX, "%s", standard_keys[i]);
    if (verifier_exists(ret_path))
        return BH_OK;
    bh_err_set(err, BH_NOT_FOUND, "no public key of the audit log");
    return bh_err_hint(err, "--vkey FILE: it is audit.vkey in the daemon's state folder");
}

static bh_rc
verifier_find_program(char found[PATH_MAX], struct bh_err *err)
{
    static const char *const candidates[] = { "../libexec/bulkhead/bulkhead-audit", "bulkhead-audit" };
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(candidates); i++) {
        rc = bh_cli_program_path(candidates[i], found, PATH_MAX, err);
        if (rc == BH_OK && verifier_exists(found))
            return BH_OK;
    }
    return bh_err_set(err, BH_NOT_FOUND, "bulkhead-audit is missing beside this program");
}

/* A shell writes `--vkey <(command)` as /dev/fd/63: such a descriptor is for the program, too. */
static void
verifier_pass_fds(const char *const argv[], struct bh_process_options *options)
{
    static const char folder[] = "/dev/fd/";
    const size_t length = sizeof folder - 1;

    for (; *argv && options->fd_count < BH_PROCESS_FDS_MAX; argv++) {
        struct bh_err err = { 0 };
        uint32_t fd;

        if (strncmp(*argv, folder, length) != 0
            || bh_parse_u32(*argv + length, STDERR_FILENO + 1, INT_MAX, &fd, &err) != BH_OK
            || fcntl((int)fd, F_GETFD) < 0)
            continue;
        options->fds[options->fd_count++] = (struct bh_process_fd){ (int)fd, (int)fd };
    }
}

static bh_rc
verifier_start(const char *const argv[], struct bh_verifier *ret_verifier, struct bh_err *err)
{
    struct bh_process_options options;
    int ends[2];
    pid_t pid;
    bh_rc rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bh_err_errno(err, "a pipe");
    fflush(stdout);
    options = (struct bh_process_options){
        .argv = argv,
        .envp = (const char *const *)environ,
        .fds = { { STDIN_FILENO, ends[0] },
                 { STDOUT_FILENO, STDOUT_FILENO },
                 { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 3,
    };
    verifier_pass_fds(argv, &options);
    rc = bh_process_start(&options, &pid, NULL, err);
    bh_fd_close(ends[0]);
    if (rc != BH_OK) {
        bh_fd_close(ends[1]);
        return rc;
    }
    *ret_verifier = (struct bh_verifier){ pid, ends[1] };
    return BH_OK;
}

bh_rc
bh_verifier_start(const struct bh_cli *cli, const char *const *arguments, struct bh_verifier *ret_verifier,
                  struct bh_err *err)
{
    enum bh_cli_output how = bh_cli_output(cli);
    const char *argv[ARGUMENTS_MAX + 1] = { NULL };
    char program[PATH_MAX];
    size_t count = 0;
    bh_rc rc = verifier_find_program(program, err);

    if (rc != BH_OK)
        return rc;
    argv[count++] = program;
    if (how == BH_OUT_JSON || how == BH_OUT_YAML)
        argv[count++] = "--json";
    for (; *arguments; arguments++) {
        if (count == ARGUMENTS_MAX)
            return bh_err_set(err, BH_INVALID, "too many files");
        argv[count++] = *arguments;
    }
    return verifier_start(argv, ret_verifier, err);
}

bh_rc
bh_verifier_end(struct bh_cli *cli, struct bh_verifier *verifier, bh_rc rc, struct bh_err *err)
{
    bool unread = rc != BH_OK && err->sys == EPIPE; /* it ended before it read all */
    int status = 0;

    if (rc != BH_OK && !unread)
        kill(verifier->pid, SIGTERM);
    bh_fd_close(verifier->fd);
    status = bh_process_wait(verifier->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) != STATUS_EXEC_FAILED
        && (WEXITSTATUS(status) == STATUS_BAD || (unread && WEXITSTATUS(status) != 0))) {
        cli->status = WEXITSTATUS(status);
        return BH_OK;
    }
    if (rc != BH_OK)
        return rc;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == STATUS_EXEC_FAILED)
        return bh_err_set(err, BH_IO, "bulkhead-audit failed");
    cli->status = WEXITSTATUS(status);
    return BH_OK;
}
