#ifndef BH_DAEMON_CHANGES_STREAM_RECORD_H
#define BH_DAEMON_CHANGES_STREAM_RECORD_H

#include "daemon/state/core.h"

/* Interactive streams in the journal: that one was let in (before anything of it happens) and
 * how it ended.  What begins is noted in a document beside the record, so that a start finds
 * those whose end has no record.  Owner thread. */

/* JOB_EXEC, JOB_ATTACH, JOB_FORWARD: one's own job with job.exec, any with job.exec.any.
 * The command is sealed under the tenant's key of the month; its digest is in the record.
 *   BH_NOT_FOUND    no such job, or member
 *   BH_CONFLICT     it does not run; a forward to a batch job
 *   BH_UNAVAILABLE  its node is not connected */
BH_MUST_USE bh_rc bh_stream_record(struct bh_core *core, const struct bh_command *command,
                                   struct bh_arena *arena, struct bh_answer *ret_answer, struct bh_err *err);

/* At the start: the ends of those that the last run of the daemon left, which ended with it. */
BH_MUST_USE bh_rc bh_stream_record_lost(struct bh_core *core, struct bh_err *err);

#endif
