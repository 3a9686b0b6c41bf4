#ifndef BH_CRYPTO_OPENSSL_INTERNAL_H
#define BH_CRYPTO_OPENSSL_INTERNAL_H

#include <openssl/evp.h>

#include "base/attr.h"
#include "base/err.h"
#include "ports/crypto.h"

BH_AUTO_DEFINE(EVP_PKEY *, EVP_PKEY_free)
BH_AUTO_DEFINE(EVP_MD_CTX *, EVP_MD_CTX_free)

/* openssl_err.c: `rc` with "<what>: <OpenSSL's newest reason>". */
bh_rc bh_openssl_err(struct bh_err *err, bh_rc rc, const char *what);

/* openssl_certificate.c: the port's make_certificate.  BH_INVALID: no host can have that
 * name; BH_FULL: a buffer is too small. */
bh_rc bh_openssl_make_certificate(const char *host, char *ret_cert, size_t cert_size, char *ret_key,
                                  size_t key_size, struct bh_err *err);

/* openssl_seal.c: slots of the port. */
void bh_openssl_hmac(const void *key, size_t key_length, const void *message, size_t length,
                     uint8_t ret_digest[32]);
bh_rc bh_openssl_seal(const struct bh_aead *aead, const void *plain, size_t length, void *ret_sealed,
                      struct bh_err *err);
bh_rc bh_openssl_open(const struct bh_aead *aead, const void *sealed, size_t length, void *ret_plain,
                      struct bh_err *err);

#endif
