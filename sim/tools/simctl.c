/* bulkhead-simctl: sets up a simulated server and makes its GPUs fail. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "sim/machine/control.h"
#include "sim/machine/errors.h"
#include "sim/machine/files.h"
#include "sim/machine/folder.h"
#include "sim/machine/geometry.h"
#include "sim/machine/meter.h"
#include "sim/machine/partition.h"
#include "sim/machine/publish.h"
#include "sim/machine/queue.h"
#include "sim/machine/session.h"
#include "sim/machine/store.h"
#include "sim/machine/topology.h"
#include "sim/machine/usage.h"
#include "sim/machine/vram.h"
#include "sim/machine/vram_mount.h"

#define TEXT_BYTES_MAX 65536
#define EXIT_USAGE 2
#define MEMORY_MIB 1024u
#define MEMORY_MOST_MIB (1u << 20)
#define SLICE_LEAST_US 100u
#define SLICE_MOST_US 1000000u

static const char usage_text[] =
    "usage: bulkhead-simctl [--state DIR] COMMAND\n"
    "  init [--topology] FILE | \"8x H100-80GB\"   make a new simulated server\n"
    "  check FILE | \"8x H100-80GB\"   whether init would take it\n"
    "  mount [MIB]                   let jobs write to the GPUs' memory, 1024 MiB at most\n"
    "  unmount                       no longer; refused while jobs have it\n"
    "  status                        GPUs, instances, rules of the control file\n"
    "  memory                        bytes in use, of each process, at one instant\n"
    "  timeslice US|exclusive        how long a time slice of the SMs is, on all GPUs\n"
    "  xid GPU NUMBER [GI [CI]]      report an XID\n"
    "  ecc GPU COUNT [GI]            report uncorrected memory errors\n"
    "  lose GPU                      the GPU falls off the bus, until clear or reset\n"
    "  reset GPU|all [--force]       reset; refused while processes use it\n"
    "  --gpu-reset [-i PCI]          the same, as nvidia-smi is asked for it\n"
    "  hang FUNCTION [GPU]           calls of FUNCTION never return\n"
    "  fail FUNCTION CODE [COUNT]    they answer CODE (\"IN_USE\")\n"
    "  inject RULE                   any line of the control file\n"
    "  await NUMBER                  until a call has met that rule, which has a count\n"
    "  clear                         forget all rules\n"
    "DIR is $BULKHEAD_SIM_STATE, or /run/bulkhead-sim.\n";

static const char *dir;
static bool force;

static int
simctl_fail(const char *what, const char *cause)
{
    fprintf(stderr, "bulkhead-simctl: %s: %s\n", what, cause);
    return 1;
}

static int
simctl_fail_rc(const char *what, nvmlReturn_t rc)
{
    return simctl_fail(what, sim_error_text(rc));
}

static bool
simctl_put_control(const char *text)
{
    char path[SIM_PATH_MAX];

    return sim_path(path, "%s/control", dir) && sim_put_file(path, 0600, text, strlen(text));
}

static char *
simctl_get_control(void)
{
    char path[SIM_PATH_MAX];
    char *text = sim_path(path, "%s/control", dir) ? sim_read_text(path, TEXT_BYTES_MAX) : NULL;

    return text != NULL ? text : strdup("");
}

/* From reading the control file to writing it: two commands at once would lose a rule of one.
 * Until this process ends. */
static bool
simctl_hold_control(void)
{
    static int fd = -1;
    char path[SIM_PATH_MAX];

    if (fd < 0 && sim_path(path, "%s/control.lock", dir))
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd >= 0 && flock(fd, LOCK_EX) == 0;
}

static int
simctl_open_driver(void)
{
    nvmlReturn_t rc = sim_session_open(0);

    if (rc != NVML_SUCCESS)
        return simctl_fail_rc(dir, rc);
    sim_session_refresh();
    return 0;
}

/* A rule about a GPU that is not there would never be met. */
static int
simctl_check_gpu(const struct sim_rule *rule)
{
    char what[32], cause[64];

    if (rule->gpu == SIM_NO_ID)
        return 0;
    if (simctl_open_driver() != 0)
        return 1;
    if (rule->gpu < sim_session_gpus())
        return 0;
    snprintf(what, sizeof(what), "no GPU %u", rule->gpu);
    snprintf(cause, sizeof(cause), "there are %u, counted from 0", sim_session_gpus());
    return simctl_fail(what, cause);
}

/* Append one rule.  `id=` makes a line that was written before a new one. */
static int
simctl_add_rule(const char *rule)
{
    static struct sim_rules rules;
    bool held = simctl_hold_control();
    char *old = simctl_get_control();
    char *text = NULL;
    struct timespec now;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    sim_control_parse(rule, &rules);
    if (rules.count != 1 || rules.bad_line != 0)
        rc = simctl_fail(rule, "this is no rule of a control file");
    else if (simctl_check_gpu(&rules.rule[0]) != 0)
        rc = 1;
    else if (old == NULL
             || asprintf(&text, "%s%s%s id=%llx%lx\n", old,
                         *old != '\0' && old[strlen(old) - 1] != '\n' ? "\n" : "", rule,
                         (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec)
                    < 0)
        rc = simctl_fail("control file", "out of memory");
    else if (!held || !simctl_put_control(text))
        rc = simctl_fail("cannot write the control file", strerror(errno));
    free(text);
    free(old);
    return rc;
}

/* Does this line keep the GPU lost or in need of a reset? */
static bool
simctl_is_level(const char *line, uint32_t gpu)
{
    static struct sim_rules rules;

    sim_control_parse(line, &rules);
    return rules.count == 1 && rules.rule[0].gpu == gpu && rules.rule[0].kind >= SIM_RULE_LOST
           && rules.rule[0].kind <= SIM_RULE_THERMAL;
}

/* Empty those lines: what stands below keeps its number, and does not happen again. */
static bool
simctl_drop_levels(uint32_t gpu)
{
    bool held = simctl_hold_control(), written = false;
    char *old = simctl_get_control(), *rest = old;
    FILE *kept = tmpfile();
    char text[TEXT_BYTES_MAX];

    if (held && old != NULL && kept != NULL) {
        for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
            fprintf(kept, "%s%s", simctl_is_level(line, gpu) ? "" : line, rest != NULL ? "\n" : "");
        rewind(kept);
        text[fread(text, 1, sizeof(text) - 1, kept)] = '\0';
        written = simctl_put_control(text);
    }
    if (kept != NULL)
        fclose(kept);
    free(old);
    return written;
}

/* The text of a topology: a file's, or "8x H100-80GB" as its only line. */
static char *
simctl_topology_text(const char *argument)
{
    char *text = NULL;

    if (access(argument, R_OK) == 0)
        return sim_read_text(argument, TEXT_BYTES_MAX);
    return asprintf(&text, "node: %s\n", argument) < 0 ? NULL : text;
}

/* The topology's text, parsed into `ret_state`, or NULL: it is wrong, and how it is written was
 * said. */
static char *
simctl_read_topology(const char *argument, struct sim_state *ret_state)
{
    char *text = simctl_topology_text(argument);
    int line = text == NULL ? 1 : sim_topology_parse(text, ret_state);

    if (line == 0)
        return text;
    free(text);
    fprintf(stderr,
            "bulkhead-simctl: topology %s: line %d is wrong\n"
            "  GPUs are written COUNTx MODEL, as 8x H100-80GB, 1 to %d of them; a file has lines\n"
            "  `node: COUNTx MODEL [KEY=VALUE...]`; models:",
            argument, line, SIM_GPUS_MAX);
    for (uint32_t i = 0; sim_model_at(i) != NULL; i++)
        fprintf(stderr, " %s", sim_model_at(i)->name);
    fputc('\n', stderr);
    return NULL;
}

static int
simctl_run_check(int count, char **words)
{
    static struct sim_state state;
    char *text = simctl_read_topology(words[count - 1], &state);
    bool right = text != NULL;

    free(text);
    return right ? 0 : 1;
}

static int
simctl_run_init(int count, char **words)
{
    static struct sim_state state;
    char path[SIM_PATH_MAX];
    char *text = simctl_read_topology(words[count - 1], &state);

    if (text == NULL)
        return 1;
    /* Faults of the server that was here before are not the new one's. */
    bool made = sim_make_folders(dir, 0755) && simctl_put_control("") && sim_path(path, "%s/topology", dir)
                && sim_put_file(path, 0644, text, strlen(text)) && sim_vram_forget(dir)
                && sim_path(path, "%s/proc", dir) && sim_remove_tree(path);
    free(text);
    if (!made)
        return simctl_fail(dir, strerror(errno));
    nvmlReturn_t rc = sim_store_replace(dir, &state);
    if (rc != NVML_SUCCESS)
        return simctl_fail_rc(dir, rc);
    if (simctl_open_driver() != 0)
        return 1;
    printf("%u simulated GPUs in %s\n", state.system.gpus, dir);
    return 0;
}

static void
simctl_print_gpu(const struct sim_gpu *gpu)
{
    static const char *const modes[] = { "off", "on" };

    printf("gpu %u  minor %u  %s  mig %s%s%s\n", gpu->index, gpu->minor, sim_model_at(gpu->model)->name,
           modes[gpu->mig_current], gpu->mig_pending != gpu->mig_current ? " (change pending)" : "",
           gpu->lost ? "  lost" : "");
    for (unsigned i = 0; i < SIM_GIS_MAX; i++) {
        const struct sim_gi *gi = &gpu->gi[i];

        if (gi->birth != 0)
            printf("  gi %u  %s  at %u:%u  used %llu MiB  view %u-%u\n", gi->id,
                   sim_gi_profile(gpu, gi)->name, gi->start, gi->size,
                   (unsigned long long)(sim_used_bytes(gpu, gi) >> 20), gpu->minor, gi->id);
    }
}

static int
simctl_run_status(int count, char **words)
{
    static struct sim_rules rules;
    struct sim_gpu gpu;
    char *text;

    if (simctl_open_driver() != 0)
        return 1;
    for (unsigned i = 0; i < sim_session_gpus(); i++)
        if (sim_session_gpu(i, &gpu) == NVML_SUCCESS)
            simctl_print_gpu(&gpu);
    text = simctl_get_control();
    sim_control_parse(text == NULL ? "" : text, &rules);
    free(text);
    printf("rules %u\n", rules.count);
    return rules.bad_line == 0 ? 0 : simctl_fail("control file", "it has a line that means nothing");
}

static int
simctl_print_memory(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    static struct sim_meter_reading reading;
    char folder[SIM_PATH_MAX], name[16] = "w";
    struct sim_meter *meter =
        sim_folder_vram_path(gpu, gi, folder) ? sim_meter_open(folder, gpu, sim_memory_bytes(gpu, gi)) : NULL;

    if (meter == NULL)
        return simctl_fail("cannot read the memory", strerror(errno));
    sim_meter_read(meter, &reading);
    sim_meter_close(meter);
    if (gi != NULL)
        snprintf(name, sizeof(name), "%u", gi->id);
    printf("view %u-%s  used %llu of %llu\n", gpu->minor, name, (unsigned long long)reading.used_bytes,
           (unsigned long long)reading.total_bytes);
    for (size_t i = 0; i < reading.users; i++)
        printf("  slot %u  pid %d  used %llu\n", reading.user[i].slot, reading.user[i].pid,
               (unsigned long long)reading.user[i].bytes);
    return 0;
}

/* Visit what a context may be on, up to the first failure. */
static int
simctl_each_device(int (*visit)(const struct sim_gpu *gpu, const struct sim_gi *gi))
{
    struct sim_gpu gpu;
    int rc = 0;

    if (simctl_open_driver() != 0)
        return 1;
    for (unsigned i = 0; rc == 0 && i < sim_session_gpus(); i++) {
        if (sim_session_gpu(i, &gpu) != NVML_SUCCESS)
            continue;
        if (gpu.mig_current == 0)
            rc = visit(&gpu, NULL);
        for (unsigned at = 0; rc == 0 && at < SIM_GIS_MAX; at++)
            if (gpu.mig_current != 0 && gpu.gi[at].birth != 0)
                rc = visit(&gpu, &gpu.gi[at]);
    }
    return rc;
}

static int
simctl_run_memory(int count, char **words)
{
    return simctl_each_device(simctl_print_memory);
}

static int
simctl_put_memory(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    return sim_vram_publish(dir, gpu, gi) ? 0 : simctl_fail("cannot make the memory", strerror(errno));
}

static int
simctl_run_mount(int count, char **words)
{
    char *end = NULL;
    unsigned long mib = count > 1 ? strtoul(words[1], &end, 10) : MEMORY_MIB;

    if (count > 1 && (*end != '\0' || end == words[1] || mib == 0 || mib > MEMORY_MOST_MIB))
        return simctl_fail(words[1], "no number of MiB");
    if (simctl_open_driver() != 0)
        return 1;
    if (sim_vram_is_mounted(dir))
        return 0;
    if (!sim_vram_mount(dir, (uint32_t)mib))
        return simctl_fail("cannot mount the memory", strerror(errno));
    return simctl_each_device(simctl_put_memory);
}

static int
simctl_run_unmount(int count, char **words)
{
    if (sim_vram_unmount(dir))
        return 0;
    return errno == EBUSY ? simctl_fail("the memory stays mounted", "jobs have it")
                          : simctl_fail("cannot unmount the memory", strerror(errno));
}

static uint64_t slice_ns;

static int
simctl_set_slice(const struct sim_gpu *gpu, const struct sim_gi *gi)
{
    char folder[SIM_PATH_MAX];

    return sim_folder_vram_path(gpu, gi, folder) && sim_queue_set_slice(folder, slice_ns)
               ? 0
               : simctl_fail("cannot write the record of work", strerror(errno));
}

/* Instances that are made later have the usual length again. */
static int
simctl_run_timeslice(int count, char **words)
{
    char *end = words[1];
    unsigned long long us = strtoull(words[1], &end, 10);

    if (strcmp(words[1], "exclusive") == 0)
        slice_ns = UINT64_MAX;
    else if (*end != '\0' || us < SLICE_LEAST_US || us > SLICE_MOST_US)
        return simctl_fail(words[1], "is no length from 100 to 1000000 us");
    else
        slice_ns = us * 1000;
    return simctl_each_device(simctl_set_slice);
}

/* XIDs that mean something: runs of them. */
static const struct {
    unsigned first, last;
} xids[] = {
#define BH_XID(first, last, name, class, scope, doc) { first, last },
#include "tables/xid.tbl"
#undef BH_XID
};

static bool
simctl_is_known_xid(const char *word)
{
    char *end = NULL;
    unsigned long number = strtoul(word, &end, 10);

    for (size_t i = 0; *end == '\0' && i < sizeof(xids) / sizeof(xids[0]); i++)
        if (number >= xids[i].first && number <= xids[i].last)
            return true;
    return false;
}

static int
simctl_fail_xid(const char *word)
{
    fprintf(stderr, "bulkhead-simctl: no XID %s: there are", word);
    for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++) {
        fprintf(stderr, "%s %u", i > 0 ? "," : "", xids[i].first);
        if (xids[i].last != xids[i].first)
            fprintf(stderr, "-%u", xids[i].last);
    }
    fputs("; inject gpu=GPU xid=NUMBER reports any\n", stderr);
    return 1;
}

/* The rule that a command writes: its words, each after the key of its place, and what ends it. */
struct simctl_rule {
    const char *key[4], *end;
};

static int
simctl_write_rule(const struct simctl_rule *form, int count, char **words)
{
    char rule[512] = "";
    size_t used = 0;

    for (int i = 1; i < count && used < sizeof(rule); i++)
        used += (size_t)snprintf(rule + used, sizeof(rule) - used, "%s%s ",
                                 i <= 4 && form->key[i - 1] != NULL ? form->key[i - 1] : "", words[i]);
    if (form->end != NULL && used < sizeof(rule))
        snprintf(rule + used, sizeof(rule) - used, "%s", form->end);
    return simctl_add_rule(rule);
}

static int
simctl_run_xid(int count, char **words)
{
    static const struct simctl_rule form = { { "gpu=", "xid=", "gi=", "ci=" }, NULL };

    return simctl_is_known_xid(words[2]) ? simctl_write_rule(&form, count, words) : simctl_fail_xid(words[2]);
}

/* Calls that met a rule with a count are counted before they suffer from it. */
static int
simctl_run_await(int count, char **words)
{
    const struct timespec pause = { 0, 1000000 };
    struct sim_rule rule;
    char *end = NULL;
    unsigned long number = strtoul(words[1], &end, 10);

    if (simctl_open_driver() != 0)
        return 1;
    if (*end != '\0' || number == 0 || !sim_session_rule((unsigned)number - 1, &rule) || rule.count == 0)
        return simctl_fail(words[1], "no number of a rule with a count");
    while (sim_session_uses(&rule) == 0)
        nanosleep(&pause, NULL);
    return 0;
}

static int
simctl_run_clear(int count, char **words)
{
    return simctl_hold_control() && simctl_put_control("")
               ? 0
               : simctl_fail("cannot write the control file", strerror(errno));
}

static int
simctl_reset_gpu(unsigned index)
{
    struct sim_state *draft;
    struct sim_gpu gpu;
    char name[32];
    nvmlReturn_t rc = sim_session_gpu(index, &gpu);

    snprintf(name, sizeof(name), "reset gpu %u", index);
    if (rc != NVML_SUCCESS)
        return simctl_fail_rc(name, rc);
    if (!force && sim_users_any(&gpu, NULL))
        return simctl_fail_rc(name, NVML_ERROR_IN_USE);
    if (!simctl_drop_levels(index))
        return simctl_fail(name, strerror(errno));
    rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return simctl_fail_rc(name, rc);
    sim_gpu_reset(draft, &draft->gpu[index]);
    sim_change_end(NVML_SUCCESS);
    sim_session_refresh();
    return 0;
}

static int
simctl_run_reset(int count, char **words)
{
    char *end = NULL;
    unsigned long index = strtoul(words[1], &end, 10);
    int rc = 0;

    if (simctl_open_driver() != 0)
        return 1;
    if (strcmp(words[1], "all") != 0)
        return *end != '\0' || end == words[1] ? simctl_fail(words[1], "no GPU number")
                                               : simctl_reset_gpu((unsigned)index);
    for (unsigned i = 0; i < sim_session_gpus(); i++)
        rc |= simctl_reset_gpu(i);
    return rc;
}

/* As nvidia-smi: the GPU of that bus address, or all. */
static int
simctl_reset_by_pci(const char *pci)
{
    struct sim_gpu gpu;

    if (pci == NULL)
        return simctl_run_reset(2, (char *[]){ (char *)"reset", (char *)"all" });
    if (simctl_open_driver() != 0)
        return 1;
    for (unsigned i = 0; i < sim_session_gpus(); i++) {
        char name[32];

        if (sim_session_gpu(i, &gpu) != NVML_SUCCESS)
            continue;
        snprintf(name, sizeof(name), "00000000:%02X:00.0", gpu.bus);
        if (strcmp(name, pci) == 0)
            return simctl_reset_gpu(i);
    }
    return simctl_fail(pci, "no such GPU");
}

static const struct {
    const char *name;
    int least, most;                     /* words, with the command's own */
    int (*run)(int count, char **words); /* NULL: it writes this rule */
    struct simctl_rule rule;
    /* clang-format off */
} commands[] = {
    { "init", 2, 2, simctl_run_init },     { "check", 2, 2, simctl_run_check },
    { "status", 1, 1, simctl_run_status }, { "clear", 1, 1, simctl_run_clear },
    { "mount", 1, 2, simctl_run_mount },   { "unmount", 1, 1, simctl_run_unmount },
    { "memory", 1, 1, simctl_run_memory }, { "timeslice", 2, 2, simctl_run_timeslice },
    { "reset", 2, 2, simctl_run_reset },   { "await", 2, 2, simctl_run_await },
    { "xid", 3, 5, simctl_run_xid },
    { "ecc", 3, 4, NULL, { { "gpu=", "ecc-uncorrected=", "gi=" }, NULL } },
    { "lose", 2, 2, NULL, { { "gpu=" }, "lost" } },
    { "hang", 2, 3, NULL, { { "", "gpu=" }, "hang" } },
    { "fail", 3, 4, NULL, { { "", "fail=", "count=" }, NULL } },
    { "inject", 2, 32, NULL },
};
/* clang-format on */

static int
simctl_complain(void)
{
    fputs(usage_text, stderr);
    return EXIT_USAGE;
}

static int
simctl_run_command(int count, char **words)
{
    size_t at = 0;

    while (count > 0 && at < sizeof(commands) / sizeof(commands[0])
           && strcmp(words[0], commands[at].name) != 0)
        at++;
    if (count == 0 || at == sizeof(commands) / sizeof(commands[0]) || count < commands[at].least
        || count > commands[at].most)
        return simctl_complain();
    return commands[at].run != NULL ? commands[at].run(count, words)
                                    : simctl_write_rule(&commands[at].rule, count, words);
}

int
main(int argc, char **argv)
{
    static const struct option options[] = { { "state", required_argument, NULL, 's' },
                                             { "topology", required_argument, NULL, 't' },
                                             { "force", no_argument, NULL, 'f' },
                                             { "gpu-reset", no_argument, NULL, 'r' },
                                             { "help", no_argument, NULL, 'h' },
                                             { "version", no_argument, NULL, 'v' },
                                             { NULL, 0, NULL, 0 } };
    char *words[33] = { NULL };
    char *topology = NULL, *pci = NULL;
    bool by_pci = false;
    int choice, count = 0;

    while ((choice = getopt_long(argc, argv, "i:", options, NULL)) != -1) {
        if (choice == 's')
            setenv("BULKHEAD_SIM_STATE", optarg, 1);
        else if (choice == 't')
            topology = optarg;
        else if (choice == 'f')
            force = true;
        else if (choice == 'r')
            by_pci = true;
        else if (choice == 'i')
            pci = optarg;
        else if (choice == 'h')
            return fputs(usage_text, stdout) < 0;
        else if (choice == 'v')
            return printf("bulkhead-simctl %s\n", BH_VERSION) < 0;
        else
            return simctl_complain();
    }
    dir = getenv("BULKHEAD_SIM_STATE");
    if (dir == NULL || *dir == '\0')
        dir = "/run/bulkhead-sim";
    if (by_pci)
        return simctl_reset_by_pci(pci);
    for (; optind < argc && count < 31; optind++)
        words[count++] = argv[optind];
    if (topology != NULL)
        words[count++] = topology;
    return simctl_run_command(count, words);
}
