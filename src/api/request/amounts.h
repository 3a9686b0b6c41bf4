#ifndef BH_API_REQUEST_AMOUNTS_H
#define BH_API_REQUEST_AMOUNTS_H

#include <stdint.h>

/* Amounts as texts of a reply, in the caller's memory; NULL where they are BH_UNLIMITED. */
enum { BH_AMOUNT_SIZE = 48 };

/* Memory for one, as long as the block that it is in. */
#define BH_AMOUNT_TEXT ((char[BH_AMOUNT_SIZE]){ "" })

/* Parts as GPUs, exactly: "1.5", "3/7". */
const char *bh_gpus_text(uint64_t parts, char text[BH_AMOUNT_SIZE]);

/* An amount in units of `unit`, with two decimals, cut: money, hours. */
const char *bh_decimal_text(uint64_t amount, uint64_t unit, char text[BH_AMOUNT_SIZE]);

#endif
