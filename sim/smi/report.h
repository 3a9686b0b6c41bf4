/* What bulkhead-smi shows: a snapshot of the visible devices. */
#ifndef BH_SIM_SMI_REPORT_H
#define BH_SIM_SMI_REPORT_H

#include <stdbool.h>

#include "sim/smi/nvml.h"

#define BH_SMI_DEVICES_MAX 256
#define BH_SMI_PROCESSES_MAX 1024

/* A number that a device may not have. */
struct bh_smi_number {
    bool known;
    unsigned long long value;
};

/* A GPU, or a MIG device, which follows its GPU in the list. */
struct bh_smi_device {
    bool is_mig, mig_mode, lost;
    unsigned index; /* a MIG device's on its GPU */
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    struct bh_smi_number gi, ci, memory_total, memory_used;
    struct bh_smi_number utilization, power_mw, power_limit_mw, temperature;
};

struct bh_smi_process {
    unsigned device; /* position in the list of devices */
    unsigned pid;
    struct bh_smi_number memory;
    char name[64];
};

struct bh_smi_report {
    char library[512], driver[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    int cuda;
    bool simulated;
    unsigned devices, processes;
    struct bh_smi_device device[BH_SMI_DEVICES_MAX];
    struct bh_smi_process process[BH_SMI_PROCESSES_MAX];
};

/* Ask the library.  What it does not answer stays unknown. */
void bh_smi_report_take(const struct bh_smi_nvml *nvml, struct bh_smi_report *ret_report);

#endif
