#ifndef BH_POLICY_GPUS_H
#define BH_POLICY_GPUS_H

#include <stdint.h>

#include "base/buf.h"

/* Append parts as text, exactly: "1.5 GPUs", "3/7 GPU", "2 GPUs".  A
 * decimal where one is exact, else a fraction in lowest terms. */
void bh_gpus_put(struct bh_buf *out, uint64_t parts);

/* The same without the word: what a site file takes. */
void bh_gpus_put_amount(struct bh_buf *out, uint64_t parts);

/* "0.500 cores", "1 core" from thousandths; "64 GiB of memory", "65000 MiB of memory" from
 * MiB. */
void bh_cores_put(struct bh_buf *out, uint64_t cpu_milli);
void bh_memory_put(struct bh_buf *out, uint64_t mib);

#endif
