#include "device/nvml_internal.h"

/* Two samples closer than this are not compared: the driver wants 100 ms at least. */
#define SPAN_LEAST (BH_NS_PER_S / 2)

static const unsigned int metrics[] = { NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_GPM_METRIC_SM_UTIL,
                                        NVML_GPM_METRIC_ANY_TENSOR_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL };

const struct bh_device_activity bh_nvml_no_activity = { BH_DEVICE_UNKNOWN, BH_DEVICE_UNKNOWN,
                                                        BH_DEVICE_UNKNOWN, BH_DEVICE_UNKNOWN };

static uint32_t
parts_of(const nvmlGpmMetric_t *metric)
{
    if (metric->nvmlReturn != NVML_SUCCESS || !(metric->value >= 0 && metric->value <= 100))
        return BH_DEVICE_UNKNOWN; /* NaN is one of these, too */
    return (uint32_t)(metric->value * 100 + 0.5);
}

static struct bh_device_activity
nvml_activity_compare(struct bh_nvml *nvml, nvmlGpmSample_t first, nvmlGpmSample_t second)
{
    nvmlGpmMetricsGet_t get = { .version = NVML_GPM_METRICS_GET_VERSION,
                                .numMetrics = BH_COUNT(metrics),
                                .sample1 = first,
                                .sample2 = second };

    for (size_t i = 0; i < BH_COUNT(metrics); i++)
        get.metrics[i].metricId = metrics[i];
    if (nvml_call(nvml, gpm_metrics, &get) != NVML_SUCCESS)
        return bh_nvml_no_activity;
    return (struct bh_device_activity){ .busy_bp = parts_of(&get.metrics[0]),
                                        .sm_bp = parts_of(&get.metrics[1]),
                                        .tensor_bp = parts_of(&get.metrics[2]),
                                        .dram_bp = parts_of(&get.metrics[3]) };
}

/* A sample of the GPU, or of an instance on it; NULL: there is none to be had. */
static nvmlGpmSample_t
nvml_activity_sample(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi)
{
    nvmlGpmSample_t sample = NULL;
    nvmlReturn_t result = nvml_call(nvml, gpm_alloc, &sample);

    if (result != NVML_SUCCESS)
        return NULL;
    result = gi == BH_NVML_NO_ID ? nvml_call(nvml, gpm_sample, gpu->handle, sample)
                                 : nvml_call(nvml, gpm_mig_sample, gpu->handle, gi, sample);
    if (result == NVML_SUCCESS)
        return sample;
    (void)nvml_call(nvml, gpm_free, sample);
    return NULL;
}

static void
nvml_activity_forget(struct bh_nvml *nvml, struct bh_nvml_watch *watch)
{
    if (watch->sample)
        (void)nvml_call(nvml, gpm_free, watch->sample);
    *watch = (struct bh_nvml_watch){ 0 };
}

static struct bh_nvml_watch *
find_watch(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi)
{
    uint32_t place = gi == BH_NVML_NO_ID ? 0 : gi + 1;

    if (gpu->minor >= BH_NVML_GPUS_MAX || place >= BH_NVML_WATCHES)
        return NULL;
    return &nvml->watches[gpu->minor][place];
}

struct bh_device_activity
bh_nvml_activity(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi)
{
    struct bh_nvml_watch *watch = find_watch(nvml, gpu, gi);
    bh_ns now = bh_time_monotonic();
    nvmlGpmSample_t sample;

    if (!watch)
        return bh_nvml_no_activity;
    if (watch->sample && now - watch->at < SPAN_LEAST)
        return watch->activity;
    sample = nvml_activity_sample(nvml, gpu, gi);
    if (!sample) {
        nvml_activity_forget(nvml, watch);
        return bh_nvml_no_activity;
    }
    watch->activity =
        watch->sample ? nvml_activity_compare(nvml, watch->sample, sample) : bh_nvml_no_activity;
    if (watch->sample)
        (void)nvml_call(nvml, gpm_free, watch->sample);
    watch->sample = sample;
    watch->at = now;
    return watch->activity;
}

void
bh_nvml_activity_forget(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi)
{
    struct bh_nvml_watch *watch = find_watch(nvml, gpu, gi);

    if (watch)
        nvml_activity_forget(nvml, watch);
}

void
bh_nvml_activity_forget_gpu(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu)
{
    for (uint32_t i = 0; gpu->minor < BH_NVML_GPUS_MAX && i < BH_NVML_WATCHES; i++)
        nvml_activity_forget(nvml, &nvml->watches[gpu->minor][i]);
}
