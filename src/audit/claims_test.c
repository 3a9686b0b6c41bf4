#include "audit/claims.h"

#include <string.h>

#include "audit/binding.h"
#include "audit/job_status.h"
#include "base/test.h"
#include "ports/crypto.h"

/* A log of a few records is gathered, then rows are given as a table may have them, each test
 * with one of them another. */

enum { TENANT, SKU, PRINCIPAL };

static const uint8_t keys[2][32] = { { 1 }, { 2 } };
static const uint8_t none[32];
static const uint8_t spec[32] = { 0x5e };

struct story {
    struct bh_arena *arena;
    struct bh_claims *claims;
    struct bh_claims_result result;
    uint64_t seq;
    struct bh_err err;
};

static int
begin(void **state)
{
    static struct story story;

    story = (struct story){ .arena = bh_arena_new(1 << 20) };
    story.claims = bh_claims_new(story.arena, &bh_crypto_openssl);
    *state = &story;
    return 0;
}

static int
end(void **state)
{
    struct story *story = *state;

    bh_arena_free(story->arena);
    return 0;
}

static bh_rc
take(struct story *story, struct bh_record record)
{
    record.seq = story->seq++;
    record.ts_ns = 1000 + record.seq;
    record.version = record.version ? record.version : BH_RECORD_VERSION;
    record.dec.allow = true;
    return bh_claims_take(story->claims, &record, &story->err);
}

/* A record that gives the principals 1 and 2 to alice and root. */
static bh_rc
bind(struct story *story, const char *first, struct bh_record record)
{
    struct bh_binding alice = { PRINCIPAL, 1, { 0 } }, root = { PRINCIPAL, 2, { 0 } };
    char memory[400];
    struct bh_buf list;

    bh_binding_commit(&bh_crypto_openssl, &alice, keys[0], first);
    bh_binding_commit(&bh_crypto_openssl, &root, keys[1], "root");
    bh_buf_init_fixed(&list, memory, sizeof memory);
    bh_buf_putc(&list, '[');
    bh_binding_put(&list, &alice);
    bh_binding_put(&list, &root);
    bh_buf_putc(&list, ']');
    record.names_json = bh_buf_text(&list);
    if (!record.verb)
        record.verb = "site.apply";
    return take(story, record);
}

static void
name(struct story *story, uint32_t id, const char *text, const uint8_t *key)
{
    const struct bh_claimed_name row = { PRINCIPAL, id, text, key, 0 };

    assert_int_equal(bh_claims_name(story->claims, &row, &story->err), BH_OK);
}

/* How many differences there are, of the tables that were given. */
static uint64_t
differences(struct story *story, uint32_t tables)
{
    bh_claims_end(story->claims, tables, &story->result);
    return story->result.differences;
}

static void
names_that_are_bound(void **state)
{
    struct story *story = *state;

    assert_int_equal(bind(story, "alice", (struct bh_record){ 0 }), BH_OK);
    name(story, 1, "alice", keys[0]);
    name(story, 2, "root", keys[1]);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_NAMES), 0);
    BH_CHECK_EQ("good", story->result.names.good, 2);
    BH_CHECK_STR("name", bh_claims_name_of(story->claims, PRINCIPAL, 1), "alice");
    BH_CHECK_DONE();
}

/* Two rows are swapped, with what opens them and without. */
static void
names_that_were_swapped(void **state)
{
    for (int with = 0; with < 2; with++) {
        struct story *story;

        end(state);
        begin(state);
        story = *state;
        assert_int_equal(bind(story, "alice", (struct bh_record){ 0 }), BH_OK);
        name(story, 1, "root", keys[with]);
        name(story, 2, "alice", keys[!with]);
        BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_NAMES), 2);
        BH_CHECK_STR("says which", story->result.differing,
                     "principal 1 is \"root\" in the table; record 0 bound it to another name\n"
                     "principal 2 is \"alice\" in the table; record 0 bound it to another name\n");
        BH_CHECK("not resolved", !bh_claims_name_of(story->claims, PRINCIPAL, 1));
    }
    BH_CHECK_DONE();
}

static void
names_that_lack(void **state)
{
    struct story *story = *state;

    assert_int_equal(bind(story, "alice", (struct bh_record){ 0 }), BH_OK);
    name(story, 1, "alice", none);
    name(story, 3, "mallory", keys[0]);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_NAMES), 3);
    BH_CHECK_STR("says which", story->result.differing,
                 "principal 1: the key of its name is gone, and no record erased it; record 0 bound it\n"
                 "principal 3 is \"mallory\" in the table, and no record binds it\n"
                 "principal 2 is missing in the table; record 0 bound it\n");
    BH_CHECK_DONE();
}

static void
names_that_were_erased(void **state)
{
    struct story *story = *state;

    assert_int_equal(bind(story, "alice", (struct bh_record){ 0 }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = BH_RECORD_NAME_ERASE,
                                                     .obj = { "principal", 1 } }),
                     BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = BH_RECORD_NAME_ERASE,
                                                     .obj = { "principal", 2 } }),
                     BH_OK);
    name(story, 1, "(erased)", none);
    name(story, 2, "root", keys[1]);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_NAMES), 1);
    BH_CHECK_STR("says which", story->result.differing,
                 "principal 2 was erased by record 2, but its row has a name\n");
    BH_CHECK_STR("erased", story->result.erased, "principal 1: erased by record 1\n");
    BH_CHECK_EQ("a kind that there is not",
                take(story, (struct bh_record){ .verb = BH_RECORD_NAME_ERASE, .obj = { "job", 1 } }),
                BH_CONFLICT);
    BH_CHECK_DONE();
}

/* The same binding again is what a pruning writes; another is not. */
static void
names_bound_again(void **state)
{
    struct story *story = *state;

    assert_int_equal(bind(story, "alice", (struct bh_record){ 0 }), BH_OK);
    BH_CHECK_EQ("the same", bind(story, "alice", (struct bh_record){ .verb = BH_RECORD_NAMES_BIND }), BH_OK);
    BH_CHECK_EQ("another", bind(story, "mallory", (struct bh_record){ .verb = BH_RECORD_NAMES_BIND }),
                BH_CONFLICT);
    BH_CHECK_DONE();
}

static void
names_of_before(void **state)
{
    struct story *story = *state;

    assert_int_equal(take(story, (struct bh_record){ .verb = "daemon.start", .version = 2 }), BH_OK);
    name(story, 1, "alice", none);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_NAMES), 0);
    BH_CHECK_EQ("not bound", story->result.names.unbound, 1);
    BH_CHECK_EQ("no upgrade", story->result.bound_from, UINT64_MAX);
    assert_int_equal(bind(story, "alice", (struct bh_record){ .verb = BH_RECORD_NAMES_BIND,
                                                               .obj = { BH_RECORD_UPGRADE, 2 } }),
                     BH_OK);
    (void)differences(story, 0);
    BH_CHECK_EQ("bound from", story->result.bound_from, 1);
    BH_CHECK_DONE();
}

/* ---- jobs ---- */

#define SPEC "5e00000000000000000000000000000000000000000000000000000000000000"
#define SUBMIT                                                                             \
    "{\"submit\":{\"count\":1,\"job\":7,\"principal\":1,\"sku\":3,\"spec\":\"" SPEC "\",\"tenant\":5}}"

static struct bh_claimed_job
row_of_7(void)
{
    return (struct bh_claimed_job){ .job = 7, .tenant_id = 5, .principal_id = 1, .count = 1,
                                    .tenant = "acme", .principal = "alice", .sku = "small",
                                    .state = "completed", .reason = "exited", .submitted_ns = 1001,
                                    .started_ns = 1002, .ended_ns = 1003, .spec = spec };
}

static void
live_and_end(struct story *story)
{
    assert_int_equal(bind(story, "alice", (struct bh_record){ 0 }), BH_OK);
    name(story, 1, "alice", keys[0]);
    name(story, 2, "root", keys[1]);
    assert_int_equal(take(story, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){
                                     .verb = "node.started",
                                     .jobs_json = "[{\"job\":7,\"started\":\"1002\",\"state\":\"running\"}]" }),
                     BH_OK);
    assert_int_equal(take(story, (struct bh_record){
                                     .verb = "node.ended",
                                     .jobs_json = "[{\"cause\":\"exited\",\"ended\":\"1003\",\"job\":7,"
                                                  "\"state\":\"completed\"}]" }),
                     BH_OK);
}

static void
jobs_that_are_what_is_said(void **state)
{
    struct story *story = *state;
    struct bh_claimed_job row = row_of_7();

    live_and_end(story);
    bh_claims_job(story->claims, &row);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_NAMES | BH_CLAIMS_JOBS), 0);
    BH_CHECK_EQ("good", story->result.jobs.good, 1);
    BH_CHECK_DONE();
}

static void
jobs_that_were_changed(void **state)
{
    static const uint8_t other[32] = { 1 };
    static const struct {
        const char *what;
        struct bh_claimed_job row; /* what is not 0 or NULL is changed */
        uint64_t record;
    } rows[] = {
        { "tenant", { .tenant_id = 6 }, 1 },
        { "principal", { .principal_id = 2 }, 1 },
        { "principal", { .principal = "root" }, 1 },
        { "count", { .count = 2 }, 1 },
        { "time of submission", { .submitted_ns = 1 }, 1 },
        { "specification", { .spec = other }, 1 },
        { "state", { .state = "failed" }, 3 },
        { "start", { .started_ns = 1 }, 3 },
        { "end", { .ended_ns = 1 }, 3 },
        { "cause of the end", { .reason = "signalled" }, 3 },
        { "exit status", { .exit_status = 1 }, 3 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_claimed_job row = row_of_7();
        const struct bh_claimed_job *change = &rows[i].row;
        struct story *story;
        char expected[100];

        end(state);
        begin(state);
        story = *state;
        live_and_end(story);
        row.tenant_id = change->tenant_id ? change->tenant_id : row.tenant_id;
        row.principal_id = change->principal_id ? change->principal_id : row.principal_id;
        row.principal = change->principal ? change->principal : row.principal;
        row.count = change->count ? change->count : row.count;
        row.submitted_ns = change->submitted_ns ? change->submitted_ns : row.submitted_ns;
        row.spec = change->spec ? change->spec : row.spec;
        row.state = change->state ? change->state : row.state;
        row.started_ns = change->started_ns ? change->started_ns : row.started_ns;
        row.ended_ns = change->ended_ns ? change->ended_ns : row.ended_ns;
        row.reason = change->reason ? change->reason : row.reason;
        row.exit_status = change->exit_status ? change->exit_status : row.exit_status;
        bh_claims_job(story->claims, &row);
        BH_CHECK_EQ(rows[i].what, differences(story, BH_CLAIMS_JOBS), 1);
        snprintf(expected, sizeof expected, "job 7: its %s is not what record %d says\n",
                 rows[i].what, (int)rows[i].record);
        BH_CHECK_STR(rows[i].what, story->result.differing, expected);
    }
    BH_CHECK_DONE();
}

static void
jobs_that_lack(void **state)
{
    struct story *story = *state;
    struct bh_claimed_job row = row_of_7();

    live_and_end(story);
    row.job = 8;
    bh_claims_job(story->claims, &row);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_JOBS), 2);
    BH_CHECK_STR("says which", story->result.differing,
                 "job 8 is in the table, and no record submitted it\n"
                 "job 7 is missing in the table; record 1 speaks of it\n");
    BH_CHECK_DONE();
}

/* Version 2 says how a job was submitted and not what became of it. */
static void
jobs_of_before(void **state)
{
    struct story *story = *state;
    struct bh_claimed_job row = row_of_7();

    story->seq = 1;
    assert_int_equal(take(story, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT, .version = 2 }),
                     BH_OK);
    bh_claims_job(story->claims, &row);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_JOBS), 0);
    BH_CHECK_EQ("not bound", story->result.jobs.unbound, 1);
    row.tenant_id = 6;
    bh_claims_job(story->claims, &row);
    BH_CHECK_EQ("but the tenant is", differences(story, BH_CLAIMS_JOBS), 1);
    BH_CHECK_DONE();
}

static void
jobs_that_were_pruned(void **state)
{
    struct story *story = *state;
    struct bh_claimed_job row = row_of_7();

    bh_claims_skip(story->claims, 0);
    story->seq = 1;
    assert_int_equal(take(story, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT }), BH_OK);
    row.job = 6;
    bh_claims_job(story->claims, &row);
    BH_CHECK_EQ("no difference", differences(story, 0), 0);
    BH_CHECK_EQ("not bound", story->result.jobs.unbound, 1);
    row.job = 8;
    bh_claims_job(story->claims, &row);
    BH_CHECK_EQ("too late to be one of them", differences(story, 0), 1);
    BH_CHECK_EQ("submitted twice",
                take(story, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT }), BH_CONFLICT);
    BH_CHECK_DONE();
}

/* ---- texts ---- */

static void
texts(void **state)
{
    static const uint8_t site[32] = { 0x51 }, note[32] = { 0x52 }, lost[32] = { 0x53 };
    struct story *story = *state;

    assert_int_equal(take(story, (struct bh_record){ .verb = "site.apply", .text = { 0x51 } }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = "node.ended", .tenant = 5, .text = { 0x52 } }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = "node.ended", .tenant = 6, .text = { 0x53 } }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = "snapshot", .text = { 0x54 } }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = "key.shred", .obj = { "tenant", 6 } }), BH_OK);
    bh_claims_text(story->claims, site, site);
    bh_claims_text(story->claims, note, lost);
    bh_claims_text(story->claims, spec, note);
    BH_CHECK_EQ("differences", differences(story, BH_CLAIMS_TEXTS), 1);
    BH_CHECK_STR("says which", story->result.differing,
                 "text 5200000000000000...: it does not have the digest that record 1 names\n");
    BH_CHECK_EQ("good", story->result.texts.good, 1);
    BH_CHECK_EQ("erased", story->result.texts.erased, 1);
    BH_CHECK_DONE();
}

static void
texts_that_lack(void **state)
{
    struct story *story = *state;

    assert_int_equal(take(story, (struct bh_record){ .verb = "key.shred", .obj = { "tenant", 6 } }), BH_OK);
    assert_int_equal(take(story, (struct bh_record){ .verb = "node.ended", .tenant = 6, .text = { 0x53 } }), BH_OK);
    BH_CHECK_EQ("shredded before it was written", differences(story, BH_CLAIMS_TEXTS), 1);
    BH_CHECK_STR("says which", story->result.differing,
                 "text 5300000000000000... of record 1 is missing, and no record erased it\n");
    BH_CHECK_DONE();
}

/* As many as there is room for; then it says so. */
static void
many(void **state)
{
    struct story *story = *state;
    bh_rc rc = BH_OK;
    uint64_t count = 0;

    for (; rc == BH_OK && count < 100000; count++) {
        struct bh_record record = { .verb = "site.apply" };

        memcpy(record.text, &(uint64_t){ count + 1 }, 8);
        rc = take(story, record);
    }
    BH_CHECK_EQ("full", rc, BH_FULL);
    BH_CHECK("of many", count > 1000);
    BH_CHECK("differences", differences(story, BH_CLAIMS_TEXTS) >= count - 1);
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(names_that_are_bound),       TEST(names_that_were_swapped),
        TEST(names_that_lack),            TEST(names_that_were_erased),
        TEST(names_bound_again),          TEST(names_of_before),
        TEST(jobs_that_are_what_is_said), TEST(jobs_that_were_changed),
        TEST(jobs_that_lack),             TEST(jobs_of_before),
        TEST(jobs_that_were_pruned),      TEST(texts),
        TEST(texts_that_lack),            TEST(many),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
