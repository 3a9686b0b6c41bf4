#include "accounts/account.h"

#include <inttypes.h>
#include <string.h>

#include "accounts/attempt.h"
#include "accounts/factor.h"
#include "accounts/passkeys.h"
#include "accounts/session.h"
#include "api/request/reply.h"
#include "api/request/token.h"
#include "identity/account.h"
#include "identity/secret.h"

/* The resources of accounts: signing in with one, its password, and what an admin does. */

#define ENROLL_NS (UINT64_C(86400) * BH_NS_PER_S)

/* The local account of a name from an unauthenticated request: NULL where there is none. */
static const struct bh_dir_principal *
find_account(const struct bh_call *call, const char *typed)
{
    const struct bh_dir_principal *principal = NULL;
    char name[BH_ACCOUNT_MAX + 1];

    if (typed && bh_account_name(typed, name))
        principal = bh_directory_principal_named(call->dir, name);
    return principal && principal->account ? principal : NULL;
}

/* Read it for an attempt; a missing one is empty, so that all takes the same path. */
static bh_rc
account_read_for(struct bh_accounts *accounts, struct bh_call *call, const struct bh_dir_principal *principal,
                 struct bh_account *ret_account, struct bh_err *err)
{
    bh_rc rc = bh_account_read(&accounts->documents, principal ? principal->id.v : UINT32_MAX, call->arena,
                               ret_account, err);

    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* Whether password and code are right, with what the account has of factors; `ret_level` is
 * what was shown. */
static bool
account_is_right(struct bh_accounts *accounts, struct bh_account *account,
                 const struct bh_sign_in_request *request, enum bh_level *ret_level)
{
    bool right = bh_password_right(accounts, account->password ? account : NULL, request->password);

    *ret_level = BH_LEVEL_NONE;
    if (!bh_account_has_factor(account))
        return right;
    *ret_level = BH_LEVEL_CODE;
    return bh_code_right(accounts, account, request->code) && right;
}

static bh_rc
account_sign_in(struct bh_accounts *accounts, struct bh_call *call, struct bh_puts *puts,
                struct bh_session_opening *opening, struct bh_err *err)
{
    opening->puts = puts->items;
    opening->put_count = puts->count;
    return bh_session_open(accounts, call, opening, err);
}

bh_rc
bh_serve_sign_in(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_request request = { 0 };
    struct bh_session_opening opening = { 0 };
    struct bh_puts puts = { .count = 0 };
    const struct bh_dir_principal *principal;
    struct bh_account account;
    struct bh_sign_in_attempt attempt;
    bh_rc rc = bh_call_body(call, &bh_sign_in_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (request.credential)
        return bh_passkey_sign_in(accounts, call, &request, err);
    principal = find_account(call, request.account);
    attempt = bh_attempt_from_call(accounts, call, request.account, request.device,
                                   principal ? principal->id.v : 0);
    rc = bh_attempt_begin(accounts, call, &attempt, err);
    if (rc != BH_OK)
        return rc;
    rc = account_read_for(accounts, call, principal, &account, err);
    if (rc != BH_OK)
        return rc;
    if (!account_is_right(accounts, &account, &request, &opening.session.level) || !principal)
        return bh_attempt_failed(accounts, call, &attempt, err);
    opening.session.host = request.host;
    opening.principal = principal->id.v;
    opening.name = principal->name;
    rc = bh_attempt_succeeded(accounts, call, &attempt, &puts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_account_put(&account, call->arena, &puts.items[puts.count++], err);
    if (rc != BH_OK)
        return rc;
    return account_sign_in(accounts, call, &puts, &opening, err);
}

bh_rc
bh_serve_ways(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    const struct bh_site_sign_in *sign_in = call->dir->sign_in;
    const struct bh_site_issuer *issuers = sign_in->issuers.items;
    struct bh_reply_sign_in_issuer *offered;
    bool any_account = false;
    bh_rc rc = bh_call_alloc(call, sign_in->issuers.count * sizeof *offered, &offered, err);

    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < call->dir->principal_count; i++)
        any_account = any_account || (call->dir->principals[i].account && !call->dir->principals[i].gone);
    for (uint32_t i = 0; i < sign_in->issuers.count; i++)
        offered[i] = (struct bh_reply_sign_in_issuer){ .device = true, .name = issuers[i].name };
    BH_REPLY_WITH(call, sign_in_ways, .accounts = any_account, .address = sign_in->address,
                  .issuers = { offered, sign_in->issuers.count }, .passkeys = bh_passkeys_offered(call));
    return BH_OK;
}

/* ---- one's own ---- */

static uint32_t
account_recovery_left(const struct bh_account *account)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < account->recovery.count; i++)
        left += account->recovery.items[i][0] != '\0';
    return left;
}

bh_rc
bh_serve_account(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_account account;
    struct bh_list passkeys;
    bh_rc rc =
        bh_account_read(&accounts->documents, call->caller.subject.principal.v, call->arena, &account, err);

    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    rc = bh_passkeys_list(accounts, call, account.principal, &passkeys, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, account_shown, .created_ns = account.created_ns, .identity = account.identity,
                  .name = call->caller.name, .passkeys = passkeys, .password = account.password != NULL,
                  .recovery_left = account_recovery_left(&account), .totp = bh_account_has_totp(&account));
    return BH_OK;
}

/* Whether the caller has shown the account's second factor, where it has one: an attacker who learned the
 * password alone must not set another. */
static bool
account_has_shown(struct bh_accounts *accounts, struct bh_call *call, const struct bh_account *account)
{
    struct bh_caller caller = { .token = NULL };

    if (!bh_account_has_factor(account))
        return true;
    bh_session_of_request(accounts, call, &caller);
    return caller.token && caller.subject.principal.v == account->principal
           && caller.subject.presence.level > BH_LEVEL_NONE;
}

/* The one-time code, or the password that is to be replaced. */
static bool
account_may_set(struct bh_accounts *accounts, struct bh_call *call, struct bh_account *account,
                const struct bh_password_request *request)
{
    uint8_t digest[32];

    if (!request->enrol)
        return bh_password_right(accounts, account->password ? account : NULL, request->old)
               && account_has_shown(accounts, call, account);
    accounts->options.crypto->sha256(request->enrol, strlen(request->enrol), "", 0, digest);
    return account->enrol_until_ns > bh_accounts_now(accounts) && bh_token_same(digest, account->enrol);
}

bh_rc
bh_serve_password(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_password_request request = { 0 };
    const struct bh_dir_principal *principal;
    struct bh_puts puts = { .count = 0 };
    struct bh_accounts_change change = { .verb = "account.password", .puts = puts.items };
    struct bh_account account;
    struct bh_answer answer;
    struct bh_sign_in_attempt attempt;
    bh_rc rc = bh_call_body(call, &bh_password_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    principal = find_account(call, request.account);
    attempt = bh_attempt_from_call(accounts, call, request.account, NULL, principal ? principal->id.v : 0);
    rc = bh_attempt_begin(accounts, call, &attempt, err);
    if (rc != BH_OK)
        return rc;
    rc = account_read_for(accounts, call, principal, &account, err);
    if (rc != BH_OK)
        return rc;
    if (!account_may_set(accounts, call, &account, &request) || !principal)
        return bh_attempt_failed(accounts, call, &attempt, err);
    rc = bh_password_new(accounts, call, request.password, &account, err);
    memset(account.enrol, 0, sizeof account.enrol);
    account.enrol_until_ns = 0;
    if (rc != BH_OK)
        return rc;
    rc = bh_attempt_succeeded(accounts, call, &attempt, &puts, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_account_put(&account, call->arena, &puts.items[puts.count++], err);
    if (rc != BH_OK)
        return rc;
    change.put_count = puts.count;
    change.object = (struct bh_record_object){ "account", account.principal };
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sessions_end(accounts, call, account.principal, NULL, err); /* of the old password */
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, password_set, .set = true);
    return BH_OK;
}

/* ---- an admin's ---- */

struct listed_account {
    struct listed_account *next;
    const char *name;
    struct bh_account account;
};

struct account_list {
    struct bh_accounts *accounts;
    struct bh_call *call;
    struct listed_account *first, **last; /* in the call's arena */
    bool full;                            /* it has no room for one more */
};

static bool
account_count_row(void *self, const struct bh_document_row *row)
{
    ++*(uint64_t *)self;
    return true;
}

static uint64_t
account_count_of(const struct bh_accounts *accounts, enum bh_document_kind kind, uint32_t principal)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_filter filter = { kind, principal };
    uint64_t count = 0;
    struct bh_err err;

    return store->ops->list_documents(store->self, &filter, account_count_row, &count, &err) == BH_OK ? count
                                                                                                      : 0;
}

static bool
list_account(void *self, const struct bh_document_row *row)
{
    struct account_list *list = self;
    const struct bh_dir_principal *principal =
        bh_directory_principal(list->call->dir, (bh_principal_id){ row->principal_id });
    struct listed_account *listed;
    struct bh_account account;
    struct bh_err err;

    if (!principal
        || bh_account_of(&list->accounts->documents, row, list->call->arena, &account, &err) != BH_OK)
        return true;
    listed = bh_arena_alloc(list->call->arena, sizeof *listed);
    list->full = !listed;
    if (!listed)
        return false;
    *listed = (struct listed_account){ .name = principal->name, .account = account };
    *list->last = listed;
    list->last = &listed->next;
    return true;
}

/* The store is asked for what each has when it has listed all: no sink asks it. */
static void
account_put_listed(struct bh_rows *rows, const struct bh_accounts *accounts,
                   const struct listed_account *listed)
{
    const struct bh_account *account = &listed->account;

    (void)bh_rows_put(rows,
                      &(struct bh_reply_account_listed){
                          .created_ns = account->created_ns,
                          .identity = account->identity,
                          .name = listed->name,
                          .passkeys = account_count_of(accounts, BH_DOCUMENT_PASSKEY, account->principal),
                          .password = account->password != NULL,
                          .recovery_left = account_recovery_left(account),
                          .sessions = account_count_of(accounts, BH_DOCUMENT_SESSION, account->principal),
                          .totp = bh_account_has_totp(account),
                      });
}

bh_rc
bh_serve_accounts(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_filter filter = { BH_DOCUMENT_ACCOUNT, 0 };
    struct account_list list = { .accounts = accounts, .call = call, .last = &list.first };
    struct bh_rows rows;
    bh_rc rc = store->ops->list_documents(store->self, &filter, list_account, &list, err);

    if (rc != BH_OK)
        return rc;
    if (list.full)
        return bh_err_set(err, BH_FULL, "there are more accounts than fit in one answer");
    rows = bh_rows_begin(call, &bh_reply_account_list_fields);
    for (const struct listed_account *listed = list.first; listed; listed = listed->next)
        account_put_listed(&rows, accounts, listed);
    bh_rows_end(&rows, NULL);
    return BH_OK;
}

/* A new one-time code: the digest goes into the account, the text to the caller for its user. */
static bh_rc
account_make_enroll(struct bh_accounts *accounts, struct bh_account *account, char ret_code[33],
                    struct bh_err *err)
{
    bh_rc rc = bh_accounts_random_hex(accounts, 16, ret_code, err);

    accounts->options.crypto->sha256(ret_code, strlen(ret_code), "", 0, account->enrol);
    account->enrol_until_ns = bh_accounts_now(accounts) + ENROLL_NS;
    if (!account->created_ns)
        account->created_ns = bh_accounts_now(accounts);
    return rc;
}

bh_rc
bh_serve_enroll(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_account_request request = { 0 };
    const struct bh_dir_principal *principal;
    struct bh_document_put put;
    struct bh_accounts_change change = { .verb = "account.enrol", .puts = &put, .put_count = 1 };
    struct bh_account account;
    struct bh_answer answer;
    char code[33];
    bh_rc rc = bh_call_body(call, &bh_account_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    principal = find_account(call, request.principal);
    if (!principal) {
        bh_err_set(err, BH_NOT_FOUND, "principal: no \"%.60s\" with an account", request.principal);
        return bh_err_hint(err, "add to the site file: principals: [{name: NAME, account: true}]");
    }
    rc = account_read_for(accounts, call, principal, &account, err);
    if (rc != BH_OK)
        return rc;
    rc = account_make_enroll(accounts, &account, code, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_account_put(&account, call->arena, &put, err);
    if (rc != BH_OK)
        return rc;
    change.object = (struct bh_record_object){ "account", account.principal };
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, account_code, .code = code, .expires_ns = account.enrol_until_ns,
                  .name = principal->name);
    bh_secret_wipe(code, sizeof code);
    return BH_OK;
}

struct account_leaving {
    struct bh_arena *arena;
    struct bh_document_put puts[64];
    uint32_t count;
};

static bool
account_list_passkey(void *self, const struct bh_document_row *row)
{
    struct account_leaving *leaving = self;

    if (leaving->count == BH_COUNT(leaving->puts) - 1)
        return false;
    leaving->puts[leaving->count++] =
        (struct bh_document_put){ .blind = true,
                                  .row = { .kind = BH_DOCUMENT_PASSKEY,
                                           .key = bh_arena_strdup(leaving->arena, row->key),
                                           .principal_id = row->principal_id } };
    return leaving->puts[leaving->count - 1].row.key != NULL;
}

bh_rc
bh_serve_reset(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    const struct bh_dir_principal *principal = bh_directory_principal_named(call->dir, call->id);
    struct account_leaving leaving = { .arena = call->arena };
    struct bh_accounts_change change = { .verb = "account.reset" };
    struct bh_account account;
    struct bh_answer answer;
    bh_rc rc;

    if (!principal)
        return bh_err_set(err, BH_NOT_FOUND, "there is no principal \"%.60s\"", call->id);
    rc = bh_account_read(&accounts->documents, principal->id.v, call->arena, &account, err);
    if (rc == BH_NOT_FOUND)
        return bh_err_set(err, BH_NOT_FOUND, "\"%.60s\" has no account", call->id);
    if (rc == BH_OK)
        rc = store->ops->list_documents(store->self,
                                        &(struct bh_document_filter){ BH_DOCUMENT_PASSKEY, principal->id.v },
                                        account_list_passkey, &leaving, err);
    account = (struct bh_account){ .created_ns = account.created_ns,
                                   .version = account.version,
                                   .identity = account.identity,
                                   .principal = principal->id.v };
    if (rc == BH_OK)
        rc = bh_account_put(&account, call->arena, &leaving.puts[leaving.count++], err);
    change.object = (struct bh_record_object){ "account", principal->id.v };
    change.puts = leaving.puts;
    change.put_count = leaving.count;
    if (rc != BH_OK)
        return rc;
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sessions_end(accounts, call, principal->id.v, NULL, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, account_reset, .reset = true);
    return BH_OK;
}
