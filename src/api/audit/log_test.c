#include "api/audit/log.h"

#include "api/fixture_test.h"
#include "audit/merkle.h"
#include "audit/tlog_proof.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/num.h"
#include "base/test.h"

/* A log of 600 records, the odd ones of acme/vision, signed at 500. */
enum { RECORDS = 600, SIGNED = 500 };

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;
static const uint8_t private_key[32] = { 5 };
static struct fixture *f;
static struct received got;
static struct bh_note_key key;
static struct bh_checkpoint head;
static uint8_t hashes[RECORDS][32];
static struct bh_err err;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

static size_t
write_leaf(unsigned seq, char leaf[300])
{
    return (size_t)snprintf(leaf, 300,
                            "{\"obj\":{\"id\":7,\"type\":\"job\"},\"phase\":\"intent\",\"seq\":%u,"
                            "\"tenant\":%d,\"ts\":\"1000\",\"v\":1,\"verb\":\"job_submit\"}",
                            seq, seq % 2 ? 2 : 4);
}

static void
log_put_checkpoint(const struct bh_merkle_frontier *frontier)
{
    const struct bh_store *store = &f->store;
    struct bh_checkpoint_row row = { .size = frontier->size };
    char memory[1024];
    struct bh_buf note;

    head = (struct bh_checkpoint){ .origin = "site", .size = frontier->size };
    bh_merkle_frontier_root(frontier, crypto, head.root);
    bh_buf_init_fixed(&note, memory, sizeof memory);
    assert_int_equal(bh_checkpoint_sign(crypto, &head, private_key, &note, &err), BH_OK);
    row.note = bh_buf_text(&note);
    assert_int_equal(store->ops->begin(store->self, &err), BH_OK);
    assert_int_equal(store->ops->put_checkpoint(store->self, &row, &err), BH_OK);
    assert_int_equal(store->ops->commit(store->self, &err), BH_OK);
}

static int
open_log(void **state)
{
    struct bh_merkle_frontier frontier = { 0 };
    uint8_t public_key[32];

    f = bh_fixture_open();
    for (unsigned i = 0; i < RECORDS; i++) {
        char leaf[300];
        size_t length = write_leaf(i, leaf);

        bh_fixture_put_record(f, i, leaf);
        bh_merkle_leaf(crypto, leaf, length, hashes[i]);
        bh_merkle_frontier_add(&frontier, crypto, hashes[i]);
        if (i + 1 == SIGNED)
            log_put_checkpoint(&frontier);
    }
    return crypto->public_of(private_key, public_key, &err)
           || bh_note_key_make(crypto, "site", public_key, &key, &err);
}

static int
close_log(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static bh_json_value
log_parse(struct bh_json **ret_json)
{
    assert_int_equal(bh_json_parse(got.text, strlen(got.text), ret_json, &err), BH_OK);
    return bh_json_root(*ret_json);
}

static void
a_proof_can_be_checked_without_the_log(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_tlog_proof proof;
    bh_json_value reply;
    const char *leaf;
    uint8_t hash[32];

    SEND(BH_GET, "/v1/records/301/proof", .uid = ALICE);
    BH_CHECK_EQ("status", got.status, 200);
    reply = log_parse(&json);
    BH_CHECK_EQ("size", bh_json_number(bh_json_get(reply, "size"), 0), SIGNED);
    leaf = bh_json_text(bh_json_get(reply, "leaf"), "");
    bh_merkle_leaf(crypto, leaf, strlen(leaf), hash);
    BH_CHECK("leaf", memcmp(hash, hashes[301], 32) == 0);
    assert_int_equal(bh_tlog_proof_parse(bh_json_text(bh_json_get(reply, "proof"), ""), &proof, &err), BH_OK);
    BH_CHECK_EQ("index", proof.index, 301);
    BH_CHECK_EQ("holds", bh_tlog_proof_check(crypto, &key, &proof, hash, &err), BH_OK);
    BH_CHECK_DONE();
}

static void
proofs_are_for_who_may_see_the_record(void **state)
{
    static const struct {
        const char *name, *path;
        uint32_t uid, status;
    } rows[] = {
        { "one's own", "/v1/records/301/proof", ALICE, 200 },
        { "another tenant's", "/v1/records/300/proof", ALICE, 404 },
        { "its owner's", "/v1/records/300/proof", BOB, 200 },
        { "the site's", "/v1/records/300/proof", CAROL, 200 },
        { "not signed yet", "/v1/records/501/proof", ALICE, 503 },
        { "not there", "/v1/records/600/proof", CAROL, 404 },
        { "no number", "/v1/records/x/proof", CAROL, 404 },
        { "too large", "/v1/records/18446744073709551615/proof", CAROL, 404 },
        { "a stranger", "/v1/records/301/proof", STRANGER, 401 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, rows[i].path, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].name, got.status, rows[i].status);
    }
    BH_CHECK_DONE();
}

/* Reads the log from its end, page by page: every record that the caller may see, once. */
static uint32_t
count_back(uint32_t uid, const char *limit, uint64_t step)
{
    uint64_t expected = RECORDS - 1;
    uint32_t count = 0;
    char query[80];
    const char *next;

    snprintf(query, sizeof query, "order=newest&limit=%s", limit);
    do {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_json_value list;

        SEND(BH_GET, "/v1/records", .query = query, .uid = uid);
        list = bh_json_get(log_parse(&json), "items");
        for (size_t i = 0; i < bh_json_count(list); i++, count++, expected -= step)
            BH_CHECK_EQ(query, bh_json_number(bh_json_get(bh_json_at(list, i), "seq"), 0), expected);
        next = bh_json_text(bh_json_get(bh_json_root(json), "next"), NULL);
        if (next)
            snprintf(query, sizeof query, "order=newest&limit=%s&before=%s", limit, next);
    } while (next);
    return count;
}

static void
pages_go_back_over_the_whole_log(void **state)
{
    BH_CHECK_EQ("in one", count_back(CAROL, "1000", 1), RECORDS);
    BH_CHECK_EQ("by 37", count_back(CAROL, "37", 1), RECORDS);
    BH_CHECK_EQ("of a tenant", count_back(ALICE, "1000", 2), RECORDS / 2);
    BH_CHECK_EQ("of a tenant, by 37", count_back(ALICE, "37", 2), RECORDS / 2);
    BH_CHECK_DONE();
}

/* Checkpoints and their size are public; how many records came since is not. */
static void
the_log_is_shown(void **state)
{
    SEND(BH_GET, "/v1/log", .uid = CAROL);
    BH_CHECK_EQ("status", got.status, 200);
    BH_CHECK("all records", strstr(got.text, "\"records\":600,"));
    BH_CHECK("those that are signed", strstr(got.text, "\"size\":500}"));
    BH_CHECK("the note", strstr(got.text, "{\"checkpoint\":\"site\\n500\\n"));
    BH_CHECK("the keys", strstr(got.text, "\"keys\":\"site+"));
    SEND(BH_GET, "/v1/log", .uid = ALICE);
    BH_CHECK_EQ("a tenant's", got.status, 200);
    BH_CHECK("not for a tenant", !strstr(got.text, "\"records\":"));
    SEND(BH_GET, "/v1/log", .uid = STRANGER);
    BH_CHECK_EQ("a stranger", got.status, 401);
    BH_CHECK_DONE();
}

static void
one_log_begins_the_other(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_tree_head trees[2] = { { .size = 300 }, { .size = RECORDS } };
    struct bh_proof proof = { 0 };
    bh_json_value list;

    SEND(BH_GET, "/v1/consistency", .query = "old=300&new=600", .uid = ALICE);
    BH_CHECK_EQ("status", got.status, 200);
    list = bh_json_get(log_parse(&json), "hashes");
    proof.count = (uint32_t)bh_json_count(list);
    for (uint32_t i = 0; i < proof.count; i++) {
        const char *text = bh_json_text(bh_json_at(list, i), "");
        struct bh_buf out;

        bh_buf_init_fixed(&out, proof.hashes[i], 32);
        BH_CHECK("hash", bh_base64_decode(&out, text, strlen(text)));
    }
    for (int i = 0; i < 2; i++)
        bh_merkle_root(crypto, (const uint8_t(*)[32])hashes, trees[i].size, trees[i].root);
    BH_CHECK_EQ("holds", bh_proof_check_consistency(crypto, &proof, trees), BH_OK);
    SEND(BH_GET, "/v1/consistency", .query = "old=1&new=601", .uid = ALICE);
    BH_CHECK_EQ("too many", got.status, 400);
    SEND(BH_GET, "/v1/consistency", .query = "old=2&new=1", .uid = ALICE);
    BH_CHECK_EQ("backwards", got.status, 400);
    BH_CHECK_DONE();
}

static void
files_are_there_for_outsiders(void **state)
{
    static const struct {
        const char *path;
        uint32_t uid, status;
    } rows[] = {
        { "/v1/log/checkpoint", STRANGER, 200 },      { "/v1/log/tile/0/000", STRANGER, 200 },
        { "/v1/log/tile/0/002.p/88", STRANGER, 200 }, { "/v1/log/tile/0/002.p/12", STRANGER, 200 },
        { "/v1/log/tile/1/000.p/2", STRANGER, 200 },  { "/v1/log/tile/0/002.p/89", STRANGER, 404 },
        { "/v1/log/tile/0/003", STRANGER, 404 },      { "/v1/log/tile/2/000.p/1", STRANGER, 404 },
        { "/v1/log/tile/0/0", STRANGER, 404 },        { "/v1/log/tile/entries/000", STRANGER, 401 },
        { "/v1/log/tile/entries/000", ALICE, 403 },   { "/v1/log/tile/entries/000", CAROL, 200 },
        { "/v1/log/tile/entries/003", CAROL, 404 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, rows[i].path, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].path, got.status, rows[i].status);
    }
    BH_CHECK_DONE();
}

static void
files_say_what_the_log_says(void **state)
{
    struct bh_checkpoint seen;
    uint8_t root[32];
    char leaf[300];
    size_t length;

    SEND(BH_GET, "/v1/log/checkpoint");
    BH_CHECK_STR("text", got.content_type, "text/plain; charset=utf-8");
    assert_int_equal(bh_checkpoint_open(crypto, &key, got.text, &seen, &err), BH_OK);
    BH_CHECK_EQ("size", seen.size, SIGNED);
    SEND(BH_GET, "/v1/log/tile/0/001");
    BH_CHECK("hashes", memcmp(got.text, hashes[256], 256 * 32) == 0);
    BH_CHECK("for ever", strstr(got.header, "public, max-age=31536000, immutable"));
    SEND(BH_GET, "/v1/log/tile/1/000.p/2");
    bh_merkle_root(crypto, (const uint8_t(*)[32])hashes + 256, 256, root);
    BH_CHECK("second level", memcmp(got.text + 32, root, 32) == 0);
    SEND(BH_GET, "/v1/log/tile/entries/002.p/88", .uid = CAROL);
    length = write_leaf(512, leaf);
    BH_CHECK_EQ("its length", (uint8_t)got.text[1], length);
    BH_CHECK("record", memcmp(got.text + 2, leaf, length) == 0);
    BH_CHECK("not for shared caches", strstr(got.header, "private"));
    BH_CHECK_DONE();
}

/* ---- rows ---- */

static struct bh_job_row told;

/* The job's row once more, ended at that time, which is said by that record. */
static bool
put_end(void *self, const struct bh_job_row *found)
{
    struct bh_job_row row = *found;

    row.ended_ns = told.ended_ns;
    row.ended_by = told.ended_by;
    assert_int_equal(f->store.ops->put_job(f->store.self, &row, &err), BH_OK);
    return false;
}

static void
put_ended(uint64_t job, uint64_t ended_ns, uint64_t ended_by)
{
    told = (struct bh_job_row){ .ended_ns = ended_ns, .ended_by = ended_by };
    bh_fixture_put_job(f, job, 2, 1, "completed");
    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->get_job(f->store.self, job, put_end, NULL, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
}

/* All records have the time 1000; the ends of 901 and 903 are in records that do not count. */
static void
rows_of_jobs_are_those_that_the_records_ended(void **state)
{
    static const struct {
        uint64_t job, ended_ns, ended_by;
        bool given;
    } rows[] = {
        { 901, 900, 550, false }, /* reported late */
        { 902, 900, 450, true },        { 903, 900, SIGNED, false },
        { 904, 900, SIGNED - 1, true }, { 905, 2000, 450, true }, /* a node's clock is its own */
        { 906, 900, 0, true },                                    /* of a store of before: by the time */
        { 907, 1000, 0, false },
    };
    char query[40], wanted[40];

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        put_ended(rows[i].job, rows[i].ended_ns, rows[i].ended_by);
    snprintf(query, sizeof query, "size=%d", SIGNED);
    SEND(BH_GET, "/v1/log/rows/jobs", .query = query, .uid = CAROL);
    BH_CHECK_EQ("status", got.status, 200);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        snprintf(wanted, sizeof wanted, "\"job\":%u,", (unsigned)rows[i].job);
        BH_CHECK_EQ(wanted, strstr(got.text, wanted) != NULL, rows[i].given);
    }
    BH_CHECK_DONE();
}

static void
log_put_document(enum bh_document_kind kind, uint64_t number, const char *value)
{
    char digits[24];
    const struct bh_document_row row = { .kind = kind, .key = digits, .version = 1, .value = value };

    snprintf(digits, sizeof digits, "%020u", (unsigned)number);
    assert_int_equal(f->store.ops->begin(f->store.self, &err), BH_OK);
    assert_int_equal(f->store.ops->put_document(f->store.self, &row, &err), BH_OK);
    assert_int_equal(f->store.ops->commit(f->store.self, &err), BH_OK);
}

/* Kind and key of each document behind `after`, and the number of the first of them. */
static const char *
documents_after(uint64_t after, uint64_t *ret_first)
{
    static char list[1000];
    struct bh_buf out;
    char query[60];

    snprintf(query, sizeof query, "size=%d&after=%u", SIGNED, (unsigned)after);
    SEND(BH_GET, "/v1/log/rows/documents", .query = query, .uid = CAROL);
    BH_CHECK_EQ("status", got.status, 200);
    bh_buf_init_fixed(&out, list, sizeof list);
    bh_buf_puts(&out, "");
    for (const char *at = got.text; *at; at += strcspn(at, "\n") + 1) {
        struct bh_slice line = { at, strcspn(at, "\n") }, value;
        uint64_t number = 0, of = 0;
        char kind[16], digits[24];

        assert_true(bh_slice_get(line, "number", &value) && bh_slice_u64(value, &number));
        assert_true(bh_slice_get(line, "kind", &value) && bh_slice_str(value, kind, sizeof kind));
        assert_true(bh_slice_get(line, "key", &value) && bh_slice_str(value, digits, sizeof digits));
        assert_int_equal(bh_parse_u64(digits + strspn(digits, "0"), &of, &err), BH_OK);
        if (out.length == 0)
            *ret_first = number;
        bh_buf_printf(&out, "%s %u;", kind, (unsigned)of);
    }
    return bh_buf_text(&out) ? list : "too many";
}

/* Images of jobs that the records ended, as with the jobs' rows.  This store has one lock: it must not be
 * asked for a job while it lists documents. */
static void
rows_of_documents_are_those_that_the_records_settled(void **state)
{
    uint64_t first = 0, next = 0;

    put_ended(911, 900, 550);
    put_ended(912, 900, 450);
    put_ended(913, 900, SIGNED);
    for (unsigned job = 911; job < 914; job++)
        log_put_document(BH_DOCUMENT_IMAGE, job, "{}");
    log_put_document(BH_DOCUMENT_REVISION, 100, "{}");
    log_put_document(BH_DOCUMENT_REVISION, 200, "{}");
    log_put_document(BH_DOCUMENT_REVISION, 300, "{}");
    log_put_document(BH_DOCUMENT_REVISION, SIGNED, "{}");
    log_put_document(BH_DOCUMENT_RECEIPT, 7, "{\"record\":5}");
    log_put_document(BH_DOCUMENT_RECEIPT, 8, "{\"record\":505}");
    BH_CHECK_STR("all", documents_after(0, &first),
                 "receipt 7;image 912;revision 100;revision 200;revision 300;");
    BH_CHECK_STR("behind the first", documents_after(first, &next),
                 "image 912;revision 100;revision 200;revision 300;");
    BH_CHECK_STR("behind the image", documents_after(next, &first),
                 "revision 100;revision 200;revision 300;");
    log_put_document(BH_DOCUMENT_REVISION, 100, NULL);
    BH_CHECK_STR("behind one that went meanwhile", documents_after(first, &next),
                 "revision 200;revision 300;");
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proof_can_be_checked_without_the_log),
        cmocka_unit_test(pages_go_back_over_the_whole_log),
        cmocka_unit_test(the_log_is_shown),
        cmocka_unit_test(proofs_are_for_who_may_see_the_record),
        cmocka_unit_test(one_log_begins_the_other),
        cmocka_unit_test(files_are_there_for_outsiders),
        cmocka_unit_test(files_say_what_the_log_says),
        cmocka_unit_test(rows_of_jobs_are_those_that_the_records_ended),
        cmocka_unit_test(rows_of_documents_are_those_that_the_records_settled),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_log, close_log);
}
