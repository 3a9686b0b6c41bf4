#include "audit/claims.h"

#include <string.h>

#include "audit/claims_internal.h"
#include "base/assert.h"
#include "base/num.h"
#include "base/slice.h"
#include "model/job.h"

struct bh_claims *
bh_claims_new(struct bh_arena *arena, const struct bh_crypto_ops *crypto)
{
    struct bh_claims *claims = bh_arena_alloc(arena, sizeof *claims);

    BH_ASSERT(claims);
    claims->arena = arena;
    claims->crypto = crypto;
    claims->first_job = claims->result.bound_from = claims->result.rows_from = UINT64_MAX;
    bh_buf_init_fixed(&claims->differing, claims->differing_text, BH_CLAIMS_REPORTED_BYTES);
    bh_buf_init_fixed(&claims->erased, claims->erased_text, BH_CLAIMS_REPORTED_BYTES);
    return claims;
}

/* ---- names ---- */

static bh_rc
claims_read_binding(struct bh_claims *claims, const struct bh_binding *binding, uint64_t seq,
                    struct bh_err *err)
{
    struct name_claim *name;
    uint8_t key[32];

    bh_claim_key(key, binding->kind, binding->id);
    name = bh_claim_add(claims, &claims->names, key, sizeof *name);
    if (!name)
        return bh_claims_full(err);
    claims->bindings++;
    if (name->bound && memcmp(name->commitment, binding->commitment, BH_BINDING_BYTES) != 0)
        return bh_err_set(err, BH_CONFLICT,
                          "it binds %s %" PRIu32 ", which record %" PRIu64 " bound to another name",
                          bh_binding_kinds[binding->kind], binding->id, name->claim.record);
    if (name->bound)
        return BH_OK;
    name->bound = true;
    name->claim.record = seq;
    memcpy(name->commitment, binding->commitment, BH_BINDING_BYTES);
    return BH_OK;
}

static bh_rc
claims_read_names(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct bh_slice list = { record->names_json, record->names_json ? strlen(record->names_json) : 0 };
    struct bh_binding binding;
    size_t cursor = 0;
    bh_rc rc = BH_OK;

    if (!record->names_json)
        return BH_OK;
    while (rc == BH_OK && bh_binding_next(list, &cursor, &binding))
        rc = claims_read_binding(claims, &binding, record->seq, err);
    if (rc != BH_OK)
        return rc;
    if (record->verb && strcmp(record->verb, BH_RECORD_NAMES_BIND) == 0
        && strcmp(record->obj.type, BH_RECORD_UPGRADE) == 0 && claims->result.bound_from == UINT64_MAX)
        claims->result.bound_from = record->seq;
    return BH_OK;
}

static bh_rc
claims_read_erasure(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    uint32_t kind = bh_binding_kind(record->obj.type);
    struct name_claim *name;
    uint8_t key[32];

    if (!record->dec.allow || !record->verb || strcmp(record->verb, BH_RECORD_NAME_ERASE) != 0)
        return BH_OK;
    if (kind == BH_BINDING_KINDS)
        return bh_err_set(err, BH_CONFLICT, "it erases a name of no kind");
    bh_claim_key(key, kind, record->obj.id);
    name = bh_claim_add(claims, &claims->names, key, sizeof *name);
    if (!name)
        return bh_claims_full(err);
    name->erased = true;
    name->erased_by = record->seq;
    return BH_OK;
}

/* ---- jobs ---- */

static struct job_claim *
claims_job_of(struct bh_claims *claims, uint64_t job)
{
    uint8_t key[32];

    bh_claim_key(key, job, 0);
    return bh_claim_add(claims, &claims->jobs, key, sizeof(struct job_claim));
}

/* Which of the names the member is; an event leaves the first one out. */
static uint32_t
claims_word_of(struct bh_slice object, const char *key, const char *const *names, uint32_t count)
{
    struct bh_slice value;
    char word[24];

    if (!bh_slice_get(object, key, &value) || !bh_slice_str(value, word, sizeof word))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (names[i] && strcmp(names[i], word) == 0)
            return i;
    return 0;
}

/* A checkpoint is asked for by a signal, which has a standard one. */
static uint32_t
claims_signal_of(struct bh_slice submit, uint32_t contract)
{
    uint32_t given = (uint32_t)bh_claim_number(submit, "checkpoint_signal");

    if (contract != BH_CONTRACT_CHECKPOINT)
        return 0;
    return given ? given : BH_CHECKPOINT_SIGNAL;
}

/* What the row has from the submission, and that the job is nowhere yet. */
static void
claims_fill(const struct bh_claims *claims, struct job_claim *job, struct bh_slice submit, uint64_t seq)
{
    const struct bh_job_placement nowhere = { .lease = 0 };
    uint32_t contract = claims_word_of(submit, "contract", bh_contract_names, BH_CONTRACTS);

    job->filled = job->placed = true;
    job->placed_by = seq;
    bh_claim_put_word(job->said.kind,
                      bh_job_kind_names[claims_word_of(submit, "kind", bh_job_kind_names, BH_JOB_KINDS)]);
    bh_claim_put_word(job->said.contract, bh_contract_names[contract]);
    job->said.priority = claims_word_of(submit, "priority", bh_priority_names, BH_PRIORITIES);
    job->said.checkpoint_signal = claims_signal_of(submit, contract);
    job->said.gang = (uint32_t)bh_claim_number(submit, "gang");
    job->said.time_limit_ns = bh_claim_number(submit, "time_limit_ns");
    job->said.deadline_ns = bh_claim_number(submit, "deadline_ns");
    bh_job_placement_digest(claims->crypto, &nowhere, job->place);
}

static bh_rc
claims_read_submission(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct bh_slice event = { record->ev_json, record->ev_json ? strlen(record->ev_json) : 0 }, submit, value;
    struct job_claim *job;
    char digits[65];
    uint64_t number;

    if (!record->ev_json || !bh_slice_get(event, "submit", &submit))
        return BH_OK;
    number = bh_claim_number(submit, "job");
    job = claims_job_of(claims, number);
    if (!job)
        return bh_claims_full(err);
    if (job->submitted)
        return bh_err_set(err, BH_CONFLICT, "it submits job %" PRIu64 ", as record %" PRIu64 " did", number,
                          job->claim.record);
    if (bh_slice_get(submit, "spec", &value)
        && (!bh_slice_str(value, digits, sizeof digits) || !bh_parse_hex(digits, job->said.spec, 32)))
        return bh_err_set(err, BH_CONFLICT, "its job's spec is no digest");
    job->submitted = true;
    job->claim.record = record->seq;
    job->said.submitted_ns = record->ts_ns;
    job->said.tenant = (uint32_t)bh_claim_number(submit, "tenant");
    job->said.principal = (uint32_t)bh_claim_number(submit, "principal");
    job->said.sku = (uint32_t)bh_claim_number(submit, "sku");
    job->said.count = (uint32_t)bh_claim_number(submit, "count");
    if (number < claims->first_job)
        claims->first_job = number;
    if (record->version > 2) {
        job->stated = true;
        job->stated_by = record->seq;
        memcpy(job->state.state, "pending", sizeof "pending");
    }
    if (record->version >= BH_CLAIMS_ROWS_VERSION)
        claims_fill(claims, job, submit, record->seq);
    return bh_claims_read_text(claims, record, job->said.spec, true, err);
}

static bh_rc
claims_read_states(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct bh_slice list = { record->jobs_json, record->jobs_json ? strlen(record->jobs_json) : 0 };
    struct bh_job_status state;
    size_t cursor = 0;

    if (!record->jobs_json)
        return BH_OK;
    while (bh_job_status_next(list, &cursor, &state)) {
        struct job_claim *job = claims_job_of(claims, state.job);

        if (!job)
            return bh_claims_full(err);
        if (!state.ended_ns)
            job->started_ns = state.started_ns;
        else if (!job->stated)
            job->started_ns = UINT64_MAX; /* a record of before knew it */
        if (record->version >= BH_CLAIMS_ROWS_VERSION && !state.ended_ns) {
            job->placed = true;
            job->placed_by = record->seq;
            memcpy(job->place, state.row, sizeof job->place);
        }
        job->state = state;
        job->stated = true;
        job->stated_by = record->seq;
    }
    return BH_OK;
}

/* ---- the walk ---- */

bh_rc
bh_claims_read(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    static bh_rc (*const readers[])(struct bh_claims * claims, const struct bh_record *record,
                                    struct bh_err *err) = {
        claims_read_submission, claims_read_states,   claims_read_names,
        claims_read_erasure,    bh_claims_read_texts, bh_claims_read_token,
        bh_claims_read_bound,   bh_claims_read_keys,  bh_claims_read_documents,
    };
    bh_rc rc = BH_OK;

    claims->size = record->seq + 1;
    claims->last_ts_ns = record->ts_ns;
    claims->first_ts_ns = claims->first_ts_ns ? claims->first_ts_ns : record->ts_ns;
    claims->newer = claims->newer || record->version >= BH_CLAIMS_ROWS_VERSION;
    if (record->version < BH_CLAIMS_ROWS_VERSION)
        claims->older = true;
    else if (claims->older && claims->result.rows_from == UINT64_MAX)
        claims->result.rows_from = record->seq;
    for (size_t i = 0; i < BH_COUNT(readers) && rc == BH_OK; i++)
        rc = readers[i](claims, record, err);
    return rc;
}

/* Before version 4 there were names, jobs and texts alone. */
bool
bh_claims_need(const struct bh_claims *claims, enum bh_claims_table table)
{
    if (table == BH_CLAIMS_DOCUMENTS)
        return claims->newer && claims->documents.count > 0;
    if (table == BH_CLAIMS_KEYS)
        return claims->newer && claims->keys.count > 0;
    return claims->bindings > 0;
}

void
bh_claims_skip(struct bh_claims *claims, uint64_t seq)
{
    claims->pruned_to = claims->size = seq + 1;
}

void
bh_claims_end(struct bh_claims *claims, uint32_t tables, struct bh_claims_result *ret_result)
{
    if (tables & BH_CLAIMS_NAMES)
        bh_claims_end_names(claims);
    if (tables & BH_CLAIMS_JOBS)
        bh_claims_end_jobs(claims, tables & BH_CLAIMS_ENDED);
    if (tables & BH_CLAIMS_TEXTS)
        bh_claims_end_texts(claims);
    if (tables & BH_CLAIMS_DOCUMENTS)
        bh_claims_end_documents(claims, tables & BH_CLAIMS_ENDED);
    if (tables & BH_CLAIMS_KEYS)
        bh_claims_end_keys(claims);
    if (tables & BH_CLAIMS_TOKENS)
        bh_claims_end_tokens(claims);
    claims->result.differing = bh_buf_text(&claims->differing);
    claims->result.erased = bh_buf_text(&claims->erased);
    *ret_result = claims->result;
}
