#include "daemon/batch/batch.h"
#include "daemon/batch/record.h"
#include "daemon/changes/shred.h"

#include "audit/verify.h"
#include "daemon/batch/snapshot.h"
#include "daemon/fixture/failing_fixture_test.h"
#include "daemon/fixture/keys_fixture_test.h"
#include "daemon/state/texts.h"
#include "store/audit.h"

/* Sealing what people write, and destroying what it is sealed with. */

/* ---- sealing ---- */

static void
what_people_write_is_sealed(void **state)
{
    static const char plain[] = "{\"args\":[\"canary-command\"],\"name\":\"canary-name\",\"sku\":\"small\","
                                "\"tenant\":\"acme/vision\"}";
    struct fixture f;
    uint8_t digest[32], guess[32];
    struct bh_job_row row;
    uint64_t job;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    job = submit_keyed(&f, "acme/vision", "a key");
    BH_CHECK_STR("opened", spec_of(&f, job), plain);
    BH_CHECK("not in the files", !keys_fixture_has_text(&f, "canary"));
    BH_CHECK_EQ("not in the log", leaves(&f, "job.submit").leaks, 0);
    BH_CHECK_EQ("keys are recorded", leaves(&f, "key.make").count, 4); /* the site's, too */
    row = keys_fixture_row_of(&f, job);
    f.core.crypto->sha256(plain, strlen(plain), "", 0, guess);
    BH_CHECK("cannot be guessed", memcmp(row.spec.bytes, guess, 32) != 0);
    bh_state_digest(&f.core.state, f.core.crypto, digest);
    reopen(&f);
    bh_state_digest(&f.core.state, f.core.crypto, guess);
    BH_CHECK("replays", memcmp(digest, guess, 32) == 0);
    BH_CHECK_STR("and opens", spec_of(&f, job), plain);
    (void)submit_keyed(&f, "acme/vision", "a key");
    BH_CHECK("a repeat is answered alike", strstr(f.answer.replayed, "\"id\":1,"));
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_note_is_sealed_in_the_leaf(void **state)
{
    struct bh_entry entry = { .dec = { .allow = true },
                              .phase = BH_PHASE_EVENT,
                              .tenant = 1,
                              .verb = "test.note",
                              .note = "canary-note" };
    char scratch[4096], opened[64], too_long[BH_ENTRY_NOTE_ITEM_MAX + 2];
    struct bh_record record;
    struct bh_slice item;
    struct bh_buf plain;
    struct fixture f;
    struct seen seen;
    size_t cursor = 0;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    keys_fixture_must(&f, bh_core_record(&f.core, &entry, BH_OK, &f.err));
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    seen = leaves(&f, "test.note");
    BH_CHECK_EQ("hidden", seen.leaks, 0);
    keys_fixture_must(&f, bh_record_decode(seen.leaf, strlen(seen.leaf), scratch, &record, &f.err));
    assert_non_null(record.sealed_json);
    assert_true(bh_slice_next_item((struct bh_slice){ record.sealed_json, strlen(record.sealed_json) },
                                   &cursor, &item));
    bh_buf_init_fixed(&plain, opened, sizeof opened);
    keys_fixture_must(&f, bh_keys_unseal(f.core.ring.keys, item, &plain, &f.err));
    BH_CHECK_STR("opened", bh_buf_text(&plain), "canary-note");
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    entry.note = too_long;
    BH_CHECK_EQ("too long", bh_core_record(&f.core, &entry, BH_OK, &f.err), BH_RANGE);
    too_long[BH_ENTRY_NOTE_ITEM_MAX] = '\0';
    BH_CHECK_EQ("as long as may be", bh_core_record(&f.core, &entry, BH_OK, &f.err), BH_OK);
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    reopen(&f);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* A batch that failed leaves neither keys nor their numbers behind. */
static void
an_aborted_batch_made_no_keys(void **state)
{
    struct fixture f;
    struct bh_buf item;
    char memory[400];

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    bh_buf_init_fixed(&item, memory, sizeof memory);
    keys_fixture_must(&f,
                      bh_core_seal(&f.core, (bh_tenant_id){ 1 }, (struct bh_slice){ "x", 1 }, &item, &f.err));
    assert_int_equal(bh_core_abort(&f.core, &f.err), BH_OK);
    BH_CHECK_STR("works on", spec_of(&f, submit_canary(&f, "other")) ? "yes" : "", "yes");
    BH_CHECK_EQ("two keys beside the site's", leaves(&f, "key.make").count, 4);
    reopen(&f);
    BH_CHECK("opens", strstr(spec_of(&f, 1), command_canary));
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* ---- destroying ---- */

static void
it_takes_two_persons(void **state)
{
    struct fixture f;
    char token[32];
    struct bh_shred_request month = { "acme/vision", NULL, NULL, NULL };
    uint64_t job;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    month.month = this_month(&f);
    job = submit_canary(&f, "acme/vision");
    BH_CHECK_EQ("while it waits", keys_fixture_shred(&f, "carol", month), BH_CONFLICT);
    keys_fixture_cancel(&f, job);
    BH_CHECK_EQ("a developer", keys_fixture_shred(&f, "alice", month), BH_DENIED);
    month.token = "0123456789abcdef";
    BH_CHECK_EQ("nobody asked", keys_fixture_shred(&f, "dan", month), BH_NOT_FOUND);
    month.token = NULL;
    BH_CHECK_EQ("asks", keys_fixture_shred(&f, "carol", month), BH_OK);
    BH_CHECK_EQ("for one key", f.answer.keys, 1);
    snprintf(token, sizeof token, "%s", f.answer.shred_token);
    BH_CHECK("nothing happened", strstr(spec_of(&f, job), command_canary));
    month.token = token;
    BH_CHECK_EQ("not oneself", keys_fixture_shred(&f, "carol", month), BH_DENIED);
    reopen(&f);
    BH_CHECK_EQ("of all is another request",
                keys_fixture_shred(&f, "dan", (struct bh_shred_request){ "acme/vision", "all", NULL, token }),
                BH_CONFLICT);
    BH_CHECK_EQ("another confirms", keys_fixture_shred(&f, "dan", month), BH_OK);
    BH_CHECK_STR("done", f.answer.shred_token ? f.answer.shred_token : "", "");
    BH_CHECK_STR("gone", spec_of(&f, job), "erased");
    BH_CHECK_STR("its name", keys_fixture_row_of(&f, job).name, BH_ERASED);
    BH_CHECK_EQ("not again", keys_fixture_shred(&f, "dan", month), BH_NOT_FOUND);
    BH_CHECK_EQ("asked", leaves(&f, "key.shred.ask").count, 1);
    BH_CHECK_EQ("confirmed", leaves(&f, "key.shred").count, 1);
    BH_CHECK_EQ("each key", leaves(&f, "key.destroyed").count, 1);
    BH_CHECK_EQ("reasons are sealed", leaves(&f, "").leaks, 0);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* Neither what was written nor the wrapped key is anywhere, and the log verifies. */
static void
nothing_stays_behind(void **state)
{
    struct fixture f;
    struct bh_key_row key = { 0 };
    struct bh_audit_verifier verifier;
    uint64_t job, other;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    job = submit_canary(&f, "acme/vision");
    keys_fixture_cancel(&f, job);
    bh_keys_each(f.core.ring.keys, read_living, &key);
    BH_CHECK("the key is there", is_in_files(&f, key.wrapped, sizeof key.wrapped));
    BH_CHECK_EQ("alone",
                keys_fixture_shred(&f, "carol",
                                   (struct bh_shred_request){ "acme/vision", this_month(&f), NULL, NULL }),
                BH_OK);
    BH_CHECK_STR("at once", spec_of(&f, job), "erased");
    BH_CHECK("scrubbed", !f.core.ring.scrub_due);
    BH_CHECK("no canary", !keys_fixture_has_text(&f, "canary"));
    BH_CHECK("no key", !is_in_files(&f, key.wrapped, sizeof key.wrapped));
    other = submit_canary(&f, "acme/vision");
    BH_CHECK("a new key for what is new", strstr(spec_of(&f, other), command_canary));
    keys_fixture_must(&f, bh_snapshot_write(&f.core, &f.err));
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    reopen(&f);
    BH_CHECK("a start scrubs again, for a crash may have come between", f.core.ring.scrub_due);
    BH_CHECK_STR("for ever", spec_of(&f, job), "erased");
    bh_audit_verifier_init(&verifier, f.core.crypto, &f.core.journal.key);
    keys_fixture_must(&f, bh_store_audit(&f.core.store, &verifier, &f.err));
    BH_CHECK_EQ("verifies", verifier.frontier.size, f.core.journal.next_seq);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_legal_hold_keeps_keys(void **state)
{
    struct bh_shred_request all = { "acme/vision", "all", NULL, NULL };
    struct fixture f;
    uint64_t job;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, held));
    job = submit_canary(&f, "acme/vision");
    keys_fixture_cancel(&f, job);
    BH_CHECK_EQ("held above", keys_fixture_shred(&f, "carol", all), BH_CONFLICT);
    BH_CHECK_STR("says so", f.err.msg, "acme is under a legal hold");
    BH_CHECK_EQ("nor removed", fixture_apply(&f, "tenants: [{name: other, kind: organization}]\n"),
                BH_CONFLICT);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    BH_CHECK_EQ("lifted", keys_fixture_shred(&f, "carol", all), BH_OK);
    BH_CHECK_EQ("the tenant's key and the month's", f.answer.keys, 2);
    keys_fixture_must(&f, fixture_apply(&f, held));
    all.token = f.answer.shred_token;
    BH_CHECK_EQ("held again", keys_fixture_shred(&f, "dan", all), BH_CONFLICT);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* The members of a group are not known here: another administrator may be among them. */
static void
a_group_counts_as_another(void **state)
{
    static const struct {
        const char *name, *binding;
        bool at_once;
    } rows[] = {
        { "a group of admins", "  - {role: admin, gid: 27, tenant: '*'}\n", false },
        { "of one tenant", "  - {role: admin, gid: 27, tenant: acme}\n", true },
        { "of viewers", "  - {role: viewer, gid: 27, tenant: '*'}\n", true },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_shred_request month = { "acme/vision", NULL, NULL, NULL };
        struct fixture f;
        char site[4096];
        uint64_t job;

        fixture_setup(&f);
        snprintf(site, sizeof site, "%s%s", one_admin, rows[i].binding);
        keys_fixture_must(&f, fixture_apply(&f, site));
        month.month = this_month(&f);
        job = submit_canary(&f, "acme/vision");
        keys_fixture_cancel(&f, job);
        BH_CHECK_EQ(rows[i].name, keys_fixture_shred(&f, "carol", month), BH_OK);
        BH_CHECK_EQ(rows[i].name, strstr(spec_of(&f, job), command_canary) == NULL, rows[i].at_once);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* Root is no second person: no request waits for root's confirmation, and root confirms none; root's own
 * request waits for a second person where there is one. */
static void
root_is_no_second_person(void **state)
{
    static const char nobodys_site[] =
        "tenants:\n  - {name: acme, kind: organization}\n  - {name: acme/vision, kind: department}\n"
        "principals:\n  - {name: alice, uid: 2001}\n";
    static const struct {
        const char *name, *site, *asks, *confirms;
        bh_rc confirmed; /* BH_FULL: the first call did it */
    } rows[] = {
        { "the only admin", one_admin, "carol", NULL, BH_FULL },
        { "root where there is an admin", one_admin, "root", "carol", BH_OK },
        { "root twice", one_admin, "root", "root", BH_DENIED },
        { "root for one of two", two_admins, "carol", "root", BH_DENIED },
        { "the other of two", two_admins, "carol", "dan", BH_OK },
        { "root where there is none", nobodys_site, "root", NULL, BH_FULL },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_shred_request month = { "acme/vision", NULL, NULL, NULL };
        struct fixture f;
        uint64_t job;

        fixture_setup(&f);
        keys_fixture_must(&f, fixture_apply(&f, one_admin));
        job = submit_canary(&f, "acme/vision");
        keys_fixture_cancel(&f, job);
        f.prune = true;
        keys_fixture_must(&f, fixture_apply(&f, rows[i].site));
        month.month = this_month(&f);
        BH_CHECK_EQ(rows[i].name, keys_fixture_shred(&f, rows[i].asks, month), BH_OK);
        BH_CHECK_EQ(rows[i].name, strcmp(spec_of(&f, job), "erased") == 0, rows[i].confirmed == BH_FULL);
        if (rows[i].confirms) {
            month.token = f.answer.shred_token;
            BH_CHECK_EQ(rows[i].name, keys_fixture_shred(&f, rows[i].confirms, month), rows[i].confirmed);
            BH_CHECK_EQ(rows[i].name, strcmp(spec_of(&f, job), "erased") == 0, rows[i].confirmed == BH_OK);
        }
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* Removing a tenant destroys nothing; that is asked for, under its old name. */
static void
a_removed_tenants_keys_are_destroyed_when_asked(void **state)
{
    struct fixture f;
    uint64_t job, kept = 0;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    job = submit_canary(&f, "other");
    keys_fixture_cancel(&f, job);
    f.prune = true;
    keys_fixture_must(&f, fixture_apply(&f, "tenants: [{name: acme, kind: organization}]\n"
                                            "principals: [{name: carol, uid: 2003}]\n"
                                            "bindings: [{role: admin, principal: carol, tenant: '*'}]\n"));
    BH_CHECK("not by itself", strstr(spec_of(&f, job), command_canary));
    keys_fixture_must(&f, bh_texts_bytes(&f.core, 3, &kept, &f.err));
    BH_CHECK("which counts against its tenant", kept > 0);
    BH_CHECK_EQ("never was",
                keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "nobody", "all", NULL, NULL }),
                BH_NOT_FOUND);
    BH_CHECK_EQ("no such month",
                keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "other", "1999-01", NULL, NULL }),
                BH_NOT_FOUND);
    BH_CHECK_EQ("no month",
                keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "other", "2026-13", NULL, NULL }),
                BH_INVALID);
    BH_CHECK_EQ("all of it",
                keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "other", "all", NULL, NULL }),
                BH_OK);
    BH_CHECK_STR("gone", spec_of(&f, job), "erased");
    keys_fixture_must(&f, bh_texts_bytes(&f.core, 3, &kept, &f.err));
    BH_CHECK_EQ("and counts no more", kept, 0);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* What was kept in plain by an earlier version has no key, and goes all the same. */
static void
texts_from_before_sealing_go_too(void **state)
{
    static const char old[] = "{\"args\":[\"canary-old\"],\"sku\":\"small\"}";
    struct bh_job_row row = { .job = 900,
                              .tenant_id = 3,
                              .name = "canary-old-name",
                              .tenant = "other",
                              .principal = "alice",
                              .sku = "small",
                              .kind = "batch",
                              .state = "completed",
                              .contract = "",
                              .reason = "",
                              .node = "",
                              .partitions = "",
                              .grade = "",
                              .submitted_ns = UINT64_C(1736500000000000000),
                              .ended_ns = 1 };
    struct bh_shred_request january = { "other", "2025-01", NULL, NULL };
    struct fixture f;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    f.core.crypto->sha256(old, strlen(old), "", 0, row.spec.bytes);
    keys_fixture_must(&f, bh_core_begin(&f.core, &f.err));
    keys_fixture_must(
        &f, f.core.store.ops->put_text(f.core.store.self,
                                       &(struct bh_text_row){ row.spec, 0, { old, strlen(old) } }, &f.err));
    keys_fixture_must(&f, f.core.store.ops->put_job(f.core.store.self, &row, &f.err));
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_STR("read as it is", spec_of(&f, 900), old);
    BH_CHECK_EQ("another month",
                keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "other", "2025-02", NULL, NULL }),
                BH_NOT_FOUND);
    BH_CHECK_EQ("its month", keys_fixture_shred(&f, "carol", january), BH_OK);
    BH_CHECK_STR("gone", spec_of(&f, 900), "erased");
    BH_CHECK_STR("its name", keys_fixture_row_of(&f, 900).name, BH_ERASED);
    BH_CHECK("from the files", !keys_fixture_has_text(&f, "canary"));
    BH_CHECK_EQ("not again", keys_fixture_shred(&f, "carol", january), BH_NOT_FOUND);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

struct destruction {
    uint64_t record_ns, row_ns;
};

static bool
check_destruction(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct destruction *seen = self;
    struct bh_slice value;
    char verb[40];

    return !bh_slice_get((struct bh_slice){ leaf, length }, "verb", &value)
           || !bh_slice_str(value, verb, sizeof verb) || strcmp(verb, "key.destroyed") != 0
           || (bh_slice_get((struct bh_slice){ leaf, length }, "ts", &value)
               && bh_slice_u64(value, &seen->record_ns));
}

static bool
check_destroyed_key(void *self, const struct bh_key_row *row)
{
    struct destruction *seen = self;

    if (row->shredded_ns)
        seen->row_ns = row->shredded_ns;
    return true;
}

/* So an export that ends with the record does not take the row for a later one. */
static void
row_and_record_have_one_time(void **state)
{
    struct destruction seen = { 0 };
    struct fixture f;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    keys_fixture_cancel(&f, submit_canary(&f, "acme/vision"));
    keys_fixture_must(
        &f, keys_fixture_shred(&f, "carol",
                               (struct bh_shred_request){ "acme/vision", this_month(&f), NULL, NULL }));
    keys_fixture_must(&f, f.core.store.ops->list_records(f.core.store.self, 0, INT64_MAX, check_destruction,
                                                         &seen, &f.err));
    bh_keys_each(f.core.ring.keys, check_destroyed_key, &seen);
    BH_CHECK("destroyed", seen.record_ns > 0);
    BH_CHECK_EQ("one time", seen.row_ns, seen.record_ns);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static void
a_proposal_grows_old(void **state)
{
    struct bh_shred_request all = { "other", "all", NULL, NULL };
    const struct bh_key_use next_year = { BH_KEY_AUDIT, { 3 }, UINT64_C(1830297600000000000) };
    struct fixture f;
    char token[32], memory[400];
    struct bh_buf item;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, two_admins));
    keys_fixture_cancel(&f, submit_canary(&f, "other"));
    keys_fixture_must(&f, keys_fixture_shred(&f, "carol", all));
    snprintf(token, sizeof token, "%s", f.answer.shred_token);
    all.token = token;
    bh_buf_init_fixed(&item, memory, sizeof memory);
    keys_fixture_must(&f, bh_core_begin(&f.core, &f.err));
    keys_fixture_must(&f,
                      bh_keys_seal(f.core.ring.keys, &next_year, (struct bh_slice){ "x", 1 }, &item, &f.err));
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_EQ("another key since", keys_fixture_shred(&f, "dan", all), BH_CONFLICT);
    keys_fixture_must(&f, bh_core_begin(&f.core, &f.err));
    keys_fixture_must(&f, f.core.store.ops->put_meta(f.core.store.self, "shred.3", "2 0 1000", &f.err));
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_EQ("too old", keys_fixture_shred(&f, "dan", all), BH_CONFLICT);
    BH_CHECK_STR("says so", f.err.msg, "the request is more than a day old");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* The site's own texts: their reasons would vanish with what they explain. */
static void
the_sites_present_month_stays(void **state)
{
    const struct bh_key_use last_year = { BH_KEY_AUDIT, { 0 }, UINT64_C(1763000000000000000) };
    const struct bh_key_use identity = { BH_KEY_IDENTITY, { 0 }, 1 };
    struct fixture f;
    char memory[400], secret[400];
    struct bh_buf item, kept, plain;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    bh_buf_init_fixed(&item, memory, sizeof memory);
    bh_buf_init_fixed(&kept, secret, sizeof secret);
    keys_fixture_must(&f, bh_core_begin(&f.core, &f.err));
    keys_fixture_must(&f,
                      bh_keys_seal(f.core.ring.keys, &last_year, (struct bh_slice){ "x", 1 }, &item, &f.err));
    keys_fixture_must(&f,
                      bh_keys_seal(f.core.ring.keys, &identity, (struct bh_slice){ "y", 1 }, &kept, &f.err));
    keys_fixture_must(&f, bh_core_commit(&f.core, &f.err));
    keys_fixture_must(&f,
                      keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "*", "all", NULL, NULL }));
    BH_CHECK_EQ("last year's", f.answer.keys, 1);
    BH_CHECK_EQ("nothing else",
                keys_fixture_shred(&f, "carol", (struct bh_shred_request){ "*", "all", NULL, NULL }),
                BH_NOT_FOUND);
    bh_buf_init(&plain, 100);
    BH_CHECK_EQ(
        "gone",
        bh_keys_unseal(f.core.ring.keys, (struct bh_slice){ item.bytes, item.length }, &plain, &f.err),
        BH_NOT_FOUND);
    BH_CHECK_EQ(
        "identities stay",
        bh_keys_unseal(f.core.ring.keys, (struct bh_slice){ kept.bytes, kept.length }, &plain, &f.err),
        BH_OK);
    bh_buf_fini(&plain);
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

/* Whichever write fails: either all of it happened and is in the log, or nothing did. */
static void
a_failed_write_destroys_nothing(void **state)
{
    struct bh_shred_request request = { "other", "all", "because", NULL };
    uint32_t at = 0;
    struct fixture f;
    uint64_t job;
    bh_rc rc;

    fixture_setup(&f);
    keys_fixture_must(&f, fixture_apply(&f, one_admin));
    job = submit_canary(&f, "other");
    keys_fixture_cancel(&f, job);
    open_failing(&f);
    do {
        struct bh_command command = { .op = BH_OP_KEY_SHRED,
                                      .caller = caller_named(&f, "carol"),
                                      .shred = &request };

        failing.calls = 0;
        failing.fails_at = ++at;
        rc = failing_attempt(&f, &command);
        BH_CHECK(rc == BH_OK ? "done" : "not done",
                 (strcmp(spec_of(&f, job), "erased") == 0) == (rc == BH_OK));
        BH_CHECK_EQ("recorded", leaves(&f, "key.destroyed").count, rc == BH_OK ? 2 : 0);
    } while (rc != BH_OK && at < 100);
    BH_CHECK("several writes", at > 8);
    reopen(&f);
    BH_CHECK_STR("for ever", spec_of(&f, job), "erased");
    fixture_teardown(&f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_people_write_is_sealed),
    cmocka_unit_test(a_note_is_sealed_in_the_leaf),
    cmocka_unit_test(an_aborted_batch_made_no_keys),
    cmocka_unit_test(it_takes_two_persons),
    cmocka_unit_test(a_group_counts_as_another),
    cmocka_unit_test(root_is_no_second_person),
    cmocka_unit_test(nothing_stays_behind),
    cmocka_unit_test(a_legal_hold_keeps_keys),
    cmocka_unit_test(a_removed_tenants_keys_are_destroyed_when_asked),
    cmocka_unit_test(texts_from_before_sealing_go_too),
    cmocka_unit_test(row_and_record_have_one_time),
    cmocka_unit_test(a_proposal_grows_old),
    cmocka_unit_test(the_sites_present_month_stays),
    cmocka_unit_test(a_failed_write_destroys_nothing),
};
BH_TEST_MAIN(tests)
