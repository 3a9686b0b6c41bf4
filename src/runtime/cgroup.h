#ifndef BH_RUNTIME_CGROUP_H
#define BH_RUNTIME_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "ports/runtime.h"

/* A sandbox's control groups: limits, devices, processes, freezing, accounting.
 *
 * Bulkhead makes them, not the runtime, so that they are the same on version 1, hybrid and version 2
 * machines, and so that usage can be read after the last process has gone and before they are removed.  The
 * keeper enters them and starts the runtime inside.  A hybrid machine is used as version 1. */

enum { BH_CGROUP_MEMBERS_MAX = 4096, BH_CGROUP_NAME_MAX = 64, BH_CGROUP_NAMES_MAX = 4096 };

struct bh_cgroup_host {
    char mount[200]; /* "/sys/fs/cgroup" */
    bool unified;    /* version 2 */
    bool blkio;      /* version 1 can limit input and output */
};

/* What this machine has.  BH_UNAVAILABLE names the controller that is missing. */
BH_MUST_USE bh_rc bh_cgroup_probe(const char *mount, struct bh_cgroup_host *ret_host, struct bh_err *err);

/* Make the sandbox's groups with its limits and devices; missing parents too.  Groups
 * that exist are set again.  Devices beyond null, zero, full, random, urandom, tty and
 * pts that are not lent cannot be opened (EPERM). */
BH_MUST_USE bh_rc bh_cgroup_make(const struct bh_cgroup_host *host, const struct bh_sandbox *sandbox,
                                 struct bh_err *err);

/* Make the group at `path` in the hierarchy that bh_cgroup_list reads, with missing parents, and tell
 * where it is. */
BH_MUST_USE bh_rc bh_cgroup_make_parent(const struct bh_cgroup_host *host, const char *path, char *ret_folder,
                                        size_t size, struct bh_err *err);

/* The devices that every sandbox may open: null, zero, full, random, urandom, tty, ptmx, pts. */
const struct bh_sandbox_device *bh_cgroup_standard_devices(uint32_t *ret_count);

/* Move the calling process, which has one thread, into the groups at `path`.  On version 1 it is the
 * thread that moves: for a whole process the kernel waits until every processor has passed a
 * quiescent state, which takes 5 to 12 ms. */
BH_MUST_USE bh_rc bh_cgroup_enter(const struct bh_cgroup_host *host, const char *path, struct bh_err *err);

/* Move the calling process, which keeps the groups at `path`, out of the group of the
 * program that started it, into one that keepers share beside them: the manager of that
 * program (systemd) must not find the keeper in its way.  Nothing to do on version 1,
 * where that is a hierarchy of its own that is not used here. */
BH_MUST_USE bh_rc bh_cgroup_step_aside(const struct bh_cgroup_host *host, const char *path,
                                       struct bh_err *err);

struct bh_cgroup_members {
    pid_t pids[BH_CGROUP_MEMBERS_MAX];
    uint32_t count;
};

/* Processes in the groups, the runtime's own among them.  None, and BH_OK, when the
 * groups do not exist. */
BH_MUST_USE bh_rc bh_cgroup_processes(const struct bh_cgroup_host *host, const char *path,
                                      struct bh_cgroup_members *ret_members, struct bh_err *err);

/* Whether the process is in the groups at `path`; one that has gone is not. */
BH_MUST_USE bh_rc bh_cgroup_has(const struct bh_cgroup_host *host, const char *path, pid_t pid,
                                bool *ret_inside, struct bh_err *err);

struct bh_cgroup_call {
    int number;                            /* of the signal */
    bool (*wanted)(void *self, pid_t pid); /* which process gets it; NULL: all */
    void *self;
};

/* Send a signal to every process in the groups that gets it, however many there are; how
 * many those were.  BH_OK without groups. */
BH_MUST_USE bh_rc bh_cgroup_signal(const struct bh_cgroup_host *host, const char *path,
                                   const struct bh_cgroup_call *call, uint32_t *ret_count,
                                   struct bh_err *err);

/* Freeze or thaw; waits until it is so.  BH_TIMEOUT after two seconds (a process sits
 * in the kernel), BH_NOT_FOUND without groups. */
BH_MUST_USE bh_rc bh_cgroup_freeze(const struct bh_cgroup_host *host, const char *path, bool frozen,
                                   struct bh_err *err);
BH_MUST_USE bh_rc bh_cgroup_frozen(const struct bh_cgroup_host *host, const char *path, bool *ret_frozen,
                                   struct bh_err *err);

/* Kill everything inside, wait for it to go, and remove the groups.  BH_OK when there
 * were none; BH_TIMEOUT when a process does not go. */
BH_MUST_USE bh_rc bh_cgroup_destroy(const struct bh_cgroup_host *host, const char *path, struct bh_err *err);

BH_MUST_USE bh_rc bh_cgroup_usage(const struct bh_cgroup_host *host, const char *path,
                                  struct bh_sandbox_usage *ret_usage, struct bh_err *err);

/* Remove the groups at `path`, and the keepers' below, where nothing is left in or below
 * them. */
void bh_cgroup_remove_empty(const struct bh_cgroup_host *host, const char *path);

struct bh_cgroup_names {
    char names[BH_CGROUP_NAMES_MAX][BH_CGROUP_NAME_MAX];
    uint32_t count;
};

/* Names of the groups below `parent` ("/bulkhead"), without order. */
BH_MUST_USE bh_rc bh_cgroup_list(const struct bh_cgroup_host *host, const char *parent,
                                 struct bh_cgroup_names *ret_names, struct bh_err *err);

#endif
