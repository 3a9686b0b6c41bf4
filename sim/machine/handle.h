/* Handles given to callers: pointers into one table of this library. */
#ifndef BH_SIM_MACHINE_HANDLE_H
#define BH_SIM_MACHINE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

enum sim_handle_kind { SIM_HANDLE_FREE, SIM_HANDLE_GPU, SIM_HANDLE_MIG, SIM_HANDLE_GI, SIM_HANDLE_CI };

struct sim_handle {
    uint32_t magic;
    uint32_t gpu;
    enum sim_handle_kind kind;
    uint64_t epoch;  /* the initialisation it belongs to */
    uint64_t gi, ci; /* births; 0 where the kind has none */
};

/* The handle of this thing: the same pointer for the same thing.  NULL when
 * the table is full of live handles. */
const struct sim_handle *sim_handle_get(enum sim_handle_kind kind, uint32_t gpu, uint64_t gi, uint64_t ci);

/* Read the handle that `pointer` names; false when it names none of the present
 * initialisation.  Safe for any pointer. */
bool sim_handle_find(const void *pointer, struct sim_handle *ret_handle);

/* Make all handles stale: the last shutdown. */
void sim_handle_retire(void);

#endif
