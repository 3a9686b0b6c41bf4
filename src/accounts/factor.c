#include "accounts/factor.h"

#include <stdio.h>
#include <string.h>

#include "api/request/reply.h"
#include "base/num.h"
#include "identity/secret.h"
#include "accounts/session.h"

enum { PASSWORD_LEAST = 12 };

/* ---- passwords ---- */

/* A hash takes 19 MiB: a few at a time. */
static void
factor_hash_begin(struct bh_accounts *accounts)
{
    bh_mutex_lock(&accounts->mutex);
    while (accounts->hashing >= BH_HASHES_AT_ONCE)
        bh_condition_wait(&accounts->hash_freed, &accounts->mutex);
    accounts->hashing++;
    bh_mutex_unlock(&accounts->mutex);
}

static void
factor_hash_end(struct bh_accounts *accounts)
{
    bh_mutex_lock(&accounts->mutex);
    accounts->hashing--;
    bh_condition_signal(&accounts->hash_freed);
    bh_mutex_unlock(&accounts->mutex);
}

bool
bh_password_right(struct bh_accounts *accounts, const struct bh_account *account, const char *password)
{
    enum bh_identity_fault fault;

    factor_hash_begin(accounts);
    fault = bh_password_check(account ? account->password : NULL, password ? password : "", &accounts->cost);
    factor_hash_end(accounts);
    return fault == BH_FAULT_NONE;
}

bh_rc
bh_password_new(struct bh_accounts *accounts, struct bh_call *call, const char *password,
                struct bh_account *account, struct bh_err *err)
{
    uint8_t salt[BH_PASSWORD_SALT];
    char kept[BH_PASSWORD_TEXT];
    enum bh_identity_fault fault;
    bh_rc rc;

    if (strlen(password) < PASSWORD_LEAST || strlen(password) > BH_PASSWORD_MAX) {
        bh_err_set(err, BH_INVALID, "password: must have %d to %d bytes", (int)PASSWORD_LEAST,
                   (int)BH_PASSWORD_MAX);
        return bh_err_hint(err, "choose several words that are not used together elsewhere");
    }
    rc = accounts->options.crypto->random(salt, sizeof salt, err);
    if (rc != BH_OK)
        return rc;
    factor_hash_begin(accounts);
    fault = bh_password_hash(password, salt, &accounts->cost, kept);
    factor_hash_end(accounts);
    if (fault != BH_FAULT_NONE)
        return bh_fault_err(fault, err);
    account->password = bh_arena_strdup(call->arena, kept);
    return account->password ? BH_OK : bh_err_set(err, BH_FULL, "no room for a password");
}

/* ---- codes ---- */

bool
bh_account_has_totp(const struct bh_account *account)
{
    static const uint8_t none[sizeof account->totp];

    return memcmp(account->totp, none, sizeof none) != 0;
}

bool
bh_account_has_factor(const struct bh_account *account)
{
    return bh_account_has_totp(account) || account->passkeys > 0;
}

static bool
factor_totp_right(struct bh_accounts *accounts, struct bh_account *account, const char *code)
{
    struct bh_totp totp = { BH_TOTP_SHA1, 6, 30, 1, { 0 }, BH_TOTP_SECRET_BYTES };
    enum bh_identity_fault fault;

    if (!bh_account_has_totp(account))
        return false;
    memcpy(totp.secret, account->totp, sizeof account->totp);
    fault = bh_totp_check(&totp, code, bh_accounts_now(accounts), &account->totp_step);
    bh_secret_wipe(&totp, sizeof totp);
    return fault == BH_FAULT_NONE;
}

/* The salt makes equal codes of two accounts different; it is not secret. */
static void
factor_salt_of(const struct bh_account *account, char ret_salt[16])
{
    snprintf(ret_salt, 16, "%u", account->principal);
}

static bool
factor_recovery_right(struct bh_account *account, const char *code)
{
    struct bh_recovery set = { 0 };
    char salt[16];

    if (account->recovery.count != BH_RECOVERY_CODES)
        return false;
    for (uint32_t i = 0; i < BH_RECOVERY_CODES; i++)
        snprintf(set.hashes[i], sizeof set.hashes[i], "%s", account->recovery.items[i]);
    factor_salt_of(account, salt);
    if (!bh_recovery_use(&set, salt, code))
        return false;
    for (uint32_t i = 0; i < BH_RECOVERY_CODES; i++)
        if (!set.hashes[i][0])
            account->recovery.items[i] = "";
    return true;
}

bool
bh_code_right(struct bh_accounts *accounts, struct bh_account *account, const char *code)
{
    return code && (factor_totp_right(accounts, account, code) || factor_recovery_right(account, code));
}

/* ---- the account's own changes ---- */

void
bh_recovery_texts(char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT], const char *ret_texts[BH_RECOVERY_CODES])
{
    for (uint32_t i = 0; i < BH_RECOVERY_CODES; i++)
        ret_texts[i] = codes[i];
}

bh_rc
bh_recovery_new(struct bh_accounts *accounts, struct bh_call *call, struct bh_account *account,
                char ret_codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT], struct bh_err *err)
{
    uint8_t random[BH_RECOVERY_CODES][BH_RECOVERY_RANDOM];
    struct bh_recovery set;
    char salt[16];
    bh_rc rc = accounts->options.crypto->random(random, sizeof random, err);

    account->recovery.items = bh_arena_alloc(call->arena, BH_RECOVERY_CODES * sizeof(const char *));
    account->recovery.count = BH_RECOVERY_CODES;
    if (rc != BH_OK || !account->recovery.items)
        return rc != BH_OK ? rc : bh_err_set(err, BH_FULL, "no room for recovery codes");
    factor_salt_of(account, salt);
    bh_recovery_make((const uint8_t(*)[BH_RECOVERY_RANDOM])random, salt, &set, ret_codes);
    bh_secret_wipe(random, sizeof random);
    for (uint32_t i = 0; i < BH_RECOVERY_CODES; i++) {
        account->recovery.items[i] = bh_arena_strdup(call->arena, set.hashes[i]);
        if (!account->recovery.items[i])
            return bh_err_set(err, BH_FULL, "no room for recovery codes");
    }
    return BH_OK;
}

bh_rc
bh_own_account(struct bh_accounts *accounts, struct bh_call *call, struct bh_account *ret_account,
               struct bh_err *err)
{
    const struct bh_presence *presence = &call->caller.subject.presence;
    bh_rc rc = bh_session_check_fresh(accounts, call, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_account_read(&accounts->documents, call->caller.subject.principal.v, call->arena, ret_account,
                         err);
    if (rc == BH_OK && bh_account_has_factor(ret_account) && presence->kind == BH_PRESENCE_SESSION
        && presence->level == BH_LEVEL_NONE)
        return bh_authz_refuse_step_up(call->op->verb, err); /* of before there was a factor */
    if (rc != BH_NOT_FOUND)
        return rc;
    ret_account->created_ns = bh_accounts_now(accounts);
    return BH_OK;
}

static bh_rc
factor_write_account(struct bh_accounts *accounts, struct bh_call *call, const char *verb,
                     const struct bh_account *account, struct bh_err *err)
{
    struct bh_document_put put;
    struct bh_accounts_change change = {
        .verb = verb, .puts = &put, .put_count = 1, .object = { "account", account->principal }
    };
    struct bh_answer answer;
    bh_rc rc = bh_account_put(account, call->arena, &put, err);

    return rc == BH_OK ? bh_accounts_commit(accounts, call, &change, &answer, err) : rc;
}

bh_rc
bh_serve_totp_begin(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_totp totp = { BH_TOTP_SHA1, 6, 30, 1, { 0 }, BH_TOTP_SECRET_BYTES };
    struct bh_pending draft = { .kind = BH_PENDING_TOTP,
                                .principal = call->caller.subject.principal.v,
                                .expires = bh_accounts_now(accounts) + BH_FRESH_S * BH_NS_PER_S };
    struct bh_account account;
    struct bh_buf text, shown;
    char id[33], address[512], secret[128];
    bh_rc rc = bh_own_account(accounts, call, &account, err);

    if (rc != BH_OK)
        return rc;
    rc = accounts->options.crypto->random(totp.secret, BH_TOTP_SECRET_BYTES, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&text, draft.secret, sizeof draft.secret);
    bh_buf_put_hex(&text, totp.secret, BH_TOTP_SECRET_BYTES);
    bh_buf_text(&text);
    rc = bh_pending_put(accounts, &draft, id, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&text, address, sizeof address);
    bh_totp_put_address(&text, &totp, "Bulkhead", call->caller.name);
    bh_buf_init_fixed(&shown, secret, sizeof secret);
    bh_totp_put_secret(&shown, &totp);
    BH_REPLY_WITH(call, totp_begun, .address = bh_buf_text(&text), .secret = bh_buf_text(&shown));
    bh_secret_wipe(&totp, sizeof totp);
    bh_secret_wipe(address, sizeof address);
    bh_secret_wipe(secret, sizeof secret);
    return BH_OK;
}

static bh_rc
factor_accept_totp(struct bh_accounts *accounts, struct bh_call *call, struct bh_account *account,
                   struct bh_err *err)
{
    struct bh_code_request request = { 0 };
    struct bh_pending pending;
    bh_rc rc = bh_call_body(call, &bh_code_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_pending_consume(accounts, BH_PENDING_TOTP, NULL, account->principal, &pending))
        return bh_err_set(err, BH_CONFLICT, "no authenticator app is waiting for a code");
    account->totp_step = 0;
    if (!bh_parse_hex(pending.secret, account->totp, sizeof account->totp)
        || !factor_totp_right(accounts, account, request.code)) {
        bh_secret_wipe(&pending, sizeof pending);
        bh_err_set(err, BH_INVALID, "the code is not the app's: start again");
        return bh_err_hint(err, "compare the clock of the device with this machine's");
    }
    bh_secret_wipe(&pending, sizeof pending);
    return BH_OK;
}

bh_rc
bh_serve_totp_confirm(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT];
    const char *texts[BH_RECOVERY_CODES];
    struct bh_puts puts = { .count = 1 };
    struct bh_accounts_change change = { .verb = "account.totp", .puts = puts.items };
    struct bh_account account;
    struct bh_answer answer;
    bool first;
    bh_rc rc = bh_own_account(accounts, call, &account, err);

    if (rc != BH_OK)
        return rc;
    rc = factor_accept_totp(accounts, call, &account, err);
    first = account.recovery.count == 0;
    if (rc == BH_OK && first)
        rc = bh_recovery_new(accounts, call, &account, codes, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_account_put(&account, call->arena, &puts.items[0], err);
    if (rc != BH_OK)
        return rc;
    rc = bh_session_raise(accounts, call, BH_LEVEL_CODE, &puts, err);
    if (rc != BH_OK)
        return rc;
    change.put_count = puts.count;
    change.object = (struct bh_record_object){ "account", account.principal };
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    bh_recovery_texts(codes, texts);
    BH_REPLY_WITH(call, totp_confirmed, .recovery = { texts, first ? BH_RECOVERY_CODES : 0 }, .totp = true);
    bh_secret_wipe(codes, sizeof codes);
    return BH_OK;
}

bh_rc
bh_serve_totp_remove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_account account;
    bh_rc rc = bh_own_account(accounts, call, &account, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_account_has_totp(&account))
        return bh_err_set(err, BH_NOT_FOUND, "this account has no authenticator app");
    if (account.passkeys == 0) {
        bh_err_set(err, BH_CONFLICT, "it is the account's only second factor");
        return bh_err_hint(err, "add a passkey first, or set up another app in its place");
    }
    memset(account.totp, 0, sizeof account.totp);
    account.totp_step = 0;
    rc = factor_write_account(accounts, call, "account.totp_removed", &account, err);
    BH_REPLY_WITH(call, factor_removed, .removed = true);
    return rc;
}

bh_rc
bh_serve_recovery(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT];
    const char *texts[BH_RECOVERY_CODES];
    struct bh_account account;
    bh_rc rc = bh_own_account(accounts, call, &account, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_account_has_factor(&account))
        return bh_err_set(err, BH_CONFLICT,
                          "recovery codes replace a second factor, and the account has none yet");
    rc = bh_recovery_new(accounts, call, &account, codes, err);
    if (rc != BH_OK)
        return rc;
    rc = factor_write_account(accounts, call, "account.recovery", &account, err);
    if (rc != BH_OK)
        return rc;
    bh_recovery_texts(codes, texts);
    BH_REPLY_WITH(call, recovery_codes, .recovery = { texts, BH_RECOVERY_CODES });
    bh_secret_wipe(codes, sizeof codes);
    return BH_OK;
}
