#include "cli/cli.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/time.h"
#include "cli/output.h"

enum { PATH_BYTES_MAX = 4096, KEY_BYTES = 16 };

enum bh_cli_output
bh_cli_output(const struct bh_cli *cli)
{
    static const char *const names[] = { "table", "wide", "json", "yaml" };
    const char *text = cli->args->options[BH_OPT_OUTPUT].text;

    for (uint32_t i = 0; text && i < BH_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0)
            return (enum bh_cli_output)i;
    return BH_OUT_TABLE;
}

bool
bh_cli_flag(const struct bh_cli *cli, enum bh_option_id option)
{
    return cli->args->options[option].given;
}

bh_rc
bh_cli_fetch(const struct bh_cli *cli, const char *path, struct bh_json **ret_json,
             struct bh_err *err)
{
    struct bh_http_request request = { .method = "GET", .path = path,
                                       .accept = "application/json" };

    return bh_client_json(&cli->client, &request, ret_json, err);
}

/* A key that nobody else uses, as hex. */
static bh_rc
make_key(char ret_key[2 * KEY_BYTES + 1], struct bh_err *err)
{
    uint8_t bytes[KEY_BYTES];
    struct bh_buf out;

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return bh_err_errno(err, "making an idempotency key");
    bh_buf_init_fixed(&out, ret_key, 2 * KEY_BYTES + 1);
    bh_buf_put_hex(&out, bytes, sizeof bytes);
    bh_buf_putc(&out, '\0');
    return BH_OK;
}

bh_rc
bh_cli_change(const struct bh_cli *cli, const char *what, struct bh_document *body,
              struct bh_json **ret_json, struct bh_err *err)
{
    struct bh_http_request request = { .accept = "application/json" };
    char key[2 * KEY_BYTES + 1], method[16];
    size_t length = strcspn(what, " ");
    bh_rc rc = make_key(key, err);

    if (rc != BH_OK)
        return rc;
    snprintf(method, sizeof method, "%.*s", (int)length, what);
    request.method = method;
    request.path = what + length + 1;
    if (body) {
        request.body = bh_buf_text(&body->text);
        request.body_length = body->text.length;
        request.content_type = body->yaml ? "application/yaml" : NULL;
        if (!request.body)
            return bh_err_set(err, BH_FULL, "the document is too large");
    }
    request.idempotency_key = cli->args->options[BH_OPT_KEY].text;
    if (!request.idempotency_key)
        request.idempotency_key = key;
    rc = bh_client_json(&cli->client, &request, ret_json, err);
    if (rc == BH_UNCERTAIN)
        rc = bh_client_json(&cli->client, &request, ret_json, err);
    return rc;
}

bh_rc
bh_cli_job_path(const char *job, const char *rest, char *ret_path, size_t size,
                struct bh_err *err)
{
    uint64_t id;
    bh_rc rc = bh_parse_u64(job, &id, err);

    if (rc != BH_OK) {
        bh_err_set(err, BH_INVALID, "\"%.80s\" is no job id", job);
        return bh_err_hint(err, "bulkhead ps lists the jobs");
    }
    snprintf(ret_path, size, "/v1/jobs/%" PRIu64 "%s", id, rest);
    return BH_OK;
}

bool
bh_cli_print_document(const struct bh_cli *cli, bh_json_value value, bh_rc *ret_rc,
                      struct bh_err *err)
{
    enum bh_cli_output how = bh_cli_output(cli);
    struct bh_buf out;

    if (how != BH_OUT_JSON && how != BH_OUT_YAML)
        return false;
    bh_buf_init(&out, BH_OUTPUT_MAX);
    if (how == BH_OUT_JSON)
        bh_output_json(&out, value);
    else
        bh_output_yaml(&out, value);
    *ret_rc = bh_output_write(&out, err);
    bh_buf_fini(&out);
    return true;
}

/* The page of `path` that begins after `cursor`. */
static bh_rc
fetch_page(const struct bh_cli *cli, const char *path, const char *cursor,
           struct bh_json **ret_json, struct bh_err *err)
{
    char full[PATH_BYTES_MAX];
    struct bh_buf out;

    bh_buf_init_fixed(&out, full, sizeof full - 1);
    bh_buf_puts(&out, path);
    if (cursor) {
        bh_buf_puts(&out, strchr(path, '?') ? "&after=" : "?after=");
        bh_http_put_encoded(&out, cursor);
    }
    if (out.overflow)
        return bh_err_set(err, BH_INVALID, "the request is too long");
    full[out.length] = '\0';
    return bh_cli_fetch(cli, full, ret_json, err);
}

/* The cursor of the next page as text, "" when this was the last. */
static void
next_cursor(bh_json_value page, char *ret_cursor, size_t size)
{
    bh_json_value next = bh_json_get(page, "next");

    if (bh_json_kind(next) == BH_JSON_INTEGER)
        snprintf(ret_cursor, size, "%" PRId64, bh_json_integer(next, 0));
    else
        snprintf(ret_cursor, size, "%s", bh_json_text(next, ""));
}

/* Print the items of one page; headers on the first only. */
static bh_rc
print_page(const struct bh_cli *cli, const struct bh_view *view, bh_json_value page, bool first,
           struct bh_err *err)
{
    struct bh_view_style style = {
        .wide = bh_cli_output(cli) == BH_OUT_WIDE,
        .headers = first && !bh_cli_flag(cli, BH_OPT_NO_HEADERS),
        .now_ns = bh_time_now(),
    };
    struct bh_view ids = { view->columns, 1 };
    struct bh_buf out;
    bh_rc rc;

    if (bh_cli_print_document(cli, page, &rc, err))
        return rc;
    if (bh_cli_flag(cli, BH_OPT_QUIET)) {
        style.headers = false;
        view = &ids;
    }
    bh_buf_init(&out, BH_OUTPUT_MAX);
    bh_view_table(&out, view, &style, bh_json_get(page, "items"));
    rc = bh_output_write(&out, err);
    bh_buf_fini(&out);
    return rc;
}

/* A page was printed and there are more. */
static void
say_rest(const struct bh_cli *cli, bh_json_value page, const char *cursor)
{
    uint64_t total = bh_json_number(bh_json_get(page, "total"), 0);

    if (bh_cli_flag(cli, BH_OPT_QUIET) || bh_cli_output(cli) > BH_OUT_WIDE)
        return;
    fprintf(stderr, "%zu", bh_json_count(bh_json_get(page, "items")));
    if (total > 0)
        fprintf(stderr, " of %" PRIu64, total);
    fprintf(stderr, " shown; --all shows all, --after %s the next\n", cursor);
}

bh_rc
bh_cli_list(const struct bh_cli *cli, const char *path, const struct bh_view *view,
            struct bh_err *err)
{
    char cursor[64] = "";
    bool first = true;

    do {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_rc rc = fetch_page(cli, path, first ? NULL : cursor, &json, err);

        if (rc == BH_OK)
            rc = print_page(cli, view, bh_json_root(json), first, err);
        if (rc != BH_OK)
            return rc;
        next_cursor(bh_json_root(json), cursor, sizeof cursor);
        if (*cursor && !bh_cli_flag(cli, BH_OPT_ALL)) {
            say_rest(cli, bh_json_root(json), cursor);
            break;
        }
        first = false;
    } while (*cursor);
    return BH_OK;
}

static bh_rc
read_all(int fd, struct bh_buf *out, struct bh_err *err)
{
    char bytes[8192];
    ssize_t got;

    while ((got = read(fd, bytes, sizeof bytes)) > 0)
        bh_buf_put(out, bytes, (size_t)got);
    if (got < 0)
        return bh_err_errno(err, "standard input");
    return out->overflow ? bh_err_set(err, BH_FULL, "standard input: too large") : BH_OK;
}

bh_rc
bh_cli_read_document(const char *path, struct bh_document *ret_document, struct bh_err *err)
{
    struct bh_buf *text = &ret_document->text;
    const char *begin;
    bh_rc rc;

    bh_buf_init(text, BH_JSON_BYTES_MAX + 1);
    rc = strcmp(path, "-") == 0 ? read_all(STDIN_FILENO, text, err)
                                : bh_file_read(path, BH_JSON_BYTES_MAX, text, err);
    if (rc != BH_OK)
        return rc;
    begin = bh_buf_text(text) ? bh_buf_text(text) : "";
    begin += strspn(begin, " \t\r\n");
    ret_document->yaml = *begin != '{' && *begin != '[';
    return BH_OK;
}

int
bh_cli_report(const struct bh_err *err)
{
    fprintf(stderr, "bulkhead: %s\n", err->msg);
    if (*err->hint)
        fprintf(stderr, "  %s\n", err->hint);
    return bh_rc_exit(err->rc);
}

bh_rc
bh_cli_beside(const char *relative, char *ret_path, size_t size, struct bh_err *err)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length < 0)
        return bh_err_errno(err, "/proc/self/exe");
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    if ((size_t)snprintf(ret_path, size, "%s/%s", self, relative) >= size)
        return bh_err_set(err, BH_RANGE, "%s/%s: too long a path", self, relative);
    return BH_OK;
}
