/* Names and numbers of a simulated board that follow from its model and place. */
#ifndef BH_SIM_MACHINE_IDENTITY_H
#define BH_SIM_MACHINE_IDENTITY_H

#include <stddef.h>

#include "sim/machine/sim.h"

/* "GPU-8-4-4-4-12" or "MIG-..." in lower case. */
void sim_uuid_format(const char *prefix, const struct sim_uuid *uuid, char *ret_text, size_t size);

/* Serial number, stable for a UUID. */
void sim_identity_serial(const struct sim_gpu *gpu, char *ret_text, size_t size);

/* "1g.10gb", or "1c.3g.40gb" for a compute instance smaller than its GPU
 * instance. */
void sim_identity_instance(const struct sim_gpu *gpu, const struct sim_gi *gi, const struct sim_ci *ci,
                           char *ret_text, size_t size);

#endif
