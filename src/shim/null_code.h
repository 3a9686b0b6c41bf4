/* The null driver's code: what modules and libraries take of a device. */
#ifndef BH_SHIM_NULL_CODE_H
#define BH_SHIM_NULL_CODE_H

#include "shim/null_driver.h"

/* A context is there, with the libraries in it; it ends, with all code. */
void bh_null_code_begin(struct CUctx_st *context);
void bh_null_code_end(struct CUctx_st *context);

#endif
