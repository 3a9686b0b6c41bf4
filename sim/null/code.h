/* The null driver's code: what modules and libraries take of a device. */
#ifndef BH_SIM_NULL_CODE_H
#define BH_SIM_NULL_CODE_H

#include "sim/null/driver.h"

/* A context is there, with the libraries in it; it ends, with all code. */
void bh_null_code_begin(struct CUctx_st *context);
void bh_null_code_end(struct CUctx_st *context);

#endif
