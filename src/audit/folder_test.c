/* A log of 300 records, exported; every change to it is found.
 *
 *   folder_test        every bit of the checkpoint is flipped, every 97th of the rest
 *   folder_test all    every bit of every file (soak)
 *   folder_test print  print the files for tools/verify_audit_test.py: the key, then
 *                      lines of a path and the bytes in base 64; `pruned`: one record says
 *                      that the first 256 were pruned */
#include "audit/folder.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/test.h"
#include "ports/crypto.h"

enum { RECORDS = 300, FILES_MAX = 8, BYTES_MAX = 1 << 17, SAMPLED_BITS = 97 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;
static const uint8_t private_key[32] = { 21 };
static const char origin[] = "bulkhead.example/audit/site-a";
static size_t bit_step = SAMPLED_BITS;

struct file {
    char path[BH_TILE_PATH_MAX], bytes[BYTES_MAX];
    size_t length;
    bool missing;
};

static struct file files[FILES_MAX];
static size_t file_count;
static struct bh_note_key key;
static struct bh_checkpoint whole, earlier; /* of all records, and of the first 290 */
static struct bh_err err;
static struct bh_folder_verifier verifier;
static char bundle_memory[BYTES_MAX], tile_memory[BYTES_MAX];
static uint64_t minimum; /* record 270 says that those below it were pruned; 0: it does not */

/* ---- making it ---- */

static struct file *
add_file(const struct bh_tile *tile)
{
    struct file *file = &files[file_count++];
    struct bh_buf path;

    assert_true(file_count <= FILES_MAX);
    bh_buf_init_fixed(&path, file->path, sizeof file->path);
    if (tile)
        bh_tile_path_format(&path, tile);
    else
        bh_buf_puts(&path, "checkpoint");
    assert_non_null(bh_buf_text(&path));
    return file;
}

static bh_rc
put_tile(void *self, const struct bh_tile *tile, const uint8_t (*hashes)[32], struct bh_err *e)
{
    struct file *file = add_file(tile);

    file->length = 32 * (size_t)tile->width;
    memcpy(file->bytes, hashes, file->length);
    return BH_OK;
}

static size_t
write_record(uint64_t seq, char leaf[512])
{
    struct bh_record record = { .actor = { 7, BH_VIA_PEER, 1000, "" },
                                .boot = 1,
                                .dec = { true, 3 },
                                .obj = { "job", seq },
                                .phase = BH_PHASE_INTENT,
                                .req = { 1, (uint8_t)seq },
                                .res = "ok",
                                .seq = seq,
                                .tenant = 12,
                                .ts_ns = UINT64_C(1795170000000000000) + seq,
                                .verb = "job.submit" };
    struct bh_buf out;

    if (seq % 3 == 0)
        record.orders = "-c";
    if (seq % 3 == 2) {
        record.phase = BH_PHASE_OUTCOME;
        record.order = (seq - 2) << 12 | 1;
        record.verb = "node.carved";
    }
    if (seq % 25 == 4)
        record.sealed_json = "[{\"c\":\"QUI=\",\"h\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\","
                             "\"k\":\"7\",\"n\":\"BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\"}]";
    if (seq == 270 && minimum) {
        record.verb = BH_RECORD_PRUNE;
        record.obj = (struct bh_record_object){ BH_RECORD_LOG, minimum };
    }
    bh_buf_init_fixed(&out, leaf, 512);
    bh_record_encode(&out, &record);
    assert_false(out.overflow);
    return out.length;
}

static struct bh_checkpoint
head_of(const struct bh_merkle_frontier *frontier)
{
    struct bh_checkpoint checkpoint = { .size = frontier->size };

    memcpy(checkpoint.origin, origin, sizeof origin);
    bh_merkle_frontier_root(frontier, crypto, checkpoint.root);
    return checkpoint;
}

static void
folder_put_checkpoint(const struct bh_checkpoint *checkpoint)
{
    struct file *file = add_file(NULL);
    struct bh_buf out;

    bh_buf_init_fixed(&out, file->bytes, sizeof file->bytes);
    assert_int_equal(bh_checkpoint_sign(crypto, checkpoint, private_key, &out, &err), BH_OK);
    file->length = out.length;
}

/* The export of a log of `count` records. */
static void
folder_make_folder(uint64_t count)
{
    static struct bh_tiler tiler;
    const struct bh_tile_sink sink = { put_tile, NULL };
    struct bh_merkle_frontier frontier = { 0 };
    struct file *bundle = NULL;

    memset(files, 0, sizeof files);
    file_count = 0;
    tiler = (struct bh_tiler){ 0 };
    for (uint64_t seq = 0; seq < count; seq++) {
        const struct bh_tile tile = { true, 0, seq / 256, bh_tile_width(0, seq / 256, count) };
        char leaf[512];
        size_t length = write_record(seq, leaf);
        struct bh_buf out;
        uint8_t hash[32];

        if (seq % 256 == 0)
            bundle = add_file(&tile);
        bh_buf_init_fixed(&out, bundle->bytes, sizeof bundle->bytes);
        out.length = bundle->length;
        bh_bundle_put(&out, leaf, (uint16_t)length);
        bundle->length = out.length;
        bh_merkle_leaf(crypto, leaf, length, hash);
        bh_merkle_frontier_add(&frontier, crypto, hash);
        assert_int_equal(bh_tiler_add(&tiler, crypto, hash, &sink, &err), BH_OK);
        if (seq + 1 == 290)
            earlier = head_of(&frontier);
    }
    assert_int_equal(bh_tiler_end(&tiler, &sink, &err), BH_OK);
    whole = head_of(&frontier);
    folder_put_checkpoint(&whole);
}

static int
folder_make_key(void **state)
{
    uint8_t public_key[32];

    assert_int_equal(crypto->public_of(private_key, public_key, &err), BH_OK);
    assert_int_equal(bh_note_key_make(crypto, origin, public_key, &key, &err), BH_OK);
    return 0;
}

/* ---- verifying it ---- */

static bh_rc
read_bytes(void *self, const char *path, struct bh_buf *out, struct bh_err *e)
{
    for (size_t i = 0; i < file_count; i++) {
        if (strcmp(files[i].path, path) != 0 || files[i].missing)
            continue;
        bh_buf_put(out, files[i].bytes, files[i].length);
        return BH_OK;
    }
    return bh_err_set(e, BH_NOT_FOUND, "no such file");
}

static bh_rc
folder_verify(const struct bh_checkpoint *kept)
{
    struct bh_buf bundle, tile;
    const struct bh_folder folder = { read_bytes, NULL, &bundle, &tile };
    const struct bh_trusted_checkpoints keeps = { kept, kept ? 1 : 0 };

    bh_buf_init_fixed(&bundle, bundle_memory, sizeof bundle_memory);
    bh_buf_init_fixed(&tile, tile_memory, sizeof tile_memory);
    bh_audit_verifier_init(&verifier.records, crypto, &key);
    verifier.records.kept = keeps;
    verifier.tiler.size = 0;
    return bh_folder_verify(&folder, &verifier, &err);
}

static void
good_as_it_is(void **state)
{
    folder_make_folder(RECORDS);
    BH_CHECK_EQ("files", file_count, 6);
    BH_CHECK_EQ("whole", folder_verify(NULL), BH_OK);
    BH_CHECK_EQ("records", verifier.records.frontier.size, RECORDS);
    BH_CHECK_EQ("kept", folder_verify(&earlier), BH_OK);
    BH_CHECK_EQ("kept, of all", folder_verify(&whole), BH_OK);
    earlier.root[31] ^= 1;
    BH_CHECK_EQ("kept of another log", folder_verify(&earlier), BH_CONFLICT);
    folder_make_folder(0);
    BH_CHECK_EQ("empty", folder_verify(NULL), BH_OK);
    BH_CHECK_DONE();
}

static void
every_file_missing(void **state)
{
    folder_make_folder(RECORDS);
    for (size_t i = 0; i < file_count; i++) {
        files[i].missing = true;
        BH_CHECK_EQ(files[i].path, folder_verify(NULL), BH_NOT_FOUND);
        BH_CHECK(files[i].path, strstr(err.msg, files[i].path));
        files[i].missing = false;
    }
    BH_CHECK_DONE();
}

static void
every_file_shorter_and_longer(void **state)
{
    folder_make_folder(RECORDS);
    for (size_t i = 0; i < file_count; i++) {
        files[i].length--;
        BH_CHECK_EQ(files[i].path, folder_verify(NULL), BH_CONFLICT);
        files[i].length += 2;
        BH_CHECK_EQ(files[i].path, folder_verify(NULL), BH_CONFLICT);
        files[i].length--;
    }
    BH_CHECK_EQ("as before", folder_verify(NULL), BH_OK);
    BH_CHECK_DONE();
}

static void
folder_every_bit(void **state)
{
    folder_make_folder(RECORDS);
    for (size_t i = 0; i < file_count; i++) {
        size_t step = strcmp(files[i].path, "checkpoint") == 0 ? 1 : bit_step;

        for (size_t bit = 0; bit < 8 * files[i].length; bit += step) {
            files[i].bytes[bit / 8] = (char)(files[i].bytes[bit / 8] ^ (1 << bit % 8));
            if (folder_verify(NULL) != BH_CONFLICT)
                fail_msg("%s: bit %zu flipped and not found", files[i].path, bit);
            files[i].bytes[bit / 8] = (char)(files[i].bytes[bit / 8] ^ (1 << bit % 8));
        }
    }
    assert_int_equal(folder_verify(NULL), BH_OK);
}

/* Of a bundle that was pruned, by a record that says so, its hashes are enough; outcomes
 * behind it answer orders in it. */
static void
pruned_bundle(void **state)
{
    struct file *bundle = NULL, *tile = NULL;

    minimum = 256;
    folder_make_folder(RECORDS);
    for (size_t i = 0; i < file_count; i++) {
        bundle = strcmp(files[i].path, "tile/entries/000") == 0 ? &files[i] : bundle;
        tile = strcmp(files[i].path, "tile/0/000") == 0 ? &files[i] : tile;
    }
    assert_true(bundle && tile);
    BH_CHECK_EQ("all is there", folder_verify(NULL), BH_OK);
    bundle->missing = true;
    BH_CHECK_EQ("pruned", folder_verify(&earlier), BH_OK);
    BH_CHECK_EQ("records", verifier.records.frontier.size, RECORDS);
    tile->bytes[77] ^= 1;
    BH_CHECK_EQ("a hash was changed", folder_verify(NULL), BH_CONFLICT);
    tile->bytes[77] ^= 1;
    tile->length -= 32;
    BH_CHECK_EQ("a hash is missing", folder_verify(NULL), BH_CONFLICT);
    tile->missing = true;
    BH_CHECK_EQ("its tile is missing, too", folder_verify(NULL), BH_NOT_FOUND);
    minimum = 255;
    folder_make_folder(RECORDS);
    bundle->missing = true;
    BH_CHECK_EQ("not all of it was pruned", folder_verify(NULL), BH_NOT_FOUND);
    BH_CHECK("says which", strstr(err.msg, "tile/entries/000"));
    minimum = 271;
    folder_make_folder(RECORDS);
    BH_CHECK_EQ("no record prunes itself", folder_verify(NULL), BH_CONFLICT);
    minimum = 0;
    BH_CHECK_DONE();
}

/* A log that was cut and signed again, by who has the key, is whole in itself; only the
 * checkpoint that was kept gives it away, wherever it was cut. */
static void
every_tail_cut(void **state)
{
    struct bh_checkpoint kept;

    folder_make_folder(RECORDS);
    kept = whole;
    for (uint64_t count = 0; count < RECORDS; count++) {
        folder_make_folder(count);
        BH_CHECK_EQ("nobody kept one", folder_verify(NULL), BH_OK);
        BH_CHECK_EQ("kept", folder_verify(&kept), BH_CONFLICT);
    }
    BH_CHECK_DONE();
}

static void
print_folder(void)
{
    static char memory[2 * BYTES_MAX];
    struct bh_buf text;

    (void)folder_make_key(NULL);
    folder_make_folder(RECORDS);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_note_key_format(&text, &key);
    puts(bh_buf_text(&text));
    for (size_t i = 0; i < file_count; i++) {
        bh_buf_clear(&text);
        bh_base64_encode(&text, files[i].bytes, files[i].length);
        printf("%s %s\n", files[i].path, bh_buf_text(&text));
    }
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_as_it_is),
        cmocka_unit_test(every_file_missing),
        cmocka_unit_test(every_file_shorter_and_longer),
        cmocka_unit_test(folder_every_bit),
        cmocka_unit_test(pruned_bundle),
        cmocka_unit_test(every_tail_cut),
    };

    if (argc == 2 && strcmp(argv[1], "all") == 0)
        bit_step = 1;
    if (argc == 2 && strcmp(argv[1], "pruned") == 0)
        minimum = 256;
    if (argc == 2 && (strcmp(argv[1], "print") == 0 || minimum)) {
        print_folder();
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, folder_make_key, NULL);
}
