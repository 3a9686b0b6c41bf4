#ifndef BH_DAEMON_SERIES_RECORDING_H
#define BH_DAEMON_SERIES_RECORDING_H

#include "daemon/state/core.h"
#include "ports/series.h"

/* series.db and the thread that writes to it, as bulkheadd.conf wants them.  Where the file cannot be opened
 * the log says so once, and nothing is recorded: all else works. */
struct bh_recording;
struct bh_owner;

/* Open and start.  The core is open, its owner runs and outlives the recording. */
BH_MUST_USE struct bh_recording *bh_recording_start(const struct bh_core *core, const struct bh_owner *owner);

/* For the API; ops NULL: series are not kept. */
struct bh_series_store bh_recording_store(const struct bh_recording *recording);

/* End the thread and write what is left; the store stays readable until the free. */
void bh_recording_stop(struct bh_recording *recording);
void bh_recording_free(struct bh_recording *recording);

#endif
