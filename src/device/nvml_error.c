#include "device/nvml_internal.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    nvmlReturn_t result;
    bh_rc rc;
    const char *text, *hint;
} errors[] = {
    { NVML_ERROR_UNINITIALIZED, BH_UNAVAILABLE, "the driver's library is not initialised", "" },
    { NVML_ERROR_INVALID_ARGUMENT, BH_INVALID, "the driver refused an argument", "" },
    { NVML_ERROR_NOT_SUPPORTED, BH_UNAVAILABLE, "not supported here", "" },
    { NVML_ERROR_NO_PERMISSION, BH_DENIED, "no permission", "run bulkhead-node as root" },
    { NVML_ERROR_NOT_FOUND, BH_NOT_FOUND, "not found", "" },
    { NVML_ERROR_GPU_NOT_FOUND, BH_NOT_FOUND, "no such GPU", "" },
    { NVML_ERROR_INSUFFICIENT_POWER, BH_IO, "the GPU's power cable is not attached", "" },
    { NVML_ERROR_DRIVER_NOT_LOADED, BH_UNAVAILABLE, "the NVIDIA driver is not loaded",
      "load it (modprobe nvidia) or install it" },
    { NVML_ERROR_TIMEOUT, BH_UNCERTAIN, "the driver did not answer in time", "" },
    { NVML_ERROR_IRQ_ISSUE, BH_IO, "the GPU's interrupts do not work", "" },
    { NVML_ERROR_LIBRARY_NOT_FOUND, BH_UNAVAILABLE, "a library of the driver is missing", "" },
    { NVML_ERROR_FUNCTION_NOT_FOUND, BH_UNAVAILABLE, "this driver is too old for it",
      "install a newer driver" },
    { NVML_ERROR_CORRUPTED_INFOROM, BH_IO, "the GPU's infoROM is corrupted", "" },
    { NVML_ERROR_GPU_IS_LOST, BH_NOT_FOUND, "the GPU fell off the bus",
      "reboot the server; replace the GPU if it is lost again" },
    { NVML_ERROR_RESET_REQUIRED, BH_CONFLICT, "the GPU needs a reset",
      "stop what uses it, then: nvidia-smi --gpu-reset -i GPU" },
    { NVML_ERROR_OPERATING_SYSTEM, BH_IO, "the operating system refused", "" },
    { NVML_ERROR_LIB_RM_VERSION_MISMATCH, BH_UNAVAILABLE,
      "the driver's library and kernel module differ in version", "reload the kernel module or reboot" },
    { NVML_ERROR_IN_USE, BH_CONFLICT, "in use", "" },
    { NVML_ERROR_MEMORY, BH_IO, "out of memory", "" },
    { NVML_ERROR_INSUFFICIENT_RESOURCES, BH_FULL, "the place is taken", "" },
    { NVML_ERROR_ARGUMENT_VERSION_MISMATCH, BH_UNAVAILABLE, "this driver has another version of the struct",
      "" },
    { NVML_ERROR_NOT_READY, BH_UNAVAILABLE, "the GPU is not ready", "try again" },
    { NVML_ERROR_INVALID_STATE, BH_CONFLICT, "the GPU's state does not allow it", "" },
};

bool
bh_nvml_lost(nvmlReturn_t result)
{
    return result == NVML_ERROR_GPU_IS_LOST || result == NVML_ERROR_RESET_REQUIRED;
}

bh_rc
bh_nvml_fail(struct bh_err *err, nvmlReturn_t result, const char *format, ...)
{
    char what[160];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (size_t i = 0; i < BH_COUNT(errors); i++) {
        if (errors[i].result != result)
            continue;
        bh_err_sys(err, errors[i].rc, BH_SYS_NVML, (int)result, "%s: %s", what, errors[i].text);
        return errors[i].hint[0] ? bh_err_hint(err, "%s", errors[i].hint) : err->rc;
    }
    return bh_err_sys(err, BH_IO, BH_SYS_NVML, (int)result, "%s: NVML error %d", what, (int)result);
}
