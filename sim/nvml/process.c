/* Exported calls about processes. */
#include "sim/nvml/nvml.h"

#include "sim/machine/gauge.h"
#include "sim/machine/queue.h"
#include "sim/machine/session.h"
#include "sim/machine/usage.h"

#define ANY (SIM_GPU | SIM_MIG)

/* A caller's list: filled as far as there is room, counted to the end. */
struct nvml_process_list {
    void *entries;
    unsigned room, count;
    void (*put)(void *entries, unsigned at, const struct sim_user *user);
};

static void
process_list_user(void *self, const struct sim_user *user)
{
    struct nvml_process_list *list = self;

    if (list->entries != NULL && list->count < list->room)
        list->put(list->entries, list->count, user);
    list->count++;
}

/* The size protocol of all lists: *count says how many fit, and then how many
 * there are. */
static nvmlReturn_t
process_list_users(const struct sim_target *target, struct nvml_process_list *list, unsigned *count)
{
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    list->room = *count;
    /* the truth now: a caller that has just frozen a process asks whether it is here */
    sim_users_each(&target->gpu, target->gi, true, process_list_user, list);
    *count = list->count;
    if (list->count == 0 && target->gi == NULL && target->gpu.mig_current == 0)
        sim_session_renew(&target->gpu);
    if (list->count > list->room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    return list->count > 0 && list->entries == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static void
process_put_v1(void *entries, unsigned at, const struct sim_user *user)
{
    ((nvmlProcessInfo_v1_t *)entries)[at] =
        (nvmlProcessInfo_v1_t){ .pid = user->context.pid, .usedGpuMemory = user->context.bytes };
}

static void
process_put_v2(void *entries, unsigned at, const struct sim_user *user)
{
    ((nvmlProcessInfo_v2_t *)entries)[at] = (nvmlProcessInfo_v2_t){ .pid = user->context.pid,
                                                                    .usedGpuMemory = user->context.bytes,
                                                                    .gpuInstanceId = user->gi,
                                                                    .computeInstanceId = user->ci };
}

static void
process_put_detail(void *entries, unsigned at, const struct sim_user *user)
{
    ((nvmlProcessDetail_v1_t *)entries)[at] = (nvmlProcessDetail_v1_t){ .pid = user->context.pid,
                                                                        .usedGpuMemory = user->context.bytes,
                                                                        .gpuInstanceId = user->gi,
                                                                        .computeInstanceId = user->ci };
}

NVML_API nvmlReturn_t
nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
                                        nvmlProcessInfo_t *infos)
{
    struct sim_target target;
    struct nvml_process_list list = { .entries = infos, .put = process_put_v2 };
    nvmlReturn_t rc = sim_open_whole(__func__, device, &target);

    return rc == NVML_SUCCESS ? process_list_users(&target, &list, infoCount) : rc;
}

SIM_ALIAS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3);

NVML_API nvmlReturn_t
nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *infoCount,
                                     nvmlProcessInfo_v1_t *infos)
{
    struct sim_target target;
    struct nvml_process_list list = { .entries = infos, .put = process_put_v1 };
    nvmlReturn_t rc = sim_open_whole(__func__, device, &target);

    return rc == NVML_SUCCESS ? process_list_users(&target, &list, infoCount) : rc;
}

/* No simulated process draws, and none goes through MPS. */
static nvmlReturn_t
process_put_none(const char *function, nvmlDevice_t device, unsigned *count)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, ANY, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(count, 0) : rc;
}

#define NO_PROCESSES(name, type)                                                                             \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, unsigned int *infoCount, type *infos)                    \
    {                                                                                                        \
        (void)infos;                                                                                         \
        return process_put_none(__func__, device, infoCount);                                                \
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
    struct sim_target target;
    nvmlReturn_t rc = sim_open_whole(__func__, device, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (plist == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (plist->version != nvmlProcessDetailList_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (plist->mode != 0) { /* only the list of compute processes has members */
        plist->numProcArrayEntries = 0;
        return NVML_SUCCESS;
    }
    struct nvml_process_list list = { .entries = plist->procArray, .put = process_put_detail };
    return process_list_users(&target, &list, &plist->numProcArrayEntries);
}

/* Share of its life that a process spent on a CPU: the time stamps that would
 * name an interval belong to the caller, and are not remembered here. */
static unsigned
process_life_percent(const struct sim_context *context)
{
    uint64_t now = sim_boot_ns();
    uint64_t life = now > context->started_ns ? now - context->started_ns : 0;
    uint64_t percent = life == 0 ? 0 : context->cpu_ns * 100 / life;

    return percent > 100 ? 100 : (unsigned)percent;
}

/* Two clocks are read one after the other, and a sample that was reported is not reported again. */
#define CLOCKS_APART_NS 1000000u

/* The processes that the SMs were busy for, by the samples after a moment. */
struct sampled {
    nvmlProcessUtilizationSample_t *entries;
    unsigned room, count;
    uint64_t since_ns, now_ns, now_us;
};

static void
process_put_sampled(struct sampled *list, const nvmlProcessUtilizationSample_t *sample)
{
    if (list->entries != NULL && list->count < list->room)
        list->entries[list->count] = *sample;
    list->count++;
}

/* Of one that has no slot, and so no record of its work, how much it used a CPU. */
static void
process_add_sampled(void *self, const struct sim_user *user)
{
    struct sampled *list = self;
    nvmlProcessUtilizationSample_t sample = { .pid = user->context.pid, .timeStamp = list->now_us };
    struct sim_gauge_share share;

    if (user->gauge != NULL && sim_gauge_share_of(user->gauge, user->context.slot, list->since_ns, &share)) {
        sample.smUtil = share.percent;
        if (share.last_ns < list->now_ns) /* it may have ended since the call began */
            sample.timeStamp -= (list->now_ns - share.last_ns) / 1000;
    } else if (user->context.slot == 0) {
        sample.smUtil = process_life_percent(&user->context);
    }
    if (sample.smUtil > 0)
        process_put_sampled(list, &sample);
}

NVML_API nvmlReturn_t
nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
                                unsigned int *processSamplesCount, unsigned long long lastSeenTimeStamp)
{
    struct sim_target target;
    struct sampled list = { .entries = utilization, .now_ns = sim_queue_now(), .now_us = sim_wall_us() };
    uint64_t past_us = list.now_us > lastSeenTimeStamp ? list.now_us - lastSeenTimeStamp : 0;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_UNDIVIDED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (processSamplesCount == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    list.room = *processSamplesCount;
    list.since_ns = past_us < list.now_ns / 1000 ? list.now_ns - past_us * 1000 + CLOCKS_APART_NS : 0;
    sim_users_each(&target.gpu, target.gi, false, process_add_sampled, &list);
    *processSamplesCount = list.count;
    if (list.count == 0)
        return NVML_ERROR_NOT_FOUND;
    return list.entries == NULL || list.count > list.room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

SIM_GET(nvmlDeviceGetAccountingMode, nvmlEnableState_t, SIM_GPU, NVML_FEATURE_DISABLED)

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
    return process_put_none(__func__, device, count);
}

NVML_API nvmlReturn_t
nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessionCount, unsigned int *averageFps,
                          unsigned int *averageLatency)
{
    nvmlReturn_t rc = process_put_none(__func__, device, sessionCount);

    if (rc == NVML_SUCCESS && (averageFps == NULL || averageLatency == NULL))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        *averageFps = *averageLatency = 0;
    return rc;
}
