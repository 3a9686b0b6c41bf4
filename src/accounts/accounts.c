#include "accounts/accounts.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "accounts/account.h"
#include "accounts/accounts_internal.h"
#include "accounts/attempt.h"
#include "accounts/challenge.h"
#include "accounts/factor.h"
#include "accounts/first_admin.h"
#include "accounts/grant.h"
#include "accounts/oidc.h"
#include "accounts/passkeys.h"
#include "accounts/session.h"
#include "accounts/sessions.h"
#include "api/request/call.h"
#include "base/assert.h"
#include "base/fd.h"

/* ---- operations ---- */

static const bh_accounts_resource_fn resources[BH_OPERATIONS] = {
    [BH_OP_SIGN_IN_WAYS] = bh_serve_ways,
    [BH_OP_SIGN_IN] = bh_serve_sign_in,
    [BH_OP_SIGN_IN_CHALLENGE] = bh_serve_challenge,
    [BH_OP_SIGN_IN_ISSUER] = bh_serve_issuer,
    [BH_OP_SIGN_IN_RETURN] = bh_serve_return,
    [BH_OP_SIGN_IN_DEVICE] = bh_serve_device,
    [BH_OP_SIGN_IN_POLL] = bh_serve_poll,
    [BH_OP_SIGN_IN_LOGOUT] = bh_serve_logout,
    [BH_OP_SIGN_IN_GRANT] = bh_serve_grant,
    [BH_OP_SIGN_IN_CODE] = bh_serve_code,
    [BH_OP_SIGN_IN_FIRST] = bh_serve_first_admin,
    [BH_OP_SIGN_OUT] = bh_serve_sign_out,
    [BH_OP_PROVE] = bh_serve_prove,
    [BH_OP_BREAK_GLASS] = bh_serve_break_glass,
    [BH_OP_SESSION_LIST] = bh_serve_sessions,
    [BH_OP_SESSION_END] = bh_serve_session_end,
    [BH_OP_ACCOUNT_GET] = bh_serve_account,
    [BH_OP_ACCOUNT_PASSWORD] = bh_serve_password,
    [BH_OP_TOTP_BEGIN] = bh_serve_totp_begin,
    [BH_OP_TOTP_CONFIRM] = bh_serve_totp_confirm,
    [BH_OP_TOTP_REMOVE] = bh_serve_totp_remove,
    [BH_OP_RECOVERY_MAKE] = bh_serve_recovery,
    [BH_OP_PASSKEY_BEGIN] = bh_serve_passkey_begin,
    [BH_OP_PASSKEY_ADD] = bh_serve_passkey_add,
    [BH_OP_PASSKEY_REMOVE] = bh_serve_passkey_remove,
    [BH_OP_ACCOUNT_LIST] = bh_serve_accounts,
    [BH_OP_ACCOUNT_ENROL] = bh_serve_enroll,
    [BH_OP_ACCOUNT_RESET] = bh_serve_reset,
};

static bh_rc
accounts_serve(void *self, struct bh_call *call, struct bh_err *err)
{
    bh_accounts_resource_fn resource = resources[call->op->id];

    if (!resource)
        return bh_err_set(err, BH_UNAVAILABLE, "accounts are not set up on this site");
    return resource(self, call, err);
}

static bh_rc
accounts_identify(void *self, const char *secret, struct bh_call *call, struct bh_err *err)
{
    return bh_session_identify(self, secret, call, err);
}

static void
accounts_note_token_used(void *self, const char *id, uint64_t now_ns)
{
    struct bh_accounts *accounts = self;

    bh_mutex_lock(&accounts->mutex);
    bh_use_record(&accounts->uses, id, false, now_ns);
    bh_mutex_unlock(&accounts->mutex);
}

struct bh_accounts_port
bh_accounts_port(struct bh_accounts *accounts)
{
    static const struct bh_accounts_ops ops = { accounts_serve, accounts_identify, accounts_note_token_used };

    return (struct bh_accounts_port){ &ops, accounts };
}

/* ---- from start to end ---- */

/* The key that recognizes devices that signed in before; without it they count as unknown. */
static bh_rc
accounts_load_device_key(struct bh_accounts *accounts, struct bh_err *err)
{
    char path[4096];
    struct bh_buf text;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/device.key", accounts->options.state_dir);
    bh_buf_init_fixed(&text, accounts->device_key, sizeof accounts->device_key);
    rc = bh_file_read(path, sizeof accounts->device_key, &text, err);
    if (rc == BH_OK && text.length == sizeof accounts->device_key)
        return BH_OK;
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    rc = accounts->options.crypto->random(accounts->device_key, sizeof accounts->device_key, err);
    if (rc != BH_OK)
        return rc;
    return bh_file_replace(path, accounts->device_key, sizeof accounts->device_key, 0600, err);
}

bh_rc
bh_accounts_open(const struct bh_accounts_options *options, struct bh_accounts **ret_accounts,
                 struct bh_err *err)
{
    BH_AUTO(bh_accounts_close) struct bh_accounts *accounts = calloc(1, sizeof *accounts);
    bh_rc rc;

    BH_ASSERT(accounts);
    for (int op = 0; op < BH_OPERATIONS; op++)
        BH_ASSERT(bh_operation_of_accounts((enum bh_operation)op) == (resources[op] != NULL));
    accounts->options = *options;
    accounts->documents = (struct bh_documents){ options->store, options->keys };
    accounts->cost = bh_password_cost;
    if (options->hash_kib)
        accounts->cost = (struct bh_password_cost){ options->hash_kib, 1, 1 };
    bh_mutex_init(&accounts->mutex, BH_LOCK_ACCOUNTS);
    bh_condition_init(&accounts->hash_freed);
    rc = accounts_load_device_key(accounts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_challenges_open(accounts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_attempts_load(accounts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_first_admin_offer(accounts, err);
    if (rc != BH_OK)
        return rc;
    *ret_accounts = bh_steal(&accounts);
    return BH_OK;
}

void
bh_accounts_close(struct bh_accounts *accounts)
{
    if (!accounts)
        return;
    bh_mutex_fini(&accounts->mutex);
    bh_condition_fini(&accounts->hash_freed);
    explicit_bzero(accounts, sizeof *accounts);
    free(accounts);
}
