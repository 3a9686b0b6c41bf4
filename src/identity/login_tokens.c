#include "identity/login.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"

/* What a token endpoint's error says about what to do. */
static enum bh_identity_fault
refusal(const struct bh_https_response *answer)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_err err;
    const char *error = "";

    if (answer->status < 400 || answer->status > 499)
        return BH_FAULT_PROVIDER_DOWN;
    if (bh_json_parse(answer->body, answer->length, &json, &err) == BH_OK)
        error = bh_json_text(bh_json_get(bh_json_root(json), "error"), "");
    return strcmp(error, "invalid_grant") == 0 ? BH_FAULT_GRANT_REFUSED : BH_FAULT_CLIENT_REFUSED;
}

/* An optional text of at most `max` bytes without blanks or control characters. */
static bool
login_tokens_read_token(bh_json_value json, const char *name, struct bh_arena *arena, const char **ret_text)
{
    bh_json_value value = bh_json_get(json, name);
    const char *text = bh_json_text(value, NULL);

    *ret_text = NULL;
    if (!value)
        return true;
    if (!text || !text[0] || strlen(text) > BH_JWS_BYTES_MAX)
        return false;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
            return false;
    *ret_text = bh_arena_strdup(arena, text);
    return *ret_text != NULL;
}

static enum bh_identity_fault
read_tokens(bh_json_value json, bool id_token_needed, struct bh_arena *arena, struct bh_tokens *tokens)
{
    int64_t expires_s = bh_json_integer(bh_json_get(json, "expires_in"), 0);

    if (bh_json_kind(json) != BH_JSON_OBJECT)
        return BH_FAULT_RESPONSE_JSON;
    if (!login_tokens_read_token(json, "access_token", arena, &tokens->access)
        || !login_tokens_read_token(json, "id_token", arena, &tokens->id)
        || !login_tokens_read_token(json, "refresh_token", arena, &tokens->refresh) || expires_s < 0)
        return BH_FAULT_RESPONSE_VALUE;
    if ((tokens->access && strlen(tokens->access) > BH_TOKEN_TEXT_MAX)
        || (tokens->refresh && strlen(tokens->refresh) > BH_TOKEN_TEXT_MAX))
        return BH_FAULT_RESPONSE_VALUE;
    if (!tokens->access || strcasecmp(bh_json_text(bh_json_get(json, "token_type"), ""), "Bearer") != 0)
        return BH_FAULT_RESPONSE_TYPE;
    if (id_token_needed && !tokens->id)
        return BH_FAULT_RESPONSE_ID_TOKEN;
    tokens->expires_s = (uint64_t)expires_s;
    return BH_FAULT_NONE;
}

enum bh_identity_fault
bh_tokens_receive(const struct bh_https_response *answer, bool id_token_needed, struct bh_arena *arena,
                  struct bh_tokens *ret_tokens)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_tokens tokens = { 0 };
    enum bh_identity_fault fault;
    struct bh_err err;

    if (answer->status != 200)
        return refusal(answer);
    if (bh_json_parse(answer->body, answer->length, &json, &err) != BH_OK)
        return BH_FAULT_RESPONSE_JSON;
    fault = read_tokens(bh_json_root(json), id_token_needed, arena, &tokens);
    if (fault == BH_FAULT_NONE)
        *ret_tokens = tokens;
    return fault;
}

enum bh_identity_fault
bh_userinfo_check(const struct bh_https_response *answer, const char *subject)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_err err;

    if (answer->status != 200)
        return BH_FAULT_PROVIDER_DOWN;
    if (bh_json_parse(answer->body, answer->length, &json, &err) != BH_OK)
        return BH_FAULT_RESPONSE_JSON;
    return strcmp(bh_json_text(bh_json_get(bh_json_root(json), "sub"), ""), subject) == 0
               ? BH_FAULT_NONE
               : BH_FAULT_USERINFO_SUB;
}
