#ifndef BH_CLI_DOCTOR_DRIVER_PROBE_H
#define BH_CLI_DOCTOR_DRIVER_PROBE_H

#include <stdint.h>

#include "base/err.h"

/* Load the driver's NVML library and count its GPUs, in a child process for ten seconds at most:
 * a broken driver may never return.  `environment` is a NAME=value for the child, or "".
 *   BH_NOT_FOUND    `library` is not there, or is no NVML
 *   BH_UNAVAILABLE  nvmlInit failed; err->sys is its code
 *   BH_TIMEOUT      the child did not answer
 *   BH_IO           no child could be started */
BH_MUST_USE bh_rc bh_driver_probe(const char *library, const char *environment, uint32_t *ret_gpus,
                                  struct bh_err *err);

#endif
