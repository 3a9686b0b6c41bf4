#include "cli/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/output.h"
#include "cli/views.h"

enum { TAIL_STANDARD = 20, PAGE = 1000, STATUS_BAD = 1, STATUS_EXEC_FAILED = 127 };

/* ---- the log as lines: a record each, and signed checkpoints as JSON strings ---- */

struct export {
    const struct bh_cli *cli;
    int fd;
    bh_json_value checkpoints; /* ascending by size */
    size_t checkpoint;
    uint64_t next;             /* number of the next record */
    bool last;
};

/* Checkpoints that cover exactly the records so far. */
static void
put_checkpoints(struct export *x, struct bh_buf *out)
{
    for (; x->checkpoint < bh_json_count(x->checkpoints); x->checkpoint++) {
        bh_json_value row = bh_json_at(x->checkpoints, x->checkpoint);

        if (bh_json_number(bh_json_get(row, "size"), UINT64_MAX) > x->next)
            return;
        bh_json_put_str(out, bh_json_text(bh_json_get(row, "note"), ""));
        bh_buf_putc(out, '\n');
    }
}

static bh_rc
put_leaf(struct export *x, bh_json_value row, struct bh_buf *out, struct bh_err *err)
{
    const char *leaf = bh_json_text(bh_json_get(row, "leaf"), NULL);

    if (!leaf) {
        bh_err_set(err, BH_DENIED, "you may not see record %" PRIu64, x->next);
        return bh_err_hint(err, "verifying all records needs the role auditor on the whole site");
    }
    put_checkpoints(x, out);
    bh_buf_puts(out, leaf);
    bh_buf_putc(out, '\n');
    x->next++;
    return BH_OK;
}

static bh_rc
export_page(struct export *x, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char path[96];
    bh_json_value items;
    struct bh_buf out;
    bh_rc rc;

    snprintf(path, sizeof path, "/v1/records?raw=true&limit=%d", PAGE);
    if (x->next > 0)
        snprintf(path, sizeof path, "/v1/records?raw=true&limit=%d&after=%" PRIu64, PAGE,
                 x->next - 1);
    rc = bh_cli_fetch(x->cli, path, &json, err);
    if (rc != BH_OK)
        return rc;
    items = bh_json_get(bh_json_root(json), "items");
    x->last = !bh_json_get(bh_json_root(json), "next") || bh_json_count(items) == 0;
    bh_buf_init(&out, BH_OUTPUT_MAX);
    for (size_t i = 0; rc == BH_OK && i < bh_json_count(items); i++)
        rc = put_leaf(x, bh_json_at(items, i), &out, err);
    if (rc == BH_OK && x->last)
        put_checkpoints(x, &out);
    if (rc == BH_OK)
        rc = bh_fd_write_all(x->fd, out.bytes ? out.bytes : "", out.length, err);
    bh_buf_fini(&out);
    return rc;
}

/* Write the whole log to `fd`. */
static bh_rc
export_log(const struct bh_cli *cli, int fd, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct export x = { .cli = cli, .fd = fd };
    bh_rc rc = bh_cli_fetch(cli, "/v1/checkpoints", &json, err);

    if (rc == BH_OK)
        x.checkpoints = bh_json_get(bh_json_root(json), "items");
    while (rc == BH_OK && !x.last)
        rc = export_page(&x, err);
    return rc;
}

/* ---- tail ---- */

static bh_rc
print_raw(const struct bh_cli *cli, const char *path, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, path, &json, err);
    bh_json_value items = json ? bh_json_get(bh_json_root(json), "items") : NULL;

    for (size_t i = 0; rc == BH_OK && i < bh_json_count(items); i++) {
        bh_json_value row = bh_json_at(items, i);

        printf("%s\n", bh_json_text(bh_json_get(row, "leaf"),
                                    bh_json_text(bh_json_get(row, "hash"), "")));
    }
    return rc;
}

/* The number of records so far. */
static bh_rc
count_records(const struct bh_cli *cli, uint64_t *ret_count, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/records?limit=1", &json, err);

    if (rc == BH_OK)
        *ret_count = bh_json_number(bh_json_get(bh_json_root(json), "total"), 0);
    return rc;
}

/* Records from `after` on; the newest ones when nothing is said. */
static bh_rc
put_tail_path(const struct bh_cli *cli, char *ret_path, size_t size, struct bh_err *err)
{
    const struct bh_option_value *options = cli->args->options;
    const char *raw = options[BH_OPT_RAW].given ? "true" : "false";
    uint64_t limit = options[BH_OPT_LIMIT].given ? options[BH_OPT_LIMIT].number : TAIL_STANDARD;
    uint64_t after = options[BH_OPT_AFTER].number, count = 0;
    bool some = options[BH_OPT_AFTER].given;
    bh_rc rc = BH_OK;

    if (!some && !options[BH_OPT_ALL].given) {
        rc = count_records(cli, &count, err);
        some = count > limit;
        after = count - limit - 1;
    }
    if (some)
        snprintf(ret_path, size, "/v1/records?raw=%s&after=%" PRIu64, raw, after);
    else
        snprintf(ret_path, size, "/v1/records?raw=%s", raw);
    return rc;
}

bh_rc
bh_cli_audit_tail(struct bh_cli *cli, struct bh_err *err)
{
    bool raw = bh_cli_flag(cli, BH_OPT_RAW);
    char path[128];
    bh_rc rc;

    if (bh_cli_flag(cli, BH_OPT_ALL) && raw)
        return export_log(cli, STDOUT_FILENO, err);
    rc = put_tail_path(cli, path, sizeof path, err);
    if (rc != BH_OK)
        return rc;
    return raw ? print_raw(cli, path, err)
               : bh_cli_list(cli, path, true, &bh_view_records, err);
}

bh_rc
bh_cli_audit_size(struct bh_cli *cli, struct bh_err *err)
{
    uint64_t count = 0;
    bh_rc rc = count_records(cli, &count, err);

    if (rc == BH_OK)
        printf("%" PRIu64 "\n", count);
    return rc;
}

/* ---- verify: a program of its own computes, so that only it loads the cryptography ---- */

static bool
exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* A sibling of the file at `path`. */
static void
put_beside(char place[PATH_MAX], const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    snprintf(place, PATH_MAX, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}

/* Where `up` publishes it, and where the daemon keeps it. */
static const char *const standard_keys[] = { "/var/lib/bulkhead/audit.vkey",
                                             "/var/lib/bulkhead/daemon/audit.vkey" };

/* The audit log's public key: as said, beside the store, or of the daemon here. */
static bh_rc
find_key(const struct bh_cli *cli, const char *store, char place[PATH_MAX], struct bh_err *err)
{
    const char *key = cli->args->options[BH_OPT_VKEY].text;

    if (key) {
        snprintf(place, PATH_MAX, "%s", key);
        return BH_OK;
    }
    if (store)
        put_beside(place, store, "audit.vkey");
    else
        put_beside(place, cli->client.socket, "../audit.vkey");
    for (size_t i = 0; !store && !exists(place) && i < BH_COUNT(standard_keys); i++)
        snprintf(place, PATH_MAX, "%s", standard_keys[i]);
    if (exists(place))
        return BH_OK;
    bh_err_set(err, BH_NOT_FOUND, "the audit log's public key is not here");
    return bh_err_hint(err, "--vkey FILE: the daemon keeps it as audit.vkey in its state folder");
}

static bh_rc
find_verifier(char place[PATH_MAX], struct bh_err *err)
{
    static const char *const places[] = { "../libexec/bulkhead/bulkhead-audit",
                                          "bulkhead-audit" };
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(places); i++) {
        rc = bh_cli_beside(places[i], place, PATH_MAX, err);
        if (rc == BH_OK && exists(place))
            return BH_OK;
    }
    return bh_err_set(err, BH_NOT_FOUND, "bulkhead-audit is missing beside this program");
}

/* Start the verifier; *ret_fd is its standard input where it reads the log from. */
static bh_rc
start_verifier(const char *const argv[], pid_t *ret_pid, int *ret_fd, struct bh_err *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bh_err_errno(err, "a pipe");
    fflush(stdout);
    *ret_pid = fork();
    if (*ret_pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        dup2(ends[0], STDIN_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        perror(argv[0]);
        _exit(STATUS_EXEC_FAILED);
    }
    bh_fd_close(ends[0]);
    *ret_fd = ends[1];
    return *ret_pid < 0 ? bh_err_errno(err, "%s", argv[0]) : BH_OK;
}

static bh_rc
copy_file(const char *path, int to, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char bytes[65536];
    ssize_t got = 0;
    bh_rc rc = BH_OK;

    if (fd < 0)
        return bh_err_errno(err, "%s", path);
    while (rc == BH_OK && (got = read(fd, bytes, sizeof bytes)) > 0)
        rc = bh_fd_write_all(to, bytes, (size_t)got, err);
    return got < 0 ? bh_err_errno(err, "%s", path) : rc;
}

/* Wait for the verdict; a verifier that stopped reading has one already. */
static bh_rc
take_verdict(struct bh_cli *cli, pid_t pid, bh_rc rc, struct bh_err *err)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_BAD) {
        cli->status = STATUS_BAD;
        return BH_OK;
    }
    if (rc != BH_OK)
        return rc;
    if (!WIFEXITED(status) || WEXITSTATUS(status) == STATUS_EXEC_FAILED)
        return bh_err_set(err, BH_IO, "bulkhead-audit failed");
    cli->status = WEXITSTATUS(status);
    return BH_OK;
}

bh_rc
bh_cli_audit_verify(struct bh_cli *cli, struct bh_err *err)
{
    const char *store = cli->args->options[BH_OPT_STORE].text;
    const char *records = cli->args->options[BH_OPT_RECORDS].text;
    char program[PATH_MAX], key[PATH_MAX], inside[PATH_MAX];
    const char *argv[] = { program, "--vkey", key, store ? "--store" : NULL, inside, NULL };
    struct stat status;
    pid_t pid = 0;
    int fd = -1;
    bh_rc rc;

    if (store)
        snprintf(inside, sizeof inside, "%s", store);
    if (store && stat(store, &status) == 0 && S_ISDIR(status.st_mode))
        snprintf(inside, sizeof inside, "%s/bulkhead.db", store);
    rc = find_verifier(program, err);
    if (rc == BH_OK)
        rc = find_key(cli, store ? inside : records, key, err);
    if (rc == BH_OK)
        rc = start_verifier(argv, &pid, &fd, err);
    if (rc != BH_OK)
        return rc;
    if (records)
        rc = copy_file(records, fd, err);
    else if (!store)
        rc = export_log(cli, fd, err);
    if (rc != BH_OK && err->sys != EPIPE)
        kill(pid, SIGTERM);
    bh_fd_close(fd);
    return take_verdict(cli, pid, rc, err);
}
