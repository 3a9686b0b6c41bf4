#include "daemon/changes/accounts.h"

#include <stdio.h>
#include <string.h>

#include "daemon/authorization/command.h"
#include "daemon/batch/record.h"
#include "daemon/state/documents.h"

/* The version that the document has now; 0: there is none. */
static bh_rc
accounts_version_of(struct bh_core *core, const struct bh_document_key *key, uint64_t *ret_version,
                    struct bh_err *err)
{
    struct bh_document_row row = { 0 };
    bh_rc rc = bh_documents_get(core, key, &row, err);

    *ret_version = rc == BH_OK ? row.version : 0;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

static bh_rc
accounts_check_versions(struct bh_core *core, const struct bh_accounts_change *change, struct bh_err *err)
{
    for (uint32_t i = 0; i < change->put_count; i++) {
        const struct bh_document_put *put = &change->puts[i];
        struct bh_document_key key = { put->row.kind, put->row.key };
        uint64_t version;
        bh_rc rc = put->blind ? BH_OK : accounts_version_of(core, &key, &version, err);

        if (rc != BH_OK)
            return rc;
        if (!put->blind && version != put->row.version)
            return bh_err_set(err, BH_CONFLICT, "it was changed meanwhile");
    }
    return BH_OK;
}

/* Accounts and sessions hold what signs in: the store sees them sealed. */
static bh_rc
accounts_seal(struct bh_core *core, const struct bh_document_put *put, const char **ret_value,
              struct bh_err *err)
{
    const struct bh_key_use use = { .purpose = BH_KEY_IDENTITY, .now_ns = bh_core_now(core) };
    bool secret = put->row.kind == BH_DOCUMENT_ACCOUNT || put->row.kind == BH_DOCUMENT_SESSION;
    BH_AUTO(bh_buf_fini) struct bh_buf item = { .max = 2 * BH_DOCUMENT_VALUE_MAX };
    bh_rc rc;

    *ret_value = put->row.value;
    if (!secret || !put->row.value)
        return BH_OK;
    rc = bh_keys_seal(core->ring.keys, &use, (struct bh_slice){ put->row.value, strlen(put->row.value) },
                      &item, err);
    *ret_value = rc == BH_OK && bh_buf_text(&item) ? bh_arena_strdup(core->arena, bh_buf_text(&item)) : NULL;
    if (rc != BH_OK)
        return rc;
    if (!*ret_value)
        return bh_err_set(err, BH_BUG, "no room for a document");
    return BH_OK;
}

static bh_rc
accounts_put_document(struct bh_core *core, const struct bh_document_put *put, uint32_t person,
                      struct bh_err *err)
{
    struct bh_document_key key = { put->row.kind, put->row.key };
    struct bh_document_row row = put->row;
    bh_rc rc = put->blind ? accounts_version_of(core, &key, &row.version, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    rc = accounts_seal(core, put, &row.value, err);
    if (rc != BH_OK)
        return rc;
    row.version++;
    if (!row.principal_id)
        row.principal_id = person;
    return bh_documents_put(core, &row, err);
}

struct use_search {
    struct bh_arena *arena;
    struct bh_token_row row;
    bool found;
};

static bool
accounts_match_use(void *self, const struct bh_token_row *row)
{
    struct use_search *search = self;

    search->row = *row;
    search->row.scopes = bh_arena_strdup(search->arena, row->scopes);
    search->row.note = bh_arena_strdup(search->arena, row->note);
    search->found = search->row.scopes && search->row.note;
    return false;
}

/* A token revoked in this very batch must not come back with an old row. */
static bh_rc
accounts_put_use(struct bh_core *core, const struct bh_token_use *use, struct bh_err *err)
{
    struct use_search search = { .arena = core->arena };
    bh_rc rc = core->store.ops->list_tokens(core->store.self, &(struct bh_token_filter){ .id = use->id },
                                            accounts_match_use, &search, err);

    if (rc != BH_OK || !search.found || search.row.revoked || core->tokens_changed)
        return rc;
    search.row.last_used_ns = use->at_ns;
    return core->store.ops->put_token(core->store.self, &search.row, err);
}

static bh_rc
accounts_find_person(struct bh_core *core, const struct bh_accounts_change *change, uint32_t *ret_id,
                     struct bh_err *err)
{
    uint32_t known;
    bh_rc rc = bh_core_begin(core, err);

    *ret_id = 0;
    if (rc != BH_OK || !change->person)
        return rc;
    known = bh_catalog_find(core->catalog, BH_NAME_PRINCIPAL, change->person);
    rc = bh_catalog_name(core->catalog, BH_NAME_PRINCIPAL, change->person, ret_id, err);
    core->catalog_changed = core->catalog_changed || known == 0;
    return rc;
}

static bh_rc
accounts_write_all(struct bh_core *core, const struct bh_accounts_change *change, uint32_t person,
                   struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < change->put_count; i++)
        rc = accounts_put_document(core, &change->puts[i], person, err);
    for (uint32_t i = 0; rc == BH_OK && i < change->use_count; i++)
        rc = accounts_put_use(core, &change->uses[i], err);
    return rc;
}

/* Whether all that is written is the caller's own, or has no owner. */
static bool
accounts_is_own(const struct bh_command *command)
{
    const struct bh_accounts_change *change = command->accounts;

    for (uint32_t i = 0; i < change->put_count; i++) {
        uint32_t whose = change->puts[i].row.principal_id;

        if (whose && whose != command->caller.subject.principal.v)
            return false;
    }
    return true;
}

/* What every signed-in user may do is decided where codes and passwords are known, in src/accounts; changes
 * of another user's account take account.any. */
static struct bh_verdict
accounts_authorise(struct bh_core *core, const struct bh_command *command, const char *verb)
{
    const struct bh_directory *dir;
    struct bh_verdict verdict;

    if (bh_operation_get(command->op)->scope == BH_SCOPE_OWN && !accounts_is_own(command))
        return bh_command_authz(core, command, "account.any", (bh_tenant_id){ 0 });
    if (bh_operation_get(command->op)->scope != BH_SCOPE_OWN)
        return bh_command_authz(core, command, verb, (bh_tenant_id){ 0 });
    dir = bh_catalog_get(core->catalog);
    verdict = bh_authz_own(dir, &command->caller.subject, verb);
    bh_catalog_put(core->catalog, dir);
    return verdict;
}

static enum bh_reach
accounts_reach_of(const struct bh_command *command)
{
    return bh_operation_get(command->op)->scope == BH_SCOPE_OWN ? BH_REACH_OWN : BH_REACH_OBJECT;
}

bh_rc
bh_accounts_change(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                   struct bh_answer *ret_answer, struct bh_err *err)
{
    const struct bh_accounts_change *change = command->accounts;
    const char *verb = bh_operation_get(command->op)->verb;
    struct bh_verdict verdict = accounts_authorise(core, command, verb);
    struct bh_entry entry;
    uint32_t person;
    bh_rc rc;

    core->decided = verdict;
    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ verb, verdict, accounts_reach_of(command) }, err);
    rc = accounts_check_versions(core, change, err);
    if (rc == BH_OK)
        rc = accounts_find_person(core, change, &person, err);
    if (rc != BH_OK)
        return rc;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    entry.verb = change->verb;
    entry.obj = change->object;
    entry.note = change->note;
    if (change->person)
        entry.actor.id = person;
    if (change->res != BH_OK) { /* all may try; it failed */
        entry.phase = BH_PHASE_EVENT;
        entry.dec = (struct bh_record_decision){ .rule = BH_RULE_NOT_SHOWN };
    }
    rc = bh_core_record(core, &entry, change->res, err);
    if (rc == BH_OK)
        rc = accounts_write_all(core, change, person, err);
    ret_answer->principal = person;
    return rc;
}

/* ---- users that are removed ---- */

enum { FORGOTTEN_AT_ONCE_MAX = 1024 };

struct accounts_leaving {
    struct bh_core *core;
    struct bh_document_put puts[FORGOTTEN_AT_ONCE_MAX];
    uint32_t count;
};

static bool
accounts_add_leaving(void *self, const struct bh_document_row *row)
{
    struct accounts_leaving *leaving = self;
    struct bh_document_put *put;

    if (leaving->count == FORGOTTEN_AT_ONCE_MAX)
        return false;
    put = &leaving->puts[leaving->count++];
    *put = (struct bh_document_put){ .row = *row, .blind = true };
    put->row.key = bh_arena_strdup(leaving->core->arena, row->key);
    put->row.value = NULL;
    return put->row.key != NULL;
}

bh_rc
bh_accounts_forget(struct bh_core *core, uint32_t principal, struct bh_err *err)
{
    static const enum bh_document_kind kinds[] = { BH_DOCUMENT_ACCOUNT, BH_DOCUMENT_PASSKEY,
                                                   BH_DOCUMENT_SESSION };
    struct bh_entry entry = { BH_ENTRY_OF_SYSTEM, .obj = { .type = "account", .id = principal },
                              .verb = "account.forget" };
    struct accounts_leaving *leaving = bh_arena_alloc(core->arena, sizeof *leaving);
    struct bh_accounts_change change;
    bh_rc rc = BH_OK;

    if (!leaving)
        return bh_err_set(err, BH_BUG, "no room to forget an account");
    leaving->core = core;
    leaving->count = 0;
    for (size_t i = 0; i < BH_COUNT(kinds) && rc == BH_OK; i++) {
        struct bh_document_filter filter = { kinds[i], principal };

        rc = core->store.ops->list_documents(core->store.self, &filter, accounts_add_leaving, leaving, err);
    }
    if (rc != BH_OK || leaving->count == 0)
        return rc;
    if (leaving->count == FORGOTTEN_AT_ONCE_MAX)
        return bh_err_set(err, BH_RANGE, "a principal that is removed has over %d documents",
                          FORGOTTEN_AT_ONCE_MAX - 1);
    change = (struct bh_accounts_change){ .puts = leaving->puts, .put_count = leaving->count };
    rc = bh_core_record(core, &entry, BH_OK, err);
    return rc == BH_OK ? accounts_write_all(core, &change, principal, err) : rc;
}
