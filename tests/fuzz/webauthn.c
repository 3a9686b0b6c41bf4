/* What browsers answer to passkey ceremonies.  The first byte says what the rest is:
 * an answer to a creation or a request, raw authenticator data, raw client data. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/base64.h"
#include "identity/webauthn.h"
#include "tests/fuzz/fuzz.h"

static const bh_ns now = 1790000000 * BH_NS_PER_S;

/* A passkey whose private half is lost, and what it signed once, for the
 * challenge of zeros. */
static const char kept[] = "{\"aaguid\":\"a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0\",\"alg\":\"EdDSA\",\"counter\":7,"
                           "\"created\":\"1790000000000000000\",\"flags\":69,"
                           "\"id\":\"gYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYE\","
                           "\"key\":\"8-XWETMk4Q676FuxokEY4lYJlZn80tWGQp948uLwSqY\",\"name\":\"passkey\"}";
static const char signed_part[] = "2g6G25t39riQcCAGrYSlXRbJHtLEbCv1SmQIoLROTKgFAAAACA";

static const char *origins[] = { "https://gpu.example" };
static const struct bh_webauthn_site site = { "gpu.example", "GPUs", { origins, 1 } };
static const struct bh_webauthn_user user = { "0123456789abcdef", 16, "ada" };

static void
begin(struct bh_webauthn *ceremony, enum bh_webauthn_kind kind)
{
    static const uint8_t zeros[BH_SECRET_BYTES];

    bh_webauthn_begin(ceremony, kind, zeros, now);
}

/* What was registered can be kept and is read again as the same. */
static void
take_creation(const struct bh_webauthn_response *answer, struct bh_arena *arena)
{
    struct bh_passkey passkey = { 0 }, again = { 0 };
    struct bh_webauthn ceremony;
    char text[BH_PASSKEY_JSON_MAX];
    struct bh_buf out;

    begin(&ceremony, BH_WEBAUTHN_CREATE);
    if (bh_webauthn_register(&site, &ceremony, answer, now, &passkey) != BH_FAULT_NONE)
        return;
    BH_ASSERT(ceremony.used);
    bh_buf_init_fixed(&out, text, sizeof text);
    bh_passkey_encode(&out, &passkey);
    BH_ASSERT(bh_buf_text(&out));
    BH_ASSERT(bh_passkey_decode(text, out.length, arena, &again) == BH_FAULT_NONE);
    BH_ASSERT(strcmp(again.id, answer->credential) == 0 && strcmp(again.key, passkey.key) == 0);
}

static void
read_creation(const char *text, size_t length, struct bh_arena *arena)
{
    struct bh_webauthn_response answer;

    if (bh_webauthn_parse(text, length, BH_WEBAUTHN_CREATE, arena, &answer) == BH_FAULT_NONE)
        take_creation(&answer, arena);
}

/* Nothing is accepted but what was signed. */
static void
read_request(const char *text, size_t length, struct bh_arena *arena)
{
    struct bh_webauthn_response answer;
    struct bh_webauthn_proof proof;
    struct bh_webauthn_owner owner = { &site, &user, { NULL, 1 } };
    struct bh_webauthn ceremony;
    struct bh_passkey passkey;

    BH_ASSERT(bh_passkey_decode(kept, strlen(kept), arena, &passkey) == BH_FAULT_NONE);
    owner.passkeys.items = &passkey;
    begin(&ceremony, BH_WEBAUTHN_GET);
    if (bh_webauthn_parse(text, length, BH_WEBAUTHN_GET, arena, &answer) == BH_FAULT_NONE
        && bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof) == BH_FAULT_NONE)
        BH_ASSERT(strcmp(answer.authenticator_data, signed_part) == 0 && !proof.cloned);
}

static const char *
encode(struct bh_buf *out, const void *bytes, size_t length)
{
    bh_buf_clear(out);
    bh_base64url_encode(out, bytes, length);
    return bh_buf_text(out);
}

static void
read_authenticator(const char *bytes, size_t length, struct bh_arena *arena)
{
    static const char client[] = "{\"type\":\"webauthn.create\",\"origin\":\"https://gpu.example\","
                                 "\"challenge\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}";
    struct bh_buf texts[3];
    struct bh_webauthn_response answer = { 0 };
    size_t id_bytes = 0;

    for (size_t i = 0; i < BH_COUNT(texts); i++)
        bh_buf_init(&texts[i], 1 << 18);
    if (length >= 55)
        id_bytes = (size_t)(uint8_t)bytes[53] << 8 | (uint8_t)bytes[54];
    if (length < 55 || id_bytes > length - 55)
        id_bytes = 0;
    answer.authenticator_data = encode(&texts[0], bytes, length);
    answer.client_data = encode(&texts[1], client, strlen(client));
    answer.credential = encode(&texts[2], id_bytes ? bytes + 55 : bytes, id_bytes);
    take_creation(&answer, arena);
    for (size_t i = 0; i < BH_COUNT(texts); i++)
        bh_buf_fini(&texts[i]);
}

/* With authenticator data that is none, client data that is good is all that gets by. */
static void
read_client(const char *bytes, size_t length, struct bh_arena *arena)
{
    struct bh_webauthn_response answer = { .authenticator_data = "AA", .credential = "AA" };
    struct bh_webauthn ceremony;
    struct bh_passkey passkey;
    struct bh_buf text;

    bh_buf_init(&text, 1 << 18);
    begin(&ceremony, BH_WEBAUTHN_CREATE);
    answer.client_data = encode(&text, bytes, length);
    if (bh_webauthn_register(&site, &ceremony, &answer, now, &passkey) == BH_FAULT_WEBAUTHN_AUTHENTICATOR) {
        BH_ASSERT(ceremony.used);
        BH_ASSERT(memmem(bytes, length, "gpu.example", strlen("gpu.example"))
                  || memchr(bytes, '\\', length)); /* \u0067 is g */
    }
    bh_buf_fini(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[128])(const char *text, size_t length, struct bh_arena *arena) = {
        ['c'] = read_creation,
        ['g'] = read_request,
        ['a'] = read_authenticator,
        ['d'] = read_client,
    };
    struct bh_arena *arena;
    char *text;

    if (size < 1 || size > 1 << 14 || data[0] > 127 || !readers[data[0]])
        return 0;
    text = malloc(size); /* of exactly this size, so that reading on is noticed */
    BH_ASSERT(text);
    memcpy(text, data + 1, size - 1);
    arena = bh_arena_new(1 << 20);
    readers[data[0]](text, size - 1, arena);
    bh_arena_free(arena);
    free(text);
    return 0;
}
