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

struct scenario {
    struct bh_arena *arena;
    struct bh_claims *claims;
    struct bh_claims_result result;
    uint64_t seq;
    struct bh_err err;
};

static int
claims_begin(void **state)
{
    static struct scenario scenario;

    scenario = (struct scenario){ .arena = bh_arena_new(1 << 20) };
    scenario.claims = bh_claims_new(scenario.arena, &bh_crypto_openssl);
    *state = &scenario;
    return 0;
}

static int
claims_end(void **state)
{
    struct scenario *scenario = *state;

    bh_arena_free(scenario->arena);
    return 0;
}

static bh_rc
claims_read(struct scenario *scenario, struct bh_record record)
{
    record.seq = scenario->seq++;
    record.ts_ns = 1000 + record.seq;
    record.version = record.version ? record.version : BH_RECORD_VERSION;
    record.dec.allow = true;
    return bh_claims_read(scenario->claims, &record, &scenario->err);
}

/* A record that gives the principals 1 and 2 to alice and root. */
static bh_rc
bind(struct scenario *scenario, const char *first, struct bh_record record)
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
    return claims_read(scenario, record);
}

static void
name(struct scenario *scenario, uint32_t id, const char *text, const uint8_t *key)
{
    const struct bh_claimed_name row = { PRINCIPAL, id, text, key, 0 };

    assert_int_equal(bh_claims_name(scenario->claims, &row, &scenario->err), BH_OK);
}

/* How many differences there are, of the tables that were given. */
static uint64_t
differences(struct scenario *scenario, uint32_t tables)
{
    bh_claims_end(scenario->claims, tables, &scenario->result);
    return scenario->result.differences;
}

static void
names_that_are_bound(void **state)
{
    struct scenario *scenario = *state;

    assert_int_equal(bind(scenario, "alice", (struct bh_record){ 0 }), BH_OK);
    name(scenario, 1, "alice", keys[0]);
    name(scenario, 2, "root", keys[1]);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_NAMES), 0);
    BH_CHECK_EQ("good", scenario->result.names.good, 2);
    BH_CHECK_STR("name", bh_claims_name_of(scenario->claims, PRINCIPAL, 1), "alice");
    BH_CHECK_DONE();
}

/* Two rows are swapped, with what opens them and without. */
static void
names_that_were_swapped(void **state)
{
    for (int with = 0; with < 2; with++) {
        struct scenario *scenario;

        claims_end(state);
        claims_begin(state);
        scenario = *state;
        assert_int_equal(bind(scenario, "alice", (struct bh_record){ 0 }), BH_OK);
        name(scenario, 1, "root", keys[with]);
        name(scenario, 2, "alice", keys[!with]);
        BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_NAMES), 2);
        BH_CHECK_STR("says which", scenario->result.differing,
                     "principal 1 is \"root\" in the table; record 0 bound it to another name\n"
                     "principal 2 is \"alice\" in the table; record 0 bound it to another name\n");
        BH_CHECK("not resolved", !bh_claims_name_of(scenario->claims, PRINCIPAL, 1));
    }
    BH_CHECK_DONE();
}

static void
names_that_lack(void **state)
{
    struct scenario *scenario = *state;

    assert_int_equal(bind(scenario, "alice", (struct bh_record){ 0 }), BH_OK);
    name(scenario, 1, "alice", none);
    name(scenario, 3, "mallory", keys[0]);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_NAMES), 3);
    BH_CHECK_STR("says which", scenario->result.differing,
                 "principal 1: the key of its name is gone, and no record erased it; record 0 bound it\n"
                 "principal 3 is \"mallory\" in the table, and no record binds it\n"
                 "principal 2 is missing in the table; record 0 bound it\n");
    BH_CHECK_DONE();
}

static void
names_that_were_erased(void **state)
{
    struct scenario *scenario = *state;

    assert_int_equal(bind(scenario, "alice", (struct bh_record){ 0 }), BH_OK);
    assert_int_equal(
        claims_read(scenario, (struct bh_record){ .verb = BH_RECORD_NAME_ERASE, .obj = { "principal", 1 } }),
        BH_OK);
    assert_int_equal(
        claims_read(scenario, (struct bh_record){ .verb = BH_RECORD_NAME_ERASE, .obj = { "principal", 2 } }),
        BH_OK);
    name(scenario, 1, "(erased)", none);
    name(scenario, 2, "root", keys[1]);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_NAMES), 1);
    BH_CHECK_STR("says which", scenario->result.differing,
                 "principal 2 was erased by record 2, but its row has a name\n");
    BH_CHECK_STR("erased", scenario->result.erased, "principal 1: erased by record 1\n");
    BH_CHECK_EQ(
        "a kind that there is not",
        claims_read(scenario, (struct bh_record){ .verb = BH_RECORD_NAME_ERASE, .obj = { "job", 1 } }),
        BH_CONFLICT);
    BH_CHECK_DONE();
}

/* The same binding again is what a pruning writes; another is not. */
static void
names_bound_again(void **state)
{
    struct scenario *scenario = *state;

    assert_int_equal(bind(scenario, "alice", (struct bh_record){ 0 }), BH_OK);
    BH_CHECK_EQ("the same", bind(scenario, "alice", (struct bh_record){ .verb = BH_RECORD_NAMES_BIND }),
                BH_OK);
    BH_CHECK_EQ("another", bind(scenario, "mallory", (struct bh_record){ .verb = BH_RECORD_NAMES_BIND }),
                BH_CONFLICT);
    BH_CHECK_DONE();
}

static void
names_of_before(void **state)
{
    struct scenario *scenario = *state;

    assert_int_equal(claims_read(scenario, (struct bh_record){ .verb = "daemon.start", .version = 2 }),
                     BH_OK);
    name(scenario, 1, "alice", none);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_NAMES), 0);
    BH_CHECK_EQ("not bound", scenario->result.names.unbound, 1);
    BH_CHECK_EQ("no upgrade", scenario->result.bound_from, UINT64_MAX);
    assert_int_equal(
        bind(scenario, "alice",
             (struct bh_record){ .verb = BH_RECORD_NAMES_BIND, .obj = { BH_RECORD_UPGRADE, 2 } }),
        BH_OK);
    (void)differences(scenario, 0);
    BH_CHECK_EQ("bound from", scenario->result.bound_from, 1);
    BH_CHECK_DONE();
}

/* ---- jobs ---- */

#define SPEC "5e00000000000000000000000000000000000000000000000000000000000000"
#define SUBMIT                                                                                               \
    "{\"submit\":{\"contract\":\"checkpoint\",\"count\":1,\"deadline_ns\":\"5000\",\"gang\":2,\"job\":7,"    \
    "\"kind\":\"service\",\"principal\":1,\"priority\":\"high\",\"sku\":3,\"spec\":\"" SPEC                  \
    "\",\"tenant\":5,"                                                                                       \
    "\"time_limit_ns\":\"900\"}}"

static struct bh_claimed_job
row_of_7(void)
{
    return (struct bh_claimed_job){ .job = 7,
                                    .tenant_id = 5,
                                    .principal_id = 1,
                                    .count = 1,
                                    .tenant = "acme",
                                    .principal = "alice",
                                    .sku = "small",
                                    .state = "completed",
                                    .reason = "exited",
                                    .submitted_ns = 1001,
                                    .started_ns = 1002,
                                    .ended_ns = 1003,
                                    .spec = spec,
                                    .kind = "service",
                                    .contract = "checkpoint",
                                    .priority = 3,
                                    .gang = 2,
                                    .checkpoint_signal = 10,
                                    .time_limit_ns = 900,
                                    .deadline_ns = 5000,
                                    .ended_by = 3,
                                    .place = { 4, 1, "vm", "GPU-3f2a whole", "B" } };
}

/* Job 7 begins at 1002, where its row says. */
static bh_rc
begin_7(struct scenario *scenario)
{
    struct bh_job_status state = { .job = 7, .started_ns = 1002, .state = "running" };
    const struct bh_claimed_job row = row_of_7();
    char memory[BH_JOB_STATUS_ITEM_MAX + 3];
    struct bh_buf list;

    bh_job_placement_digest(&bh_crypto_openssl, &row.place, state.row);
    bh_buf_init_fixed(&list, memory, sizeof memory);
    bh_buf_putc(&list, '[');
    bh_job_status_put(&list, &state);
    bh_buf_putc(&list, ']');
    return claims_read(scenario,
                       (struct bh_record){ .verb = "node.started", .jobs_json = bh_buf_text(&list) });
}

static void
live_and_end(struct scenario *scenario)
{
    assert_int_equal(bind(scenario, "alice", (struct bh_record){ 0 }), BH_OK);
    name(scenario, 1, "alice", keys[0]);
    name(scenario, 2, "root", keys[1]);
    assert_int_equal(claims_read(scenario, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT }),
                     BH_OK);
    assert_int_equal(begin_7(scenario), BH_OK);
    assert_int_equal(
        claims_read(scenario,
                    (struct bh_record){ .verb = "node.ended",
                                        .jobs_json = "[{\"cause\":\"exited\",\"ended\":\"1003\",\"job\":7,"
                                                     "\"state\":\"completed\"}]" }),
        BH_OK);
}

static void
jobs_that_are_what_is_said(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_job row = row_of_7();

    live_and_end(scenario);
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_NAMES | BH_CLAIMS_JOBS), 0);
    BH_CHECK_EQ("good", scenario->result.jobs.good, 1);
    BH_CHECK_DONE();
}

/* The records do not know of an erasure that came after them; a store is of one moment. */
static void
names_erased_since(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_job row = row_of_7();

    live_and_end(scenario);
    row.principal = "(erased)";
    row.exported = true;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("differences", differences(scenario, 0), 0);
    BH_CHECK_EQ("good", scenario->result.jobs.good, 1);
    row.exported = false;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("of a store", differences(scenario, 0), 1);
    row.principal = "root";
    row.exported = true;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("another name, and it stands twice", differences(scenario, 0), 3);
    BH_CHECK_DONE();
}

#define PLACE "node, pieces, grade, lease or number of restarts"

/* What is not 0 or NULL in `change`. */
static void
change_row(struct bh_claimed_job *row, const struct bh_claimed_job *change)
{
#define TAKE(member) row->member = change->member ? change->member : row->member
    TAKE(tenant_id);
    TAKE(principal_id);
    TAKE(principal);
    TAKE(count);
    TAKE(submitted_ns);
    TAKE(spec);
    TAKE(state);
    TAKE(started_ns);
    TAKE(ended_ns);
    TAKE(reason);
    TAKE(exit_status);
    TAKE(priority);
    TAKE(gang);
    TAKE(checkpoint_signal);
    TAKE(time_limit_ns);
    TAKE(deadline_ns);
    TAKE(ended_by);
    TAKE(kind);
    TAKE(contract);
    TAKE(place.lease);
    TAKE(place.restarts);
    TAKE(place.node);
    TAKE(place.partitions);
    TAKE(place.grade);
#undef TAKE
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
        { "priority", { .priority = 1 }, 1 },
        { "gang", { .gang = 3 }, 1 },
        { "signal for checkpoints", { .checkpoint_signal = 9 }, 1 },
        { "time limit", { .time_limit_ns = 1 }, 1 },
        { "deadline", { .deadline_ns = 1 }, 1 },
        { "kind", { .kind = "batch" }, 1 },
        { "contract", { .contract = "never" }, 1 },
        { PLACE, { .place = { .lease = 5 } }, 2 },
        { PLACE, { .place = { .restarts = 2 } }, 2 },
        { PLACE, { .place = { .node = "other" } }, 2 },
        { PLACE, { .place = { .partitions = "GPU-3f2b whole" } }, 2 },
        { PLACE, { .place = { .grade = "B unverified" } }, 2 },
        { "state", { .state = "failed" }, 3 },
        { "start", { .started_ns = 1 }, 3 },
        { "end", { .ended_ns = 1 }, 3 },
        { "cause of the end", { .reason = "signalled" }, 3 },
        { "record of the end", { .ended_by = 2 }, 3 },
        { "exit status", { .exit_status = 1 }, 3 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_claimed_job row = row_of_7();
        const struct bh_claimed_job *change = &rows[i].row;
        struct scenario *scenario;
        char expected[120];

        claims_end(state);
        claims_begin(state);
        scenario = *state;
        live_and_end(scenario);
        change_row(&row, change);
        bh_claims_job(scenario->claims, &row);
        BH_CHECK_EQ(rows[i].what, differences(scenario, BH_CLAIMS_JOBS), 1);
        snprintf(expected, sizeof expected, "job 7: its %s is not what record %d says\n", rows[i].what,
                 (int)rows[i].record);
        BH_CHECK_STR(rows[i].what, scenario->result.differing, expected);
    }
    BH_CHECK_DONE();
}

static void
jobs_that_lack(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_job row = row_of_7();

    live_and_end(scenario);
    row.job = 8;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_JOBS), 2);
    BH_CHECK_STR("says which", scenario->result.differing,
                 "job 8 is in the table, and no record submitted it\n"
                 "job 7 is missing in the table; record 1 speaks of it\n");
    BH_CHECK_DONE();
}

/* Version 2 says how a job was submitted and not what became of it. */
static void
jobs_of_before(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_job row = row_of_7();

    scenario->seq = 1;
    assert_int_equal(
        claims_read(scenario, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT, .version = 2 }),
        BH_OK);
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_JOBS), 0);
    BH_CHECK_EQ("not bound", scenario->result.jobs.unbound, 1);
    row.tenant_id = 6;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("but the tenant is", differences(scenario, BH_CLAIMS_JOBS), 1);
    BH_CHECK_DONE();
}

static void
jobs_that_were_pruned(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_job row = row_of_7();

    bh_claims_skip(scenario->claims, 0);
    scenario->seq = 1;
    assert_int_equal(claims_read(scenario, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT }),
                     BH_OK);
    row.job = 6;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("no difference", differences(scenario, 0), 0);
    BH_CHECK_EQ("not bound", scenario->result.jobs.unbound, 1);
    row.job = 8;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("too late to be one of them", differences(scenario, 0), 1);
    BH_CHECK_EQ("submitted twice",
                claims_read(scenario, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT }),
                BH_CONFLICT);
    BH_CHECK_DONE();
}

/* What version 4 added to rows is not looked at in older logs, and it says from when on it is. */
static void
columns_of_before(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_job row = row_of_7();

    scenario->seq = 1;
    assert_int_equal(
        claims_read(scenario, (struct bh_record){ .verb = "job.submit", .ev_json = SUBMIT, .version = 3 }),
        BH_OK);
    row.state = "pending";
    row.started_ns = row.ended_ns = row.ended_by = 0;
    row.exit_status = -1;
    row.priority = 1;
    row.place.node = "other";
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_JOBS), 0);
    BH_CHECK_EQ("good", scenario->result.jobs.good, 1);
    BH_CHECK_EQ("all of version 3", scenario->result.rows_from, UINT64_MAX);
    assert_int_equal(begin_7(scenario), BH_OK);
    BH_CHECK_EQ("where it began is bound", differences(scenario, 0), 0);
    row = row_of_7();
    row.state = "running";
    row.ended_ns = row.ended_by = 0;
    row.exit_status = -1;
    row.priority = 1;
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("as it is", differences(scenario, 0), 0);
    row.place.node = "other";
    bh_claims_job(scenario->claims, &row);
    BH_CHECK_EQ("elsewhere", differences(scenario, 0), 1);
    BH_CHECK_EQ("from there", scenario->result.rows_from, 2);
    BH_CHECK_DONE();
}

/* ---- documents, keys and the site file in force ---- */

#define RECEIPT_KEY "00000000000000000009-00000000000000000005"
#define RECEIPT "{\"begun_ns\":\"5\",\"order\":9,\"result\":\"scrubbed\"}"
#define DIGITS_51 "5100000000000000000000000000000000000000000000000000000000000000"
#define DIGITS_52 "5200000000000000000000000000000000000000000000000000000000000000"
#define DIGITS_55 "5500000000000000000000000000000000000000000000000000000000000000"

static const struct bh_key_facts facts = { 1, 5, 202611, 77 };

/* Records 0 to 5: a receipt, two site files, of which the second twice, an image, a key. */
static void
claims_store(struct scenario *scenario)
{
    struct bh_record scrubbed = { .verb = "node.scrubbed", .obj = { "piece", 3 } };
    struct bh_record made = { .verb = "key.make", .obj = { "key", 4 }, .tenant = 5 };

    bh_crypto_openssl.sha256(RECEIPT, strlen(RECEIPT), "", 0, scrubbed.text);
    bh_key_facts_digest(&bh_crypto_openssl, &facts, made.text);
    assert_int_equal(claims_read(scenario, scrubbed), BH_OK);
    for (uint8_t i = 0; i < 3; i++)
        assert_int_equal(claims_read(scenario, (struct bh_record){ .verb = "site.apply",
                                                                   .obj = { "site", 0 },
                                                                   .actor = { .id = 2 },
                                                                   .text = { i ? 0x52 : 0x51 } }),
                         BH_OK);
    assert_int_equal(
        claims_read(scenario,
                    (struct bh_record){ .verb = "job.image", .obj = { "job", 7 }, .text = { 0x55 } }),
        BH_OK);
    assert_int_equal(claims_read(scenario, made), BH_OK);
}

struct kept_rows {
    const char *receipt_key, *receipt, *first, *second, *image, *site, *revision;
    struct bh_claimed_key key;
};

static struct kept_rows
good_rows(char receipt[300])
{
    uint8_t digest[32];
    struct bh_buf text;

    bh_crypto_openssl.sha256(RECEIPT, strlen(RECEIPT), "", 0, digest);
    bh_buf_init_fixed(&text, receipt, 300);
    bh_buf_puts(&text, "{\"digest\":\"");
    bh_buf_put_hex(&text, digest, sizeof digest);
    bh_buf_puts(&text, "\",\"receipt\":" RECEIPT ",\"record\":0}");
    return (struct kept_rows){
        RECEIPT_KEY,
        bh_buf_text(&text),
        "{\"at_ns\":\"1001\",\"changes\":5,\"digest\":\"" DIGITS_51 "\",\"principal\":2}",
        "{\"at_ns\":\"1002\",\"changes\":1,\"digest\":\"" DIGITS_52 "\",\"principal\":2}",
        "{\"digest\":\"" DIGITS_55 "\"}",
        DIGITS_52,
        "2",
        { .id = 4, .facts = facts },
    };
}

static void
give_key(struct scenario *scenario, const struct bh_claimed_key *row)
{
    assert_int_equal(bh_claims_key(scenario->claims, row, &scenario->err), BH_OK);
}

static void
claims_give(struct scenario *scenario, const struct kept_rows *rows)
{
    const struct {
        enum bh_claimed_kind kind;
        const char *key, *value;
    } documents[] = {
        { BH_CLAIMED_RECEIPT, rows->receipt_key, rows->receipt },
        { BH_CLAIMED_REVISION, "00000000000000000001", rows->first },
        { BH_CLAIMED_REVISION, "00000000000000000002", rows->second },
        { BH_CLAIMED_IMAGE, "00000000000000000007", rows->image },
    };

    for (size_t i = 0; i < BH_COUNT(documents); i++) {
        const struct bh_claimed_document row = { documents[i].kind, documents[i].key, documents[i].value };

        if (row.value)
            bh_claims_document(scenario->claims, &row);
    }
    if (rows->key.id)
        give_key(scenario, &rows->key);
    bh_claims_site(scenario->claims, rows->site, rows->revision);
}

static void
kept_as_is_said(void **state)
{
    struct scenario *scenario = *state;
    char receipt[300];
    const struct kept_rows rows = good_rows(receipt);

    claims_store(scenario);
    claims_give(scenario, &rows);
    BH_CHECK_EQ("differences", differences(scenario, BH_CLAIMS_DOCUMENTS | BH_CLAIMS_KEYS), 0);
    BH_CHECK_EQ("documents", scenario->result.documents.good, 4);
    BH_CHECK_EQ("keys", scenario->result.keys.good, 1);
    BH_CHECK("needed", bh_claims_need(scenario->claims, BH_CLAIMS_DOCUMENTS)
                           && bh_claims_need(scenario->claims, BH_CLAIMS_KEYS));
    BH_CHECK_DONE();
}

static void
kept_otherwise(void **state)
{
    char receipt[300];
    const struct kept_rows good = good_rows(receipt);
    struct bh_claimed_key tenant = good.key, month = good.key, gone = good.key, unknown = good.key;
    struct kept_rows rows[16];
    const char *said[16];
    size_t count = 0;

    tenant.facts.tenant_id = 6;
    month.facts.month = 202612;
    gone.destroyed_ns = 9;
    unknown.id = 5;
#define ROW(member, value, text)                                                                             \
    do {                                                                                                     \
        rows[count] = good;                                                                                  \
        rows[count].member = value;                                                                          \
        said[count++] = text;                                                                                \
    } while (0)
    ROW(receipt_key, "00000000000000000008-00000000000000000005", "receipt 00000000000000000008");
    ROW(receipt, "{\"digest\":\"" DIGITS_51 "\",\"receipt\":" RECEIPT ",\"record\":0}", "receipt 0");
    ROW(receipt, NULL, "receipt of record 0 is missing in the table; record 0 speaks of it");
    ROW(first, NULL, "site revision 1 is missing in the table; record 1 speaks of it");
    ROW(first, good.second, "site revision 1: it is not what record 1 says");
    ROW(second, "{\"at_ns\":\"1003\",\"digest\":\"" DIGITS_52 "\",\"principal\":2}", "site revision 2: it");
    ROW(second, "{\"at_ns\":\"1002\",\"digest\":\"" DIGITS_52 "\",\"principal\":3}", "site revision 2: it");
    ROW(image, "{\"digest\":\"" DIGITS_51 "\"}", "image of job 7: it is not what record 4 says");
    ROW(site, DIGITS_51, "the site file in force is not the one that record 3 put in force");
    ROW(site, NULL, "the site file in force is not the one that record 3 put in force");
    ROW(revision, "1", "the site file in force has revision 1, as the store says; record 2 put");
    ROW(key, tenant, "key 4: it is not the one that record 5 made");
    ROW(key, month, "key 4: it is not the one that record 5 made");
    ROW(key, gone, "key 4 is destroyed in the table, and no record says so");
    ROW(key, unknown, "key 5 is in the table, and no record made it");
    ROW(key, (struct bh_claimed_key){ 0 }, "key 4 is missing in the table; record 5 made it");
#undef ROW
    for (size_t i = 0; i < count; i++) {
        struct scenario *scenario;

        claims_end(state);
        claims_begin(state);
        scenario = *state;
        claims_store(scenario);
        claims_give(scenario, &rows[i]);
        BH_CHECK(said[i], differences(scenario, BH_CLAIMS_DOCUMENTS | BH_CLAIMS_KEYS) > 0);
        BH_CHECK(scenario->result.differing,
                 strncmp(scenario->result.differing, said[i], strlen(said[i])) == 0);
    }
    BH_CHECK_DONE();
}

/* A document of before version 4 may have the number of the names that came with its record. */
static void
numbers_of_before(void **state)
{
    static const struct {
        uint32_t version;
        uint64_t differences;
        const char *key;
        /* clang-format off */
    } rows[] = {
        { 3, 0, "00000000000000000000" }, { 3, 0, "00000000000000000002" },
        { 3, 1, "00000000000000000001" }, { 4, 2, "00000000000000000000" },
        { 4, 0, "00000000000000000002" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const struct bh_claimed_document row = { BH_CLAIMED_REVISION, rows[i].key,
                                                 "{\"at_ns\":\"1002\",\"changes\":5,\"digest\":\"" DIGITS_51
                                                 "\",\"principal\":2}" };
        struct scenario *scenario;

        claims_end(state);
        claims_begin(state);
        scenario = *state;
        for (uint32_t give = 0; give < 2; give++)
            assert_int_equal(claims_read(scenario, (struct bh_record){ .verb = BH_RECORD_NAMES_GIVE,
                                                                       .version = rows[i].version }),
                             BH_OK);
        assert_int_equal(claims_read(scenario, (struct bh_record){ .verb = "site.apply",
                                                                   .obj = { "site", 0 },
                                                                   .actor = { .id = 2 },
                                                                   .text = { 0x51 },
                                                                   .version = rows[i].version }),
                         BH_OK);
        bh_claims_document(scenario->claims, &row);
        BH_CHECK_EQ(rows[i].key, differences(scenario, BH_CLAIMS_DOCUMENTS), rows[i].differences);
    }
    BH_CHECK_DONE();
}

static void
keys_that_were_destroyed(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_key key = { .id = 4, .facts = facts };

    claims_store(scenario);
    assert_int_equal(
        claims_read(scenario, (struct bh_record){ .verb = "key.destroyed", .obj = { "key", 4 } }), BH_OK);
    give_key(scenario, &key);
    BH_CHECK_EQ("it is still there", differences(scenario, 0), 1);
    key.destroyed_ns = 1006;
    key.empty = true;
    give_key(scenario, &key);
    BH_CHECK_EQ("destroyed", differences(scenario, 0), 1);
    BH_CHECK_EQ("erased", scenario->result.keys.erased, 1);
    key.destroyed_ns = 1006; /* a row of before, a little later than its record, which is the last */
    key.exported = true;
    give_key(scenario, &key);
    BH_CHECK_EQ("of an export, where it stands twice", differences(scenario, 0), 2);
    BH_CHECK_EQ("erased, too", scenario->result.keys.erased, 2);
    BH_CHECK_DONE();
}

/* Of an export, what came after its last record; and rows of records that were pruned. */
static void
kept_later_or_before(void **state)
{
    struct scenario *scenario = *state;
    struct bh_claimed_key key = { .id = 5, .facts = { .created_ns = 1006 }, .exported = true };
    const struct bh_claimed_document document = { BH_CLAIMED_IMAGE, "00000000000000000008",
                                                  "{\"digest\":\"" DIGITS_55 "\"}" };

    claims_store(scenario);
    give_key(scenario, &key);
    BH_CHECK_EQ("made later", differences(scenario, 0), 0);
    key = (struct bh_claimed_key){ .id = 4, .facts = facts, .destroyed_ns = 1006, .exported = true };
    give_key(scenario, &key);
    BH_CHECK_EQ("destroyed later", differences(scenario, 0), 0);
    bh_claims_document(scenario->claims, &document);
    BH_CHECK_EQ("of no job", differences(scenario, 0), 1);
    claims_end(state);
    claims_begin(state);
    scenario = *state;
    bh_claims_skip(scenario->claims, 0);
    bh_claims_document(scenario->claims, &document);
    key.exported = false;
    give_key(scenario, &key);
    BH_CHECK_EQ("pruned", differences(scenario, 0), 0);
    BH_CHECK_EQ("not bound", scenario->result.documents.unbound + scenario->result.keys.unbound, 2);
    BH_CHECK_DONE();
}

/* As many as there is room for; then it says so. */
static void
claims_many(void **state)
{
    struct scenario *scenario = *state;
    bh_rc rc = BH_OK;
    uint64_t count = 0;

    for (; rc == BH_OK && count < 100000; count++) {
        struct bh_record record = { .verb = "site.apply" };

        memcpy(record.text, &(uint64_t){ count + 1 }, 8);
        rc = claims_read(scenario, record);
    }
    BH_CHECK_EQ("full", rc, BH_FULL);
    BH_CHECK("of many", count > 1000);
    BH_CHECK("differences", differences(scenario, BH_CLAIMS_TEXTS) >= count - 1);
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, claims_begin, claims_end)
    const struct CMUnitTest tests[] = {
        TEST(names_that_are_bound),
        TEST(names_that_were_swapped),
        TEST(names_that_lack),
        TEST(names_that_were_erased),
        TEST(names_bound_again),
        TEST(names_of_before),
        TEST(jobs_that_are_what_is_said),
        TEST(names_erased_since),
        TEST(jobs_that_were_changed),
        TEST(jobs_that_lack),
        TEST(jobs_of_before),
        TEST(jobs_that_were_pruned),
        TEST(columns_of_before),
        TEST(kept_as_is_said),
        TEST(kept_otherwise),
        TEST(keys_that_were_destroyed),
        TEST(kept_later_or_before),
        TEST(numbers_of_before),
        TEST(claims_many),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
