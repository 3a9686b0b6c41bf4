#include "keys/wrap.h"

#include "base/buf.h"
#include "base/test.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* By Python's hmac: HKDF as RFC 5869 has it. */
static void
derives(void **state)
{
    uint8_t key[32], made[32], other[32];
    char text[65];
    struct bh_buf hex;

    for (uint8_t i = 0; i < 32; i++)
        key[i] = i;
    bh_key_derive(crypto, key, "seals", made);
    bh_buf_init_fixed(&hex, text, sizeof text);
    bh_buf_put_hex(&hex, made, sizeof made);
    BH_CHECK_STR("vector", bh_buf_text(&hex),
                 "50aab6bd38b7cefaa35b8b586d04e985f44f02b83160327793baa758d6b9daec");
    bh_key_derive(crypto, key, "commits", other);
    BH_CHECK("another use", memcmp(made, other, sizeof made) != 0);
    BH_CHECK_DONE();
}

/* A wrapped key fits its own row only. */
static void
wraps(void **state)
{
    const uint8_t wrapping[32] = { 1 }, plain[32] = { 2 }, other[32] = { 3 };
    struct bh_key_row row = { .id = 7,
                              .kind = BH_KEY_KIND_AUDIT,
                              .tenant_id = 3,
                              .month = 202611,
                              .parent = 6 },
                      moved;
    uint8_t opened[32];
    struct bh_err err;

    assert_int_equal(bh_key_wrap(crypto, wrapping, plain, &row, &err), BH_OK);
    assert_int_equal(bh_key_unwrap(crypto, wrapping, &row, opened, &err), BH_OK);
    BH_CHECK("same", memcmp(opened, plain, sizeof plain) == 0);
    BH_CHECK_EQ("wrong parent's key", bh_key_unwrap(crypto, other, &row, opened, &err), BH_INVALID);
#define MOVED(member, value)                                                                                 \
    moved = row;                                                                                             \
    moved.member = value;                                                                                    \
    BH_CHECK_EQ(#member, bh_key_unwrap(crypto, wrapping, &moved, opened, &err), BH_INVALID)
    MOVED(id, 8);
    MOVED(kind, BH_KEY_KIND_IDENTITY);
    MOVED(tenant_id, 4);
    MOVED(month, 202612);
    MOVED(parent, 5);
    for (size_t i = 0; i < sizeof row.wrapped; i++) {
        MOVED(wrapped[i], row.wrapped[i] ^ 0x10);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(derives),
    cmocka_unit_test(wraps),
};
BH_TEST_MAIN(tests)
