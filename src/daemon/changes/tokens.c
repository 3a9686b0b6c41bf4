#include "daemon/changes/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/request/token.h"
#include "audit/claims.h"
#include "audit/token_facts.h"
#include "base/num.h"
#include "daemon/authorization/allowance.h"
#include "daemon/authorization/command.h"
#include "daemon/authorization/grants.h"
#include "daemon/authorization/objects.h"
#include "daemon/batch/record.h"
#include "daemon/changes/token_retention.h"

enum { FACTS_BYTES_MAX = 2048 }; /* the API takes 1000 bytes of scopes */

static const uint64_t lifetime_most_ns = UINT64_C(90) * 86400 * 1000000000;

/* Whether the caller holds `verb` anywhere, and if not why. */
static struct bh_verdict
tokens_holds(struct bh_core *core, const struct bh_command *command, const char *verb)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    struct bh_verdict verdict = bh_authz_check_anywhere(dir, &command->caller.subject, verb);

    bh_catalog_put(core->catalog, dir);
    return verdict;
}

/* The same, and it is what the record says of the command, whatever comes of it. */
static struct bh_verdict
tokens_decide(struct bh_core *core, const struct bh_command *command, const char *verb)
{
    core->decided = tokens_holds(core, command, verb);
    return core->decided;
}

/* Its owner: the caller, or a different principal with token.any on the whole site. */
static bh_rc
tokens_find_owner(struct bh_core *core, const struct bh_command *command, uint32_t *ret_principal,
                  struct bh_err *err)
{
    const char *name = command->token->principal;
    struct bh_verdict any;

    *ret_principal = command->caller.subject.principal.v;
    if (!name)
        return *ret_principal ? BH_OK : bh_err_set(err, BH_INVALID, "principal: name the owner of the token");
    any = bh_command_holds(core, command, "token.any", (bh_tenant_id){ 0 });
    if (!any.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "token.any", any, BH_REACH_OBJECT }, err);
    *ret_principal = bh_catalog_find(core->catalog, BH_NAME_PRINCIPAL, name);
    if (!*ret_principal)
        return bh_err_set(err, BH_NOT_FOUND, "principal: no principal \"%.60s\"", name);
    return bh_grants_check_token(core, command, (bh_principal_id){ *ret_principal }, err);
}

static bh_rc
tokens_find_lifetime(const struct bh_token_request *request, uint64_t *ret_ns, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    *ret_ns = lifetime_most_ns;
    if (request->lifetime)
        rc = bh_parse_span(request->lifetime, ret_ns, err);
    if (rc == BH_OK && (*ret_ns == 0 || *ret_ns > lifetime_most_ns))
        rc = bh_err_set(err, BH_RANGE, "the lifetime of a token is more than 0 and at most 90 days");
    return rc == BH_OK ? rc : bh_err_wrap(err, "lifetime");
}

/* A token made with a token gets no more than that one has. */
static bh_rc
tokens_check_scopes(const struct bh_command *command, struct bh_err *err)
{
    const char *scopes = command->token->scopes, *own = command->caller.subject.scopes;
    char word[40];
    int used;

    if (!own)
        return BH_OK;
    if (!scopes || !scopes[0]) /* either means all that its owner may */
        return bh_err_set(err, BH_DENIED, "scopes: this token cannot create one without scopes");
    for (; sscanf(scopes, "%39s%n", word, &used) == 1; scopes += used)
        if (!bh_words_contain(own, word))
            return bh_err_set(err, BH_DENIED, "scopes: this token does not have %s", word);
    return BH_OK;
}

/* A token that names a verb which asks for a person is made by one. */
static bh_rc
tokens_check_presence(struct bh_core *core, const struct bh_command *command, struct bh_err *err)
{
    const char *scopes = command->token->scopes;
    char word[40];
    int used;

    for (; scopes && sscanf(scopes, "%39s%n", word, &used) == 1; scopes += used) {
        struct bh_verdict verdict = tokens_holds(core, command, word);

        if (verdict.rule == BH_RULE_STEP_UP)
            return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                                   (struct bh_denial){ word, verdict, BH_REACH_ANYWHERE }, err);
    }
    return BH_OK;
}

/* A token made with a token does not outlive it. */
static bool
tokens_find_parent(void *self, const struct bh_token_row *row)
{
    struct bh_token_row *made = self;

    made->expires_ns = row->expires_ns;
    return false;
}

static bh_rc
tokens_cap_lifetime(struct bh_core *core, const struct bh_command *command, uint64_t *expires_ns,
                    struct bh_err *err)
{
    struct bh_token_row parent = { .expires_ns = UINT64_MAX };
    bh_rc rc;

    if (!command->caller.token)
        return BH_OK;
    snprintf(parent.id, sizeof parent.id, "%s", command->caller.token);
    rc = core->store.ops->list_tokens(core->store.self, &(struct bh_token_filter){ .id = parent.id },
                                      tokens_find_parent, &parent, err);
    if (rc != BH_OK)
        return rc;
    if (parent.expires_ns < *expires_ns)
        *expires_ns = parent.expires_ns;
    return BH_OK;
}

static bh_rc
tokens_make_row(struct bh_core *core, const struct bh_command *command, struct bh_token_row *ret_row,
                char ret_text[BH_TOKEN_LENGTH + 1], struct bh_err *err)
{
    struct bh_token token = { .kind = BH_TOKEN_API };
    uint64_t lifetime;
    bh_rc rc = tokens_find_owner(core, command, &ret_row->principal_id, err);

    if (rc != BH_OK)
        return rc;
    rc = tokens_find_lifetime(command->token, &lifetime, err);
    if (rc != BH_OK)
        return rc;
    rc = tokens_check_scopes(command, err);
    if (rc != BH_OK)
        return rc;
    rc = tokens_check_presence(core, command, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_allowance_check_token(core, command, ret_row->principal_id, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_token_make(core->crypto, &token, ret_text, err);
    if (rc != BH_OK)
        return rc;
    memcpy(ret_row->id, token.id, sizeof token.id);
    memcpy(ret_row->secret.bytes, token.secret, sizeof token.secret);
    ret_row->scopes = command->token->scopes ? command->token->scopes : "";
    ret_row->note = command->token->note ? command->token->note : "";
    ret_row->created_ns = bh_core_now(core);
    ret_row->expires_ns = ret_row->created_ns + lifetime;
    return tokens_cap_lifetime(core, command, &ret_row->expires_ns, err);
}

static bh_rc
tokens_put_row(struct bh_core *core, const struct bh_entry *entry, const struct bh_token_row *row,
               struct bh_err *err)
{
    struct bh_entry with_object = *entry;
    bh_rc rc;

    core->tokens_changed = true;
    /* The record names the token by its id in the actor's place only when it acts; here it is the
     * object, whose id is a number. */
    with_object.obj = (struct bh_record_object){ "token", bh_token_number(row->secret.bytes) };
    rc = bh_core_record(core, &with_object, BH_OK, err);
    return rc == BH_OK ? core->store.ops->put_token(core->store.self, row, err) : rc;
}

/* The record says whose it is, what it may do and how long; what it is for is a personal text, which
 * is sealed there. */
static bh_rc
tokens_put_new_row(struct bh_core *core, struct bh_entry *entry, const struct bh_token_row *row,
                   struct bh_err *err)
{
    const struct bh_token_facts facts = { row->expires_ns, row->principal_id, row->scopes };
    char memory[FACTS_BYTES_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_token_facts_put(&text, &facts);
    entry->ev_json = bh_buf_text(&text);
    if (!entry->ev_json)
        return bh_err_set(err, BH_RANGE, "scopes: too long");
    entry->note = row->note;
    return tokens_put_row(core, entry, row, err);
}

bh_rc
bh_token_create(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = tokens_decide(core, command, "token.create");
    struct bh_token_row row = { 0 };
    char text[BH_TOKEN_LENGTH + 1];
    struct bh_entry entry;
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "token.create", verdict, BH_REACH_ANYWHERE }, err);
    rc = tokens_make_row(core, command, &row, text, err);
    if (rc != BH_OK)
        return rc;
    /* the store shows what is committed: once in a batch, or they would be counted twice */
    if (!bh_allowance_has_new_token(core, row.principal_id))
        rc = bh_tokens_forget(core, row.principal_id, err);
    if (rc != BH_OK)
        return rc;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    rc = tokens_put_new_row(core, &entry, &row, err);
    if (rc != BH_OK)
        return rc;
    bh_allowance_add_token(core, row.principal_id);
    ret_answer->secret = bh_arena_strdup(arena, text);
    ret_answer->token_id = bh_arena_strdup(arena, row.id);
    explicit_bzero(text, sizeof text);
    return BH_OK;
}

struct tokens_search {
    struct bh_arena *arena;
    struct bh_token_row row;
    bool found;
};

static bool
tokens_match_id(void *self, const struct bh_token_row *row)
{
    struct tokens_search *search = self;

    search->row = *row;
    search->row.scopes = bh_arena_strdup(search->arena, row->scopes);
    search->row.note = bh_arena_strdup(search->arena, row->note);
    search->found = true;
    return false;
}

bh_rc
bh_token_revoke(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = tokens_decide(core, command, "token.revoke");
    struct tokens_search search = { .arena = arena };
    struct bh_entry entry;
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "token.revoke", verdict, BH_REACH_ANYWHERE }, err);
    rc = core->store.ops->list_tokens(core->store.self, &(struct bh_token_filter){ .id = command->token_id },
                                      tokens_match_id, &search, err);
    if (rc != BH_OK)
        return rc;
    if (search.found && search.row.principal_id != command->caller.subject.principal.v)
        verdict = bh_command_authz(core, command, "token.any", (bh_tenant_id){ 0 });
    else if (!search.found)
        core->decided = (struct bh_verdict){ false, 0 };
    if (!search.found || !verdict.allow) /* another's is answered as one that there is not */
        return bh_err_set(err, BH_NOT_FOUND, "you have no token \"%.20s\"", command->token_id);
    search.row.revoked = true;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    rc = tokens_put_row(core, &entry, &search.row, err);
    ret_answer->token_id = command->token_id;
    return rc;
}

enum { REVOKED_AT_ONCE_MAX = 256 };

struct owned {
    struct bh_core *core;
    uint32_t count;
    struct bh_token_row rows[REVOKED_AT_ONCE_MAX];
};

static bool
tokens_take_owned(void *self, const struct bh_token_row *row)
{
    struct owned *owned = self;
    struct bh_token_row *kept;

    if (row->revoked)
        return true;
    if (owned->count == REVOKED_AT_ONCE_MAX)
        return false;
    kept = &owned->rows[owned->count++];
    *kept = *row;
    kept->scopes = bh_arena_strdup(owned->core->arena, row->scopes);
    kept->note = bh_arena_strdup(owned->core->arena, row->note);
    return true;
}

bh_rc
bh_tokens_revoke_all(struct bh_core *core, uint32_t principal, struct bh_err *err)
{
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .verb = "token.revoke" };
    struct owned *owned = bh_arena_alloc(core->arena, sizeof *owned);
    bh_rc rc;

    if (!owned)
        return bh_err_set(err, BH_BUG, "no room to revoke tokens");
    owned->core = core;
    owned->count = 0;
    rc =
        core->store.ops->list_tokens(core->store.self, &(struct bh_token_filter){ .principal_id = principal },
                                     tokens_take_owned, owned, err);
    if (rc != BH_OK)
        return rc;
    if (owned->count == REVOKED_AT_ONCE_MAX)
        return bh_err_set(err, BH_RANGE, "a principal that is removed holds over %d tokens",
                          REVOKED_AT_ONCE_MAX - 1);
    for (uint32_t i = 0; i < owned->count; i++) {
        owned->rows[i].revoked = true;
        rc = tokens_put_row(core, &entry, &owned->rows[i], err);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}
