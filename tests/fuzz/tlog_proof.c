/* Proofs, paths of tiles and bundles of records from outside: what is read is written back
 * with the same bytes, and nothing is read past the end. */
#include <stdlib.h>
#include <string.h>

#include "audit/tile.h"
#include "audit/tlog_proof.h"
#include "base/assert.h"
#include "tests/fuzz/fuzz.h"

static void
parse_proof(const char *text, size_t length)
{
    struct bh_tlog_proof proof;
    struct bh_err err = { 0 };
    struct bh_buf out;
    bh_rc rc = bh_tlog_proof_parse(text, &proof, &err);

    if (rc != BH_OK) {
        BH_ASSERT(rc == BH_INVALID && err.rc == rc && err.msg[0]);
        return;
    }
    BH_ASSERT(proof.path.count <= BH_PROOF_HASHES_MAX);
    BH_ASSERT(proof.note >= text && proof.note <= text + strlen(text));
    bh_buf_init(&out, length + 64);
    bh_tlog_proof_format(&out, &proof);
    if (proof.extra_length > 0 || !strstr(text, "\nextra \n"))
        BH_ASSERT(bh_buf_text(&out) && strcmp(out.bytes, text) == 0);
    bh_buf_fini(&out);
}

static void
parse_path(const char *text)
{
    char again[BH_TILE_PATH_MAX];
    struct bh_tile tile;
    struct bh_buf out;

    if (!bh_tile_path_parse(text, &tile))
        return;
    BH_ASSERT(tile.width >= 1 && tile.width <= BH_TILE_WIDTH && tile.level < BH_TILE_LEVELS);
    bh_buf_init_fixed(&out, again, sizeof again);
    bh_tile_path_format(&out, &tile);
    BH_ASSERT(bh_buf_text(&out) && strcmp(again, text) == 0);
}

static void
walk_bundle(const char *bundle, size_t size)
{
    struct bh_buf out;
    size_t at = 0, length;

    bh_buf_init(&out, size + 1);
    while (bh_bundle_step(bundle + at, size - at, &length)) {
        BH_ASSERT(length <= size - at - 2);
        bh_bundle_put(&out, bundle + at + 2, (uint16_t)length);
        at += 2 + length;
    }
    BH_ASSERT(out.length == at && (at == 0 || memcmp(out.bytes, bundle, at) == 0));
    bh_buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_fuzz_text(data, size);

    parse_proof(text, size);
    parse_path(text);
    walk_bundle(text, size);
    free(text);
    return 0;
}
