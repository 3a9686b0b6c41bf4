/* What is signed, and what never: each row is a question after another log of 100 records
 * was signed. */
#include "signer/signer.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "base/fd.h"
#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;
static const char name[] = "log.example/a";

enum { SIGNED = 100 };

struct fixture {
    char folder[32];
    struct bh_signer signer;
    struct bh_signer_request question;
    struct bh_signer_reply answer;
    struct bh_err err;
};

static void
signer_hash_of(uint64_t leaf, uint8_t ret_hash[32])
{
    bh_merkle_leaf(crypto, &leaf, sizeof leaf, ret_hash);
}

/* Leaves from `from` to `to` behind those before; `other` is the first that is not as it was. */
static struct bh_signer_request
question_of(uint64_t from, uint64_t to, uint64_t other)
{
    struct bh_signer_request q = { .version = BH_SIGNER_VERSION, .verb = BH_SIGNER_SIGN, .number = 7 };
    struct bh_merkle_frontier tree = { 0 };
    uint8_t hash[32];

    memcpy(q.name, name, sizeof name);
    bh_range_begin(&q.range, from);
    for (uint64_t i = 0; i < to; i++) {
        signer_hash_of(i >= other ? ~i : i, hash);
        bh_merkle_frontier_add(&tree, crypto, hash);
        if (i >= from)
            bh_range_add(&q.range, crypto, hash);
    }
    bh_merkle_frontier_root(&tree, crypto, q.root);
    return q;
}

static bh_rc
signer_ask(struct fixture *f, const struct bh_signer_request *question)
{
    bh_signer_reply(&f->signer, question, &f->answer);
    assert_int_equal(f->answer.version, BH_SIGNER_VERSION);
    assert_int_equal(f->answer.number, question->number);
    return (bh_rc)f->answer.rc;
}

static void
open_signer(struct fixture *f)
{
    assert_int_equal(bh_signer_open(&f->signer, crypto, f->folder, &f->err), BH_OK);
}

static void
signer_setup(struct fixture *f)
{
    *f = (struct fixture){ .folder = "/tmp/bh-signer-XXXXXX" };
    assert_non_null(mkdtemp(f->folder));
    open_signer(f);
    f->question = question_of(0, SIGNED, UINT64_MAX);
    assert_int_equal(signer_ask(f, &f->question), BH_OK);
    assert_int_equal(f->answer.size, SIGNED);
}

static void
signer_teardown(struct fixture *f)
{
    DIR *folder = opendir(f->folder);
    struct dirent *entry;

    bh_signer_close(&f->signer);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    assert_int_equal(rmdir(f->folder), 0);
}

static void
signer_put_file(const struct fixture *f, const char *text)
{
    char path[64];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/audit.signed", f->folder);
    unlink(path);
    if (text)
        assert_int_equal(bh_file_replace(path, text, strlen(text), 0600, &err), BH_OK);
}

static void
signs_what_continues(void **state)
{
    struct fixture f;
    struct bh_checkpoint checkpoint;
    struct bh_note_key keys[BH_NODE_RECORD_KEYS_MAX];
    struct bh_signer_request hello = { .version = BH_SIGNER_VERSION, .verb = BH_SIGNER_HELLO };

    signer_setup(&f);
    memcpy(hello.name, name, sizeof name);
    assert_int_equal(signer_ask(&f, &hello), BH_OK);
    BH_CHECK_EQ("marked", f.answer.has_watermark, 1);
    BH_CHECK_EQ("size", f.answer.size, SIGNED);
    assert_int_equal(bh_note_keys_parse(crypto, f.answer.vkeys, keys, &f.err), BH_OK);
    for (uint64_t size = SIGNED; size < SIGNED + 40; size += size % 7) {
        f.question = question_of(f.answer.size, size, UINT64_MAX);
        BH_CHECK_EQ("signs", signer_ask(&f, &f.question), BH_OK);
        BH_CHECK_EQ("opens", bh_checkpoint_open(crypto, keys, f.answer.note, &checkpoint, &f.err), BH_OK);
        BH_CHECK_EQ("size", checkpoint.size, size);
        BH_CHECK("root", memcmp(checkpoint.root, f.question.root, 32) == 0);
    }
    BH_CHECK_EQ("no question", signer_ask(&f, &(struct bh_signer_request){ 0 }), BH_INVALID);
    BH_CHECK_DONE();
    signer_teardown(&f);
}

/* Each refusal leaves the mark as it was, also for a signer that starts again. */
static void
signer_refuses(void **state)
{
    static const struct {
        const char *name;
        uint64_t from, to, other;
        bh_rc rc;
    } rows[] = {
        { "shorter", SIGNED, SIGNED - 1, UINT64_MAX, BH_CONFLICT },
        { "empty", 0, 0, UINT64_MAX, BH_CONFLICT },
        { "the last record changed", SIGNED, SIGNED, SIGNED - 1, BH_CONFLICT },
        { "the first record changed", SIGNED, SIGNED + 1, 0, BH_CONFLICT },
        { "rewritten in the middle", SIGNED, SIGNED + 500, 50, BH_CONFLICT },
        { "another log from its beginning", 0, SIGNED + 5, 0, BH_INVALID },
        { "a gap", SIGNED + 1, SIGNED + 9, UINT64_MAX, BH_INVALID },
    };
    struct fixture f;

    signer_setup(&f);
    for (size_t i = 0; i < 2 * BH_COUNT(rows); i++) {
        size_t n = i % BH_COUNT(rows);

        if (i == BH_COUNT(rows)) {
            bh_signer_close(&f.signer);
            open_signer(&f);
        }
        f.question = question_of(rows[n].from, rows[n].to, rows[n].other);
        BH_CHECK_EQ(rows[n].name, signer_ask(&f, &f.question), rows[n].rc);
        BH_CHECK_EQ(rows[n].name, f.answer.size, SIGNED);
        BH_CHECK_STR(rows[n].name, f.answer.note, "");
        BH_CHECK(rows[n].name, f.answer.why[0]);
        f.question.verb = BH_SIGNER_CHECK;
        BH_CHECK_EQ(rows[n].name, signer_ask(&f, &f.question), rows[n].rc);
    }
    f.question = question_of(SIGNED, SIGNED + 1, UINT64_MAX);
    BH_CHECK_EQ("goes on", signer_ask(&f, &f.question), BH_OK);
    BH_CHECK_DONE();
    signer_teardown(&f);
}

/* To check is not to sign. */
static void
checking_signs_nothing(void **state)
{
    struct fixture f;

    signer_setup(&f);
    f.question = question_of(SIGNED, SIGNED + 3, UINT64_MAX);
    f.question.verb = BH_SIGNER_CHECK;
    BH_CHECK_EQ("good", signer_ask(&f, &f.question), BH_OK);
    BH_CHECK_EQ("size", f.answer.size, SIGNED);
    BH_CHECK_STR("note", f.answer.note, "");
    BH_CHECK_DONE();
    signer_teardown(&f);
}

/* Both sign until the old one is retired; who knows only one of them can verify. */
static void
another_key(void **state)
{
    static const char *const when[] = { "before", "both", "both, started again", "after" };
    struct bh_signer_request hello = { .version = BH_SIGNER_VERSION };
    struct bh_note_key old[BH_NODE_RECORD_KEYS_MAX], both[BH_NODE_RECORD_KEYS_MAX];
    struct fixture f;

    signer_setup(&f);
    memcpy(hello.name, name, sizeof name);
    assert_int_equal(signer_ask(&f, &hello), BH_OK);
    assert_int_equal(bh_note_keys_parse(crypto, f.answer.vkeys, old, &f.err), BH_OK);
    BH_CHECK_EQ("nothing to retire", bh_signer_retire(&f.signer, &f.err), BH_NOT_FOUND);
    for (uint64_t i = 0; i < BH_COUNT(when); i++) {
        struct bh_note_key fresh;
        struct bh_checkpoint checkpoint;

        if (i == 1)
            assert_int_equal(bh_signer_rotate(&f.signer, &f.err), BH_OK);
        if (i == 2) {
            BH_CHECK_EQ("not twice", bh_signer_rotate(&f.signer, &f.err), BH_CONFLICT);
            bh_signer_close(&f.signer);
            open_signer(&f);
        }
        assert_int_equal(signer_ask(&f, &hello), BH_OK);
        if (i < 3)
            assert_int_equal(bh_note_keys_parse(crypto, f.answer.vkeys, both, &f.err), BH_OK);
        if (i == 3)
            assert_int_equal(bh_signer_retire(&f.signer, &f.err), BH_OK);
        fresh = both[0];
        fresh.older = NULL;
        f.question = question_of(SIGNED + i, SIGNED + i + 1, UINT64_MAX);
        assert_int_equal(signer_ask(&f, &f.question), BH_OK);
        BH_CHECK_EQ(when[i], bh_checkpoint_open(crypto, old, f.answer.note, &checkpoint, &f.err),
                    i < 3 ? BH_OK : BH_DENIED);
        BH_CHECK_EQ(when[i], bh_checkpoint_open(crypto, &fresh, f.answer.note, &checkpoint, &f.err), BH_OK);
        BH_CHECK_EQ(when[i], memcmp(old[0].id, fresh.id, 4) == 0, i == 0);
    }
    BH_CHECK_DONE();
    signer_teardown(&f);
}

static void
a_missing_or_damaged_watermark(void **state)
{
    struct bh_signer_request hello = { .version = BH_SIGNER_VERSION };
    struct fixture f;

    signer_setup(&f);
    memcpy(hello.name, name, sizeof name);
    signer_put_file(&f, "7 abc\n");
    BH_CHECK_EQ("damaged", signer_ask(&f, &hello), BH_INVALID);
    BH_CHECK_EQ("damaged", signer_ask(&f, &f.question), BH_INVALID);
    signer_put_file(&f, NULL);
    BH_CHECK_EQ("missing", signer_ask(&f, &hello), BH_OK);
    BH_CHECK_EQ("missing", f.answer.has_watermark, 0);
    signer_put_file(&f, "0\n");
    BH_CHECK_EQ("as an administrator may decide", signer_ask(&f, &f.question), BH_OK);
    BH_CHECK_DONE();
    signer_teardown(&f);
}

/* Another key in its place would be taken for the same signer's. */
static void
a_lost_key(void **state)
{
    static const struct {
        const char *name, *watermark; /* what audit.signed says; NULL: what it said */
        bh_rc rc;
    } rows[] = {
        { "records were signed with it", NULL, BH_INVALID },
        { "nobody knows", "rubbish", BH_INVALID },
        { "begun anew, on purpose", "0\n", BH_OK },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct fixture f;
        char path[64];

        signer_setup(&f);
        bh_signer_close(&f.signer);
        snprintf(path, sizeof path, "%s/audit.key", f.folder);
        assert_int_equal(unlink(path), 0);
        snprintf(path, sizeof path, "%s/audit.signed", f.folder);
        if (rows[i].watermark)
            assert_int_equal(
                bh_file_replace(path, rows[i].watermark, strlen(rows[i].watermark), 0600, &f.err), BH_OK);
        BH_CHECK_EQ(rows[i].name, bh_signer_open(&f.signer, crypto, f.folder, &f.err), rows[i].rc);
        BH_CHECK_EQ("a key was made", f.signer.made, rows[i].rc == BH_OK);
        signer_teardown(&f);
    }
    BH_CHECK_DONE();
}

static void
file_of(const struct fixture *f, const char *file, char ret_path[64])
{
    snprintf(ret_path, 64, "%s/%s", f->folder, file);
}

static void
flip_a_bit(struct fixture *f, const char *file)
{
    char path[64], memory[200];
    struct bh_buf bytes;

    file_of(f, file, path);
    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    assert_int_equal(bh_file_read(path, sizeof memory, &bytes, &f->err), BH_OK);
    memory[7] ^= 1;
    assert_int_equal(bh_file_replace(path, bytes.bytes, bytes.length, 0600, &f->err), BH_OK);
}

static void
take_away(struct fixture *f, const char *file)
{
    char path[64];

    file_of(f, file, path);
    assert_int_equal(unlink(path), 0);
}

static void
move(struct fixture *f, const char *from, const char *to)
{
    char path[64], other[64];

    file_of(f, from, path);
    file_of(f, to, other);
    assert_int_equal(rename(path, other), 0);
}

static void
copy(struct fixture *f, const char *from, const char *to)
{
    char path[64], memory[200];
    struct bh_buf bytes;

    file_of(f, from, path);
    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    assert_int_equal(bh_file_read(path, sizeof memory, &bytes, &f->err), BH_OK);
    file_of(f, to, path);
    assert_int_equal(bh_file_replace(path, bytes.bytes, bytes.length, 0600, &f->err), BH_OK);
}

/* A flipped bit makes another good key, which no verifier trusts.  With `turned` two keys sign. */
static void
a_key_that_is_another(void **state)
{
    static const struct {
        const char *name;
        bool turned;
        const char *flipped, *missing;
        bh_rc rc;
        const char *says;
    } rows[] = {
        { "whole", false, NULL, NULL, BH_OK, "" },
        { "both whole", true, NULL, NULL, BH_OK, "" },
        { "the key", false, "audit.key", NULL, BH_INVALID, "audit.key is another key" },
        { "the new one of two", true, "audit.key", NULL, BH_INVALID, "audit.key is another key" },
        { "the old one", true, "audit.key.old", NULL, BH_INVALID, "audit.key.old is another key" },
        { "the old one is lost", true, NULL, "audit.key.old", BH_INVALID, "audit.key.old is missing" },
        { "what names them", false, "audit.public", NULL, BH_INVALID, "audit.public" },
        { "what names both", true, "audit.public", NULL, BH_INVALID, "audit.public" },
        { "a folder of before", false, NULL, "audit.public", BH_OK, "" },
        { "and with both keys", true, NULL, "audit.public", BH_OK, "" },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct fixture f;
        uint8_t key[32];

        signer_setup(&f);
        if (rows[i].turned)
            assert_int_equal(bh_signer_rotate(&f.signer, &f.err), BH_OK);
        memcpy(key, f.signer.public_key, sizeof key);
        bh_signer_close(&f.signer);
        if (rows[i].flipped)
            flip_a_bit(&f, rows[i].flipped);
        if (rows[i].missing)
            take_away(&f, rows[i].missing);
        f.err = (struct bh_err){ 0 };
        BH_CHECK_EQ(rows[i].name, bh_signer_open(&f.signer, crypto, f.folder, &f.err), rows[i].rc);
        BH_CHECK(rows[i].name, strstr(f.err.msg, rows[i].says));
        BH_CHECK_EQ(rows[i].name, f.err.hint[0] != '\0', rows[i].rc != BH_OK);
        if (rows[i].rc == BH_OK) {
            BH_CHECK(rows[i].name, memcmp(key, f.signer.public_key, sizeof key) == 0);
            BH_CHECK_EQ(rows[i].name, f.signer.has_old, rows[i].turned);
            f.question = question_of(SIGNED, SIGNED + 1, UINT64_MAX);
            BH_CHECK_EQ(rows[i].name, signer_ask(&f, &f.question), BH_OK);
            bh_signer_close(&f.signer);
            flip_a_bit(&f, "audit.key");
            BH_CHECK_EQ("bound", bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_INVALID);
        }
        signer_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* A key that is lost for good, and a damaged one that has no copy: the way that the refusal says. */
static void
begun_anew_on_purpose(void **state)
{
    struct fixture f;

    signer_setup(&f);
    bh_signer_close(&f.signer);
    flip_a_bit(&f, "audit.key");
    signer_put_file(&f, "0\n");
    BH_CHECK_EQ("still another", bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_INVALID);
    take_away(&f, "audit.key");
    BH_CHECK_EQ("made", bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_OK);
    BH_CHECK("made", f.signer.made);
    BH_CHECK_EQ("signs", signer_ask(&f, &f.question), BH_OK);
    bh_signer_close(&f.signer);
    BH_CHECK_EQ("from now on", bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_OK);
    BH_CHECK_DONE();
    signer_teardown(&f);
}

/* Where an old key is lost or damaged, what is left of it retires. */
static void
an_old_key_that_is_no_more(void **state)
{
    struct fixture f;

    for (int damaged = 0; damaged < 2; damaged++) {
        signer_setup(&f);
        assert_int_equal(bh_signer_rotate(&f.signer, &f.err), BH_OK);
        bh_signer_close(&f.signer);
        damaged ? flip_a_bit(&f, "audit.key.old") : take_away(&f, "audit.key.old");
        assert_int_equal(bh_signer_open_to_retire(&f.signer, crypto, f.folder, &f.err), BH_OK);
        BH_CHECK_EQ("retires", bh_signer_retire(&f.signer, &f.err), BH_OK);
        BH_CHECK_EQ("once", bh_signer_retire(&f.signer, &f.err), BH_NOT_FOUND);
        bh_signer_close(&f.signer);
        BH_CHECK_EQ("opens", bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_OK);
        BH_CHECK("alone", !f.signer.has_old);
        signer_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* Each step of a rotation and of a retirement is one file: what is there when it is cut behind any of
 * them opens, with the key of before or the one of after. */
static void
a_crash_cuts_a_rotation_anywhere(void **state)
{
    enum { COPIED, NAMED, PUT, UNNAMED, POINTS };
    static const char *const points[] = { "copied", "named", "put", "unnamed" };

    for (int point = 0; point < POINTS; point++) {
        uint8_t before[32], after[32];
        struct fixture f;

        signer_setup(&f);
        memcpy(before, f.signer.public_key, sizeof before);
        move(&f, "audit.public", "before.public");
        assert_int_equal(bh_signer_rotate(&f.signer, &f.err), BH_OK);
        memcpy(after, f.signer.public_key, sizeof after);
        if (point == COPIED)
            move(&f, "before.public", "audit.public");
        if (point <= NAMED)
            copy(&f, "audit.key.old", "audit.key");
        if (point == UNNAMED) {
            move(&f, "audit.key.old", "away");
            assert_int_equal(bh_signer_retire(&f.signer, &f.err), BH_OK);
            move(&f, "away", "audit.key.old");
        }
        bh_signer_close(&f.signer);
        BH_CHECK_EQ(points[point], bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_OK);
        BH_CHECK(points[point], memcmp(f.signer.public_key, point < PUT ? before : after, sizeof after) == 0);
        BH_CHECK_EQ(points[point], f.signer.has_old, point == PUT);
        BH_CHECK_EQ(points[point], bh_signer_rotate(&f.signer, &f.err), point == PUT ? BH_CONFLICT : BH_OK);
        bh_signer_close(&f.signer);
        BH_CHECK_EQ(points[point], bh_signer_open(&f.signer, crypto, f.folder, &f.err), BH_OK);
        BH_CHECK(points[point], f.signer.has_old);
        signer_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* Whatever comes over the socket: an answer, and no signature. */
static void
malformed_questions(void **state)
{
    struct fixture f;

    signer_setup(&f);
    for (uint32_t seed = 1; seed <= 3000; seed++) {
        struct bh_signer_request question = question_of(SIGNED, SIGNED + 3, UINT64_MAX);
        uint8_t *bytes = (uint8_t *)&question;
        uint64_t random = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t spoilt = 1 + seed % 9;

        for (uint32_t i = 0; i < spoilt; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[(random >> 33) % sizeof question] = (uint8_t)(random >> 25);
        }
        question.root[seed % 32] ^= 1; /* so that it is wrong in any case */
        bh_signer_reply(&f.signer, &question, &f.answer);
        if (f.answer.note[0] || f.answer.size > SIGNED)
            fail_msg("seed %u", (unsigned)seed);
    }
    signer_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(signs_what_continues),
    cmocka_unit_test(signer_refuses),
    cmocka_unit_test(checking_signs_nothing),
    cmocka_unit_test(another_key),
    cmocka_unit_test(a_missing_or_damaged_watermark),
    cmocka_unit_test(a_lost_key),
    cmocka_unit_test(a_key_that_is_another),
    cmocka_unit_test(begun_anew_on_purpose),
    cmocka_unit_test(an_old_key_that_is_no_more),
    cmocka_unit_test(a_crash_cuts_a_rotation_anywhere),
    cmocka_unit_test(malformed_questions),
};

BH_TEST_MAIN(tests)
