#include "cli/command/cli.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/proc.h"
#include "base/time.h"
#include "cli/output/output.h"
#include "cli/output/table.h"

enum { PATH_BYTES_MAX = 4096, KEY_BYTES = 16, PAGE_ROWS_MAX = 1000 };

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
bh_cli_fetch(const struct bh_cli *cli, const char *path, struct bh_json **ret_json, struct bh_err *err)
{
    struct bh_http_request request = { .method = "GET", .path = path, .accept = "application/json" };

    return bh_client_json(&cli->client, &request, ret_json, err);
}

/* A random key, as hex. */
static bh_rc
cli_make_key(char ret_key[2 * KEY_BYTES + 1], struct bh_err *err)
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
bh_cli_change(const struct bh_cli *cli, const char *what, struct bh_document *body, struct bh_json **ret_json,
              struct bh_err *err)
{
    struct bh_http_request request = { .accept = "application/json" };
    char key[2 * KEY_BYTES + 1], method[16];
    size_t length = strcspn(what, " ");
    bh_rc rc = cli_make_key(key, err);

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
bh_cli_job_path(const char *job, const char *rest, char *ret_path, size_t size, struct bh_err *err)
{
    uint64_t id;
    bh_rc rc = bh_parse_u64(job, &id, err);

    if (rc != BH_OK) {
        bh_err_set(err, BH_INVALID, "\"%.80s\" is not a job id", job);
        return bh_err_hint(err, "bulkhead ps lists the jobs");
    }
    snprintf(ret_path, size, "/v1/jobs/%" PRIu64 "%s", id, rest);
    return BH_OK;
}

bool
bh_cli_print_document(const struct bh_cli *cli, bh_json_value value, bh_rc *ret_rc, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = BH_OUTPUT_MAX };
    enum bh_cli_output how = bh_cli_output(cli);

    if (how != BH_OUT_JSON && how != BH_OUT_YAML)
        return false;
    if (how == BH_OUT_JSON)
        bh_output_json(&out, value);
    else
        bh_output_yaml(&out, value);
    *ret_rc = bh_output_write(&out, err);
    return true;
}

/* ---- lists ---- */

/* A list on its way from the server to standard output. */
struct listing {
    const struct bh_cli *cli;
    const char *path;
    const struct bh_view *view;
    bool paged, document;
    struct bh_json *page;          /* the last one */
    uint64_t wanted, shown, total; /* wanted 0: the server's page */
    char cursor[64];               /* of the next page, "" after the last */
    struct bh_view ids;            /* -q: the first column alone */
    struct bh_view_style style;
    struct bh_table *table;
    struct bh_output_list list;
    struct bh_buf out;
};

static bh_rc
cli_fetch_page(const struct listing *l, struct bh_json **ret_json, struct bh_err *err)
{
    uint64_t left = l->wanted - l->shown;
    char full[PATH_BYTES_MAX];
    struct bh_buf path;

    bh_buf_init_fixed(&path, full, sizeof full);
    bh_buf_puts(&path, l->path);
    bh_buf_putc(&path, strchr(l->path, '?') ? '&' : '?');
    if (l->paged && l->wanted > 0)
        bh_buf_printf(&path, "limit=%" PRIu64 "&", left < PAGE_ROWS_MAX ? left : PAGE_ROWS_MAX);
    if (*l->cursor) {
        bh_buf_puts(&path, strstr(l->path, "order=newest") ? "before=" : "after=");
        bh_http_put_encoded(&path, l->cursor);
    } else if (path.length > 0) {
        path.length--; /* the ? or & that nothing follows */
    }
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "the request is too long");
    return bh_cli_fetch(l->cli, bh_buf_text(&path), ret_json, err);
}

static void
cli_put_page(struct listing *l, bh_json_value items)
{
    if (!l->document)
        bh_view_add(l->table, l->view, &l->style, items);
    for (size_t i = 0; l->document && i < bh_json_count(items); i++)
        bh_output_list_item(&l->list, bh_json_at(items, i));
}

/* What a page says about itself. */
static void
cli_add_page(struct listing *l, bh_json_value page)
{
    bh_json_value next = bh_json_get(page, "next");

    if (bh_json_kind(next) == BH_JSON_INTEGER)
        snprintf(l->cursor, sizeof l->cursor, "%" PRId64, bh_json_integer(next, 0));
    else
        snprintf(l->cursor, sizeof l->cursor, "%s", bh_json_text(next, ""));
    l->total = bh_json_number(bh_json_get(page, "total"), 0);
    l->shown += bh_json_count(bh_json_get(page, "items"));
}

static void
cli_print_rest(const struct listing *l)
{
    if (!*l->cursor || l->document || bh_cli_flag(l->cli, BH_OPT_QUIET))
        return;
    fprintf(stderr, "%" PRIu64, l->shown);
    if (l->total > 0)
        fprintf(stderr, " of %" PRIu64 " shown", l->total);
    else
        fputs(" shown, there may be more", stderr);
    fprintf(stderr, "; --all shows all, --after %s the next\n", l->cursor);
}

static bh_rc
cli_fetch_all(struct listing *l, struct bh_err *err)
{
    bh_rc rc;

    do {
        bh_json_free(l->page);
        l->page = NULL;
        rc = cli_fetch_page(l, &l->page, err);
        if (rc != BH_OK)
            return rc;
        cli_put_page(l, bh_json_get(bh_json_root(l->page), "items"));
        cli_add_page(l, bh_json_root(l->page));
    } while (*l->cursor && l->shown < l->wanted);
    return rc;
}

static void
cli_begin_listing(struct listing *l)
{
    bool quiet = bh_cli_flag(l->cli, BH_OPT_QUIET);
    enum bh_cli_output how = bh_cli_output(l->cli);

    l->document = how == BH_OUT_JSON || how == BH_OUT_YAML;
    l->style = (struct bh_view_style){
        .wide = how == BH_OUT_WIDE,
        .headers = !quiet && !bh_cli_flag(l->cli, BH_OPT_NO_HEADERS),
        .now_ns = bh_time_now(),
    };
    l->ids = (struct bh_view){ l->view->columns, 1 };
    if (quiet)
        l->view = &l->ids;
    bh_buf_init(&l->out, BH_OUTPUT_MAX);
    if (l->document)
        bh_output_list_begin(&l->list, &l->out, how == BH_OUT_YAML);
    l->table = bh_view_begin(l->view, &l->style);
}

bh_rc
bh_cli_list(const struct bh_cli *cli, const char *path, bool paged, const struct bh_view *view,
            struct bh_err *err)
{
    const struct bh_option_value *limit = &cli->args->options[BH_OPT_LIMIT];
    struct listing l = { .cli = cli, .path = path, .view = view, .paged = paged };
    bh_rc rc;

    if (bh_cli_flag(cli, BH_OPT_ALL))
        l.wanted = UINT64_MAX;
    else if (limit->given)
        l.wanted = limit->number;
    cli_begin_listing(&l);
    rc = cli_fetch_all(&l, err);
    if (rc == BH_OK && l.document)
        bh_output_list_end(&l.list, bh_json_root(l.page));
    else if (rc == BH_OK)
        bh_table_render(l.table, &l.out);
    if (rc == BH_OK)
        rc = bh_output_write(&l.out, err);
    if (rc == BH_OK)
        cli_print_rest(&l);
    bh_table_free(l.table);
    bh_json_free(l.page);
    bh_buf_fini(&l.out);
    return rc;
}

/* ---- files ---- */

static bh_rc
cli_read_all(int fd, struct bh_buf *out, struct bh_err *err)
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
    rc = strcmp(path, "-") == 0 ? cli_read_all(STDIN_FILENO, text, err)
                                : bh_file_read_given(path, BH_JSON_BYTES_MAX, text, err);
    if (rc != BH_OK)
        return rc;
    begin = bh_buf_text(text) ? bh_buf_text(text) : "";
    begin += strspn(begin, " \t\r\n");
    if (!*begin)
        return bh_err_set(err, BH_INVALID, "%s: it is empty",
                          strcmp(path, "-") == 0 ? "standard input" : path);
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
bh_cli_program_path(const char *relative, char *ret_path, size_t size, struct bh_err *err)
{
    char self[PATH_MAX];
    bh_rc rc = bh_proc_own_folder(self, sizeof self, err);

    if (rc != BH_OK)
        return rc;
    if ((size_t)snprintf(ret_path, size, "%s/%s", self, relative) >= size)
        return bh_err_set(err, BH_RANGE, "%s/%s: the path is too long", self, relative);
    return BH_OK;
}
