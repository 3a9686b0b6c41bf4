#ifndef BH_API_JOBS_JOBS_H
#define BH_API_JOBS_JOBS_H

#include "api/request/call.h"

/* /v1/jobs: each is a bh_resource. */
bh_rc bh_jobs_submit(struct bh_call *call, struct bh_err *err);
bh_rc bh_jobs_list(struct bh_call *call, struct bh_err *err);
bh_rc bh_jobs_get(struct bh_call *call, struct bh_err *err);
bh_rc bh_jobs_why(struct bh_call *call, struct bh_err *err);
bh_rc bh_jobs_command(struct bh_call *call, struct bh_err *err); /* cancel, release */

/* The job in the path, if the caller may see it, with its texts in the call's arena.
 *   BH_INVALID    no number
 *   BH_NOT_FOUND  no such job, or one of a tenant that the caller may not view */
BH_MUST_USE bh_rc bh_jobs_find(struct bh_call *call, struct bh_job_row *ret_row, struct bh_err *err);

/* The same, if the caller may do the operation's verb on the job's tenant, too; else BH_DENIED. */
BH_MUST_USE bh_rc bh_jobs_find_permitted(struct bh_call *call, struct bh_job_row *ret_row,
                                         struct bh_err *err);

/* Check what a submission says as far as the API can: its texts, and that tenant, SKU and
 * mounts exist for the caller.  Whether it may submit there is not asked.
 *   BH_INVALID, BH_RANGE  the specification
 *   BH_NOT_FOUND          no such tenant or SKU
 *   BH_DENIED             a mount that the tenant may not have */
BH_MUST_USE bh_rc bh_jobs_check_spec(struct bh_call *call, struct bh_job_spec *spec,
                                     struct bh_job_numbers *ret_numbers, bh_tenant_id *ret_tenant,
                                     struct bh_err *err);

/* Have the owner submit, try, or only admit the job of `command`, which bh_jobs_check_spec passed: the one
 * way by which submit, its dry run and what-if come to a refusal, so that they cannot differ.
 *   BH_RANGE  no node gives what it asks for (bh_runnable_check), and the owner has no better reason
 * and what the owner refuses for. */
BH_MUST_USE bh_rc bh_jobs_command_submission(struct bh_call *call, struct bh_command *command,
                                             struct bh_answer *ret_answer, struct bh_err *err);

/* Whether a job in that state has ended. */
bool bh_jobs_ended(const char *state);

/* The job as it is in the store now, texts in `arena`; false: none, or no store. */
bool bh_jobs_read(const struct bh_call *call, uint64_t job, struct bh_arena *arena,
                  struct bh_job_row *ret_row);

#endif
