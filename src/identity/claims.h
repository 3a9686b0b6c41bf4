#ifndef BH_IDENTITY_CLAIMS_H
#define BH_IDENTITY_CLAIMS_H

#include "base/fields.h"
#include "base/json.h"
#include "base/time.h"
#include "identity/fault.h"

/* What the claims of ID tokens and of logout tokens have in common.  Pure: the moment
 * is an argument. */

enum {
    BH_CLAIM_TEXT_MAX = 255, /* bytes of sub, sid, jti */
    BH_CLAIM_AUDIENCES_MAX = 32,
    BH_CLAIM_SKEW_MAX_S = 120
};

/* A claim that is whole seconds since the epoch, up to the end of the year 9999.  False
 * for another type or range; `ret_s` is 0 when the claim is absent. */
bool bh_claim_seconds(bh_json_value claims, const char *name, uint64_t *ret_s);

/* A claim that is a text of 1 to BH_CLAIM_TEXT_MAX bytes without control characters.
 * False for others; `ret_text` is "" when the claim is absent. */
bool bh_claim_text(bh_json_value claims, const char *name, char ret_text[BH_CLAIM_TEXT_MAX + 1]);

/* iss: exactly `issuer`.  ISS_MISSING, ISS_WRONG. */
enum bh_identity_fault bh_claims_issuer(bh_json_value claims, const char *issuer);

/* aud and azp: `client` is an audience, every other one is in `trusted`, and with
 * several azp is `client`.  AUD_*, AZP_*. */
enum bh_identity_fault bh_claims_audience(bh_json_value claims, const char *client,
                                          const struct bh_texts *trusted);

/* When a token is good. */
struct bh_claims_when {
    bh_ns now;
    uint32_t skew_s;          /* clocks may differ so much; BH_CLAIM_SKEW_MAX_S at most */
    uint32_t issued_within_s; /* no older than this; 0: any age */
};

/* exp, iat and nbf.  EXP_*, EXPIRED, IAT_*, NBF_*. */
enum bh_identity_fault bh_claims_times(bh_json_value claims, const struct bh_claims_when *when);

#endif
