#include "sim/smi/print.h"

#include <string.h>

#include "sim/smi/report.h"

#define LINE                                                                                                 \
    "+-----------------------------------------------------------------------------------"                   \
    "---+"

/* `number` divided and with its unit, or a dash. */
static const char *
print_show(struct bh_smi_number number, unsigned long long divisor, const char *unit, char text[32])
{
    if (number.known)
        snprintf(text, 32, "%llu%s", number.value / divisor, unit);
    else
        snprintf(text, 32, "-");
    return text;
}

static void
print_device(const struct bh_smi_device *device, FILE *out)
{
    char used[32], total[32], busy[32], power[32], heat[32], label[160];

    if (device->is_mig)
        snprintf(label, sizeof(label), "  %u  %s", device->index,
                 strstr(device->name, "MIG ") ? strstr(device->name, "MIG ") : device->name);
    else
        snprintf(label, sizeof(label), "%u  %s", device->index, device->name);
    fprintf(out, "| %-39.39s %10s / %-10s %6s %6s %6s |\n", label,
            device->lost ? "lost" : print_show(device->memory_used, 1 << 20, "", used),
            print_show(device->memory_total, 1 << 20, "MiB", total),
            print_show(device->utilization, 1, "%", busy), print_show(device->power_mw, 1000, "W", power),
            print_show(device->temperature, 1, "C", heat));
}

static void
print_process(const struct bh_smi_report *report, const struct bh_smi_process *process, FILE *out)
{
    const struct bh_smi_device *device = &report->device[process->device];
    char gi[32], ci[32], memory[32];

    fprintf(out, "| %-6u %6s %6s %10u %12s  %-36.36s   |\n", device->index, print_show(device->gi, 1, "", gi),
            print_show(device->ci, 1, "", ci), process->pid,
            print_show(process->memory, 1 << 20, "MiB", memory), process->name);
}

void
bh_smi_report_table(const struct bh_smi_report *report, FILE *out)
{
    char version[128];

    fprintf(out, "%s\n", LINE);
    snprintf(version, sizeof(version), "Driver Version: %s   CUDA Version: %d.%d", report->driver,
             report->cuda / 1000, report->cuda % 1000 / 10);
    fprintf(out, "| bulkhead-smi   %-69.69s |\n", version);
    fprintf(out, "| NVML library: %-70.70s |\n", report->library);
    if (report->simulated)
        fprintf(out, "| %-84s |\n", "SIMULATED by bulkhead-sim: no hardware stands behind these devices");
    fprintf(out, "%s\n", LINE);
    fprintf(out, "| %-39s %10s / %-10s %6s %6s %6s |\n", "GPU / MIG device", "Memory", "Total", "Util",
            "Power", "Temp");
    fprintf(out, "%s\n", LINE);
    for (unsigned i = 0; i < report->devices; i++)
        print_device(&report->device[i], out);
    if (report->devices == 0)
        fprintf(out, "| %-84s |\n", "No devices were found");
    fprintf(out, "%s\n", LINE);
    fprintf(out, "| %-6s %6s %6s %10s %12s  %-36s   |\n", "Device", "GI", "CI", "PID", "Memory", "Process");
    for (unsigned i = 0; i < report->processes; i++)
        print_process(report, &report->process[i], out);
    if (report->processes == 0)
        fprintf(out, "| %-84s |\n", "No running processes found");
    fprintf(out, "%s\n", LINE);
}

void
bh_smi_report_list(const struct bh_smi_report *report, FILE *out)
{
    for (unsigned i = 0; i < report->devices; i++) {
        const struct bh_smi_device *device = &report->device[i];
        const char *mig = strstr(device->name, "MIG ");

        if (device->is_mig)
            fprintf(out, "  %-18s Device %2u: (UUID: %s)\n", mig != NULL ? mig : device->name, device->index,
                    device->uuid);
        else
            fprintf(out, "GPU %u: %s (UUID: %s)\n", device->index, device->name, device->uuid);
    }
}

/* Names come from drivers and processes: escape what JSON wants escaped. */
static void
print_json_text(const char *key, const char *text, FILE *out)
{
    fprintf(out, "\"%s\": \"", key);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void
print_json_number(const char *key, struct bh_smi_number number, FILE *out)
{
    if (number.known)
        fprintf(out, ", \"%s\": %llu", key, number.value);
    else
        fprintf(out, ", \"%s\": null", key);
}

static void
print_json_device(const struct bh_smi_device *device, FILE *out)
{
    fprintf(out, "    {\"type\": \"%s\", \"index\": %u, ", device->is_mig ? "mig" : "gpu", device->index);
    print_json_text("name", device->name, out);
    fprintf(out, ", ");
    print_json_text("uuid", device->uuid, out);
    fprintf(out, ", \"mig_mode\": %s, \"lost\": %s", device->mig_mode ? "true" : "false",
            device->lost ? "true" : "false");
    print_json_number("gi", device->gi, out);
    print_json_number("ci", device->ci, out);
    print_json_number("memory_total_bytes", device->memory_total, out);
    print_json_number("memory_used_bytes", device->memory_used, out);
    print_json_number("utilization_percent", device->utilization, out);
    print_json_number("power_mw", device->power_mw, out);
    print_json_number("power_limit_mw", device->power_limit_mw, out);
    print_json_number("temperature_c", device->temperature, out);
    fputc('}', out);
}

void
bh_smi_report_json(const struct bh_smi_report *report, FILE *out)
{
    fprintf(out, "{\n  ");
    print_json_text("library", report->library, out);
    fprintf(out, ",\n  ");
    print_json_text("driver_version", report->driver, out);
    fprintf(out, ",\n  \"cuda_version\": %d,\n  \"simulated\": %s,\n  \"devices\": [", report->cuda,
            report->simulated ? "true" : "false");
    for (unsigned i = 0; i < report->devices; i++) {
        fprintf(out, "%s\n", i > 0 ? "," : "");
        print_json_device(&report->device[i], out);
    }
    fprintf(out, "%s],\n  \"processes\": [", report->devices > 0 ? "\n  " : "");
    for (unsigned i = 0; i < report->processes; i++) {
        const struct bh_smi_process *process = &report->process[i];

        fprintf(out, "%s\n    {\"pid\": %u, ", i > 0 ? "," : "", process->pid);
        print_json_text("uuid", report->device[process->device].uuid, out);
        fprintf(out, ", ");
        print_json_text("name", process->name, out);
        print_json_number("memory_bytes", process->memory, out);
        fputc('}', out);
    }
    fprintf(out, "%s]\n}\n", report->processes > 0 ? "\n  " : "");
}
