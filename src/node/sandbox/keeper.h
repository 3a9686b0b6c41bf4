#ifndef BH_NODE_SANDBOX_KEEPER_H
#define BH_NODE_SANDBOX_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"
#include "node/common/tenant_logs.h"
#include "ports/runtime.h"

/* The node's side of bulkhead-keeper: starting one, and finding it again. */

struct bh_keeper_request {
    const char *program; /* folder of bulkhead-keeper */
    const char *folder;  /* of the job, durable */
    const char *cgroup_mount;
    const struct bh_sandbox *sandbox;
    uint64_t lease, log_cap_bytes;
    struct bh_tenant_logs logs;
    uint32_t stdio;                     /* enum bh_stdio */
    int log_fd, runtime_fd, barrier_fd; /* runtime_fd: of the program that is command[0] */
    const char *command[16];            /* the runtime's, ends with NULL */
};

/* Start a keeper for the job; `ret_pidfd` becomes readable when it ends.  The folder's
 * lock is taken before and inherited, so that at no moment a running keeper is without.
 * BH_CONFLICT: another one holds it. */
BH_MUST_USE bh_rc bh_keeper_start(const struct bh_keeper_request *request, int *ret_pidfd,
                                  struct bh_err *err);

/* Whether a keeper holds the folder's lock, and its pid (0 when it has not written it). */
bool bh_keeper_alive(const char *folder, pid_t *ret_pid);

/* A descriptor that becomes readable when the keeper `pid` ends, or -1: try again later. */
int bh_keeper_watch(const char *folder, pid_t pid);

/* When the folder's keeper started its job, or 0. */
bh_ns bh_keeper_started(const char *folder);

/* Before a job whose keeper is not found is ended: what it has not written by now, it does not write any
 * more.  Where the node's folder was put back from a copy, the keeper lives, but holds the lock of a file
 * that is gone: it would record that SIGKILL as the job's own end. */
void bh_keeper_disown(const char *folder);

#endif
