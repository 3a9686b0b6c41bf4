#ifndef BH_BASE_NUM_H
#define BH_BASE_NUM_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Strict parsing of numbers and arithmetic that knows when it overflows.  No
 * locale, no floating point, no leading blanks, signs or zeros. */

/* Decimal digits only.  BH_INVALID: not a number; BH_RANGE: over 2^64 - 1.
 * `ret_value` is untouched on failure. */
BH_MUST_USE bh_rc bh_parse_u64(const char *text, uint64_t *ret_value, struct bh_err *err);

/* As bh_parse_u64 within [low, high]; BH_RANGE outside. */
BH_MUST_USE bh_rc bh_parse_u32(const char *text, uint32_t low, uint32_t high, uint32_t *ret_value,
                               struct bh_err *err);

/* Of bytes and spans the hint lists the units that there are. */

/* A byte count: digits with an optional B, Ki, Mi, Gi, Ti (powers of 1024) or k, M,
 * G, T (powers of 1000).  BH_INVALID: fractions and junk; BH_RANGE: overflow. */
BH_MUST_USE bh_rc bh_parse_bytes(const char *text, uint64_t *ret_bytes, struct bh_err *err);

/* A span: digits with an optional ms, s, m, h, d, or a clock form "HH:MM:SS",
 * "D-HH:MM:SS" as Slurm writes it (zeros may lead there; at most 36,500 days and
 * 876,000 hours).  Bare digits are seconds. */
BH_MUST_USE bh_rc bh_parse_span(const char *text, uint64_t *ret_ns, struct bh_err *err);

/* A moment as RFC 3339 writes it in UTC, to the second: "2026-11-20T09:27:00Z", from 1970 to
 * 2400.  BH_INVALID: anything else, and days that there are not. */
BH_MUST_USE bh_rc bh_parse_utc(const char *text, uint64_t *ret_ns, struct bh_err *err);

/* `whole` parts of a decimal (at most 9 digits after the point) or "a/b" amount,
 * exactly: with whole = 4200,
 * "0.5" is 2100, "1/7" is 600, "2" is 8400.  BH_INVALID when the amount does not
 * divide ("0.33333"): the hint names the two nearest that do. */
BH_MUST_USE bh_rc bh_parse_parts(const char *text, uint32_t whole, uint64_t *ret_parts, struct bh_err *err);

/* `bytes` bytes from exactly 2 * bytes lower-case hex digits; false otherwise. */
bool bh_parse_hex(const char *text, void *ret_bytes, size_t bytes);

/* Checked sums and products.  False, and nothing stored, on overflow. */
static inline bool
bh_add_u64(uint64_t a, uint64_t b, uint64_t *ret_sum)
{
    uint64_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret_sum = sum;
    return true;
}

static inline bool
bh_mul_u64(uint64_t a, uint64_t b, uint64_t *ret_product)
{
    uint64_t product;

    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret_product = product;
    return true;
}

#endif
