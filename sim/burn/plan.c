#include "sim/burn/plan.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_NS 60000000000u
#define DAY_NS (24u * 60u * (uint64_t)MINUTE_NS)

static const char usage_text[] =
    "usage: bulkhead-burn [options]\n"
    "Keep a GPU busy with kernels of known length through the CUDA driver API, and show "
    "for\n"
    "each window how much work was completed, one JSON object a line.\n"
    "\n"
    "  --kernel TIME        length of a kernel (1ms); 0: none\n"
    "  --time TIME          how long to go on (10s)\n"
    "  --window TIME        length of a window (1s)\n"
    "  --streams N          streams of each thread (1)\n"
    "  --graph N            launch graphs of N kernels instead of kernels\n"
    "  --rate N             launches a second of each thread, with pauses (no limit)\n"
    "  --ahead TIME         work that a thread keeps in flight (20ms)\n"
    "  --hold-mib N         memory that each process holds\n"
    "  --storm KIND         allocate and free beside it: linear, managed, async, host, "
    "vmm,\n"
    "                       array\n"
    "  --storm-mib N        size of each of these allocations (2)\n"
    "  --storm-live N       how many of them live at once (16)\n"
    "  --processes N        processes (1)\n"
    "  --threads N          threads of each process (1)\n"
    "  --blocks N           blocks of a kernel (one for each multiprocessor)\n"
    "  --device N           ordinal of the device (0)\n"
    "  --loops-per-ms N     rounds of the kernel's loop in 1 ms on an idle GPU; measured "
    "at\n"
    "                       the start when not given, which is wrong on a busy one\n"
    "  --library NAME       the driver (libcuda.so.1)\n"
    "  --help, --version\n"
    "\n"
    "TIME is a number with ns, us, ms or s.  Work is what a kernel takes on an idle GPU, "
    "so\n"
    "work_ns / (end_ns - start_ns) of a window is the share of the GPU that was had.\n"
    "\n"
    "Exit status: 0 done, 1 a CUDA call failed, 2 usage, 8 no driver or no device.\n";

static const char *const storms[] = { "none", "linear", "managed", "async", "host", "vmm", "array" };

const char *
bh_burn_storm_name(enum burn_storm storm)
{
    return storms[storm];
}

enum plan_kind { KIND_TIME, KIND_NUMBER, KIND_STORM, KIND_TEXT };

/* One row for each option. */
static const struct row {
    const char *name;
    enum plan_kind kind;
    size_t offset;
    uint64_t least, most;
} rows[] = {
#define AT(field) offsetof(struct burn_plan, field)
    { "kernel", KIND_TIME, AT(kernel_ns), 0, MINUTE_NS },
    { "time", KIND_TIME, AT(time_ns), 1, 30 * DAY_NS },
    { "window", KIND_TIME, AT(window_ns), 1000000, DAY_NS },
    { "streams", KIND_NUMBER, AT(streams), 1, BURN_STREAMS_MAX },
    { "graph", KIND_NUMBER, AT(graph), 1, 10000 },
    { "rate", KIND_NUMBER, AT(rate), 1, 1000000 },
    { "ahead", KIND_TIME, AT(ahead_ns), 1, MINUTE_NS },
    { "hold-mib", KIND_NUMBER, AT(hold_mib), 0, 1u << 24 },
    { "storm", KIND_STORM, AT(storm), 0, 0 },
    { "storm-mib", KIND_NUMBER, AT(storm_mib), 1, 1u << 24 },
    { "storm-live", KIND_NUMBER, AT(storm_live), 1, 1024 },
    { "processes", KIND_NUMBER, AT(processes), 1, 1024 },
    { "threads", KIND_NUMBER, AT(threads), 1, 256 },
    { "blocks", KIND_NUMBER, AT(blocks), 1, 65535 },
    { "device", KIND_NUMBER, AT(device), 0, 1023 },
    { "loops-per-ms", KIND_NUMBER, AT(loops_per_ms), 1, UINT64_MAX / DAY_NS },
    { "library", KIND_TEXT, AT(library), 0, 0 },
#undef AT
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
#define HELP ROWS
#define VERSION (ROWS + 1)

static bool
plan_parse_number(const char *text, const char **ret_end, uint64_t *ret_number)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    *ret_end = end;
    return errno == 0;
}

/* "500us", "2s", "0".  False: it is no such text. */
static bool
plan_parse_time(const char *text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
    const char *unit;
    uint64_t number;

    if (!plan_parse_number(text, &unit, &number))
        return false;
    if (number == 0 && *unit == '\0') {
        *ret_ns = 0;
        return true;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].name) == 0 && number <= UINT64_MAX / units[i].ns) {
            *ret_ns = number * units[i].ns;
            return true;
        }
    return false;
}

static bool
plan_parse_storm(const char *text, enum burn_storm *ret_storm)
{
    for (size_t i = 1; i < sizeof(storms) / sizeof(storms[0]); i++)
        if (strcmp(text, storms[i]) == 0) {
            *ret_storm = (enum burn_storm)i;
            return true;
        }
    return false;
}

static bool
plan_parse_row(const struct row *row, const char *text, struct burn_plan *plan)
{
    void *field = (char *)plan + row->offset;
    uint64_t number = 0;
    const char *end = "";

    if (row->kind == KIND_TEXT) {
        *(const char **)field = text;
        return true;
    }
    if (row->kind == KIND_STORM)
        return plan_parse_storm(text, field);
    if (!(row->kind == KIND_TIME ? plan_parse_time(text, &number) : plan_parse_number(text, &end, &number))
        || *end != '\0' || number < row->least || number > row->most)
        return false;
    memcpy(field, &number, sizeof(number));
    return true;
}

static enum burn_parse
plan_answer(bool written)
{
    return written ? BURN_PARSE_DONE : BURN_PARSE_USAGE;
}

enum burn_parse
bh_burn_plan_parse(int argc, char **argv, struct burn_plan *ret_plan)
{
    struct option options[ROWS + 3] = {
        [HELP] = { "help", no_argument, NULL, HELP }, [VERSION] = { "version", no_argument, NULL, VERSION }
    };
    int choice;

    for (size_t i = 0; i < ROWS; i++)
        options[i] = (struct option){ rows[i].name, required_argument, NULL, (int)i };
    *ret_plan = (struct burn_plan){ .kernel_ns = 1000000,
                                    .time_ns = 10000000000u,
                                    .window_ns = 1000000000,
                                    .ahead_ns = 20000000,
                                    .streams = 1,
                                    .storm_mib = 2,
                                    .storm_live = 16,
                                    .processes = 1,
                                    .threads = 1,
                                    .library = "libcuda.so.1" };
    while ((choice = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (choice == HELP)
            return plan_answer(fputs(usage_text, stdout) >= 0);
        if (choice == VERSION)
            return plan_answer(printf("bulkhead-burn %s\n", BH_VERSION) >= 0);
        if (choice == '?')
            return BURN_PARSE_USAGE;
        if (!plan_parse_row(&rows[choice], optarg, ret_plan)) {
            fprintf(stderr, "bulkhead-burn: --%s: cannot be %s\n", rows[choice].name, optarg);
            return BURN_PARSE_USAGE;
        }
    }
    if (optind == argc)
        return BURN_PARSE_RUN;
    fprintf(stderr, "bulkhead-burn: unexpected argument %s\n", argv[optind]);
    return BURN_PARSE_USAGE;
}
