#include "lab/openb/rounding.h"

#include <stdlib.h>

#include "base/assert.h"

/* A double, not negative, in units of 2^-80.  All that occur are below 2^15 and, being 0 or
 * at least 2^-21 with 53 significant bits, whole multiples of the unit. */
typedef unsigned __int128 fixed;
enum { UNIT_BITS = 80, SIGNIFICANT_BITS = 53 };

/* The expected shapes, in the artifact's order. */
struct bh_openb_rounding {
    uint32_t count;
    const struct bh_openb_kind *expected;
    fixed frequency[];
};

/* Where the artifact books what a node has free, by why a shape cannot use it: 0 lacks
 * cores and GPUs, 1 lacks GPUs, 2 can use it, 3 lacks cores, 4 and 5 a shape of cores alone
 * that fits or not, 6 another model.  F is the sum but for 2, in this order. */
enum { LACKS_BOTH, LACKS_GPUS, FITS, LACKS_CORES, CORES_FIT, CORES_LACK, NO_ACCESS, WHYS };

static uint32_t
rounding_bits_of(fixed value)
{
    uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;

    if (high)
        return 128 - (uint32_t)__builtin_clzll(high);
    return low ? 64 - (uint32_t)__builtin_clzll(low) : 0;
}

/* To 53 bits, half to even. */
static fixed
rounding_round_off(fixed value)
{
    uint32_t bits = rounding_bits_of(value);
    fixed step, rest;

    if (bits <= SIGNIFICANT_BITS)
        return value;
    step = (fixed)1 << (bits - SIGNIFICANT_BITS);
    rest = value & (step - 1);
    value -= rest;
    if (rest > step / 2 || (rest == step / 2 && (value & step)))
        value += step;
    return value;
}

/* The quotient as a double; `a` is at most `b`, both of at most 53 significant bits.  Where
 * the division leaves something, the last bit says so and keeps it off the ties. */
static fixed
rounding_divide(fixed a, fixed b)
{
    uint32_t shift = 127 - rounding_bits_of(a);
    fixed divisor = b, quotient;
    uint32_t lost = rounding_bits_of(b) > 64 ? rounding_bits_of(b) - 64 : 0;

    divisor >>= lost;
    BH_ASSERT(a <= b && divisor << lost == b);
    quotient = (a << shift) / divisor;
    quotient |= quotient * divisor != a << shift;
    quotient = rounding_round_off(quotient);
    shift += lost;
    return shift > UNIT_BITS ? quotient >> (shift - UNIT_BITS) : quotient << (UNIT_BITS - shift);
}

struct bh_openb_rounding *
bh_openb_rounding_new(const struct bh_openb_kind *expected, uint32_t count, uint32_t unexpected)
{
    struct bh_openb_rounding *rounding = calloc(1, sizeof *rounding + count * sizeof rounding->frequency[0]);
    fixed known = 0, share;

    BH_ASSERT(rounding);
    rounding->count = count;
    rounding->expected = expected;
    for (uint32_t i = 0; i < count; i++)
        known += expected[i].count;
    if (known == 0)
        return rounding;
    share = rounding_divide(known, known + unexpected);
    for (uint32_t i = 0; i < count; i++)
        rounding->frequency[i] =
            rounding_divide(rounding_divide(expected[i].count, known + unexpected), share);
    return rounding;
}

/* Free parts as thousandths of a GPU: of a node and, where the shape fits, of the GPUs with
 * too little. */
struct free_milli {
    uint32_t all, too_little;
};

static uint32_t
rounding_why(const struct bh_pack_node *left, const struct bh_pack_shape *want, struct free_milli *milli)
{
    bool cores = left->cpu_milli >= want->cpu_milli;
    uint32_t fitting = 0;

    if (want->gpus == 0)
        return cores ? CORES_FIT : CORES_LACK;
    if (!(want->models >> left->model & 1))
        return NO_ACCESS;
    milli->too_little = 0;
    for (uint32_t g = 0; g < left->gpus; g++) {
        fitting += left->parts[g] >= want->parts;
        milli->too_little += left->parts[g] < want->parts ? left->parts[g] * 5U / 21 : 0;
    }
    if (fitting >= want->gpus)
        return cores ? FITS : LACKS_CORES;
    return cores ? LACKS_GPUS : LACKS_BOTH;
}

static fixed
rounding_sum_of(const struct bh_openb_rounding *rounding, const struct bh_pack_node *left)
{
    struct free_milli milli = { 0 };
    fixed booked[WHYS] = { 0 }, sum = 0;

    for (uint32_t g = 0; g < left->gpus; g++)
        milli.all += left->parts[g] * 5U / 21;
    for (uint32_t i = 0; i < rounding->count; i++) {
        uint32_t because = rounding_why(left, &rounding->expected[i].shape, &milli);
        uint32_t lost = because == FITS ? milli.too_little : milli.all;
        fixed *book = &booked[because == FITS ? LACKS_GPUS : because];

        if (lost > 0)
            *book = rounding_round_off(*book + rounding_round_off(rounding->frequency[i] * lost));
    }
    for (uint32_t because = 0; because < WHYS; because++)
        sum = rounding_round_off(sum + booked[because]);
    return sum;
}

/* Does the change leave every sum's terms as they are?  Then it leaves the sums. */
static bool
rounding_changes_nothing(const struct bh_openb_rounding *rounding, const struct bh_pack_node *left,
                         const struct bh_pack_shape *want)
{
    bool any = false, changes = false;

    for (uint32_t g = 0; g < left->gpus; g++)
        any = any || left->parts[g] > 0;
    for (uint32_t i = 0; i < rounding->count && want->gpus == 0; i++) {
        uint32_t asked = rounding->expected[i].shape.cpu_milli;

        changes = changes || (asked <= left->cpu_milli && asked > left->cpu_milli - want->cpu_milli);
    }
    return !any || (want->gpus == 0 && !changes);
}

bool
bh_openb_rounding_seems_loss(const void *self, const struct bh_pack_node *left,
                             const struct bh_pack_shape *want, uint32_t gpus)
{
    const struct bh_openb_rounding *rounding = self;
    const fixed least = (fixed)1500 << (UNIT_BITS - 52);
    struct bh_pack_node after = *left;
    fixed before;

    if (rounding_changes_nothing(rounding, left, want))
        return false;
    after.cpu_milli -= want->cpu_milli;
    for (; gpus; gpus &= gpus - 1) {
        uint16_t *parts = &after.parts[__builtin_ctz(gpus)];

        *parts = (uint16_t)(*parts - want->parts);
    }
    before = rounding_sum_of(rounding, left);
    return rounding_sum_of(rounding, &after) >= before + least;
}
