/* Commands for verifiers: search, proofs and exports. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/folder.h"
#include "audit/note.h"
#include "audit/tile.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli/audit/audit.h"
#include "cli/audit/audit_rows.h"
#include "cli/audit/audit_verifier.h"
#include "cli/output/output.h"
#include "cli/output/views.h"

enum { PATH_BYTES_MAX = 4096 };

/* ---- search ---- */

bh_rc
bh_cli_audit_search(struct bh_cli *cli, struct bh_err *err)
{
    static const struct {
        enum bh_option_id option;
        const char *parameter;
        /* clang-format off */
    } filters[] = {
        { BH_OPT_VERB, "verb" },     { BH_OPT_ACTOR, "actor" },       { BH_OPT_TENANT, "tenant" },
        { BH_OPT_OBJECT, "object" }, { BH_OPT_DECISION, "decision" }, { BH_OPT_SINCE, "since" },
        { BH_OPT_UNTIL, "until" },   { BH_OPT_ID, "text" },           { BH_OPT_AFTER, "after" },
    };
    /* clang-format on */
    char memory[PATH_BYTES_MAX], join = '?';
    struct bh_buf path;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, "/v1/records");
    for (size_t i = 0; i < BH_COUNT(filters); i++) {
        if (!cli->args->options[filters[i].option].given)
            continue;
        bh_buf_printf(&path, "%c%s=", join, filters[i].parameter);
        bh_http_put_encoded(&path, cli->args->options[filters[i].option].text);
        join = '&';
    }
    if (!bh_buf_text(&path))
        return bh_err_set(err, BH_INVALID, "audit search: an option is too long");
    return bh_cli_list(cli, bh_buf_text(&path), true, &bh_view_records, err);
}

/* ---- proofs ---- */

static bh_rc
audit_log_save(const char *path, const char *text, struct bh_err *err)
{
    bh_rc rc = bh_file_replace(path, text, strlen(text), 0644, err);

    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", path);
}

bh_rc
bh_cli_audit_prove(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *to = cli->args->options[BH_OPT_TO].text;
    const char *record = cli->args->options[BH_OPT_RECORD].text, *proof;
    uint64_t number;
    char path[64];
    bh_rc rc = bh_parse_u64(cli->args->arguments[0], &number, err);

    if (rc != BH_OK)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not the number of a record",
                          cli->args->arguments[0]);
    snprintf(path, sizeof path, "/v1/records/%" PRIu64 "/proof", number);
    rc = bh_cli_fetch(cli, path, &json, err);
    if (rc != BH_OK)
        return rc;
    proof = bh_json_text(bh_json_get(bh_json_root(json), "proof"), "");
    if (record)
        rc = audit_log_save(record, bh_json_text(bh_json_get(bh_json_root(json), "leaf"), ""), err);
    if (rc != BH_OK)
        return rc;
    if (to)
        return audit_log_save(to, proof, err);
    if (!bh_cli_print_document(cli, bh_json_root(json), &rc, err))
        fputs(proof, stdout);
    return BH_OK;
}

bh_rc
bh_cli_audit_check(struct bh_cli *cli, struct bh_err *err)
{
    const char *record = cli->args->options[BH_OPT_RECORD].text;
    char key[PATH_MAX];
    const char *const arguments[] = {
        "--vkey", key, "--check", cli->args->arguments[0], record ? "--record" : NULL, record, NULL
    };
    struct bh_verifier verifier;
    bh_rc rc = bh_verifier_key(cli, NULL, "", key, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_verifier_start(cli, arguments, &verifier, err);
    if (rc != BH_OK)
        return rc;
    return bh_verifier_end(cli, &verifier, BH_OK, err);
}

/* How many records a checkpoint says it covers; whether that is true is for
 * bulkhead-audit to find out. */
static bh_rc
log_read_size(const char *path, uint64_t *ret_size, struct bh_err *err)
{
    char memory[BH_NODE_RECORD_BYTES_MAX + 1], *line, *end;
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read_given(path, sizeof memory - 1, &text, err);
    if (rc != BH_OK)
        return rc;
    line = bh_buf_text(&text) ? strchr(memory, '\n') : NULL;
    end = line ? strchr(line + 1, '\n') : NULL;
    if (end)
        *end = '\0';
    if (!end || bh_parse_u64(line + 1, ret_size, err) != BH_OK)
        return bh_err_set(err, BH_INVALID, "%s: not a checkpoint", path);
    return BH_OK;
}

static bh_rc
log_feed_hashes(const struct bh_cli *cli, const uint64_t sizes[2], int fd, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    bh_json_value hashes;
    char path[96];
    bh_rc rc;

    snprintf(path, sizeof path, "/v1/consistency?old=%" PRIu64 "&new=%" PRIu64, sizes[0], sizes[1]);
    rc = bh_cli_fetch(cli, path, &json, err);
    hashes = json ? bh_json_get(bh_json_root(json), "hashes") : NULL;
    for (size_t i = 0; rc == BH_OK && i < bh_json_count(hashes); i++) {
        const char *hash = bh_json_text(bh_json_at(hashes, i), "");

        rc = bh_fd_write_all(fd, hash, strlen(hash), err);
        if (rc == BH_OK)
            rc = bh_fd_write_all(fd, "\n", 1, err);
    }
    return rc;
}

bh_rc
bh_cli_audit_consistency(struct bh_cli *cli, struct bh_err *err)
{
    const char *const *files = cli->args->arguments;
    char key[PATH_MAX];
    const char *const arguments[] = { "--vkey", key, "--consistency", files[0], files[1], NULL };
    struct bh_verifier verifier;
    uint64_t sizes[2];
    bh_rc rc = log_read_size(files[0], &sizes[0], err);

    if (rc != BH_OK)
        return rc;
    rc = log_read_size(files[1], &sizes[1], err);
    if (rc != BH_OK)
        return rc;
    rc = bh_verifier_key(cli, NULL, "", key, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_verifier_start(cli, arguments, &verifier, err);
    if (rc != BH_OK)
        return rc;
    if (sizes[0] <= sizes[1]) /* else bulkhead-audit says what is wrong */
        rc = log_feed_hashes(cli, sizes, verifier.fd, err);
    return bh_verifier_end(cli, &verifier, rc, err);
}

/* ---- export ---- */

static bool
log_append_bytes(void *self, const char *bytes, size_t length)
{
    bh_buf_put(self, bytes, length);
    return true;
}

/* Fetch /v1/log/`name` into the folder, unless it is there already. */
static bh_rc
log_fetch_file(const struct bh_cli *cli, const char *name, bool anew, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = BH_HTTP_BODY_MAX };
    const char *folder = cli->args->arguments[0];
    char url[PATH_BYTES_MAX], path[PATH_MAX];
    const struct bh_http_request request = { .method = "GET", .path = url };
    struct bh_exchange exchange = { .sink = log_append_bytes, .self = &body };
    bh_rc rc;

    snprintf(url, sizeof url, "/v1/log/%s", name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return bh_err_set(err, BH_INVALID, "%.60s...: the name is too long", folder);
    if (!anew && access(path, F_OK) == 0)
        return BH_OK;
    rc = bh_client_send(&cli->client, &request, &exchange, err);
    if (rc == BH_OK && body.overflow)
        rc = bh_err_set(err, BH_FULL, "the answer is too large");
    if (rc == BH_OK) {
        *strrchr(path, '/') = '\0';
        rc = bh_dir_make(path, 0755, err);
        path[strlen(path)] = '/';
    }
    if (rc == BH_OK)
        rc = bh_file_replace(path, body.bytes ? body.bytes : "", body.length, 0644, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", name);
}

static bh_rc
log_fetch_tiles(const struct bh_cli *cli, struct bh_tile tile, uint64_t size, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (tile.width = bh_tile_width(tile.level, tile.index, size)) > 0) {
        char name[BH_TILE_PATH_MAX];
        struct bh_buf text;

        bh_buf_init_fixed(&text, name, sizeof name);
        bh_tile_path_format(&text, &tile);
        rc = bh_buf_text(&text) ? log_fetch_file(cli, name, false, err)
                                : bh_err_set(err, BH_RANGE, "the log is too long");
        tile.index++;
    }
    return rc;
}

/* Of records below it the log has the hashes alone. */
static bh_rc
log_fetch_minimum(const struct bh_cli *cli, uint64_t *ret_minimum, struct bh_err *err)
{
    const struct bh_http_request request = { .method = "GET", .path = "/v1/log/minimum" };
    char memory[32];
    struct bh_buf body;
    struct bh_exchange exchange = { .sink = log_append_bytes, .self = &body };
    bh_rc rc;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    rc = bh_client_send(&cli->client, &request, &exchange, err);
    if (rc != BH_OK)
        return rc;
    if (bh_buf_text(&body))
        memory[strcspn(memory, "\n")] = '\0';
    if (!bh_buf_text(&body) || bh_parse_u64(memory, ret_minimum, err) != BH_OK)
        return bh_err_set(err, BH_IO, "the log's minimum index cannot be read");
    return BH_OK;
}

/* Everything that the checkpoint speaks of, and is not pruned. */
static bh_rc
fetch_log(const struct bh_cli *cli, struct bh_err *err)
{
    char path[PATH_MAX];
    uint64_t size = 0, minimum = 0;
    bh_rc rc = log_fetch_minimum(cli, &minimum, err);

    if (rc != BH_OK)
        return rc;
    rc = log_fetch_file(cli, "checkpoint", true, err);
    if (rc != BH_OK)
        return rc;

    snprintf(path, sizeof path, "%s/checkpoint", cli->args->arguments[0]);
    rc = log_read_size(path, &size, err);
    if (rc != BH_OK)
        return rc;
    rc = log_fetch_tiles(cli, (struct bh_tile){ .entries = true, .index = minimum / BH_TILE_WIDTH }, size,
                         err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t level = 0; level < BH_TILE_LEVELS; level++) {
        rc = log_fetch_tiles(cli, (struct bh_tile){ .level = level }, size, err);
        if (rc != BH_OK)
            return rc;
    }
    return bh_audit_rows_save(cli, cli->args->arguments[0], size, err);
}

/* The key in the folder is for others; the verdict depends on the given one. */
static bh_rc
log_copy_key(const char *from, const char *folder, struct bh_err *err)
{
    char memory[(BH_NODE_RECORD_KEYS_MAX + 1) * BH_NODE_RECORD_VKEY_MAX], path[PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read_given(from, sizeof memory, &text, err);
    snprintf(path, sizeof path, "%s/vkey", folder);
    return rc == BH_OK ? bh_file_replace(path, text.bytes, text.length, 0644, err) : rc;
}

bh_rc
bh_cli_audit_export(struct bh_cli *cli, struct bh_err *err)
{
    const char *folder = cli->args->arguments[0];
    char key[PATH_MAX];
    const char *const arguments[] = { "--vkey", key, "--export", folder, NULL };
    struct bh_verifier verifier;
    bh_rc rc = bh_verifier_key(cli, NULL, "", key, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_dir_make(folder, 0755, err);
    if (rc != BH_OK)
        return rc;
    rc = fetch_log(cli, err);
    if (rc != BH_OK)
        return rc;
    rc = log_copy_key(key, folder, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_verifier_start(cli, arguments, &verifier, err);
    if (rc != BH_OK)
        return rc;
    return bh_verifier_end(cli, &verifier, BH_OK, err);
}

/* ---- one record of an export ---- */

/* The bundle that has it. */
static bh_rc
log_read_bundle(const char *folder, uint64_t number, struct bh_buf *out, struct bh_err *err)
{
    struct bh_tile tile = { .entries = true, .index = number / BH_TILE_WIDTH };
    char path[PATH_MAX], name[BH_TILE_PATH_MAX];
    struct bh_buf text;
    uint64_t size = 0;
    bh_rc rc;

    if ((size_t)snprintf(path, sizeof path, "%s/checkpoint", folder) >= sizeof path)
        return bh_err_set(err, BH_INVALID, "%.60s...: the name is too long", folder);
    rc = log_read_size(path, &size, err);
    if (rc != BH_OK)
        return rc;
    if (number >= size)
        return bh_err_set(err, BH_NOT_FOUND, "the exported log has %" PRIu64 " records, numbered from 0",
                          size);
    tile.width = bh_tile_width(0, tile.index, size);
    bh_buf_init_fixed(&text, name, sizeof name);
    bh_tile_path_format(&text, &tile);
    if (!bh_buf_text(&text) || (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return bh_err_set(err, BH_INVALID, "%.60s...: the name is too long", folder);
    return bh_file_read(path, BH_FOLDER_FILE_MAX, out, err);
}

bh_rc
bh_audit_exported(const char *folder, uint64_t number, struct bh_json **ret_json, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf bundle = { .max = BH_FOLDER_FILE_MAX + 1 };
    size_t at = 0, length = 0;
    bh_rc rc;

    rc = log_read_bundle(folder, number, &bundle, err);
    for (uint64_t i = 0; rc == BH_OK && i <= number % BH_TILE_WIDTH; i++) {
        at += i ? 2 + length : 0;
        if (!bh_bundle_step(bundle.bytes + at, bundle.length - at, &length))
            rc = bh_err_set(err, BH_CONFLICT, "the bundle of record %" PRIu64 " is too short", number);
    }
    return rc == BH_OK ? bh_json_parse(bundle.bytes + at + 2, length, ret_json, err) : rc;
}
