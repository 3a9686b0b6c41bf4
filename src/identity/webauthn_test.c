#include "identity/webauthn.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/test.h"
#include "identity/authenticator_test.h"

enum { NOW_S = 1790000000 };

static const bh_ns now = NOW_S * BH_NS_PER_S;
static const char *origins[] = { "https://gpu.example", "https://www.gpu.example:8443" };
static const struct bh_webauthn_site site = { "gpu.example", "Example's GPUs", { origins, 2 } };
static const struct bh_webauthn_user user = { "0123456789abcdef", 16, "ada" };

static struct bh_test_authenticator devices[BH_PASSKEY_ALGS];
static struct bh_passkey passkeys[BH_PASSKEY_ALGS]; /* what the devices registered */
static struct bh_test_response response;

static void
webauthn_test_begin(struct bh_webauthn *ceremony, enum bh_webauthn_kind kind)
{
    static uint8_t random[BH_SECRET_BYTES];

    random[0]++;
    bh_webauthn_begin(ceremony, kind, random, now);
}

/* Ask, let the device answer, take the answer. */
static enum bh_identity_fault
webauthn_test_create(struct bh_test_authenticator *device, struct bh_passkey *ret_passkey)
{
    struct bh_webauthn_response answer;
    struct bh_webauthn ceremony;

    webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
    bh_test_create(device, ceremony.challenge, &response);
    answer = bh_test_response_encode(&response);
    answer.name = "Ada's key";
    answer.transports = "internal,hybrid";
    return bh_webauthn_register(&site, &ceremony, &answer, now, ret_passkey);
}

static struct bh_webauthn_owner
webauthn_test_owner_of(const struct bh_passkey *passkey)
{
    return (struct bh_webauthn_owner){ &site, &user, { passkey, 1 } };
}

static enum bh_identity_fault
webauthn_test_get(struct bh_test_authenticator *device, const struct bh_passkey *passkey,
                  struct bh_webauthn_proof *ret_proof)
{
    struct bh_webauthn_owner owner = webauthn_test_owner_of(passkey);
    struct bh_webauthn_response answer;
    struct bh_webauthn ceremony;

    webauthn_test_begin(&ceremony, BH_WEBAUTHN_GET);
    bh_test_get(device, ceremony.challenge, &user, &response);
    answer = bh_test_response_encode(&response);
    return bh_webauthn_assert(&owner, &ceremony, &answer, now, ret_proof);
}

static int
webauthn_test_set_up(void **state)
{
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        bh_test_authenticator_init(&devices[alg], alg);
        if (webauthn_test_create(&devices[alg], &passkeys[alg]) != BH_FAULT_NONE)
            return 1;
    }
    return 0;
}

static int
webauthn_test_tear_down(void **state)
{
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++)
        bh_test_authenticator_fini(&devices[alg]);
    return 0;
}

static void
options(void **state)
{
    static const uint8_t random[BH_SECRET_BYTES] = { 0xff };
    static const struct bh_passkey known[] = { { .id = "aaaa" }, { .id = "_-8", .transports = "usb,nfc" } };
    static const struct bh_passkeys both = { known, 2 };
    struct bh_webauthn ceremony;
    char text[2048];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_webauthn_begin(&ceremony, BH_WEBAUTHN_CREATE, random, now);
    bh_webauthn_put_creation(&out, &site, &user, &both, &ceremony);
    BH_CHECK_STR("creation", bh_buf_text(&out),
                 "{\"attestation\":\"none\",\"authenticatorSelection\":{\"residentKey\":"
                 "\"preferred\",\"userVerification\":\"required\"},\"challenge\":"
                 "\"_wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"excludeCredentials\":"
                 "[{\"id\":\"aaaa\",\"type\":\"public-key\"},{\"id\":\"_-8\",\"transports\":["
                 "\"usb\",\"nfc\"],\"type\":"
                 "\"public-key\"}],\"pubKeyCredParams\":[{\"alg\":-7,\"type\":\"public-key\"}"
                 ",{\"alg\":-8,\"type\":\"public-key\"},{\"alg\":-257,\"type\":"
                 "\"public-key\"}],\"rp\":{\"id\":\"gpu.example\",\"name\":"
                 "\"Example's GPUs\"},\"timeout\":300000,\"user\":{\"displayName\":\"ada\","
                 "\"id\":\"MDEyMzQ1Njc4OWFiY2RlZg\",\"name\":\"ada\"}}");
    bh_buf_clear(&out);
    bh_webauthn_begin(&ceremony, BH_WEBAUTHN_GET, random, now);
    bh_webauthn_put_request(&out, &site, &both, &ceremony);
    BH_CHECK_STR("request", bh_buf_text(&out),
                 "{\"allowCredentials\":[{\"id\":\"aaaa\",\"type\":\"public-key\"},{\"id\":"
                 "\"_-8\",\"transports\":[\"usb\",\"nfc\"],\"type\":\"public-key\"}],\"challenge\":"
                 "\"_wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"rpId\":"
                 "\"gpu.example\",\"timeout\":300000,\"userVerification\":\"required\"}");
    BH_CHECK_DONE();
}

static void
good(void **state)
{
    static const struct bh_passkey untouched = { .created = 1 };
    struct bh_webauthn_proof proof;

    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        const char *name = bh_passkey_alg_name(alg);
        const struct bh_passkey *passkey = &passkeys[alg];

        BH_CHECK_EQ(name, passkey->alg, alg);
        BH_CHECK_EQ(name, passkey->counter, 7);
        BH_CHECK_EQ(name, passkey->flags, 0x45);
        BH_CHECK_EQ(name, passkey->aaguid[15], 0xa0);
        BH_CHECK_EQ(name, passkey->created, now);
        BH_CHECK_STR(name, passkey->name, "Ada's key");
        BH_CHECK_STR(name, passkey->transports, "internal,hybrid");
        proof.passkey = untouched;
        BH_CHECK_EQ(name, webauthn_test_get(&devices[alg], passkey, &proof), BH_FAULT_NONE);
        BH_CHECK_EQ(name, proof.cloned, false);
        BH_CHECK_EQ(name, proof.passkey.counter, devices[alg].counter);
        BH_CHECK_EQ(name, proof.passkey.flags, 0x05);
        BH_CHECK_EQ(name, proof.passkey.used, now);
        BH_CHECK_STR(name, proof.passkey.key, passkey->key);
    }
    BH_CHECK_DONE();
}

/* One thing about browser or authenticator changed at a time.  A passkey is registered in
 * the good state before. */
static void
webauthn_test_refused(void **state)
{
    static const struct row {
        const char *name, *site, *origin, *type, *more;
        enum bh_identity_fault fault;
        uint8_t flags; /* 0: good ones */
    } rows[] = {
        { .name = "as it should be" },
        { .name = "another origin of ours", .origin = "https://www.gpu.example:8443" },
        { .name = "no members more", .more = "" },
        { .name = "syncable", .flags = 0x0d, .fault = BH_FAULT_WEBAUTHN_BACKUP },
        { "rp id", "gpu.exampl", NULL, NULL, NULL, BH_FAULT_WEBAUTHN_RP, 0 },
        { "rp id below", "www.gpu.example", NULL, NULL, NULL, BH_FAULT_WEBAUTHN_RP, 0 },
        { "origin", NULL, "https://gpu.example.evil", NULL, NULL, BH_FAULT_WEBAUTHN_ORIGIN, 0 },
        { "origin's scheme", NULL, "http://gpu.example", NULL, NULL, BH_FAULT_WEBAUTHN_ORIGIN, 0 },
        { "origin's port", NULL, "https://gpu.example:8443", NULL, NULL, BH_FAULT_WEBAUTHN_ORIGIN, 0 },
        { "origin with a path", NULL, "https://gpu.example/", NULL, NULL, BH_FAULT_WEBAUTHN_ORIGIN, 0 },
        { "origin empty", NULL, "", NULL, NULL, BH_FAULT_WEBAUTHN_ORIGIN, 0 },
        { "origin null", NULL, "null", NULL, NULL, BH_FAULT_WEBAUTHN_ORIGIN, 0 },
        { "type of a payment", NULL, NULL, "payment.get", NULL, BH_FAULT_WEBAUTHN_TYPE, 0 },
        { "type empty", NULL, NULL, "", NULL, BH_FAULT_WEBAUTHN_TYPE, 0 },
        { "top origin", NULL, NULL, NULL, ",\"topOrigin\":\"https://evil.example\"",
          BH_FAULT_WEBAUTHN_CROSS_ORIGIN, 0 },
        { "token binding", NULL, NULL, NULL, ",\"tokenBinding\":{\"status\":\"supported\"}",
          BH_FAULT_WEBAUTHN_TOKEN_BINDING, 0 },
        { "a key twice", NULL, NULL, NULL, ",\"type\":\"webauthn.get\"", BH_FAULT_WEBAUTHN_CLIENT, 0 },
        { "a member behind", NULL, NULL, NULL, "} {", BH_FAULT_WEBAUTHN_CLIENT, 0 },
        { "not touched", NULL, NULL, NULL, NULL, BH_FAULT_WEBAUTHN_PRESENT, 0x04 },
        { "not verified", NULL, NULL, NULL, NULL, BH_FAULT_WEBAUTHN_VERIFIED, 0x01 },
        { "neither", NULL, NULL, NULL, NULL, BH_FAULT_WEBAUTHN_PRESENT, 0x20 },
        { "synced but not syncable", NULL, NULL, NULL, NULL, BH_FAULT_WEBAUTHN_BACKUP, 0x15 },
    };
    struct bh_passkey passkey;
    struct bh_webauthn_proof proof;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_test_authenticator device = devices[BH_PASSKEY_ES256];
        const struct row *row = &rows[i];
        bool syncable = row->flags == 0x0d; /* fine when it always was */

        device.site = row->site ? row->site : device.site;
        device.origin = row->origin ? row->origin : device.origin;
        device.type = row->type;
        device.more = row->more ? row->more : device.more;
        device.flags = row->flags ? row->flags : device.flags;
        BH_CHECK_EQ(row->name, webauthn_test_create(&device, &passkey),
                    syncable ? BH_FAULT_NONE : row->fault);
        BH_CHECK_EQ(row->name, webauthn_test_get(&device, &passkeys[BH_PASSKEY_ES256], &proof), row->fault);
    }
    BH_CHECK_DONE();
}

/* A challenge counts once, and for 5 minutes. */
static void
once(void **state)
{
    struct bh_test_authenticator *device = &devices[BH_PASSKEY_ES256];
    struct bh_webauthn ceremony, other;
    struct bh_webauthn_response answer;
    struct bh_passkey passkey;
    const bh_ns end = now + BH_WEBAUTHN_SECONDS * BH_NS_PER_S;

    webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
    webauthn_test_begin(&other, BH_WEBAUTHN_CREATE);
    bh_test_create(device, ceremony.challenge, &response);
    answer = bh_test_response_encode(&response);
    BH_CHECK_EQ("another's", bh_webauthn_register(&site, &other, &answer, now, &passkey),
                BH_FAULT_WEBAUTHN_CHALLENGE);
    BH_CHECK_EQ("is not used up by that", other.used, false);
    BH_CHECK_EQ("the last moment", bh_webauthn_register(&site, &ceremony, &answer, end, &passkey), 0);
    BH_CHECK_STR("a name there is", passkey.name, "passkey");
    BH_CHECK_EQ("again", bh_webauthn_register(&site, &ceremony, &answer, now, &passkey),
                BH_FAULT_WEBAUTHN_USED);
    ceremony.used = false;
    BH_CHECK_EQ("too late", bh_webauthn_register(&site, &ceremony, &answer, end + 1, &passkey),
                BH_FAULT_WEBAUTHN_EXPIRED);
    BH_CHECK_EQ("used up by that", ceremony.used, true);
    ceremony.used = false;
    BH_CHECK_EQ("before it began", bh_webauthn_register(&site, &ceremony, &answer, now - 1, &passkey),
                BH_FAULT_WEBAUTHN_EXPIRED);
    ceremony.used = false;
    answer.transports = "USB";
    BH_CHECK_EQ("transports that are none", bh_webauthn_register(&site, &ceremony, &answer, now, &passkey),
                0);
    BH_CHECK_STR("are left out", passkey.transports, "");
    ceremony.used = false;
    answer.name = "";
    BH_CHECK_EQ("what is wrong behind the challenge",
                bh_webauthn_register(&site, &ceremony, &answer, now, &passkey), BH_FAULT_PASSKEY_NAME);
    BH_CHECK_EQ("uses it up, too", ceremony.used, true);
    BH_CHECK_DONE();
}

/* No bit of what a passkey signed can be another. */
static void
flip_assertion(const char *name, struct bh_test_authenticator *device, uint8_t *bytes, size_t length)
{
    struct bh_webauthn_owner owner = webauthn_test_owner_of(&passkeys[device->alg]);
    struct bh_webauthn_response answer;
    struct bh_webauthn_proof proof;
    struct bh_webauthn ceremony;

    webauthn_test_begin(&ceremony, BH_WEBAUTHN_GET);
    bh_test_get(device, ceremony.challenge, &user, &response);
    if (bytes == response.signature)
        length = response.signature_bytes;
    if (bytes == response.client)
        length = response.client_bytes;
    for (size_t bit = 0; bit < 8 * length; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        answer = bh_test_response_encode(&response);
        ceremony.used = false;
        if (bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof) == BH_FAULT_NONE)
            BH_CHECK_EQ(name, bit, -1);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    answer = bh_test_response_encode(&response);
    ceremony.used = false;
    BH_CHECK_EQ(name, bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof), 0);
}

static void
flipped_assertions(void **state)
{
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        flip_assertion("authenticator data", &devices[alg], response.authenticator, 37);
        flip_assertion("signature", &devices[alg], response.signature, 0);
        flip_assertion("client data", &devices[alg], response.client, 0);
        flip_assertion("id", &devices[alg], response.id, 32);
        flip_assertion("user handle", &devices[alg], response.user, 16);
    }
    BH_CHECK_DONE();
}

/* A new credential is not signed (attestation "none"); but the registered one is what was sent, in every
 * bit. */
static void
flipped_creations(void **state)
{
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        struct bh_webauthn ceremony;

        webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
        bh_test_create(&devices[alg], ceremony.challenge, &response);
        for (size_t bit = 0; bit < 8 * response.authenticator_bytes; bit++) {
            struct bh_passkey passkey = { 0 }, same = passkeys[alg];
            struct bh_webauthn_response answer;

            same.counter = devices[alg].counter;
            response.authenticator[bit / 8] ^= (uint8_t)(1 << bit % 8);
            ceremony.used = false;
            answer = bh_test_response_encode(&response);
            answer.name = "Ada's key";
            answer.transports = "internal,hybrid";
            if (bh_webauthn_register(&site, &ceremony, &answer, now, &passkey) == BH_FAULT_NONE
                && memcmp(&passkey, &same, sizeof same) == 0)
                BH_CHECK_EQ(bh_passkey_alg_name(alg), bit, -1);
            response.authenticator[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    BH_CHECK_DONE();
}

/* Cut anywhere, or with a byte behind, nothing is a credential or an assertion. */
static void
webauthn_test_cut(void **state)
{
    for (enum bh_passkey_alg alg = 0; alg < BH_PASSKEY_ALGS; alg++) {
        struct bh_webauthn_owner owner = webauthn_test_owner_of(&passkeys[alg]);
        struct bh_webauthn_response answer;
        struct bh_webauthn_proof proof;
        struct bh_passkey passkey;
        struct bh_webauthn ceremony;
        size_t whole;

        webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
        bh_test_create(&devices[alg], ceremony.challenge, &response);
        for (whole = response.authenticator_bytes--; response.authenticator_bytes > 0;
             response.authenticator_bytes--) {
            ceremony.used = false;
            answer = bh_test_response_encode(&response);
            BH_CHECK("cut", bh_webauthn_register(&site, &ceremony, &answer, now, &passkey));
        }
        webauthn_test_begin(&ceremony, BH_WEBAUTHN_GET);
        bh_test_get(&devices[alg], ceremony.challenge, &user, &response);
        for (whole = response.signature_bytes, response.signature_bytes = 1;
             response.signature_bytes <= whole + 1; response.signature_bytes++) {
            ceremony.used = false;
            answer = bh_test_response_encode(&response);
            BH_CHECK_EQ("signature", bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof) == 0,
                        response.signature_bytes == whole);
        }
        response.signature_bytes = whole;
        response.authenticator_bytes = 38;
        ceremony.used = false;
        answer = bh_test_response_encode(&response);
        BH_CHECK_EQ("a byte behind", bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof),
                    BH_FAULT_WEBAUTHN_AUTHENTICATOR);
    }
    BH_CHECK_DONE();
}

static void
counters(void **state)
{
    static const struct {
        const char *name;
        uint32_t stored, seen, kept;
        bool cloned;
    } rows[] = {
        { "neither counts", 0, 0, 0, false }, { "begins to count", 0, 1, 1, false },
        { "grows", 5, 6, 6, false },          { "grows by much", 5, UINT32_MAX, UINT32_MAX, false },
        { "stands still", 5, 5, 5, true },    { "goes back", 5, 4, 5, true },
        { "stops counting", 5, 0, 5, true },  { "is at its end", UINT32_MAX, UINT32_MAX, UINT32_MAX, true },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_test_authenticator device = devices[BH_PASSKEY_EDDSA];
        struct bh_passkey passkey = passkeys[BH_PASSKEY_EDDSA];
        struct bh_webauthn_proof proof;

        device.counter = rows[i].seen - 1;
        passkey.counter = rows[i].stored;
        BH_CHECK_EQ(rows[i].name, webauthn_test_get(&device, &passkey, &proof), BH_FAULT_NONE);
        BH_CHECK_EQ(rows[i].name, proof.cloned, rows[i].cloned);
        BH_CHECK_EQ(rows[i].name, proof.passkey.counter, rows[i].kept);
    }
    BH_CHECK_DONE();
}

/* Synced or not may change, syncable may not. */
static void
backups(void **state)
{
    static const struct {
        const char *name;
        uint8_t registered, seen;
        enum bh_identity_fault fault;
    } rows[] = {
        { "stays alone", 0x45, 0x05, BH_FAULT_NONE },
        { "becomes synced", 0x4d, 0x1d, BH_FAULT_NONE },
        { "is synced no more", 0x5d, 0x0d, BH_FAULT_NONE },
        { "becomes syncable", 0x45, 0x0d, BH_FAULT_WEBAUTHN_BACKUP },
        { "is syncable no more", 0x4d, 0x05, BH_FAULT_WEBAUTHN_BACKUP },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_test_authenticator device = devices[BH_PASSKEY_EDDSA];
        struct bh_passkey passkey = passkeys[BH_PASSKEY_EDDSA];
        struct bh_webauthn_proof proof = { .cloned = true };

        device.flags = rows[i].seen;
        passkey.flags = rows[i].registered;
        BH_CHECK_EQ(rows[i].name, webauthn_test_get(&device, &passkey, &proof), rows[i].fault);
        if (rows[i].fault == BH_FAULT_NONE)
            BH_CHECK_EQ(rows[i].name, proof.passkey.flags, rows[i].seen);
    }
    BH_CHECK_DONE();
}

/* A good assertion, held against the wrong owner. */
static void
owners(void **state)
{
    static const struct bh_webauthn_user other = { "0123456789abcdeg", 16, "eve" },
                                         longer = { "0123456789abcdef0", 17, "ada" };
    struct bh_passkey swapped = passkeys[BH_PASSKEY_ES256];
    struct bh_passkey both[] = { passkeys[BH_PASSKEY_RS256], passkeys[BH_PASSKEY_ES256] };
    const struct {
        const char *name;
        const struct bh_webauthn_user *user;
        struct bh_passkeys passkeys;
        enum bh_identity_fault fault;
    } rows[] = {
        { "the second of two", &user, { both, 2 }, BH_FAULT_NONE },
        { "another account", &other, { both, 2 }, BH_FAULT_WEBAUTHN_USER },
        { "a longer handle", &longer, { both, 2 }, BH_FAULT_WEBAUTHN_USER },
        { "a passkey that was removed", &user, { both, 1 }, BH_FAULT_WEBAUTHN_UNKNOWN },
        { "no passkey", &user, { NULL, 0 }, BH_FAULT_WEBAUTHN_UNKNOWN },
        { "another key of that id", &user, { &swapped, 1 }, BH_FAULT_WEBAUTHN_SIGNATURE },
    };
    struct bh_test_authenticator *device = &devices[BH_PASSKEY_ES256], attacker;

    bh_test_authenticator_init(&attacker, BH_PASSKEY_ES256);
    assert_int_equal(webauthn_test_create(&attacker, &swapped), BH_FAULT_NONE);
    bh_test_authenticator_fini(&attacker);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_webauthn_owner owner = { &site, rows[i].user, rows[i].passkeys };
        struct bh_webauthn_response answer;
        struct bh_webauthn_proof proof;
        struct bh_webauthn ceremony;

        webauthn_test_begin(&ceremony, BH_WEBAUTHN_GET);
        bh_test_get(device, ceremony.challenge, &user, &response);
        answer = bh_test_response_encode(&response);
        BH_CHECK_EQ(rows[i].name, bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof), rows[i].fault);
        ceremony.used = false;
        answer.user_handle = NULL;
        BH_CHECK_EQ(rows[i].name, bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof),
                    rows[i].fault == BH_FAULT_WEBAUTHN_USER ? BH_FAULT_NONE : rows[i].fault);
    }
    BH_CHECK_DONE();
}

/* Ids of every allowed length, and what is none. */
static void
ids(void **state)
{
    static const struct {
        const char *name;
        uint32_t bytes;
        enum bh_identity_fault fault;
    } rows[] = {
        { "one byte", 1, BH_FAULT_NONE },
        { "the longest", BH_PASSKEY_ID_BYTES_MAX, BH_FAULT_NONE },
        { "none", 0, BH_FAULT_WEBAUTHN_ID },
    };
    struct bh_passkey passkey;
    struct bh_webauthn ceremony;
    struct bh_webauthn_response answer;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_test_authenticator device = devices[BH_PASSKEY_EDDSA];

        device.id_bytes = rows[i].bytes;
        BH_CHECK_EQ(rows[i].name, webauthn_test_create(&device, &passkey), rows[i].fault);
    }
    webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
    bh_test_create(&devices[0], ceremony.challenge, &response);
    response.id[0]++;
    answer = bh_test_response_encode(&response);
    BH_CHECK_EQ("not the one that the browser names",
                bh_webauthn_register(&site, &ceremony, &answer, now, &passkey), BH_FAULT_WEBAUTHN_ID);
    memset(&response.authenticator[53], 0xff, 2);
    ceremony.used = false;
    answer = bh_test_response_encode(&response);
    BH_CHECK_EQ("longer than there are bytes", bh_webauthn_register(&site, &ceremony, &answer, now, &passkey),
                BH_FAULT_WEBAUTHN_AUTHENTICATOR);
    BH_CHECK_DONE();
}

/* Keys that are none, or of no accepted algorithm. */
static void
webauthn_test_keys(void **state)
{
    enum { COSE = 55 + 32 }; /* where the key begins */
    static const struct {
        const char *name;
        enum bh_passkey_alg alg;
        size_t at;
        uint8_t flip;
    } rows[] = {
        { "a point off its curve", BH_PASSKEY_ES256, COSE + 10, 1 },
        { "kty of another", BH_PASSKEY_ES256, COSE + 2, 3 },
        { "alg -9", BH_PASSKEY_ES256, COSE + 4, 0x26 ^ 0x28 },
        { "alg -8, ES256's key", BH_PASSKEY_ES256, COSE + 4, 0x26 ^ 0x27 },
        { "curve P-384", BH_PASSKEY_ES256, COSE + 6, 3 },
        { "alg -7, Ed25519's key", BH_PASSKEY_EDDSA, COSE + 4, 0x26 ^ 0x27 },
        { "alg -258", BH_PASSKEY_RS256, COSE + 6, 1 },
    };
    struct bh_webauthn_response answer;
    struct bh_webauthn ceremony;
    struct bh_passkey passkey;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
        bh_test_create(&devices[rows[i].alg], ceremony.challenge, &response);
        response.authenticator[rows[i].at] ^= rows[i].flip;
        answer = bh_test_response_encode(&response);
        BH_CHECK_EQ(rows[i].name, bh_webauthn_register(&site, &ceremony, &answer, now, &passkey),
                    BH_FAULT_WEBAUTHN_KEY);
    }
    BH_CHECK_DONE();
}

/* What follows a new key: nothing, or with ED one map of extensions. */
static void
extensions(void **state)
{
    static const struct {
        const char *name, *bytes;
        size_t length;
        bool extended, good;
    } rows[] = {
        { "none", "", 0, false, true },
        { "a byte behind", "\0", 1, false, false },
        { "a map without the flag", "\xa0", 1, false, false },
        { "the flag without a map", "", 0, true, false },
        { "an empty map", "\xa0", 1, true, true },
        { "credProtect 2",
          "\xa1\x6b"
          "credProtect\x02",
          14, true, true },
        { "and a byte behind",
          "\xa1\x6b"
          "credProtect\x02\0",
          15, true, false },
        { "a list", "\x80", 1, true, false },
        { "cut off",
          "\xa1\x6b"
          "credProtect",
          13, true, false },
        { "a map of 2^32 items", "\xba\xff\xff\xff\xff", 5, true, false },
        { "a text of 2^64 - 1 bytes", "\xa1\x7b\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, true, false },
        { "a length of a form that is reserved", "\xbc\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17, true, false },
        { "a map without an end", "\xbf\x61x\x01\xff", 5, true, false },
        { "five deep", "\xa1\x61x\x81\x81\x81\x80", 7, true, false },
    };
    struct bh_webauthn_response answer;
    struct bh_webauthn ceremony;
    struct bh_passkey passkey;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        webauthn_test_begin(&ceremony, BH_WEBAUTHN_CREATE);
        bh_test_create(&devices[BH_PASSKEY_EDDSA], ceremony.challenge, &response);
        memcpy(response.authenticator + response.authenticator_bytes, rows[i].bytes, rows[i].length);
        response.authenticator_bytes += rows[i].length;
        response.authenticator[32] |= rows[i].extended ? BH_PASSKEY_EXTENDED : 0;
        answer = bh_test_response_encode(&response);
        BH_CHECK_EQ(rows[i].name, bh_webauthn_register(&site, &ceremony, &answer, now, &passkey),
                    rows[i].good ? BH_FAULT_NONE : BH_FAULT_WEBAUTHN_AUTHENTICATOR);
    }
    BH_CHECK_DONE();
}

/* Where what is between the quotes is neither base64url nor short enough. */
static void
encodings(void **state)
{
    static const char *const texts[] = { "A", "AA==", "AB", "A+AA", "A AA" };
    struct bh_test_authenticator *device = &devices[BH_PASSKEY_EDDSA];
    struct bh_webauthn_owner owner = webauthn_test_owner_of(&passkeys[BH_PASSKEY_EDDSA]);
    struct bh_webauthn_response answer;
    struct bh_webauthn_proof proof;
    struct bh_webauthn ceremony;
    const char **members[] = { &answer.authenticator_data, &answer.client_data, &answer.signature,
                               &answer.user_handle };
    char large[8192];

    memset(large, 'A', sizeof large);
    large[sizeof large - 4] = '\0';
    webauthn_test_begin(&ceremony, BH_WEBAUTHN_GET);
    bh_test_get(device, ceremony.challenge, &user, &response);
    for (size_t i = 0; i < BH_COUNT(members); i++)
        for (size_t k = 0; k <= BH_COUNT(texts); k++) {
            const char *text = k < BH_COUNT(texts) ? texts[k] : large;

            answer = bh_test_response_encode(&response);
            *members[i] = text;
            ceremony.used = false;
            BH_CHECK_EQ(text, bh_webauthn_assert(&owner, &ceremony, &answer, now, &proof),
                        BH_FAULT_WEBAUTHN_ENCODING);
        }
    BH_CHECK_DONE();
}

static void
json(void **state)
{
    static const struct {
        const char *name, *text;
        bool creation, request;
    } rows[] = {
        { "creation", "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\"}", true,
          false },
        { "creation with a name",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"name\":\"a\"}",
          true, false },
        { "assertion",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"signature\":\"AA\"}",
          false, true },
        { "assertion with a user",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"signature\":\"AA\","
          "\"user_handle\":\"AA\"}",
          false, true },
        { "a user without a signature",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"user_handle\":\"AA\"}",
          false, false },
        { "assertion with a name",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"name\":\"a\","
          "\"signature\":\"AA\"}",
          false, false },
        { "no id", "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\"}", false, false },
        { "unknown member",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"x\":1}",
          false, false },
        { "twice",
          "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":\"AA\","
          "\"credential\":\"AA\"}",
          false, false },
        { "no text", "{\"authenticator_data\":\"AA\",\"client_data\":\"AA\",\"credential\":1}", false,
          false },
        { "no JSON", "id=AA", false, false },
    };

    BH_CHECK("ordered", bh_fields_ordered(&bh_webauthn_response_fields));
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        BH_AUTO(bh_arena_free)
        struct bh_arena *arena = bh_arena_new(1 << 16);
        struct bh_webauthn_response answer;
        size_t length = strlen(rows[i].text);

        BH_CHECK_EQ(rows[i].name,
                    bh_webauthn_parse(rows[i].text, length, BH_WEBAUTHN_CREATE, arena, &answer)
                        == BH_FAULT_NONE,
                    rows[i].creation);
        BH_CHECK_EQ(rows[i].name,
                    bh_webauthn_parse(rows[i].text, length, BH_WEBAUTHN_GET, arena, &answer) == BH_FAULT_NONE,
                    rows[i].request);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(good),
        cmocka_unit_test(webauthn_test_refused),
        cmocka_unit_test(once),
        cmocka_unit_test(flipped_assertions),
        cmocka_unit_test(flipped_creations),
        cmocka_unit_test(webauthn_test_cut),
        cmocka_unit_test(counters),
        cmocka_unit_test(backups),
        cmocka_unit_test(owners),
        cmocka_unit_test(ids),
        cmocka_unit_test(webauthn_test_keys),
        cmocka_unit_test(extensions),
        cmocka_unit_test(encodings),
        cmocka_unit_test(json),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, webauthn_test_set_up, webauthn_test_tear_down);
}
