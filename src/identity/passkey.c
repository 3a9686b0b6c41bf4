#include "identity/passkey.h"

#include <string.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"

static const char *const alg_names[BH_PASSKEY_ALGS] = {
    [BH_PASSKEY_ES256] = "ES256",
    [BH_PASSKEY_EDDSA] = "EdDSA",
    [BH_PASSKEY_RS256] = "RS256",
};
static const struct {
    int32_t cose;
    size_t key_bytes;
} algs[BH_PASSKEY_ALGS] = {
    [BH_PASSKEY_ES256] = { -7, 64 },
    [BH_PASSKEY_EDDSA] = { -8, 32 },
    [BH_PASSKEY_RS256] = { -257, 259 },
};

static const struct bh_field fields[] = {
    BH_F(struct bh_passkey, aaguid, BH_FIELD_HEX, .flags = BH_FIELD_REQUIRED),
    BH_F_ENUM(struct bh_passkey, alg, alg_names, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, counter, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, created, BH_FIELD_NS, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, flags, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, id, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, key, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, name, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_passkey, transports, BH_FIELD_STR),
    BH_F(struct bh_passkey, used, BH_FIELD_NS),
};
const struct bh_fields bh_passkey_fields = BH_FIELDS("passkey", struct bh_passkey, fields);

const char *
bh_passkey_alg_name(enum bh_passkey_alg alg)
{
    BH_ASSERT(alg < BH_PASSKEY_ALGS);
    return alg_names[alg];
}

int32_t
bh_passkey_alg_cose(enum bh_passkey_alg alg)
{
    BH_ASSERT(alg < BH_PASSKEY_ALGS);
    return algs[alg].cose;
}

size_t
bh_passkey_key_bytes(enum bh_passkey_alg alg)
{
    BH_ASSERT(alg < BH_PASSKEY_ALGS);
    return algs[alg].key_bytes;
}

bool
bh_passkey_name_check(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= BH_PASSKEY_NAME_MAX && bh_utf8_is_shown(name);
}

bool
bh_passkey_transports_check(const char *transports)
{
    size_t word;

    if (strlen(transports) > BH_PASSKEY_TRANSPORTS_MAX)
        return false;
    while (*transports) {
        word = strspn(transports, "abcdefghijklmnopqrstuvwxyz-");
        if (word == 0)
            return false;
        transports += word;
        if (*transports == ',' && transports[1])
            transports++;
        else if (*transports)
            return false;
    }
    return true;
}

const struct bh_passkey *
bh_passkeys_find(const struct bh_passkeys *passkeys, const char *id)
{
    for (uint32_t i = 0; i < passkeys->count; i++)
        if (strcmp(passkeys->items[i].id, id) == 0)
            return &passkeys->items[i];
    return NULL;
}

void
bh_passkey_encode(struct bh_buf *out, const struct bh_passkey *passkey)
{
    bh_json_encode(out, &bh_passkey_fields, passkey);
}

/* How many bytes a base64url text encodes; SIZE_MAX when it is none. */
static size_t
decoded_bytes(const char *text)
{
    char memory[BH_PASSKEY_ID_TEXT];
    struct bh_buf bytes;

    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    return bh_base64url_decode(&bytes, text, strlen(text)) ? bytes.length : SIZE_MAX;
}

/* One that was given when more was let through signs in still. */
static bool
is_kept_name(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= BH_PASSKEY_NAME_MAX && bh_utf8_is_valid(name);
}

enum bh_identity_fault
bh_passkey_decode(const char *text, size_t length, struct bh_arena *arena, struct bh_passkey *ret_passkey)
{
    struct bh_err err;
    size_t id_bytes;

    if (bh_json_decode(text, length, &bh_passkey_fields, ret_passkey, arena, &err) != BH_OK)
        return BH_FAULT_PASSKEY_STORED;
    id_bytes = decoded_bytes(ret_passkey->id);
    if (id_bytes == 0 || id_bytes > BH_PASSKEY_ID_BYTES_MAX
        || decoded_bytes(ret_passkey->key) != algs[ret_passkey->alg].key_bytes
        || ret_passkey->flags > UINT8_MAX || !is_kept_name(ret_passkey->name)
        || !bh_passkey_transports_check(ret_passkey->transports))
        return BH_FAULT_PASSKEY_STORED;
    return BH_FAULT_NONE;
}
