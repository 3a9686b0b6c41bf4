#ifndef BH_CHECKPOINT_SEQUENCE_H
#define BH_CHECKPOINT_SEQUENCE_H

#include "bulkhead/cuda_abi.h"
#include "checkpoint/report.h"

/* In which order the driver's checkpoint calls are made for the processes of one job.
 *
 * All are locked, then all are checkpointed; all are restored, then all are unlocked.  So most of what fails,
 * fails while nothing has left the GPU, and none computes beside one that is still away.  Before each call
 * the process's state is asked for: so the same sequence continues what a crash or a deadline interrupted. */

/* The calls, as the vendor's; a table of its own for tests. */
struct bh_checkpoint_driver {
    CUresult (*state)(void *self, int pid, CUprocessState *ret_state);
    CUresult (*lock)(void *self, int pid, unsigned timeout_ms);
    CUresult (*checkpoint)(void *self, int pid);
    CUresult (*restore)(void *self, int pid);
    CUresult (*unlock)(void *self, int pid);
    const char *(*name)(void *self, CUresult rc); /* of a result */
    bool (*lives)(void *self, int pid);
    void *self;
};

/* Put all processes of the request aside.  DONE; or REFUSED, and what was done is undone; or
 * BAD, when that failed, too.  A process that has ended meanwhile is none. */
void bh_checkpoint_save(const struct bh_checkpoint_driver *driver,
                        const struct bh_checkpoint_request *request, struct bh_checkpoint_report *ret_report);

/* Give all of them back, as far as each is away.  DONE; or BAD: then none was unlocked that was
 * not before. */
void bh_checkpoint_restore(const struct bh_checkpoint_driver *driver,
                           const struct bh_checkpoint_request *request,
                           struct bh_checkpoint_report *ret_report);

#endif
