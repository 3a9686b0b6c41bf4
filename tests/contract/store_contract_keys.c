#include "tests/contract/store_contract.h"

#include "base/buf.h"

/* The contract of ports/store.h as far as keys and erasing go. */

static bool
print_key(void *self, const struct bh_key_row *row)
{
    bh_buf_printf(self, "%u kind %u tenant %u month %u by %u made %u gone %u bytes %u..%u;",
                  (unsigned)row->id, (unsigned)row->kind, (unsigned)row->tenant_id, (unsigned)row->month,
                  (unsigned)row->parent, (unsigned)row->created_ns, (unsigned)row->shredded_ns,
                  (unsigned)row->wrapped[0], (unsigned)row->wrapped[BH_KEY_WRAPPED_BYTES - 1]);
    return true;
}

static const char *
keys(struct fixture *f)
{
    static char text[400];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_keys, print_key, &out);
    return bh_buf_text(&out);
}

void
bh_contract_keeps_keys(void **state)
{
    struct fixture *f = *state;
    struct bh_key_row row = { .id = 2,
                              .kind = BH_KEY_KIND_AUDIT,
                              .tenant_id = 3,
                              .month = 202611,
                              .parent = 1,
                              .created_ns = 9,
                              .wrapped = { 5, [BH_KEY_WRAPPED_BYTES - 1] = 6 } };

    begin(f);
    MUST(f, put_key, &row);
    BH_CHECK_STR("not yet", keys(f), "");
    row = (struct bh_key_row){ .id = 1, .parent = 77, .wrapped = { 1 } };
    MUST(f, put_key, &row);
    commit(f);
    BH_CHECK_STR("in order", keys(f),
                 "1 kind 0 tenant 0 month 0 by 77 made 0 gone 0 bytes 1..0;"
                 "2 kind 1 tenant 3 month 202611 by 1 made 9 gone 0 bytes 5..6;");
    begin(f);
    row = (struct bh_key_row){ .id = 2,
                               .kind = BH_KEY_KIND_AUDIT,
                               .tenant_id = 3,
                               .month = 202611,
                               .parent = 1,
                               .created_ns = 9,
                               .shredded_ns = 10 };
    MUST(f, put_key, &row);
    commit(f);
    BH_CHECK_STR("in place", keys(f),
                 "1 kind 0 tenant 0 month 0 by 77 made 0 gone 0 bytes 1..0;"
                 "2 kind 1 tenant 3 month 202611 by 1 made 9 gone 10 bytes 0..0;");
    BH_CHECK_DONE();
}

static void
put_job(struct fixture *f, uint64_t job, uint32_t tenant, uint8_t text)
{
    struct bh_job_row row = bh_contract_job_row(job);

    row.tenant_id = tenant;
    row.name = "secret-name";
    row.spec.bytes[0] = text;
    MUST(f, put_job, &row);
}

/* The tenant that they count against; jobs of others may have them, too. */
enum { TEXTS_TENANT = 1 };

static uint64_t
kept_of(struct fixture *f, uint32_t tenant)
{
    uint64_t bytes = 0;

    must(f, f->store.ops->count_texts(f->store.self, tenant, &bytes, &f->err));
    return bytes;
}

static void
put_text_of(struct fixture *f, uint32_t tenant, uint8_t first, const char *text)
{
    const struct bh_digest digest = { { first } };

    MUST(f, put_text, &(struct bh_text_row){ digest, tenant, { text, strlen(text) } });
}

static void
put_text(struct fixture *f, uint8_t first, const char *text)
{
    put_text_of(f, TEXTS_TENANT, first, text);
}

/* The form of a text that the key sealed. */
static const char *
sealed_by(uint64_t key)
{
    static char text[160];

    snprintf(text, sizeof text, "{\"c\":\"AAAA\",\"h\":\"%.43s=\",\"k\":\"%llu\",\"n\":\"%.32s\"}",
             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", (unsigned long long)key,
             "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    return text;
}

static bool
take_name(void *self, const struct bh_job_row *row)
{
    *(bool *)self = strcmp(row->name, BH_ERASED) != 0;
    return true;
}

static bool
is_named(struct fixture *f, uint64_t job)
{
    bool named = false;

    MUST(f, get_job, job, take_name, &named);
    return named;
}

static bh_rc
find_text(struct fixture *f, uint8_t first)
{
    const struct bh_digest digest = { { first } };
    const char *text;

    return CALL(f, get_text, &digest, f->arena, &text);
}

static bool
print_names(void *self, const struct bh_job_row *row)
{
    bh_buf_printf(self, "%s %s;", row->tenant, row->principal);
    return true;
}

/* A tenant's or a principal's name in the rows of its jobs, also of this transaction. */
void
bh_contract_erases_names(void **state)
{
    struct fixture *f = *state;
    const struct bh_job_filter all = { .limit = 10 };
    const struct bh_reply_row reply = { 3, "key", { { 1 } }, 201, "{}", 99 };
    struct bh_reply_row read;
    char text[400];
    struct bh_buf out;

    begin(f);
    for (uint32_t i = 1; i <= 3; i++) {
        struct bh_job_row row = bh_contract_job_row(i);

        row.tenant_id = i;
        row.principal_id = 10 * i;
        row.tenant = "acme";
        row.principal = "alice";
        MUST(f, put_job, &row);
        if (i == 2) {
            MUST(f, put_reply, &reply);
            commit(f);
            begin(f);
        }
    }
    MUST(f, erase_name, BH_NAME_PRINCIPAL, 10);
    MUST(f, erase_name, BH_NAME_TENANT, 3);
    MUST(f, erase_name, BH_NAME_GROUP, 2);
    commit(f);
    bh_buf_init_fixed(&out, text, sizeof text);
    MUST(f, list_jobs, &all, print_names, &out);
    BH_CHECK_STR("those alone", bh_buf_text(&out), "acme " BH_ERASED ";acme alice;" BH_ERASED " alice;");
    BH_CHECK_EQ("replies", CALL(f, get_reply, 3, "key", f->arena, &read), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

/* Jobs 10, 20, 30 are of tenant 1 and were submitted at 10, 20, 30; job 25 is another's. */
void
bh_contract_erases_jobs(void **state)
{
    struct fixture *f = *state;
    const struct bh_erasure which = { .tenant_id = 1, .from_ns = 20, .before_ns = 30 };
    const struct bh_reply_row reply = { 3, "key", { { 1 } }, 201, "{}", 99 };
    struct bh_reply_row read;

    begin(f);
    put_job(f, 10, 1, 'a');
    put_job(f, 20, 1, 'b');
    put_job(f, 21, 1, 'c');
    put_job(f, 22, 1, 'd');
    put_job(f, 25, 2, 'c');
    put_job(f, 30, 1, 'e');
    put_text(f, 'a', "{\"plain\":1}");
    put_text(f, 'b', "{\"plain\":2}");
    put_text(f, 'c', "{\"shared\":3}");
    put_text(f, 'd', sealed_by(7));
    put_text(f, 'e', "{\"plain\":5}");
    MUST(f, put_reply, &reply);
    commit(f);

    BH_CHECK_EQ("bytes that are kept", kept_of(f, TEXTS_TENANT), 11 + 11 + 12 + strlen(sealed_by(7)) + 11);
    BH_CHECK_EQ("of another tenant", kept_of(f, 2), 0);
    BH_CHECK_EQ("what counts against nobody", kept_of(f, 0), 0);
    begin(f);
    put_job(f, 23, 1, 'a'); /* of this very transaction */
    MUST(f, erase_jobs, &which);
    f->store.ops->rollback(f->store.self);
    BH_CHECK("rolled back", is_named(f, 20));
    begin(f);
    put_job(f, 23, 1, 'a');
    MUST(f, erase_jobs, &which);
    commit(f);
    must(f, f->store.ops->scrub(f->store.self, &f->err));

    BH_CHECK("before", is_named(f, 10));
    BH_CHECK("meant", !is_named(f, 20) && !is_named(f, 21) && !is_named(f, 22));
    BH_CHECK("just put", !is_named(f, 23));
    BH_CHECK("another tenant's", is_named(f, 25));
    BH_CHECK("after", is_named(f, 30));
    BH_CHECK_EQ("needed by one before", find_text(f, 'a'), BH_OK);
    BH_CHECK_EQ("plain", find_text(f, 'b'), BH_NOT_FOUND);
    BH_CHECK_EQ("needed by another tenant", find_text(f, 'c'), BH_OK);
    BH_CHECK_EQ("sealed: it goes with its key", find_text(f, 'd'), BH_OK);
    BH_CHECK_EQ("needed by one after", find_text(f, 'e'), BH_OK);
    BH_CHECK_EQ("bytes that are left", kept_of(f, TEXTS_TENANT), 11 + 12 + strlen(sealed_by(7)) + 11);
    BH_CHECK_EQ("reply", CALL(f, get_reply, 3, "key", f->arena, &read), BH_NOT_FOUND);
    begin(f);
    put_text(f, 'b', "{\"plain\":2}");
    commit(f);
    BH_CHECK_EQ("put again", find_text(f, 'b'), BH_OK);
    BH_CHECK_DONE();
}

/* All that a key sealed goes, whatever it is, of this transaction and of those before; what other keys
 * sealed, what is not sealed and what is no tenant's stays. */
void
bh_contract_erases_sealed_texts(void **state)
{
    const uint64_t large = 9007199254740991; /* the last number that there can be */
    struct fixture *f = *state;
    uint64_t most;

    begin(f);
    put_text(f, 'a', sealed_by(7));
    put_text(f, 'b', sealed_by(77));
    put_text(f, 'c', sealed_by(large));
    put_text(f, 'd', "{\"args\":[\"true\"]}");
    put_text(f, 'e', "{\"c\":\"k\"}");
    put_text_of(f, 0, 'f', sealed_by(7));
    put_text_of(f, 2, 'g', sealed_by(7));
    commit(f);
    most = kept_of(f, TEXTS_TENANT);
    begin(f);
    put_text(f, 'h', sealed_by(7));
    MUST(f, erase_sealed, 7);
    f->store.ops->rollback(f->store.self);
    BH_CHECK_EQ("rolled back", kept_of(f, TEXTS_TENANT), most);
    begin(f);
    put_text(f, 'h', sealed_by(7));
    MUST(f, erase_sealed, 7);
    MUST(f, erase_sealed, 99);
    MUST(f, erase_sealed, 0);
    BH_CHECK_EQ("not yet", find_text(f, 'a'), BH_OK);
    commit(f);
    BH_CHECK_EQ("its own", find_text(f, 'a'), BH_NOT_FOUND);
    BH_CHECK_EQ("just put", find_text(f, 'h'), BH_NOT_FOUND);
    BH_CHECK_EQ("another tenant's", find_text(f, 'g'), BH_NOT_FOUND);
    BH_CHECK_EQ("another key's", find_text(f, 'b'), BH_OK);
    BH_CHECK_EQ("plain", find_text(f, 'd'), BH_OK);
    BH_CHECK_EQ("nearly sealed", find_text(f, 'e'), BH_OK);
    BH_CHECK_EQ("nobody's", find_text(f, 'f'), BH_OK);
    BH_CHECK_EQ("bytes", kept_of(f, TEXTS_TENANT), most - strlen(sealed_by(7)));
    begin(f);
    MUST(f, erase_sealed, large);
    put_text(f, 'a', sealed_by(8));
    commit(f);
    BH_CHECK_EQ("of a large number", find_text(f, 'c'), BH_NOT_FOUND);
    BH_CHECK_EQ("put again, by another key", find_text(f, 'a'), BH_OK);
    BH_CHECK_DONE();
}
