#ifndef BH_REPLAY_SUPPOSE_H
#define BH_REPLAY_SUPPOSE_H

#include <stdio.h>

#include "base/err.h"
#include "engine/step/engine.h"
#include "ports/store.h"

/* What would have been: a change supposed at the end of a journal that was replayed.
 *
 *   drain=GPU, drain=NODE   no new work there
 *   cancel=JOB
 *   limit=TENANT:GPUS       a tenant's limit; "none"
 *   guarantee=TENANT:GPUS
 *
 * Plays copies of the engine with and without it and prints what is different, with names
 * from the store.
 *   BH_INVALID    no such change, or an amount that is none
 *   BH_NOT_FOUND  no GPU, node, tenant or job of that name
 *   and what the engine says to the change */
BH_MUST_USE bh_rc bh_suppose(const struct bh_store *store, const struct bh_engine *engine, const char *change,
                             FILE *out, struct bh_err *err);

#endif
