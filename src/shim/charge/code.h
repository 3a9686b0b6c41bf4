/* What libraries take: their sum counts in each context of a device. */
#ifndef BH_SHIM_CHARGE_CODE_H
#define BH_SHIM_CHARGE_CODE_H

#include <stdint.h>

#include "shim/process/abi.h"

/* At the first join. */
void bh_code_init(void);

/* A context more of a device.  OUT_OF_MEMORY. */
CUresult bh_code_enter(unsigned device);

/* A context less, or it could not be made. */
void bh_code_leave(unsigned device);

/* Libraries take so much more in each context.  OUT_OF_MEMORY; or less. */
CUresult bh_code_grow(unsigned device, uint64_t grains);
void bh_code_shrink(unsigned device, uint64_t grains);

#endif
