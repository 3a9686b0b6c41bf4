#include "simdrv/identity.h"

#include <stdio.h>
#include <string.h>

#include "simdrv/partition.h"

void
sim_identity_serial(const struct sim_gpu *gpu, char *ret_text, size_t size)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 5; i++)
        number = number << 8 | gpu->uuid.bytes[i];
    snprintf(ret_text, size, "%013llu", (unsigned long long)number);
}

void
sim_identity_instance(const struct sim_gpu *gpu, const struct sim_gi *gi,
                      const struct sim_ci *ci, char *ret_text, size_t size)
{
    const struct sim_profile *profile = sim_gi_profile(gpu, gi);

    if (ci->size == profile->slices)
        snprintf(ret_text, size, "%s", profile->name);
    else
        snprintf(ret_text, size, "%uc.%s", ci->size, profile->name);
}
