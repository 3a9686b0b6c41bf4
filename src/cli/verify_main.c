/* bulkhead-audit: verifies an audit log, from a store or from lines on standard input.
 * A program of its own so that `bulkhead` itself need not load the cryptography. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/verify.h"
#include "base/fd.h"
#include "base/slice.h"
#include "ports/crypto.h"
#include "store/audit.h"
#include "store/sqlite.h"

enum { STATUS_BAD = 1, STATUS_USAGE = 2, KEY_FILE_MAX = 4096 };

static const char usage[] =
    "usage: bulkhead-audit --vkey FILE [--store FILE]\n"
    "Verifies an audit log: of a store, or of lines as `bulkhead audit tail --raw --all`\n"
    "prints them.  Status 0 when it is whole, 1 when not; `bulkhead audit verify` calls it.\n";

static bh_rc
read_key(const char *path, struct bh_note_key *ret_key, struct bh_err *err)
{
    char memory[KEY_FILE_MAX];
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, sizeof memory - 1, &text, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_putc(&text, '\0');
    memory[strcspn(memory, "\r\n")] = '\0';
    rc = bh_note_key_parse(&bh_crypto_openssl, memory, ret_key, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", path);
}

static bh_rc
verify_store(const char *path, struct bh_audit_verifier *verifier, struct bh_err *err)
{
    struct bh_store store;
    bh_rc rc = bh_store_sqlite_open(path, BH_STORE_READ, &bh_crypto_openssl, &store, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", path);
    rc = bh_store_audit(&store, verifier, err);
    store.ops->close(store.self);
    return rc;
}

/* A record, or a checkpoint as a JSON string. */
static bh_rc
take_line(struct bh_audit_verifier *verifier, const char *line, size_t length,
          struct bh_err *err)
{
    char note[BH_NOTE_BYTES_MAX + 1];

    if (*line != '"')
        return bh_audit_verifier_record(verifier, line, length, NULL, err);
    if (!bh_slice_str((struct bh_slice){ line, length }, note, sizeof note))
        return bh_err_set(err, BH_CONFLICT, "a checkpoint behind record %" PRIu64
                          " is unreadable", verifier->frontier.size);
    return bh_audit_verifier_checkpoint(verifier, note, err);
}

static bh_rc
verify_lines(FILE *in, struct bh_audit_verifier *verifier, struct bh_err *err)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (length = getline(&line, &size, in)) > 0) {
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        rc = take_line(verifier, line, (size_t)length, err);
    }
    free(line);
    if (rc == BH_OK && ferror(in))
        return bh_err_set(err, BH_IO, "standard input cannot be read");
    return rc == BH_OK ? bh_audit_verifier_end(verifier, 0, err) : rc;
}

static void
print_good(const struct bh_audit_verifier *verifier)
{
    printf("audit log is whole: %" PRIu64 " records, %" PRIu64 " signed checkpoints by %s\n",
           verifier->frontier.size, verifier->checkpoints, verifier->key.name);
    if (verifier->sealed < verifier->frontier.size)
        printf("no checkpoint covers the newest of them yet: %" PRIu64 "\n",
               verifier->frontier.size - verifier->sealed);
}

int
main(int argc, char **argv)
{
    const char *key_file = NULL, *store = NULL;
    struct bh_audit_verifier *verifier = malloc(sizeof *verifier);
    struct bh_note_key key;
    struct bh_err err = { .rc = BH_OK };
    bh_rc rc;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--vkey") == 0)
            key_file = argv[i + 1];
        else if (strcmp(argv[i], "--store") == 0)
            store = argv[i + 1];
    }
    if (!key_file || !verifier || argc % 2 == 0) {
        fputs(usage, stderr);
        return STATUS_USAGE;
    }
    rc = read_key(key_file, &key, &err);
    if (rc == BH_OK) {
        bh_audit_verifier_init(verifier, &bh_crypto_openssl, &key);
        rc = store ? verify_store(store, verifier, &err) : verify_lines(stdin, verifier, &err);
    }
    if (rc == BH_OK)
        print_good(verifier);
    else if (rc == BH_CONFLICT)
        printf("audit log is NOT whole: %s\n", err.msg);
    else
        fprintf(stderr, "bulkhead: %s\n", err.msg);
    free(verifier);
    return rc == BH_OK ? 0 : rc == BH_CONFLICT ? STATUS_BAD : bh_rc_exit(rc);
}
