#include "api/documents/job_document.h"

#include <string.h>

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

enum { JOB = 7 };

static void
descriptions_stand_in_order(void **state)
{
    assert_true(bh_fields_ordered(&bh_carried_end_fields));
    assert_true(bh_fields_ordered(&bh_carried_row_fields));
    assert_true(bh_fields_ordered(&bh_failure_row_fields));
    assert_true(bh_fields_ordered(&bh_image_row_fields));
    assert_true(bh_fields_ordered(&bh_job_notices_fields));
}

static void
what_was_put_is_got_and_none_is_zeros(void **state)
{
    const struct bh_carried_row row = { { .counted = true, .rx_bytes = 5 }, 2 };
    char key[BH_JOB_DOCUMENT_KEY_SIZE], memory[400];
    struct bh_document_row document = { .kind = BH_DOCUMENT_CARRIED, .key = key, .version = 1 };
    struct fixture *f = bh_fixture_open();
    const struct bh_store *store = &f->store;
    struct bh_carried_row got;
    struct bh_buf json;
    struct bh_err err;

    bh_job_document_key(JOB, key);
    assert_string_equal(key, "00000000000000000007");
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_carried_row_fields, &row);
    document.value = bh_buf_text(&json);
    assert_int_equal(store->ops->begin(store->self, &err), BH_OK);
    assert_int_equal(store->ops->put_document(store->self, &document, &err), BH_OK);
    assert_int_equal(store->ops->commit(store->self, &err), BH_OK);
    assert_int_equal(bh_job_document_get(store, BH_DOCUMENT_CARRIED, JOB, &got, &err), BH_OK);
    assert_memory_equal(&got, &row, sizeof row);

    assert_int_equal(bh_job_document_get(store, BH_DOCUMENT_CARRIED, JOB + 1, &got, &err), BH_OK);
    assert_memory_equal(&got, &(struct bh_carried_row){ .leases = 0 }, sizeof got);
    assert_int_equal(bh_job_document_decode(BH_DOCUMENT_IMAGE, "{\"leases\":1}", &got, &err), BH_INVALID);
    bh_fixture_close(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(descriptions_stand_in_order),
    cmocka_unit_test(what_was_put_is_got_and_none_is_zeros),
};
BH_TEST_MAIN(tests)
