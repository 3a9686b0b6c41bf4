/* What the files of exported calls share. */
#ifndef BH_SIM_NVML_NVML_H
#define BH_SIM_NVML_NVML_H

#include <stddef.h>

#include "bulkhead/nvml_abi.h"
#include "sim/machine/identity.h"
#include "sim/machine/session.h"

#define NVML_API __attribute__((visibility("default")))

/* A second exported name of a call defined above in the same file. */
#define SIM_ALIAS(name, target) NVML_API __typeof__(target) name __attribute__((alias(#target)))

/* Copy a text out: INVALID_ARGUMENT without a buffer, INSUFFICIENT_SIZE when
 * it does not fit, and then nothing is written. */
nvmlReturn_t sim_put_text(char *buffer, unsigned length, const char *text);

/* Write a number through a pointer that the caller gave. */
#define SIM_PUT(pointer, value)                                                                              \
    ((pointer) == NULL ? NVML_ERROR_INVALID_ARGUMENT : (*(pointer) = (value), NVML_SUCCESS))

/* Wall clock in microseconds, as NVML stamps samples. */
uint64_t sim_wall_us(void);

#endif
