/* The NVML library that bulkhead-smi talks to: the vendor's or the simulated
 * one, found by the dynamic loader, every call looked up by name. */
#ifndef BH_SIM_SMI_NVML_H
#define BH_SIM_SMI_NVML_H

#include <stdbool.h>
#include <stddef.h>

#include "bulkhead/nvml_abi.h"

struct bh_smi_nvml {
    void *library;
    char path[512]; /* the file that was loaded */
#define NVML_CALL(name, params) nvmlReturn_t(*name) params;
#include "tables/nvml.tbl"
    const char *(*nvmlErrorString)(nvmlReturn_t result);
};

/* Load the library at `path`, or by its soname when `path` is NULL, and
 * initialise it.  A call that an old library lacks answers FUNCTION_NOT_FOUND.
 * On failure the reason stands in `ret_reason`. */
bool bh_smi_nvml_open(const char *path, struct bh_smi_nvml *ret_nvml, char *ret_reason, size_t size);
void bh_smi_nvml_close(struct bh_smi_nvml *nvml);

/* Is it the simulated driver? */
bool bh_smi_nvml_is_simulated(const struct bh_smi_nvml *nvml);

#endif
