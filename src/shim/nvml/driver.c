#include "shim/nvml/driver.h"

#include "bulkhead/share_socket.h"

static const char *const names[] = {
#define NVML_NAME(name) #name,
#include "tables/nvml_names.tbl"
#undef NVML_NAME
};

static nvmlReturn_t
driver_lacking(void)
{
    return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static nvmlReturn_t
no_driver(void)
{
    return NVML_ERROR_LIBRARY_NOT_FOUND;
}

struct bh_library bh_driver = {
    .path = BH_SHARE_DRIVER_DIR "/libnvidia-ml.so.1",
    .known = "nvmlInit_v2",
    .own = (void *)nvmlInit_v2,
    .names = names,
    .absent = (void *)no_driver,
    .lacking = (void *)driver_lacking,
};

nvmlReturn_t
bh_nvml_refused(void)
{
    return NVML_ERROR_NO_PERMISSION;
}

nvmlReturn_t
bh_nvml_hidden(void)
{
    return NVML_ERROR_NOT_SUPPORTED;
}
