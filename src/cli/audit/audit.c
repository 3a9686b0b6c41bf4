#include "cli/audit/audit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli/audit/audit_rows.h"
#include "cli/audit/audit_verifier.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { TAIL_STANDARD = 20, PAGE = 1000 };

/* ---- the log as lines: a record each, and signed checkpoints as JSON strings ---- */

struct audit_export {
    const struct bh_cli *cli;
    int fd;
    bh_json_value checkpoints; /* ascending by size */
    size_t checkpoint;
    uint64_t next; /* number of the next record */
    bool last;
};

/* Checkpoints that cover exactly the records so far. */
static void
audit_put_checkpoints(struct audit_export *x, struct bh_buf *out)
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
audit_put_leaf(struct audit_export *x, bh_json_value row, struct bh_buf *out, struct bh_err *err)
{
    const char *leaf = bh_json_text(bh_json_get(row, "leaf"), NULL);

    if (bh_json_get(row, "pruned"))
        leaf = bh_json_text(bh_json_get(row, "hash"), NULL);
    if (!leaf) {
        bh_err_set(err, BH_DENIED, "you may not see record %" PRIu64, x->next);
        return bh_err_hint(err, "verifying all records needs the role auditor on the whole site");
    }
    audit_put_checkpoints(x, out);
    bh_buf_puts(out, leaf);
    bh_buf_putc(out, '\n');
    x->next++;
    return BH_OK;
}

static bh_rc
audit_export_page(struct audit_export *x, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char path[96];
    bh_json_value items;
    bh_rc rc;

    snprintf(path, sizeof path, "/v1/records?raw=true&limit=%d", PAGE);
    if (x->next > 0)
        snprintf(path, sizeof path, "/v1/records?raw=true&limit=%d&after=%" PRIu64, PAGE, x->next - 1);
    rc = bh_cli_fetch(x->cli, path, &json, err);
    if (rc != BH_OK)
        return rc;
    items = bh_json_get(bh_json_root(json), "items");
    x->last = !bh_json_get(bh_json_root(json), "next") || bh_json_count(items) == 0;
    for (size_t i = 0; rc == BH_OK && i < bh_json_count(items); i++)
        rc = audit_put_leaf(x, bh_json_at(items, i), &out, err);
    if (rc == BH_OK && x->last)
        audit_put_checkpoints(x, &out);
    return rc == BH_OK ? bh_fd_write_all(x->fd, out.bytes ? out.bytes : "", out.length, err) : rc;
}

/* Write the whole log to `fd`. */
static bh_rc
audit_export_log(const struct bh_cli *cli, int fd, uint64_t *ret_size, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct audit_export x = { .cli = cli, .fd = fd };
    bh_rc rc = bh_cli_fetch(cli, "/v1/checkpoints", &json, err);

    if (rc == BH_OK)
        x.checkpoints = bh_json_get(bh_json_root(json), "items");
    while (rc == BH_OK && !x.last)
        rc = audit_export_page(&x, err);
    *ret_size = x.next;
    return rc;
}

/* A page of rows, each as a line behind the table's name. */
static bh_rc
audit_put_rows(void *self, const char *table, const char *lines, size_t length, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = 2 * BH_HTTP_BODY_MAX };
    const int *fd = self;

    for (size_t at = 0; at < length;) {
        const char *end = memchr(lines + at, '\n', length - at);
        size_t line = end ? (size_t)(end - (lines + at)) + 1 : length - at;

        bh_buf_puts(&out, table);
        bh_buf_putc(&out, ' ');
        bh_buf_put(&out, lines + at, line);
        at += line;
    }
    return out.overflow ? bh_err_set(err, BH_FULL, "the rows are too long")
                        : bh_fd_write_all(*fd, out.bytes ? out.bytes : "", out.length, err);
}

/* All rows of a table, behind a line that names it: a table without rows was asked for, too. */
static bh_rc
audit_export_table(const struct bh_cli *cli, int fd, const char *table, uint64_t size, struct bh_err *err)
{
    char line[32];
    int length = snprintf(line, sizeof line, "%s \n", table);
    bh_rc rc = bh_fd_write_all(fd, line, (size_t)length, err);

    if (rc != BH_OK)
        return rc;
    return bh_audit_rows_fetch(cli, table, size, (struct bh_row_pages){ audit_put_rows, &fd }, err);
}

/* What the records' ids and digests mean, after the records. */
static bh_rc
audit_export_rows(const struct bh_cli *cli, int fd, uint64_t size, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && bh_audit_tables[i]; i++)
        rc = audit_export_table(cli, fd, bh_audit_tables[i], size, err);
    return rc;
}

/* ---- tail ---- */

static bh_rc
audit_print_raw(const struct bh_cli *cli, const char *path, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, path, &json, err);
    bh_json_value items = json ? bh_json_get(bh_json_root(json), "items") : NULL;

    for (size_t i = 0; rc == BH_OK && i < bh_json_count(items); i++) {
        bh_json_value row = bh_json_at(items, i);

        printf("%s\n", bh_json_text(bh_json_get(row, "leaf"), bh_json_text(bh_json_get(row, "hash"), "")));
    }
    return rc;
}

/* The number of records so far: the answer to a request for all, even by their hashes, has it. */
static bh_rc
audit_count_records(const struct bh_cli *cli, uint64_t *ret_count, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/records?raw=true&limit=1", &json, err);

    if (rc != BH_OK)
        return rc;
    *ret_count = bh_json_number(bh_json_get(bh_json_root(json), "total"), 0);
    return BH_OK;
}

/* Records from `after` on; the newest ones when nothing is said. */
static bh_rc
audit_put_tail_path(const struct bh_cli *cli, char *ret_path, size_t size, struct bh_err *err)
{
    const struct bh_option_value *options = cli->args->options;
    const char *raw = options[BH_OPT_RAW].given ? "true" : "false";
    uint64_t limit = options[BH_OPT_LIMIT].given ? options[BH_OPT_LIMIT].number : TAIL_STANDARD;
    uint64_t after = options[BH_OPT_AFTER].number, count = 0;
    bool some = options[BH_OPT_AFTER].given;
    bh_rc rc = BH_OK;

    if (!some && !options[BH_OPT_ALL].given) {
        rc = audit_count_records(cli, &count, err);
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
    uint64_t size;
    char path[128];
    bh_rc rc;

    if (bh_cli_flag(cli, BH_OPT_ALL) && raw)
        return audit_export_log(cli, STDOUT_FILENO, &size, err);
    rc = audit_put_tail_path(cli, path, sizeof path, err);
    if (rc != BH_OK)
        return rc;
    return raw ? audit_print_raw(cli, path, err) : bh_cli_list(cli, path, true, &bh_view_records, err);
}

/* The record of that number, with what the API says of it or as an export has it. */
static bh_rc
audit_find_record(const struct bh_cli *cli, uint64_t number, struct bh_json **json, struct bh_err *err)
{
    const char *folder = cli->args->options[BH_OPT_EXPORT].text;
    char path[96];

    snprintf(path, sizeof path, "/v1/records/%" PRIu64, number);
    return folder ? bh_audit_exported(folder, number, json, err) : bh_cli_fetch(cli, path, json, err);
}

static bh_rc
audit_describe(const struct bh_cli *cli, bh_json_value value, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    bh_rc rc;

    if (bh_cli_print_document(cli, value, &rc, err))
        return rc;
    bh_view_describe(&out, value, 0);
    return bh_output_write(&out, err);
}

bh_rc
bh_cli_audit_show(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *text = cli->args->arguments[0];
    uint64_t number;
    bh_rc rc = bh_parse_u64(text, &number, err);

    if (rc != BH_OK)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not the number of a record", text);
    rc = audit_find_record(cli, number, &json, err);
    if (rc != BH_OK)
        return rc;
    if (bh_json_number(bh_json_get(bh_json_root(json), "seq"), UINT64_MAX) != number)
        return bh_err_set(err, BH_CONFLICT, "there is a different record in the place of %" PRIu64, number);
    return audit_describe(cli, bh_json_root(json), err);
}

bh_rc
bh_cli_audit_log(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_rc rc = bh_cli_fetch(cli, "/v1/log", &json, err);

    return rc == BH_OK ? audit_describe(cli, bh_json_root(json), err) : rc;
}

bh_rc
bh_cli_audit_size(struct bh_cli *cli, struct bh_err *err)
{
    uint64_t count = 0;
    bh_rc rc = audit_count_records(cli, &count, err);

    if (rc != BH_OK)
        return rc;
    printf("%" PRIu64 "\n", count);
    return BH_OK;
}

/* ---- verify ---- */

static bh_rc
audit_copy_file(const char *path, int to, struct bh_err *err)
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

/* What the verifier reads, and the file beside the key. */
static bh_rc
audit_read_source(const struct bh_cli *cli, char source[PATH_MAX], const char **ret_option,
                  struct bh_err *err)
{
    static const enum bh_option_id sources[] = { BH_OPT_STORE, BH_OPT_RECORDS, BH_OPT_EXPORT };
    const struct bh_option_value *options = cli->args->options;
    const char *store = options[BH_OPT_STORE].text;
    struct stat status;
    int given = 0;

    *ret_option = NULL;
    for (size_t i = 0; i < BH_COUNT(sources); i++) {
        if (!options[sources[i]].given)
            continue;
        snprintf(source, PATH_MAX, "%s%s", options[sources[i]].text,
                 sources[i] == BH_OPT_EXPORT ? "/checkpoint" : "");
        *ret_option = bh_cli_options[sources[i]].name;
        given++;
    }
    if (given > 1)
        return bh_err_set(err, BH_INVALID,
                          "audit verify: --store, --records and --export exclude each other");
    if (options[BH_OPT_WITNESS].given && !options[BH_OPT_EXPORT].given && !options[BH_OPT_KEPT].given)
        return bh_err_set(err, BH_INVALID, "audit verify: --witness goes with --kept or --export");
    if (options[BH_OPT_QUORUM].given && !options[BH_OPT_WITNESS].given)
        return bh_err_set(err, BH_INVALID, "audit verify: --quorum goes with --witness");
    if (store && stat(store, &status) == 0 && S_ISDIR(status.st_mode))
        snprintf(source, PATH_MAX, "%s/bulkhead.db", store);
    return BH_OK;
}

enum { ARGUMENTS_MAX = 12 + 2 * BH_OPTION_TEXTS_MAX };

/* The arguments: the key, what to verify, and what was kept. */
static void
audit_put_arguments(struct bh_cli *cli, const char *source, const char *key,
                    const char *ret_arguments[ARGUMENTS_MAX])
{
    const struct bh_option_value *options = cli->args->options;
    const struct bh_option_value *stored = &options[BH_OPT_KEPT];
    size_t count = 0;

    ret_arguments[count++] = "--vkey";
    ret_arguments[count++] = key;
    if (options[BH_OPT_STORE].given) {
        ret_arguments[count++] = "--store";
        ret_arguments[count++] = source;
    }
    if (options[BH_OPT_EXPORT].given) {
        ret_arguments[count++] = "--export";
        ret_arguments[count++] = options[BH_OPT_EXPORT].text;
    }
    for (uint32_t i = 0; i < stored->count; i++) {
        ret_arguments[count++] = "--kept";
        ret_arguments[count++] = stored->texts[i];
    }
    if (options[BH_OPT_WITNESS].given) {
        ret_arguments[count++] = "--witness";
        ret_arguments[count++] = options[BH_OPT_WITNESS].text;
    }
    if (options[BH_OPT_QUORUM].given) {
        ret_arguments[count++] = "--quorum";
        ret_arguments[count++] =
            bh_arena_printf(cli->arena, "%" PRIu64, (uint64_t)options[BH_OPT_QUORUM].number);
    }
    ret_arguments[count] = NULL;
}

bh_rc
bh_cli_audit_verify(struct bh_cli *cli, struct bh_err *err)
{
    const char *arguments[ARGUMENTS_MAX], *option;
    char source[PATH_MAX], key[PATH_MAX];
    struct bh_verifier verifier;
    uint64_t size;
    bh_rc rc = audit_read_source(cli, source, &option, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_verifier_key(cli, option ? source : NULL,
                         cli->args->options[BH_OPT_EXPORT].given ? "vkey" : "audit.vkey", key, err);
    if (rc != BH_OK)
        return rc;
    audit_put_arguments(cli, source, key, arguments);
    rc = bh_verifier_start(cli, arguments, &verifier, err);
    if (rc != BH_OK)
        return rc;
    if (!option)
        rc = audit_export_log(cli, verifier.fd, &size, err);
    if (!option && rc == BH_OK)
        rc = audit_export_rows(cli, verifier.fd, size, err);
    if (option && cli->args->options[BH_OPT_RECORDS].given)
        rc = audit_copy_file(source, verifier.fd, err);
    return bh_verifier_end(cli, &verifier, rc, err);
}
