/* The calls of tables/nvml.tbl that this library does not implement.  They
 * must exist: clients that bind lazily die on a missing symbol. */
#include "sim/nvml/nvml.h"

#define NVML_STUB(name)                                                                                      \
    NVML_API nvmlReturn_t name(void);                                                                        \
    NVML_API nvmlReturn_t name(void)                                                                         \
    {                                                                                                        \
        nvmlReturn_t rc = sim_enter(__func__);                                                               \
                                                                                                             \
        return rc == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rc;                                           \
    }
NVML_STUB(nvmlGetBlacklistDeviceInfoByIndex)
#include "tables/nvml.tbl"
