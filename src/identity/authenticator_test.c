#include "identity/authenticator_test.h"

#include <stdio.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"

void
bh_test_authenticator_init(struct bh_test_authenticator *device, enum bh_passkey_alg alg)
{
    *device = (struct bh_test_authenticator){
        .alg = alg,
        .id_bytes = 32,
        .counter = 7,
        .flags = BH_PASSKEY_PRESENT | BH_PASSKEY_VERIFIED,
        .site = "gpu.example",
        .origin = "https://gpu.example",
        .more = ",\"other_keys_can_be_added_here\":\"do not compare\"",
    };
    if (alg == BH_PASSKEY_ES256)
        device->key = EVP_EC_gen("P-256");
    else if (alg == BH_PASSKEY_EDDSA)
        device->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    else
        device->key = EVP_RSA_gen(2048);
    BH_ASSERT(device->key);
    memset(device->id, 0x80 + alg, sizeof device->id);
    memset(device->aaguid, 0xa0, sizeof device->aaguid);
}

void
bh_test_authenticator_fini(struct bh_test_authenticator *device)
{
    EVP_PKEY_free(device->key);
    device->key = NULL;
}

/* CBOR: a byte string with its head. */
static void
put_cbor_bytes(struct bh_buf *out, const uint8_t *bytes, size_t length)
{
    if (length > 255) {
        bh_buf_putc(out, 0x59);
        bh_buf_putc(out, (char)(length >> 8));
    } else {
        bh_buf_putc(out, 0x58);
    }
    bh_buf_putc(out, (char)(length & 255));
    bh_buf_put(out, bytes, length);
}

static void
put_cbor_number(struct bh_buf *out, const struct bh_test_authenticator *device, const char *name, int width)
{
    uint8_t bytes[512];
    BIGNUM *number = NULL;

    BH_ASSERT(EVP_PKEY_get_bn_param(device->key, name, &number) == 1);
    BH_ASSERT(BN_bn2binpad(number, bytes, width) == width);
    put_cbor_bytes(out, bytes, (size_t)width);
    BN_free(number);
}

/* The public key as a COSE_Key (RFC 9052, 7): the maps of RFC 9053 and RFC 8230. */
static void
put_cose(struct bh_buf *out, const struct bh_test_authenticator *device)
{
    uint8_t bytes[32];
    size_t length = sizeof bytes;

    if (device->alg == BH_PASSKEY_ES256) { /* kty 2, alg -7, crv 1, x, y */
        bh_buf_put(out, "\xa5\x01\x02\x03\x26\x20\x01\x21", 8);
        put_cbor_number(out, device, OSSL_PKEY_PARAM_EC_PUB_X, 32);
        bh_buf_putc(out, 0x22);
        put_cbor_number(out, device, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    } else if (device->alg == BH_PASSKEY_EDDSA) { /* kty 1, alg -8, crv 6, x */
        bh_buf_put(out, "\xa4\x01\x01\x03\x27\x20\x06\x21", 8);
        BH_ASSERT(EVP_PKEY_get_raw_public_key(device->key, bytes, &length) == 1);
        put_cbor_bytes(out, bytes, length);
    } else { /* kty 3, alg -257, n, e */
        bh_buf_put(out, "\xa4\x01\x03\x03\x39\x01\x00\x20", 8);
        put_cbor_number(out, device, OSSL_PKEY_PARAM_RSA_N, 256);
        bh_buf_put(out, "\x21\x43", 2);
        bh_buf_put(out, "\x01\x00\x01", 3);
    }
}

static void
put_head(struct bh_buf *out, const struct bh_test_authenticator *device, uint8_t flags)
{
    uint8_t hash[32], counter[4];
    unsigned length;

    BH_ASSERT(EVP_Digest(device->site, strlen(device->site), hash, &length, EVP_sha256(), NULL));
    for (size_t i = 0; i < sizeof counter; i++)
        counter[i] = (uint8_t)(device->counter >> (24 - 8 * i));
    bh_buf_put(out, hash, sizeof hash);
    bh_buf_putc(out, (char)flags);
    bh_buf_put(out, counter, sizeof counter);
}

static void
put_client(const struct bh_test_authenticator *device, const char *type, const char *challenge,
           struct bh_test_response *response)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, response->client, sizeof response->client);
    bh_buf_printf(&out,
                  "{\"type\":\"%s\",\"challenge\":\"%s\",\"origin\":\"%s\","
                  "\"crossOrigin\":false%s}",
                  device->type ? device->type : type, challenge, device->origin, device->more);
    BH_ASSERT(!out.overflow);
    response->client_bytes = out.length;
}

static void
authenticator_test_sign(const struct bh_test_authenticator *device, struct bh_test_response *response)
{
    uint8_t message[sizeof response->authenticator + 32];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned length;

    memcpy(message, response->authenticator, response->authenticator_bytes);
    BH_ASSERT(EVP_Digest(response->client, response->client_bytes, message + response->authenticator_bytes,
                         &length, EVP_sha256(), NULL)
              == 1);
    response->signature_bytes = sizeof response->signature;
    BH_ASSERT(context
              && EVP_DigestSignInit(context, NULL, device->alg == BH_PASSKEY_EDDSA ? NULL : EVP_sha256(),
                                    NULL, device->key)
                     == 1
              && EVP_DigestSign(context, response->signature, &response->signature_bytes, message,
                                response->authenticator_bytes + length)
                     == 1);
    EVP_MD_CTX_free(context);
}

void
bh_test_create(struct bh_test_authenticator *device, const char *challenge,
               struct bh_test_response *ret_response)
{
    struct bh_buf out;

    memset(ret_response, 0, sizeof *ret_response);
    put_client(device, "webauthn.create", challenge, ret_response);
    bh_buf_init_fixed(&out, ret_response->authenticator, sizeof ret_response->authenticator);
    put_head(&out, device, device->flags | BH_PASSKEY_ATTESTED);
    bh_buf_put(&out, device->aaguid, sizeof device->aaguid);
    bh_buf_putc(&out, (char)(device->id_bytes >> 8));
    bh_buf_putc(&out, (char)(device->id_bytes & 255));
    bh_buf_put(&out, device->id, device->id_bytes);
    put_cose(&out, device);
    BH_ASSERT(!out.overflow);
    ret_response->authenticator_bytes = out.length;
    memcpy(ret_response->id, device->id, device->id_bytes);
    ret_response->id_bytes = device->id_bytes;
}

void
bh_test_get(struct bh_test_authenticator *device, const char *challenge, const struct bh_webauthn_user *user,
            struct bh_test_response *ret_response)
{
    struct bh_buf out;

    memset(ret_response, 0, sizeof *ret_response);
    device->counter++;
    put_client(device, "webauthn.get", challenge, ret_response);
    bh_buf_init_fixed(&out, ret_response->authenticator, sizeof ret_response->authenticator);
    put_head(&out, device, device->flags);
    ret_response->authenticator_bytes = out.length;
    authenticator_test_sign(device, ret_response);
    memcpy(ret_response->id, device->id, device->id_bytes);
    ret_response->id_bytes = device->id_bytes;
    memcpy(ret_response->user, user->handle, user->handle_bytes);
    ret_response->user_bytes = user->handle_bytes;
}

static const char *
authenticator_test_encode(struct bh_test_response *response, size_t text, const uint8_t *bytes, size_t length)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, response->texts[text], sizeof response->texts[text]);
    bh_base64url_encode(&out, bytes, length);
    return bh_buf_text(&out);
}

struct bh_webauthn_response
bh_test_response_encode(struct bh_test_response *response)
{
    struct bh_webauthn_response answer = {
        .authenticator_data =
            authenticator_test_encode(response, 0, response->authenticator, response->authenticator_bytes),
        .client_data = authenticator_test_encode(response, 1, response->client, response->client_bytes),
        .credential = authenticator_test_encode(response, 2, response->id, response->id_bytes),
    };

    if (response->signature_bytes > 0)
        answer.signature =
            authenticator_test_encode(response, 3, response->signature, response->signature_bytes);
    if (response->user_bytes > 0)
        answer.user_handle = authenticator_test_encode(response, 4, response->user, response->user_bytes);
    return answer;
}

void
bh_test_response_put_json(struct bh_test_response *response, struct bh_buf *out)
{
    struct bh_webauthn_response answer = bh_test_response_encode(response);

    bh_json_encode(out, &bh_webauthn_response_fields, &answer);
}
