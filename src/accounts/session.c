#include "accounts/session.h"

#include <string.h>

#include "accounts/attempt.h"
#include "api/request/reply.h"
#include "api/request/token.h"
#include "base/assert.h"

/* ---- opening ---- */

/* A session's number in records: of its id's letters, as many bits as JSON's integers have. */
static uint64_t
session_number_of(const char *id)
{
    uint64_t number = 0;

    for (; *id; id++)
        number = number << 5 | (uint64_t)((*id >= 'a' ? *id - 'a' : *id - '2' + 26) & 31);
    return number & ((UINT64_C(1) << 53) - 1);
}

/* The reply, which alone has the secret. */
static void
session_put_opened(struct bh_call *call, const struct bh_session_opening *opening,
                   const struct bh_session *session, const char *secret, const char *device)
{
    BH_REPLY_WITH(call, session_opened, .device = device, .expires_ns = session->expires_ns,
                  .id = session->id, .level = bh_level_names[session->level], .name = opening->name,
                  .session = secret);
    call->status = 201;
}

static bh_rc
session_open_with(struct bh_accounts *accounts, struct bh_call *call,
                  const struct bh_session_opening *opening, char secret[BH_TOKEN_LENGTH + 1],
                  struct bh_err *err)
{
    struct bh_token token = { .kind = BH_TOKEN_SESSION };
    struct bh_session session = opening->session;
    struct bh_document_put puts[8];
    struct bh_accounts_change change = {
        .verb = "session.open", .person = opening->person, .puts = puts, .put_count = opening->put_count + 1
    };
    struct bh_answer answer;
    bh_rc rc = bh_token_make(accounts->options.crypto, &token, secret, err);

    if (rc != BH_OK)
        return rc;
    BH_ASSERT(change.put_count <= BH_COUNT(puts));
    memcpy(session.certificate, call->request->transport->certificate, sizeof session.certificate);
    session.created_ns = session.used_ns = bh_accounts_now(accounts);
    if (!session.shown_ns)
        session.shown_ns = session.created_ns;
    if (!session.expires_ns)
        session.expires_ns = session.created_ns + bh_sign_in_life_ns(call->dir->sign_in);
    session.id = token.id;
    session.principal = opening->principal;
    memcpy(session.secret, token.secret, sizeof session.secret);
    if (opening->put_count)
        memcpy(puts, opening->puts, opening->put_count * sizeof *puts);
    rc = bh_session_put(&session, call->arena, &puts[opening->put_count], err);
    if (rc != BH_OK)
        return rc;
    change.object = (struct bh_record_object){ "session", session_number_of(token.id) };
    call->caller.via = BH_VIA_SESSION;
    call->caller.token = session.id;
    call->caller.subject.principal.v = opening->principal;
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    session_put_opened(
        call, opening, &session, secret,
        bh_device_make(accounts, call->arena, answer.principal ? answer.principal : opening->principal));
    return BH_OK;
}

bh_rc
bh_session_open(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session_opening *opening,
                struct bh_err *err)
{
    char secret[BH_TOKEN_LENGTH + 1];
    bh_rc rc = session_open_with(accounts, call, opening, secret, err);

    bh_secret_wipe(secret, sizeof secret);
    return rc;
}

/* ---- using ---- */

static bh_rc
no_session(struct bh_err *err)
{
    bh_err_set(err, BH_UNAUTHENTICATED, "the session has ended");
    return bh_err_hint(err, "sign in again: `bulkhead login`");
}

static uint64_t
session_last_use(struct bh_accounts *accounts, const struct bh_session *session)
{
    uint64_t used;

    bh_mutex_lock(&accounts->mutex);
    used = bh_use_at(&accounts->uses, session->id);
    bh_mutex_unlock(&accounts->mutex);
    return used > session->used_ns ? used : session->used_ns;
}

/* A clock that was set back ends no session early, and makes none live longer: its end is a
 * moment. */
static bool
session_is_over(struct bh_accounts *accounts, const struct bh_site_sign_in *sign_in,
                const struct bh_session *session)
{
    bh_ns now = bh_accounts_now(accounts);

    return now >= session->expires_ns
           || now >= session_last_use(accounts, session) + bh_sign_in_idle_ns(sign_in);
}

/* The ids of the provider's groups that bindings name. */
static uint32_t
session_groups_of(const struct bh_directory *dir, const struct bh_session *session, uint32_t *ret_ids)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < session->groups.count; i++) {
        const struct bh_dir_group *group = bh_directory_group(dir, session->groups.items[i]);

        if (group)
            ret_ids[count++] = group->id;
    }
    return count;
}

/* A user who must have a second factor and has none yet may do nothing but set one up. */
static bh_rc
restrict_session(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session *session,
                 struct bh_err *err)
{
    enum bh_factor_rule rule = call->dir->sign_in->factor;
    enum bh_level least = rule == BH_FACTOR_OPTIONAL  ? BH_LEVEL_NONE
                          : rule == BH_FACTOR_PASSKEY ? BH_LEVEL_PASSKEY
                                                      : BH_LEVEL_CODE;

    if (session->level < least)
        call->caller.subject.scopes = "account.own account.change session.own";
    return BH_OK;
}

static bh_rc
session_fill_caller(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session *session,
                    struct bh_err *err)
{
    const struct bh_dir_principal *principal =
        bh_directory_principal(call->dir, (bh_principal_id){ session->principal });
    uint32_t *groups = bh_arena_alloc(call->arena, (session->groups.count + 1) * sizeof *groups);

    if (!principal || principal->gone)
        return no_session(err);
    if (!groups)
        return bh_err_set(err, BH_FULL, "no room for groups");
    call->caller.via = BH_VIA_SESSION;
    call->caller.token = session->id;
    call->caller.name = principal->name;
    call->caller.uid = call->caller.gid = principal->uid;
    call->caller.subject = (struct bh_subject){
        .principal = principal->id,
        .uid = UINT32_MAX,
        .groups = groups,
        .group_count = session_groups_of(call->dir, session, groups),
        .presence = { BH_PRESENCE_SESSION, session->level, session->shown_ns, bh_accounts_now(accounts),
                      session->glass_until_ns },
    };
    return restrict_session(accounts, call, session, err);
}

/* A session is of no use without the certificate that it was opened with, so that a thief of
 * its secret needs the key as well. */
static bool
session_is_bound_elsewhere(const struct bh_call *call, const struct bh_session *session)
{
    static const uint8_t none[sizeof session->certificate];
    const uint8_t *shown = call->request->transport->certificate;

    return memcmp(session->certificate, none, sizeof none) != 0
           && memcmp(session->certificate, shown, sizeof none) != 0;
}

/* The right secret, shown without its certificate: whose it was goes into the record. */
static bh_rc
session_refuse_elsewhere(struct bh_call *call, const struct bh_session *session, struct bh_err *err)
{
    call->caller.via = BH_VIA_SESSION;
    call->caller.token = session->id;
    call->caller.subject = (struct bh_subject){ .principal = { session->principal }, .uid = UINT32_MAX };
    return no_session(err);
}

bh_rc
bh_session_identify(struct bh_accounts *accounts, const char *secret, struct bh_call *call,
                    struct bh_err *err)
{
    struct bh_session session;
    struct bh_token token;
    bh_rc rc;

    if (!bh_token_parse(accounts->options.crypto, secret, &token) || token.kind != BH_TOKEN_SESSION)
        return no_session(err);
    rc = bh_session_read(&accounts->documents, token.id, call->arena, &session, err);
    if (rc == BH_NOT_FOUND)
        return no_session(err);
    if (rc != BH_OK)
        return rc;
    if (!bh_token_same(session.secret, token.secret)
        || session_is_over(accounts, call->dir->sign_in, &session))
        return no_session(err);
    if (session_is_bound_elsewhere(call, &session))
        return session_refuse_elsewhere(call, &session, err);
    rc = session_fill_caller(accounts, call, &session, err);
    if (rc != BH_OK)
        return rc;
    bh_mutex_lock(&accounts->mutex);
    bh_use_record(&accounts->uses, session.id, true, bh_accounts_now(accounts));
    bh_mutex_unlock(&accounts->mutex);
    return BH_OK;
}

void
bh_session_of_request(struct bh_accounts *accounts, struct bh_call *call, struct bh_caller *ret_caller)
{
    static const char scheme[] = "Bearer ";
    const char *header = call->request->authorization;
    struct bh_call probe = *call;
    struct bh_err unused;

    if (header && strncmp(header, scheme, sizeof scheme - 1) == 0
        && bh_session_identify(accounts, header + sizeof scheme - 1, &probe, &unused) == BH_OK)
        *ret_caller = probe.caller;
}

bh_rc
bh_session_check_fresh(const struct bh_accounts *accounts, const struct bh_call *call, struct bh_err *err)
{
    const struct bh_presence *presence = &call->caller.subject.presence;

    if (call->caller.subject.principal.v == 0)
        return bh_err_set(err, BH_INVALID, "root has no account: name a principal");
    if (presence->kind == BH_PRESENCE_LOCAL)
        return BH_OK;
    if (presence->kind == BH_PRESENCE_SESSION && presence->shown_ns <= presence->now_ns
        && presence->now_ns - presence->shown_ns <= BH_FRESH_S * BH_NS_PER_S)
        return BH_OK;
    return bh_authz_refuse_step_up(call->op->verb, err);
}

bh_rc
bh_session_own(struct bh_accounts *accounts, struct bh_call *call, struct bh_session *ret_session,
               struct bh_err *err)
{
    if (call->caller.via != BH_VIA_SESSION || !call->caller.token) {
        bh_err_set(err, BH_CONFLICT, "the request has no session");
        return bh_err_hint(err, "sign in first: `bulkhead login`");
    }
    return bh_session_read(&accounts->documents, call->caller.token, call->arena, ret_session, err);
}

bh_rc
bh_session_raise(struct bh_accounts *accounts, struct bh_call *call, enum bh_level level,
                 struct bh_puts *puts, struct bh_err *err)
{
    const struct bh_presence *presence = &call->caller.subject.presence;
    struct bh_session session;
    bh_rc rc;

    if (presence->kind != BH_PRESENCE_SESSION || presence->level > level)
        return BH_OK;
    rc = bh_session_own(accounts, call, &session, err);
    if (rc != BH_OK)
        return rc;
    session.level = level;
    session.shown_ns = bh_accounts_now(accounts);
    return bh_session_put(&session, call->arena, &puts->items[puts->count++], err);
}

/* ---- ending ---- */

enum { ENDED_AT_ONCE_MAX = 200 };

struct ending {
    const struct bh_documents *documents;
    struct bh_arena *arena;
    const char *except;
    struct bh_document_put puts[ENDED_AT_ONCE_MAX];
    uint32_t count;
    struct bh_accounts *accounts; /* sweeping: only those that are over */
    const struct bh_site_sign_in *sign_in;
};

static bool
session_end_matching(void *self, const struct bh_document_row *row)
{
    struct ending *ending = self;
    struct bh_session session;
    struct bh_err err;

    if (ending->count == ENDED_AT_ONCE_MAX)
        return false;
    if ((ending->except && strcmp(row->key, ending->except) == 0)
        || bh_session_of(ending->documents, row, ending->arena, &session, &err) != BH_OK
        || (ending->accounts && !session_is_over(ending->accounts, ending->sign_in, &session)))
        return true;
    if (bh_session_drop(&session, ending->arena, &ending->puts[ending->count], &err) == BH_OK)
        ending->puts[ending->count++].blind = true;
    return true;
}

bh_rc
bh_sessions_end(struct bh_accounts *accounts, struct bh_call *call, uint32_t principal, const char *except,
                struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_filter filter = { BH_DOCUMENT_SESSION, principal };
    struct ending *ending = bh_arena_alloc(call->arena, sizeof *ending);
    struct bh_accounts_change change = { .verb = "session.end", .object = { "account", principal } };
    struct bh_answer answer;
    bh_rc rc = BH_OK;

    if (!ending)
        return bh_err_set(err, BH_FULL, "no room to end sessions");
    *ending = (struct ending){ .documents = &accounts->documents, .arena = call->arena, .except = except };
    do {
        ending->count = 0;
        rc = store->ops->list_documents(store->self, &filter, session_end_matching, ending, err);
        if (rc != BH_OK || ending->count == 0)
            return rc;
        change.puts = ending->puts;
        change.put_count = ending->count;
        rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    } while (rc == BH_OK && ending->count == ENDED_AT_ONCE_MAX);
    return rc;
}

bh_rc
bh_sessions_sweep(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_filter filter = { BH_DOCUMENT_SESSION, 0 };
    struct ending *ending = bh_arena_alloc(call->arena, sizeof *ending);
    struct bh_accounts_change change = { .verb = "session.over" };
    struct bh_answer answer;
    bh_rc rc;

    if (!ending)
        return BH_OK;
    *ending = (struct ending){ .documents = &accounts->documents,
                               .arena = call->arena,
                               .accounts = accounts,
                               .sign_in = call->dir->sign_in };
    rc = store->ops->list_documents(store->self, &filter, session_end_matching, ending, err);
    if (rc != BH_OK || ending->count == 0)
        return rc;
    change.puts = ending->puts;
    change.put_count = ending->count;
    return bh_accounts_commit(accounts, call, &change, &answer, err);
}
