#ifndef BH_API_JOBS_LOG_FILE_H
#define BH_API_JOBS_LOG_FILE_H

#include "api/request/call.h"

/* The file that has the output of the job in the path, of the member that the query names: its path in the
 * call's arena.  Results of bh_jobs_find_permitted and bh_members_check; BH_FULL. */
BH_MUST_USE bh_rc bh_log_file_find(struct bh_call *call, struct bh_job_row *ret_row, const char **ret_path,
                                   struct bh_err *err);

/* Whether the job ran, has ended, and its output was removed: then there is this to say in its place, as an
 * empty answer would mean that there was none. */
bool bh_log_file_is_gone(const struct bh_job_row *row, const char *path);
extern const char bh_log_file_gone_words[];

#endif
