#include "sim/machine/identity.h"

#include <stdio.h>
#include <string.h>

#include "sim/machine/partition.h"

void
sim_uuid_format(const char *prefix, const struct sim_uuid *uuid, char *ret_text, size_t size)
{
    const uint8_t *b = uuid->bytes;

    snprintf(ret_text, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             prefix, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

void
sim_identity_serial(const struct sim_gpu *gpu, char *ret_text, size_t size)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < 5; i++)
        number = number << 8 | gpu->uuid.bytes[i];
    snprintf(ret_text, size, "%013llu", (unsigned long long)number);
}

void
sim_identity_instance(const struct sim_gpu *gpu, const struct sim_gi *gi, const struct sim_ci *ci,
                      char *ret_text, size_t size)
{
    const struct sim_profile *profile = sim_gi_profile(gpu, gi);

    if (ci->size == profile->slices)
        snprintf(ret_text, size, "%s", profile->name);
    else
        snprintf(ret_text, size, "%uc.%s", ci->size, profile->name);
}
