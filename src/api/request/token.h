#ifndef BH_API_REQUEST_TOKEN_H
#define BH_API_REQUEST_TOKEN_H

#include <stdbool.h>

#include "ports/crypto.h"

/* API tokens, and the secrets of sessions, as users hold them:
 *
 *     bh_<id, 12 of a-z 2-7>_<secret, 43 of 0-9 A-Z a-z>_<CRC-32 in 8 hex digits>
 *     bs_...                                             of a session
 *
 * The id is public and names the token in records; the secret has 256 bits, and only its SHA-256 is stored;
 * the checksum, over all before its underscore, lets a scanner recognize a token, and shows a typo, without a
 * look-up. */
enum { BH_TOKEN_ID_LENGTH = 12, BH_TOKEN_SECRET_LENGTH = 43, BH_TOKEN_LENGTH = 68 };

enum bh_token_kind { BH_TOKEN_API, BH_TOKEN_SESSION };

struct bh_token {
    enum bh_token_kind kind;
    char id[BH_TOKEN_ID_LENGTH + 1];
    uint8_t secret[32]; /* SHA-256 of the secret part */
};

/* Make a token of the kind that `token` says: its parts and the whole text, to be shown once.
 * BH_IO: no randomness. */
BH_MUST_USE bh_rc bh_token_make(const struct bh_crypto_ops *crypto, struct bh_token *token,
                                char ret_text[BH_TOKEN_LENGTH + 1], struct bh_err *err);

/* Read a token's text.  False: not of the form, or a wrong checksum. */
bool bh_token_parse(const struct bh_crypto_ops *crypto, const char *text, struct bh_token *ret_token);

/* The id in a text that begins as an API token does, whatever follows.  False: it does not. */
bool bh_token_id_of(const char *text, char ret_id[BH_TOKEN_ID_LENGTH + 1]);

/* Whether `id` has the form of a token's id. */
bool bh_token_id_valid(const char *id);

/* Whether two digests are the same, in a time that does not depend on them. */
bool bh_token_same(const uint8_t a[32], const uint8_t b[32]);

#endif
