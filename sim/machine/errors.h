/* Names and texts of NVML's result codes. */
#ifndef BH_SIM_MACHINE_ERRORS_H
#define BH_SIM_MACHINE_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "bulkhead/nvml_abi.h"

/* The code that a control file writes as `name` ("INSUFFICIENT_RESOURCES"). */
bool sim_error_parse(const char *name, size_t length, nvmlReturn_t *ret_code);

/* The sentence for a code; never NULL. */
const char *sim_error_text(nvmlReturn_t code);

#endif
