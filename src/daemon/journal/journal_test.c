/* Which keys of the signer's are taken, and what audit.vkey then says. */
#include "daemon/batch/batch.h"
#include "daemon/journal/journal.h"

#include <sys/stat.h>

#include "daemon/batch/record.h"
#include "daemon/fixture/failing_fixture_test.h"

static void
path_of(const struct fixture *f, const char *file, char ret_path[160])
{
    snprintf(ret_path, 160, "%s/%s", f->folder, file);
}

static void
read_file(struct fixture *f, const char *file, char ret_text[BH_JOURNAL_KEYS_BYTES_MAX])
{
    char path[160];
    struct bh_buf text;

    path_of(f, file, path);
    bh_buf_init_fixed(&text, ret_text, BH_JOURNAL_KEYS_BYTES_MAX);
    if (bh_file_read(path, BH_JOURNAL_KEYS_BYTES_MAX - 1, &text, &f->err) != BH_OK)
        text.length = 0;
    assert_non_null(bh_buf_text(&text));
}

static void
write_file(struct fixture *f, const char *file, const void *bytes, size_t length)
{
    char path[160];

    path_of(f, file, path);
    keys_fixture_must(f, bh_file_replace(path, bytes, length, 0600, &f->err));
}

static void
take_away(struct fixture *f, const char *file)
{
    char path[160];

    path_of(f, file, path);
    assert_int_equal(unlink(path), 0);
}

static uint32_t
published(struct fixture *f)
{
    char text[BH_JOURNAL_KEYS_BYTES_MAX];
    uint32_t count = 0;

    read_file(f, "audit.vkey", text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

/* A checkpoint over all there is, by the keys of now. */
static bool
sign(struct fixture *f)
{
    uint64_t before = f->core.journal.signed_size;

    keys_fixture_must(f, bh_core_begin(&f->core, &f->err));
    keys_fixture_must(f,
                      bh_core_record(&f->core, &(struct bh_entry){ .verb = "test", .dec = { .allow = true } },
                                     BH_OK, &f->err));
    keys_fixture_must(f, bh_core_commit(&f->core, &f->err));
    for (int i = 0; i < 2; i++) {
        f->core.journal.asked_ns = 0;
        keys_fixture_must(f, bh_core_begin(&f->core, &f->err));
        keys_fixture_must(f, bh_core_commit(&f->core, &f->err));
    }
    return f->core.journal.signed_size > before;
}

static void
open_signed(struct fixture *f)
{
    fixture_setup(f);
    assert_true(sign(f));
}

/* A bit of the key is flipped, in a folder of before: without audit.public, which makes the signer
 * refuse by itself. */
static void
flip_key(struct fixture *f)
{
    char key[BH_JOURNAL_KEYS_BYTES_MAX];

    read_file(f, "audit.key", key);
    key[5] ^= 1;
    write_file(f, "audit.key", key, 32);
    take_away(f, "audit.public");
}

/* Before, the other key became a line of audit.vkey, and vouched for itself. */
static void
a_key_without_a_voucher(void **state)
{
    char before[BH_JOURNAL_KEYS_BYTES_MAX], after[BH_JOURNAL_KEYS_BYTES_MAX];
    struct fixture f;

    open_signed(&f);
    close_core(&f);
    read_file(&f, "audit.vkey", before);
    flip_key(&f);
    BH_CHECK_EQ("refused", open_core(&f), BH_CONFLICT);
    BH_CHECK("why", strstr(f.err.msg, "audit.vkey does not name"));
    BH_CHECK("the way on", strstr(f.err.hint, "back from its copy"));
    read_file(&f, "audit.vkey", after);
    BH_CHECK_STR("as it was", after, before);
    close_core(&f);
    take_away(&f, "audit.vkey");
    BH_CHECK("without that file the log's checkpoint is no such key's", open_core(&f) != BH_OK);
    BH_CHECK_EQ("and nothing is published", published(&f), 0);
    close_core(&f);
    read_file(&f, "audit.key", after);
    after[5] ^= 1;
    write_file(&f, "audit.key", after, 32);
    keys_fixture_must(&f, open_core(&f));
    read_file(&f, "audit.vkey", after);
    BH_CHECK_STR("the right key is published again", after, before);
    BH_CHECK("and signs", sign(&f));
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
a_key_that_was_turned(void **state)
{
    static const char zero[] = "0\n";
    struct fixture f;

    open_signed(&f);
    close_core(&f);
    keys_fixture_must(&f, bh_signer_rotate(&f.signer, &f.err));
    keys_fixture_must(&f, open_core(&f));
    BH_CHECK_EQ("vouched for by the one before", published(&f), 2);
    BH_CHECK("signs", sign(&f));
    close_core(&f);
    keys_fixture_must(&f, bh_signer_retire(&f.signer, &f.err));
    keys_fixture_must(&f, open_core(&f));
    BH_CHECK_EQ("the one before is kept", published(&f), 2);
    BH_CHECK("signs", sign(&f));
    close_core(&f);
    keys_fixture_must(&f, bh_signer_rotate(&f.signer, &f.err));
    keys_fixture_must(&f, bh_signer_retire(&f.signer, &f.err));
    BH_CHECK_EQ("no key vouched for it", open_core(&f), BH_CONFLICT);
    BH_CHECK_EQ("not published", published(&f), 2);
    close_core(&f);
    write_file(&f, "audit.signed", zero, strlen(zero));
    keys_fixture_must(&f, open_core(&f)); /* as an administrator may decide */
    BH_CHECK_EQ("published", published(&f), 3);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* The signer is stopped, and started again, under a daemon that goes on. */
static void
a_key_that_was_turned_meanwhile(void **state)
{
    struct fixture f;

    open_signed(&f);
    f.signer_gone = true;
    BH_CHECK("gone", !sign(&f));
    keys_fixture_must(&f, bh_signer_rotate(&f.signer, &f.err));
    f.signer_gone = false;
    BH_CHECK("signs", sign(&f));
    BH_CHECK_EQ("published", published(&f), 2);
    f.signer_gone = true;
    BH_CHECK("gone", !sign(&f));
    keys_fixture_must(&f, bh_signer_retire(&f.signer, &f.err));
    f.signer_gone = false;
    BH_CHECK("signs", sign(&f));
    f.signer_gone = true;
    BH_CHECK("gone", !sign(&f));
    flip_key(&f);
    keys_fixture_must(&f, bh_signer_open(&f.signer, f.core.crypto, f.folder, &f.err));
    f.signer_gone = false;
    BH_CHECK("another is not asked to sign", !sign(&f));
    BH_CHECK_EQ("nor published", published(&f), 2);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static void
a_file_of_keys(void **state)
{
    static const struct {
        const char *name, *text; /* NULL: as it was, without its last line end */
        bh_rc rc;
    } rows[] = {
        { "edited", NULL, BH_OK },
        { "empty", "", BH_OK },
        { "of something else", "rubbish\n", BH_INVALID },
        { "of another site", "other+00000000+AAAA\n", BH_INVALID },
    };
    struct fixture f;

    open_signed(&f);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char before[BH_JOURNAL_KEYS_BYTES_MAX];
        const char *text = rows[i].text ? rows[i].text : before;

        read_file(&f, "audit.vkey", before);
        close_core(&f);
        write_file(&f, "audit.vkey", text, strlen(text) - !rows[i].text);
        BH_CHECK_EQ(rows[i].name, open_core(&f), rows[i].rc);
        BH_CHECK_EQ(rows[i].name, published(&f), 1);
        BH_CHECK_EQ(rows[i].name, f.err.hint[0] != '\0', rows[i].rc != BH_OK);
    }
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

/* A full disk has no room for it. */
static void
what_is_there_is_not_written_again(void **state)
{
    char path[160];
    struct stat before, after;
    struct fixture f;

    open_signed(&f);
    path_of(&f, "audit.vkey", path);
    assert_int_equal(stat(path, &before), 0);
    reopen(&f);
    assert_int_equal(stat(path, &after), 0);
    BH_CHECK("the same file",
             before.st_ino == after.st_ino && before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
    BH_CHECK_DONE();
    fixture_teardown(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_key_without_a_voucher),
    cmocka_unit_test(a_key_that_was_turned),
    cmocka_unit_test(a_key_that_was_turned_meanwhile),
    cmocka_unit_test(a_file_of_keys),
    cmocka_unit_test(what_is_there_is_not_written_again),
};
BH_TEST_MAIN(tests)
