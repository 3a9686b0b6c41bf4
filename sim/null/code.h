/* The null driver's code: what modules and libraries take of a device. */
#ifndef BH_SIM_NULL_CODE_H
#define BH_SIM_NULL_CODE_H

#include "sim/null/driver.h"

/* A context is there, with the libraries in it; it ends, with all code. */
void bh_null_code_begin(struct CUctx_st *context);
void bh_null_code_end(struct CUctx_st *context);

/* A context has more code, or less. */
void bh_null_code_change(struct CUctx_st *context, uint64_t more, uint64_t less);

extern uint64_t bh_null_library_bytes; /* in each context; under bh_null_lock */

#endif
