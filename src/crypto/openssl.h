#ifndef BH_CRYPTO_OPENSSL_H
#define BH_CRYPTO_OPENSSL_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/crypto.h"

/* Keys that live in files; the port itself, bh_crypto_openssl, is declared in
 * ports/crypto.h. */

/* The Ed25519 private key in the file `path` (32 raw bytes, mode 0600), made when the
 * file is missing.  `ret_made` may be NULL.
 *   BH_INVALID  the file holds something else
 *   BH_DENIED   the file may not be read, or others may read it
 *   failures of base/fd.h */
BH_MUST_USE bh_rc bh_crypto_key_load_or_make(const struct bh_crypto_ops *crypto, const char *path,
                                             uint8_t ret_private[32], bool *ret_made, struct bh_err *err);

#endif
