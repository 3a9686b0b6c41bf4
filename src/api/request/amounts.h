#ifndef BH_API_REQUEST_AMOUNTS_H
#define BH_API_REQUEST_AMOUNTS_H

#include <stdint.h>

#include "base/json.h"

/* Amounts as members of a JSON answer; null where they are BH_UNLIMITED. */

/* Parts as GPUs, exactly: "1.5", "3/7". */
void bh_put_gpus(struct bh_json_writer *w, const char *key, uint64_t parts);

/* An amount in units of `unit`, with two decimals, cut: money, hours. */
void bh_put_decimal(struct bh_json_writer *w, const char *key, uint64_t amount, uint64_t unit);

#endif
