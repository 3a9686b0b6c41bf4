#include "sim/smi/busy.h"

#include <stdlib.h>
#include <time.h>

#define WAIT_NS 110000000L

struct watched {
    nvmlDevice_t handle;
    nvmlGpmSample_t first, second;
    unsigned device;
};

struct bh_smi_busy {
    const struct bh_smi_nvml *nvml;
    unsigned count;
    struct watched watched[BH_SMI_DEVICES_MAX];
    nvmlGpmMetricsGet_t get;
};

struct bh_smi_busy *
bh_smi_busy_new(const struct bh_smi_nvml *nvml)
{
    struct bh_smi_busy *busy = calloc(1, sizeof(*busy));

    if (busy != NULL)
        busy->nvml = nvml;
    return busy;
}

static void
drop_samples(const struct bh_smi_nvml *nvml, struct watched *watched)
{
    if (watched->first != NULL)
        nvml->nvmlGpmSampleFree(watched->first);
    if (watched->second != NULL)
        nvml->nvmlGpmSampleFree(watched->second);
    *watched = (struct watched){ 0 };
}

void
bh_smi_busy_free(struct bh_smi_busy *busy)
{
    for (unsigned i = 0; busy != NULL && i < busy->count; i++)
        drop_samples(busy->nvml, &busy->watched[i]);
    free(busy);
}

void
bh_smi_busy_start(struct bh_smi_busy *busy, nvmlDevice_t handle, unsigned device)
{
    struct watched watched = { .handle = handle, .device = device };

    if (busy == NULL || busy->count == BH_SMI_DEVICES_MAX)
        return;
    if (busy->nvml->nvmlGpmSampleAlloc(&watched.first) == NVML_SUCCESS
        && busy->nvml->nvmlGpmSampleAlloc(&watched.second) == NVML_SUCCESS
        && busy->nvml->nvmlGpmSampleGet(handle, watched.first) == NVML_SUCCESS)
        busy->watched[busy->count++] = watched;
    else
        drop_samples(busy->nvml, &watched);
}

static void
finish_one(struct bh_smi_busy *busy, struct watched *watched, struct bh_smi_report *report)
{
    nvmlGpmMetricsGet_t *get = &busy->get;

    if (busy->nvml->nvmlGpmSampleGet(watched->handle, watched->second) != NVML_SUCCESS)
        return;
    get->version = NVML_GPM_METRICS_GET_VERSION;
    get->numMetrics = 1;
    get->sample1 = watched->first;
    get->sample2 = watched->second;
    get->metrics[0] = (nvmlGpmMetric_t){ .metricId = NVML_GPM_METRIC_GRAPHICS_UTIL };
    if (busy->nvml->nvmlGpmMetricsGet(get) != NVML_SUCCESS || get->metrics[0].nvmlReturn != NVML_SUCCESS)
        return;
    if (get->metrics[0].value >= 0 && get->metrics[0].value <= 100) /* false for NaN */
        report->device[watched->device].utilization =
            (struct bh_smi_number){ true, (unsigned long long)(get->metrics[0].value + 0.5) };
}

void
bh_smi_busy_finish(struct bh_smi_busy *busy, struct bh_smi_report *report)
{
    const struct timespec wait = { 0, WAIT_NS };

    if (busy == NULL || busy->count == 0)
        return;
    nanosleep(&wait, NULL);
    for (unsigned i = 0; i < busy->count; i++)
        finish_one(busy, &busy->watched[i], report);
}
