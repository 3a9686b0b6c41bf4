#include "accounts/passkeys.h"

#include <stdio.h>
#include <string.h>

#include "api/request/reply.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/num.h"
#include "accounts/challenge.h"
#include "accounts/factor.h"
#include "accounts/session.h"

/* ---- the site that passkeys are made for ---- */

struct party {
    char id[256]; /* the address without scheme and port */
    const char *origin;
    struct bh_webauthn_site site;
};

static bool
passkeys_is_number(const char *host)
{
    return host[0] == '[' || host[strspn(host, "0123456789.")] == '\0';
}

/* BH_UNAVAILABLE: the site file does not say at which address browsers come, or it names no
 * host: browsers make no passkeys for numbers.  A port that browsers leave out is left out. */
static bh_rc
passkeys_party_of(const struct bh_call *call, struct party *ret_party, struct bh_err *err)
{
    static const char scheme[] = "https://", port[] = ":443";
    const char *address = call->dir->sign_in->address;
    size_t length = address ? strcspn(address + sizeof scheme - 1, ":") : 0;

    ret_party->id[0] = '\0';
    if (length < sizeof ret_party->id)
        snprintf(ret_party->id, sizeof ret_party->id, "%.*s", (int)length,
                 address ? address + sizeof scheme - 1 : "");
    if (passkeys_is_number(ret_party->id)) {
        bh_err_set(err, BH_UNAVAILABLE, "passkeys need an address of this site, and none is set");
        return bh_err_hint(err, "add to the site file: sign_in: {address: https://HOST}");
    }
    length += sizeof scheme - 1;
    ret_party->origin =
        strcmp(address + length, port) == 0 ? bh_arena_strndup(call->arena, address, length) : address;
    ret_party->site = (struct bh_webauthn_site){ ret_party->id, "Bulkhead", { &ret_party->origin, 1 } };
    return ret_party->origin ? BH_OK : bh_err_set(err, BH_FULL, "no room for an address");
}

bool
bh_passkeys_offered(const struct bh_call *call)
{
    struct party party;
    struct bh_err err;

    return passkeys_party_of(call, &party, &err) == BH_OK;
}

/* ---- what is asked for a new one: a challenge, and the handle of an account without ---- */

static bh_rc
passkeys_begin(struct bh_accounts *accounts, const struct bh_webauthn_user *user, struct bh_pending *draft,
               struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc;

    draft->kind = BH_PENDING_PASSKEY;
    draft->expires = bh_accounts_now(accounts) + BH_WEBAUTHN_SECONDS * BH_NS_PER_S;
    rc = bh_accounts_random_hex(accounts, BH_SECRET_BYTES, draft->secret, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&text, draft->secret + 2 * BH_SECRET_BYTES, sizeof draft->secret - 2 * BH_SECRET_BYTES);
    bh_buf_put_hex(&text, user->handle, user->handle_bytes);
    return bh_buf_text(&text) ? BH_OK : bh_err_set(err, BH_FULL, "no room for a challenge");
}

/* The ceremony that was begun with it. */
static struct bh_webauthn
passkeys_ceremony_of(const struct bh_pending *pending)
{
    uint8_t challenge[BH_SECRET_BYTES];
    char hex[2 * BH_SECRET_BYTES + 1];
    struct bh_webauthn ceremony;
    bool good;

    snprintf(hex, sizeof hex, "%.*s", 2 * BH_SECRET_BYTES, pending->secret);
    good = bh_parse_hex(hex, challenge, sizeof challenge);
    BH_ASSERT(good);
    bh_webauthn_begin(&ceremony, BH_WEBAUTHN_CREATE, challenge,
                      pending->expires - BH_WEBAUTHN_SECONDS * BH_NS_PER_S);
    return ceremony;
}

/* Answer with a challenge's id and the options that are in `options`. */
static void
passkeys_put_challenge(struct bh_call *call, const char *id, const char *options)
{
    BH_REPLY_WITH(call, passkey_challenge, .challenge = id, .options = bh_reply_slice(options));
}

/* ---- as documents ---- */

struct passkey_list {
    struct bh_arena *arena;
    struct bh_passkey *items;
    uint64_t versions[BH_PASSKEYS_MAX];
    uint32_t count;
};

static bool
read_passkey(void *self, const struct bh_document_row *row)
{
    struct passkey_list *list = self;

    if (list->count < BH_PASSKEYS_MAX
        && bh_passkey_decode(row->value, strlen(row->value), list->arena, &list->items[list->count])
               == BH_FAULT_NONE)
        list->versions[list->count++] = row->version;
    return true;
}

static bh_rc
read_passkeys(const struct bh_accounts *accounts, struct bh_call *call, uint32_t principal,
              struct passkey_list *ret_list, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_filter filter = { BH_DOCUMENT_PASSKEY, principal };

    *ret_list = (struct passkey_list){ .arena = call->arena };
    ret_list->items = bh_arena_alloc(call->arena, BH_PASSKEYS_MAX * sizeof *ret_list->items);
    if (!ret_list->items)
        return bh_err_set(err, BH_FULL, "no room for passkeys");
    return store->ops->list_documents(store->self, &filter, read_passkey, ret_list, err);
}

/* What writes a passkey, if it still is of that version; 0: there is none yet. */
static bh_rc
put_passkey(const struct bh_passkey *passkey, const struct bh_document_row *was, struct bh_arena *arena,
            struct bh_document_put *ret_put, struct bh_err *err)
{
    char memory[BH_PASSKEY_JSON_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_passkey_encode(&text, passkey);
    BH_ASSERT(bh_buf_text(&text));
    *ret_put = (struct bh_document_put){ .row = { .kind = BH_DOCUMENT_PASSKEY,
                                                  .key = bh_arena_strdup(arena, passkey->id),
                                                  .version = was->version,
                                                  .principal_id = was->principal_id,
                                                  .value = bh_arena_strdup(arena, memory) } };
    return ret_put->row.key && ret_put->row.value ? BH_OK : bh_err_set(err, BH_FULL, "no room for a passkey");
}

bh_rc
bh_passkeys_list(const struct bh_accounts *accounts, struct bh_call *call, uint32_t principal,
                 struct bh_list *ret, struct bh_err *err)
{
    struct bh_reply_passkey_shown *shown;
    struct passkey_list list;
    bh_rc rc = read_passkeys(accounts, call, principal, &list, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, list.count * sizeof *shown, &shown, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < list.count; i++) {
        const struct bh_passkey *passkey = &list.items[i];

        shown[i] = (struct bh_reply_passkey_shown){ .created_ns = passkey->created,
                                                    .id = passkey->id,
                                                    .last_used_ns = passkey->used,
                                                    .name = passkey->name,
                                                    .synced = passkey->flags & BH_PASSKEY_SYNCED };
    }
    *ret = (struct bh_list){ shown, list.count };
    return BH_OK;
}

/* ---- showing one ---- */

/* A signed-in user who shows a passkey again is asked for one of the account's, as some authenticators
 * need that list.  This operation asks for no session: it is read from the header. */
static uint32_t
passkeys_present_principal(struct bh_accounts *accounts, struct bh_call *call)
{
    static const char scheme[] = "Bearer ";
    const char *header = call->request->authorization;
    struct bh_call probe = *call;
    struct bh_err unused;

    if (!header || strncmp(header, scheme, sizeof scheme - 1) != 0
        || bh_session_identify(accounts, header + sizeof scheme - 1, &probe, &unused) != BH_OK)
        return 0;
    return probe.caller.subject.principal.v;
}

bh_rc
bh_serve_challenge(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_DOCUMENT_VALUE_MAX };
    uint32_t principal = passkeys_present_principal(accounts, call);
    struct passkey_list list = { .count = 0 };
    struct bh_challenge challenge;
    struct party party;
    bh_rc rc = passkeys_party_of(call, &party, err);

    if (rc != BH_OK)
        return rc;
    if (principal)
        rc = read_passkeys(accounts, call, principal, &list, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_challenge_make(accounts, &challenge, err);
    if (rc != BH_OK)
        return rc;
    bh_webauthn_put_request(&text, &party.site, &(struct bh_passkeys){ list.items, list.count },
                            &challenge.ceremony);
    BH_ASSERT(bh_buf_text(&text));
    passkeys_put_challenge(call, challenge.id, bh_buf_text(&text));
    return BH_OK;
}

struct bh_sign_in_attempt
bh_passkey_attempt(const struct bh_accounts *accounts, struct bh_call *call)
{
    struct bh_sign_in_attempt attempt = bh_attempt_from_call(accounts, call, "", NULL, 0);

    attempt.account = bh_arena_printf(call->arena, "a passkey from %s", attempt.source);
    if (!attempt.account)
        attempt.account = "a passkey";
    return attempt;
}

/* The passkey of that id with its account; false when there is none, or its owner is gone. */
static bool
passkeys_read_owner(const struct bh_accounts *accounts, struct bh_call *call, const char *credential,
                    struct bh_document_row *ret_row, struct bh_account *ret_account)
{
    const struct bh_store *store = &accounts->options.store;
    const struct bh_dir_principal *principal;
    struct bh_err err;

    if (!credential[0] || strlen(credential) >= BH_PASSKEY_ID_TEXT
        || store->ops->get_document(store->self, &(struct bh_document_key){ BH_DOCUMENT_PASSKEY, credential },
                                    call->arena, ret_row, &err)
               != BH_OK)
        return false;
    principal = bh_directory_principal(call->dir, (bh_principal_id){ ret_row->principal_id });
    return principal && !principal->gone
           && bh_account_read(&accounts->documents, ret_row->principal_id, call->arena, ret_account, &err)
                  == BH_OK;
}

static struct bh_webauthn_response
passkeys_answer_of(const struct bh_sign_in_request *request)
{
    return (struct bh_webauthn_response){
        .authenticator_data = request->authenticator_data ? request->authenticator_data : "",
        .client_data = request->client_data ? request->client_data : "",
        .credential = request->credential,
        .signature = request->signature ? request->signature : "",
        .user_handle = request->user_handle,
    };
}

static struct bh_webauthn_user
passkeys_user_of(const struct bh_account *account, const char *name)
{
    struct bh_webauthn_user user = { .handle_bytes = sizeof account->handle, .name = name };

    memcpy(user.handle, account->handle, sizeof account->handle);
    return user;
}

/* Why not is for the log alone. */
static enum bh_identity_fault
assert_passkey(struct bh_accounts *accounts, struct bh_call *call, const struct bh_sign_in_request *request,
               struct bh_document_row *ret_row, struct bh_webauthn_proof *ret_proof)
{
    struct bh_webauthn_response answer = passkeys_answer_of(request);
    struct bh_challenge challenge;
    struct bh_webauthn_user user;
    struct bh_account account;
    struct bh_passkey passkey;
    enum bh_identity_fault fault;
    struct party party;
    struct bh_err err;

    *ret_row = (struct bh_document_row){ .kind = BH_DOCUMENT_PASSKEY };
    if (passkeys_party_of(call, &party, &err) != BH_OK
        || !bh_challenge_find(accounts, request->challenge, &challenge))
        return BH_FAULT_WEBAUTHN_CHALLENGE;
    if (!passkeys_read_owner(accounts, call, request->credential, ret_row, &account))
        return BH_FAULT_WEBAUTHN_UNKNOWN;
    fault = bh_passkey_decode(ret_row->value, strlen(ret_row->value), call->arena, &passkey);
    if (fault != BH_FAULT_NONE)
        return fault;
    user = passkeys_user_of(&account, "");
    fault = bh_webauthn_assert(&(struct bh_webauthn_owner){ &party.site, &user, { &passkey, 1 } },
                               &challenge.ceremony, &answer, bh_accounts_now(accounts), ret_proof);
    if (fault == BH_FAULT_NONE && !bh_challenge_consume(accounts, &challenge))
        fault = BH_FAULT_WEBAUTHN_USED;
    return fault;
}

bool
bh_passkey_right(struct bh_accounts *accounts, struct bh_call *call, const struct bh_sign_in_request *request,
                 struct bh_passkey_proof *ret_shown)
{
    struct bh_webauthn_proof proof;
    struct bh_document_row row;
    struct bh_err err;
    enum bh_identity_fault fault = assert_passkey(accounts, call, request, &row, &proof);

    if (fault != BH_FAULT_NONE) {
        bh_log(PASSKEY_REFUSED, BH_U64("principal", row.principal_id), BH_STR("fault", bh_fault_name(fault)));
        return false;
    }
    if (proof.cloned) {
        bh_log(PASSKEY_CLONED, BH_U64("principal", row.principal_id));
        return false;
    }
    ret_shown->principal = row.principal_id;
    return put_passkey(&proof.passkey, &row, call->arena, &ret_shown->put, &err) == BH_OK;
}

/* Only a local account's passkey is a way in by itself. */
static const struct bh_dir_principal *
passkeys_may_sign_in(const struct bh_call *call, uint32_t principal)
{
    const struct bh_dir_principal *found = bh_directory_principal(call->dir, (bh_principal_id){ principal });

    return found && found->account ? found : NULL;
}

bh_rc
bh_passkey_sign_in(struct bh_accounts *accounts, struct bh_call *call,
                   const struct bh_sign_in_request *request, struct bh_err *err)
{
    struct bh_session_opening opening = { .session = { .host = request->host, .level = BH_LEVEL_PASSKEY } };
    struct bh_sign_in_attempt attempt = bh_passkey_attempt(accounts, call);
    const struct bh_dir_principal *principal = NULL;
    struct bh_passkey_proof shown;

    if (bh_passkey_right(accounts, call, request, &shown))
        principal = passkeys_may_sign_in(call, shown.principal);
    if (!principal)
        return bh_attempt_failed(accounts, call, &attempt, err);
    opening.puts = &shown.put;
    opening.put_count = 1;
    opening.principal = shown.principal;
    opening.name = principal->name;
    return bh_session_open(accounts, call, &opening, err);
}

/* ---- adding and removing ---- */

static bool
passkeys_has_handle(const struct bh_account *account)
{
    static const uint8_t none[sizeof account->handle];

    return memcmp(account->handle, none, sizeof none) != 0;
}

bh_rc
bh_serve_passkey_begin(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_DOCUMENT_VALUE_MAX };
    struct bh_pending draft = { .principal = call->caller.subject.principal.v };
    struct bh_webauthn ceremony;
    struct bh_webauthn_user user;
    struct passkey_list list;
    struct bh_account account;
    struct party party;
    char id[33];
    bh_rc rc = passkeys_party_of(call, &party, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_own_account(accounts, call, &account, err);
    if (rc != BH_OK)
        return rc;
    if (!passkeys_has_handle(&account))
        rc = accounts->options.crypto->random(account.handle, sizeof account.handle, err);
    if (rc != BH_OK)
        return rc;
    rc = read_passkeys(accounts, call, draft.principal, &list, err);
    if (rc != BH_OK)
        return rc;
    if (list.count == BH_PASSKEYS_MAX)
        rc = bh_fault_err(BH_FAULT_PASSKEY_MANY, err);
    if (rc != BH_OK)
        return rc;
    user = passkeys_user_of(&account, call->caller.name);
    rc = passkeys_begin(accounts, &user, &draft, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_pending_put(accounts, &draft, id, err);
    if (rc != BH_OK)
        return rc;
    ceremony = passkeys_ceremony_of(&draft);
    bh_webauthn_put_creation(&text, &party.site, &user, &(struct bh_passkeys){ list.items, list.count },
                             &ceremony);
    BH_ASSERT(bh_buf_text(&text));
    passkeys_put_challenge(call, id, bh_buf_text(&text));
    return BH_OK;
}

/* What the caller's browser made, and the handle that it was made with. */
static bh_rc
passkeys_verify_creation(struct bh_accounts *accounts, struct bh_call *call, struct bh_account *account,
                         struct bh_passkey *ret_passkey, struct bh_err *err)
{
    struct bh_passkey_request request = { 0 };
    struct bh_webauthn ceremony;
    struct bh_webauthn_response answer;
    struct bh_pending pending;
    struct party party;
    bool good;
    bh_rc rc = bh_call_body(call, &bh_passkey_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    rc = passkeys_party_of(call, &party, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_pending_consume(accounts, BH_PENDING_PASSKEY, request.challenge, account->principal, &pending))
        return bh_fault_err(BH_FAULT_WEBAUTHN_EXPIRED, err);
    good = bh_parse_hex(pending.secret + 2 * BH_SECRET_BYTES, account->handle, sizeof account->handle);
    BH_ASSERT(good);
    ceremony = passkeys_ceremony_of(&pending);
    answer = (struct bh_webauthn_response){ .authenticator_data = request.authenticator_data,
                                            .client_data = request.client_data,
                                            .credential = request.credential,
                                            .name = request.name,
                                            .transports = request.transports };
    return bh_fault_err(
        bh_webauthn_register(&party.site, &ceremony, &answer, bh_accounts_now(accounts), ret_passkey), err);
}

static void
passkeys_put_added(struct bh_call *call, const struct bh_passkey *passkey,
                   char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT])
{
    const char *texts[BH_RECOVERY_CODES];

    if (codes)
        bh_recovery_texts(codes, texts);
    BH_REPLY_WITH(call, passkey_added, .id = passkey->id, .name = passkey->name,
                  .recovery = { texts, codes ? BH_RECOVERY_CODES : 0 });
    call->status = 201;
}

/* BH_CONFLICT: some account has it already. */
static bh_rc
passkeys_check_new(const struct bh_accounts *accounts, struct bh_call *call, const char *id,
                   struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_row row;
    bh_rc rc = store->ops->get_document(store->self, &(struct bh_document_key){ BH_DOCUMENT_PASSKEY, id },
                                        call->arena, &row, err);

    if (rc == BH_OK)
        return bh_fault_err(BH_FAULT_PASSKEY_KNOWN, err);
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

bh_rc
bh_serve_passkey_add(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_puts puts = { .count = 2 };
    struct bh_accounts_change change = { .verb = "account.passkey", .puts = puts.items };
    struct bh_document_row none = { .principal_id = call->caller.subject.principal.v };
    char codes[BH_RECOVERY_CODES][BH_RECOVERY_TEXT];
    struct bh_account account;
    struct bh_passkey passkey;
    struct bh_answer answer;
    bool first;
    bh_rc rc = bh_own_account(accounts, call, &account, err);

    if (rc != BH_OK)
        return rc;
    if (account.passkeys >= BH_PASSKEYS_MAX)
        return bh_fault_err(BH_FAULT_PASSKEY_MANY, err);
    rc = passkeys_verify_creation(accounts, call, &account, &passkey, err);
    if (rc != BH_OK)
        return rc;
    rc = passkeys_check_new(accounts, call, passkey.id, err);
    if (rc != BH_OK)
        return rc;
    first = account.recovery.count == 0;
    if (first)
        rc = bh_recovery_new(accounts, call, &account, codes, err);
    if (rc != BH_OK)
        return rc;
    rc = put_passkey(&passkey, &none, call->arena, &puts.items[0], err);
    if (rc != BH_OK)
        return rc;
    rc = bh_account_put(&account, call->arena, &puts.items[1], err);
    if (rc != BH_OK)
        return rc;
    rc = bh_session_raise(accounts, call, BH_LEVEL_PASSKEY, &puts, err);
    if (rc != BH_OK)
        return rc;
    change.put_count = puts.count;
    change.object = (struct bh_record_object){ "account", account.principal };
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc == BH_OK)
        passkeys_put_added(call, &passkey, first ? codes : NULL);
    bh_secret_wipe(codes, sizeof codes);
    return rc;
}

static bh_rc
no_passkey(struct bh_call *call, struct bh_err *err)
{
    call->probed = true;
    return bh_err_set(err, BH_NOT_FOUND, "this account has no passkey with that id");
}

/* BH_CONFLICT: nothing else would be left to show. */
static bh_rc
passkeys_check_other_factor(const struct bh_account *account, struct bh_err *err)
{
    if (account->passkeys > 1 || bh_account_has_totp(account))
        return BH_OK;
    bh_err_set(err, BH_CONFLICT, "it is the account's only second factor");
    return bh_err_hint(err, "add another passkey or an authenticator app first");
}

bh_rc
bh_serve_passkey_remove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_document_put puts[2];
    struct bh_accounts_change change = { .verb = "account.passkey_removed", .puts = puts, .put_count = 2 };
    struct bh_account account;
    struct passkey_list list;
    struct bh_answer answer;
    uint32_t at = 0;
    bh_rc rc = bh_own_account(accounts, call, &account, err);

    if (rc != BH_OK)
        return rc;
    rc = read_passkeys(accounts, call, account.principal, &list, err);
    if (rc != BH_OK)
        return rc;
    while (at < list.count && strcmp(list.items[at].id, call->id) != 0)
        at++;
    if (at == list.count)
        return no_passkey(call, err);
    rc = passkeys_check_other_factor(&account, err);
    if (rc == BH_OK) /* written as it is, so that of two removals at once one is refused */
        rc = bh_account_put(&account, call->arena, &puts[1], err);
    if (rc != BH_OK)
        return rc;
    puts[0] = (struct bh_document_put){ .row = { .kind = BH_DOCUMENT_PASSKEY,
                                                 .key = list.items[at].id,
                                                 .version = list.versions[at],
                                                 .principal_id = account.principal } };
    change.object = (struct bh_record_object){ "account", account.principal };
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, factor_removed, .removed = true);
    return BH_OK;
}
