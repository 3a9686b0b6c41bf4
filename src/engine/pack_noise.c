#include "engine/pack_noise.h"

#include "base/assert.h"

/* A double, not negative, in units of 2^-80.  All that occur are below 2^15 and, being 0 or
 * at least 2^-21 with 53 significant bits, whole multiples of the unit. */
typedef unsigned __int128 fixed;
enum { UNIT_BITS = 80, SIGNIFICANT_BITS = 53 };

/* An expected shape. */
struct typical {
    fixed frequency;
    struct bh_pack_shape want;
    uint32_t weight;
};

/* Where the artifact books what a node has free, by why a shape cannot use it: 0 lacks
 * cores and GPUs, 1 lacks GPUs, 2 can use it, 3 lacks cores, 4 and 5 a shape of cores alone
 * that fits or not, 6 another model.  F is the sum but for 2, in this order. */
enum { LACKS_BOTH, LACKS_GPUS, FITS, LACKS_CORES, CORES_FIT, CORES_LACK, NO_ACCESS, WHYS };

size_t
bh_pack_noise_size(const struct bh_pack_caps *caps)
{
    return caps->shapes * sizeof(struct typical);
}

static uint32_t
bits_of(fixed value)
{
    uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;

    if (high)
        return 128 - (uint32_t)__builtin_clzll(high);
    return low ? 64 - (uint32_t)__builtin_clzll(low) : 0;
}

/* To 53 bits, half to even. */
static fixed
round_off(fixed value)
{
    uint32_t bits = bits_of(value);
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
divide(fixed a, fixed b)
{
    uint32_t shift = 127 - bits_of(a);
    fixed divisor = b, quotient;
    uint32_t lost = bits_of(b) > 64 ? bits_of(b) - 64 : 0;

    divisor >>= lost;
    BH_ASSERT(a <= b && divisor << lost == b);
    quotient = (a << shift) / divisor;
    quotient |= quotient * divisor != a << shift;
    quotient = round_off(quotient);
    shift += lost;
    return shift > UNIT_BITS ? quotient >> (shift - UNIT_BITS)
                             : quotient << (UNIT_BITS - shift);
}

static bool
is_before(const struct typical *a, const struct typical *b)
{
    if (a->weight != b->weight)
        return a->weight > b->weight;
    if (a->want.cpu_milli != b->want.cpu_milli)
        return a->want.cpu_milli > b->want.cpu_milli;
    if (a->want.parts != b->want.parts)
        return a->want.parts > b->want.parts;
    return a->want.gpus > b->want.gpus;
}

static struct typical *
typicals_of(const struct bh_pack *pack)
{
    return bh_pack_at(pack, pack->typicals);
}

static void
pack_noise_insert(struct bh_pack *pack, const struct bh_pack_request *ask)
{
    struct typical *list = typicals_of(pack);
    struct typical one = { .want = ask->want, .weight = ask->weight };
    uint32_t at = pack->typical_count++;

    for (; at > 0 && is_before(&one, &list[at - 1]); at--)
        list[at] = list[at - 1];
    list[at] = one;
}

void
bh_pack_noise_build(struct bh_pack *pack)
{
    struct typical *list = typicals_of(pack);
    fixed all = pack->loss.weight + pack->unexpected, share;

    pack->typical_count = 0;
    for (uint32_t s = 0; s < pack->shapes; s++)
        if (bh_pack_request(pack, s)->weight > 0)
            pack_noise_insert(pack, bh_pack_request(pack, s));
    if (pack->typical_count == 0)
        return;
    share = divide(pack->loss.weight, all);
    for (uint32_t i = 0; i < pack->typical_count; i++)
        list[i].frequency = divide(divide(list[i].weight, all), share);
}

/* Free parts as thousandths of a GPU: of a node and, where the shape fits, of the GPUs with
 * too little. */
struct free_milli {
    uint32_t all, too_little;
};

static uint32_t
why(const struct bh_pack_node *left, const struct bh_pack_shape *want,
    struct free_milli *milli)
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
sum_of(const struct bh_pack *pack, const struct bh_pack_node *left)
{
    const struct typical *list = typicals_of(pack);
    struct free_milli milli = { 0 };
    fixed booked[WHYS] = { 0 }, sum = 0;

    for (uint32_t g = 0; g < left->gpus; g++)
        milli.all += left->parts[g] * 5U / 21;
    for (uint32_t i = 0; i < pack->typical_count; i++) {
        uint32_t because = why(left, &list[i].want, &milli);
        uint32_t lost = because == FITS ? milli.too_little : milli.all;
        fixed *book = &booked[because == FITS ? LACKS_GPUS : because];

        if (lost > 0)
            *book = round_off(*book + round_off(list[i].frequency * lost));
    }
    for (uint32_t because = 0; because < WHYS; because++)
        sum = round_off(sum + booked[because]);
    return sum;
}

/* Does the change leave every sum's terms as they are?  Then it leaves the sums. */
static bool
changes_nothing(const struct bh_pack *pack, const struct bh_pack_host *host,
                const struct bh_pack_shape *want)
{
    const struct bh_pack_ladder *cores = &pack->loss.cores;
    uint32_t left = host->left.cpu_milli;

    return host->parts == 0 ||
           (want->gpus == 0 && bh_pack_ladder_count(cores, left) ==
                                   bh_pack_ladder_count(cores, left - want->cpu_milli));
}

bool
bh_pack_noise_is_loss(const struct bh_pack *pack, const struct bh_pack_host *host,
                      const struct bh_pack_shape *want, uint32_t gpus)
{
    const fixed least = (fixed)1500 << (UNIT_BITS - 52);
    struct bh_pack_node after = host->left;
    fixed before;

    if (changes_nothing(pack, host, want))
        return false;
    after.cpu_milli -= want->cpu_milli;
    for (; gpus; gpus &= gpus - 1) {
        uint16_t *parts = &after.parts[__builtin_ctz(gpus)];

        *parts = (uint16_t)(*parts - want->parts);
    }
    before = sum_of(pack, &host->left);
    return sum_of(pack, &after) >= before + least;
}
