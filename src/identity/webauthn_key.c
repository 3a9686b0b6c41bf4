#include <string.h>

#include <fido.h>
#include <fido/eddsa.h>
#include <fido/es256.h>
#include <fido/rs256.h>
#include <openssl/err.h>

#include "base/assert.h"
#include "base/base64.h"
#include "identity/webauthn_internal.h"

static inline void
cred_free_auto(fido_cred_t **place)
{
    fido_cred_free(place);
}

static inline void
assert_free_auto(fido_assert_t **place)
{
    fido_assert_free(place);
}

/* libfido2's key from our bytes, of the type that its verifier takes for the algorithm. */
struct public_key {
    enum bh_passkey_alg alg;
    es256_pk_t *es256;
    eddsa_pk_t *eddsa;
    rs256_pk_t *rs256;
};

static inline void
key_fini_auto(struct public_key *key)
{
    es256_pk_free(&key->es256);
    eddsa_pk_free(&key->eddsa);
    rs256_pk_free(&key->rs256);
}

/* False when the bytes are no public key. */
static bool
key_init(struct public_key *key, enum bh_passkey_alg alg, const void *bytes, size_t length)
{
    *key = (struct public_key){ .alg = alg };
    switch (alg) {
    case BH_PASSKEY_ES256:
        key->es256 = es256_pk_new();
        return key->es256 && es256_pk_from_ptr(key->es256, bytes, length) == FIDO_OK;
    case BH_PASSKEY_EDDSA:
        key->eddsa = eddsa_pk_new();
        return key->eddsa && eddsa_pk_from_ptr(key->eddsa, bytes, length) == FIDO_OK;
    case BH_PASSKEY_RS256:
        key->rs256 = rs256_pk_new();
        return key->rs256 && rs256_pk_from_ptr(key->rs256, bytes, length) == FIDO_OK;
    case BH_PASSKEY_ALGS:
        break;
    }
    return false;
}

static const void *
key_pointer(const struct public_key *key)
{
    if (key->es256)
        return key->es256;
    return key->eddsa ? (const void *)key->eddsa : key->rs256;
}

/* The key, when it is of that algorithm. */
static bool
webauthn_key_take_key(const struct bh_webauthn_bytes *authenticator, enum bh_passkey_alg alg,
                      struct bh_passkey *ret_passkey)
{
    BH_AUTO(cred_free)
    fido_cred_t *cred = fido_cred_new();
    BH_AUTO(key_fini)
    struct public_key key = { 0 };
    struct bh_buf text;

    if (!cred || fido_cred_set_type(cred, bh_passkey_alg_cose(alg)) != FIDO_OK
        || fido_cred_set_authdata_raw(cred, authenticator->bytes, authenticator->length) != FIDO_OK
        || fido_cred_pubkey_len(cred) != bh_passkey_key_bytes(alg)
        || !key_init(&key, alg, fido_cred_pubkey_ptr(cred), fido_cred_pubkey_len(cred)))
        return false;
    bh_buf_init_fixed(&text, ret_passkey->key, sizeof ret_passkey->key);
    bh_base64url_encode(&text, fido_cred_pubkey_ptr(cred), fido_cred_pubkey_len(cred));
    BH_ASSERT(bh_buf_text(&text));
    ret_passkey->alg = alg;
    return true;
}

bool
bh_webauthn_key_read(const struct bh_webauthn_bytes *authenticator, struct bh_passkey *ret_passkey)
{
    bool taken = false;

    fido_init(0);
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS && !taken; alg++)
        taken = webauthn_key_take_key(authenticator, alg, ret_passkey);
    ERR_clear_error();
    return taken;
}

/* The bytes of a stored key; a passkey that was decoded or registered has good ones. */
static void
webauthn_key_key_of(const struct bh_passkey *passkey, struct public_key *ret_key)
{
    char memory[BH_PASSKEY_KEY_TEXT];
    struct bh_buf bytes;
    bool good;

    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    good = bh_base64url_decode(&bytes, passkey->key, strlen(passkey->key));
    BH_ASSERT(good);
    if (!key_init(ret_key, passkey->alg, bytes.bytes, bytes.length))
        ret_key->alg = BH_PASSKEY_ALGS;
}

bool
bh_webauthn_key_verify(const struct bh_passkey *passkey, const struct bh_webauthn_signed *what)
{
    BH_AUTO(assert_free)
    fido_assert_t *proof = fido_assert_new();
    BH_AUTO(key_fini)
    struct public_key key = { 0 };
    bool good;

    fido_init(0);
    webauthn_key_key_of(passkey, &key);
    good = proof && key.alg != BH_PASSKEY_ALGS
           && fido_assert_set_clientdata(proof, what->client.bytes, what->client.length) == FIDO_OK
           && fido_assert_set_rp(proof, what->site) == FIDO_OK && fido_assert_set_count(proof, 1) == FIDO_OK
           && fido_assert_set_authdata_raw(proof, 0, what->authenticator.bytes, what->authenticator.length)
                  == FIDO_OK
           && fido_assert_set_sig(proof, 0, what->signature.bytes, what->signature.length) == FIDO_OK
           && fido_assert_set_up(proof, FIDO_OPT_TRUE) == FIDO_OK
           && fido_assert_set_uv(proof, FIDO_OPT_TRUE) == FIDO_OK
           && fido_assert_verify(proof, 0, bh_passkey_alg_cose(passkey->alg), key_pointer(&key)) == FIDO_OK;
    ERR_clear_error();
    return good;
}
