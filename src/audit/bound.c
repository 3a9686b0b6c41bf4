#include "audit/bound.h"

#include <string.h>

#include "audit/claims_internal.h"
#include "base/assert.h"
#include "base/fields.h"
#include "base/json.h"

enum { AT_ONCE = 64 };

static const char opening[] = "{\"bound\":";

struct bound_token {
    uint8_t digest[32]; /* zero: the record did not say what it may */
    uint64_t expires_ns, made, number, revoked;
    uint32_t owner;
};
static const struct bh_field token_rows[] = {
    BH_F(struct bound_token, digest, BH_FIELD_HEX),
    BH_F(struct bound_token, expires_ns, BH_FIELD_NS),
    BH_F(struct bound_token, made, BH_FIELD_U64),
    BH_F(struct bound_token, number, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_token, owner, BH_FIELD_U32),
    BH_F(struct bound_token, revoked, BH_FIELD_U64),
};
static const struct bh_fields token_fields = BH_FIELDS("token", struct bound_token, token_rows);

struct bound_owner {
    uint64_t at_ns, record;
    uint32_t id;
};
static const struct bh_field owner_rows[] = {
    BH_F(struct bound_owner, at_ns, BH_FIELD_NS),
    BH_F(struct bound_owner, id, BH_FIELD_U32, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_owner, record, BH_FIELD_U64),
};
static const struct bh_fields owner_fields = BH_FIELDS("owner", struct bound_owner, owner_rows);

struct bound_key {
    uint64_t destroyed, destroyed_ns, id, made, made_ns;
    uint8_t digest[32];
    uint32_t tenant;
};
static const struct bh_field key_rows[] = {
    BH_F(struct bound_key, destroyed, BH_FIELD_U64),
    BH_F(struct bound_key, destroyed_ns, BH_FIELD_NS),
    BH_F(struct bound_key, digest, BH_FIELD_HEX),
    BH_F(struct bound_key, id, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_key, made, BH_FIELD_U64),
    BH_F(struct bound_key, made_ns, BH_FIELD_NS),
    BH_F(struct bound_key, tenant, BH_FIELD_U32),
};
static const struct bh_fields key_fields = BH_FIELDS("key", struct bound_key, key_rows);

struct bound_document {
    uint64_t at_ns, number, record;
    uint8_t digest[32];
    char kind[CLAIM_WORD_BYTES];
    bool optional;
    uint32_t principal;
};
static const struct bh_field document_rows[] = {
    BH_F(struct bound_document, at_ns, BH_FIELD_NS),
    BH_F(struct bound_document, digest, BH_FIELD_HEX, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_document, kind, BH_FIELD_STR, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_document, number, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_document, optional, BH_FIELD_BOOL),
    BH_F(struct bound_document, principal, BH_FIELD_U32),
    BH_F(struct bound_document, record, BH_FIELD_U64),
};
static const struct bh_fields document_fields = BH_FIELDS("document", struct bound_document, document_rows);

struct bound_text {
    uint64_t at_ns, record;
    uint8_t digest[32];
    bool elsewhere, for_ever, older;
    uint32_t tenant;
};
static const struct bh_field text_rows[] = {
    BH_F(struct bound_text, at_ns, BH_FIELD_NS),
    BH_F(struct bound_text, digest, BH_FIELD_HEX, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound_text, elsewhere, BH_FIELD_BOOL),
    BH_F(struct bound_text, for_ever, BH_FIELD_BOOL),
    BH_F(struct bound_text, older, BH_FIELD_BOOL),
    BH_F(struct bound_text, record, BH_FIELD_U64),
    BH_F(struct bound_text, tenant, BH_FIELD_U32),
};
static const struct bh_fields text_fields = BH_FIELDS("text", struct bound_text, text_rows);

struct bound_job {
    uint64_t job, record, started_ns, ended_ns, stated_by, placed_by;
    struct job_submission said;
    int32_t exit_status;
    uint8_t place[32];
    char state[CLAIM_WORD_BYTES], cause[CLAIM_WORD_BYTES];
    bool started_unknown; /* a record of before knew it */
};
#define SAID(member, kind) BH_F_AS(struct bound_job, said.member, #member, kind)
static const struct bh_field job_rows[] = {
    BH_F(struct bound_job, cause, BH_FIELD_STR),
    SAID(checkpoint_signal, BH_FIELD_U32),
    SAID(contract, BH_FIELD_STR),
    SAID(count, BH_FIELD_U32),
    SAID(deadline_ns, BH_FIELD_NS),
    BH_F(struct bound_job, ended_ns, BH_FIELD_NS),
    BH_F(struct bound_job, exit_status, BH_FIELD_I32),
    SAID(gang, BH_FIELD_U32),
    BH_F(struct bound_job, job, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    SAID(kind, BH_FIELD_STR),
    BH_F(struct bound_job, place, BH_FIELD_HEX),
    BH_F(struct bound_job, placed_by, BH_FIELD_U64),
    SAID(principal, BH_FIELD_U32),
    SAID(priority, BH_FIELD_U32),
    BH_F(struct bound_job, record, BH_FIELD_U64),
    SAID(sku, BH_FIELD_U32),
    SAID(spec, BH_FIELD_HEX),
    BH_F(struct bound_job, started_ns, BH_FIELD_NS),
    BH_F(struct bound_job, started_unknown, BH_FIELD_BOOL),
    BH_F(struct bound_job, state, BH_FIELD_STR),
    BH_F(struct bound_job, stated_by, BH_FIELD_U64),
    SAID(submitted_ns, BH_FIELD_NS),
    SAID(tenant, BH_FIELD_U32),
    SAID(time_limit_ns, BH_FIELD_NS),
};
static const struct bh_fields job_fields = BH_FIELDS("job", struct bound_job, job_rows);

struct bound {
    struct bh_list documents, jobs, keys, owners, texts, tokens;
    uint64_t from;
    bool older;
};
static const struct bh_field bound_rows[] = {
    BH_F(struct bound, documents, BH_FIELD_LIST, .of = &document_fields, .max = AT_ONCE),
    BH_F(struct bound, from, BH_FIELD_U64, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bound, jobs, BH_FIELD_LIST, .of = &job_fields, .max = AT_ONCE),
    BH_F(struct bound, keys, BH_FIELD_LIST, .of = &key_fields, .max = AT_ONCE),
    BH_F(struct bound, older, BH_FIELD_BOOL),
    BH_F(struct bound, owners, BH_FIELD_LIST, .of = &owner_fields, .max = AT_ONCE),
    BH_F(struct bound, texts, BH_FIELD_LIST, .of = &text_fields, .max = AT_ONCE),
    BH_F(struct bound, tokens, BH_FIELD_LIST, .of = &token_fields, .max = AT_ONCE),
};
static const struct bh_fields bound_fields = BH_FIELDS("bound", struct bound, bound_rows);

bool
bh_bound_is(const char *ev_json)
{
    return ev_json && strncmp(ev_json, opening, strlen(opening)) == 0;
}

static uint64_t
bound_number_of(const struct log_claim *claim)
{
    uint64_t number;

    memcpy(&number, claim->key, sizeof number);
    return number;
}

/* ---- saying it: each appends the claim as an item, or says that it need not be carried on ---- */

static bool
bound_bind_token(const struct bh_claims *claims, const void *slot, void *item)
{
    const struct token_claim *token = slot;
    struct bound_token *ret = item;

    if (token->made && token->filled && bh_claims_is_forgotten(claims, token))
        return false;
    *ret = (struct bound_token){ .number = bound_number_of(&token->claim),
                                 .revoked = token->revoked ? token->revoked_by : 0 };
    if (!token->made)
        return true;
    ret->made = token->claim.record;
    if (token->filled) {
        ret->expires_ns = token->expires_ns;
        ret->owner = token->owner;
        memcpy(ret->digest, token->digest, sizeof ret->digest);
    }
    return true;
}

static bool
bound_bind_owner(const struct bh_claims *claims, const void *slot, void *item)
{
    const struct owner_claim *owner = slot;

    *(struct bound_owner *)item = (struct bound_owner){
        .at_ns = owner->at_ns,
        .record = owner->claim.record,
        .id = (uint32_t)bound_number_of(&owner->claim),
    };
    return true;
}

static bool
bound_bind_key(const struct bh_claims *claims, const void *slot, void *item)
{
    const struct key_claim *key = slot;
    struct bound_key *ret = item;

    *ret = (struct bound_key){
        .id = bound_number_of(&key->claim),
        .tenant = key->tenant,
        .made = key->made ? key->claim.record : 0,
        .made_ns = key->made_ns,
        .destroyed = key->destroyed ? key->destroyed_by : 0,
        .destroyed_ns = key->destroyed_ns,
    };
    if (key->filled)
        memcpy(ret->digest, key->digest, sizeof ret->digest);
    return true;
}

/* Only a verifier that sees all revisions knows which ones the store may have dropped. */
static bool
bound_bind_document(const struct bh_claims *claims, const void *slot, void *item)
{
    const struct document_claim *document = slot;
    struct bound_document *ret = item;

    *ret = (struct bound_document){
        .at_ns = document->at_ns,
        .number = document->number,
        .record = document->claim.record,
        .optional = document->optional || document->kind == BH_CLAIMED_REVISION,
        .principal = document->principal,
    };
    bh_claim_put_word(ret->kind, bh_claimed_kinds[document->kind]);
    memcpy(ret->digest, document->digest, sizeof ret->digest);
    return true;
}

static bool
bound_bind_text(const struct bh_claims *claims, const void *slot, void *item)
{
    const struct text_claim *text = slot;
    struct bound_text *ret = item;

    if (bh_claims_is_erased(claims, text))
        return false;
    *ret = (struct bound_text){
        .at_ns = text->at_ns,
        .record = text->claim.record,
        .elsewhere = text->elsewhere || text->older || !text->for_ever,
        .for_ever = text->for_ever,
        .older = text->older,
        .tenant = text->tenant,
    };
    memcpy(ret->digest, text->claim.key, sizeof ret->digest);
    return true;
}

static bool
bound_bind_job(const struct bh_claims *claims, const void *slot, void *item)
{
    const struct job_claim *job = slot;
    struct bound_job *ret = item;

    *ret = (struct bound_job){ .job = bound_number_of(&job->claim), .said = job->said };
    if (job->submitted)
        ret->record = job->claim.record;
    if (job->stated) {
        ret->stated_by = job->stated_by;
        ret->started_unknown = job->started_ns == UINT64_MAX;
        ret->started_ns = ret->started_unknown ? 0 : job->started_ns;
        ret->ended_ns = job->state.ended_ns;
        ret->exit_status = job->state.exit_status;
        memcpy(ret->state, job->state.state, sizeof ret->state);
        memcpy(ret->cause, job->state.cause, sizeof ret->cause);
    }
    if (job->placed) {
        ret->placed_by = job->placed_by;
        memcpy(ret->place, job->place, sizeof ret->place);
    }
    return true;
}

struct bound_kind {
    const struct claim_table *table;
    size_t size; /* of an item */
    bool (*bind)(const struct bh_claims *claims, const void *slot, void *item);
    struct bh_list *list;
};

/* Append items to the list, as long as there is room; how many more may follow. */
static uint32_t
bound_fill(struct bh_claims *claims, const struct bound_kind *of, uint32_t capacity, size_t *slot)
{
    struct bh_list *list = of->list;

    list->items = bh_arena_alloc(claims->arena, AT_ONCE * of->size);
    BH_ASSERT(list->items);
    for (; *slot < of->table->capacity && capacity > 0; ++*slot)
        if (of->table->slots[*slot]
            && of->bind(claims, of->table->slots[*slot], (char *)list->items + list->count * of->size)) {
            list->count++;
            capacity--;
        }
    return capacity;
}

bool
bh_bound_put(struct bh_claims *claims, uint64_t from, struct bh_bound_cursor *cursor, struct bh_buf *out)
{
    struct bound bound = { .from = from, .older = claims->older };
    const struct bound_kind tables[] = {
        { &claims->documents, sizeof(struct bound_document), bound_bind_document, &bound.documents },
        { &claims->jobs, sizeof(struct bound_job), bound_bind_job, &bound.jobs },
        { &claims->keys, sizeof(struct bound_key), bound_bind_key, &bound.keys },
        { &claims->owners, sizeof(struct bound_owner), bound_bind_owner, &bound.owners },
        { &claims->texts, sizeof(struct bound_text), bound_bind_text, &bound.texts },
        { &claims->tokens, sizeof(struct bound_token), bound_bind_token, &bound.tokens },
    };
    uint32_t capacity = AT_ONCE;

    while (cursor->table < BH_COUNT(tables)) {
        capacity = bound_fill(claims, &tables[cursor->table], capacity, &cursor->slot);
        if (capacity == 0)
            break;
        cursor->table++;
        cursor->slot = 0;
    }
    if (capacity == AT_ONCE && cursor->begun)
        return false;
    cursor->begun = true;
    bh_buf_puts(out, opening);
    bh_json_encode(out, &bound_fields, &bound);
    bh_buf_putc(out, '}');
    return true;
}

/* ---- taking it: what is known from records that are left, or later, stays ---- */

static bh_rc
bound_read_token(struct bh_claims *claims, const void *item, struct bh_err *err)
{
    const struct bound_token *said = item;
    struct token_claim *token;
    uint8_t key[32];

    bh_claim_key(key, said->number, 0);
    token = bh_claim_add(claims, &claims->tokens, key, sizeof *token);
    if (!token)
        return bh_claims_full(err);
    if (said->revoked && !token->revoked) {
        token->revoked = true;
        token->revoked_by = said->revoked;
    }
    if (!said->made || token->made)
        return BH_OK;
    token->made = true;
    token->claim.record = said->made;
    token->filled = !bh_claim_is_zero(said->digest);
    token->owner = said->owner;
    token->expires_ns = said->expires_ns;
    memcpy(token->digest, said->digest, sizeof token->digest);
    return BH_OK;
}

static bh_rc
bound_read_owner(struct bh_claims *claims, const void *item, struct bh_err *err)
{
    const struct bound_owner *said = item;
    struct owner_claim *owner;
    uint8_t key[32];

    bh_claim_key(key, said->id, 0);
    owner = bh_claim_add(claims, &claims->owners, key, sizeof *owner);
    if (!owner)
        return bh_claims_full(err);
    if (said->record > owner->claim.record) {
        owner->claim.record = said->record;
        owner->at_ns = said->at_ns;
    }
    return BH_OK;
}

static bh_rc
bound_read_key(struct bh_claims *claims, const void *item, struct bh_err *err)
{
    const struct bound_key *said = item;
    struct key_claim *key;
    bh_rc rc = bh_claims_add_key(claims, said->id, said->tenant, &key, err);

    if (rc != BH_OK)
        return rc;
    if (said->destroyed && !key->destroyed) {
        key->destroyed = true;
        key->destroyed_by = said->destroyed;
        key->destroyed_ns = said->destroyed_ns;
    }
    if (!said->made || key->made)
        return BH_OK;
    key->made = true;
    key->claim.record = said->made;
    key->made_ns = said->made_ns;
    key->tenant = said->tenant;
    key->filled = !bh_claim_is_zero(said->digest);
    memcpy(key->digest, said->digest, sizeof key->digest);
    return BH_OK;
}

static bh_rc
bound_read_document(struct bh_claims *claims, const void *item, struct bh_err *err)
{
    const struct bound_document *said = item;
    struct document_claim *document;
    uint32_t kind = 0;
    uint8_t key[32];

    while (kind < BH_CLAIMED_KINDS && strcmp(bh_claimed_kinds[kind], said->kind) != 0)
        kind++;
    if (kind == BH_CLAIMED_KINDS)
        return bh_err_set(err, BH_CONFLICT, "it binds a document of no kind");
    bh_claim_key(key, kind, said->number);
    if (bh_claim_find(&claims->documents, key))
        return BH_OK;
    document = bh_claim_add(claims, &claims->documents, key, sizeof *document);
    if (!document)
        return bh_claims_full(err);
    document->claim.record = said->record;
    document->kind = kind;
    document->number = said->number;
    document->at_ns = said->at_ns;
    document->principal = said->principal;
    document->optional = said->optional;
    memcpy(document->digest, said->digest, sizeof document->digest);
    return BH_OK;
}

/* The first record that names a text says whose it is. */
static bh_rc
bound_read_text(struct bh_claims *claims, const void *item, struct bh_err *err)
{
    const struct bound_text *said = item;
    struct text_claim *text = bh_claim_add(claims, &claims->texts, said->digest, sizeof *text);

    if (!text)
        return bh_claims_full(err);
    text->for_ever = text->for_ever || said->for_ever;
    if (text->named && text->claim.record <= said->record)
        return BH_OK;
    text->named = true;
    text->claim.record = said->record;
    text->at_ns = said->at_ns;
    text->tenant = said->tenant;
    text->older = said->older;
    text->elsewhere = said->elsewhere;
    return BH_OK;
}

/* When it began stays what the last record before its end said. */
static void
bound_read_state(struct job_claim *job, const struct bound_job *said)
{
    if (job->stated && said->stated_by < job->stated_by) {
        if (job->started_ns == UINT64_MAX && !said->started_unknown)
            job->started_ns = said->started_ns;
        return;
    }
    job->stated = true;
    job->stated_by = said->stated_by;
    job->started_ns = said->started_unknown ? UINT64_MAX : said->started_ns;
    job->state = (struct bh_job_status){ .job = said->job,
                                         .ended_ns = said->ended_ns,
                                         .exit_status = said->exit_status };
    memcpy(job->state.state, said->state, sizeof job->state.state);
    memcpy(job->state.cause, said->cause, sizeof job->state.cause);
}

static bh_rc
bound_read_job(struct bh_claims *claims, const void *item, struct bh_err *err)
{
    const struct bound_job *said = item;
    struct job_claim *job;
    uint8_t key[32];

    bh_claim_key(key, said->job, 0);
    job = bh_claim_add(claims, &claims->jobs, key, sizeof *job);
    if (!job)
        return bh_claims_full(err);
    if (said->record && !job->submitted) {
        job->submitted = true;
        job->claim.record = said->record;
        job->said = said->said;
        job->filled = said->said.kind[0] != '\0';
        if (said->job < claims->first_job)
            claims->first_job = said->job;
    }
    if (said->stated_by)
        bound_read_state(job, said);
    if (said->placed_by && (!job->placed || said->placed_by > job->placed_by)) {
        job->placed = true;
        job->placed_by = said->placed_by;
        memcpy(job->place, said->place, sizeof job->place);
    }
    return BH_OK;
}

/* It is written the one way, as records are. */
static bh_rc
read_bound(struct bh_claims *claims, struct bh_slice text, struct bound *ret, struct bh_err *err)
{
    bh_rc rc = bh_json_decode(text.text, text.length, &bound_fields, ret, claims->arena, err);
    struct bh_buf again;
    char *memory;

    if (rc == BH_FULL)
        return rc;
    if (rc != BH_OK)
        return err->rc = BH_CONFLICT;
    memory = bh_arena_alloc(claims->arena, text.length + 1);
    if (!memory)
        return bh_claims_full(err);
    bh_buf_init_fixed(&again, memory, text.length + 1);
    bh_json_encode(&again, &bound_fields, ret);
    if (again.overflow || again.length != text.length || memcmp(again.bytes, text.text, text.length) != 0)
        return bh_err_set(err, BH_CONFLICT, "what it binds is not written the one way");
    return BH_OK;
}

static bh_rc
bound_read_list(struct bh_claims *claims, const struct bh_list *list, size_t size,
                bh_rc (*read)(struct bh_claims *claims, const void *item, struct bh_err *err),
                struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; rc == BH_OK && i < list->count; i++)
        rc = read(claims, (const char *)list->items + i * size, err);
    return rc;
}

static bh_rc
bound_read_lists(struct bh_claims *claims, const struct bound *bound, struct bh_err *err)
{
    const struct {
        const struct bh_list *list;
        size_t size;
        bh_rc (*read)(struct bh_claims *claims, const void *item, struct bh_err *err);
    } lists[] = {
        { &bound->documents, sizeof(struct bound_document), bound_read_document },
        { &bound->jobs, sizeof(struct bound_job), bound_read_job },
        { &bound->keys, sizeof(struct bound_key), bound_read_key },
        { &bound->owners, sizeof(struct bound_owner), bound_read_owner },
        { &bound->texts, sizeof(struct bound_text), bound_read_text },
        { &bound->tokens, sizeof(struct bound_token), bound_read_token },
    };
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(lists); i++)
        rc = bound_read_list(claims, lists[i].list, lists[i].size, lists[i].read, err);
    return rc;
}

bh_rc
bh_claims_read_bound(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct bound bound = { .from = 0 };
    struct bh_slice whole, text;
    bh_rc rc;

    if (!record->dec.allow || !record->verb || strcmp(record->verb, BH_RECORD_ROWS_BIND) != 0
        || strcmp(record->obj.type, BH_RECORD_LOG) != 0)
        return BH_OK;
    whole = (struct bh_slice){ record->ev_json, record->ev_json ? strlen(record->ev_json) : 0 };
    if (!bh_bound_is(record->ev_json) || !bh_slice_get(whole, "bound", &text)
        || text.length + strlen(opening) + 1 != whole.length)
        return bh_err_set(err, BH_CONFLICT, "it binds rows, and does not say which");
    rc = read_bound(claims, text, &bound, err);
    if (rc != BH_OK)
        return rc;
    rc = bound_read_lists(claims, &bound, err);
    if (rc != BH_OK)
        return rc;
    claims->older = claims->older || bound.older;
    if (bound.from <= claims->carried_to && record->obj.id > claims->carried_to)
        claims->carried_to = record->obj.id;
    return BH_OK;
}
