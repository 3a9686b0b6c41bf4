/* What the device holds, in the world that a test may watch. */
#ifndef BH_SIM_NULL_HELD_H
#define BH_SIM_NULL_HELD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/null/world.h"

extern pthread_mutex_t bh_null_lock;
extern struct null_world *bh_null_world;
extern bool bh_null_shared;     /* a test watches */
extern unsigned bh_null_number; /* of this process in the world */

/* With all signals blocked; that of the world also when its owner was killed. */
void bh_null_lock_quietly(pthread_mutex_t *lock, sigset_t *ret_before);
void bh_null_unlock(pthread_mutex_t *lock, const sigset_t *before);

uint64_t bh_null_now_ns(void);

/* What the device holds, for the test that watches. */
void bh_null_take(int device, uint64_t bytes);
void bh_null_give(int device, uint64_t bytes);

uint64_t bh_null_up(uint64_t bytes, uint64_t step);

/* So many calls fail, then none. */
bool bh_null_fails(_Atomic uint32_t *left);

#endif
