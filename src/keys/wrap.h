#ifndef BH_KEYS_WRAP_H
#define BH_KEYS_WRAP_H

#include <stdint.h>

#include "base/err.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* Keys made of keys, and keys around keys. */

/* HKDF-SHA256 (RFC 5869) of 32 bytes, with Bulkhead's salt and `use` as the info: another
 * key for each use. */
void bh_key_derive(const struct bh_crypto_ops *crypto, const uint8_t key[32], const char *use,
                   uint8_t ret_key[32]);

/* Fill row->wrapped with `plain` under `wrapping`, bound to all else that names the key:
 * id, kind, tenant, month and parent.  Failures of the port. */
BH_MUST_USE bh_rc bh_key_wrap(const struct bh_crypto_ops *crypto, const uint8_t wrapping[32],
                              const uint8_t plain[32], struct bh_key_row *row, struct bh_err *err);

/* The way back.  BH_INVALID: the row was changed, or another key wrapped it. */
BH_MUST_USE bh_rc bh_key_unwrap(const struct bh_crypto_ops *crypto, const uint8_t wrapping[32],
                                const struct bh_key_row *row, uint8_t ret_plain[32], struct bh_err *err);

#endif
