#include "base/num.h"

#include "base/test.h"

/* In every table a refused number leaves its place untouched: 7. */
enum { UNTOUCHED = 7 };

struct row {
    const char *name, *text;
    bh_rc rc;
    uint64_t value;
};

typedef bh_rc parser(const char *text, uint64_t *ret_value, struct bh_err *err);

static void
check_rows(parser *parse, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bh_err err = { 0 };
        uint64_t value = UNTOUCHED;
        bh_rc rc = parse(rows[i].text, &value, &err);

        BH_CHECK_EQ(rows[i].name, rc, rows[i].rc);
        BH_CHECK_EQ(rows[i].name, value, rc == BH_OK ? rows[i].value : UNTOUCHED);
        BH_CHECK_EQ(rows[i].name, err.rc, rows[i].rc);
        BH_CHECK_EQ(rows[i].name, err.msg[0] != '\0', rc != BH_OK);
    }
    BH_CHECK_DONE();
}

static const struct row u64_rows[] = {
    { "zero", "0", BH_OK, 0 },
    { "largest", "18446744073709551615", BH_OK, UINT64_MAX },
    { "one past largest", "18446744073709551616", BH_RANGE, 0 },
    { "far past largest", "99999999999999999999999999999999999999", BH_RANGE, 0 },
    { "empty", "", BH_INVALID, 0 },
    { "negative", "-1", BH_INVALID, 0 },
    { "signed", "+1", BH_INVALID, 0 },
    { "zero first", "01", BH_INVALID, 0 },
    { "two zeros", "00", BH_INVALID, 0 },
    { "blank first", " 1", BH_INVALID, 0 },
    { "blank last", "1 ", BH_INVALID, 0 },
    { "fraction", "1.0", BH_INVALID, 0 },
    { "exponent", "1e3", BH_INVALID, 0 },
    { "hexadecimal", "0x10", BH_INVALID, 0 },
    { "digits of another script", "\xd9\xa1", BH_INVALID, 0 },
};

static void
test_u64(void **state)
{
    check_rows(bh_parse_u64, u64_rows, BH_COUNT(u64_rows));
}

static bh_rc
parse_5_to_10(const char *text, uint64_t *ret_value, struct bh_err *err)
{
    uint32_t value;
    bh_rc rc = bh_parse_u32(text, 5, 10, &value, err);

    if (rc == BH_OK)
        *ret_value = value;
    return rc;
}

static const struct row u32_rows[] = {
    { "lowest", "5", BH_OK, 5 },
    { "highest", "10", BH_OK, 10 },
    { "too low", "4", BH_RANGE, 0 },
    { "too high", "11", BH_RANGE, 0 },
    { "in range modulo 2^32", "4294967301", BH_RANGE, 0 },
    { "past 2^64", "18446744073709551621", BH_RANGE, 0 },
    { "junk", "5x", BH_INVALID, 0 },
};

static void
test_u32(void **state)
{
    check_rows(parse_5_to_10, u32_rows, BH_COUNT(u32_rows));
}

static const struct row byte_rows[] = {
    { "bare", "4096", BH_OK, 4096 },
    { "bytes", "4096B", BH_OK, 4096 },
    { "kibi", "1Ki", BH_OK, 1024 },
    { "mebi", "3Mi", BH_OK, 3ULL << 20 },
    { "gibi", "40Gi", BH_OK, 40ULL << 30 },
    { "tebi", "2Ti", BH_OK, 2ULL << 40 },
    { "kilo", "1k", BH_OK, 1000 },
    { "mega", "1M", BH_OK, 1000000 },
    { "giga", "1G", BH_OK, 1000000000 },
    { "tera", "1T", BH_OK, 1000000000000 },
    { "largest", "18446744073709551615", BH_OK, UINT64_MAX },
    { "one past largest", "18446744073709551616", BH_RANGE, 0 },
    { "largest in Gi", "17179869183Gi", BH_OK, 17179869183ULL << 30 },
    { "overflow by unit", "17179869184Gi", BH_RANGE, 0 },
    { "fraction", "1.5Gi", BH_INVALID, 0 },
    { "capital K", "1K", BH_INVALID, 0 },
    { "unit in full", "1GiB", BH_INVALID, 0 },
    { "trailing junk", "8Gix", BH_INVALID, 0 },
    { "blank before unit", "8 Gi", BH_INVALID, 0 },
    { "zero first", "08Gi", BH_INVALID, 0 },
    { "unit alone", "Gi", BH_INVALID, 0 },
    { "negative", "-1Gi", BH_INVALID, 0 },
    { "empty", "", BH_INVALID, 0 },
};

static void
test_bytes(void **state)
{
    check_rows(bh_parse_bytes, byte_rows, BH_COUNT(byte_rows));
}

#define S UINT64_C(1000000000)
static const struct row span_rows[] = {
    { "bare is seconds", "90", BH_OK, 90 * S },
    { "milliseconds", "5ms", BH_OK, S / 200 },
    { "seconds", "5s", BH_OK, 5 * S },
    { "minutes", "5m", BH_OK, 300 * S },
    { "hours", "2h", BH_OK, 7200 * S },
    { "days", "1d", BH_OK, 86400 * S },
    { "clock", "01:02:03", BH_OK, 3723 * S },
    { "clock of many hours", "100:00:00", BH_OK, 360000 * S },
    { "days and clock", "1-02:30:00", BH_OK, 95400 * S },
    { "longest", "36500-876000:59:59", BH_OK, (36500ULL * 86400 + 876000ULL * 3600 + 3599) * S },
    { "one day longer", "36501-00:00:00", BH_INVALID, 0 },
    { "one hour longer", "876001:00:00", BH_INVALID, 0 },
    { "60 minutes", "00:60:00", BH_INVALID, 0 },
    { "60 seconds", "00:00:60", BH_INVALID, 0 },
    { "minutes and seconds only", "02:30", BH_INVALID, 0 },
    { "four fields", "1:2:3:4", BH_INVALID, 0 },
    { "a field missing", "1::3", BH_INVALID, 0 },
    { "colons alone", "::", BH_INVALID, 0 },
    { "days without clock", "1-", BH_INVALID, 0 },
    { "days last", "01:02:03-1", BH_INVALID, 0 },
    { "digits that overflow", "99999999999999999999:00:00", BH_RANGE, 0 },
    { "overflow by unit", "213504d", BH_RANGE, 0 },
    { "largest in days", "213503d", BH_OK, 213503 * (86400 * S) },
    { "two units", "1h30m", BH_INVALID, 0 },
    { "fraction", "1.5h", BH_INVALID, 0 },
    { "zero first", "05m", BH_INVALID, 0 },
    { "empty", "", BH_INVALID, 0 },
};

static void
test_span(void **state)
{
    check_rows(bh_parse_span, span_rows, BH_COUNT(span_rows));
}

static const struct row utc_rows[] = {
    { "the epoch", "1970-01-01T00:00:00Z", BH_OK, 0 },
    { "a leap day", "2024-02-29T12:00:00Z", BH_OK, UINT64_C(1709208000000000000) },
    { "after it", "2024-03-01T00:00:00Z", BH_OK, UINT64_C(1709251200000000000) },
    { "now", "2026-11-20T09:27:00Z", BH_OK, UINT64_C(1795166820000000000) },
    { "no leap day", "2100-02-29T00:00:00Z", BH_INVALID, 0 },
    { "no such month", "2026-13-01T00:00:00Z", BH_INVALID, 0 },
    { "an offset", "2026-11-20T09:27:00+01:00", BH_INVALID, 0 },
    { "too long ago", "1969-12-31T23:59:59Z", BH_INVALID, 0 },
    { "junk behind", "2026-11-20T09:27:00Zx", BH_INVALID, 0 },
    { "nothing", "", BH_INVALID, 0 },
};

static void
test_utc(void **state)
{
    check_rows(bh_parse_utc, utc_rows, BH_COUNT(utc_rows));
}

static bh_rc
parse_4200(const char *text, uint64_t *ret_value, struct bh_err *err)
{
    return bh_parse_parts(text, 4200, ret_value, err);
}

static const struct row part_rows[] = {
    { "none", "0", BH_OK, 0 },
    { "half", "0.5", BH_OK, 2100 },
    { "zeros at the end", "0.500000000", BH_OK, 2100 },
    { "a seventh", "1/7", BH_OK, 600 },
    { "not in lowest terms", "2/14", BH_OK, 600 },
    { "a part", "1/4200", BH_OK, 1 },
    { "two", "2", BH_OK, 8400 },
    { "more than one", "1.25", BH_OK, 5250 },
    { "a third in decimals", "0.33333", BH_INVALID, 0 },
    { "half a part", "1/8400", BH_INVALID, 0 },
    { "ten decimals", "0.5000000000", BH_INVALID, 0 },
    { "point without digits", "1.", BH_INVALID, 0 },
    { "digits without whole", ".5", BH_INVALID, 0 },
    { "divided by zero", "1/0", BH_INVALID, 0 },
    { "divided by nothing", "1/", BH_INVALID, 0 },
    { "twice divided", "1/2/3", BH_INVALID, 0 },
    { "both forms", "1.5/2", BH_INVALID, 0 },
    { "zero first", "00.5", BH_INVALID, 0 },
    { "zero first below", "1/07", BH_INVALID, 0 },
    { "negative", "-1", BH_INVALID, 0 },
    { "percent", "50%", BH_INVALID, 0 },
    { "exponent", "5e-1", BH_INVALID, 0 },
    { "empty", "", BH_INVALID, 0 },
    { "largest", "4392081922311798", BH_OK, UINT64_MAX - 15 },
    { "one past largest", "4392081922311799", BH_RANGE, 0 },
    { "past largest by decimals", "18446744073709551615.5", BH_RANGE, 0 },
};

static void
test_parts(void **state)
{
    check_rows(parse_4200, part_rows, BH_COUNT(part_rows));
}

static void
test_parts_hint_names_the_nearest(void **state)
{
    struct bh_err err = { 0 };
    uint64_t parts;

    BH_CHECK_EQ("0.33333", bh_parse_parts("0.33333", 4200, &parts, &err), BH_INVALID);
    BH_CHECK_STR("0.33333", err.msg, "\"0.33333\" does not divide: a whole has 4200 parts");
    BH_CHECK_STR("0.33333", err.hint, "write 1399/4200 or 1400/4200");
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    bool good;
    /* clang-format off */
} hexes[] = {
    { "good", "00ff1a", true },    { "upper case", "00FF1A", false },
    { "short", "00ff1", false },   { "long", "00ff1a0", false },
    { "junk", "00fg1a", false },   { "prefix", "0x00ff", false },
    { "empty", "", false },
};
/* clang-format on */

static void
test_hex(void **state)
{
    for (size_t i = 0; i < BH_COUNT(hexes); i++) {
        unsigned char bytes[3] = { 1, 2, 3 };
        bool good = bh_parse_hex(hexes[i].text, bytes, sizeof bytes);

        BH_CHECK_EQ(hexes[i].name, good, hexes[i].good);
        BH_CHECK_EQ(hexes[i].name, memcmp(bytes, good ? "\x00\xff\x1a" : "\1\2\3", 3), 0);
    }
    BH_CHECK("none of none", bh_parse_hex("", NULL, 0));
    BH_CHECK_DONE();
}

static void
test_arithmetic(void **state)
{
    uint64_t value = UNTOUCHED;

    BH_CHECK("sum too large", !bh_add_u64(UINT64_MAX, 1, &value));
    BH_CHECK("product too large", !bh_mul_u64(1ULL << 32, 1ULL << 32, &value));
    BH_CHECK_EQ("untouched", value, UNTOUCHED);
    BH_CHECK("largest sum", bh_add_u64(UINT64_MAX - 1, 1, &value));
    BH_CHECK_EQ("largest sum", value, UINT64_MAX);
    BH_CHECK("largest product", bh_mul_u64((1ULL << 32) - 1, (1ULL << 32) + 1, &value));
    BH_CHECK_EQ("largest product", value, UINT64_MAX);
    BH_CHECK_DONE();
}

/* The hint has each unit that is taken, and no other. */
static void
test_hints_list_the_units(void **state)
{
    struct bh_err err;
    uint64_t value;

    BH_CHECK_EQ("bytes", bh_parse_bytes("1GB", &value, &err), BH_INVALID);
    BH_CHECK_STR("bytes", err.msg, "\"1GB\" has no known unit");
    BH_CHECK_STR("bytes", err.hint, "known units: B, k, M, G, T, Ki, Mi, Gi, Ti; bare digits are bytes");
    BH_CHECK_EQ("a fraction", bh_parse_bytes("1.5Gi", &value, &err), BH_INVALID);
    BH_CHECK_STR("a fraction", err.msg, "\"1.5Gi\" is no whole number with a unit");
    BH_CHECK_EQ("a span", bh_parse_span("5x", &value, &err), BH_INVALID);
    BH_CHECK_STR("a span", err.hint,
                 "known units: ms, s, m, h, d; bare digits are seconds, "
                 "1-02:30:00 is a day and more");
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hints_list_the_units),
    cmocka_unit_test(test_u64),
    cmocka_unit_test(test_u32),
    cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_span),
    cmocka_unit_test(test_utc),
    cmocka_unit_test(test_parts),
    cmocka_unit_test(test_parts_hint_names_the_nearest),
    cmocka_unit_test(test_hex),
    cmocka_unit_test(test_arithmetic),
};

BH_TEST_MAIN(tests)
