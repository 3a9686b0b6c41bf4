#ifndef BH_NODE_GPU_GPU_INTERNAL_H
#define BH_NODE_GPU_GPU_INTERNAL_H

#include <sys/types.h>

#include "node/gpu/cpu_wait.h"
#include "node/gpu/gpu_client.h"
#include "wire/frame_io.h"

/* The struct of a client, for the files that serve it. */

enum { BH_GPU_RESPONSE_MAX = 1 << 16 }; /* bytes of an answer without long lists, decoded */

struct bh_gpu_child {
    pid_t pid; /* 0: none runs */
    struct bh_link *link;
};

/* Whose events a child waits for. */
struct bh_gpu_watcher {
    char gpu[48];
    uint32_t minor;
    struct bh_gpu_child child;
    bh_ns from; /* not before: when the child may start again */
};

struct bh_gpu_client {
    char *program, *library, *proc_root, **env;
    bh_ns read_deadline, change_deadline;
    struct bh_gpu_child answering;
    struct bh_gpu_child surveying;
    bool asked; /* the surveying child has a question */
    char asked_gpu[48];
    uint64_t asked_call;
    bh_ns asked_until;
    struct bh_cpu_wait asked_wait;
    struct bh_gpu_watcher watchers[BH_GPU_WATCHED_MAX];
    uint32_t watcher_count;
    pid_t abandoned[BH_GPU_ABANDONED_MAX + 2 + BH_GPU_WATCHED_MAX];
    uint32_t abandoned_count;
    uint64_t call;                      /* number of the last request */
    uint32_t hidden[BH_GPU_HIDDEN_MAX]; /* minors of the GPUs that the children do not see */
    uint32_t hidden_count;
};

#endif
