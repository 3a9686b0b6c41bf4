/* Notes, verifier keys and tree frontiers from outside.  Signatures cannot be guessed, so
 * the hash and the signature are stand-ins that let everything through: what is left is
 * the parsing, and a checkpoint that is opened is written back with the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "audit/checkpoint.h"
#include "audit/merkle.h"
#include "base/assert.h"
#include "ports/crypto.h"
#include "tests/fuzz/fuzz.h"

static void
weak_hash(const void *first, size_t first_length, const void *second, size_t second_length,
          uint8_t ret_digest[32])
{
    memset(ret_digest, 'A', 32);
}

static bh_rc
trust(const uint8_t public_key[32], const void *message, size_t length, const uint8_t signature[64],
      struct bh_err *err)
{
    if (signature[0] == 0xff)
        return bh_err_set(err, BH_DENIED, "the signature is not good");
    return BH_OK;
}

static const struct bh_crypto_ops crypto = { .name = "weak", .sha256 = weak_hash, .verify = trust };

static void
open_note(const char *text)
{
    struct bh_note_key key;
    struct bh_checkpoint checkpoint;
    struct bh_err err = { 0 };
    char body[512];
    struct bh_buf out;
    bh_rc rc;

    BH_ASSERT(bh_note_key_make(&crypto, "log.example/a",
                               (const uint8_t *)"0123456789abcdef"
                                                "0123456789abcdef",
                               &key, &err)
              == BH_OK);
    rc = bh_checkpoint_open(&crypto, &key, text, &checkpoint, &err);
    if (rc != BH_OK) {
        BH_ASSERT((rc == BH_INVALID || rc == BH_DENIED) && err.rc == rc && err.msg[0]);
        return;
    }
    bh_buf_init_fixed(&out, body, sizeof body);
    bh_checkpoint_format(&out, &checkpoint);
    BH_ASSERT(!out.overflow && strncmp(text, body, out.length) == 0);
}

static void
parse_key(const char *text)
{
    struct bh_note_key key;
    struct bh_err err = { 0 };
    char again[BH_NODE_RECORD_VKEY_MAX];
    struct bh_buf out;

    if (bh_note_key_parse(&crypto, text, &key, &err) != BH_OK)
        return;
    bh_buf_init_fixed(&out, again, sizeof again);
    bh_note_key_format(&out, &key);
    BH_ASSERT(bh_buf_text(&out) && strcmp(again, text) == 0);
}

static void
parse_frontier(const char *text)
{
    struct bh_merkle_frontier frontier;
    struct bh_err err = { 0 };
    char again[BH_MERKLE_TEXT_MAX];
    struct bh_buf out;

    if (bh_merkle_frontier_parse(text, &frontier, &err) != BH_OK)
        return;
    bh_buf_init_fixed(&out, again, sizeof again);
    bh_merkle_frontier_format(&out, &frontier);
    BH_ASSERT(bh_buf_text(&out) && strcmp(again, text) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_fuzz_text(data, size);

    open_note(text);
    parse_key(text);
    parse_frontier(text);
    free(text);
    return 0;
}
