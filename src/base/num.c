#include "base/num.h"

#include <string.h>

#include "base/buf.h"

static bool
num_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at *at, moving it behind them; BH_INVALID when there are none.  Leading
 * zeros pass: clocks and fractions have them. */
static bh_rc
num_read_digits(const char **at, uint64_t *ret_value, struct bh_err *err)
{
    const char *start = *at, *p = start;
    uint64_t value = 0;

    for (; num_is_digit(*p); p++)
        if (!bh_mul_u64(value, 10, &value) || !bh_add_u64(value, (uint64_t)(*p - '0'), &value))
            return bh_err_set(err, BH_RANGE, "\"%.30s\" is too large", start);
    if (p == start && *start == '-' && num_is_digit(start[1]))
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is negative", start);
    if (p == start)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a number", start);
    *at = p;
    *ret_value = value;
    return BH_OK;
}

/* As num_read_digits, refusing leading zeros: some would read them as octal. */
static bh_rc
num_read_number(const char **at, uint64_t *ret_value, struct bh_err *err)
{
    const char *start = *at;

    if (start[0] == '0' && num_is_digit(start[1]))
        return bh_err_set(err, BH_INVALID, "\"%.40s\" has a leading zero", start);
    return num_read_digits(at, ret_value, err);
}

bh_rc
bh_parse_u64(const char *text, uint64_t *ret_value, struct bh_err *err)
{
    const char *at = text;
    uint64_t value;
    bh_rc rc = num_read_number(&at, &value, err);

    if (rc != BH_OK)
        return rc;
    if (*at)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a number", text);
    *ret_value = value;
    return BH_OK;
}

bh_rc
bh_parse_u32(const char *text, uint32_t low, uint32_t high, uint32_t *ret_value, struct bh_err *err)
{
    uint64_t value;
    bh_rc rc = bh_parse_u64(text, &value, err);

    if (rc != BH_OK)
        return rc;
    if (value < low || value > high)
        return bh_err_set(err, BH_RANGE, "%" PRIu64 " is not between %" PRIu32 " and %" PRIu32, value, low,
                          high);
    *ret_value = (uint32_t)value;
    return BH_OK;
}

struct num_unit {
    const char *suffix;
    uint64_t factor;
};

struct units {
    const struct num_unit *all;
    size_t count;
    const char *rest; /* what else there is to know of them, for users */
};

/* "known units: Ki, Mi; bare digits are bytes" */
static bh_rc
num_refuse_unit(const char *text, const struct units *units, struct bh_err *err)
{
    char memory[sizeof err->hint];
    struct bh_buf hint;

    if (strchr(text, '.') || strchr(text, ','))
        bh_err_set(err, BH_INVALID, "\"%.40s\" is no whole number with a unit", text);
    else
        bh_err_set(err, BH_INVALID, "\"%.40s\" has no known unit", text);
    bh_buf_init_fixed(&hint, memory, sizeof memory);
    bh_buf_puts(&hint, "known units:");
    for (size_t i = 0; i < units->count; i++)
        if (*units->all[i].suffix)
            bh_buf_printf(&hint, "%s %s", hint.length > sizeof "known units:" ? "," : "",
                          units->all[i].suffix);
    bh_buf_printf(&hint, "; %s", units->rest);
    return bh_err_hint(err, "%s", bh_buf_text(&hint));
}

static const struct num_unit *
num_find_unit(const struct units *units, const char *suffix)
{
    for (size_t i = 0; i < units->count; i++)
        if (strcmp(units->all[i].suffix, suffix) == 0)
            return &units->all[i];
    return NULL;
}

static bh_rc
num_parse_with_unit(const char *text, const struct units *units, uint64_t *ret_value, struct bh_err *err)
{
    const char *at = text;
    const struct num_unit *unit;
    uint64_t value;
    bh_rc rc = num_read_number(&at, &value, err);

    if (rc != BH_OK)
        return rc;
    unit = num_find_unit(units, at);
    if (!unit)
        return num_refuse_unit(text, units, err);
    if (!bh_mul_u64(value, unit->factor, &value))
        return bh_err_set(err, BH_RANGE, "\"%.40s\" is too large", text);
    *ret_value = value;
    return BH_OK;
}

bh_rc
bh_parse_bytes(const char *text, uint64_t *ret_bytes, struct bh_err *err)
{
    /* clang-format off */
    static const struct num_unit all[] = {
        { "", 1 },          { "B", 1 },           { "k", 1000 },
        { "M", 1000000 },   { "G", 1000000000 },  { "T", 1000000000000 },
        { "Ki", 1ULL << 10 }, { "Mi", 1ULL << 20 }, { "Gi", 1ULL << 30 }, { "Ti", 1ULL << 40 },
    };
    /* clang-format on */
    static const struct units units = { all, BH_COUNT(all), "bare digits are bytes" };

    return num_parse_with_unit(text, &units, ret_bytes, err);
}

/* "HH:MM:SS" or "D-HH:MM:SS", in seconds. */
static bh_rc
num_parse_clock(const char *text, uint64_t *ret_seconds, struct bh_err *err)
{
    uint64_t field[3], days = 0;
    const char *at = text;

    if (strchr(text, '-')) {
        bh_rc rc = num_read_digits(&at, &days, err);

        if (rc != BH_OK)
            return rc;
        if (*at++ != '-' || days > 36500)
            return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a span", text);
    }
    for (int i = 0; i < 3; i++) {
        bh_rc rc = num_read_digits(&at, &field[i], err);

        if (rc != BH_OK)
            return rc;
        if (*at++ != (i < 2 ? ':' : '\0') || field[i] > (i == 0 ? 876000u : 59u))
            return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a span like 1-02:30:00", text);
    }
    *ret_seconds = days * 86400 + field[0] * 3600 + field[1] * 60 + field[2];
    return BH_OK;
}

bh_rc
bh_parse_span(const char *text, uint64_t *ret_ns, struct bh_err *err)
{
    static const struct num_unit all[] = {
        { "", 1000000000 },   { "ms", 1000000 },      { "s", 1000000000 },
        { "m", 60000000000 }, { "h", 3600000000000 }, { "d", 86400000000000 },
    };
    static const struct units units = { all, BH_COUNT(all),
                                        "bare digits are seconds, 1-02:30:00 is a day and more" };
    uint64_t seconds;
    bh_rc rc;

    if (!strchr(text, ':'))
        return num_parse_with_unit(text, &units, ret_ns, err);
    rc = num_parse_clock(text, &seconds, err);
    if (rc != BH_OK)
        return rc;
    *ret_ns = seconds * 1000000000;
    return BH_OK;
}

/* Days from 1970-01-01 to a day of the Gregorian calendar. */
static uint64_t
num_days_before(uint32_t year, uint32_t month, uint32_t day)
{
    static const uint16_t before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    uint32_t leap_years = month > 2 ? year : year - 1; /* those whose 29 February is over */
    uint64_t leaps = leap_years / 4 - leap_years / 100 + leap_years / 400 - 477;

    return (uint64_t)(year - 1970) * 365 + leaps + before[month - 1] + day - 1;
}

static uint32_t
num_days_in(uint32_t year, uint32_t month)
{
    static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    return days[month - 1] + (month == 2 && leap);
}

bh_rc
bh_parse_utc(const char *text, uint64_t *ret_ns, struct bh_err *err)
{
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    static const uint32_t low[] = { 1970, 1, 1, 0, 0, 0 };
    static const uint32_t high[] = { 2400, 12, 31, 23, 59, 59 };
    uint32_t field[6] = { 0 }, at = 0;
    bool fits = strlen(text) == sizeof form - 1;

    for (size_t i = 0; fits && form[i]; i++) {
        fits = form[i] == 'd' ? num_is_digit(text[i]) : text[i] == form[i];
        if (form[i] == 'd')
            field[at] = field[at] * 10 + (uint32_t)(text[i] - '0');
        else
            at++;
    }
    for (uint32_t i = 0; fits && i < 6; i++)
        fits = field[i] >= low[i] && field[i] <= high[i];
    if (!fits || field[2] > num_days_in(field[0], field[1]))
        return bh_err_set(err, BH_INVALID,
                          "\"%.40s\" is not a moment like "
                          "2026-11-20T09:27:00Z",
                          text);
    *ret_ns =
        (num_days_before(field[0], field[1], field[2]) * 86400 + field[3] * 3600 + field[4] * 60 + field[5])
        * 1000000000;
    return BH_OK;
}

/* What follows the point, put behind the digits of *num; *den is the power of ten. */
static bh_rc
num_read_fraction(const char **at, uint64_t *num, uint64_t *den, struct bh_err *err)
{
    const char *start = *at, *p = start;

    for (; num_is_digit(*p) && p - start < 9; p++, *den *= 10)
        if (!bh_mul_u64(*num, 10, num) || !bh_add_u64(*num, (uint64_t)(*p - '0'), num))
            return bh_err_set(err, BH_RANGE, "the amount is too large");
    if (p == start)
        return bh_err_set(err, BH_INVALID, "no digits after the point");
    if (num_is_digit(*p))
        return bh_err_set(err, BH_INVALID, "more than 9 digits after the point");
    *at = p;
    return BH_OK;
}

/* An amount as a fraction numerator/denominator. */
static bh_rc
num_read_amount(const char *text, uint64_t *ret_num, uint64_t *ret_den, struct bh_err *err)
{
    const char *at = text;
    uint64_t num, den = 1;
    bh_rc rc = num_read_number(&at, &num, err);

    if (rc == BH_OK && *at == '/') {
        at++;
        rc = num_read_number(&at, &den, err);
    } else if (rc == BH_OK && *at == '.') {
        at++;
        rc = num_read_fraction(&at, &num, &den, err);
    }
    if (rc != BH_OK)
        return rc;
    if (*at || den == 0)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not an amount like 2, 0.5 or 1/7", text);
    *ret_num = num;
    *ret_den = den;
    return BH_OK;
}

bh_rc
bh_parse_parts(const char *text, uint32_t whole, uint64_t *ret_parts, struct bh_err *err)
{
    uint64_t num, den, product;
    bh_rc rc = num_read_amount(text, &num, &den, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_mul_u64(num, whole, &product))
        return bh_err_set(err, BH_RANGE, "\"%.40s\" is too large", text);
    if (product % den) {
        bh_err_set(err, BH_INVALID, "\"%.40s\" does not divide: a whole has %" PRIu32 " parts", text, whole);
        return bh_err_hint(err, "write %" PRIu64 "/%" PRIu32 " or %" PRIu64 "/%" PRIu32, product / den, whole,
                           product / den + 1, whole);
    }
    *ret_parts = product / den;
    return BH_OK;
}

static int
num_hex_digit(char c)
{
    if (num_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
bh_parse_hex(const char *text, void *ret_bytes, size_t bytes)
{
    unsigned char *out = ret_bytes;

    if (strnlen(text, 2 * bytes + 1) != 2 * bytes)
        return false;
    for (size_t i = 0; i < 2 * bytes; i++)
        if (num_hex_digit(text[i]) < 0)
            return false;
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(num_hex_digit(text[2 * i]) << 4 | num_hex_digit(text[2 * i + 1]));
    return true;
}
