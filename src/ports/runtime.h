#ifndef BH_PORTS_RUNTIME_H
#define BH_PORTS_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/fields.h"

/* How a sandbox is described to whatever runs it: complete, resolved, checked. */

struct bh_sandbox_device {
    char path[64]; /* inside: "/dev/nvidia0" */
    uint32_t major, minor;
    bool write;
};

struct bh_sandbox_mount {
    const char *source, *target;
    bool write;
};

struct bh_sandbox {
    const char *id;     /* container and cgroup name: "bh-12" */
    const char *bundle; /* folder that config.json is written to */
    const char *rootfs; /* absolute path of the root, mounted read-only */
    const char *cgroup; /* path below each hierarchy: "/bulkhead/bh-12" */
    const char *cwd, *hostname;
    struct bh_texts args, env;
    const struct bh_sandbox_mount *mounts;
    uint32_t mount_count;
    const struct bh_sandbox_device *devices;
    uint32_t device_count;
    uid_t uid_base;      /* first host id of the job's own range of 65536 */
    uint32_t uid, gid;   /* the user within; 0: 1000 */
    const char *network; /* file of the network namespace to be in; NULL: a new one */
    const char *sys;     /* folder shown as /sys, with `network`; NULL: a new one */
    uint32_t cpu_milli, pids;
    uint64_t memory_bytes, tmp_bytes;
    uint64_t io_bytes; /* a second, read and written each, of that disk; 0: no limit */
    uint32_t io_major, io_minor;
};

struct bh_sandbox_usage {
    uint64_t cpu_ns, bytes, peak_bytes;
    uint64_t file_bytes; /* of bytes: cached files, which the kernel can drop */
    bool oom;            /* the kernel's OOM killer struck inside */
};

/* Failures: BH_UNAVAILABLE (runtime missing), BH_IO, BH_DENIED. */
struct bh_runtime_ops {
    const char *name; /* "crun", "fake" */

    /* Write what the runtime needs to run this sandbox; nothing runs yet. */
    bh_rc (*prepare)(void *self, const struct bh_sandbox *sandbox, struct bh_err *err);
    /* The command that runs a prepared sandbox in the foreground, passes on its exit
     * status and leaves nothing behind: for the keeper to execute. */
    bh_rc (*command)(void *self, const struct bh_sandbox *sandbox, const char *ret_argv[16],
                     struct bh_err *err);
    /* Host ids of every process inside; 0 processes when it is gone. */
    bh_rc (*processes)(void *self, const char *id, pid_t *ret_pids, uint32_t max, uint32_t *ret_count,
                       struct bh_err *err);
    /* Whether a process of that host id is inside, however many there are; one that has
     * gone is not. */
    bh_rc (*has)(void *self, const char *id, pid_t pid, bool *ret_inside, struct bh_err *err);
    bh_rc (*freeze)(void *self, const char *id, bool frozen, struct bh_err *err);
    /* Send a signal to every process inside.  The command that runs the sandbox is continued, if it was
     * stopped; SIGKILL to an empty sandbox kills it. */
    bh_rc (*signal)(void *self, const char *id, int signal, struct bh_err *err);
    /* Kill everything inside and remove every trace (cgroups, runtime state).
     * BH_OK when there was nothing. */
    bh_rc (*destroy)(void *self, const char *id, struct bh_err *err);
    /* CPU time, memory now and peak, whether the kernel's OOM killer struck. */
    bh_rc (*usage)(void *self, const char *id, struct bh_sandbox_usage *ret_usage, struct bh_err *err);
    void (*close)(void *self);
};

struct bh_runtime {
    const struct bh_runtime_ops *ops;
    void *self;
};

#endif
