#include <string.h>

#include "base/json.h"
#include "identity/webauthn_internal.h"

static bool
webauthn_client_data_has_text(const struct bh_texts *texts, const char *text)
{
    for (uint32_t i = 0; i < texts->count; i++)
        if (strcmp(texts->items[i], text) == 0)
            return true;
    return false;
}

static enum bh_identity_fault
check_challenge(struct bh_webauthn *ceremony, bh_json_value root, bh_ns now)
{
    if (!bh_secret_equal(bh_json_text(bh_json_get(root, "challenge"), ""), ceremony->challenge))
        return BH_FAULT_WEBAUTHN_CHALLENGE;
    if (ceremony->used)
        return BH_FAULT_WEBAUTHN_USED;
    ceremony->used = true;
    if (now < ceremony->begun || now - ceremony->begun > BH_WEBAUTHN_SECONDS * BH_NS_PER_S)
        return BH_FAULT_WEBAUTHN_EXPIRED;
    return BH_FAULT_NONE;
}

/* Other sites cannot show these pages in a frame, so no answer comes from within one. */
static enum bh_identity_fault
check_origin(const struct bh_webauthn_site *site, bh_json_value root)
{
    bh_json_value cross = bh_json_get(root, "crossOrigin");

    if (!webauthn_client_data_has_text(&site->origins, bh_json_text(bh_json_get(root, "origin"), "")))
        return BH_FAULT_WEBAUTHN_ORIGIN;
    if (cross && (bh_json_kind(cross) != BH_JSON_BOOL || bh_json_truth(cross)))
        return BH_FAULT_WEBAUTHN_CROSS_ORIGIN;
    if (bh_json_get(root, "topOrigin"))
        return BH_FAULT_WEBAUTHN_CROSS_ORIGIN;
    return bh_json_get(root, "tokenBinding") ? BH_FAULT_WEBAUTHN_TOKEN_BINDING : BH_FAULT_NONE;
}

/* Members that are not named here are passed over: browsers add some, to keep servers from
 * comparing the text as a whole. */
enum bh_identity_fault
bh_webauthn_client_check(const struct bh_webauthn_site *site, struct bh_webauthn *ceremony,
                         const struct bh_webauthn_bytes *client, bh_ns now)
{
    static const char *const types[] = {
        [BH_WEBAUTHN_CREATE] = "webauthn.create", [BH_WEBAUTHN_GET] = "webauthn.get"
    };
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    enum bh_identity_fault fault;
    struct bh_err err;
    bh_json_value root;

    if (bh_json_parse((const char *)client->bytes, client->length, &json, &err) != BH_OK)
        return BH_FAULT_WEBAUTHN_CLIENT;
    root = bh_json_root(json);
    if (bh_json_kind(root) != BH_JSON_OBJECT)
        return BH_FAULT_WEBAUTHN_CLIENT;
    if (strcmp(bh_json_text(bh_json_get(root, "type"), ""), types[ceremony->kind]) != 0)
        return BH_FAULT_WEBAUTHN_TYPE;
    fault = check_challenge(ceremony, root, now);
    return fault == BH_FAULT_NONE ? check_origin(site, root) : fault;
}
