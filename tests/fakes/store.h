#ifndef BH_FAKES_STORE_H
#define BH_FAKES_STORE_H

#include "ports/store.h"

/* The store in memory, for tests: same behaviour, nothing outlives it. */
struct bh_crypto_ops;

/* A new, empty store.  Close with ret_store->ops->close. */
void bh_store_memory_open(const struct bh_crypto_ops *crypto, struct bh_store *ret_store);

#endif
