#ifndef BH_CHECKPOINT_REPORT_H
#define BH_CHECKPOINT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fields.h"

/* What bulkhead-node and bulkhead-checkpoint say to each other.  Both are of one build.
 *
 * The node's request is one JSON document on standard input.  The answer stands on standard
 * output: BH_CHECKPOINT_PREFIX, one line of JSON, and a newline; libraries may print before it. */

#define BH_CHECKPOINT_PREFIX "bulkhead-checkpoint: "

enum { BH_CHECKPOINT_PIDS_MAX = 64, BH_CHECKPOINT_DEVICES_MAX = 64, BH_CHECKPOINT_MOUNTS_MAX = 16 };

enum bh_checkpoint_action {
    BH_CHECKPOINT_PROBE,   /* are the calls there? */
    BH_CHECKPOINT_SAVE,    /* put the processes' GPU memory aside: all of them, or none */
    BH_CHECKPOINT_RESTORE, /* give it back, whatever was done to each */
    BH_CHECKPOINT_ACTIONS
};

/* By its number on this machine. */
struct bh_checkpoint_pid {
    uint32_t pid;
};

struct bh_checkpoint_device {
    char path[64]; /* "/dev/nvidia0" */
    uint32_t major, minor;
};

struct bh_checkpoint_mount {
    const char *source, *target;
    bool write;
};

struct bh_checkpoint_request {
    uint32_t action;     /* enum bh_checkpoint_action */
    uint32_t id_base;    /* first of the job's 65536 user ids; 0: there is no job */
    uint32_t lock_ms;    /* for each process to come to rest */
    const char *library; /* folder of libcuda.so.1; NULL: where libraries are */
    struct bh_checkpoint_pid pids[BH_CHECKPOINT_PIDS_MAX];
    uint32_t pid_count;
    struct bh_list devices; /* struct bh_checkpoint_device: all that the helper has */
    struct bh_list mounts;  /* struct bh_checkpoint_mount: what the driver needs besides */
};

enum bh_checkpoint_end {
    BH_CHECKPOINT_DONE,
    BH_CHECKPOINT_REFUSED,  /* the driver said no; every process is as it was */
    BH_CHECKPOINT_FAILED,   /* it said no, and a process is not as it was */
    BH_CHECKPOINT_NO_CALLS, /* there is no libcuda.so.1, or it has no such calls */
    BH_CHECKPOINT_ENDS
};

struct bh_checkpoint_report {
    uint32_t end;       /* enum bh_checkpoint_end */
    uint32_t pid;       /* of the process that it failed at, or 0 */
    uint32_t processes; /* put aside, or given back */
    char why[200];
};

extern const struct bh_fields bh_checkpoint_request_fields;
extern const struct bh_fields bh_checkpoint_report_fields;
extern const struct bh_fields bh_checkpoint_pid_fields;

#endif
