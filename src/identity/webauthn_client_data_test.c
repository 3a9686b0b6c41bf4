#include "base/test.h"
#include "identity/authenticator_test.h"

static const bh_ns now = 1790000000 * BH_NS_PER_S;
static const char *origins[] = { "https://gpu.example" };
static const struct bh_webauthn_site site = { "gpu.example", "Example's GPUs", { origins, 1 } };
static struct bh_test_response response;

/* Client data that no browser writes. */
static const struct {
    const char *name, *text; /* %s is the challenge */
    enum bh_identity_fault fault;
} written[] = {
    { "only what is needed",
      "{\"challenge\":\"%s\",\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.create\"}",
      BH_FAULT_NONE },
    { "in a frame",
      "{\"challenge\":\"%s\",\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.create\",\"crossOrigin\":true}",
      BH_FAULT_WEBAUTHN_CROSS_ORIGIN },
    { "in a frame, as text",
      "{\"challenge\":\"%s\",\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.create\",\"crossOrigin\":\"false\"}",
      BH_FAULT_WEBAUTHN_CROSS_ORIGIN },
    { "in a frame, null",
      "{\"challenge\":\"%s\",\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.create\",\"crossOrigin\":null}",
      BH_FAULT_WEBAUTHN_CROSS_ORIGIN },
    { "no challenge", "{\"origin\":\"https://gpu.example\",\"type\":\"webauthn.create\"}",
      BH_FAULT_WEBAUTHN_CHALLENGE },
    { "challenge with padding",
      "{\"challenge\":\"%s=\",\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.create\"}",
      BH_FAULT_WEBAUTHN_CHALLENGE },
    { "challenges, a list",
      "{\"challenge\":[\"%s\"],\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.create\"}",
      BH_FAULT_WEBAUTHN_CHALLENGE },
    { "no origin", "{\"challenge\":\"%s\",\"type\":\"webauthn.create\"}", BH_FAULT_WEBAUTHN_ORIGIN },
    { "origin a list",
      "{\"challenge\":\"%s\",\"origin\":[\"https://gpu.example\"],"
      "\"type\":\"webauthn.create\"}",
      BH_FAULT_WEBAUTHN_ORIGIN },
    { "no type", "{\"challenge\":\"%s\",\"origin\":\"https://gpu.example\"}", BH_FAULT_WEBAUTHN_TYPE },
    { "an answer to the other question",
      "{\"challenge\":\"%s\",\"origin\":\"https://gpu.example\","
      "\"type\":\"webauthn.get\"}",
      BH_FAULT_WEBAUTHN_TYPE },
    { "a list", "[\"%s\"]", BH_FAULT_WEBAUTHN_CLIENT },
    { "nothing", "", BH_FAULT_WEBAUTHN_CLIENT },
    { "no JSON", "challenge=%s", BH_FAULT_WEBAUTHN_CLIENT },
    { "a byte order mark", "\xef\xbb\xbf{\"challenge\":\"%s\"}", BH_FAULT_WEBAUTHN_CLIENT },
    { "no UTF-8", "{\"challenge\":\"%s\",\"a\":\"\xff\"}", BH_FAULT_WEBAUTHN_CLIENT },
};

static void
client_data(void **state)
{
    static const uint8_t random[BH_SECRET_BYTES] = { 1 };
    struct bh_test_authenticator device;
    struct bh_passkey passkey;

    bh_test_authenticator_init(&device, BH_PASSKEY_EDDSA);
    for (size_t i = 0; i < BH_COUNT(written); i++) {
        struct bh_webauthn_response answer;
        struct bh_webauthn ceremony;
        const char *mark = strstr(written[i].text, "%s");
        size_t head = mark ? (size_t)(mark - written[i].text) : strlen(written[i].text);

        bh_webauthn_begin(&ceremony, BH_WEBAUTHN_CREATE, random, now);
        bh_test_create(&device, ceremony.challenge, &response);
        response.client_bytes =
            (size_t)snprintf((char *)response.client, sizeof response.client, "%.*s%s%s", (int)head,
                             written[i].text, mark ? ceremony.challenge : "", mark ? mark + 2 : "");
        answer = bh_test_response_encode(&response);
        BH_CHECK_EQ(written[i].name, bh_webauthn_register(&site, &ceremony, &answer, now, &passkey),
                    written[i].fault);
    }
    bh_test_authenticator_fini(&device);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(client_data) };

BH_TEST_MAIN(tests)
