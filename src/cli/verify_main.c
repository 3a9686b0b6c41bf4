/* bulkhead-audit: verifies an audit log, from a store or from lines on standard input.
 * A program of its own so that `bulkhead` itself need not load the cryptography. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/verify.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "base/slice.h"
#include "cli/verify.h"
#include "ports/crypto.h"
#include "store/audit.h"
#include "store/compare.h"
#include "store/sqlite.h"

enum { STATUS_BAD = 1, STATUS_USAGE = 2, KEY_FILE_MAX = 4096 };

static const char usage[] =
    "usage: bulkhead-audit --vkey FILE [--json] [WHAT]\n"
    "  --store FILE             verify a store\n"
    "  --export DIR             verify an exported log\n"
    "  --check PROOF [--record FILE]\n"
    "                           check a proof that a record is in the log\n"
    "  --consistency OLD NEW    check that one checkpoint continues another, by the hashes\n"
    "                           on standard input\n"
    "  (nothing)                verify lines as `bulkhead audit tail --raw --all` prints them\n"
    "A log, whatever it comes from, with [--kept FILE]... [--witness FILE [--quorum N]]: that it\n"
    "continues those checkpoints, and that witnesses cosigned them, or else an export's own.\n"
    "Status 0 when it is good, 1 when not; `bulkhead audit` calls it.\n";

bh_rc
bh_verify_read(const char *path, size_t max, struct bh_buf *out, struct bh_err *err)
{
    bh_rc rc;

    bh_buf_clear(out);
    rc = bh_file_read(path, max, out, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_buf_text(out) || memchr(out->bytes, 0, out->length))
        return bh_err_set(err, BH_CONFLICT, "%s: it is no text", path);
    return BH_OK;
}

static bh_rc
read_keys(const char *path, struct bh_note_key ret_keys[BH_NODE_RECORD_KEYS_MAX], struct bh_err *err)
{
    char memory[KEY_FILE_MAX];
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, sizeof memory - 1, &text, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_putc(&text, '\0');
    rc = bh_note_keys_parse(&bh_crypto_openssl, memory, ret_keys, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", path);
}

/* What a damaged store is, whoever finds it: status 1.  What cannot be read now is none. */
static bh_rc
judge_store(const char *path, bh_rc rc, struct bh_err *err)
{
    bool garbled = rc == BH_INVALID || rc == BH_RANGE || rc == BH_NOT_FOUND || rc == BH_FULL;

    if (rc == BH_OK)
        return rc;
    bh_err_wrap(err, "%s", path);
    if (bh_store_sqlite_is_damage(err) || (garbled && err->sys_kind == BH_SYS_NONE))
        err->rc = BH_CONFLICT;
    return err->rc;
}

/* All of one moment, should bulkheadd go on writing meanwhile. */
static bh_rc
verify_store(const char *path, struct bh_audit_verifier *verifier,
             struct bh_claims_result *ret_result, struct bh_err *err)
{
    struct bh_store store;
    bh_rc rc = bh_store_sqlite_open(path, BH_STORE_SNAPSHOT, &bh_crypto_openssl, &store, err);

    if (rc != BH_OK)
        return judge_store(path, rc, err);
    rc = bh_store_audit(&store, verifier, err);
    if (rc == BH_OK)
        rc = bh_store_compare(&store, &bh_crypto_openssl, verifier->claims, ret_result, err);
    if (rc != BH_CONFLICT && rc != BH_DENIED) {
        if (rc == BH_OK) /* last: what is read above is named by its record */
            rc = bh_store_sqlite_check(&store, err);
        rc = judge_store(path, rc, err);
    }
    store.ops->close(store.self);
    return rc;
}

/* A record that was pruned, by the hash that is left of it. */
static bh_rc
add_hash(struct bh_audit_verifier *verifier, const char *line, size_t length,
          struct bh_err *err)
{
    uint8_t hash[32];

    if (length != 64 || !bh_parse_hex(line, hash, sizeof hash))
        return bh_err_set(err, BH_CONFLICT, "record %" PRIu64 " is neither a record nor a hash",
                          verifier->frontier.size);
    return bh_audit_verifier_hash(verifier, hash, err);
}

/* "names {...}": a row of a table. */
static bh_rc
verify_add_row(struct bh_verify_rows *rows, const char *line, size_t length, struct bh_err *err)
{
    size_t word = strcspn(line, " ");
    char table[16];

    snprintf(table, sizeof table, "%.*s", (int)(word < sizeof table ? word : 0), line);
    return bh_verify_rows_add(rows, table, line + word + 1, length - word - 1, err);
}

/* A record, a checkpoint as a JSON string, the hash of a record that was pruned, or a row. */
static bh_rc
verify_add_line(struct bh_audit_verifier *verifier, struct bh_verify_rows *rows, const char *line,
          size_t length, struct bh_err *err)
{
    char note[BH_NODE_RECORD_BYTES_MAX + 1];

    if (length > 0 && strcspn(line, " ") < length && *line != '{' && *line != '"')
        return verify_add_row(rows, line, length, err);
    if (*line != '"' && *line != '{')
        return add_hash(verifier, line, length, err);
    if (*line == '{')
        return bh_audit_verifier_record(verifier, line, length, NULL, err);
    if (!bh_slice_str((struct bh_slice){ line, length }, note, sizeof note))
        return bh_err_set(err, BH_CONFLICT, "a checkpoint behind record %" PRIu64
                          " is unreadable", verifier->frontier.size);
    return bh_audit_verifier_checkpoint(verifier, note, err);
}

static bh_rc
verify_lines(FILE *in, struct bh_audit_verifier *verifier, struct bh_verify_rows *rows,
             struct bh_err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (length = getline(&line, &size, in)) > 0) {
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        rc = verify_add_line(verifier, rows, line, (size_t)length, err);
    }
    free(line);
    if (rc == BH_OK && ferror(in))
        return bh_err_set(err, BH_IO, "standard input cannot be read");
    return rc == BH_OK ? bh_audit_verifier_end(verifier, 0, err) : rc;
}

void
bh_verify_put_orders(struct bh_verdict_text *verdict, const struct bh_audit_orders *orders)
{
    if (orders->open)
        bh_buf_printf(&verdict->sentence,
                      "\norders without an outcome: %" PRIu32 ", the oldest of record %" PRIu64
                      "; unknown after a start: %" PRIu32,
                      orders->open, orders->oldest_open, orders->unknown);
    bh_buf_printf(&verdict->members,
                  ",\"orders_abandoned\":%" PRIu32 ",\"orders_open\":%" PRIu32
                  ",\"orders_unknown\":%" PRIu32,
                  orders->abandoned, orders->open, orders->unknown);
}

static void
put_good(struct bh_verdict_text *verdict, const struct bh_audit_verifier *verifier)
{
    uint64_t size = verifier->frontier.size, open = size - verifier->sealed;

    bh_buf_printf(&verdict->sentence,
                  "audit log is whole: %" PRIu64 " records, %" PRIu64 " signed checkpoints by %s",
                  size, verifier->checkpoints, verifier->key.name);
    bh_verify_put_saved(verdict, verifier->kept.count);
    if (verifier->hashes_to)
        bh_buf_printf(&verdict->sentence, "\npruned, with their hashes kept: those below %" PRIu64,
                      verifier->pruned_to);
    if (open)
        bh_buf_printf(&verdict->sentence,
                      "\nno checkpoint covers the newest of them yet: %" PRIu64, open);
    bh_verify_put_orders(verdict, &verifier->orders);
    bh_buf_printf(&verdict->members,
                  ",\"checkpoints\":%" PRIu64 ",\"pruned\":%" PRIu64 ",\"records\":%" PRIu64
                  ",\"unsigned\":%" PRIu64,
                  verifier->checkpoints, verifier->hashes_to, size, open);
}

static bh_rc
verify_log(const struct bh_verify_args *args, const struct bh_note_key *key,
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
        rc = args->store ? verify_store(args->store, verifier, &result, err)
                         : verify_lines(stdin, verifier, rows, err);
    if (rc == BH_OK && verifier->frontier.size > 0 && verifier->checkpoints == 0)
        rc = bh_err_set(err, BH_CONFLICT, "no checkpoint: none of its records is signed");
    if (rc == BH_OK)
        put_good(verdict, verifier);
    if (rc == BH_OK && args->store)
        bh_verify_rows_put(verdict, &result);
    else if (rc == BH_OK)
        bh_verify_rows_end(rows, verdict);
    bh_verify_saved_free(saved);
    bh_verify_rows_free(rows);
    free(verifier);
    return rc;
}

/* ---- the command line ---- */

/* Where an option's value goes. */
static const char **
verify_target_of(struct bh_verify_args *args, const char *option)
{
    const struct {
        const char *name, **target;
    } options[] = {
        { "--vkey", &args->key },    { "--store", &args->store }, { "--export", &args->folder },
        { "--check", &args->proof }, { "--record", &args->record },
        { "--consistency", &args->old }, { "--witness", &args->witness },
        { "--quorum", &args->quorum_text },
    };

    for (size_t i = 0; i < BH_COUNT(options); i++)
        if (strcmp(options[i].name, option) == 0)
            return options[i].target;
    if (strcmp(option, "--kept") == 0 && args->kept_count < BH_VERIFY_SAVED_MAX)
        return &args->kept[args->kept_count++];
    return NULL;
}

static bool
verify_parse(int argc, char **argv, struct bh_verify_args *ret)
{
    for (int i = 1; i < argc; i++) {
        const char **target;

        if (strcmp(argv[i], "--json") == 0) {
            ret->json = true;
            continue;
        }
        target = verify_target_of(ret, argv[i]);
        if (!target || i + 1 == argc)
            return false;
        *target = argv[++i];
        if (target == &ret->old) {
            if (i + 1 == argc)
                return false;
            ret->new = argv[++i];
        }
    }
    return ret->key && !!ret->store + !!ret->folder + !!ret->proof + !!ret->old <= 1;
}

/* ---- the verdict ---- */

static int
verify_print(const struct bh_verify_args *args, const struct bh_verdict_text *verdict,
    const struct bh_err *err)
{
    bool bad = err->rc == BH_CONFLICT || err->rc == BH_DENIED;
    struct bh_buf quoted;

    if (err->rc != BH_OK && !bad) {
        fprintf(stderr, "bulkhead: %s\n", err->msg);
        return bh_rc_exit(err->rc);
    }
    bh_buf_init(&quoted, 1 << 20);
    bh_json_put_str(&quoted, err->msg);
    if (args->json && bad)
        printf("{\"good\":false,\"message\":%s}\n", bh_buf_text(&quoted));
    else if (args->json)
        printf("{\"good\":%s%.*s}\n", verdict->differs ? "false" : "true",
               (int)verdict->members.length, verdict->members.bytes);
    else if (bad)
        printf("%s: %s\n", args->proof || args->old ? "NOT proved" : "audit log is NOT whole",
               err->msg);
    else
        printf("%.*s\n", (int)verdict->sentence.length, verdict->sentence.bytes);
    bh_buf_fini(&quoted);
    return bad || verdict->differs ? STATUS_BAD : 0;
}

int
main(int argc, char **argv)
{
    struct bh_verify_args args = { 0 };
    struct bh_verdict_text verdict = { .differs = false };
    struct bh_note_key keys[BH_NODE_RECORD_KEYS_MAX]; /* the newest leads to the others */
    struct bh_err err = { .rc = BH_OK };
    int status;
    bh_rc rc;

    if (!verify_parse(argc, argv, &args)) {
        fputs(usage, stderr);
        return STATUS_USAGE;
    }
    bh_buf_init(&verdict.sentence, 1 << 20);
    bh_buf_init(&verdict.members, 1 << 20);
    rc = read_keys(args.key, keys, &err);
    if (rc == BH_OK)
        rc = args.folder ? bh_verify_export(&args, keys, &verdict, &err)
             : args.proof ? bh_verify_proof(&args, keys, &verdict, &err)
             : args.old   ? bh_verify_consistency(&args, keys, &verdict, &err)
                          : verify_log(&args, keys, &verdict, &err);
    err.rc = rc;
    status = verify_print(&args, &verdict, &err);
    bh_buf_fini(&verdict.sentence);
    bh_buf_fini(&verdict.members);
    return status;
}
