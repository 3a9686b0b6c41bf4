#include "device/nvml_internal.h"

nvmlReturn_t
bh_nvml_memory(struct bh_nvml *nvml, nvmlDevice_t handle, nvmlMemory_v2_t *ret_memory)
{
    nvmlMemory_v2_t memory = { .version = nvmlMemory_v2_t_WORD };
    nvmlMemory_t older = { 0 };
    nvmlReturn_t result = nvml_call(nvml, memory_v2, handle, &memory);

    if (result != NVML_SUCCESS) {
        result = nvml_call(nvml, memory, handle, &older);
        memory.total = older.total;
        memory.used = older.used;
    }
    if (result == NVML_SUCCESS)
        *ret_memory = memory;
    return result;
}
