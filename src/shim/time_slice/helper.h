/* A thread of the process that answers bulkhead-share: drained when a time slice ends, idle when
 * nothing comes while others wait.  It also joins again when bulkhead-share was started
 * anew. */
#ifndef BH_SHIM_TIME_SLICE_HELPER_H
#define BH_SHIM_TIME_SLICE_HELPER_H

/* At the first join. */
void bh_helper_init(void);

/* Once; again when it could not be started. */
void bh_helper_thread_start(void);

#endif
