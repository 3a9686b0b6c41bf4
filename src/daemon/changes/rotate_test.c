#include "daemon/batch/batch.h"
#include "daemon/changes/rotate.h"

#include "daemon/fixture/failing_fixture_test.h"
#include "daemon/fixture/keys_fixture_test.h"

/* New root keys, and crashes and failures on the way to them. */

static bh_rc
rotate_rotate(struct fixture *f, const char *who)
{
    struct bh_command command = { .op = BH_OP_KEY_ROTATE, .caller = caller_named(f, who) };

    return fixture_run(f, &command);
}

static bool
read_root(const struct fixture *f, const char *name, uint8_t ret_key[32])
{
    char path[160];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return bh_root_read(path, ret_key, &err) == BH_OK;
}

static void
the_root_is_replaced(void **state)
{
    struct fixture f;
    uint8_t before[32], after[32];
    uint64_t job;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    job = submit_canary(&f, "other");
    assert_true(read_root(&f, "root.key", before));
    BH_CHECK_EQ("a developer", rotate_rotate(&f, "alice"), BH_DENIED);
    BH_CHECK_EQ("an admin", rotate_rotate(&f, "carol"), BH_OK);
    BH_CHECK_EQ("the tenant's and the site's", f.answer.keys, 2);
    assert_true(read_root(&f, "root.key", after));
    BH_CHECK("another", memcmp(before, after, 32) != 0);
    BH_CHECK("nothing staged", !read_root(&f, "root.key.next", before));
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    BH_CHECK_EQ("recorded", leaves(&f, "key.rotate").count, 1);
    reopen(&f);
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    (void)submit_canary(&f, "acme/vision");
    reopen(&f);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A crash at any point between the steps leaves a tree that the next start opens. */
static void
a_crash_cuts_a_rotation_anywhere(void **state)
{
    enum { STAGED, WRAPPED, COMMITTED, SETTLED, POINTS };
    static const char *const points[] = { "staged", "wrapped", "committed", "settled" };

    for (int point = 0; point < POINTS; point++) {
        uint8_t before[32], staged[32], after[32], next[32] = { 1, [31] = (uint8_t)point };
        struct fixture f;
        uint64_t count, job;

        fixture_setup(&f);
        keys_fixture_must(&f, fixture_apply(&f, two_admins));
        job = submit_canary(&f, "other");
        assert_true(read_root(&f, "root.key", before));
        keys_fixture_must(&f, bh_core_begin(&f.core, &f.err));
        if (point == STAGED)
            keys_fixture_must(&f, bh_root_stage(&f.core.ring.root, next, &f.err));
        else
            keys_fixture_must(&f, bh_keyring_rotate(&f.core.ring, f.core.crypto, next, &count, &f.err));
        if (point == COMMITTED) /* by the store alone: the daemon died right after */
            keys_fixture_must(&f, f.core.store.ops->commit(f.core.store.self, &f.err));
        if (point == SETTLED)
            keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
        BH_CHECK_EQ(points[point], read_root(&f, "root.key.next", staged), point != SETTLED);
        reopen(&f);
        BH_CHECK(points[point], strstr(spec_of(&f, job), command_canary));
        assert_true(read_root(&f, "root.key", after));
        BH_CHECK(points[point], memcmp(after, point < COMMITTED ? before : next, sizeof after) == 0);
        BH_CHECK(points[point], !read_root(&f, "root.key.next", staged));
        reopen(&f);
        BH_CHECK(points[point], strstr(spec_of(&f, job), command_canary));
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* The new root then stands in the staged file alone, which the next start puts in place; until
 * then nothing takes that place. */
static void
a_file_that_cannot_be_replaced_is_finished_later(void **state)
{
    uint8_t staged[32], after[32];
    char path[160], away[160];
    struct fixture f;
    uint64_t job;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    job = submit_canary(&f, "other");
    snprintf(path, sizeof path, "%s/root.key", f.folder);
    snprintf(away, sizeof away, "%s/away", f.folder);
    assert_int_equal(rename(path, away), 0);
    BH_CHECK_EQ("rotates", rotate_rotate(&f, "carol"), BH_OK);
    assert_int_equal(rename(away, path), 0);
    assert_true(read_root(&f, "root.key.next", staged));
    BH_CHECK_EQ("not on top of that", rotate_rotate(&f, "carol"), BH_CONFLICT);
    assert_true(read_root(&f, "root.key.next", after));
    BH_CHECK("untouched", memcmp(staged, after, 32) == 0);
    (void)submit_canary(&f, "acme/vision");
    reopen(&f);
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    assert_true(read_root(&f, "root.key", after));
    BH_CHECK("in its place", memcmp(staged, after, 32) == 0);
    BH_CHECK_EQ("and again", rotate_rotate(&f, "carol"), BH_OK);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
an_aborted_rotation_never_was(void **state)
{
    uint8_t before[32], after[32];
    struct fixture f;
    uint64_t count, job;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    job = submit_canary(&f, "other");
    assert_true(read_root(&f, "root.key", before));
    keys_fixture_must(&f, bh_core_begin(&f.core, &f.err));
    keys_fixture_must(&f, bh_keyring_rotate(&f.core.ring, f.core.crypto, NULL, &count, &f.err));
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    BH_CHECK("nothing staged", !read_root(&f, "root.key.next", after));
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    (void)submit_canary(&f, "acme/vision");
    reopen(&f);
    assert_true(read_root(&f, "root.key", after));
    BH_CHECK("the old one", memcmp(before, after, 32) == 0);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
put_key_file(struct fixture *f, const char *name, uint8_t first)
{
    const uint8_t key[32] = { first };
    char path[160];

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    keys_fixture_must(f, bh_file_replace(path, key, sizeof key, 0600, &f->err));
}

/* systemd's to replace: the tree is wrapped by the next key, and waits for it. */
static void
a_credential_is_rotated_by_hand(void **state)
{
    struct fixture f;
    char next[160];
    uint64_t count, job;

    fixture_setup(&f);
    close_core(&f);
    put_key_file(&f, "bulkhead.root", 7);
    put_key_file(&f, "next", 8);
    snprintf(next, sizeof next, "%s/next", f.folder);
    f.config.credentials = f.folder;
    keys_fixture_must(&f, open_core(&f));
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    job = submit_canary(&f, "other");
    BH_CHECK_EQ("not ours", rotate_rotate(&f, "carol"), BH_CONFLICT);
    BH_CHECK("the way is said", strstr(f.err.hint, "--rotate-root"));
    BH_CHECK("works on", strstr(spec_of(&f, job), command_canary));
    keys_fixture_must(&f, bh_rotate_to_file(&f.core, next, &count, &f.err));
    BH_CHECK_EQ("the tenant's and the site's", count, 2);
    BH_CHECK_EQ("to itself", bh_rotate_to_file(&f.core, next, &count, &f.err), BH_CONFLICT);
    close_core(&f);
    BH_CHECK_EQ("the old credential", open_core(&f), BH_CONFLICT);
    close_core(&f);
    put_key_file(&f, "bulkhead.root", 8);
    keys_fixture_must(&f, open_core(&f));
    BH_CHECK("the new one", strstr(spec_of(&f, job), command_canary));
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A store without its root key is not given another one. */
static void
a_lost_root_is_not_made_anew(void **state)
{
    struct fixture f;
    char path[160];

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    (void)submit_canary(&f, "other");
    close_core(&f);
    snprintf(path, sizeof path, "%s/root.key", f.folder);
    assert_int_equal(unlink(path), 0);
    BH_CHECK_EQ("refuses", open_core(&f), BH_NOT_FOUND);
    BH_CHECK("and makes none", access(path, F_OK) != 0);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_failed_write_rotates_nothing(void **state)
{
    uint32_t at = 0;
    struct fixture f;
    uint64_t job;
    bh_rc rc;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    job = submit_canary(&f, "other");
    (void)submit_canary(&f, "acme/vision");
    do {
        struct bh_command command = { .op = BH_OP_KEY_ROTATE };

        open_failing(&f); /* a fresh start after each: what is in the files has to do */
        BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
        command.caller = caller_named(&f, "carol");
        failing.calls = 0;
        failing.fails_at = ++at;
        rc = failing_attempt(&f, &command);
        BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
        BH_CHECK_EQ("recorded", leaves(&f, "key.rotate").count, rc == BH_OK);
    } while (rc != BH_OK && at < 100);
    BH_CHECK("several writes", at > 3);
    reopen(&f);
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_root_is_replaced),
    cmocka_unit_test(a_crash_cuts_a_rotation_anywhere),
    cmocka_unit_test(a_file_that_cannot_be_replaced_is_finished_later),
    cmocka_unit_test(an_aborted_rotation_never_was),
    cmocka_unit_test(a_credential_is_rotated_by_hand),
    cmocka_unit_test(a_lost_root_is_not_made_anew),
    cmocka_unit_test(a_failed_write_rotates_nothing),
};
BH_TEST_MAIN(tests)
