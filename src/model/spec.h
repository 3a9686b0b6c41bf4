#ifndef BH_MODEL_SPEC_H
#define BH_MODEL_SPEC_H

#include "base/err.h"
#include "base/fields.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/network.h"

/* A job as its submitter writes it: the body of POST /v1/jobs and of job files.
 * Texts are as written; bh_spec_check makes numbers of them. */

/* A folder, or a dataset by its name. */
struct bh_mount_spec {
    const char *dataset;         /* NULL: a folder */
    const char *source, *target; /* absolute paths; bh_mount_target where target is absent */
    bool write;
};

struct bh_job_spec {
    struct bh_texts args;          /* args[0] is the program; none: an oci: image's own */
    struct bh_texts env;           /* "NAME=value" */
    struct bh_texts labels;        /* "NAME=value", each name once; policy may ask for some */
    struct bh_list mounts;         /* struct bh_mount_spec; policy and grants decide */
    const char *name;              /* free text for users, at most 120 bytes */
    const char *tenant;            /* path, "acme/vision"; NULL: the only one there is */
    const char *sku;               /* required */
    const char *image;             /* model/image.h; NULL: "host" */
    const char *cwd;               /* working directory of the submitter; NULL: /tmp */
    const char *bandwidth;         /* "100Mbit" in each direction; with a network only */
    const char *cpu;               /* "2", "0.5": cores; NULL takes the SKU's share */
    const char *memory;            /* "8Gi"; NULL takes the SKU's share */
    const char *scratch;           /* "20Gi"; NULL: none */
    const char *time_limit;        /* "2h", "1-00:00:00" */
    const char *deadline;          /* "+2h" after it is submitted, or "2026-11-20T09:27:00Z" */
    const char *checkpoint_signal; /* "USR1"; with on_preempt: checkpoint only */
    const char *grace;             /* "30s" between SIGTERM and SIGKILL; default 10s */
    uint32_t count;                /* partitions of each member; 0 is 1 */
    uint32_t gang;                 /* members, started and ended together; 0 is 1 */
    uint32_t pids;                 /* 0: the node's default */
    enum bh_job_kind kind;
    enum bh_priority priority; /* 0: normal */
    enum bh_contract on_preempt;
    enum bh_network_mode network;
    bool hold;
    bool input; /* its standard input comes from attached clients */
    bool tty;   /* it runs in a terminal, and that is its input and output */
};

/* The least that starts: 1 ms of CPU time in each period of 100, the least quota that the kernel
 * takes; and the memory of process 1, a bash and a program beside it with what the kernel counts
 * for them, which is 1.5 to 2 MiB, with room (what Docker takes at least is 6 MB). */
enum { BH_JOB_CPU_MILLI_MIN = 10, BH_JOB_CPU_MILLI_MAX = 1000000, BH_JOB_MEMORY_MIN_BYTES = 8 << 20 };

/* More than any machine has; of as many partitions as a job may have it is still a number of MiB that
 * the engine holds. */
#define BH_JOB_MEMORY_MAX_BYTES (UINT64_C(128) << 40)

/* Cores and main memory of a job, as a job or a SKU says them; the messages begin with "cpu: " and
 * "memory: ".  BH_RANGE: no job could start with so little, or have so much. */
BH_MUST_USE bh_rc bh_spec_parse_cpu(const char *text, uint32_t *ret_milli, struct bh_err *err);
BH_MUST_USE bh_rc bh_spec_parse_memory(const char *text, uint64_t *ret_bytes, struct bh_err *err);

extern const struct bh_fields bh_job_spec_fields;

/* The numbers in a specification. */
struct bh_job_numbers {
    uint64_t time_limit_ns, memory_bytes, scratch_bytes; /* 0: not said */
    uint64_t grace_ns;                                   /* 10 s when not said; 0 kills at once */
    uint64_t bandwidth_bps;                              /* 0: not said */
    uint64_t deadline_ns;                                /* 0: none */
    bool deadline_after;                                 /* it counts from the submission */
    uint32_t checkpoint_signal;                          /* 0: not said */
    uint32_t cpu_milli, count, gang, pids;               /* cores, memory and pids of each member */
};

/* Check all that can be checked without knowing the site, and read the numbers.
 *   BH_INVALID  no command, an env entry or a label without '=', a relative path, ".." in a
 *               path, a mount of neither or of both, an image that is none, an amount that is
 *               malformed, a bandwidth without a network
 *   BH_RANGE    a count over BH_JOB_COUNT_MAX, a gang over BH_JOB_GANG_MAX or over
 *               BH_JOB_PARTITIONS_MAX partitions, zero memory, over a year's limit */
BH_MUST_USE bh_rc bh_spec_check(const struct bh_job_spec *spec, struct bh_job_numbers *ret_numbers,
                                struct bh_err *err);

/* The numbers of one that was checked when it was taken: rules for what is taken may have become
 * stricter since.  Fails as bh_spec_check does for them. */
BH_MUST_USE bh_rc bh_spec_numbers(const struct bh_job_spec *spec, struct bh_job_numbers *ret_numbers,
                                  struct bh_err *err);

/* The folder of the node that its working directory is, or NULL: none is named, or one that every
 * job has for itself (bh_cwd_is_own). */
const char *bh_spec_cwd_folder(const struct bh_job_spec *spec);

/* "/tmp" and "/". */
bool bh_cwd_is_own(const char *cwd);

/* Where the job finds it: the target, else the source's own place, else BH_DATASETS_FOLDER/name,
 * which is written to `memory`. */
#define BH_DATASETS_FOLDER "/datasets"
enum { BH_MOUNT_TARGET_MAX = sizeof BH_DATASETS_FOLDER + 1 + BH_NAME_MAX };
const char *bh_mount_target(const struct bh_mount_spec *mount, char memory[BH_MOUNT_TARGET_MAX]);

#endif
