#ifndef BH_CHECKPOINT_SANDBOX_H
#define BH_CHECKPOINT_SANDBOX_H

#include "base/err.h"
#include "checkpoint/report.h"

/* The sandbox of bulkhead-checkpoint.  It holds the vendor's library and speaks with
 * processes of a tenant, which may answer with anything: so it has every right over that job, and
 * none over the machine or another job. */

#define BH_CHECKPOINT_SANDBOX_LIBRARY "/driver" /* the request's folder, within */

/* Enter: a root of this machine's programs, read-only, with the request's devices and mounts and this
 * machine's /proc, because the driver's calls name processes by their numbers here; no network; the job's own
 * user namespace, whose ids begin with request->id_base; of root's capabilities there, only those that it
 * takes to read a process; no program can be started.  Without a job (id_base 0) it becomes the user nobody
 * instead.  Ends with its parent.  Root's alone, with one thread.
 *   BH_NOT_FOUND  every process of the request has ended
 *   BH_DENIED     a process of the request is not in such a namespace
 *   BH_IO         the kernel refused */
BH_MUST_USE bh_rc bh_checkpoint_sandbox_enter(const struct bh_checkpoint_request *request,
                                              struct bh_err *err);

#endif
