#ifndef BH_CLI_RUN_H
#define BH_CLI_RUN_H

#include <stdint.h>

/* The exit status that `bulkhead run` ends with for a job in `state`, ended by `cause`:
 * its own, 128 and the signal, or 9 when it has none. */
int bh_run_status(const char *state, const char *cause, int64_t status);

#endif
