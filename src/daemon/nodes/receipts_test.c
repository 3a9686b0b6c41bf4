#include "daemon/batch/batch.h"
#include "daemon/nodes/receipts.h"

#include "api/documents/receipt.h"
#include "base/json.h"
#include "daemon/fixture/fixture_test.h"

static bool
receipts_count(void *self, const struct bh_document_row *row)
{
    ++*(uint32_t *)self;
    return true;
}

static uint32_t
receipts_stored(struct fixture *f)
{
    const struct bh_document_filter filter = { .kind = BH_DOCUMENT_RECEIPT };
    uint32_t n = 0;

    assert_int_equal(
        f->core.store.ops->list_documents(f->core.store.self, &filter, receipts_count, &n, &f->err), BH_OK);
    return n;
}

/* A node repeats a receipt until it is acknowledged; a scrub that was done again for the same
 * order, after the node died or for another partition of the lease, is another one. */
static void
each_scrub_has_one(void **state)
{
    static const struct {
        const char *name;
        uint64_t order, begun_ns;
        uint32_t result, records;
    } cases[] = {
        { "failed, then the node dies", 7, 100, BH_SCRUB_FAILED, 1 },
        { "told again", 7, 100, BH_SCRUB_FAILED, 0 },
        { "the order's second scrub", 7, 200, BH_SCRUB_CLEAN, 1 },
        { "told again, the older first", 7, 100, BH_SCRUB_FAILED, 0 },
        { "and the newer", 7, 200, BH_SCRUB_CLEAN, 0 },
        { "another order's", 8, 200, BH_SCRUB_CLEAN, 1 },
    };

    for (int together = 0; together < 2; together++) { /* in one transaction, or each in its own */
        struct fixture f;

        fixture_setup(&f);
        for (size_t i = 0; i < BH_COUNT(cases); i++) {
            struct bh_msg_receipt receipt = { .order = cases[i].order,
                                              .partition = 3,
                                              .begun_ns = cases[i].begun_ns,
                                              .method = BH_SCRUB_FILL,
                                              .result = cases[i].result };
            uint64_t before = f.core.journal.next_seq;

            assert_int_equal(bh_receipts_record(&f.core, &receipt, &f.err), BH_OK);
            BH_CHECK_EQ(cases[i].name, f.core.journal.next_seq - before, cases[i].records);
            if (!together)
                assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        }
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        BH_CHECK_EQ("kept", receipts_stored(&f), 3);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

static bool
copy_value(void *self, const struct bh_document_row *row)
{
    snprintf(self, 4096, "%s", row->value);
    return false;
}

/* What a reader with doubles would round is a text; what it reads back is the number again. */
static void
no_reader_rounds_a_number(void **state)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        const char *written;
    } cases[] = {
        { "none", 0, NULL },
        { "largest number", (UINT64_C(1) << 53) - 1, "\"memory_bytes\":9007199254740991," },
        { "smallest text", UINT64_C(1) << 53, "\"memory_bytes\":\"9007199254740992\"," },
        { "largest text", UINT64_MAX, "\"memory_bytes\":\"18446744073709551615\"," },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const struct bh_document_filter filter = { .kind = BH_DOCUMENT_RECEIPT };
        struct bh_msg_receipt receipt = { .order = 7,
                                          .partition = 3,
                                          .begun_ns = 100,
                                          .memory_bytes = cases[i].bytes,
                                          .method = BH_SCRUB_FILL,
                                          .result = BH_SCRUB_CLEAN };
        struct bh_receipt_row row = { .record = 0 };
        char value[4096] = "";
        struct fixture f;

        fixture_setup(&f);
        assert_int_equal(bh_receipts_record(&f.core, &receipt, &f.err), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        assert_int_equal(
            f.core.store.ops->list_documents(f.core.store.self, &filter, copy_value, value, &f.err), BH_OK);
        BH_CHECK(cases[i].name,
                 cases[i].written ? !!strstr(value, cases[i].written) : !strstr(value, "memory_bytes"));
        BH_CHECK("a moment is a text", strstr(value, "\"begun_ns\":\"100\","));
        BH_CHECK_EQ(cases[i].name,
                    bh_json_decode(value, strlen(value), &bh_receipt_row_fields, &row, f.arena, &f.err),
                    BH_OK);
        BH_CHECK_EQ(cases[i].name, row.receipt.memory_bytes, cases[i].bytes);
        fixture_teardown(&f);
    }
    BH_CHECK_DONE();
}

/* The digest is shown to users who may not see the jobs that it names, and job numbers are small: so it also
 * covers a random value that cannot be guessed.  A node that sends one is not asked for it. */
static void
a_digest_tells_nothing(void **state)
{
    static const struct bh_msg_receipt told = { .order = 7,
                                                .partition = 3,
                                                .begun_ns = 100,
                                                .method = BH_SCRUB_FILL,
                                                .salt = { 1 },
                                                .result = BH_SCRUB_CLEAN };
    const struct bh_document_filter filter = { .kind = BH_DOCUMENT_RECEIPT };
    struct bh_receipt_row rows[2] = { { .record = 0 } };

    for (int i = 0; i < 2; i++) {
        char value[4096] = "", memory[4096];
        uint8_t digest[32];
        struct bh_buf json;
        struct fixture f;

        fixture_setup(&f);
        assert_int_equal(bh_receipts_record(&f.core, &told, &f.err), BH_OK);
        assert_int_equal(bh_core_commit(&f.core, &f.err), BH_OK);
        assert_int_equal(
            f.core.store.ops->list_documents(f.core.store.self, &filter, copy_value, value, &f.err), BH_OK);
        assert_int_equal(
            bh_json_decode(value, strlen(value), &bh_receipt_row_fields, &rows[i], f.arena, &f.err), BH_OK);
        bh_buf_init_fixed(&json, memory, sizeof memory);
        bh_json_encode(&json, &bh_receipt_fields, &rows[i].receipt);
        f.core.crypto->sha256(json.bytes, json.length, "", 0, digest);
        BH_CHECK("its own digest", memcmp(rows[i].digest, digest, sizeof digest) == 0);
        BH_CHECK("not the node's salt", memcmp(rows[i].receipt.salt, told.salt, sizeof told.salt) != 0);
        fixture_teardown(&f);
    }
    BH_CHECK("another one", memcmp(rows[0].digest, rows[1].digest, sizeof rows[0].digest) != 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_scrub_has_one),
    cmocka_unit_test(no_reader_rounds_a_number),
    cmocka_unit_test(a_digest_tells_nothing),
};
BH_TEST_MAIN(tests)
