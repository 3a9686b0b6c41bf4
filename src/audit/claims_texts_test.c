#include <string.h>

#include "audit/claims.h"
#include "base/test.h"
#include "ports/crypto.h"

/* A text of a tenant is missing.  Which destroyed key excuses that, as records and rows say. */

#define NS(seconds) (UINT64_C(seconds) * BH_NS_PER_S)

enum { TENANT = 5, OTHER = 6, KEY = 4, ARENA_BYTES = 1 << 20, NONE = 1 };

/* Times of 2026: noon of a day, the first moment of November, and of what all logs end with. */
#define OCTOBER_NS NS(1792065600)
#define NOVEMBER_NS NS(1794484800)
#define BORDER_NS NS(1793491200)
#define LAST_NS NS(1797768000)

struct row {
    const char *name;
    uint64_t text_ns;
    uint32_t tenant, version;          /* of the text's record; 0: TENANT, the present version */
    const char *type;                  /* of its object */
    bool late;                         /* after the destruction */
    uint64_t made_ns;                  /* of key.make; 0: there is none */
    uint32_t made_version, made_month; /* NONE: the key seals no texts */
    uint32_t key_month;                /* in the key's row; 0: no rows of keys are given */
    uint64_t destroyed_ns;             /* in the row */
    bool destroyed, exported, pruned;
    uint64_t differences, erased, unbound;
};

#define OCTOBER .made_ns = OCTOBER_NS, .made_month = 202610
#define OF_OCTOBER OCTOBER, .key_month = 202610
#define DESTROYED .destroyed = true, .destroyed_ns = LAST_NS - 1
#define SINCE .exported = true, .destroyed_ns = LAST_NS

static const struct row rows[] = {
    { "its month", OCTOBER_NS, OF_OCTOBER, DESTROYED, .erased = 1 },
    { "nothing was destroyed", OCTOBER_NS, OF_OCTOBER, .differences = 1 },
    { "the month before", NOVEMBER_NS, OF_OCTOBER, DESTROYED, .differences = 1 },
    { "the month after", OCTOBER_NS, .made_ns = NOVEMBER_NS, .made_month = 202611, .key_month = 202611,
      DESTROYED, .differences = 1 },
    { "another tenant's", OCTOBER_NS, .tenant = OTHER, OF_OCTOBER, DESTROYED, .differences = 1 },
    { "it came after", OCTOBER_NS, .late = true, OF_OCTOBER, DESTROYED, .differences = 1 },
    { "a moment after the month", BORDER_NS + NS(59), OF_OCTOBER, DESTROYED, .erased = 1 },
    { "a minute after the month", BORDER_NS + NS(60), OF_OCTOBER, DESTROYED, .differences = 1 },
    { "a moment before the month", BORDER_NS - 1, .made_ns = BORDER_NS, .made_month = 202611,
      .key_month = 202611, DESTROYED, .differences = 1 },
    { "the tenant's own key", OCTOBER_NS, .made_ns = OCTOBER_NS, .made_month = NONE, .key_month = NONE,
      DESTROYED, .differences = 1 },
    { "the site's own text", OCTOBER_NS, .tenant = UINT32_MAX, OF_OCTOBER, DESTROYED, .differences = 1 },
    { "the row says another month", NOVEMBER_NS, OCTOBER, .key_month = 202611, DESTROYED, .differences = 2 },
    /* rows that were read after the last record */
    { "since the last record", OCTOBER_NS, OF_OCTOBER, SINCE, .erased = 1 },
    { "since, another month", NOVEMBER_NS, OF_OCTOBER, SINCE, .differences = 1 },
    { "since, of a store", OCTOBER_NS, OF_OCTOBER, .destroyed_ns = LAST_NS, .differences = 2 },
    { "before, and no record says so", OCTOBER_NS, OF_OCTOBER, .exported = true, .destroyed_ns = LAST_NS - 1,
      .differences = 2 },
    /* records of before */
    { "a key of version 3", OCTOBER_NS, OF_OCTOBER, .made_version = 3, DESTROYED, .erased = 1 },
    { "its row is not asked", NOVEMBER_NS, OCTOBER, .made_version = 3, .key_month = 202611, DESTROYED,
      .differences = 1 },
    { "made a moment after the month", OCTOBER_NS, .made_ns = BORDER_NS + NS(1), .made_version = 3,
      .key_month = 202610, DESTROYED, .erased = 1 },
    { "no rows of keys", OCTOBER_NS, OCTOBER, .destroyed = true, .erased = 1 },
    { "no rows of keys, another month", NOVEMBER_NS, OCTOBER, .destroyed = true, .differences = 1 },
    { "a text of version 1, any month", NOVEMBER_NS, .version = 1, OF_OCTOBER, DESTROYED, .erased = 1 },
    { "of version 1, without a key", OCTOBER_NS, .version = 1, .destroyed = true, .erased = 1 },
    { "of version 2, without a key", OCTOBER_NS, .version = 2, .destroyed = true, .differences = 1 },
    { "of version 1, and it came after", OCTOBER_NS, .version = 1, .late = true, OF_OCTOBER, DESTROYED,
      .differences = 1 },
    { "of version 1, since the last record", NOVEMBER_NS, .version = 1, OF_OCTOBER, SINCE, .erased = 1 },
    /* the key's own record was pruned */
    { "pruned", OCTOBER_NS, .pruned = true, .key_month = 202610, DESTROYED, .erased = 1 },
    { "pruned, another month", OCTOBER_NS, .pruned = true, .key_month = 202609, DESTROYED, .differences = 1 },
    { "pruned, since the last record", OCTOBER_NS, .pruned = true, .key_month = 202610, SINCE, .erased = 1 },
    { "pruned, no rows of keys", OCTOBER_NS, .pruned = true, .destroyed = true, .erased = 1 },
    { "pruned, and so is whose text it is", OCTOBER_NS, .pruned = true, .type = "dataset",
      .key_month = 202609, DESTROYED, .unbound = 1 },
};

struct scenario {
    struct bh_arena *arena;
    struct bh_claims *claims;
    uint64_t seq;
};

static void
claims_texts_read(struct scenario *scenario, uint64_t at_ns, struct bh_record record)
{
    struct bh_err err;

    record.seq = scenario->seq++;
    record.ts_ns = at_ns;
    record.version = record.version ? record.version : BH_RECORD_VERSION;
    record.dec.allow = true;
    assert_int_equal(bh_claims_read(scenario->claims, &record, &err), BH_OK);
}

static void
claims_texts_read_text(struct scenario *scenario, const struct row *row)
{
    struct bh_record record = { .verb = "job.exec",
                                .text = { 0x52 },
                                .version = row->version,
                                .tenant = row->tenant ? row->tenant : TENANT };

    if (row->tenant == UINT32_MAX)
        record.tenant = 0;
    snprintf(record.obj.type, sizeof record.obj.type, "%s", row->type ? row->type : "job");
    claims_texts_read(scenario, row->text_ns, record);
}

/* Of the tenant that the row is about; the site's are of none. */
static struct bh_key_facts
facts_of(const struct row *row, uint32_t month)
{
    return (struct bh_key_facts){ 2, row->tenant == UINT32_MAX ? 0 : TENANT, month == NONE ? 0 : month, 77 };
}

/* A key is recorded behind what it sealed first. */
static void
claims_texts_read_key(struct scenario *scenario, const struct row *row)
{
    const struct bh_key_facts facts = facts_of(row, row->made_month);
    struct bh_record record = {
        .verb = "key.make", .obj = { "key", KEY }, .tenant = facts.tenant_id, .version = row->made_version
    };

    if (record.version == 0)
        bh_key_facts_digest(&bh_crypto_openssl, &facts, record.text);
    claims_texts_read(scenario, row->made_ns, record);
}

static void
take_destruction(struct scenario *scenario, const struct row *row)
{
    uint32_t tenant = facts_of(row, 0).tenant_id;

    claims_texts_read(scenario, LAST_NS - 1,
                      (struct bh_record){ .verb = "key.shred", .obj = { "tenant", tenant } });
    if (row->made_ns || row->pruned)
        claims_texts_read(
            scenario, LAST_NS - 1,
            (struct bh_record){ .verb = "key.destroyed", .obj = { "key", KEY }, .tenant = tenant });
}

static void
give_key(struct scenario *scenario, const struct row *row)
{
    const struct bh_claimed_key key = {
        .id = KEY,
        .facts = facts_of(row, row->key_month),
        .destroyed_ns = row->destroyed_ns,
        .empty = row->destroyed_ns > 0,
        .exported = row->exported,
    };
    struct bh_err err;

    assert_int_equal(bh_claims_key(scenario->claims, &key, &err), BH_OK);
}

/* Nothing is given of the text, so it is missing. */
static struct bh_claims_result
claims_texts_judge(struct scenario *scenario, const struct row *row)
{
    struct bh_claims_result result;

    if (row->pruned)
        bh_claims_skip(scenario->claims, scenario->seq++);
    if (!row->late)
        claims_texts_read_text(scenario, row);
    if (row->made_ns)
        claims_texts_read_key(scenario, row);
    if (row->destroyed)
        take_destruction(scenario, row);
    if (row->late)
        claims_texts_read_text(scenario, row);
    claims_texts_read(scenario, LAST_NS, (struct bh_record){ .verb = "daemon.start" });
    if (row->key_month)
        give_key(scenario, row);
    bh_claims_end(scenario->claims, BH_CLAIMS_TEXTS | (row->key_month ? BH_CLAIMS_KEYS : 0), &result);
    return result;
}

static void
a_text_goes_with_its_key(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct scenario scenario = { .arena = bh_arena_new(ARENA_BYTES) };
        struct bh_claims_result result;

        scenario.claims = bh_claims_new(scenario.arena, &bh_crypto_openssl);
        result = claims_texts_judge(&scenario, &rows[i]);
        BH_CHECK_EQ(rows[i].name, result.differences, rows[i].differences);
        BH_CHECK_EQ(rows[i].name, result.texts.erased, rows[i].erased);
        BH_CHECK_EQ(rows[i].name, result.texts.unbound, rows[i].unbound);
        if (rows[i].differences)
            BH_CHECK(rows[i].name, strstr(result.differing, "is missing, and no record erased it"));
        bh_arena_free(scenario.arena);
    }
    BH_CHECK_DONE();
}

/* What records name is held against what stands there; "text" of a snapshot is no text. */
static void
texts_that_are_there(void **state)
{
    static const uint8_t first[32] = { 0x51 }, second[32] = { 0x52 }, unknown[32] = { 0x5e };
    struct scenario scenario = { .arena = bh_arena_new(ARENA_BYTES) };
    struct bh_claims_result result;

    scenario.claims = bh_claims_new(scenario.arena, &bh_crypto_openssl);
    claims_texts_read(&scenario, 1000, (struct bh_record){ .verb = "site.apply", .text = { 0x51 } });
    claims_texts_read(&scenario, 1001,
                      (struct bh_record){ .verb = "node.ended", .tenant = 5, .text = { 0x52 } });
    claims_texts_read(&scenario, 1002,
                      (struct bh_record){ .verb = "job.exec", .tenant = 5, .text = { 0x51 } });
    claims_texts_read(&scenario, 1003, (struct bh_record){ .verb = "snapshot", .text = { 0x54 } });
    bh_claims_text(scenario.claims, &(struct bh_claimed_text){ first, second, 1, false });
    bh_claims_text(scenario.claims, &(struct bh_claimed_text){ second, second, 1, false });
    bh_claims_text(scenario.claims, &(struct bh_claimed_text){ unknown, first, 3, true });
    bh_claims_end(scenario.claims, BH_CLAIMS_TEXTS, &result);
    BH_CHECK_EQ("differences", result.differences, 1);
    BH_CHECK_STR("says which", result.differing,
                 "text 5100000000000000...: it does not have the digest that record 0 names\n");
    BH_CHECK_EQ("good", result.texts.good, 1);
    bh_arena_free(scenario.arena);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_text_goes_with_its_key),
    cmocka_unit_test(texts_that_are_there),
};
BH_TEST_MAIN(tests)
