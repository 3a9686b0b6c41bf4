#include "api/accounts/accounts.h"

#include "api/request/call.h"

enum { SECRET_MAX = 1024, BINARY_MAX = 8192, HOST_MAX = 120 };

#define TEXT(type, member, most, text) BH_F(struct type, member, BH_FIELD_TEXT, .max = most, .doc = text)
#define NEEDED(type, member, most, text)                                                                     \
    BH_F(struct type, member, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = most, .doc = text)

static const struct bh_field sign_in_rows[] = {
    TEXT(bh_sign_in_request, account, 200, "whose"),
    TEXT(bh_sign_in_request, authenticator_data, BINARY_MAX, "of a passkey, base64url"),
    TEXT(bh_sign_in_request, challenge, 32, "the id that /v1/sign-in/challenge gave"),
    TEXT(bh_sign_in_request, client_data, BINARY_MAX, "of a passkey, base64url"),
    TEXT(bh_sign_in_request, code, 64, "of the authenticator app, or a recovery code"),
    TEXT(bh_sign_in_request, credential, BINARY_MAX, "id of the passkey, base64url"),
    TEXT(bh_sign_in_request, device, 120, "as an earlier sign-in gave it"),
    TEXT(bh_sign_in_request, host, HOST_MAX, "what the session is for, for people"),
    TEXT(bh_sign_in_request, password, SECRET_MAX, "not needed with a passkey"),
    TEXT(bh_sign_in_request, signature, BINARY_MAX, "of a passkey, base64url"),
    TEXT(bh_sign_in_request, user_handle, BINARY_MAX, "of a passkey, base64url"),
};
const struct bh_fields bh_sign_in_request_fields =
    BH_FIELDS("sign_in_request", struct bh_sign_in_request, sign_in_rows);

static const struct bh_field device_rows[] = {
    TEXT(bh_sign_in_device_request, host, HOST_MAX, "what the session is for, for people"),
    NEEDED(bh_sign_in_device_request, issuer, 63, "name of the issuer in the site file"),
};
const struct bh_fields bh_sign_in_device_request_fields =
    BH_FIELDS("sign_in_device_request", struct bh_sign_in_device_request, device_rows);

static const struct bh_field issuer_rows[] = {
    BH_F(struct bh_sign_in_issuer_request, again, BH_FIELD_BOOL,
         .doc = "the person who is signed in authenticates once more"),
    NEEDED(bh_sign_in_issuer_request, issuer, 63, "name of the issuer in the site file"),
};
const struct bh_fields bh_sign_in_issuer_request_fields =
    BH_FIELDS("sign_in_issuer_request", struct bh_sign_in_issuer_request, issuer_rows);

static const struct bh_field return_rows[] = {
    NEEDED(bh_sign_in_return_request, query, BINARY_MAX, "what stands behind the address's ?"),
};
const struct bh_fields bh_sign_in_return_request_fields =
    BH_FIELDS("sign_in_return_request", struct bh_sign_in_return_request, return_rows);

static const struct bh_field logout_rows[] = {
    NEEDED(bh_sign_in_logout_request, logout_token, 16384, "signed by the issuer"),
};
const struct bh_fields bh_sign_in_logout_request_fields =
    BH_FIELDS("sign_in_logout_request", struct bh_sign_in_logout_request, logout_rows);

static const struct bh_field grant_rows[] = {
    NEEDED(bh_sign_in_grant_request, challenge, 64, "the command line's, S256"),
    TEXT(bh_sign_in_grant_request, host, HOST_MAX, "where it runs, for people"),
};
const struct bh_fields bh_sign_in_grant_request_fields =
    BH_FIELDS("sign_in_grant_request", struct bh_sign_in_grant_request, grant_rows);

static const struct bh_field code_rows[] = {
    NEEDED(bh_sign_in_code_request, code, 128, "what the browser brought"),
    NEEDED(bh_sign_in_code_request, verifier, 128, "what its challenge was made from"),
};
const struct bh_fields bh_sign_in_code_request_fields =
    BH_FIELDS("sign_in_code_request", struct bh_sign_in_code_request, code_rows);

static const struct bh_field first_rows[] = {
    NEEDED(bh_sign_in_first_request, account, 64, "name of the first admin"),
    NEEDED(bh_sign_in_first_request, code, 64, "from the file first-admin.code"),
    NEEDED(bh_sign_in_first_request, password, SECRET_MAX, "of the new account"),
};
const struct bh_fields bh_sign_in_first_request_fields =
    BH_FIELDS("sign_in_first_request", struct bh_sign_in_first_request, first_rows);

static const struct bh_field password_rows[] = {
    TEXT(bh_password_request, account, 64, "with a one-time code: for whom"),
    TEXT(bh_password_request, enrol, 64, "a one-time code from an admin, instead of the old one"),
    TEXT(bh_password_request, old, SECRET_MAX, "the present one"),
    NEEDED(bh_password_request, password, SECRET_MAX, "the new one"),
};
const struct bh_fields bh_password_request_fields =
    BH_FIELDS("password_request", struct bh_password_request, password_rows);

static const struct bh_field one_code_rows[] = {
    NEEDED(bh_code_request, code, 64, "of the authenticator app, or a recovery code"),
};
const struct bh_fields bh_code_request_fields =
    BH_FIELDS("code_request", struct bh_code_request, one_code_rows);

static const struct bh_field passkey_rows[] = {
    NEEDED(bh_passkey_request, authenticator_data, BINARY_MAX, "base64url"),
    NEEDED(bh_passkey_request, challenge, 32, "its id"),
    NEEDED(bh_passkey_request, client_data, BINARY_MAX, "base64url"),
    NEEDED(bh_passkey_request, credential, BINARY_MAX, "its id, base64url"),
    TEXT(bh_passkey_request, name, 64, "what its owner calls it"),
    TEXT(bh_passkey_request, signature, BINARY_MAX, "base64url"),
    TEXT(bh_passkey_request, transports, 120, "how it is reached, for the browser"),
    TEXT(bh_passkey_request, user_handle, BINARY_MAX, "base64url"),
};
const struct bh_fields bh_passkey_request_fields =
    BH_FIELDS("passkey_request", struct bh_passkey_request, passkey_rows);

static const struct bh_field reason_rows[] = {
    NEEDED(bh_reason_request, reason, 400, "why, for those who read the audit log"),
};
const struct bh_fields bh_reason_request_fields =
    BH_FIELDS("reason_request", struct bh_reason_request, reason_rows);

static const struct bh_field account_rows[] = {
    NEEDED(bh_account_request, principal, 200, "whose account"),
};
const struct bh_fields bh_account_request_fields =
    BH_FIELDS("account_request", struct bh_account_request, account_rows);

bh_rc
bh_accounts_resource(struct bh_call *call, struct bh_err *err)
{
    const struct bh_accounts_port *accounts = &call->api->options.accounts;

    if (!accounts->ops)
        return bh_err_set(err, BH_UNAVAILABLE, "signing in is not set up here");
    return accounts->ops->serve(accounts->self, call, err);
}

const char *
bh_accounts_target(struct bh_call *call)
{
    struct bh_account_request request = { 0 };
    struct bh_err ignored;

    return bh_call_body(call, &bh_account_request_fields, &request, &ignored) == BH_OK ? request.principal
                                                                                       : NULL;
}
