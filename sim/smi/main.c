/* bulkhead-smi: shows the devices that an NVML library lets this process see. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "sim/smi/nvml.h"
#include "sim/smi/print.h"
#include "sim/smi/report.h"

#define EXIT_USAGE 2
#define EXIT_UNAVAILABLE 8

static const char usage_text[] =
    "usage: bulkhead-smi [-L | --json] [--library PATH]\n"
    "Show the GPUs and MIG devices that this process may see, and the processes on them.\n"
    "  -L, --list-gpus   one line for each device, as nvidia-smi -L prints it\n"
    "  --json            everything as one JSON object\n"
    "  --library PATH    the NVML library to load, instead of libnvidia-ml.so.1\n"
    "Exit status: 0 shown, 2 usage, 8 no library or no driver.\n";

static int
smi_run(const char *library, void (*print)(const struct bh_smi_report *report, FILE *out))
{
    static struct bh_smi_report report;
    struct bh_smi_nvml nvml;
    char reason[768];

    if (!bh_smi_nvml_open(library, &nvml, reason, sizeof(reason))) {
        fprintf(stderr, "bulkhead-smi: %s\n", reason);
        return EXIT_UNAVAILABLE;
    }
    bh_smi_report_take(&nvml, &report);
    bh_smi_nvml_close(&nvml);
    print(&report, stdout);
    return ferror(stdout) || fflush(stdout) != 0;
}

int
main(int argc, char **argv)
{
    /* clang-format off */
    static const struct option options[] = {
        { "list-gpus", no_argument, NULL, 'L' },     { "json", no_argument, NULL, 'j' },
        { "library", required_argument, NULL, 'l' }, { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },       { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    void (*print)(const struct bh_smi_report *report, FILE *out) = bh_smi_report_table;
    const char *library = NULL;
    int choice;

    while ((choice = getopt_long(argc, argv, "L", options, NULL)) != -1) {
        if (choice == 'h')
            return fputs(usage_text, stdout) < 0;
        if (choice == 'v')
            return printf("bulkhead-smi %s\n", BH_VERSION) < 0;
        if (choice == 'L')
            print = bh_smi_report_list;
        else if (choice == 'j')
            print = bh_smi_report_json;
        else if (choice == 'l')
            library = optarg;
        else
            return fputs(usage_text, stderr), EXIT_USAGE;
    }
    if (optind != argc)
        return fputs(usage_text, stderr), EXIT_USAGE;
    return smi_run(library, print);
}
