#include "device/nvml_internal.h"

/* Two samples closer than this are not compared: the driver wants 100 ms at least. */
#define SPAN_LEAST (BH_NS_PER_S / 2)

enum { BUSY, SM, TENSOR, DRAM, TRANSMIT, RECEIVE, METRICS };

static const unsigned int metrics[METRICS] = {
    [BUSY] = NVML_GPM_METRIC_GRAPHICS_UTIL,       [SM] = NVML_GPM_METRIC_SM_UTIL,
    [TENSOR] = NVML_GPM_METRIC_ANY_TENSOR_UTIL,   [DRAM] = NVML_GPM_METRIC_DRAM_BW_UTIL,
    [TRANSMIT] = NVML_GPM_METRIC_PCIE_TX_PER_SEC, [RECEIVE] = NVML_GPM_METRIC_PCIE_RX_PER_SEC,
};

const struct bh_device_activity bh_nvml_no_activity = { BH_DEVICE_UNKNOWN, BH_DEVICE_UNKNOWN,
                                                        BH_DEVICE_UNKNOWN, BH_DEVICE_UNKNOWN };

static uint32_t
parts_of(const nvmlGpmMetric_t *metric)
{
    if (metric->nvmlReturn != NVML_SUCCESS || !(metric->value >= 0 && metric->value <= 100))
        return BH_DEVICE_UNKNOWN; /* NaN is one of these, too */
    return (uint32_t)(metric->value * 100 + 0.5);
}

/* Of MiB a second. */
static uint64_t
nvml_activity_rate_of(const nvmlGpmMetric_t *metric)
{
    if (metric->nvmlReturn != NVML_SUCCESS || !(metric->value >= 0 && metric->value < 1e9))
        return BH_DEVICE_UNKNOWN_64;
    return (uint64_t)(metric->value * (1 << 20) + 0.5);
}

/* What was between the watch's sample and a newer one. */
static void
nvml_activity_compare(struct bh_nvml *nvml, struct bh_nvml_watch *watch, nvmlGpmSample_t newer)
{
    nvmlGpmMetricsGet_t get = { .version = NVML_GPM_METRICS_GET_VERSION,
                                .numMetrics = BH_COUNT(metrics),
                                .sample1 = watch->sample,
                                .sample2 = newer };

    watch->activity = bh_nvml_no_activity;
    watch->transmit_bytes_s = watch->receive_bytes_s = BH_DEVICE_UNKNOWN_64;
    for (size_t i = 0; i < BH_COUNT(metrics); i++)
        get.metrics[i].metricId = metrics[i];
    if (!watch->sample || nvml_call(nvml, gpm_metrics, &get) != NVML_SUCCESS)
        return;
    watch->activity = (struct bh_device_activity){ .busy_bp = parts_of(&get.metrics[BUSY]),
                                                   .sm_bp = parts_of(&get.metrics[SM]),
                                                   .tensor_bp = parts_of(&get.metrics[TENSOR]),
                                                   .dram_bp = parts_of(&get.metrics[DRAM]) };
    watch->transmit_bytes_s = nvml_activity_rate_of(&get.metrics[TRANSMIT]);
    watch->receive_bytes_s = nvml_activity_rate_of(&get.metrics[RECEIVE]);
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
    nvml_activity_compare(nvml, watch, sample);
    if (watch->sample)
        (void)nvml_call(nvml, gpm_free, watch->sample);
    watch->sample = sample;
    watch->at = now;
    return watch->activity;
}

void
bh_nvml_activity_pcie(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint64_t *ret_transmit_bytes_s,
                      uint64_t *ret_receive_bytes_s)
{
    const struct bh_nvml_watch *watch = find_watch(nvml, gpu, BH_NVML_NO_ID);

    if (!watch || !watch->sample || watch->transmit_bytes_s == BH_DEVICE_UNKNOWN_64
        || watch->receive_bytes_s == BH_DEVICE_UNKNOWN_64)
        return;
    *ret_transmit_bytes_s = watch->transmit_bytes_s;
    *ret_receive_bytes_s = watch->receive_bytes_s;
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
