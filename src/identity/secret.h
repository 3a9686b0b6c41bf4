#ifndef BH_IDENTITY_SECRET_H
#define BH_IDENTITY_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handling secrets. */

/* Are the texts equal?  Takes a time that depends on their lengths alone. */
bool bh_secret_equal(const char *a, const char *b);

/* The same for `length` bytes. */
bool bh_secret_equal_bytes(const void *a, const void *b, size_t length);

/* Overwrite in a way that no compiler leaves out. */
void bh_secret_wipe(void *bytes, size_t length);

enum { BH_SECRET_BYTES = 32, BH_SECRET_TEXT = 44 };

/* 32 random bytes as 43 characters of base64url and a NUL: a state, a nonce, a PKCE
 * verifier. */
void bh_secret_text(const uint8_t bytes[BH_SECRET_BYTES], char ret_text[BH_SECRET_TEXT]);

/* SHA-256 of a text as base64url: a PKCE challenge. */
void bh_secret_challenge(const char *text, char ret_challenge[BH_SECRET_TEXT]);

/* HMAC-SHA-256 of `text` under the text `key`, as base64url: what only the holder of `key`
 * can make, and does not show it. */
void bh_secret_mac(const char *key, const char *text, char ret_mac[BH_SECRET_TEXT]);

#endif
