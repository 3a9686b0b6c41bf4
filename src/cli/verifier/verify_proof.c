#include "cli/verifier/verify_proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/merkle.h"
#include "audit/record.h"
#include "audit/tlog_proof.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/num.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* ---- inclusion ---- */

/* The record that is to be proved: of the file, or the one in the proof. */
static bh_rc
proof_find_record(const struct bh_verify_args *args, const struct bh_tlog_proof *proof, struct bh_buf *out,
                  struct bh_err *err)
{
    if (args->record)
        return bh_verify_read(args->record, BH_RECORD_BYTES_MAX + 2, out, err);
    if (proof->extra_length == 0)
        return bh_err_set(err, BH_INVALID, "the proof does not contain the record: give it with --record");
    if (!bh_base64_decode(out, proof->extra, proof->extra_length) || !bh_buf_text(out))
        return bh_err_set(err, BH_CONFLICT, "the proof's record cannot be read");
    return BH_OK;
}

static void
proof_put_proved(struct bh_verdict_text *verdict, const struct bh_tlog_proof *proof,
                 const struct bh_buf *record)
{
    bh_buf_printf(&verdict->sentence,
                  "record %" PRIu64 " is in the log of %" PRIu64 " records that %s signed:\n", proof->index,
                  proof->tree.size, proof->tree.origin);
    bh_buf_put(&verdict->sentence, record->bytes, record->length);
    bh_buf_printf(&verdict->members, ",\"index\":%" PRIu64 ",\"leaf\":", proof->index);
    bh_json_put_strn(&verdict->members, record->bytes, record->length);
    bh_buf_printf(&verdict->members, ",\"size\":%" PRIu64, proof->tree.size);
}

static bh_rc
verify_proof_check(const struct bh_note_key *key, struct bh_tlog_proof *proof, struct bh_buf *record,
                   struct bh_err *err)
{
    uint8_t hash[32];

    /* Editors end files with a newline; no record does. */
    if (record->length > 0 && record->bytes[record->length - 1] == '\n')
        record->length--;
    bh_merkle_leaf(crypto, record->bytes, record->length, hash);
    return bh_tlog_proof_check(crypto, key, proof, hash, err);
}

bh_rc
bh_verify_proof(const struct bh_verify_args *args, const struct bh_note_key *key,
                struct bh_verdict_text *verdict, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_TLOG_PROOF_BYTES_MAX + 1 };
    BH_AUTO(bh_buf_fini) struct bh_buf record = { .max = BH_RECORD_BYTES_MAX + 4 };
    struct bh_tlog_proof proof;
    bh_rc rc;

    rc = bh_verify_read(args->proof, BH_TLOG_PROOF_BYTES_MAX, &text, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_tlog_proof_parse(text.bytes, &proof, err);
    if (rc != BH_OK)
        return rc;
    rc = proof_find_record(args, &proof, &record, err);
    if (rc != BH_OK)
        return rc;
    rc = verify_proof_check(key, &proof, &record, err);
    if (rc == BH_OK)
        proof_put_proved(verdict, &proof, &record);
    return rc;
}

/* ---- consistency ---- */

static bh_rc
proof_open_head(const char *path, const struct bh_note_key *key, struct bh_tree_head *ret, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_NODE_RECORD_BYTES_MAX + 1 };
    struct bh_checkpoint checkpoint;
    bh_rc rc;

    rc = bh_verify_read(path, BH_NODE_RECORD_BYTES_MAX, &text, err);
    if (rc == BH_OK)
        rc = bh_checkpoint_open(crypto, key, text.bytes, &checkpoint, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", path);
    ret->size = checkpoint.size;
    memcpy(ret->root, checkpoint.root, sizeof ret->root);
    return BH_OK;
}

static bh_rc
proof_read_hashes(struct bh_proof *ret, struct bh_err *err)
{
    char line[64];

    *ret = (struct bh_proof){ 0 };
    while (fgets(line, sizeof line, stdin)) {
        struct bh_buf out;

        line[strcspn(line, "\n")] = '\0';
        if (ret->count == BH_PROOF_HASHES_MAX)
            return bh_err_set(err, BH_INVALID, "too many hashes on standard input");
        bh_buf_init_fixed(&out, ret->hashes[ret->count++], 32);
        if (!bh_base64_decode(&out, line, strlen(line)) || out.length != 32)
            return bh_err_set(err, BH_INVALID, "no hash on standard input: %.50s", line);
    }
    return BH_OK;
}

bh_rc
bh_verify_consistency(const struct bh_verify_args *args, const struct bh_note_key *key,
                      struct bh_verdict_text *verdict, struct bh_err *err)
{
    struct bh_tree_head heads[2];
    struct bh_proof proof;
    bh_rc rc = proof_open_head(args->old, key, &heads[0], err);

    if (rc != BH_OK)
        return rc;
    rc = proof_open_head(args->new, key, &heads[1], err);
    if (rc != BH_OK)
        return rc;
    if (heads[0].size > heads[1].size)
        return bh_err_set(err, BH_CONFLICT,
                          "the second checkpoint covers fewer records: %" PRIu64 " after %" PRIu64,
                          heads[1].size, heads[0].size);
    rc = proof_read_hashes(&proof, err);
    if (rc != BH_OK)
        return rc;
    if (bh_proof_check_consistency(crypto, &proof, heads) != BH_OK)
        return bh_err_set(err, BH_CONFLICT,
                          "the log of %" PRIu64 " records is not proved to begin with that of %" PRIu64,
                          heads[1].size, heads[0].size);
    bh_buf_printf(&verdict->sentence, "the log of %" PRIu64 " records begins with that of %" PRIu64,
                  heads[1].size, heads[0].size);
    bh_buf_printf(&verdict->members, ",\"new\":%" PRIu64 ",\"old\":%" PRIu64, heads[1].size, heads[0].size);
    return BH_OK;
}
