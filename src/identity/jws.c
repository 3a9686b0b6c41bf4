#include "identity/jws.h"

#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/json.h"
#include "identity/signature.h"

/* Where the two dots are: exactly two, and no part empty. */
static enum bh_identity_fault
jws_split(const char *text, size_t length, struct bh_jws *jws)
{
    const char *first = memchr(text, '.', length), *second;

    if (!first)
        return BH_FAULT_TOKEN_FORM;
    jws->payload_at = (size_t)(first - text) + 1;
    second = memchr(first + 1, '.', length - jws->payload_at);
    if (!second)
        return BH_FAULT_TOKEN_FORM;
    jws->payload_length = (size_t)(second - first) - 1;
    jws->signature_at = (size_t)(second - text) + 1;
    jws->signature_length = length - jws->signature_at;
    if (memchr(second + 1, '.', jws->signature_length) || jws->payload_at == 1 || jws->payload_length == 0)
        return BH_FAULT_TOKEN_FORM;
    return BH_FAULT_NONE;
}

/* "none" in any case, HS256 and its like, and anything unknown, each with its own fault. */
static enum bh_identity_fault
jws_read_alg(bh_json_value value, uint32_t algs, enum bh_jws_alg *ret_alg)
{
    const char *name = bh_json_text(value, NULL);
    enum bh_jws_alg alg;

    if (!name)
        return BH_FAULT_ALG_MISSING;
    if (strcasecmp(name, "none") == 0)
        return BH_FAULT_ALG_NONE;
    if (strncasecmp(name, "HS", 2) == 0)
        return BH_FAULT_ALG_HMAC;
    alg = bh_jws_alg_find(name);
    if (alg == BH_JWS_ALGS)
        return BH_FAULT_ALG_UNKNOWN;
    if (!(algs & BH_JWS_BIT(alg)))
        return BH_FAULT_ALG_REFUSED;
    *ret_alg = alg;
    return BH_FAULT_NONE;
}

/* An optional text of 1 to `max` bytes. */
static bool
jws_read_text(bh_json_value value, char *ret_text, size_t max)
{
    const char *text = bh_json_text(value, NULL);

    if (!value)
        return true;
    if (!text || !text[0] || strlen(text) > max)
        return false;
    memcpy(ret_text, text, strlen(text) + 1);
    return true;
}

static enum bh_identity_fault
jws_read_header(bh_json_value header, uint32_t algs, struct bh_jws *jws)
{
    enum bh_identity_fault fault;

    if (bh_json_kind(header) != BH_JSON_OBJECT)
        return BH_FAULT_HEADER_JSON;
    if (bh_json_get(header, "crit"))
        return BH_FAULT_HEADER_CRIT;
    if (bh_json_get(header, "b64"))
        return BH_FAULT_HEADER_B64;
    fault = jws_read_alg(bh_json_get(header, "alg"), algs, &jws->alg);
    if (fault != BH_FAULT_NONE)
        return fault;
    if (!jws_read_text(bh_json_get(header, "kid"), jws->kid, BH_JWK_KID_MAX))
        return BH_FAULT_KID_INVALID;
    return jws_read_text(bh_json_get(header, "typ"), jws->type, BH_JWS_TYPE_MAX) ? BH_FAULT_NONE
                                                                                 : BH_FAULT_HEADER_TYPE;
}

static enum bh_identity_fault
jws_parse_header(uint32_t algs, struct bh_jws *jws)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    char memory[BH_JWS_HEADER_MAX];
    struct bh_buf header;
    struct bh_err err;

    bh_buf_init_fixed(&header, memory, sizeof memory);
    if (!bh_base64url_decode(&header, jws->text, jws->payload_at - 1))
        return header.overflow ? BH_FAULT_HEADER_SIZE : BH_FAULT_TOKEN_ENCODING;
    if (bh_json_parse(header.bytes, header.length, &json, &err) != BH_OK)
        return BH_FAULT_HEADER_JSON;
    return jws_read_header(bh_json_root(json), algs, jws);
}

enum bh_identity_fault
bh_jws_parse(const char *text, size_t length, uint32_t algs, struct bh_jws *ret_jws)
{
    struct bh_jws jws = { .text = text };
    enum bh_identity_fault fault;

    if (length == 0 || length > BH_JWS_BYTES_MAX)
        return BH_FAULT_TOKEN_SIZE;
    fault = jws_split(text, length, &jws);
    if (fault == BH_FAULT_NONE)
        fault = jws_parse_header(algs, &jws);
    if (fault == BH_FAULT_NONE)
        *ret_jws = jws;
    return fault;
}

static enum bh_identity_fault
jws_verify(const struct bh_jws *jws, const struct bh_jwk *key)
{
    uint8_t memory[BH_JWK_RSA_BYTES_MAX];
    struct bh_buf bytes;
    struct bh_signature signature = {
        .alg = jws->alg, .message = jws->text, .message_length = jws->signature_at - 1, .bytes = memory
    };

    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    if (!bh_base64url_decode(&bytes, jws->text + jws->signature_at, jws->signature_length))
        return bytes.overflow ? BH_FAULT_SIGNATURE : BH_FAULT_TOKEN_ENCODING;
    signature.length = bytes.length;
    return bh_signature_verify(key, &signature) ? BH_FAULT_NONE : BH_FAULT_SIGNATURE;
}

static enum bh_identity_fault
jws_open(const struct bh_jws *jws, const struct bh_jwk *key, struct bh_buf *payload)
{
    enum bh_identity_fault fault;

    if (!(key->algs & BH_JWS_BIT(jws->alg)))
        return BH_FAULT_KEY_MISMATCH;
    fault = jws_verify(jws, key);
    if (fault != BH_FAULT_NONE)
        return fault;
    if (!bh_base64url_decode(payload, jws->text + jws->payload_at, jws->payload_length))
        return BH_FAULT_TOKEN_ENCODING;
    return BH_FAULT_NONE;
}

enum bh_identity_fault
bh_jws_read(const char *text, size_t length, const struct bh_jws_trust *trust, struct bh_jws *ret_jws,
            struct bh_buf *payload)
{
    const struct bh_jwk *key = NULL;
    enum bh_identity_fault fault = bh_jws_parse(text, length, trust->algs, ret_jws);

    if (fault == BH_FAULT_NONE)
        fault = bh_jwks_find(trust->jwks, ret_jws->alg, ret_jws->kid, &key);
    if (fault == BH_FAULT_NONE)
        fault = jws_open(ret_jws, key, payload);
    return fault;
}
