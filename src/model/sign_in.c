#include "model/sign_in.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "model/ids.h"
#include "model/path.h"

#define MINUTE_NS (UINT64_C(60) * 1000000000)
#define DAY_NS (1440 * MINUTE_NS)

enum { URL_MAX = 1023, VERB_MAX = 40 };

const char *const bh_level_names[BH_LEVELS] = { "none", "code", "passkey" };

static const char *const rule_names[BH_FACTOR_RULES] = {
    [BH_FACTOR_OPTIONAL] = "optional",
    [BH_FACTOR_CODE] = "code",
    [BH_FACTOR_PASSKEY] = "passkey",
};

static const char *const auth_names[BH_CLIENT_AUTHS] = {
    [BH_CLIENT_NONE] = "none",
    [BH_CLIENT_BASIC] = "client_secret_basic",
    [BH_CLIENT_KEY] = "private_key_jwt",
};

static const struct bh_field issuer_rows[] = {
    BH_F_ENUM(struct bh_site_issuer, client_auth, auth_names,
              .doc =
                  "how Bulkhead authenticates to it; client_secret_basic where a secret is named, else none"),
    BH_F(struct bh_site_issuer, client_id, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = 255,
         .doc = "the client id that Bulkhead is registered with"),
    BH_F(struct bh_site_issuer, client_secret, BH_FIELD_TEXT, .max = 63,
         .doc = "name of the file in bulkheadd's secrets_dir that holds the secret or key"),
    BH_F(struct bh_site_issuer, groups_claim, BH_FIELD_TEXT, .max = 255,
         .doc = "claim with a user's groups; \"groups\" when absent"),
    BH_F(struct bh_site_issuer, loopback, BH_FIELD_BOOL, .doc = "allow http on this machine, for trials"),
    BH_F(struct bh_site_issuer, name, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_NAME_MAX,
         .doc = "\"corp\"; names of users and groups begin with it"),
    BH_F(struct bh_site_issuer, scope, BH_FIELD_TEXT, .max = 255,
         .doc = "scopes to request; \"openid profile\" when absent"),
    BH_F(struct bh_site_issuer, second_factor, BH_FIELD_BOOL,
         .doc = "it asks for a second factor at every sign-in: Bulkhead asks for none"),
    BH_F(struct bh_site_issuer, url, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = URL_MAX,
         .doc = "its issuer: \"https://id.example.org/realms/main\""),
};
static const struct bh_fields issuer_fields = BH_FIELDS("issuer", struct bh_site_issuer, issuer_rows);

static const struct bh_field step_up_rows[] = {
    BH_F_ENUM(struct bh_site_step_up, level, bh_level_names, .flags = BH_FIELD_REQUIRED,
              .doc = "required factor: none, code or passkey"),
    BH_F(struct bh_site_step_up, verb, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = VERB_MAX,
         .doc = "\"site.apply\""),
    BH_F(struct bh_site_step_up, within, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "how recent it must be: \"5m\" when absent"),
};
static const struct bh_fields step_up_fields = BH_FIELDS("step_up", struct bh_site_step_up, step_up_rows);

static const struct bh_field sign_in_rows[] = {
    BH_F(struct bh_site_sign_in, address, BH_FIELD_TEXT, .max = URL_MAX,
         .doc = "of this site for browsers: \"https://gpu.example.org\"; providers redirect to it, and "
                "passkeys are bound to it"),
    BH_F_ENUM(
        struct bh_site_sign_in, factor, rule_names,
        .doc =
            "second factor of local accounts: code (or a passkey), passkey, or optional; code when absent"),
    BH_F(struct bh_site_sign_in, idle, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "a session ends after this time without use; \"30m\" when absent"),
    BH_F(struct bh_site_sign_in, issuers, BH_FIELD_LIST, .of = &issuer_fields, .max = BH_ISSUERS_MAX,
         .doc = "OpenID providers that users sign in with"),
    BH_F(struct bh_site_sign_in, life, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "every session ends after this time; \"12h\" when absent"),
    BH_F(
        struct bh_site_sign_in, step_up, BH_FIELD_LIST, .of = &step_up_fields, .max = BH_STEP_UPS_MAX,
        .doc =
            "verbs that need a recent second factor; verbs that are not listed are as in tables/step_up.tbl"),
};
const struct bh_fields bh_site_sign_in_fields = BH_FIELDS("sign_in", struct bh_site_sign_in, sign_in_rows);

const struct bh_site_issuer *
bh_sign_in_issuer(const struct bh_site_sign_in *sign_in, const char *name, size_t length)
{
    const struct bh_site_issuer *issuers = sign_in->issuers.items;

    for (uint32_t i = 0; i < sign_in->issuers.count; i++)
        if (strncmp(issuers[i].name, name, length) == 0 && issuers[i].name[length] == '\0')
            return &issuers[i];
    return NULL;
}

static bool
sign_in_is_plain(const char *text, size_t most)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return length > 0 && length <= most;
}

bool
bh_sign_in_names(const struct bh_site_sign_in *sign_in, const char *text)
{
    const char *slash = strchr(text, '/');

    return slash && bh_sign_in_issuer(sign_in, text, (size_t)(slash - text))
           && sign_in_is_plain(slash + 1, BH_GROUP_MAX);
}

static uint64_t
in_span_or(const char *text, uint64_t standard_ns)
{
    struct bh_err unused;
    uint64_t span_ns;

    return text && bh_parse_span(text, &span_ns, &unused) == BH_OK ? span_ns : standard_ns;
}

uint64_t
bh_sign_in_idle_ns(const struct bh_site_sign_in *sign_in)
{
    return in_span_or(sign_in->idle, 30 * MINUTE_NS);
}

uint64_t
bh_sign_in_life_ns(const struct bh_site_sign_in *sign_in)
{
    return in_span_or(sign_in->life, 720 * MINUTE_NS);
}

/* ---- checking ---- */

static bool
in_is_verb(const char *verb)
{
    static const char *const verbs[] = {
#define BH_GRANT(rule, role, verb) verb,
#include "tables/roles.tbl"
#undef BH_GRANT
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    verb,
#include "tables/operations.tbl"
#undef BH_OPERATION
    };

    for (size_t i = 0; i < BH_COUNT(verbs); i++)
        if (*verb && strcmp(verbs[i], verb) == 0)
            return true;
    return false;
}

static bh_rc
sign_in_check_span(const char *name, const char *text, const uint64_t bounds_ns[2], struct bh_err *err)
{
    uint64_t span_ns = bounds_ns[0];
    bh_rc rc = text ? bh_parse_span(text, &span_ns, err) : BH_OK;

    if (rc == BH_OK && (span_ns < bounds_ns[0] || span_ns > bounds_ns[1]))
        rc = bh_err_set(err, BH_RANGE, "too short or too long");
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", name);
}

/* An address of a site: what providers and passkeys compare has no path. */
static bh_rc
in_check_address(const char *address, struct bh_err *err)
{
    static const char scheme[] = "https://";
    const char *host;

    if (!address)
        return BH_OK;
    host = strncmp(address, scheme, sizeof scheme - 1) == 0 ? address + sizeof scheme - 1 : "";
    if (sign_in_is_plain(host, URL_MAX) && strcspn(host, "/?#@ \\") == strlen(host))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "address: is not https://HOST or https://HOST:PORT");
    return bh_err_hint(err, "without a path, and without a slash at the end");
}

static bh_rc
in_check_client(const struct bh_site_issuer *issuer, struct bh_err *err)
{
    bool with_secret = issuer->client_auth == BH_CLIENT_BASIC || issuer->client_auth == BH_CLIENT_KEY;

    if (!issuer->client_secret && with_secret)
        return bh_err_set(err, BH_INVALID, "client_auth: needs client_secret, the name of a file");
    if (issuer->client_secret && issuer->client_auth == BH_CLIENT_NONE)
        return bh_err_set(err, BH_INVALID, "client_secret: is not used with client_auth: none");
    if (issuer->client_secret
        && (!sign_in_is_plain(issuer->client_secret, 63) || issuer->client_secret[0] == '.'
            || strchr(issuer->client_secret, '/')))
        return bh_err_set(err, BH_INVALID, "client_secret: is not a plain file name");
    return BH_OK;
}

static bh_rc
in_check_issuer(const struct bh_site_sign_in *sign_in, uint32_t at, struct bh_err *err)
{
    const struct bh_site_issuer *own = (const struct bh_site_issuer *)sign_in->issuers.items + at;
    bool local = own->loopback && strncmp(own->url, "http://127.0.0.1", 16) == 0;

    if (bh_name_check(own->name, err) != BH_OK)
        return err->rc;
    if (bh_sign_in_issuer(sign_in, own->name, strlen(own->name)) != own)
        return bh_err_set(err, BH_INVALID, "declared twice");
    if (!local && strncmp(own->url, "https://", 8) != 0)
        return bh_err_set(err, BH_INVALID, "url: is not an https address");
    if (!sign_in_is_plain(own->url, URL_MAX) || !sign_in_is_plain(own->client_id, 255))
        return bh_err_set(err, BH_INVALID, "url or client_id is empty or has control characters");
    return in_check_client(own, err);
}

static bh_rc
in_check_step_up(const struct bh_site_sign_in *sign_in, uint32_t at, struct bh_err *err)
{
    static const uint64_t bounds_ns[2] = { UINT64_C(1000000000), DAY_NS };
    const struct bh_site_step_up *rows = sign_in->step_up.items;

    if (!in_is_verb(rows[at].verb)) {
        bh_err_set(err, BH_INVALID, "is not a verb that a role allows");
        return bh_err_hint(err, "man bulkhead-site lists them under ROLES");
    }
    for (uint32_t i = 0; i < at; i++)
        if (strcmp(rows[i].verb, rows[at].verb) == 0)
            return bh_err_set(err, BH_INVALID, "declared twice");
    return sign_in_check_span("within", rows[at].within, bounds_ns, err);
}

bh_rc
bh_sign_in_check(const struct bh_site_sign_in *sign_in, struct bh_err *err)
{
    static const uint64_t idle_ns[2] = { MINUTE_NS, DAY_NS }, life_ns[2] = { MINUTE_NS, 30 * DAY_NS };
    const struct bh_site_issuer *issuers = sign_in->issuers.items;
    const struct bh_site_step_up *step_ups = sign_in->step_up.items;
    bh_rc rc = in_check_address(sign_in->address, err);

    if (rc == BH_OK)
        rc = sign_in_check_span("idle", sign_in->idle, idle_ns, err);
    if (rc == BH_OK)
        rc = sign_in_check_span("life", sign_in->life, life_ns, err);
    for (uint32_t i = 0; rc == BH_OK && i < sign_in->issuers.count; i++)
        if ((rc = in_check_issuer(sign_in, i, err)) != BH_OK)
            bh_err_wrap(err, "issuers[%" PRIu32 "] %.63s", i, issuers[i].name);
    for (uint32_t i = 0; rc == BH_OK && i < sign_in->step_up.count; i++)
        if ((rc = in_check_step_up(sign_in, i, err)) != BH_OK)
            bh_err_wrap(err, "step_up[%" PRIu32 "] %.40s", i, step_ups[i].verb);
    if (rc == BH_OK && sign_in->issuers.count && !sign_in->address) {
        rc = bh_err_set(err, BH_INVALID, "address: is missing; providers redirect to it");
        bh_err_hint(err, "add address: https://HOST, as browsers reach bulkheadd");
    }
    return rc == BH_OK ? rc : bh_err_wrap(err, "sign_in");
}
