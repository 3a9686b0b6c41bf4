/* Names and numbers of a simulated board that follow from its model and place. */
#ifndef BH_SIMDRV_IDENTITY_H
#define BH_SIMDRV_IDENTITY_H

#include <stddef.h>

#include "simdrv/sim.h"

/* Serial number, stable for a UUID. */
void sim_identity_serial(const struct sim_gpu *gpu, char *ret_text, size_t size);

/* "1g.10gb", or "1c.3g.40gb" for a compute instance smaller than its GPU
 * instance. */
void sim_identity_instance(const struct sim_gpu *gpu, const struct sim_gi *gi,
                           const struct sim_ci *ci, char *ret_text, size_t size);

#endif
