#ifndef BH_DAEMON_BATCH_ACCESS_H
#define BH_DAEMON_BATCH_ACCESS_H

#include "base/arena.h"
#include "engine/read/view.h"
#include "model/spec.h"
#include "ports/store.h"

struct bh_core;
struct bh_command;
struct bh_entry;
struct bh_event;

/* Datasets at the owner: jobs are held against their grants (policy/datasets.h) when they are
 * submitted, at every start and, while they run, when grants end or the site file changes.  Each
 * of these is a record about the dataset, in its tenant's business: dataset.read or dataset.write,
 * with the number of the START where there is one and the digest of the job's specification.
 *
 * A site that never had a dataset pays nothing for it. */
struct bh_access {
    struct bh_arena *scratch;       /* of one specification, and then of the next */
    struct bh_batch_spec *fresh;    /* submitted in the open batch, in the core's arena */
    struct bh_refused_job *refused; /* to be ended at the next commit, in the core's arena */
    uint64_t check_ns;              /* when running jobs are next looked at; 0: now */
    bool site_changed;              /* the open batch puts another site file in force */
    uint64_t *reported;             /* running jobs whose lost access is on record */
    uint32_t reported_count, reported_capacity;
};

void bh_access_open(struct bh_core *core);
void bh_access_close(struct bh_core *core);

/* A submission: BH_OK, or as bh_datasets_explain has it, recorded as a denial of the dataset and of
 * job.submit, with the caller and the tenant of `submission`. */
BH_MUST_USE bh_rc bh_access_submit(struct bh_core *core, const struct bh_command *command,
                                   const struct bh_entry *submission, struct bh_err *err);

/* The specification of a job that this batch submits, before the engine has it: readers of the
 * store do not see it yet.  It lives until the commit. */
void bh_access_expect(struct bh_core *core, const uint8_t digest[32], const struct bh_job_spec *spec);

/* A START that the engine orders, before it is released: each mount is recorded.
 * `ret_allowed` false: the denial is recorded, the order must not go out, and the job ends at the
 * next commit with the cause BH_END_DATASET. */
BH_MUST_USE bh_rc bh_access_start(struct bh_core *core, const struct bh_effect *effect, bool *ret_allowed,
                                  struct bh_err *err);

/* Send the same start to a node again, some time later.
 *   BH_DENIED       it may no longer have its datasets; the job ends at the next commit
 *   BH_UNAVAILABLE  the same, and too many jobs end so already: the start has failed */
BH_MUST_USE bh_rc bh_access_retry(struct bh_core *core, const struct bh_effect *effect,
                                  const struct bh_job_view *view, const struct bh_job_spec *spec,
                                  struct bh_err *err);

/* Check running jobs if it is time to: a job that has lost access is recorded once, and stopped where the
 * dataset's on_expiry says so. */
BH_MUST_USE bh_rc bh_access_check(struct bh_core *core, struct bh_err *err);

/* How many running jobs mount the dataset of that name. */
uint32_t bh_access_readers(struct bh_core *core, const char *dataset);

/* Part of every commit, before it: the next job that was refused, how it ends and what is recorded of
 * that; false: there is none left. */
bool bh_access_next_refused(struct bh_core *core, struct bh_entry *ret_entry, struct bh_event *ret_event);

/* Part of every commit, after it: what was of the batch is forgotten.  And of every abort: so are
 * records that it took back. */
void bh_access_committed(struct bh_core *core);
void bh_access_aborted(struct bh_core *core);

#endif
