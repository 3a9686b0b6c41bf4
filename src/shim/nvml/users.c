/* Calls about processes: those of the lease alone, by the numbers that the job knows. */
#include <stddef.h>

#include "shim/nvml/view.h"

enum { SAMPLES_MAX = BH_SHARE_SLOTS_MAX };

/* ---- lists ---- */

typedef void put_user(void *entries, unsigned at, const struct bh_view_user *user);

static void
users_put_v1(void *entries, unsigned at, const struct bh_view_user *user)
{
    ((nvmlProcessInfo_v1_t *)entries)[at] =
        (nvmlProcessInfo_v1_t){ .pid = user->pid, .usedGpuMemory = user->bytes };
}

static void
users_put_v2(void *entries, unsigned at, const struct bh_view_user *user)
{
    ((nvmlProcessInfo_v2_t *)entries)[at] = (nvmlProcessInfo_v2_t){
        .pid = user->pid,
        .usedGpuMemory = user->bytes,
        .gpuInstanceId = NVML_INSTANCE_ID_NONE,
        .computeInstanceId = NVML_INSTANCE_ID_NONE,
    };
}

static void
users_put_detail(void *entries, unsigned at, const struct bh_view_user *user)
{
    ((nvmlProcessDetail_v1_t *)entries)[at] = (nvmlProcessDetail_v1_t){
        .pid = user->pid,
        .usedGpuMemory = user->bytes,
        .gpuInstanceId = NVML_INSTANCE_ID_NONE,
        .computeInstanceId = NVML_INSTANCE_ID_NONE,
    };
}

/* The size protocol of all lists: *count says how many fit, and then how many there are. */
static nvmlReturn_t
list_users(nvmlDevice_t device, unsigned *count, void *entries, put_user *put)
{
    struct bh_view_user users[BH_SHARE_SLOTS_MAX];
    unsigned index, room, there;
    nvmlReturn_t rc = bh_view_answer(device, count, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    room = *count;
    there = bh_view_users(index, users);
    for (unsigned i = 0; entries != NULL && i < room && i < there; i++)
        put(entries, i, &users[i]);
    *count = there;
    if (there > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    return there > 0 && entries == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

/* Nothing of a share draws, or goes through MPS. */
static nvmlReturn_t
users_list_none(nvmlDevice_t device, unsigned *count)
{
    unsigned index;
    nvmlReturn_t rc = bh_view_answer(device, count, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    *count = 0;
    return NVML_SUCCESS;
}

#define LIST(name, type, answer)                                                                             \
    nvmlReturn_t name(nvmlDevice_t device, unsigned int *infoCount, type *infos)                             \
    {                                                                                                        \
        (void)infos;                                                                                         \
        return answer;                                                                                       \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t,
     list_users(device, infoCount, infos, users_put_v1))
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t,
     list_users(device, infoCount, infos, users_put_v2))
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t,
     list_users(device, infoCount, infos, users_put_v2))
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, users_list_none(device, infoCount))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, users_list_none(device, infoCount))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, users_list_none(device, infoCount))
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, users_list_none(device, infoCount))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, users_list_none(device, infoCount))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, users_list_none(device, infoCount))

nvmlReturn_t
nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *plist)
{
    if (plist == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (plist->version != nvmlProcessDetailList_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (plist->mode != 0) /* the list of compute processes */
        return users_list_none(device, &plist->numProcArrayEntries);
    return list_users(device, &plist->numProcArrayEntries, plist->procArray, users_put_detail);
}

/* ---- how busy they are ---- */

/* Of the whole device's time, so that the shares of a device add up.  How busy its memory was is
 * known of the whole device alone. */
nvmlReturn_t
nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    unsigned index, permille;
    bool whole;
    nvmlReturn_t rc = bh_view_index(device, &index);

    if (rc == NVML_SUCCESS && utilization == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = bh_view_busy(index, &permille, &whole);
    if (rc != NVML_SUCCESS)
        return rc;
    if (whole)
        return REAL(nvmlDeviceGetUtilizationRates)(device, utilization);
    *utilization = (nvmlUtilization_t){ .gpu = (permille + 5) / 10 };
    return NVML_SUCCESS;
}

static bool
users_is_of_lease(unsigned index, unsigned pid)
{
    struct bh_view_user users[BH_SHARE_SLOTS_MAX];
    unsigned count = bh_view_users(index, users);

    for (unsigned i = 0; i < count; i++)
        if (users[i].pid == pid)
            return true;
    return false;
}

/* The driver's samples of the processes that it names as this namespace does. */
nvmlReturn_t
nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                unsigned int *processSamplesCount, unsigned long long lastSeenTimeStamp)
{
    nvmlProcessUtilizationSample_t all[SAMPLES_MAX];
    unsigned index, count = SAMPLES_MAX, kept = 0;
    nvmlReturn_t rc = bh_view_answer(device, processSamplesCount, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    rc = REAL(nvmlDeviceGetProcessUtilization)(device, all, &count, lastSeenTimeStamp);
    if (rc != NVML_SUCCESS)
        return rc;
    for (unsigned i = 0; i < count; i++)
        if (users_is_of_lease(index, all[i].pid))
            all[kept++] = all[i];
    if (utilization == NULL || *processSamplesCount < kept)
        rc = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < kept; i++)
        utilization[i] = all[i];
    *processSamplesCount = kept;
    return rc == NVML_SUCCESS && kept == 0 ? NVML_ERROR_NOT_FOUND : rc;
}
