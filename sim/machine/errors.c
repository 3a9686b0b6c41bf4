#include "sim/machine/errors.h"

#include <string.h>

static const struct {
    nvmlReturn_t code;
    const char *name, *text;
} errors[] = {
    { NVML_SUCCESS, "SUCCESS", "Success" },
    { NVML_ERROR_UNINITIALIZED, "UNINITIALIZED", "Uninitialized" },
    { NVML_ERROR_INVALID_ARGUMENT, "INVALID_ARGUMENT", "Invalid Argument" },
    { NVML_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED", "Not Supported" },
    { NVML_ERROR_NO_PERMISSION, "NO_PERMISSION", "Insufficient Permissions" },
    { NVML_ERROR_ALREADY_INITIALIZED, "ALREADY_INITIALIZED", "Already Initialized" },
    { NVML_ERROR_NOT_FOUND, "NOT_FOUND", "Not Found" },
    { NVML_ERROR_INSUFFICIENT_SIZE, "INSUFFICIENT_SIZE", "Insufficient Size" },
    { NVML_ERROR_INSUFFICIENT_POWER, "INSUFFICIENT_POWER", "Insufficient External Power" },
    { NVML_ERROR_DRIVER_NOT_LOADED, "DRIVER_NOT_LOADED", "Driver Not Loaded" },
    { NVML_ERROR_TIMEOUT, "TIMEOUT", "Timeout" },
    { NVML_ERROR_IRQ_ISSUE, "IRQ_ISSUE", "Interrupt Request Issue" },
    { NVML_ERROR_LIBRARY_NOT_FOUND, "LIBRARY_NOT_FOUND", "NVML Shared Library Not Found" },
    { NVML_ERROR_FUNCTION_NOT_FOUND, "FUNCTION_NOT_FOUND", "Function Not Found" },
    { NVML_ERROR_CORRUPTED_INFOROM, "CORRUPTED_INFOROM", "Corrupted infoROM" },
    { NVML_ERROR_GPU_IS_LOST, "GPU_IS_LOST", "GPU is lost" },
    { NVML_ERROR_RESET_REQUIRED, "RESET_REQUIRED", "GPU requires reset" },
    { NVML_ERROR_OPERATING_SYSTEM, "OPERATING_SYSTEM", "GPU access blocked by the operating system" },
    { NVML_ERROR_LIB_RM_VERSION_MISMATCH, "LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch" },
    { NVML_ERROR_IN_USE, "IN_USE", "In use by another client" },
    { NVML_ERROR_MEMORY, "MEMORY", "Insufficient Memory" },
    { NVML_ERROR_NO_DATA, "NO_DATA", "No data" },
    { NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "VGPU_ECC_NOT_SUPPORTED", "vGPU is not supported with ECC" },
    { NVML_ERROR_INSUFFICIENT_RESOURCES, "INSUFFICIENT_RESOURCES", "Insufficient Resources" },
    { NVML_ERROR_FREQ_NOT_SUPPORTED, "FREQ_NOT_SUPPORTED", "Frequency Not Supported" },
    { NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "ARGUMENT_VERSION_MISMATCH", "Argument Version Mismatch" },
    { NVML_ERROR_DEPRECATED, "DEPRECATED", "Deprecated" },
    { NVML_ERROR_NOT_READY, "NOT_READY", "Not Ready" },
    { NVML_ERROR_GPU_NOT_FOUND, "GPU_NOT_FOUND", "GPU Not Found" },
    { NVML_ERROR_INVALID_STATE, "INVALID_STATE", "Invalid State" },
    { NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "RESET_TYPE_NOT_SUPPORTED", "Reset Type Not Supported" },
    { NVML_ERROR_UNKNOWN, "UNKNOWN", "Unknown Error" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool
sim_error_parse(const char *name, size_t length, nvmlReturn_t *ret_code)
{
    for (size_t i = 0; i < COUNT(errors); i++) {
        if (strlen(errors[i].name) != length || memcmp(errors[i].name, name, length) != 0)
            continue;
        *ret_code = errors[i].code;
        return true;
    }
    return false;
}

const char *
sim_error_text(nvmlReturn_t code)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        if (errors[i].code == code)
            return errors[i].text;
    return "Unknown Error";
}
