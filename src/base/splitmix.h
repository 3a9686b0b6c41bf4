#ifndef BH_BASE_SPLITMIX_H
#define BH_BASE_SPLITMIX_H

#include <stdint.h>

/* splitmix64, by Sebastiano Vigna (https://prng.di.unimi.it/splitmix64.c, public domain), after
 * Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.  Every
 * seed is a good one.  Numbers that look random and can be had again: for samples and simulations,
 * never for secrets. */

/* The next number; `state` is the seed at first. */
uint64_t bh_splitmix_next(uint64_t *state);

/* The number that is `index` steps after the first one of `seed`. */
uint64_t bh_splitmix_at(uint64_t seed, uint64_t index);

/* Its last step alone: spreads every bit of `value` over the result; 0 stays 0. */
uint64_t bh_splitmix_mix(uint64_t value);

#endif
