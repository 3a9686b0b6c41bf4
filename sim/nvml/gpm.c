/* Exported calls of GPU performance monitoring: the one way to learn how busy
 * a MIG device is.  Hopper and newer. */
#include "sim/nvml/nvml.h"

#include <stdlib.h>

#include "sim/machine/partition.h"
#include "sim/machine/usage.h"

#define SAMPLE_MAGIC 0x4248474du

/* On the heap: a caller may hold thousands. */
struct sample {
    uint32_t magic;
    uint64_t taken_ns, cpu_ns;
};

static char percent_unit[] = "%", rate_unit[] = "MiB/s";

/* Names belong to the library for good, and the ABI wants them writable.  Work is of one kind here:
 * each metric is so many quarters of the per cent that it kept the SMs busy. */
static struct {
    unsigned id;
    char *name, *unit;
    unsigned quarters;
} metrics[] = {
    { NVML_GPM_METRIC_GRAPHICS_UTIL, (char[]){ "Graphics Utilization" }, percent_unit, 4 },
    { NVML_GPM_METRIC_SM_UTIL, (char[]){ "SM Utilization" }, percent_unit, 4 },
    { NVML_GPM_METRIC_SM_OCCUPANCY, (char[]){ "SM Occupancy" }, percent_unit, 4 },
    { NVML_GPM_METRIC_ANY_TENSOR_UTIL, (char[]){ "Tensor Utilization" }, percent_unit, 1 },
    { NVML_GPM_METRIC_DRAM_BW_UTIL, (char[]){ "DRAM Bandwidth Utilization" }, percent_unit, 2 },
    { NVML_GPM_METRIC_PCIE_TX_PER_SEC, (char[]){ "PCIe TX per second" }, rate_unit, 8 },
    { NVML_GPM_METRIC_PCIE_RX_PER_SEC, (char[]){ "PCIe RX per second" }, rate_unit, 32 },
};

static nvmlReturn_t
open_gpm(const char *function, nvmlDevice_t device, struct sim_target *target)
{
    nvmlReturn_t rc = sim_open(function, device, SIM_GPU | SIM_MIG, target);

    if (rc != NVML_SUCCESS)
        return rc;
    return target->model->arch < NVML_DEVICE_ARCH_HOPPER ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *gpmSupport)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (gpmSupport == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpmSupport->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    gpmSupport->isSupportedDevice = target.model->arch >= NVML_DEVICE_ARCH_HOPPER;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlGpmSampleAlloc(nvmlGpmSample_t *gpmSample)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct sample *sample = rc == NVML_SUCCESS ? calloc(1, sizeof(*sample)) : NULL;

    if (rc != NVML_SUCCESS)
        return rc;
    if (gpmSample == NULL || sample == NULL) {
        free(sample);
        return gpmSample == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_MEMORY;
    }
    sample->magic = SAMPLE_MAGIC;
    *gpmSample = (nvmlGpmSample_t)(void *)sample;
    return NVML_SUCCESS;
}

static struct sample *
gpm_as_sample(nvmlGpmSample_t handle)
{
    struct sample *sample = (void *)handle;

    return sample != NULL && sample->magic == SAMPLE_MAGIC ? sample : NULL;
}

NVML_API nvmlReturn_t
nvmlGpmSampleFree(nvmlGpmSample_t gpmSample)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct sample *sample = gpm_as_sample(gpmSample);

    if (rc != NVML_SUCCESS)
        return rc;
    if (sample == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    sample->magic = 0;
    free(sample);
    return NVML_SUCCESS;
}

static nvmlReturn_t
gpm_take_sample(const struct sim_target *target, const struct sim_gi *gi, nvmlGpmSample_t handle)
{
    struct sample *sample = gpm_as_sample(handle);

    if (sample == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    sample->cpu_ns = sim_cpu_ns(&target->gpu, gi, &sample->taken_ns);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t gpmSample)
{
    struct sim_target target;
    nvmlReturn_t rc = open_gpm(__func__, device, &target);

    return rc == NVML_SUCCESS ? gpm_take_sample(&target, target.gi, gpmSample) : rc;
}

/* A GPU instance without a compute instance runs nothing to sample. */
NVML_API nvmlReturn_t
nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpuInstanceId, nvmlGpmSample_t gpmSample)
{
    struct sim_target target;
    nvmlReturn_t rc = open_gpm(__func__, device, &target);
    const struct sim_gi *gi = rc == NVML_SUCCESS ? sim_gi_find(&target.gpu, gpuInstanceId) : NULL;

    if (rc != NVML_SUCCESS)
        return rc;
    if (gi == NULL || target.is_mig)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sim_ci_find(gi, 0) == NULL)
        return NVML_ERROR_NOT_FOUND;
    return gpm_take_sample(&target, gi, gpmSample);
}

static double
gpm_busy_percent(const struct sample *first, const struct sample *second)
{
    double span = second->taken_ns > first->taken_ns ? (double)(second->taken_ns - first->taken_ns) : 0;
    double used = second->cpu_ns > first->cpu_ns ? (double)(second->cpu_ns - first->cpu_ns) : 0;
    double percent = span > 0 ? used * 100 / span : 0;

    return percent > 100 ? 100 : percent;
}

static void
gpm_fill_metric(const struct sample *first, const struct sample *second, nvmlGpmMetric_t *metric)
{
    metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    metric->value = 0;
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        if (metrics[i].id != metric->metricId)
            continue;
        metric->nvmlReturn = NVML_SUCCESS;
        metric->value = gpm_busy_percent(first, second) * metrics[i].quarters / 4;
        metric->metricInfo.shortName = metrics[i].name;
        metric->metricInfo.longName = metrics[i].name;
        metric->metricInfo.unit = metrics[i].unit;
    }
}

/* The struct grew with the header; only the first numMetrics entries are the
 * caller's. */
NVML_API nvmlReturn_t
nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metricsGet)
{
    nvmlReturn_t rc = sim_enter(__func__);
    const struct sample *first, *second;

    if (rc != NVML_SUCCESS)
        return rc;
    if (metricsGet == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (metricsGet->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    first = gpm_as_sample(metricsGet->sample1);
    second = gpm_as_sample(metricsGet->sample2);
    if (first == NULL || second == NULL || metricsGet->numMetrics > 333)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < metricsGet->numMetrics; i++)
        gpm_fill_metric(first, second, &metricsGet->metrics[i]);
    return NVML_SUCCESS;
}
