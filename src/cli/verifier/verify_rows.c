/* Rows of the tables, as an export or the API has them, held against the log. */
#include "cli/verifier/verify_rows.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/binding.h"
#include "audit/rows.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "base/slice.h"
#include "ports/crypto.h"
#include "ports/key_row.h"

struct bh_verify_rows {
    struct bh_arena *arena, *line;
    struct bh_claims *claims;
    uint32_t tables;
};

/* Of claims, for the largest logs; a row. */
static const size_t claims_bytes_max = (size_t)16 << 30;
enum { LINE_BYTES_MAX = 4 << 20 };

struct bh_verify_rows *
bh_verify_rows_new(void)
{
    struct bh_verify_rows *rows = calloc(1, sizeof *rows);

    BH_ASSERT(rows);
    rows->arena = bh_arena_new(claims_bytes_max);
    rows->line = bh_arena_new(LINE_BYTES_MAX);
    rows->claims = bh_claims_new(rows->arena, &bh_crypto_openssl);
    return rows;
}

void
bh_verify_rows_free(struct bh_verify_rows *rows)
{
    bh_arena_free(rows->arena);
    bh_arena_free(rows->line);
    free(rows);
}

struct bh_claims *
bh_verify_rows_claims(struct bh_verify_rows *rows)
{
    return rows->claims;
}

/* ---- lines ---- */

static const char *
rows_text_or_none(const char *text)
{
    return text ? text : "";
}

static bh_rc
rows_add_name(struct bh_verify_rows *rows, struct bh_slice line, struct bh_err *err)
{
    struct bh_row_name row = { 0 };
    struct bh_claimed_name name;
    bh_rc rc = bh_json_decode(line.text, line.length, &bh_row_name_fields, &row, rows->line, err);

    if (rc != BH_OK)
        return rc;
    name = (struct bh_claimed_name){ .kind = bh_binding_kind(row.kind),
                                     .id = row.id,
                                     .name = row.name ? row.name : BH_ERASED,
                                     .key = row.key,
                                     .erased_by = row.erased_by };
    return bh_claims_name(rows->claims, &name, err);
}

static bh_rc
rows_add_job(struct bh_verify_rows *rows, struct bh_slice line, struct bh_err *err)
{
    struct bh_row_job row = { 0 };
    struct bh_claimed_job job;
    bh_rc rc = bh_json_decode(line.text, line.length, &bh_row_job_fields, &row, rows->line, err);

    if (rc != BH_OK)
        return rc;
    job = (struct bh_claimed_job){
        .job = row.job,
        .tenant_id = row.tenant_id,
        .principal_id = row.principal_id,
        .count = row.count,
        .tenant = rows_text_or_none(row.tenant),
        .principal = rows_text_or_none(row.principal),
        .sku = rows_text_or_none(row.sku),
        .state = rows_text_or_none(row.state),
        .reason = rows_text_or_none(row.reason),
        .submitted_ns = row.submitted_ns,
        .started_ns = row.started_ns,
        .ended_ns = row.ended_ns,
        .exit_status = row.exit_status,
        .spec = row.spec,
        .priority = row.priority,
        .gang = row.gang,
        .checkpoint_signal = row.checkpoint_signal,
        .kind = rows_text_or_none(row.kind),
        .contract = rows_text_or_none(row.contract),
        .time_limit_ns = row.time_limit_ns,
        .deadline_ns = row.deadline_ns,
        .place = { row.lease, row.restarts, row.node, row.partitions, row.grade },
        .exported = true,
    };
    bh_claims_job(rows->claims, &job);
    return BH_OK;
}

/* Whether the row is written as an export writes it, and nothing else. */
static bool
rows_is_written_so(struct bh_slice line, const struct bh_row_text *row)
{
    struct bh_buf text;
    bool same;

    bh_buf_init(&text, line.length + 1);
    bh_json_encode(&text, &bh_row_text_fields, row);
    same = !text.overflow && text.length == line.length && memcmp(text.bytes, line.text, line.length) == 0;
    bh_buf_fini(&text);
    return same;
}

/* `memory` has room for the line. */
static bool
verify_rows_read_text(struct bh_slice line, char *memory, struct bh_row_text *ret)
{
    char digits[65];
    struct bh_slice value;

    if (!bh_slice_get(line, "digest", &value) || !bh_slice_str(value, digits, sizeof digits)
        || !bh_parse_hex(digits, ret->digest, sizeof ret->digest))
        return false;
    if (!bh_slice_get(line, "number", &value) || !bh_slice_u64(value, &ret->number))
        return false;
    if (bh_slice_get(line, "text", &value)) {
        if (!bh_slice_str(value, memory, line.length + 1))
            return false;
        ret->text = memory;
    }
    return rows_is_written_so(line, ret);
}

/* A text may be longer than any other document, so it is not decoded as one. */
static bh_rc
rows_add_text(struct bh_verify_rows *rows, struct bh_slice line, struct bh_err *err)
{
    char *memory = malloc(line.length + 1);
    struct bh_row_text row = { .text = NULL };
    uint8_t found[32];
    bool good;

    BH_ASSERT(memory);
    good = verify_rows_read_text(line, memory, &row);
    if (good) {
        const char *text = rows_text_or_none(row.text);

        bh_crypto_openssl.sha256(text, strlen(text), "", 0, found);
        bh_claims_text(rows->claims, &(struct bh_claimed_text){ row.digest, found, row.number, true });
    }
    free(memory);
    return good ? BH_OK : bh_err_set(err, BH_INVALID, "no text with its digest");
}

static bh_rc
rows_add_document(struct bh_verify_rows *rows, struct bh_slice line, struct bh_err *err)
{
    struct bh_row_document row = { 0 };
    struct bh_claimed_document document = { .kind = BH_CLAIMED_KINDS };
    bh_rc rc = bh_json_decode(line.text, line.length, &bh_row_document_fields, &row, rows->line, err);

    if (rc != BH_OK)
        return rc;
    for (uint32_t kind = 0; kind < BH_CLAIMED_KINDS; kind++)
        if (strcmp(bh_claimed_kinds[kind], row.kind) == 0)
            document.kind = kind;
    if (document.kind == BH_CLAIMED_KINDS)
        return bh_err_set(err, BH_INVALID, "no documents of the kind %s exist", row.kind);
    document.key = row.key;
    document.value = row.value;
    bh_claims_document(rows->claims, &document);
    return BH_OK;
}

static bh_rc
rows_add_key(struct bh_verify_rows *rows, struct bh_slice line, struct bh_err *err)
{
    struct bh_row_key row = { 0 };
    struct bh_claimed_key key;
    bh_rc rc = bh_json_decode(line.text, line.length, &bh_row_key_fields, &row, rows->line, err);

    if (rc != BH_OK)
        return rc;
    key = (struct bh_claimed_key){ .id = row.id,
                                   .facts = { row.kind, row.tenant_id, row.month, row.created_ns },
                                   .destroyed_ns = row.destroyed_ns,
                                   .empty = row.destroyed_ns > 0,
                                   .exported = true };
    return bh_claims_key(rows->claims, &key, err);
}

static const struct table {
    const char *name;
    enum bh_claims_table table;
    uint32_t how; /* BH_CLAIMS_ENDED, or 0 */
    bh_rc (*take)(struct bh_verify_rows *rows, struct bh_slice line, struct bh_err *err);
} tables[] = {
    { BH_ROWS_NAMES, BH_CLAIMS_NAMES, 0, rows_add_name },
    { BH_ROWS_JOBS, BH_CLAIMS_JOBS, BH_CLAIMS_ENDED, rows_add_job },
    { BH_ROWS_TEXTS, BH_CLAIMS_TEXTS, 0, rows_add_text },
    { BH_ROWS_DOCUMENTS, BH_CLAIMS_DOCUMENTS, BH_CLAIMS_ENDED, rows_add_document },
    { BH_ROWS_KEYS, BH_CLAIMS_KEYS, 0, rows_add_key },
};

static const struct table *
verify_rows_table(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(tables); i++)
        if (strcmp(tables[i].name, name) == 0)
            return &tables[i];
    return NULL;
}

bh_rc
bh_verify_rows_begin(struct bh_verify_rows *rows, const char *table, struct bh_err *err)
{
    const struct table *found = verify_rows_table(table);

    if (!found)
        return bh_err_set(err, BH_CONFLICT, "no rows of %.40s exist", table);
    rows->tables |= found->table | found->how;
    return BH_OK;
}

bh_rc
bh_verify_rows_add(struct bh_verify_rows *rows, const char *table, const char *line, size_t length,
                   struct bh_err *err)
{
    bh_rc rc = bh_verify_rows_begin(rows, table, err);

    if (rc != BH_OK)
        return rc;
    bh_arena_reset(rows->line);
    rc = verify_rows_table(table)->take(rows, (struct bh_slice){ line, length }, err);
    if (rc == BH_OK || rc == BH_FULL)
        return rc;
    bh_err_wrap(err, "%s: a row is malformed", table);
    return err->rc = BH_CONFLICT;
}

/* ---- files ---- */

/* BH_NOT_FOUND: there is no such file. */
static bh_rc
rows_add_file(struct bh_verify_rows *rows, const char *path, const struct table *table, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    FILE *in;
    bh_rc rc = bh_file_open(path, O_RDONLY, 0, &fd, err);

    if (rc != BH_OK)
        return rc;
    in = fdopen(fd, "r");
    if (!in)
        return bh_err_errno(err, "%s", path);
    (void)bh_fd_steal(&fd);
    rc = bh_verify_rows_begin(rows, table->name, err);
    while (rc == BH_OK && (length = getline(&line, &size, in)) > 0)
        rc = bh_verify_rows_add(rows, table->name, line, (size_t)length - (line[length - 1] == '\n'), err);
    free(line);
    if (rc == BH_OK && ferror(in))
        rc = bh_err_set(err, BH_IO, "%s cannot be read", path);
    fclose(in);
    return rc;
}

bh_rc
bh_verify_rows_folder(struct bh_verify_rows *rows, const char *folder, struct bh_verdict_text *verdict,
                      struct bh_err *err)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < BH_COUNT(tables); i++) {
        bh_rc rc;

        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, tables[i].name) >= sizeof path)
            return bh_err_set(err, BH_INVALID, "the folder's name is too long");
        rc = rows_add_file(rows, path, &tables[i], err);
        if (rc != BH_OK && (rc != BH_NOT_FOUND || bh_claims_need(rows->claims, tables[i].table)))
            return rc;
    }
    bh_verify_rows_end(rows, verdict);
    return BH_OK;
}

/* ---- the verdict ---- */

static void
verify_rows_put_count(struct bh_verdict_text *verdict, const char *name, const struct bh_claims_count *count)
{
    if (count->good + count->erased + count->unbound > 0)
        bh_buf_printf(&verdict->sentence, "\n%s: %" PRIu64 " as the log says", name, count->good);
    if (count->erased)
        bh_buf_printf(&verdict->sentence, ", %" PRIu64 " erased", count->erased);
    if (count->unbound)
        bh_buf_printf(&verdict->sentence, ", %" PRIu64 " not bound", count->unbound);
    bh_buf_printf(&verdict->members,
                  ",\"%s\":{\"erased\":%" PRIu64 ",\"good\":%" PRIu64 ",\"unbound\":%" PRIu64 "}", name,
                  count->erased, count->good, count->unbound);
}

/* The same as an array of a JSON object. */
static void
rows_put_array(struct bh_verdict_text *verdict, const char *name, const char *lines)
{
    bh_buf_printf(&verdict->members, ",\"%s\":[", name);
    for (const char *at = lines; *at;) {
        size_t length = strcspn(at, "\n");

        if (at > lines)
            bh_buf_putc(&verdict->members, ',');
        bh_json_put_strn(&verdict->members, at, length);
        at += length + (at[length] == '\n');
    }
    bh_buf_putc(&verdict->members, ']');
}

/* Lines, each indented below the verdict. */
static void
verify_rows_put_lines(struct bh_verdict_text *verdict, const char *lines)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");

        bh_buf_printf(&verdict->sentence, "\n  %.*s", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void
bh_verify_rows_put(struct bh_verdict_text *verdict, const struct bh_claims_result *result)
{
    verdict->differs = result->differences > 0;
    bh_buf_printf(&verdict->members, ",\"differences\":%" PRIu64, result->differences);
    rows_put_array(verdict, "differing", result->differing);
    rows_put_array(verdict, "erased", result->erased);
    verify_rows_put_count(verdict, BH_ROWS_JOBS, &result->jobs);
    verify_rows_put_count(verdict, BH_ROWS_NAMES, &result->names);
    verify_rows_put_lines(verdict, result->erased);
    verify_rows_put_count(verdict, BH_ROWS_TEXTS, &result->texts);
    verify_rows_put_count(verdict, BH_ROWS_DOCUMENTS, &result->documents);
    verify_rows_put_count(verdict, BH_ROWS_KEYS, &result->keys);
    verify_rows_put_count(verdict, "tokens", &result->tokens);
    if (result->bound_from != UINT64_MAX)
        bh_buf_printf(&verdict->sentence, "\nnames from before record %" PRIu64 " are bound only from there",
                      result->bound_from);
    if (result->rows_from != UINT64_MAX)
        bh_buf_printf(&verdict->sentence,
                      "\ncolumns of jobs that ended before record %" PRIu64 " are not all bound",
                      result->rows_from);
    if (!verdict->differs)
        return;
    bh_buf_printf(&verdict->sentence, "\nNOT what the log says: %" PRIu64 " rows", result->differences);
    verify_rows_put_lines(verdict, result->differing);
}

/* Rows that only a store has: the verdict says what it leaves open. */
static void
verify_rows_put_unchecked(struct bh_verdict_text *verdict)
{
    static const char *const unchecked[] = { "jobs that have not ended", "tokens", "the site file in force" };

    bh_buf_puts(&verdict->sentence, "\nnot compared:");
    bh_buf_puts(&verdict->members, ",\"unchecked\":[");
    for (size_t i = 0; i < BH_COUNT(unchecked); i++) {
        bh_buf_printf(&verdict->sentence, "%s %s", i ? "," : "", unchecked[i]);
        bh_buf_puts(&verdict->members, i ? "," : "");
        bh_json_put_str(&verdict->members, unchecked[i]);
    }
    bh_buf_putc(&verdict->members, ']');
    bh_buf_puts(&verdict->sentence,
                "; `bulkhead audit verify --store` on the daemon's machine compares these, too");
}

void
bh_verify_rows_end(struct bh_verify_rows *rows, struct bh_verdict_text *verdict)
{
    struct bh_claims_result result;

    if (rows->tables == 0)
        return; /* records alone were given */
    bh_claims_end(rows->claims, rows->tables, &result);
    bh_verify_rows_put(verdict, &result);
    verify_rows_put_unchecked(verdict);
}
