/* How busy MIG devices are.  NVML shows it only by two performance samples
 * with a while between them, and only on Hopper and newer. */
#ifndef BH_SIM_SMI_BUSY_H
#define BH_SIM_SMI_BUSY_H

#include "sim/smi/nvml.h"
#include "sim/smi/report.h"

struct bh_smi_busy;

/* A sampler for at most BH_SMI_DEVICES_MAX devices; NULL without memory. */
struct bh_smi_busy *bh_smi_busy_new(const struct bh_smi_nvml *nvml);
void bh_smi_busy_free(struct bh_smi_busy *busy);

/* Take the first sample of the device at position `device` of the report. */
void bh_smi_busy_start(struct bh_smi_busy *busy, nvmlDevice_t handle, unsigned device);

/* Wait 100 ms where any device was started, take the second samples, and write
 * the utilisation of each into the report. */
void bh_smi_busy_finish(struct bh_smi_busy *busy, struct bh_smi_report *report);

#endif
