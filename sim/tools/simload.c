/* bulkhead-simload: stands for a CUDA process.  It opens a context of N MiB on
 * the visible simulated device and keeps it for S seconds. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/machine/access.h"
#include "sim/machine/contexts.h"
#include "sim/machine/files.h"
#include "sim/machine/ledger.h"

#define EXIT_USAGE 2
#define CONTEXTS_MAX 1024

static const char usage_text[] =
    "usage: bulkhead-simload --mib N --seconds S [--busy PERCENT] [--state DIR] [--view "
    "NAME]\n"
    "Open a context of N MiB on the simulated device this job sees, and use a CPU for\n"
    "PERCENT (default 20) of S seconds in the device's place.\n"
    "--view NAME (\"0-7\", \"0-w\"): as root outside a job, the view folder to take.\n"
    "DIR is $BULKHEAD_SIM_STATE, or /run/bulkhead-sim.\n";

struct simload_options {
    uint64_t mib, seconds, busy;
    const char *dir, *view;
};

static int
simload_fail(const char *what, const char *cause)
{
    fprintf(stderr, "bulkhead-simload: %s: %s\n", what, cause);
    return 1;
}

/* Inside a job the device nodes decide, as they do for the library. */
static bool
simload_find_memory(const struct simload_options *options, char path[SIM_PATH_MAX])
{
    struct sim_view view;

    if (options->view != NULL)
        return sim_path(path, "%s/view/%s/memory", options->dir, options->view);
    if (!sim_access_read(options->dir, &view) || !sim_access_allowed(&view)) {
        errno = ENODEV;
        return false;
    }
    return sim_path(path, "%s/view/memory", options->dir);
}

/* The folder of the memory's bytes beside the view; false: this job was given none. */
static bool
simload_find_folder(const struct simload_options *options, char folder[SIM_PATH_MAX])
{
    return options->view != NULL ? sim_path(folder, "%s/vram/%s", options->dir, options->view)
                                 : sim_path(folder, "%s/vram", options->dir);
}

/* What the view says of its GPU. */
static bool
simload_read_view(const char *memory_path, struct sim_view *ret_view)
{
    char path[SIM_PATH_MAX];
    int length = (int)(strrchr(memory_path, '/') - memory_path);
    FILE *file = sim_path(path, "%.*s/view", length, memory_path) ? fopen(path, "re") : NULL;
    bool got = file != NULL && fread(ret_view, sizeof(*ret_view), 1, file) == 1;

    if (file != NULL)
        fclose(file);
    return got && ret_view->magic == SIM_VIEW_MAGIC && ret_view->layout == SIM_LAYOUT;
}

/* Take pages, as libcuda.so.1 does, and show it by a page of the memory file.  They are held as
 * long as what is returned is open; NULL: the bytes cannot be opened. */
static struct sim_vram *
simload_take_pages(const struct simload_options *options, const char *path, int fd, int *ret_status)
{
    struct sim_extents pages;
    struct sim_vram *vram;
    struct sim_view view;
    char folder[SIM_PATH_MAX];
    struct stat st;
    void *map;

    if (!simload_find_folder(options, folder) || !simload_read_view(path, &view) || fstat(fd, &st) != 0)
        return NULL;
    vram = sim_vram_open(folder, &view.gpu, (uint64_t)st.st_size);
    if (vram == NULL || !sim_ledger_join(vram)) {
        sim_vram_close(vram);
        return NULL;
    }
    map =
        mmap(NULL, SIM_BLOCK_BYTES, PROT_READ, MAP_SHARED, fd, (off_t)sim_ledger_own(vram) * SIM_BLOCK_BYTES);
    *ret_status = 0;
    if (map == MAP_FAILED || !sim_ledger_take(vram, (uint32_t)((options->mib + 1) / 2), 0, &pages))
        *ret_status = simload_fail("out of device memory", strerror(errno));
    return vram;
}

/* The mapping is the context.  Its pages are never touched, so it costs no
 * memory of the machine. */
static int
simload_map_bytes(const char *path, int fd, uint64_t bytes)
{
    static struct sim_context others[CONTEXTS_MAX];
    struct stat st;
    void *map = MAP_FAILED;

    if (fstat(fd, &st) == 0 && sim_contexts_used(path, others, CONTEXTS_MAX) + bytes <= (uint64_t)st.st_size)
        map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    else
        errno = ENOMEM;
    return map == MAP_FAILED ? simload_fail("out of device memory", strerror(errno)) : 0;
}

static int
simload_open_context(const struct simload_options *options, const char *path, struct sim_vram **ret_vram)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), status = 0;

    if (fd < 0)
        return simload_fail(path, strerror(errno));
    *ret_vram = simload_take_pages(options, path, fd, &status);
    if (*ret_vram == NULL)
        status = simload_map_bytes(path, fd, options->mib << 20);
    close(fd);
    return status;
}

static uint64_t
simload_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* In every 100 ms, work for `busy` ms and sleep the rest. */
static void
simload_work(const struct simload_options *options)
{
    uint64_t end = simload_now_ms() + options->seconds * 1000;
    struct timespec rest = { 0, (long)(100 - options->busy) * 1000000 };

    while (simload_now_ms() < end) {
        uint64_t until = simload_now_ms() + options->busy;

        while (simload_now_ms() < until) {
        }
        nanosleep(&rest, NULL);
    }
}

static bool
simload_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number)
{
    char *end = NULL;

    if (text == NULL || *text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *ret_number >= least && *ret_number <= most;
}

static bool
simload_parse_option(int choice, struct simload_options *options)
{
    switch (choice) {
    case 'm':
        return simload_parse_number(optarg, 1, 1u << 24, &options->mib);
    case 'n':
        return simload_parse_number(optarg, 0, 1u << 24, &options->seconds);
    case 'b':
        return simload_parse_number(optarg, 0, 99, &options->busy);
    case 's':
        options->dir = optarg;
        return true;
    case 'w':
        options->view = optarg;
        return true;
    default:
        return false;
    }
}

int
main(int argc, char **argv)
{
    static const struct option long_options[] = {
        { "mib", required_argument, NULL, 'm' },  { "seconds", required_argument, NULL, 'n' },
        { "busy", required_argument, NULL, 'b' }, { "state", required_argument, NULL, 's' },
        { "view", required_argument, NULL, 'w' }, { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },    { NULL, 0, NULL, 0 }
    };
    const char *env = getenv("BULKHEAD_SIM_STATE");
    struct simload_options options = { .seconds = UINT64_MAX, .busy = 20, .dir = "/run/bulkhead-sim" };
    struct sim_vram *vram = NULL;
    char path[SIM_PATH_MAX];
    int choice, status;

    if (env != NULL && *env != '\0')
        options.dir = env;
    while ((choice = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (choice == 'h')
            return fputs(usage_text, stdout) < 0;
        if (choice == 'v')
            return printf("bulkhead-simload %s\n", BH_VERSION) < 0;
        if (!simload_parse_option(choice, &options))
            return fputs(usage_text, stderr), EXIT_USAGE;
    }
    if (options.mib == 0 || options.seconds == UINT64_MAX || optind != argc)
        return fputs(usage_text, stderr), EXIT_USAGE;
    if (!simload_find_memory(&options, path))
        return simload_fail("no simulated device", strerror(errno));
    status = simload_open_context(&options, path, &vram);
    if (status == 0) {
        printf("bulkhead-simload: pid %d holds %llu MiB of %s for %llu s\n", (int)getpid(),
               (unsigned long long)options.mib, path, (unsigned long long)options.seconds);
        fflush(stdout);
        simload_work(&options);
    }
    sim_vram_close(vram);
    return status;
}
