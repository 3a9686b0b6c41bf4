/* The forms in which bulkhead-smi prints a report. */
#ifndef BH_SIM_SMI_PRINT_H
#define BH_SIM_SMI_PRINT_H

#include <stdio.h>

struct bh_smi_report;

/* A table; one line for each device, as `nvidia-smi -L` prints it; one JSON
 * object.  Errors of `out` are left for the caller to find. */
void bh_smi_report_table(const struct bh_smi_report *report, FILE *out);
void bh_smi_report_list(const struct bh_smi_report *report, FILE *out);
void bh_smi_report_json(const struct bh_smi_report *report, FILE *out);

#endif
