/* The state file: one mapped file that all privileged users of the simulated
 * driver share.
 *
 * It holds the state twice.  A writer takes the robust lock, copies the
 * current half over the other, changes that, and makes it current with one
 * store: a writer that dies at any point leaves a whole state behind.  Readers copy
 * what they need without a lock and repeat the copy when a commit passed. */
#ifndef BH_SIM_MACHINE_STORE_H
#define BH_SIM_MACHINE_STORE_H

#include <stddef.h>

#include "bulkhead/nvml_abi.h"
#include "sim/machine/sim.h"

struct sim_store;

/* Open the state file of `dir`; where it does not exist yet, create it from
 * the topology file beside it.
 *   DRIVER_NOT_LOADED        neither file exists, or the topology is wrong
 *   NO_PERMISSION            the file may not be opened
 *   LIB_RM_VERSION_MISMATCH  the file has another layout
 *   OPERATING_SYSTEM         anything else that failed */
nvmlReturn_t sim_store_open(const char *dir, struct sim_store **ret_store);
void sim_store_close(struct sim_store *store);

/* Make a new state file in `dir` that holds `state`, in place of any other.
 * Users of the old file keep the old state until they initialise again. */
nvmlReturn_t sim_store_replace(const char *dir, const struct sim_state *state);

/* Copy `length` bytes at `offset` of struct sim_state, as one commit left
 * them.  Never waits for a writer. */
void sim_store_read(const struct sim_store *store, size_t offset, size_t length, void *ret_copy);

/* Number of commits so far: equal numbers mean an equal state. */
uint64_t sim_store_generation(const struct sim_store *store);

/* Take the lock and return a copy of the state to change.  `commit` makes the
 * copy current and may be left out; `end` lets the lock go.  TIMEOUT when the
 * lock could not be had in 30 s. */
nvmlReturn_t sim_store_begin(struct sim_store *store, struct sim_state **ret_draft);
void sim_store_commit(struct sim_store *store);
void sim_store_end(struct sim_store *store);

/* Generation whose view files and proc tree were written out last.  Set it
 * only between begin and end. */
uint64_t sim_store_published(const struct sim_store *store);
void sim_store_set_published(struct sim_store *store, uint64_t generation);

/* The current state, between begin and end only. */
const struct sim_state *sim_store_current(const struct sim_store *store);

/* Read a whole small text file: NULL when it cannot be read.  Free it. */
char *sim_read_text(const char *path, size_t limit);

#endif
