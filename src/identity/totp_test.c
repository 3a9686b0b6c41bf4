#include "identity/totp.h"

#include "base/test.h"

static struct bh_totp
totp_of(enum bh_totp_hash hash, uint32_t digits)
{
    static const uint32_t bytes[] = { 20, 32, 64 };
    struct bh_totp totp = {
        .hash = hash, .digits = digits, .period_s = 30, .window = 1, .secret_bytes = bytes[hash]
    };

    for (uint32_t i = 0; i < totp.secret_bytes; i++)
        totp.secret[i] = (uint8_t)('0' + (i + 1) % 10);
    return totp;
}

/* RFC 6238, appendix B; the last row is the next test. */
static void
totp_test_published(void **state)
{
    static const struct {
        uint64_t at_s;
        const char *codes[3];
    } rows[] = {
        { 59, { "94287082", "46119246", "90693936" } },
        { 1111111109, { "07081804", "68084774", "25091201" } },
        { 1111111111, { "14050471", "67062674", "99943326" } },
        { 1234567890, { "89005924", "91819424", "93441116" } },
        { 2000000000, { "69279037", "90698825", "38618901" } },
    };
    char code[9];

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        for (enum bh_totp_hash hash = 0; hash <= BH_TOTP_SHA512; hash++) {
            struct bh_totp totp = totp_of(hash, 8);
            uint64_t last = 0;

            bh_totp_code(&totp, rows[i].at_s * BH_NS_PER_S, code);
            BH_CHECK_STR("code", code, rows[i].codes[hash]);
            BH_CHECK_EQ("check", bh_totp_check(&totp, rows[i].codes[hash], rows[i].at_s * BH_NS_PER_S, &last),
                        0);
            BH_CHECK_EQ("step", last, rows[i].at_s / 30);
        }
    BH_CHECK_DONE();
}

/* RFC 6238's last vector, 20,000,000,000 s, lies beyond what 64 bits of nanoseconds hold;
 * its step is reached with a period of a second. */
static void
last_vector(void **state)
{
    static const char *const codes[] = { "65353130", "77737706", "47863826" };
    char code[9];

    for (enum bh_totp_hash hash = 0; hash <= BH_TOTP_SHA512; hash++) {
        struct bh_totp totp = totp_of(hash, 8);

        totp.period_s = 1;
        bh_totp_code(&totp, UINT64_C(20000000000) / 30 * BH_NS_PER_S, code);
        BH_CHECK_STR("code", code, codes[hash]);
    }
    BH_CHECK_DONE();
}

static void
window(void **state)
{
    static const struct {
        const char *name;
        uint64_t code_s;
        uint64_t last_step; /* accepted before */
        enum bh_identity_fault fault;
    } rows[] = {
        { "now", 3000, 0, 0 },
        { "one before", 2970, 0, 0 },
        { "one after", 3030, 0, 0 },
        { "two before", 2940, 0, BH_FAULT_TOTP_WRONG },
        { "two after", 3060, 0, BH_FAULT_TOTP_WRONG },
        { "the same again", 3000, 100, BH_FAULT_TOTP_REUSED },
        { "older than one used", 2970, 100, BH_FAULT_TOTP_REUSED },
        { "the next", 3030, 100, 0 },
        { "the clock jumped back an hour", 3000, 220, BH_FAULT_TOTP_REUSED },
    };
    struct bh_totp totp = totp_of(BH_TOTP_SHA1, 6);
    char code[9];

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        uint64_t last = rows[i].last_step;

        bh_totp_code(&totp, rows[i].code_s * BH_NS_PER_S, code);
        BH_CHECK_EQ(rows[i].name, bh_totp_check(&totp, code, 3010 * BH_NS_PER_S, &last), rows[i].fault);
        BH_CHECK_EQ(rows[i].name, last, rows[i].fault ? rows[i].last_step : rows[i].code_s / 30);
    }
    BH_CHECK_DONE();
}

static void
totp_test_forms(void **state)
{
    static const char *const rows[] = { "",       "12345",   "1234567", "12345a",
                                        " 12345", "12345\n", "-12345",  "\xd9\xa1\xd9\xa2\xd9\xa3" };
    struct bh_totp totp = totp_of(BH_TOTP_SHA1, 6);
    uint64_t last = 0;

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i], bh_totp_check(&totp, rows[i], 0, &last), BH_FAULT_TOTP_FORM);
    /* at the epoch the window reaches before time: nothing there is accepted */
    BH_CHECK_EQ("before time", bh_totp_check(&totp, "000000", 0, &last), BH_FAULT_TOTP_WRONG);
    BH_CHECK_DONE();
}

static void
address(void **state)
{
    struct bh_totp totp = totp_of(BH_TOTP_SHA1, 6);
    char memory[256];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_totp_put_address(&out, &totp, "GPU site", "alice");
    BH_CHECK_STR("address", bh_buf_text(&out),
                 "otpauth://totp/GPU%20site:alice?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
                 "&issuer=GPU%20site&algorithm=SHA1&digits=6&period=30");
    BH_CHECK_DONE();
}

static void
recovery(void **state)
{
    uint8_t random[BH_RECOVERY_CODES][BH_RECOVERY_RANDOM];
    char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT];
    struct bh_recovery set, other;

    for (size_t i = 0; i < sizeof random; i++)
        random[i / BH_RECOVERY_RANDOM][i % BH_RECOVERY_RANDOM] = (uint8_t)(i * 7);
    memset(random[0], 0, sizeof random[0]);
    memset(random[1], 0xff, sizeof random[1]);
    bh_recovery_make(random, "alice", &set, codes);
    bh_recovery_make(random, "bob", &other, codes);
    BH_CHECK_STR("zeros", codes[0], "0000-0000-0000-0000");
    BH_CHECK_STR("ones", codes[1], "ZZZZ-ZZZZ-ZZZZ-ZZZZ");
    BH_CHECK_EQ("left", bh_recovery_left(&set), 10);
    BH_CHECK("as people type", bh_recovery_use(&set, "alice", "oooo OOOO-0000 0o0O"));
    BH_CHECK("once", !bh_recovery_use(&set, "alice", "0000-0000-0000-0000"));
    BH_CHECK_EQ("left", bh_recovery_left(&set), 9);
    BH_CHECK("small letters", bh_recovery_use(&set, "alice", "zzzzzzzzzzzzzzzz"));
    BH_CHECK("of another account", !bh_recovery_use(&set, "alicf", codes[2]));
    BH_CHECK("another's hashes", !bh_recovery_use(&other, "alice", codes[2]));
    BH_CHECK("short", !bh_recovery_use(&set, "alice", "0000-0000-0000-000"));
    BH_CHECK("long", !bh_recovery_use(&set, "alice", "0000-0000-0000-0000-0"));
    BH_CHECK("empty", !bh_recovery_use(&set, "alice", ""));
    BH_CHECK("no such letter", !bh_recovery_use(&set, "alice", "UUUU-UUUU-UUUU-UUUU"));
    for (size_t i = 2; i < BH_RECOVERY_CODES; i++)
        BH_CHECK("each", bh_recovery_use(&set, "alice", codes[i]));
    BH_CHECK_EQ("none left", bh_recovery_left(&set), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(totp_test_published), cmocka_unit_test(last_vector), cmocka_unit_test(window),
    cmocka_unit_test(totp_test_forms),     cmocka_unit_test(address),     cmocka_unit_test(recovery),
};

BH_TEST_MAIN(tests)
