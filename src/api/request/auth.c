#include "api/request/auth.h"

#include <string.h>
#include <strings.h>

#include "api/request/token.h"
#include "audit/claims.h"
#include "audit/record.h"
#include "base/num.h"

enum { UID_NOBODY = 65534 };

/* ---- tokens ---- */

struct token_search {
    struct bh_arena *arena;
    struct bh_token_row row;
    bool found;
};

static bool
auth_match_token(void *self, const struct bh_token_row *row)
{
    struct token_search *search = self;

    search->row = *row;
    search->row.scopes = bh_arena_strdup(search->arena, row->scopes ? row->scopes : "");
    search->row.note = NULL;
    search->found = true;
    return false;
}

/* One answer for every way in which a token is no good: which one it was concerns
 * its owner alone, who sees it in `bulkhead token`. */
static bh_rc
auth_bad_token(struct bh_err *err)
{
    bh_err_set(err, BH_UNAUTHENTICATED, "the token is not valid");
    return bh_err_hint(err, "it may be mistyped, expired or revoked; `bulkhead token` shows "
                            "yours and makes new ones");
}

static bh_rc
auth_find_token(struct bh_call *call, const char *text, struct bh_token_row *ret_row, struct bh_err *err)
{
    const struct bh_api_options *options = &call->api->options;
    struct bh_token token;
    struct token_search search = { .arena = call->arena };
    bool whole = bh_token_parse(options->crypto, text, &token) && token.kind == BH_TOKEN_API;
    bh_rc rc;

    if (!whole && !bh_token_id_of(text, token.id))
        return auth_bad_token(err);
    rc = options->store.ops->list_tokens(options->store.self, &(struct bh_token_filter){ .id = token.id },
                                         auth_match_token, &search, err);
    if (rc != BH_OK)
        return rc;
    if (search.found && (!whole || !bh_token_same(search.row.secret.bytes, token.secret))) {
        call->unauthenticated_token = bh_token_number(search.row.secret.bytes);
        search.found = false;
    }
    if (!search.found || !search.row.scopes)
        return auth_bad_token(err);
    *ret_row = search.row;
    return BH_OK;
}

static bh_rc
auth_identify_token(struct bh_call *call, const char *text, struct bh_err *err)
{
    const struct bh_accounts_port *accounts = &call->api->options.accounts;
    const struct bh_dir_principal *principal;
    struct bh_token_row row;
    bh_rc rc = auth_find_token(call, text, &row, err);

    if (rc != BH_OK)
        return rc;
    principal = bh_directory_principal(call->dir, (bh_principal_id){ row.principal_id });
    if (row.revoked || (row.expires_ns && row.expires_ns <= bh_call_now(call)) || !principal
        || principal->gone) {
        /* the right secret of a token that is dead: whose it was goes into the record */
        call->caller.via = BH_VIA_TOKEN;
        call->caller.token = bh_arena_strdup(call->arena, row.id);
        call->caller.subject = (struct bh_subject){ .principal = { row.principal_id }, .uid = UINT32_MAX };
        return auth_bad_token(err);
    }
    call->caller.via = BH_VIA_TOKEN;
    call->caller.token = bh_arena_strdup(call->arena, row.id);
    call->caller.name = principal->name;
    call->caller.uid = principal->uid;
    call->caller.gid = principal->uid;
    call->caller.subject = (struct bh_subject){
        .principal = principal->id,
        .uid = UINT32_MAX,
        .scopes = row.scopes[0] ? row.scopes : NULL,
        .presence = { .kind = BH_PRESENCE_TOKEN, .now_ns = bh_call_now(call) },
    };
    if (accounts->ops)
        accounts->ops->token_used(accounts->self, row.id, bh_call_now(call));
    return BH_OK;
}

/* The token in an Authorization header.  BH_INVALID: another scheme. */
static bh_rc
auth_read_bearer(const char *header, const char **ret_token, struct bh_err *err)
{
    static const char scheme[] = "bearer ";

    if (strncasecmp(header, scheme, sizeof scheme - 1) != 0) {
        bh_err_set(err, BH_UNAUTHENTICATED, "the Authorization header is not a bearer token");
        return bh_err_hint(err, "send \"Authorization: Bearer bh_...\"");
    }
    header += sizeof scheme - 1;
    while (*header == ' ')
        header++;
    *ret_token = header;
    return BH_OK;
}

/* ---- unix peers ---- */

static bool
auth_is_no_person(const struct bh_call *call, uint32_t uid)
{
    uint32_t first = call->api->options.job_uid_first;

    return uid == UID_NOBODY || uid == UINT32_MAX || (first && uid >= first);
}

static bh_rc
auth_unknown_peer(const struct bh_call *call, uint32_t uid, struct bh_err *err)
{
    bh_err_set(err, BH_UNAUTHENTICATED, "no principal is known for uid %" PRIu32, uid);
    if (auth_is_no_person(call, uid))
        return bh_err_hint(err, "this uid belongs to jobs or to no user; send an API token");
    return bh_err_hint(err,
                       "an admin adds to the site file: principals: [{name: NAME, uid: %" PRIu32
                       "}] and a binding, then `bulkhead apply`",
                       uid);
}

static bh_rc
auth_identify_peer(struct bh_call *call, struct bh_err *err)
{
    const struct bh_transport *peer = call->request->transport;
    const struct bh_dir_principal *principal =
        auth_is_no_person(call, peer->uid) ? NULL : bh_directory_principal_uid(call->dir, peer->uid);
    bool root = peer->uid == 0;

    if (!principal && !root)
        return auth_unknown_peer(call, peer->uid, err);
    call->caller.via = BH_VIA_PEER;
    call->caller.name = principal ? principal->name : "root";
    call->caller.uid = peer->uid;
    call->caller.gid = peer->gid;
    call->caller.subject = (struct bh_subject){
        .principal = principal ? principal->id : (bh_principal_id){ 0 },
        .uid = peer->uid,
        .gids = peer->gids,
        .gid_count = peer->gid_count,
        .root = root,
    };
    return BH_OK;
}

static bh_rc
auth_identify(struct bh_call *call, struct bh_err *err)
{
    const char *token = NULL;
    bh_rc rc = BH_OK;

    if (call->request->authorization)
        rc = auth_read_bearer(call->request->authorization, &token, err);
    if (rc != BH_OK)
        return rc;
    if (token && strncmp(token, "bs_", 3) == 0 && call->api->options.accounts.ops)
        return call->api->options.accounts.ops->identify(call->api->options.accounts.self, token, call, err);
    if (token)
        return auth_identify_token(call, token, err);
    if (call->request->transport->unix_socket)
        return auth_identify_peer(call, err);
    bh_err_set(err, BH_UNAUTHENTICATED, "no credentials were sent");
    return bh_err_hint(err, "send \"Authorization: Bearer bh_...\"; `bulkhead token create` "
                            "makes a token");
}

bh_rc
bh_auth_identify(struct bh_call *call, struct bh_err *err)
{
    const struct bh_transport *peer = call->request->transport;
    bh_rc rc;

    call->caller = (struct bh_caller){ .name = "nobody", .uid = UINT32_MAX, .gid = UINT32_MAX };
    rc = auth_identify(call, err);
    if (rc != BH_UNAUTHENTICATED || call->caller.via)
        return rc;
    call->unauthenticated = call->request->authorization != NULL;
    if (!call->unauthenticated && peer->unix_socket) {
        call->caller.via = BH_VIA_PEER;
        call->caller.subject.uid = peer->uid;
    }
    return rc;
}

bh_rc
bh_auth_number(struct bh_call *call, struct bh_err *err)
{
    return call->api->options.crypto->random(call->caller.request_id, sizeof call->caller.request_id, err);
}
