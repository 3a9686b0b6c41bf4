#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/folder.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli/verify.h"
#include "ports/crypto.h"

static bh_rc
read_file(void *self, const char *path, struct bh_buf *out, struct bh_err *err)
{
    const char *folder = self;
    char full[PATH_MAX];

    if ((size_t)snprintf(full, sizeof full, "%s/%s", folder, path) >= sizeof full)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long");
    return bh_file_read(full, BH_FOLDER_FILE_MAX, out, err);
}

/* ---- witnesses ---- */

enum { WITNESSES_MAX = 64 };

struct witnesses {
    struct bh_note_key keys[WITNESSES_MAX];
    uint32_t count;
    uint64_t quorum;
};

static bh_rc
parse_witnesses(char *text, struct witnesses *ret, struct bh_err *err)
{
    bh_rc rc = BH_OK;
    char *rest;

    for (char *line = strtok_r(text, "\r\n", &rest); rc == BH_OK && line;
         line = strtok_r(NULL, "\r\n", &rest)) {
        if (ret->count == WITNESSES_MAX)
            return bh_err_set(err, BH_INVALID, "more than %d witnesses", WITNESSES_MAX);
        rc = bh_note_witness_parse(&bh_crypto_openssl, line, &ret->keys[ret->count], err);
        for (uint32_t i = 0; rc == BH_OK && i < ret->count; i++)
            if (memcmp(ret->keys[i].public_key, ret->keys[ret->count].public_key, 32) == 0)
                rc = bh_err_set(err, BH_INVALID, "the witness %s stands twice", ret->keys[i].name);
        ret->count++;
    }
    return rc;
}

/* Nothing is asked of anybody without --witness. */
static bh_rc
read_witnesses(const struct bh_verify_args *args, struct witnesses *ret, struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc;

    if (!args->witness)
        return BH_OK;
    bh_buf_init(&text, WITNESSES_MAX * BH_NOTE_VKEY_MAX);
    rc = bh_verify_read(args->witness, WITNESSES_MAX * BH_NOTE_VKEY_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = parse_witnesses(text.bytes, ret, err);
    bh_buf_fini(&text);
    ret->quorum = ret->count;
    if (rc == BH_OK && args->quorum_text)
        rc = bh_parse_u64(args->quorum_text, &ret->quorum, err);
    if (rc == BH_OK && (ret->quorum == 0 || ret->quorum > ret->count))
        rc = bh_err_set(err, BH_INVALID, "a quorum of %" PRIu64 " cannot be had of %" PRIu32
                        " witnesses", ret->quorum, ret->count);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", args->witness);
}

/* A bad cosignature is worse than none. */
static bh_rc
check_quorum(const struct witnesses *witnesses, const char *note, struct bh_err *err)
{
    uint64_t found = 0, time_s;

    for (uint32_t i = 0; i < witnesses->count; i++) {
        bh_rc rc = bh_note_cosigned(&bh_crypto_openssl, &witnesses->keys[i], note, &time_s, err);

        if (rc != BH_OK && rc != BH_NOT_FOUND)
            return rc;
        found += rc == BH_OK;
    }
    if (found >= witnesses->quorum)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "cosigned by %" PRIu64 " of %" PRIu64 " witnesses that it needs",
                      found, witnesses->quorum);
}

/* The folder's own checkpoint, where none was kept. */
static bh_rc
check_own(const struct bh_verify_args *args, const struct witnesses *witnesses, struct bh_err *err)
{
    char path[PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    if (args->kept_count > 0 || witnesses->count == 0)
        return BH_OK;
    if ((size_t)snprintf(path, sizeof path, "%s/checkpoint", args->folder) >= sizeof path)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long");
    bh_buf_init(&text, BH_NOTE_BYTES_MAX + 1);
    rc = bh_verify_read(path, BH_NOTE_BYTES_MAX, &text, err);
    if (rc == BH_OK && (rc = check_quorum(witnesses, text.bytes, err)) != BH_OK)
        bh_err_wrap(err, "checkpoint");
    bh_buf_fini(&text);
    return rc;
}

/* ---- the log ---- */

static bh_rc
open_kept(const struct bh_verify_args *args, const struct bh_note_key *key,
          const struct witnesses *witnesses, struct bh_checkpoint *ret_kept, struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc = BH_OK;

    bh_buf_init(&text, BH_NOTE_BYTES_MAX + 1);
    for (uint32_t i = 0; rc == BH_OK && i < args->kept_count; i++) {
        rc = bh_verify_read(args->kept[i], BH_NOTE_BYTES_MAX, &text, err);
        if (rc == BH_OK)
            rc = bh_checkpoint_open(&bh_crypto_openssl, key, text.bytes, &ret_kept[i], err);
        if (rc == BH_OK)
            rc = check_quorum(witnesses, text.bytes, err);
        if (rc != BH_OK)
            bh_err_wrap(err, "kept checkpoint %s", args->kept[i]);
    }
    bh_buf_fini(&text);
    return rc;
}

static void
put_whole(struct bh_verdict_text *verdict, const struct bh_audit_verifier *records,
          uint32_t kept)
{
    bh_buf_printf(&verdict->sentence,
                  "exported log is whole: %" PRIu64 " records, signed by %s",
                  records->frontier.size, records->key.name);
    if (records->hashes_to)
        bh_buf_printf(&verdict->sentence, ", the first %" PRIu64 " of them by their hashes alone",
                      records->hashes_to);
    if (kept)
        bh_buf_printf(&verdict->sentence, "; it continues %" PRIu32 " kept checkpoint%s", kept,
                      kept == 1 ? "" : "s");
    bh_verify_put_orders(verdict, &records->orders);
    bh_buf_printf(&verdict->members,
                  ",\"kept\":%" PRIu32 ",\"pruned\":%" PRIu64 ",\"records\":%" PRIu64, kept,
                  records->hashes_to, records->frontier.size);
}

bh_rc
bh_verify_export(const struct bh_verify_args *args, const struct bh_note_key *key,
                 struct bh_verdict_text *verdict, struct bh_err *err)
{
    struct bh_folder_verifier *verifier = calloc(1, sizeof *verifier);
    struct bh_checkpoint *kept = calloc(BH_VERIFY_KEPT_MAX, sizeof *kept);
    struct witnesses *witnesses = calloc(1, sizeof *witnesses);
    struct bh_buf bundle, tile;
    const struct bh_folder folder = { read_file, (void *)(uintptr_t)args->folder, &bundle,
                                      &tile };
    struct bh_verify_rows *rows = bh_verify_rows_new();
    const struct bh_kept keeps = { kept, args->kept_count };
    bh_rc rc;

    BH_ASSERT(verifier && kept && witnesses);
    bh_buf_init(&bundle, BH_FOLDER_FILE_MAX + 1);
    bh_buf_init(&tile, BH_FOLDER_FILE_MAX + 1);
    bh_audit_verifier_init(&verifier->records, &bh_crypto_openssl, key);
    verifier->records.claims = bh_verify_rows_claims(rows);
    rc = read_witnesses(args, witnesses, err);
    if (rc == BH_OK)
        rc = open_kept(args, key, witnesses, kept, err);
    if (rc == BH_OK)
        rc = bh_folder_verify(&folder, &keeps, verifier, err);
    if (rc == BH_OK)
        rc = check_own(args, witnesses, err);
    if (rc == BH_OK)
        put_whole(verdict, &verifier->records, args->kept_count);
    if (rc == BH_OK)
        rc = bh_verify_rows_folder(rows, args->folder, verdict, err);
    bh_verify_rows_free(rows);
    bh_buf_fini(&bundle);
    bh_buf_fini(&tile);
    free(witnesses);
    free(kept);
    free(verifier);
    return rc;
}
