/* What a device is like, and its id on the PCI bus. */
#include "sim/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

#define ATTRIBUTES_MAX 160 /* past the last that CUDA 13 has */

/* What all boards answer alike.  Of those not listed, 0: they have it not. */
static const int constants[ATTRIBUTES_MAX] = {
    [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
    [2] = 1024, /* block dimensions */
    [3] = 1024,
    [4] = 64,
    [5] = 2147483647, /* grid dimensions */
    [6] = 65535,
    [7] = 65535,
    [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 49152,
    [9] = 65536, /* constant memory */
    [CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
    [11] = 2147483647, /* pitch */
    [12] = 65536,      /* registers in a block */
    [13] = 1980000,    /* clock, kHz */
    [14] = 512,        /* texture alignment */
    [15] = 1,          /* a copy beside a kernel */
    [19] = 1,          /* host memory can be mapped */
    [CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
    [CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 2619000,
    [CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 5120,
    [38] = 52428800,
    [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = 2048,
    [CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 3,
    [CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
    [51] = 32, /* texture pitch alignment */
    [78] = 1,  /* stream priorities */
    [79] = 1,  /* caches of globals and locals */
    [80] = 1,
    [81] = 233472, /* shared memory and registers of a multiprocessor */
    [82] = 65536,
    [CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1,
    [86] = 1, /* native atomics */
    [88] = 1, /* pageable memory */
    [89] = 1, /* managed memory at the same time as the host */
    [90] = 1,
    [91] = 1,
    [CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
    [97] = 232448, /* shared memory that a block may ask for */
    [99] = 1,      /* memory of the host can be registered */
    [CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
    [CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
    [106] = 32, /* blocks of a multiprocessor */
    [111] = 1024,
    [CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
    [118] = 1, /* handle types of pools: file descriptors */
    [120] = 1, /* deferred arrays */
};

/* What follows from the device; false: it is one of the others. */
static bool
attribute_find_own(const struct sim_cuda_device *device, int attribute, int *ret_value)
{
    const struct {
        int attribute, value;
    } own[] = {
        { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, (int)sim_cuda_sms(device) },
        { CU_DEVICE_ATTRIBUTE_ECC_ENABLED, (int)device->gpu.ecc_mode },
        { CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, (int)device->gpu.bus },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, (int)device->model->cc_major },
        { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, (int)device->model->cc_minor },
    };

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i].attribute == attribute) {
            *ret_value = own[i].value;
            return true;
        }
    return false;
}

CUDA_API CUresult
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (value == NULL || (int)attribute <= 0 || (int)attribute >= ATTRIBUTES_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!attribute_find_own(&device, (int)attribute, value))
        *value = constants[attribute];
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceComputeCapability(int *major, int *minor, CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)device.model->cc_major;
    *minor = (int)device.model->cc_minor;
    return CUDA_SUCCESS;
}

/* No device of a simulated server reaches into another. */
CUDA_API CUresult
cuDeviceCanAccessPeer(int *can_access_peer, CUdevice number, CUdevice peer)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_device(peer, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (can_access_peer == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *can_access_peer = 0;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t all;
    CUresult rc = cuDeviceTotalMem_v2(&all, device);

    if (rc != CUDA_SUCCESS || bytes == NULL)
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    *bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    return CUDA_SUCCESS;
}

static void
attribute_format_bus_id(const struct sim_cuda_device *device, char text[16])
{
    snprintf(text, 16, "0000:%02X:00.0", device->gpu.bus & 0xFFu);
}

CUDA_API CUresult
cuDeviceGetPCIBusId(char *pci_bus_id, int len, CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);
    char text[16];

    if (rc != CUDA_SUCCESS)
        return rc;
    if (pci_bus_id == NULL || len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    attribute_format_bus_id(&device, text);
    snprintf(pci_bus_id, (size_t)len, "%s", text);
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGetByPCIBusId(CUdevice *ret_device, const char *pci_bus_id)
{
    unsigned domain, bus, slot, function = 0;
    struct sim_cuda_device device;
    int count = 0;
    CUresult rc = cuDeviceGetCount(&count);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (ret_device == NULL || pci_bus_id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(pci_bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (sscanf(pci_bus_id, "%x:%x.%x", &bus, &slot, &function) < 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < count; i++)
        if (sim_cuda_device(i, &device) == CUDA_SUCCESS && device.gpu.bus == bus && domain == 0 && slot == 0
            && function == 0) {
            *ret_device = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}
