#include "cli/verifier/verify_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/verify.h"
#include "base/assert.h"
#include "base/num.h"
#include "base/slice.h"
#include "cli/verifier/verify_rows.h"
#include "cli/verifier/verify_saved.h"
#include "ports/crypto.h"
#include "store/audit.h"
#include "store/compare.h"
#include "store/sqlite.h"

/* What a damaged store is, wherever it is found: status 1.  What cannot be read now is none. */
static bh_rc
log_judge_store(const char *path, bh_rc rc, struct bh_err *err)
{
    bool garbled = rc == BH_INVALID || rc == BH_RANGE || rc == BH_NOT_FOUND || rc == BH_FULL;

    if (rc == BH_OK)
        return rc;
    bh_err_wrap(err, "%s", path);
    if (bh_store_sqlite_is_damage(err) || (garbled && err->sys_kind == BH_SYS_NONE))
        err->rc = BH_CONFLICT;
    return err->rc;
}

/* All of one moment, even if bulkheadd writes meanwhile. */
static bh_rc
log_read_store(const char *path, struct bh_audit_verifier *verifier, struct bh_claims_result *ret_result,
               struct bh_err *err)
{
    struct bh_store store;
    bh_rc rc = bh_store_sqlite_open(path, BH_STORE_SNAPSHOT, &bh_crypto_openssl, &store, err);

    if (rc != BH_OK)
        return log_judge_store(path, rc, err);
    rc = bh_store_audit(&store, verifier, err);
    if (rc == BH_OK)
        rc = bh_store_compare(&store, &bh_crypto_openssl, verifier->claims, ret_result, err);
    if (rc != BH_CONFLICT && rc != BH_DENIED) {
        if (rc == BH_OK) /* last: what is read above is named by its record */
            rc = bh_store_sqlite_check(&store, err);
        rc = log_judge_store(path, rc, err);
    }
    store.ops->close(store.self);
    return rc;
}

/* A record that was pruned, by the hash that is left of it. */
static bh_rc
log_add_hash(struct bh_audit_verifier *verifier, const char *line, size_t length, struct bh_err *err)
{
    uint8_t hash[32];

    if (length != 64 || !bh_parse_hex(line, hash, sizeof hash))
        return bh_err_set(err, BH_CONFLICT, "record %" PRIu64 " is neither a record nor a hash",
                          verifier->frontier.size);
    return bh_audit_verifier_hash(verifier, hash, err);
}

/* "names {...}": a row of a table; without a row, that the table was given: it may have none. */
static bh_rc
log_add_row(struct bh_verify_rows *rows, const char *line, size_t length, struct bh_err *err)
{
    size_t word = strcspn(line, " ");
    char table[16];

    snprintf(table, sizeof table, "%.*s", (int)(word < sizeof table ? word : 0), line);
    if (word + 1 == length)
        return bh_verify_rows_begin(rows, table, err);
    return bh_verify_rows_add(rows, table, line + word + 1, length - word - 1, err);
}

/* A record, a checkpoint as a JSON string, the hash of a record that was pruned, or a row. */
static bh_rc
log_add_line(struct bh_audit_verifier *verifier, struct bh_verify_rows *rows, const char *line, size_t length,
             struct bh_err *err)
{
    char note[BH_NODE_RECORD_BYTES_MAX + 1];

    if (length > 0 && strcspn(line, " ") < length && *line != '{' && *line != '"')
        return log_add_row(rows, line, length, err);
    if (*line != '"' && *line != '{')
        return log_add_hash(verifier, line, length, err);
    if (*line == '{')
        return bh_audit_verifier_record(verifier, line, length, NULL, err);
    if (!bh_slice_str((struct bh_slice){ line, length }, note, sizeof note))
        return bh_err_set(err, BH_CONFLICT, "a checkpoint after record %" PRIu64 " cannot be read",
                          verifier->frontier.size);
    return bh_audit_verifier_checkpoint(verifier, note, err);
}

static bh_rc
log_read_lines(FILE *in, struct bh_audit_verifier *verifier, struct bh_verify_rows *rows, struct bh_err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (length = getline(&line, &size, in)) > 0) {
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        rc = log_add_line(verifier, rows, line, (size_t)length, err);
    }
    free(line);
    if (rc != BH_OK)
        return rc;
    if (ferror(in))
        return bh_err_set(err, BH_IO, "standard input cannot be read");
    return bh_audit_verifier_end(verifier, 0, err);
}

static void
log_put_good(struct bh_verdict_text *verdict, const struct bh_audit_verifier *verifier)
{
    uint64_t size = verifier->frontier.size, open = size - verifier->sealed;

    bh_buf_printf(&verdict->sentence,
                  "audit log is whole: %" PRIu64 " records, %" PRIu64 " signed checkpoints by %s", size,
                  verifier->checkpoints, verifier->key.name);
    bh_verify_put_saved(verdict, verifier->kept.count);
    if (verifier->hashes_to)
        bh_buf_printf(&verdict->sentence, "\npruned, with their hashes kept: those below %" PRIu64,
                      verifier->pruned_to);
    if (open)
        bh_buf_printf(&verdict->sentence, "\nno checkpoint covers the newest of them yet: %" PRIu64, open);
    bh_verify_put_orders(verdict, &verifier->orders);
    bh_buf_printf(&verdict->members,
                  ",\"checkpoints\":%" PRIu64 ",\"pruned\":%" PRIu64 ",\"records\":%" PRIu64
                  ",\"unsigned\":%" PRIu64,
                  verifier->checkpoints, verifier->hashes_to, size, open);
}

bh_rc
bh_verify_log(const struct bh_verify_args *args, const struct bh_note_key *key,
              struct bh_verdict_text *verdict, struct bh_err *err)
{
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    struct bh_verify_rows *rows = bh_verify_rows_new();
    struct bh_claims_result result;
    struct bh_verify_saved *saved;
    bh_rc rc;

    BH_ASSERT(verifier);
    bh_audit_verifier_init(verifier, &bh_crypto_openssl, key);
    verifier->claims = bh_verify_rows_claims(rows);
    rc = bh_verify_saved_open(args, key, &saved, err);
    verifier->kept = bh_verify_saved_checkpoints(saved);
    if (rc == BH_OK)
        rc = args->store ? log_read_store(args->store, verifier, &result, err)
                         : log_read_lines(stdin, verifier, rows, err);
    if (rc == BH_OK && verifier->frontier.size > 0 && verifier->checkpoints == 0)
        rc = bh_err_set(err, BH_CONFLICT, "no checkpoint: none of its records is signed");
    if (rc == BH_OK)
        log_put_good(verdict, verifier);
    if (rc == BH_OK && args->store)
        bh_verify_rows_put(verdict, &result);
    else if (rc == BH_OK)
        bh_verify_rows_end(rows, verdict);
    bh_verify_saved_free(saved);
    bh_verify_rows_free(rows);
    free(verifier);
    return rc;
}
