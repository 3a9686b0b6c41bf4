#include "identity/claims.h"

#include <string.h>

#include "base/assert.h"

#define LAST_S INT64_C(253402300799) /* the end of the year 9999 */

bool
bh_claim_seconds(bh_json_value claims, const char *name, uint64_t *ret_s)
{
    bh_json_value value = bh_json_get(claims, name);
    int64_t seconds = value ? bh_json_integer(value, -1) : 0;

    if (seconds < 0 || seconds > LAST_S)
        return false;
    *ret_s = (uint64_t)seconds;
    return true;
}

bool
bh_claim_text(bh_json_value claims, const char *name, char ret_text[BH_CLAIM_TEXT_MAX + 1])
{
    bh_json_value value = bh_json_get(claims, name);
    const char *text = bh_json_text(value, value ? NULL : "");

    if (!text || strlen(text) > BH_CLAIM_TEXT_MAX || (value && !text[0]))
        return false;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    memcpy(ret_text, text, strlen(text) + 1);
    return true;
}

enum bh_identity_fault
bh_claims_issuer(bh_json_value claims, const char *issuer)
{
    const char *iss = bh_json_text(bh_json_get(claims, "iss"), NULL);

    if (!iss)
        return BH_FAULT_ISS_MISSING;
    return strcmp(iss, issuer) == 0 ? BH_FAULT_NONE : BH_FAULT_ISS_WRONG;
}

static bool
claims_has_text(const struct bh_texts *texts, const char *text)
{
    for (uint32_t i = 0; texts && i < texts->count; i++)
        if (strcmp(texts->items[i], text) == 0)
            return true;
    return false;
}

/* Is the item in the list before? */
static bool
is_repeated(bh_json_value list, size_t at)
{
    const char *text = bh_json_text(bh_json_at(list, at), "");

    for (size_t i = 0; i < at; i++)
        if (strcmp(bh_json_text(bh_json_at(list, i), ""), text) == 0)
            return true;
    return false;
}

static enum bh_identity_fault
check_azp(bh_json_value claims, const char *client, bool required)
{
    bh_json_value value = bh_json_get(claims, "azp");

    if (!value)
        return required ? BH_FAULT_AZP_MISSING : BH_FAULT_NONE;
    return strcmp(bh_json_text(value, ""), client) == 0 ? BH_FAULT_NONE : BH_FAULT_AZP_WRONG;
}

static enum bh_identity_fault
check_audiences(bh_json_value list, const char *client, const struct bh_texts *trusted)
{
    bool ours = false, others = false;

    if (bh_json_count(list) == 0 || bh_json_count(list) > BH_CLAIM_AUDIENCES_MAX)
        return BH_FAULT_AUD_INVALID;
    for (size_t i = 0; i < bh_json_count(list); i++) {
        const char *text = bh_json_text(bh_json_at(list, i), NULL);

        if (!text || is_repeated(list, i))
            return BH_FAULT_AUD_INVALID;
        if (strcmp(text, client) == 0)
            ours = true;
        else if (!claims_has_text(trusted, text))
            others = true;
    }
    if (!ours)
        return BH_FAULT_AUD_WRONG;
    return others ? BH_FAULT_AUD_UNTRUSTED : BH_FAULT_NONE;
}

enum bh_identity_fault
bh_claims_audience(bh_json_value claims, const char *client, const struct bh_texts *trusted)
{
    bh_json_value aud = bh_json_get(claims, "aud");
    enum bh_identity_fault fault = BH_FAULT_NONE;

    BH_ASSERT(client[0]); /* an unset client would make the check pass over everything */
    if (!aud)
        return BH_FAULT_AUD_MISSING;
    if (bh_json_kind(aud) == BH_JSON_ARRAY)
        fault = check_audiences(aud, client, trusted);
    else if (bh_json_kind(aud) != BH_JSON_STRING)
        fault = BH_FAULT_AUD_INVALID;
    else if (strcmp(bh_json_text(aud, ""), client) != 0)
        fault = BH_FAULT_AUD_WRONG;
    if (fault != BH_FAULT_NONE)
        return fault;
    return check_azp(claims, client, bh_json_count(aud) > 1);
}

enum bh_identity_fault
bh_claims_times(bh_json_value claims, const struct bh_claims_when *when)
{
    uint64_t now_s = when->now / BH_NS_PER_S, exp_s, iat_s, nbf_s;

    BH_ASSERT(when->skew_s <= BH_CLAIM_SKEW_MAX_S);
    if (!bh_json_get(claims, "exp"))
        return BH_FAULT_EXP_MISSING;
    if (!bh_claim_seconds(claims, "exp", &exp_s))
        return BH_FAULT_EXP_INVALID;
    if (exp_s + when->skew_s <= now_s)
        return BH_FAULT_EXPIRED;
    if (!bh_json_get(claims, "iat"))
        return BH_FAULT_IAT_MISSING;
    if (!bh_claim_seconds(claims, "iat", &iat_s))
        return BH_FAULT_IAT_INVALID;
    if (iat_s > now_s + when->skew_s)
        return BH_FAULT_IAT_FUTURE;
    if (when->issued_within_s && iat_s + when->issued_within_s + when->skew_s < now_s)
        return BH_FAULT_IAT_OLD;
    if (!bh_claim_seconds(claims, "nbf", &nbf_s))
        return BH_FAULT_NBF_INVALID;
    return nbf_s > now_s + when->skew_s ? BH_FAULT_NBF_FUTURE : BH_FAULT_NONE;
}
