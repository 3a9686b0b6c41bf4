#ifndef BH_API_ACCOUNTS_ACCOUNTS_H
#define BH_API_ACCOUNTS_ACCOUNTS_H

#include "api/request/accounts_port.h"
#include "base/fields.h"
#include "policy/operations.h"

/* Signing in, sessions and accounts: src/accounts does it, behind accounts_port.h. */

/* The resource of all operations of people. */
bh_rc bh_accounts_resource(struct bh_call *call, struct bh_err *err);

/* Whose account ACCOUNT_ENROL is for, as the body says; NULL: it does not. */
const char *bh_accounts_target(struct bh_call *call);

/* ---- bodies ---- */

/* Signing in: an account's password with a code, a recovery code, or a passkey alone. */
struct bh_sign_in_request {
    const char *account, *password;
    const char *code;      /* of the authenticator app, or a recovery code */
    const char *challenge; /* the id that SIGN_IN_CHALLENGE gave, with a passkey */
    const char *credential, *client_data, *authenticator_data, *signature, *user_handle;
    const char *host;   /* what the session is for, to tell it from others */
    const char *device; /* from an earlier sign-in: the attempt counts as the owner's device */
};

struct bh_sign_in_device_request {
    const char *issuer, *host;
};

struct bh_sign_in_issuer_request {
    const char *issuer;
    bool again; /* a signed-in user authenticates again */
};

/* The browser's query, whole, as the provider sent it back. */
struct bh_sign_in_return_request {
    const char *query;
};

struct bh_sign_in_logout_request {
    const char *logout_token;
};

/* The command line's challenge (RFC 7636, S256) and where it runs. */
struct bh_sign_in_grant_request {
    const char *challenge, *host;
};

/* What a browser brought to the command line's door, with what proves whose door it is. */
struct bh_sign_in_code_request {
    const char *code, *verifier;
};

struct bh_sign_in_first_request {
    const char *code, *account, *password;
};

struct bh_password_request {
    const char *old, *password;  /* old: NULL where a one-time code stands instead */
    const char *enrol, *account; /* that code, and the account that it is for */
};

struct bh_code_request {
    const char *code;
};

/* A passkey's answer to a challenge, all base64url. */
struct bh_passkey_request {
    const char *challenge, *name;
    const char *credential, *client_data, *authenticator_data, *signature, *user_handle;
    const char *transports;
};

struct bh_reason_request {
    const char *reason;
};

struct bh_account_request {
    const char *principal;
};

extern const struct bh_fields bh_sign_in_request_fields, bh_sign_in_device_request_fields,
    bh_sign_in_issuer_request_fields, bh_sign_in_return_request_fields, bh_sign_in_logout_request_fields,
    bh_sign_in_grant_request_fields, bh_sign_in_code_request_fields, bh_sign_in_first_request_fields,
    bh_password_request_fields, bh_code_request_fields, bh_passkey_request_fields, bh_reason_request_fields,
    bh_account_request_fields;

#endif
