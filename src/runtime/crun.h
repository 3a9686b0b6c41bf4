#ifndef BH_RUNTIME_CRUN_H
#define BH_RUNTIME_CRUN_H

#include "ports/runtime.h"
#include "runtime/cgroup.h"

/* The runtime port on crun.
 *
 * crun builds the namespaces, mounts and identity from Bulkhead's config.json; Bulkhead makes the control
 * groups (runtime/cgroup.h) and starts crun inside them.  All texts are copied. */

struct bh_crun_options {
    const char *program;       /* "crun" */
    const char *state;         /* folder for crun's own state */
    const char *cgroup_mount;  /* "/sys/fs/cgroup" */
    bool strict;               /* the strict filter (runtime/seccomp.h) */
    const char *cgroup_parent; /* "/bulkhead": sandbox "x" has the groups "/bulkhead/x" */
};

/* BH_UNAVAILABLE: no crun, or control groups are missing. */
BH_MUST_USE bh_rc bh_crun_open(const struct bh_crun_options *options, struct bh_runtime *ret_runtime,
                               struct bh_err *err);

/* "crun 1.8.1" */
BH_MUST_USE bh_rc bh_crun_version(const char *program, char *ret_text, size_t size, struct bh_err *err);

#endif
