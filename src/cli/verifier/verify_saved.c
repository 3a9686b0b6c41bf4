/* Checkpoints that were kept elsewhere, and who cosigned them. */
#include "cli/verifier/verify_saved.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "audit/checkpoint.h"
#include "base/assert.h"
#include "base/num.h"
#include "ports/crypto.h"

/* ---- witnesses ---- */

enum { WITNESSES_MAX = 64 };

struct witnesses {
    struct bh_note_key keys[WITNESSES_MAX];
    uint32_t count;
    uint64_t quorum;
};

static bh_rc
saved_parse_witnesses(char *text, struct witnesses *ret, struct bh_err *err)
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
                rc = bh_err_set(err, BH_INVALID, "the witness %s is listed twice", ret->keys[i].name);
        ret->count++;
    }
    return rc;
}

/* Without --witness no cosignature is needed. */
static bh_rc
saved_read_witnesses(const struct bh_verify_args *args, struct witnesses *ret, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = WITNESSES_MAX * BH_NODE_RECORD_VKEY_MAX };
    bh_rc rc;

    if (!args->witness)
        return BH_OK;
    rc = bh_verify_read(args->witness, WITNESSES_MAX * BH_NODE_RECORD_VKEY_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = saved_parse_witnesses(text.bytes, ret, err);
    ret->quorum = ret->count;
    if (rc == BH_OK && args->quorum_text)
        rc = bh_parse_u64(args->quorum_text, &ret->quorum, err);
    if (rc == BH_OK && (ret->quorum == 0 || ret->quorum > ret->count))
        rc = bh_err_set(err, BH_INVALID, "a quorum of %" PRIu64 " is more than the %" PRIu32 " witnesses",
                        ret->quorum, ret->count);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", args->witness);
}

/* A bad cosignature is worse than none. */
static bh_rc
saved_check_quorum(const struct witnesses *witnesses, const char *note, struct bh_err *err)
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

/* ---- checkpoints ---- */

struct bh_verify_saved {
    struct witnesses witnesses;
    struct bh_checkpoint checkpoints[BH_VERIFY_SAVED_MAX];
    uint32_t count;
};

static bh_rc
open_saved(const struct bh_verify_args *args, const struct bh_note_key *key,
           const struct witnesses *witnesses, struct bh_checkpoint *ret_saved, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_NODE_RECORD_BYTES_MAX + 1 };
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < args->kept_count; i++) {
        rc = bh_verify_read(args->kept[i], BH_NODE_RECORD_BYTES_MAX, &text, err);
        if (rc == BH_OK)
            rc = bh_checkpoint_open(&bh_crypto_openssl, key, text.bytes, &ret_saved[i], err);
        if (rc == BH_OK)
            rc = saved_check_quorum(witnesses, text.bytes, err);
        if (rc != BH_OK)
            bh_err_wrap(err, "kept checkpoint %s", args->kept[i]);
    }
    return rc;
}

bh_rc
bh_verify_saved_open(const struct bh_verify_args *args, const struct bh_note_key *key,
                     struct bh_verify_saved **ret_saved, struct bh_err *err)
{
    struct bh_verify_saved *saved = calloc(1, sizeof *saved);
    bh_rc rc;

    BH_ASSERT(saved);
    *ret_saved = saved;
    saved->count = args->kept_count;
    rc = saved_read_witnesses(args, &saved->witnesses, err);
    return rc == BH_OK ? open_saved(args, key, &saved->witnesses, saved->checkpoints, err) : rc;
}

void
bh_verify_saved_free(struct bh_verify_saved *saved)
{
    free(saved);
}

struct bh_trusted_checkpoints
bh_verify_saved_checkpoints(const struct bh_verify_saved *saved)
{
    return (struct bh_trusted_checkpoints){ saved->checkpoints, saved->count };
}

bh_rc
bh_verify_saved_check_own(const struct bh_verify_saved *saved, const char *path, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_NODE_RECORD_BYTES_MAX + 1 };
    bh_rc rc;

    if (saved->count > 0 || saved->witnesses.count == 0)
        return BH_OK;
    rc = bh_verify_read(path, BH_NODE_RECORD_BYTES_MAX, &text, err);
    if (rc == BH_OK && (rc = saved_check_quorum(&saved->witnesses, text.bytes, err)) != BH_OK)
        bh_err_wrap(err, "checkpoint");
    return rc;
}
