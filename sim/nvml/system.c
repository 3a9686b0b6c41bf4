/* Exported calls about the library and the server. */
#include "sim/nvml/nvml.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/machine/errors.h"

#define CUDA_VERSION 13000

nvmlReturn_t
sim_put_text(char *buffer, unsigned length, const char *text)
{
    if (buffer == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

uint64_t
sim_wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

NVML_API nvmlReturn_t
nvmlInit_v2(void)
{
    return sim_session_open(0);
}

SIM_ALIAS(nvmlInit, nvmlInit_v2);

NVML_API nvmlReturn_t
nvmlInitWithFlags(unsigned int flags)
{
    return sim_session_open(flags);
}

NVML_API nvmlReturn_t
nvmlShutdown(void)
{
    return sim_session_close();
}

NVML_API const char *
nvmlErrorString(nvmlReturn_t result)
{
    return sim_error_text(result);
}

NVML_API nvmlReturn_t
nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct sim_system system;

    if (rc != NVML_SUCCESS)
        return rc;
    sim_session_system(&system);
    return sim_put_text(version, length, system.driver);
}

NVML_API nvmlReturn_t
nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct sim_system system;
    char text[48];

    if (rc != NVML_SUCCESS)
        return rc;
    sim_session_system(&system);
    snprintf(text, sizeof(text), "13.%s", system.driver);
    return sim_put_text(version, length, text);
}

NVML_API nvmlReturn_t
nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(cudaDriverVersion, CUDA_VERSION) : rc;
}

SIM_ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);

/* The branch is how a program distinguishes this library from the vendor's. */
NVML_API nvmlReturn_t
nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *branchInfo, unsigned int length)
{
    nvmlReturn_t rc = sim_enter(__func__);

    if (rc != NVML_SUCCESS)
        return rc;
    if (branchInfo == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (branchInfo->version != nvmlSystemDriverBranchInfo_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (length > sizeof(branchInfo->branch))
        length = sizeof(branchInfo->branch);
    return sim_put_text(branchInfo->branch, length, "bulkhead-sim");
}

NVML_API nvmlReturn_t
nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    nvmlReturn_t rc = sim_enter(__func__);
    char path[64], text[256] = "";
    ssize_t got;
    int fd;

    if (rc != NVML_SUCCESS)
        return rc;
    if (name == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NVML_ERROR_NOT_FOUND;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (got <= 0)
        return NVML_ERROR_NOT_FOUND;
    snprintf(name, length, "%s", text); /* the first argument, cut where it must */
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *capabilities)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(capabilities, (nvmlConfComputeSystemCaps_t){ 0 }) : rc;
}

NVML_API nvmlReturn_t
nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(state, (nvmlConfComputeSystemState_t){ 0 }) : rc;
}

NVML_API nvmlReturn_t
nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings)
{
    nvmlReturn_t rc = sim_enter(__func__);

    if (rc != NVML_SUCCESS)
        return rc;
    if (settings == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (settings->version != nvmlSystemConfComputeSettings_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *settings = (nvmlSystemConfComputeSettings_t){ .version = settings->version };
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlSystemGetConfComputeGpusReadyState(unsigned int *isAcceptingWork)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(isAcceptingWork, 1) : rc;
}

NVML_API nvmlReturn_t
nvmlUnitGetCount(unsigned int *unitCount)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(unitCount, 0) : rc;
}

NVML_API nvmlReturn_t
nvmlGetExcludedDeviceCount(unsigned int *deviceCount)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(deviceCount, 0) : rc;
}

SIM_ALIAS(nvmlGetBlacklistDeviceCount, nvmlGetExcludedDeviceCount);
