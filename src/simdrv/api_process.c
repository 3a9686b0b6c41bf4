/* Exported calls about processes. */
#include "simdrv/api.h"

#include "simdrv/usage.h"

#define ANY (SIM_GPU | SIM_MIG)

/* The users of the target; on a divided GPU the list of all of them is for
 * privileged callers. */
static nvmlReturn_t
open_users(const char *function, nvmlDevice_t device, struct sim_users *users)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, ANY, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (!target.is_mig && target.gpu.mig_current != 0 && !target.privileged)
        return NVML_ERROR_NO_PERMISSION;
    sim_users_find(&target.gpu, target.gi, false, users);
    return NVML_SUCCESS;
}

/* The size protocol of all lists: *count says how many fit, then how many
 * there are. */
static nvmlReturn_t
fit(unsigned *count, size_t there, const void *list)
{
    unsigned room = count == NULL ? 0 : *count;

    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned)there;
    if (there > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    return there > 0 && list == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                        nvmlProcessInfo_t *infos)
{
    struct sim_users users;
    nvmlReturn_t rc = open_users(__func__, device, &users);

    if (rc == NVML_SUCCESS)
        rc = fit(infoCount, users.count, infos);
    for (size_t i = 0; rc == NVML_SUCCESS && i < users.count; i++)
        infos[i] = (nvmlProcessInfo_t){ .pid = users.user[i].context.pid,
                                        .usedGpuMemory = users.user[i].context.bytes,
                                        .gpuInstanceId = users.user[i].gi,
                                        .computeInstanceId = users.user[i].ci };
    return rc;
}

SIM_ALIAS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3);

NVML_API nvmlReturn_t
nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                     nvmlProcessInfo_v1_t *infos)
{
    struct sim_users users;
    nvmlReturn_t rc = open_users(__func__, device, &users);

    if (rc == NVML_SUCCESS)
        rc = fit(infoCount, users.count, infos);
    for (size_t i = 0; rc == NVML_SUCCESS && i < users.count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){ .pid = users.user[i].context.pid,
                                           .usedGpuMemory = users.user[i].context.bytes };
    return rc;
}

/* No simulated process draws, and none goes through MPS. */
static nvmlReturn_t
put_none(const char *function, nvmlDevice_t device, unsigned *count)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, ANY, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(count, 0) : rc;
}

#define NO_PROCESSES(name, type)                                                          \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *infoCount, type *infos) \
    {                                                                                     \
        (void)infos;                                                                      \
        return put_none(__func__, device, infoCount);                                     \
    }

NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)

NVML_API nvmlReturn_t
nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *plist)
{
    struct sim_users users;
    nvmlReturn_t rc = open_users(__func__, device, &users);

    if (rc != NVML_SUCCESS)
        return rc;
    if (plist == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (plist->version != nvmlProcessDetailList_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (plist->mode != 0) /* only the list of compute processes has members */
        users.count = 0;
    rc = fit(&plist->numProcArrayEntries, users.count, plist->procArray);
    for (size_t i = 0; rc == NVML_SUCCESS && i < users.count; i++)
        plist->procArray[i] = (nvmlProcessDetail_v1_t){ .pid = users.user[i].context.pid,
                                                        .usedGpuMemory = users.user[i].context.bytes,
                                                        .gpuInstanceId = users.user[i].gi,
                                                        .computeInstanceId = users.user[i].ci };
    return rc;
}

/* Share of its life that a process spent on a CPU: the time stamps that would
 * name an interval belong to the caller, and are not remembered here. */
static unsigned
life_percent(const struct sim_context *context)
{
    uint64_t now = sim_boot_ns();
    uint64_t life = now > context->started_ns ? now - context->started_ns : 0;
    uint64_t percent = life == 0 ? 0 : context->cpu_ns * 100 / life;

    return percent > 100 ? 100 : (unsigned)percent;
}

NVML_API nvmlReturn_t
nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                unsigned int *processSamplesCount, unsigned long long lastSeenTimeStamp)
{
    struct sim_target target;
    struct sim_users users;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_UNDIVIDED, &target);

    (void)lastSeenTimeStamp;
    if (rc != NVML_SUCCESS)
        return rc;
    sim_users_find(&target.gpu, NULL, false, &users);
    rc = fit(processSamplesCount, users.count, utilization);
    for (size_t i = 0; rc == NVML_SUCCESS && i < users.count; i++)
        utilization[i] = (nvmlProcessUtilizationSample_t){
            .pid = users.user[i].context.pid,
            .timeStamp = sim_wall_us(),
            .smUtil = life_percent(&users.user[i].context)
        };
    return rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(mode, NVML_FEATURE_DISABLED) : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    return mode == NVML_FEATURE_DISABLED ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML_API nvmlReturn_t
nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count, unsigned int *pids)
{
    (void)pids;
    return put_none(__func__, device, count);
}
