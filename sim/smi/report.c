#include "sim/smi/report.h"

#include <stdio.h>
#include <string.h>

#include "sim/smi/busy.h"

#define PROCESSES_AT_ONCE BH_SMI_PROCESSES_MAX

static struct bh_smi_number
report_number(nvmlReturn_t rc, unsigned long long value)
{
    return (struct bh_smi_number){ .known = rc == NVML_SUCCESS, .value = rc == NVML_SUCCESS ? value : 0 };
}

static void
report_take_memory(const struct bh_smi_nvml *nvml, nvmlDevice_t handle, struct bh_smi_device *device)
{
    nvmlMemory_t memory = { 0 };
    nvmlReturn_t rc = nvml->nvmlDeviceGetMemoryInfo(handle, &memory);

    device->memory_total = report_number(rc, memory.total);
    device->memory_used = report_number(rc, memory.used);
}

static void
report_take_sensors(const struct bh_smi_nvml *nvml, nvmlDevice_t handle, struct bh_smi_device *device)
{
    nvmlUtilization_t utilization = { 0 };
    unsigned value = 0, current = 0, pending = 0;
    nvmlReturn_t rc = nvml->nvmlDeviceGetUtilizationRates(handle, &utilization);

    device->utilization = report_number(rc, utilization.gpu);
    rc = nvml->nvmlDeviceGetPowerUsage(handle, &value);
    device->lost = rc == NVML_ERROR_GPU_IS_LOST;
    device->power_mw = report_number(rc, value);
    rc = nvml->nvmlDeviceGetEnforcedPowerLimit(handle, &value);
    device->power_limit_mw = report_number(rc, value);
    rc = nvml->nvmlDeviceGetTemperature(handle, NVML_TEMPERATURE_GPU, &value);
    device->temperature = report_number(rc, value);
    rc = nvml->nvmlDeviceGetMigMode(handle, &current, &pending);
    device->mig_mode = rc == NVML_SUCCESS && current == NVML_DEVICE_MIG_ENABLE;
}

/* cmdline holds the arguments with zero bytes between: the first one shows. */
static void
report_take_name(const struct bh_smi_nvml *nvml, struct bh_smi_process *process)
{
    if (nvml->nvmlSystemGetProcessName(process->pid, process->name, sizeof(process->name)) != NVML_SUCCESS)
        snprintf(process->name, sizeof(process->name), "-");
    for (char *c = process->name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
            *c = '?';
}

static void
report_take_processes(const struct bh_smi_nvml *nvml, nvmlDevice_t handle, struct bh_smi_report *report)
{
    static nvmlProcessInfo_t list[PROCESSES_AT_ONCE];
    unsigned count = PROCESSES_AT_ONCE;

    if (nvml->nvmlDeviceGetComputeRunningProcesses_v3(handle, &count, list) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < count && report->processes < BH_SMI_PROCESSES_MAX; i++) {
        struct bh_smi_process *process = &report->process[report->processes++];

        process->device = report->devices - 1;
        process->pid = list[i].pid;
        process->memory.known = list[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE;
        process->memory.value = process->memory.known ? list[i].usedGpuMemory : 0;
        report_take_name(nvml, process);
    }
}

static struct bh_smi_device *
report_add_device(const struct bh_smi_nvml *nvml, nvmlDevice_t handle, struct bh_smi_report *report)
{
    struct bh_smi_device *device;

    if (report->devices == BH_SMI_DEVICES_MAX)
        return NULL;
    device = &report->device[report->devices++];
    if (nvml->nvmlDeviceGetName(handle, device->name, sizeof(device->name)) != NVML_SUCCESS)
        snprintf(device->name, sizeof(device->name), "unknown device");
    if (nvml->nvmlDeviceGetUUID(handle, device->uuid, sizeof(device->uuid)) != NVML_SUCCESS)
        device->uuid[0] = '\0';
    report_take_memory(nvml, handle, device);
    return device;
}

/* What one pass over the devices carries along. */
struct pass {
    const struct bh_smi_nvml *nvml;
    struct bh_smi_busy *busy;
    struct bh_smi_report *report;
};

static void
report_take_mig(const struct pass *pass, nvmlDevice_t handle, unsigned index)
{
    const struct bh_smi_nvml *nvml = pass->nvml;
    struct bh_smi_report *report = pass->report;
    struct bh_smi_device *device = report_add_device(nvml, handle, report);
    unsigned id = 0;
    nvmlReturn_t rc;

    if (device == NULL)
        return;
    device->is_mig = true;
    device->index = index;
    rc = nvml->nvmlDeviceGetGpuInstanceId(handle, &id);
    device->gi = report_number(rc, id);
    rc = nvml->nvmlDeviceGetComputeInstanceId(handle, &id);
    device->ci = report_number(rc, id);
    report_take_processes(nvml, handle, report);
    bh_smi_busy_start(pass->busy, handle, report->devices - 1);
}

static void
report_take_gpu(const struct pass *pass, unsigned index)
{
    const struct bh_smi_nvml *nvml = pass->nvml;
    struct bh_smi_report *report = pass->report;
    nvmlDevice_t handle = NULL, mig = NULL;
    struct bh_smi_device *device;
    unsigned most = 0;

    if (nvml->nvmlDeviceGetHandleByIndex_v2(index, &handle) != NVML_SUCCESS)
        return;
    device = report_add_device(nvml, handle, report);
    if (device == NULL)
        return;
    device->index = index;
    report_take_sensors(nvml, handle, device);
    if (!device->mig_mode) {
        report_take_processes(nvml, handle, report);
        return;
    }
    if (nvml->nvmlDeviceGetMaxMigDeviceCount(handle, &most) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < most; i++)
        if (nvml->nvmlDeviceGetMigDeviceHandleByIndex(handle, i, &mig) == NVML_SUCCESS)
            report_take_mig(pass, mig, i);
}

void
bh_smi_report_take(const struct bh_smi_nvml *nvml, struct bh_smi_report *ret_report)
{
    struct pass pass = { nvml, bh_smi_busy_new(nvml), ret_report };
    unsigned count = 0;

    memset(ret_report, 0, sizeof(*ret_report));
    snprintf(ret_report->library, sizeof(ret_report->library), "%s", nvml->path);
    ret_report->simulated = bh_smi_nvml_is_simulated(nvml);
    if (nvml->nvmlSystemGetDriverVersion(ret_report->driver, sizeof(ret_report->driver)) != NVML_SUCCESS)
        snprintf(ret_report->driver, sizeof(ret_report->driver), "unknown");
    if (nvml->nvmlSystemGetCudaDriverVersion_v2(&ret_report->cuda) != NVML_SUCCESS)
        ret_report->cuda = 0;
    if (nvml->nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
        count = 0;
    for (unsigned i = 0; i < count; i++)
        report_take_gpu(&pass, i);
    bh_smi_busy_finish(pass.busy, ret_report);
    bh_smi_busy_free(pass.busy);
}
