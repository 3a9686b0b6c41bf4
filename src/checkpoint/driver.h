#ifndef BH_CHECKPOINT_DRIVER_H
#define BH_CHECKPOINT_DRIVER_H

#include "base/err.h"
#include "checkpoint/sequence.h"

/* The vendor's library. */

/* Load libcuda.so.1 from that folder (NULL or "": where libraries are), and find its calls.
 *   BH_UNAVAILABLE  there is none, or it has no checkpoint calls
 * It stays loaded. */
BH_MUST_USE bh_rc bh_checkpoint_driver_load(const char *folder, struct bh_checkpoint_driver *ret_driver,
                                            struct bh_err *err);

/* cuInit, which every other call wants.  BH_IO: the driver refuses. */
BH_MUST_USE bh_rc bh_checkpoint_driver_init(const struct bh_checkpoint_driver *driver, struct bh_err *err);

#endif
