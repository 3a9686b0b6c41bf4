#include "api/accounts/tokens.h"

#include <string.h>

#include "api/request/reply.h"
#include "api/request/token.h"
#include "base/utf8.h"

static const struct bh_field request_fields[] = {
    BH_F(struct bh_token_request, lifetime, BH_FIELD_TEXT, .max = 32,
         .doc = "\"30d\"; 90 days when absent, which is the most"),
    BH_F(struct bh_token_request, note, BH_FIELD_TEXT, .max = 120, .doc = "what it is for, for people"),
    BH_F(struct bh_token_request, principal, BH_FIELD_TEXT, .max = BH_NAME_MAX,
         .doc = "whose it is; the caller's when absent, others need token.any"),
    BH_F(struct bh_token_request, scopes, BH_FIELD_TEXT, .max = 1000,
         .doc = "verbs separated by blanks; all that its owner may when absent"),
};
const struct bh_fields bh_token_request_fields =
    BH_FIELDS("token_request", struct bh_token_request, request_fields);

/* ---- making ---- */

static bh_rc
tokens_check_scopes(const char *scopes, struct bh_err *err)
{
    while (scopes && *scopes) {
        size_t length = strcspn(scopes, " ");
        char verb[32] = "";

        if (length < sizeof verb)
            memcpy(verb, scopes, length);
        if (length && strcmp(bh_authz_role_for(verb), "root") == 0) {
            bh_err_set(err, BH_INVALID, "scopes: \"%.*s\" is no verb", (int)length, scopes);
            bh_authz_hint_verb(verb, err);
            return BH_INVALID;
        }
        scopes += length + (scopes[length] == ' ');
    }
    return BH_OK;
}

bh_rc
bh_tokens_create(struct bh_call *call, struct bh_err *err)
{
    struct bh_token_request request = { 0 };
    struct bh_command command = { .token = &request };
    bh_rc rc = BH_OK;

    if (call->request->body_length > 0)
        rc = bh_call_body(call, &bh_token_request_fields, &request, err);
    if (rc != BH_OK)
        return rc;
    if (request.note && !bh_utf8_is_shown(request.note))
        return bh_err_set(err, BH_INVALID, "note: has a control or another invisible character");
    rc = tokens_check_scopes(request.scopes, err);
    if (rc != BH_OK)
        return rc;
    return bh_call_send(call, &command, err);
}

/* ---- listing ---- */

struct token_list {
    struct bh_call *call;
    struct bh_rows rows;
    bool any;   /* the caller sees tokens of all users */
    bool found; /* revoking: it is there, and the caller's */
};

static bool
tokens_is_own(const struct token_list *list, const struct bh_token_row *row)
{
    uint32_t own = list->call->caller.subject.principal.v;

    return list->any || (own && row->principal_id == own);
}

static const char *
tokens_state_of(const struct bh_call *call, const struct bh_token_row *row)
{
    if (row->revoked)
        return "revoked";
    return row->expires_ns && row->expires_ns <= bh_call_now(call) ? "expired" : "valid";
}

static bool
tokens_put_token(void *self, const struct bh_token_row *row)
{
    struct token_list *list = self;
    const struct bh_dir_principal *principal =
        bh_directory_principal(list->call->dir, (bh_principal_id){ row->principal_id });

    return bh_rows_put(&list->rows,
                       &(struct bh_reply_token_shown){ .created_ns = row->created_ns,
                                                       .expires_ns = row->expires_ns,
                                                       .id = row->id,
                                                       .last_used_ns = row->last_used_ns,
                                                       .note = row->note,
                                                       .principal = principal ? principal->name : "",
                                                       .scopes = row->scopes,
                                                       .state = tokens_state_of(list->call, row) });
}

static bool
tokens_may_see_all(const struct bh_call *call)
{
    return bh_authz_check(call->dir, &call->caller.subject, "token.any", (bh_tenant_id){ 0 }).allow;
}

bh_rc
bh_tokens_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct token_list list = { .call = call, .any = tokens_may_see_all(call) };
    uint32_t own = call->caller.subject.principal.v;
    bh_rc rc = BH_OK;

    list.rows = bh_rows_begin(call, &bh_reply_token_list_fields);
    if (list.any || own)
        rc = store->ops->list_tokens(store->self,
                                     &(struct bh_token_filter){ .principal_id = list.any ? 0 : own },
                                     tokens_put_token, &list, err);
    bh_rows_end(&list.rows, NULL);
    return rc;
}

/* ---- revoking ---- */

static bool
tokens_match_id(void *self, const struct bh_token_row *row)
{
    struct token_list *list = self;

    list->found = tokens_is_own(list, row);
    return false;
}

bh_rc
bh_tokens_revoke(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct token_list list = { .call = call, .any = tokens_may_see_all(call) };
    struct bh_command command = { .token_id = call->id };
    bh_rc rc = BH_OK;

    if (bh_token_id_valid(call->id))
        rc = store->ops->list_tokens(store->self, &(struct bh_token_filter){ .id = call->id },
                                     tokens_match_id, &list, err);
    if (rc != BH_OK)
        return rc;
    if (!list.found) {
        call->probed = true;
        bh_err_set(err, BH_NOT_FOUND, "no token %.40s of yours", call->id);
        return bh_err_hint(err, "`bulkhead token` lists them; the id is the part after bh_");
    }
    return bh_call_send(call, &command, err);
}
