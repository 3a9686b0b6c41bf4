#ifndef BH_RUNTIME_OCI_H
#define BH_RUNTIME_OCI_H

#include <stdint.h>

#include "base/buf.h"
#include "ports/runtime.h"
#include "runtime/sandbox_files.h"

/* The OCI document (config.json) of a sandbox. */

/* A job's user inside its user namespace: not root, and not the overflow id. */
enum { BH_OCI_JOB_UID = 1000, BH_OCI_JOB_GID = 1000, BH_OCI_ID_RANGE = 65536 };

/* What depends on this machine and not on the job. */
struct bh_oci_host {
    const char *seccomp_oci, *seccomp_bpf; /* from runtime/seccomp.h */
    uint64_t files_max;                    /* RLIMIT_NOFILE: hard limits may not be raised everywhere */
    uint32_t oom_score;                    /* never below the node's own */
    uint64_t core_max;                     /* RLIMIT_CORE: 0 or 1, no core files either way */
    uint64_t locked_max; /* RLIMIT_MEMLOCK: a unit may give the node itself more than a job may have */
    const struct bh_masked_list *masked;
};

/* Append the document.  /dev and what is masked are shown from the bundle (runtime/sandbox_files.h).
 * Limits of CPU, memory and processes are not in it: the sandbox's control groups hold them
 * (runtime/cgroup.h).  Check out->overflow. */
void bh_oci_put(struct bh_buf *out, const struct bh_sandbox *sandbox, const struct bh_oci_host *host);

#endif
