#include "daemon/shred.h"

#include <sys/stat.h>

#include "audit/verify.h"
#include "base/time.h"
#include "daemon/fixture_test.h"
#include "daemon/rotate.h"
#include "daemon/snapshot.h"
#include "store/audit.h"

/* Sealing, destroying and rotating, on a core with a store in a folder. */

#define TENANTS(hold)                                                                      \
    "tenants:\n"                                                                           \
    "  - {name: acme, kind: organization" hold "}\n"                                       \
    "  - {name: acme/vision, kind: department}\n"                                          \
    "  - {name: other, kind: organization}\n"                                              \
    "skus:\n"                                                                              \
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"        \
    "principals:\n"                                                                        \
    "  - {name: alice, uid: 2001}\n"                                                       \
    "  - {name: carol, uid: 2003}\n"                                                       \
    "  - {name: dan, uid: 2004}\n"                                                         \
    "bindings:\n"                                                                          \
    "  - {role: developer, principal: alice, tenant: '*'}\n"                               \
    "  - {role: admin, principal: carol, tenant: '*'}\n"                                   \
    "  - {role: admin, principal: dan, tenant: 'acme'}\n"
#define SECOND "  - {role: admin, principal: dan, tenant: '*'}\n"

static const char two_admins[] = TENANTS("") SECOND;
static const char one_admin[] = TENANTS("");
static const char held[] = TENANTS(", legal_hold: true") SECOND;

static const char command_canary[] = "canary-command", name_canary[] = "canary-name";

/* A job whose program and name are canaries; it waits, for there is no GPU. */
static uint64_t
submit_canary(struct fixture *f, const char *tenant)
{
    const char *args[] = { command_canary };
    struct bh_job_spec spec = { .args = { args, 1 }, .tenant = tenant, .sku = "small",
                                .name = name_canary };
    struct bh_command command = { .op = BH_OP_JOB_SUBMIT, .caller = caller_named(f, "alice"),
                                  .spec = &spec };
    struct bh_buf text;

    assert_int_equal(bh_spec_check(&spec, &command.numbers, &f->err), BH_OK);
    bh_buf_init(&text, 1 << 16);
    bh_json_encode(&text, &bh_job_spec_fields, &spec);
    command.text = bh_buf_text(&text);
    command.text_length = text.length;
    command.caller.idempotency_key = "a key";
    if (run(f, &command) != BH_OK)
        fail_msg("%s", f->err.msg);
    bh_buf_fini(&text);
    return f->answer.job.v;
}

static void
cancel(struct fixture *f, uint64_t job)
{
    struct bh_command command = { .op = BH_OP_JOB_CANCEL, .caller = caller_named(f, "alice"),
                                  .job = { job } };

    assert_int_equal(run(f, &command), BH_OK);
}

static bh_rc
shred(struct fixture *f, const char *who, struct bh_shred_request request)
{
    struct bh_command command = { .op = BH_OP_KEY_SHRED, .caller = caller_named(f, who),
                                  .shred = &request };

    if (!request.reason)
        request.reason = "canary-reason";
    return run(f, &command);
}

static const char *
this_month(struct fixture *f)
{
    static char text[32];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_time_put_utc(&out, bh_core_now(&f->core));
    text[7] = '\0';
    return text;
}

static bool
take_row(void *self, const struct bh_job_row *row)
{
    struct bh_job_row *kept = self;
    static char name[64];

    *kept = *row;
    snprintf(name, sizeof name, "%s", row->name);
    kept->name = name;
    return true;
}

static struct bh_job_row
row_of(struct fixture *f, uint64_t job)
{
    struct bh_job_row row = { 0 };

    assert_int_equal(f->core.store.ops->get_job(f->core.store.self, job, take_row, &row, &f->err),
                     BH_OK);
    return row;
}

/* What the job was submitted as, or why that cannot be read. */
static const char *
spec_of(struct fixture *f, uint64_t job)
{
    struct bh_job_row row = row_of(f, job);
    const char *text;

    return bh_keys_get_text(f->core.ring.keys, &row.spec, f->arena, &text, &f->err) == BH_OK
               ? text
               : f->err.msg;
}

/* Whether any file of the store holds the bytes. */
static bool
is_in_files(const struct fixture *f, const void *bytes, size_t length)
{
    static const char *const endings[] = { "", "-wal" };
    bool found = false;

    for (size_t i = 0; i < BH_COUNT(endings) && !found; i++) {
        struct bh_buf file;
        struct bh_err err;
        char path[160];

        snprintf(path, sizeof path, "%s/bulkhead.db%s", f->folder, endings[i]);
        bh_buf_init(&file, 64 << 20);
        found = bh_file_read(path, 64 << 20, &file, &err) == BH_OK
                && memmem(file.bytes, file.length, bytes, length);
        bh_buf_fini(&file);
    }
    return found;
}

static bool
has_text(const struct fixture *f, const char *text)
{
    return is_in_files(f, text, strlen(text));
}

static bool
take_living(void *self, const struct bh_key_row *row)
{
    if (row->kind == BH_KEY_KIND_AUDIT && row->tenant_id && !row->shredded_ns)
        *(struct bh_key_row *)self = *row;
    return true;
}

static void
must(const struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        fail_msg("%s: %s", bh_rc_name(rc), f->err.msg);
}

static void
reopen(struct fixture *f)
{
    close_core(f);
    must(f, open_core(f));
}

struct seen {
    const char *verb;
    uint32_t count, leaks;       /* leaves of that verb that say ok; of all those with a canary */
    char leaf[2048];             /* the last */
};

static bool
see_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct seen *seen = self;
    char verb[64];

    (void)seq;
    snprintf(verb, sizeof verb, "\"verb\":\"%s\"", seen->verb);
    if (memmem(leaf, length, verb, strlen(verb)) && memmem(leaf, length, "\"res\":\"ok\"", 10)) {
        seen->count++;
        snprintf(seen->leaf, sizeof seen->leaf, "%.*s", (int)length, leaf);
    }
    seen->leaks += memmem(leaf, length, "canary", 6) != NULL;
    return true;
}

static struct seen
leaves(struct fixture *f, const char *verb)
{
    struct seen seen = { .verb = verb };

    must(f, f->core.store.ops->list_records(f->core.store.self, 0, INT64_MAX, see_leaf, &seen,
                                            &f->err));
    return seen;
}

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

    setup(&f);
    must(&f, apply(&f, two_admins));
    job = submit_canary(&f, "acme/vision");
    BH_CHECK_STR("opened", spec_of(&f, job), plain);
    BH_CHECK("not in the files", !has_text(&f, "canary"));
    BH_CHECK_EQ("not in the log", leaves(&f, "job.submit").leaks, 0);
    BH_CHECK_EQ("keys are recorded", leaves(&f, "key.make").count, 2);
    row = row_of(&f, job);
    f.core.crypto->sha256(plain, strlen(plain), "", 0, guess);
    BH_CHECK("cannot be guessed", memcmp(row.spec.bytes, guess, 32) != 0);
    bh_state_digest(&f.core.state, f.core.crypto, digest);
    reopen(&f);
    bh_state_digest(&f.core.state, f.core.crypto, guess);
    BH_CHECK("replays", memcmp(digest, guess, 32) == 0);
    BH_CHECK_STR("and opens", spec_of(&f, job), plain);
    (void)submit_canary(&f, "acme/vision");
    BH_CHECK("a repeat is answered alike", strstr(f.answer.replayed, "\"id\":1,"));
    teardown(&f);
    BH_CHECK_DONE();
}

static void
a_note_is_sealed_in_the_leaf(void **state)
{
    struct bh_entry entry = { .dec = { .allow = true }, .phase = BH_PHASE_EVENT, .tenant = 1,
                              .verb = "test.note", .note = "canary-note" };
    char scratch[4096], opened[64], too_long[BH_ENTRY_NOTE_MAX + 2];
    struct bh_record record;
    struct bh_slice item;
    struct bh_buf plain;
    struct fixture f;
    struct seen seen;
    size_t cursor = 0;

    setup(&f);
    must(&f, apply(&f, two_admins));
    must(&f, bh_core_note(&f.core, &entry, BH_OK, &f.err));
    must(&f, bh_core_commit(&f.core, &f.err));
    seen = leaves(&f, "test.note");
    BH_CHECK_EQ("hidden", seen.leaks, 0);
    must(&f, bh_record_decode(seen.leaf, strlen(seen.leaf), scratch, &record, &f.err));
    assert_non_null(record.sealed_json);
    assert_true(bh_slice_next_item((struct bh_slice){ record.sealed_json,
                                                      strlen(record.sealed_json) },
                                   &cursor, &item));
    bh_buf_init_fixed(&plain, opened, sizeof opened);
    must(&f, bh_keys_unseal(f.core.ring.keys, item, &plain, &f.err));
    BH_CHECK_STR("opened", bh_buf_text(&plain), "canary-note");
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    entry.note = too_long;
    BH_CHECK_EQ("too long", bh_core_note(&f.core, &entry, BH_OK, &f.err), BH_RANGE);
    too_long[BH_ENTRY_NOTE_MAX] = '\0';
    BH_CHECK_EQ("as long as may be", bh_core_note(&f.core, &entry, BH_OK, &f.err), BH_OK);
    must(&f, bh_core_commit(&f.core, &f.err));
    reopen(&f);
    teardown(&f);
    BH_CHECK_DONE();
}

/* A batch that failed leaves neither keys nor their numbers behind. */
static void
an_aborted_batch_made_no_keys(void **state)
{
    struct fixture f;
    struct bh_buf item;
    char memory[400];

    setup(&f);
    must(&f, apply(&f, two_admins));
    bh_buf_init_fixed(&item, memory, sizeof memory);
    must(&f, bh_core_seal(&f.core, (bh_tenant_id){ 1 }, (struct bh_slice){ "x", 1 }, &item, &f.err));
    assert_true(bh_core_abort(&f.core));
    BH_CHECK_STR("works on", spec_of(&f, submit_canary(&f, "other")) ? "yes" : "", "yes");
    BH_CHECK_EQ("two keys", leaves(&f, "key.make").count, 2);
    reopen(&f);
    BH_CHECK("opens", strstr(spec_of(&f, 1), command_canary));
    teardown(&f);
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

    setup(&f);
    must(&f, apply(&f, two_admins));
    month.month = this_month(&f);
    job = submit_canary(&f, "acme/vision");
    BH_CHECK_EQ("while it waits", shred(&f, "carol", month), BH_CONFLICT);
    cancel(&f, job);
    BH_CHECK_EQ("a developer", shred(&f, "alice", month), BH_DENIED);
    month.token = "0123456789abcdef";
    BH_CHECK_EQ("nobody asked", shred(&f, "dan", month), BH_NOT_FOUND);
    month.token = NULL;
    BH_CHECK_EQ("asks", shred(&f, "carol", month), BH_OK);
    BH_CHECK_EQ("for one key", f.answer.keys, 1);
    snprintf(token, sizeof token, "%s", f.answer.shred_token);
    BH_CHECK("nothing happened", strstr(spec_of(&f, job), command_canary));
    month.token = token;
    BH_CHECK_EQ("not oneself", shred(&f, "carol", month), BH_DENIED);
    reopen(&f);
    BH_CHECK_EQ("of all is another request", shred(&f, "dan",
                (struct bh_shred_request){ "acme/vision", "all", NULL, token }), BH_CONFLICT);
    BH_CHECK_EQ("another confirms", shred(&f, "dan", month), BH_OK);
    BH_CHECK_STR("done", f.answer.shred_token ? f.answer.shred_token : "", "");
    BH_CHECK_STR("gone", spec_of(&f, job), "erased");
    BH_CHECK_STR("its name", row_of(&f, job).name, BH_ERASED);
    BH_CHECK_EQ("not again", shred(&f, "dan", month), BH_NOT_FOUND);
    BH_CHECK_EQ("asked", leaves(&f, "key.shred.ask").count, 1);
    BH_CHECK_EQ("confirmed", leaves(&f, "key.shred").count, 1);
    BH_CHECK_EQ("each key", leaves(&f, "key.destroyed").count, 1);
    BH_CHECK_EQ("reasons are sealed", leaves(&f, "").leaks, 0);
    teardown(&f);
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

    setup(&f);
    must(&f, apply(&f, one_admin));
    job = submit_canary(&f, "acme/vision");
    cancel(&f, job);
    bh_keys_each(f.core.ring.keys, take_living, &key);
    BH_CHECK("the key is there", is_in_files(&f, key.wrapped, sizeof key.wrapped));
    BH_CHECK_EQ("alone", shred(&f, "carol",
                               (struct bh_shred_request){ "acme/vision", this_month(&f), NULL,
                                                          NULL }), BH_OK);
    BH_CHECK_STR("at once", spec_of(&f, job), "erased");
    BH_CHECK("scrubbed", !f.core.ring.scrub_due);
    BH_CHECK("no canary", !has_text(&f, "canary"));
    BH_CHECK("no key", !is_in_files(&f, key.wrapped, sizeof key.wrapped));
    other = submit_canary(&f, "acme/vision");
    BH_CHECK("a new key for what is new", strstr(spec_of(&f, other), command_canary));
    must(&f, bh_snapshot_write(&f.core, &f.err));
    must(&f, bh_core_commit(&f.core, &f.err));
    reopen(&f);
    BH_CHECK_STR("for ever", spec_of(&f, job), "erased");
    bh_audit_verifier_init(&verifier, f.core.crypto, &f.core.journal.key);
    must(&f, bh_store_audit(&f.core.store, &verifier, &f.err));
    BH_CHECK_EQ("verifies", verifier.frontier.size, f.core.journal.next_seq);
    teardown(&f);
    BH_CHECK_DONE();
}

static void
a_legal_hold_keeps_keys(void **state)
{
    struct bh_shred_request all = { "acme/vision", "all", NULL, NULL };
    struct fixture f;
    uint64_t job;

    setup(&f);
    must(&f, apply(&f, held));
    job = submit_canary(&f, "acme/vision");
    cancel(&f, job);
    BH_CHECK_EQ("held above", shred(&f, "carol", all), BH_CONFLICT);
    BH_CHECK_STR("says so", f.err.msg, "acme is under a legal hold");
    BH_CHECK_EQ("nor removed", apply(&f, "tenants: [{name: other, kind: organization}]\n"),
                BH_CONFLICT);
    must(&f, apply(&f, two_admins));
    BH_CHECK_EQ("lifted", shred(&f, "carol", all), BH_OK);
    BH_CHECK_EQ("the tenant's key and the month's", f.answer.keys, 2);
    must(&f, apply(&f, held));
    all.token = f.answer.shred_token;
    BH_CHECK_EQ("held again", shred(&f, "dan", all), BH_CONFLICT);
    teardown(&f);
    BH_CHECK_DONE();
}

/* Removing a tenant destroys nothing; that is asked for, under its old name. */
static void
a_removed_tenants_keys_are_destroyed_when_asked(void **state)
{
    struct fixture f;
    uint64_t job;

    setup(&f);
    must(&f, apply(&f, one_admin));
    job = submit_canary(&f, "other");
    cancel(&f, job);
    must(&f, apply(&f, "tenants: [{name: acme, kind: organization}]\n"
                       "principals: [{name: carol, uid: 2003}]\n"
                       "bindings: [{role: admin, principal: carol, tenant: '*'}]\n"));
    BH_CHECK("not by itself", strstr(spec_of(&f, job), command_canary));
    BH_CHECK_EQ("never was", shred(&f, "carol",
                (struct bh_shred_request){ "nobody", "all", NULL, NULL }), BH_NOT_FOUND);
    BH_CHECK_EQ("no such month", shred(&f, "carol",
                (struct bh_shred_request){ "other", "1999-01", NULL, NULL }), BH_NOT_FOUND);
    BH_CHECK_EQ("no month", shred(&f, "carol",
                (struct bh_shred_request){ "other", "2026-13", NULL, NULL }), BH_INVALID);
    BH_CHECK_EQ("all of it", shred(&f, "carol",
                (struct bh_shred_request){ "other", "all", NULL, NULL }), BH_OK);
    BH_CHECK_STR("gone", spec_of(&f, job), "erased");
    teardown(&f);
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

    setup(&f);
    must(&f, apply(&f, two_admins));
    cancel(&f, submit_canary(&f, "other"));
    must(&f, shred(&f, "carol", all));
    snprintf(token, sizeof token, "%s", f.answer.shred_token);
    all.token = token;
    bh_buf_init_fixed(&item, memory, sizeof memory);
    must(&f, bh_core_begin(&f.core, &f.err));
    must(&f, bh_keys_seal(f.core.ring.keys, &next_year, (struct bh_slice){ "x", 1 }, &item, &f.err));
    must(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_EQ("another key since", shred(&f, "dan", all), BH_CONFLICT);
    must(&f, bh_core_begin(&f.core, &f.err));
    must(&f, f.core.store.ops->put_meta(f.core.store.self, "shred.3", "2 0 1000", &f.err));
    must(&f, bh_core_commit(&f.core, &f.err));
    BH_CHECK_EQ("too old", shred(&f, "dan", all), BH_CONFLICT);
    BH_CHECK_STR("says so", f.err.msg, "that was asked for more than a day ago");
    teardown(&f);
    BH_CHECK_DONE();
}

/* ---- rotating ---- */

static bh_rc
rotate(struct fixture *f, const char *who)
{
    struct bh_command command = { .op = BH_OP_KEY_ROTATE, .caller = caller_named(f, who) };

    return run(f, &command);
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

    setup(&f);
    must(&f, apply(&f, two_admins));
    job = submit_canary(&f, "other");
    assert_true(read_root(&f, "root.key", before));
    BH_CHECK_EQ("a developer", rotate(&f, "alice"), BH_DENIED);
    BH_CHECK_EQ("an admin", rotate(&f, "carol"), BH_OK);
    BH_CHECK_EQ("tenants", f.answer.keys, 1);
    assert_true(read_root(&f, "root.key", after));
    BH_CHECK("another", memcmp(before, after, 32) != 0);
    BH_CHECK("nothing staged", !read_root(&f, "root.key.next", before));
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    BH_CHECK_EQ("recorded", leaves(&f, "key.rotate").count, 1);
    reopen(&f);
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    (void)submit_canary(&f, "acme/vision");
    reopen(&f);
    teardown(&f);
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

        setup(&f);
        must(&f, apply(&f, two_admins));
        job = submit_canary(&f, "other");
        assert_true(read_root(&f, "root.key", before));
        must(&f, bh_core_begin(&f.core, &f.err));
        if (point == STAGED)
            must(&f, bh_root_stage(&f.core.ring.root, next, &f.err));
        else
            must(&f, bh_keyring_rotate(&f.core.ring, f.core.crypto, next, &count, &f.err));
        if (point == COMMITTED) /* by the store alone: the daemon died right after */
            must(&f, f.core.store.ops->commit(f.core.store.self, &f.err));
        if (point == SETTLED)
            must(&f, bh_core_commit(&f.core, &f.err));
        BH_CHECK_EQ(points[point], read_root(&f, "root.key.next", staged), point != SETTLED);
        reopen(&f);
        BH_CHECK(points[point], strstr(spec_of(&f, job), command_canary));
        assert_true(read_root(&f, "root.key", after));
        BH_CHECK(points[point],
                 memcmp(after, point < COMMITTED ? before : next, sizeof after) == 0);
        BH_CHECK(points[point], !read_root(&f, "root.key.next", staged));
        reopen(&f);
        BH_CHECK(points[point], strstr(spec_of(&f, job), command_canary));
        teardown(&f);
    }
    BH_CHECK_DONE();
}

static void
an_aborted_rotation_never_was(void **state)
{
    uint8_t before[32], after[32];
    struct fixture f;
    uint64_t count, job;

    setup(&f);
    must(&f, apply(&f, two_admins));
    job = submit_canary(&f, "other");
    assert_true(read_root(&f, "root.key", before));
    must(&f, bh_core_begin(&f.core, &f.err));
    must(&f, bh_keyring_rotate(&f.core.ring, f.core.crypto, NULL, &count, &f.err));
    assert_true(bh_core_abort(&f.core));
    BH_CHECK("nothing staged", !read_root(&f, "root.key.next", after));
    BH_CHECK("opens", strstr(spec_of(&f, job), command_canary));
    (void)submit_canary(&f, "acme/vision");
    reopen(&f);
    assert_true(read_root(&f, "root.key", after));
    BH_CHECK("the old one", memcmp(before, after, 32) == 0);
    teardown(&f);
    BH_CHECK_DONE();
}

static void
put_key_file(struct fixture *f, const char *name, uint8_t first)
{
    const uint8_t key[32] = { first };
    char path[160];

    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    must(f, bh_file_replace(path, key, sizeof key, 0600, &f->err));
}

/* systemd's to replace: the tree is wrapped by the next key, and waits for it. */
static void
a_credential_is_rotated_by_hand(void **state)
{
    struct fixture f;
    char next[160];
    uint64_t count, job;

    setup(&f);
    close_core(&f);
    put_key_file(&f, "bulkhead.root", 7);
    put_key_file(&f, "next", 8);
    snprintf(next, sizeof next, "%s/next", f.folder);
    f.config.credentials = f.folder;
    must(&f, open_core(&f));
    must(&f, apply(&f, two_admins));
    job = submit_canary(&f, "other");
    BH_CHECK_EQ("not ours", rotate(&f, "carol"), BH_CONFLICT);
    BH_CHECK("the way is said", strstr(f.err.hint, "--rotate-root"));
    BH_CHECK("works on", strstr(spec_of(&f, job), command_canary));
    must(&f, bh_rotate_to_file(&f.core, next, &count, &f.err));
    BH_CHECK_EQ("tenants", count, 1);
    BH_CHECK_EQ("to itself", bh_rotate_to_file(&f.core, next, &count, &f.err), BH_CONFLICT);
    close_core(&f);
    BH_CHECK_EQ("the old credential", open_core(&f), BH_CONFLICT);
    close_core(&f);
    put_key_file(&f, "bulkhead.root", 8);
    must(&f, open_core(&f));
    BH_CHECK("the new one", strstr(spec_of(&f, job), command_canary));
    teardown(&f);
    BH_CHECK_DONE();
}

/* A store without its root key is not given another one. */
static void
a_lost_root_is_not_made_anew(void **state)
{
    struct fixture f;
    char path[160];

    setup(&f);
    must(&f, apply(&f, two_admins));
    (void)submit_canary(&f, "other");
    close_core(&f);
    snprintf(path, sizeof path, "%s/root.key", f.folder);
    assert_int_equal(unlink(path), 0);
    BH_CHECK_EQ("refuses", open_core(&f), BH_NOT_FOUND);
    BH_CHECK("and makes none", access(path, F_OK) != 0);
    teardown(&f);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_people_write_is_sealed),
        cmocka_unit_test(a_note_is_sealed_in_the_leaf),
        cmocka_unit_test(an_aborted_batch_made_no_keys),
        cmocka_unit_test(it_takes_two_persons),
        cmocka_unit_test(nothing_stays_behind),
        cmocka_unit_test(a_legal_hold_keeps_keys),
        cmocka_unit_test(a_removed_tenants_keys_are_destroyed_when_asked),
        cmocka_unit_test(a_proposal_grows_old),
        cmocka_unit_test(the_root_is_replaced),
        cmocka_unit_test(a_crash_cuts_a_rotation_anywhere),
        cmocka_unit_test(an_aborted_rotation_never_was),
        cmocka_unit_test(a_credential_is_rotated_by_hand),
        cmocka_unit_test(a_lost_root_is_not_made_anew),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
