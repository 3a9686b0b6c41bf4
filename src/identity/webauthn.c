#include "identity/webauthn.h"

#include <string.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"
#include "identity/webauthn_internal.h"

enum { AUTHENTICATOR_HEAD = 37, ATTESTED_HEAD = 18, HASH_BYTES = 32 };

#define ENCODED(bytes) (((bytes)*4 + 2) / 3)
#define ANSWER(member, bytes, ...)                                                                           \
    BH_F(struct bh_webauthn_response, member, BH_FIELD_TEXT, .max = ENCODED(bytes), __VA_ARGS__)

static const struct bh_field answer_fields[] = {
    ANSWER(authenticator_data, BH_WEBAUTHN_AUTHENTICATOR_MAX, .flags = BH_FIELD_REQUIRED),
    ANSWER(challenge, BH_WEBAUTHN_HANDLE_MAX, .flags = 0),
    ANSWER(client_data, BH_WEBAUTHN_CLIENT_MAX, .flags = BH_FIELD_REQUIRED),
    ANSWER(credential, BH_PASSKEY_ID_BYTES_MAX, .flags = BH_FIELD_REQUIRED),
    ANSWER(name, BH_PASSKEY_NAME_MAX, .flags = 0),
    ANSWER(signature, BH_WEBAUTHN_SIGNATURE_MAX, .flags = 0),
    ANSWER(transports, BH_PASSKEY_TRANSPORTS_MAX, .flags = 0),
    ANSWER(user_handle, BH_WEBAUTHN_HANDLE_MAX, .flags = 0),
};
const struct bh_fields bh_webauthn_response_fields =
    BH_FIELDS("webauthn_answer", struct bh_webauthn_response, answer_fields);

void
bh_webauthn_begin(struct bh_webauthn *ceremony, enum bh_webauthn_kind kind,
                  const uint8_t random[BH_SECRET_BYTES], bh_ns now)
{
    *ceremony = (struct bh_webauthn){ .kind = kind, .begun = now };
    bh_secret_text(random, ceremony->challenge);
}

/* "internal,hybrid" as a list. */
static void
webauthn_put_transports(struct bh_json_writer *w, const char *transports)
{
    if (!transports[0])
        return;
    bh_json_open(w, "transports", '[');
    for (size_t word; *transports; transports += word + (transports[word] == ',')) {
        word = strcspn(transports, ",");
        bh_json_strn(w, NULL, transports, word);
    }
    bh_json_close(w, ']');
}

static void
webauthn_put_passkeys(struct bh_json_writer *w, const char *key, const struct bh_passkeys *passkeys)
{
    bh_json_open(w, key, '[');
    for (uint32_t i = 0; i < passkeys->count; i++) {
        bh_json_open(w, NULL, '{');
        bh_json_str(w, "id", passkeys->items[i].id);
        webauthn_put_transports(w, passkeys->items[i].transports);
        bh_json_str(w, "type", "public-key");
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
}

static void
webauthn_put_algorithms(struct bh_json_writer *w)
{
    bh_json_open(w, "pubKeyCredParams", '[');
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        bh_json_open(w, NULL, '{');
        bh_json_i64(w, "alg", bh_passkey_alg_cose(alg));
        bh_json_str(w, "type", "public-key");
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
}

static void
webauthn_put_user(struct bh_json_writer *w, const struct bh_webauthn_user *user)
{
    char handle[ENCODED(BH_WEBAUTHN_HANDLE_MAX) + 1];
    struct bh_buf text;

    BH_ASSERT(user->handle_bytes >= BH_WEBAUTHN_HANDLE_MIN && user->handle_bytes <= BH_WEBAUTHN_HANDLE_MAX);
    bh_buf_init_fixed(&text, handle, sizeof handle);
    bh_base64url_encode(&text, user->handle, user->handle_bytes);
    bh_json_open(w, "user", '{');
    bh_json_str(w, "displayName", user->name);
    bh_json_str(w, "id", bh_buf_text(&text));
    bh_json_str(w, "name", user->name);
    bh_json_close(w, '}');
}

void
bh_webauthn_put_creation(struct bh_buf *out, const struct bh_webauthn_site *site,
                         const struct bh_webauthn_user *user, const struct bh_passkeys *known,
                         const struct bh_webauthn *ceremony)
{
    struct bh_json_writer w = bh_json_begin(out);

    BH_ASSERT(ceremony->kind == BH_WEBAUTHN_CREATE && !ceremony->used);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "attestation", "none");
    bh_json_open(&w, "authenticatorSelection", '{');
    bh_json_str(&w, "residentKey", "preferred");
    bh_json_str(&w, "userVerification", "required");
    bh_json_close(&w, '}');
    bh_json_str(&w, "challenge", ceremony->challenge);
    webauthn_put_passkeys(&w, "excludeCredentials", known);
    webauthn_put_algorithms(&w);
    bh_json_open(&w, "rp", '{');
    bh_json_str(&w, "id", site->id);
    bh_json_str(&w, "name", site->name);
    bh_json_close(&w, '}');
    bh_json_u64(&w, "timeout", BH_WEBAUTHN_SECONDS * UINT64_C(1000));
    webauthn_put_user(&w, user);
    bh_json_close(&w, '}');
}

void
bh_webauthn_put_request(struct bh_buf *out, const struct bh_webauthn_site *site,
                        const struct bh_passkeys *known, const struct bh_webauthn *ceremony)
{
    struct bh_json_writer w = bh_json_begin(out);

    BH_ASSERT(ceremony->kind == BH_WEBAUTHN_GET && !ceremony->used);
    bh_json_open(&w, NULL, '{');
    webauthn_put_passkeys(&w, "allowCredentials", known);
    bh_json_str(&w, "challenge", ceremony->challenge);
    bh_json_str(&w, "rpId", site->id);
    bh_json_u64(&w, "timeout", BH_WEBAUTHN_SECONDS * UINT64_C(1000));
    bh_json_str(&w, "userVerification", "required");
    bh_json_close(&w, '}');
}

enum bh_identity_fault
bh_webauthn_parse(const char *text, size_t length, enum bh_webauthn_kind kind, struct bh_arena *arena,
                  struct bh_webauthn_response *ret_answer)
{
    struct bh_webauthn_response answer;
    struct bh_err err;

    if (bh_json_decode(text, length, &bh_webauthn_response_fields, &answer, arena, &err) != BH_OK)
        return BH_FAULT_WEBAUTHN_JSON;
    if (kind == BH_WEBAUTHN_CREATE ? answer.signature || answer.user_handle
                                   : !answer.signature || answer.name || answer.transports)
        return BH_FAULT_WEBAUTHN_JSON;
    *ret_answer = answer;
    return BH_FAULT_NONE;
}

/* Decode a text into `memory`, which `ret_bytes` then shows. */
static bool
webauthn_decode(const char *text, void *memory, size_t size, struct bh_webauthn_bytes *ret_bytes)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, size);
    if (!bh_base64url_decode(&out, text, strlen(text)))
        return false;
    *ret_bytes = (struct bh_webauthn_bytes){ memory, out.length };
    return true;
}

/* The id of a new credential; its key and whatever else follows stay in *left. */
static bool
webauthn_decode_id(struct bh_webauthn_bytes *left, struct bh_webauthn_authenticator *parts)
{
    const uint8_t *at = left->bytes;

    if (left->length < ATTESTED_HEAD)
        return false;
    parts->aaguid = at;
    parts->id_bytes = (size_t)at[16] << 8 | at[17];
    parts->id = at + ATTESTED_HEAD;
    if (left->length - ATTESTED_HEAD < parts->id_bytes)
        return false;
    left->bytes += ATTESTED_HEAD + parts->id_bytes;
    left->length -= ATTESTED_HEAD + parts->id_bytes;
    return true;
}

/* False when the bytes end too early, or continue where nothing may follow. */
static bool
webauthn_decode_authenticator(const struct bh_webauthn_bytes *data,
                              struct bh_webauthn_authenticator *ret_parts)
{
    const uint8_t *at = data->bytes;
    struct bh_webauthn_bytes left;

    if (data->length < AUTHENTICATOR_HEAD)
        return false;
    *ret_parts = (struct bh_webauthn_authenticator){
        .rp_hash = at,
        .flags = at[HASH_BYTES],
        .counter = (uint32_t)at[33] << 24 | (uint32_t)at[34] << 16 | (uint32_t)at[35] << 8 | at[36],
    };
    left = (struct bh_webauthn_bytes){ at + AUTHENTICATOR_HEAD, data->length - AUTHENTICATOR_HEAD };
    if (ret_parts->flags & BH_PASSKEY_ATTESTED
        && (!webauthn_decode_id(&left, ret_parts) || !bh_webauthn_cbor_skip_map(&left)))
        return false;
    if (ret_parts->flags & BH_PASSKEY_EXTENDED && !bh_webauthn_cbor_skip_map(&left))
        return false;
    return left.length == 0;
}

/* Checks of both kinds: for this site, a user was present, and was verified. */
static enum bh_identity_fault
webauthn_check_parts(const struct bh_webauthn_site *site, const struct bh_webauthn_authenticator *parts)
{
    char hash[BH_SECRET_TEXT], want[BH_SECRET_TEXT];

    bh_secret_text(parts->rp_hash, hash);
    bh_secret_challenge(site->id, want);
    if (strcmp(hash, want) != 0)
        return BH_FAULT_WEBAUTHN_RP;
    if (!(parts->flags & BH_PASSKEY_PRESENT))
        return BH_FAULT_WEBAUTHN_PRESENT;
    if (!(parts->flags & BH_PASSKEY_VERIFIED))
        return BH_FAULT_WEBAUTHN_VERIFIED;
    if (parts->flags & BH_PASSKEY_SYNCED && !(parts->flags & BH_PASSKEY_SYNCABLE))
        return BH_FAULT_WEBAUTHN_BACKUP;
    return BH_FAULT_NONE;
}

/* The credential that the authenticator made; its id must be the one that the browser
 * names. */
static enum bh_identity_fault
webauthn_decode_credential(const struct bh_webauthn_bytes *data,
                           const struct bh_webauthn_authenticator *parts, const char *id,
                           struct bh_passkey *passkey)
{
    struct bh_buf text;

    if (!parts->id)
        return BH_FAULT_WEBAUTHN_AUTHENTICATOR;
    if (parts->id_bytes == 0 || parts->id_bytes > BH_PASSKEY_ID_BYTES_MAX)
        return BH_FAULT_WEBAUTHN_ID;
    bh_buf_init_fixed(&text, passkey->id, sizeof passkey->id);
    bh_base64url_encode(&text, parts->id, parts->id_bytes);
    if (strcmp(bh_buf_text(&text), id) != 0)
        return BH_FAULT_WEBAUTHN_ID;
    if (!bh_webauthn_key_read(data, passkey))
        return BH_FAULT_WEBAUTHN_KEY;
    memcpy(passkey->aaguid, parts->aaguid, sizeof passkey->aaguid);
    passkey->counter = parts->counter;
    passkey->flags = parts->flags;
    return BH_FAULT_NONE;
}

enum bh_identity_fault
bh_webauthn_register(const struct bh_webauthn_site *site, struct bh_webauthn *ceremony,
                     const struct bh_webauthn_response *answer, bh_ns now, struct bh_passkey *ret_passkey)
{
    uint8_t client_memory[BH_WEBAUTHN_CLIENT_MAX], memory[BH_WEBAUTHN_AUTHENTICATOR_MAX];
    struct bh_passkey passkey = { .created = now };
    const char *name = answer->name ? answer->name : "passkey";
    struct bh_webauthn_authenticator parts;
    struct bh_webauthn_bytes client, data;
    enum bh_identity_fault fault;

    BH_ASSERT(ceremony->kind == BH_WEBAUTHN_CREATE);
    if (!webauthn_decode(answer->client_data, client_memory, sizeof client_memory, &client)
        || !webauthn_decode(answer->authenticator_data, memory, sizeof memory, &data))
        return BH_FAULT_WEBAUTHN_ENCODING;
    fault = bh_webauthn_client_check(site, ceremony, &client, now);
    if (fault != BH_FAULT_NONE)
        return fault;
    if (!webauthn_decode_authenticator(&data, &parts))
        return BH_FAULT_WEBAUTHN_AUTHENTICATOR;
    fault = webauthn_check_parts(site, &parts);
    if (fault == BH_FAULT_NONE)
        fault = webauthn_decode_credential(&data, &parts, answer->credential, &passkey);
    if (fault == BH_FAULT_NONE && !bh_passkey_name_check(name))
        fault = BH_FAULT_PASSKEY_NAME;
    if (fault != BH_FAULT_NONE)
        return fault;
    memcpy(passkey.name, name, strlen(name) + 1);
    if (answer->transports && bh_passkey_transports_check(answer->transports))
        memcpy(passkey.transports, answer->transports, strlen(answer->transports) + 1);
    *ret_passkey = passkey;
    return BH_FAULT_NONE;
}

/* The handle is missing where the authenticator does not keep it. */
static enum bh_identity_fault
webauthn_check_user(const struct bh_webauthn_user *user, const char *text)
{
    uint8_t memory[BH_WEBAUTHN_HANDLE_MAX];
    struct bh_webauthn_bytes handle;

    if (!text)
        return BH_FAULT_NONE;
    if (!webauthn_decode(text, memory, sizeof memory, &handle))
        return BH_FAULT_WEBAUTHN_ENCODING;
    if (handle.length != user->handle_bytes
        || !bh_secret_equal_bytes(handle.bytes, user->handle, handle.length))
        return BH_FAULT_WEBAUTHN_USER;
    return BH_FAULT_NONE;
}

/* The passkey that answers, and whether it may: WebAuthn 3, 7.2, steps 5 to 19. */
static enum bh_identity_fault
webauthn_check_assertion(const struct bh_webauthn_owner *owner, const struct bh_webauthn_authenticator *parts,
                         const struct bh_webauthn_response *answer, const struct bh_passkey *passkey)
{
    enum bh_identity_fault fault = webauthn_check_user(owner->user, answer->user_handle);

    if (fault == BH_FAULT_NONE)
        fault = webauthn_check_parts(owner->site, parts);
    if (fault != BH_FAULT_NONE)
        return fault;
    return (parts->flags ^ passkey->flags) & BH_PASSKEY_SYNCABLE ? BH_FAULT_WEBAUTHN_BACKUP : BH_FAULT_NONE;
}

static void
webauthn_update(const struct bh_passkey *passkey, const struct bh_webauthn_authenticator *parts, bh_ns now,
                struct bh_webauthn_proof *ret_proof)
{
    uint32_t before = passkey->counter, reported = parts->counter;

    ret_proof->passkey = *passkey;
    ret_proof->cloned = (before > 0 || reported > 0) && reported <= before;
    ret_proof->passkey.counter = reported > before ? reported : before;
    ret_proof->passkey.flags = parts->flags;
    ret_proof->passkey.used = now;
}

enum bh_identity_fault
bh_webauthn_assert(const struct bh_webauthn_owner *owner, struct bh_webauthn *ceremony,
                   const struct bh_webauthn_response *answer, bh_ns now, struct bh_webauthn_proof *ret_proof)
{
    uint8_t client[BH_WEBAUTHN_CLIENT_MAX], data[BH_WEBAUTHN_AUTHENTICATOR_MAX];
    uint8_t signature[BH_WEBAUTHN_SIGNATURE_MAX];
    struct bh_webauthn_signed what = { .site = owner->site->id };
    const struct bh_passkey *passkey;
    struct bh_webauthn_authenticator parts;
    enum bh_identity_fault fault;

    BH_ASSERT(ceremony->kind == BH_WEBAUTHN_GET);
    if (!webauthn_decode(answer->client_data, client, sizeof client, &what.client)
        || !webauthn_decode(answer->authenticator_data, data, sizeof data, &what.authenticator)
        || !webauthn_decode(answer->signature, signature, sizeof signature, &what.signature))
        return BH_FAULT_WEBAUTHN_ENCODING;
    fault = bh_webauthn_client_check(owner->site, ceremony, &what.client, now);
    if (fault != BH_FAULT_NONE)
        return fault;
    passkey = bh_passkeys_find(&owner->passkeys, answer->credential);
    if (!passkey)
        return BH_FAULT_WEBAUTHN_UNKNOWN;
    if (!webauthn_decode_authenticator(&what.authenticator, &parts))
        return BH_FAULT_WEBAUTHN_AUTHENTICATOR;
    fault = webauthn_check_assertion(owner, &parts, answer, passkey);
    if (fault == BH_FAULT_NONE && !bh_webauthn_key_verify(passkey, &what))
        fault = BH_FAULT_WEBAUTHN_SIGNATURE;
    if (fault == BH_FAULT_NONE)
        webauthn_update(passkey, &parts, now, ret_proof);
    return fault;
}
