/* Modules and libraries: what the code and variables of an image take in each context.
 *
 * A module belongs to the context that it was loaded in and is charged there.  A library
 * comes into contexts when the driver likes: it counts in each of them, those that are made
 * later included. */
#ifndef BH_SHIM_CALLS_MODULE_H
#define BH_SHIM_CALLS_MODULE_H

#include "shim/process/abi.h"

/* At the first join. */
void bh_modules_init(void);

/* A context is gone, with the modules in it. */
void bh_modules_drop(unsigned context);

#endif
