#ifndef BH_API_JOBS_MEMBERS_H
#define BH_API_JOBS_MEMBERS_H

#include "api/request/call.h"

/* The members of a job that has leases, as the engine has them, in the call's arena: struct
 * bh_reply_job_member.  None of a job that has ended or waits. */
BH_MUST_USE bh_rc bh_members_list(struct bh_call *call, uint64_t job, struct bh_list *ret,
                                  struct bh_err *err);

/* Whether a job of `gang` members (0 is 1) has that one; BH_NOT_FOUND. */
BH_MUST_USE bh_rc bh_members_check(uint64_t job, uint32_t gang, uint32_t member, struct bh_err *err);

/* Of what needs a job that runs and met one that ended: BH_CONFLICT, with what is left to do. */
bh_rc bh_members_refuse_ended(uint64_t job, const char *state, struct bh_err *err);

#endif
