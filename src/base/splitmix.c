#include "base/splitmix.h"

/* 2^64 divided by the golden ratio, made odd. */
#define STEP UINT64_C(0x9e3779b97f4a7c15)

uint64_t
bh_splitmix_next(uint64_t *state)
{
    return bh_splitmix_mix(*state += STEP);
}

uint64_t
bh_splitmix_at(uint64_t seed, uint64_t index)
{
    return bh_splitmix_mix(seed + (index + 1) * STEP);
}

uint64_t
bh_splitmix_mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}
