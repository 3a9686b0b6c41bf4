#ifndef BH_IDENTITY_ID_TOKEN_H
#define BH_IDENTITY_ID_TOKEN_H

#include "base/arena.h"
#include "identity/claims.h"
#include "identity/jws.h"

/* ID tokens: OpenID Connect Core 1.0, section 3.1.3.7, and what this house asks
 * beyond it.  Pure but for memory: keys, rules and the moment are arguments. */

enum { BH_ID_GROUPS_MAX = 1000, BH_ID_AMR_MAX = 32 };

/* What a token must fulfil.  NULL and zero fields ask nothing, except the first two. */
struct bh_id_token_rules {
    const char *issuer;        /* the configured one, to the byte; required */
    const char *client;        /* our client id; required, never "" */
    struct bh_texts audiences; /* others that may be beside this client */
    struct bh_claims_when when;
    const char *nonce;        /* the one that was sent */
    const char *access_token; /* at_hash is compared with it where the token has one */
    const char *code;         /* and c_hash with this */
    const char *subject;      /* of the token before, when this one refreshes it */
    bool max_age;             /* a fresh sign-in was asked for: */
    uint32_t max_age_s;       /* no older than this, as auth_time says */
    struct bh_texts acr;      /* one of these */
    const char *amr;          /* this method among those used */
    const char *groups;       /* name of the claim with the groups */
};

/* What is known of the person.  Texts live in the arena. */
struct bh_id_token {
    char subject[BH_CLAIM_TEXT_MAX + 1];
    char session[BH_CLAIM_TEXT_MAX + 1];  /* sid; "": none */
    char acr[BH_CLAIM_TEXT_MAX + 1];      /* "": none */
    uint64_t expires_s, issued_s, auth_s; /* auth_s 0: not said */
    struct bh_texts amr, groups;
};

/* Check the claims of a token whose signature was verified under `alg`.  The first rule
 * that does not hold gives the fault; each rule has its own (see the table).
 * `ret_token` is untouched on failure. */
BH_MUST_USE enum bh_identity_fault bh_id_token_check(bh_json_value claims, enum bh_jws_alg alg,
                                                     const struct bh_id_token_rules *rules,
                                                     struct bh_arena *arena, struct bh_id_token *ret_token);

/* Verify the signature and check the claims.  Adds the faults of bh_jws_read,
 * HEADER_TYPE for a token of another kind, and PAYLOAD_JSON. */
BH_MUST_USE enum bh_identity_fault bh_id_token_read(const char *text, const struct bh_jws_trust *trust,
                                                    const struct bh_id_token_rules *rules,
                                                    struct bh_arena *arena, struct bh_id_token *ret_token);

#endif
