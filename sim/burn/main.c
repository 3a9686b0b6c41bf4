/* bulkhead-burn: load for tests, benches and demonstrations, on a real GPU or the simulated
 * one. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/burn/burn.h"
#include "sim/burn/kernel.h"
#include "sim/burn/storm.h"
#include "sim/burn/work.h"

#define THREADS_MAX 257
#define MIB ((size_t)1 << 20)
#define NAME_MAX_BYTES 128

/* ---- the report ---- */

/* Counters at one moment. */
struct count {
    uint64_t at_ns, kernels, launches, allocations, refused;
};

static struct count
burn_count(struct burn *burn)
{
    return (struct count){ bh_burn_now(), burn->kernels, burn->launches, burn->allocations, burn->refused };
}

/* A line is one write, so lines of several processes do not mix. */
static void
burn_report(const struct burn *burn, const char *event, const struct count *from, const struct count *to)
{
    uint64_t kernels = to->kernels - from->kernels;

    printf("{\"event\":\"%s\",\"pid\":%d,\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"kernels\":%" PRIu64
           ",\"work_ns\":%" PRIu64 ",\"launches\":%" PRIu64 ",\"allocations\":%" PRIu64
           ",\"refused\":%" PRIu64 "}\n",
           event, (int)getpid(), from->at_ns, to->at_ns, kernels, kernels * burn->plan->kernel_ns,
           to->launches - from->launches, to->allocations - from->allocations, to->refused - from->refused);
    fflush(stdout);
}

/* A device's name has no character that JSON wants escaped. */
static void
burn_report_start(const struct burn *burn, const char *device)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    printf("{\"event\":\"start\",\"pid\":%d,\"time_ns\":\"%" PRIu64 "\",\"device\":\"%s\","
           "\"kernel_ns\":%" PRIu64 ",\"loops\":%" PRIu64 ",\"blocks\":%u}\n",
           (int)getpid(), (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, device,
           burn->plan->kernel_ns, burn->loops, burn->blocks);
    fflush(stdout);
}

/* ---- one process ---- */

static void
burn_open_device(struct burn *burn)
{
    char name[NAME_MAX_BYTES] = "";
    const char *cause = "";
    uint64_t loops_per_ms;
    CUdevice device;
    CUdeviceptr held;
    int sms = 1;

    if (!bh_burn_driver_open(burn->plan->library, &burn->driver, &cause)) {
        fprintf(stderr, "bulkhead-burn: %s: %s\n", burn->plan->library, cause);
        exit(BURN_EXIT_UNAVAILABLE);
    }
    if (burn->driver.cuInit(0) != CUDA_SUCCESS
        || burn->driver.cuDeviceGet(&device, (int)burn->plan->device) != CUDA_SUCCESS) {
        fprintf(stderr, "bulkhead-burn: no device %" PRIu64 "\n", burn->plan->device);
        exit(BURN_EXIT_UNAVAILABLE);
    }
    BURN_MUST(burn, cuDeviceGetName, name, NAME_MAX_BYTES, device);
    BURN_MUST(burn, cuDeviceGetAttribute, &sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    BURN_MUST(burn, cuDevicePrimaryCtxRetain, &burn->context, device);
    BURN_MUST(burn, cuCtxSetCurrent, burn->context);
    BURN_MUST(burn, cuModuleLoadData, &burn->module, bh_burn_ptx);
    BURN_MUST(burn, cuModuleGetFunction, &burn->kernel, burn->module, "burn");
    if (burn->plan->hold_mib > 0)
        BURN_MUST(burn, cuMemAlloc, &held, burn->plan->hold_mib * MIB);
    burn->blocks = burn->plan->blocks > 0 ? (unsigned)burn->plan->blocks : (unsigned)sms;
    if (burn->plan->kernel_ns > 0) {
        loops_per_ms = burn->plan->loops_per_ms;
        if (loops_per_ms == 0)
            loops_per_ms = bh_burn_measure(burn);
        burn->loops = (uint64_t)((double)burn->plan->kernel_ns / 1e6 * (double)loops_per_ms);
        burn->loops = burn->loops == 0 ? 1 : burn->loops;
    }
    burn_report_start(burn, name);
}

static size_t
burn_start_threads(struct burn *burn, pthread_t threads[THREADS_MAX])
{
    size_t count = 0;

    for (uint64_t i = 0; burn->plan->kernel_ns > 0 && i < burn->plan->threads; i++)
        count += pthread_create(&threads[count], NULL, bh_burn_work, burn) == 0;
    if (burn->plan->storm != BURN_STORM_NONE)
        count += pthread_create(&threads[count], NULL, bh_burn_storm, burn) == 0;
    return count;
}

static int
burn_run(const struct burn_plan *plan)
{
    struct burn burn = { .plan = plan };
    pthread_t threads[THREADS_MAX];
    struct count first, last, next;
    size_t started;

    burn_open_device(&burn);
    first = last = burn_count(&burn);
    burn.end_ns = first.at_ns + plan->time_ns;
    started = burn_start_threads(&burn, threads);
    while (!bh_burn_is_over(&burn)) {
        uint64_t end = last.at_ns + plan->window_ns;

        bh_burn_sleep_until(end < burn.end_ns ? end : burn.end_ns);
        bh_burn_note(&burn);
        next = burn_count(&burn);
        burn_report(&burn, "window", &last, &next);
        last = next;
    }
    burn_report(&burn, "end", &first, &last);
    burn.stop = true;
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    bh_burn_forget(&burn);
    if (!bh_burn_is_interrupted()) { /* else what runs ends with the process */
        BURN_MUST(&burn, cuCtxSynchronize);
        BURN_MUST(&burn, cuModuleUnload, burn.module);
    }
    return 0;
}

/* ---- several ---- */

struct children {
    pid_t *pid;
    uint64_t count;
};

static void
burn_stop_children(const struct children *children)
{
    for (uint64_t i = 0; i < children->count; i++)
        kill(children->pid[i], SIGTERM);
}

/* The worst of their exit statuses; a signal is passed on. */
static int
burn_wait_for_children(const struct children *children)
{
    int worst = 0, status;

    for (uint64_t left = children->count; left > 0;) {
        pid_t pid = wait(&status);

        if (pid < 0 && errno == EINTR) {
            burn_stop_children(children);
            continue;
        }
        if (pid < 0)
            return BURN_EXIT_FAILED;
        left--;
        status = WIFEXITED(status) ? WEXITSTATUS(status) : BURN_EXIT_FAILED;
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int
burn_run_processes(const struct burn_plan *plan)
{
    struct children children = { calloc(plan->processes, sizeof(pid_t)), 0 };
    int worst;

    if (children.pid == NULL)
        return BURN_EXIT_FAILED;
    while (children.count < plan->processes) {
        pid_t pid = fork();

        if (pid == 0)
            exit(burn_run(plan));
        if (pid < 0) {
            perror("bulkhead-burn: fork");
            burn_stop_children(&children);
            break;
        }
        children.pid[children.count++] = pid;
    }
    worst = burn_wait_for_children(&children);
    free(children.pid);
    return children.count < plan->processes ? BURN_EXIT_FAILED : worst;
}

int
main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = bh_burn_interrupt };
    struct burn_plan plan;

    switch (bh_burn_plan_parse(argc, argv, &plan)) {
    case BURN_PARSE_DONE:
        return 0;
    case BURN_PARSE_USAGE:
        return BURN_EXIT_USAGE;
    case BURN_PARSE_RUN:
        break;
    }
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    return plan.processes == 1 ? burn_run(&plan) : burn_run_processes(&plan);
}
