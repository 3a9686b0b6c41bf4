#ifndef BH_NODE_GPU_CPU_WAIT_H
#define BH_NODE_GPU_CPU_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/time.h"

/* Whether a process that did not answer in time had CPU time to do so.  One that did not says
 * nothing about what it was asked; one that had it, and sleeps or sits in the kernel, hangs. */
struct bh_cpu_wait {
    bool known;    /* the kernel says (CONFIG_SCHED_INFO), and the process is there */
    bool runnable; /* its first thread runs or waits for a CPU just now */
    bh_ns ran;     /* all its threads, since they began */
    bh_ns waited;  /* runnable, for a CPU */
};

struct bh_cpu_wait bh_cpu_wait_read(pid_t pid);

/* Whether between the two, `span` apart, it wanted for CPU time: it waited for a quarter of the
 * span, or is runnable and ran for less than half of it.  False where that is not known. */
bool bh_cpu_wait_starved(const struct bh_cpu_wait *before, const struct bh_cpu_wait *after, bh_ns span);

#endif
