#ifndef BH_PORTS_CRYPTO_H
#define BH_PORTS_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Hashes, signatures and randomness, as the pure layers need them. */

struct bh_sha256 { /* a running hash; opaque bytes */
    uint64_t state[16];
    void *context;
};

/* Sealing with XAES-256-GCM (C2SP): nonces are long enough to be drawn at random. */
enum { BH_AEAD_NONCE_BYTES = 24, BH_AEAD_TAG_BYTES = 16 };
struct bh_aead {
    const uint8_t *key;   /* 32 bytes */
    const uint8_t *nonce; /* 24 bytes, never twice with one key */
    const void *bound;    /* authenticated, not encrypted; may be NULL */
    size_t bound_length;
};

struct bh_crypto_ops {
    const char *name; /* "openssl" */

    /* SHA-256 of up to two partitions joined (the second may be empty). */
    void (*sha256)(const void *first, size_t first_length, const void *second, size_t second_length,
                   uint8_t ret_digest[32]);
    /* The same in steps; finish also releases. */
    void (*sha256_begin)(struct bh_sha256 *hash);
    void (*sha256_put)(struct bh_sha256 *hash, const void *bytes, size_t length);
    void (*sha256_finish)(struct bh_sha256 *hash, uint8_t ret_digest[32]);

    /* Ed25519 with raw keys. */
    bh_rc (*sign)(const uint8_t private_key[32], const void *message, size_t length,
                  uint8_t ret_signature[64], struct bh_err *err);
    bh_rc (*verify)(const uint8_t public_key[32], const void *message, size_t length,
                    const uint8_t signature[64], struct bh_err *err); /* BH_DENIED: bad */
    bh_rc (*make_key)(uint8_t ret_private[32], uint8_t ret_public[32], struct bh_err *err);
    bh_rc (*public_of)(const uint8_t private_key[32], uint8_t ret_public[32], struct bh_err *err);

    /* HMAC-SHA256 (RFC 2104). */
    void (*hmac)(const void *key, size_t key_length, const void *message, size_t length,
                 uint8_t ret_digest[32]);

    /* `length` bytes and the tag behind them to `ret_sealed`. */
    bh_rc (*seal)(const struct bh_aead *aead, const void *plain, size_t length, void *ret_sealed,
                  struct bh_err *err);
    /* The way back: `length` counts the tag.  BH_INVALID: it was not sealed so, or was
     * changed; `ret_plain` is wiped then. */
    bh_rc (*open)(const struct bh_aead *aead, const void *sealed, size_t length, void *ret_plain,
                  struct bh_err *err);

    /* Unpredictable bytes. */
    bh_rc (*random)(void *ret_bytes, size_t length, struct bh_err *err);

    /* A self-signed TLS certificate (ECDSA P-256, SAN localhost, 127.0.0.1, ::1 and
     * the host name) with its key, both PEM; 398 days. */
    bh_rc (*make_certificate)(const char *host, char *ret_cert, size_t cert_size, char *ret_key,
                              size_t key_size, struct bh_err *err);
};

/* The one implementation, over OpenSSL 3: defined in src/crypto. */
extern const struct bh_crypto_ops bh_crypto_openssl;

#endif
