/* The rows of the tables, held against what the records say. */
#include <inttypes.h>
#include <string.h>

#include "audit/claims_internal.h"

/* Must be the store's BH_ERASED: what stands in the place of an erased name. */
static const char erased_text[] = "(erased)";

/* ---- what is reported ---- */

/* Count one more; false when enough were reported: the first are enough to begin with. */
bool
bh_claims_reports(struct bh_claims *claims)
{
    return claims->result.differences++ < BH_CLAIMS_REPORTED_MAX;
}

/* Names come from a table that may have been changed: a line stays a line. */
void
bh_claims_end_line(struct bh_buf *lines, size_t from)
{
    for (size_t i = from; i < lines->length; i++)
        if ((unsigned char)lines->bytes[i] < ' ')
            lines->bytes[i] = '?';
    bh_buf_putc(lines, '\n');
}

void
bh_claims_differ(struct bh_claims *claims, const char *what)
{
    bh_claims_report(claims, "%s", what);
}

/* ---- names ---- */

static bool
rows_has_key(const uint8_t *key)
{
    for (size_t i = 0; i < BH_BINDING_KEY_BYTES; i++)
        if (key[i])
            return true;
    return false;
}

/* As an erasure leaves the row. */
static bool
claims_rows_is_blank(const struct bh_claimed_name *row)
{
    return strcmp(row->name, erased_text) == 0 && !rows_has_key(row->key);
}

static void
claims_rows_check_erased(struct bh_claims *claims, struct name_claim *name, const struct bh_claimed_name *row)
{
    const char *kind = bh_binding_kinds[row->kind];

    if (!claims_rows_is_blank(row)) {
        bh_claims_report(claims, "%s %" PRIu32 " was erased by record %" PRIu64 ", but its row has a name",
                         kind, row->id, name->erased_by);
        return;
    }
    name->name = erased_text;
    if (claims->result.names.erased++ < BH_CLAIMS_REPORTED_MAX)
        bh_buf_printf(&claims->erased, "%s %" PRIu32 ": erased by record %" PRIu64 "\n", kind, row->id,
                      name->erased_by);
}

/* Whether these records cannot say what the row should be: they bind no names, it was erased after
 * them, or so was its name before a pruning, which binds only what the table has. */
static bool
rows_is_unbound(const struct bh_claims *claims, const struct name_claim *name,
                const struct bh_claimed_name *row)
{
    if (claims->bindings == 0 || row->erased_by >= claims->size)
        return true;
    return !name->bound && claims->pruned_to > 0 && claims_rows_is_blank(row);
}

/* No reader has to take its name from the row: but jobs do not have a different one if that is gone. */
static void
claims_rows_check_unbound(struct bh_claims *claims, struct name_claim *name,
                          const struct bh_claimed_name *row)
{
    claims->result.names.unbound++;
    if (claims_rows_is_blank(row))
        name->name = erased_text;
}

static bool
claims_rows_check_bound(struct bh_claims *claims, struct name_claim *name, const struct bh_claimed_name *row)
{
    struct bh_binding binding = { .kind = row->kind, .id = row->id };
    const char *kind = bh_binding_kinds[row->kind];

    if (!name->bound) {
        bh_claims_report(claims, "%s %" PRIu32 " is \"%.80s\" in the table, and no record binds it", kind,
                         row->id, row->name);
        return false;
    }
    if (!rows_has_key(row->key)) {
        bh_claims_report(claims,
                         "%s %" PRIu32
                         ": the key of its name is gone, and no record erased it; record %" PRIu64
                         " bound it",
                         kind, row->id, name->claim.record);
        return false;
    }
    bh_binding_commit(claims->crypto, &binding, row->key, row->name);
    if (memcmp(binding.commitment, name->commitment, BH_BINDING_BYTES) != 0) {
        bh_claims_report(
            claims, "%s %" PRIu32 " is \"%.80s\" in the table; record %" PRIu64 " bound it to another name",
            kind, row->id, row->name, name->claim.record);
        return false;
    }
    claims->result.names.good++;
    return true;
}

/* The row's own, if its kind can have one: also of a name that no record speaks of. */
static bh_rc
claims_rows_read_row(struct bh_claims *claims, struct name_claim *name, const struct bh_claimed_name *row,
                     struct bh_err *err)
{
    if (name->erased) {
        claims_rows_check_erased(claims, name, row);
    } else if (row->erased_by && !claims_rows_is_blank(row)) {
        bh_claims_report(claims,
                         "%s %" PRIu32 " was erased by record %" PRIu64 ", as its row says, which has a name",
                         bh_binding_kinds[row->kind], row->id, row->erased_by);
    } else if (rows_is_unbound(claims, name, row)) {
        claims_rows_check_unbound(claims, name, row);
    } else if (claims_rows_check_bound(claims, name, row)) {
        name->name = bh_arena_strdup(claims->arena, row->name);
        return name->name ? BH_OK : bh_claims_full(err);
    }
    return BH_OK;
}

bh_rc
bh_claims_name(struct bh_claims *claims, const struct bh_claimed_name *row, struct bh_err *err)
{
    struct name_claim *name;
    uint8_t key[32];

    if (row->kind >= BH_BINDING_KINDS) {
        bh_claims_report(claims, "name %" PRIu32 " is of a kind that there is not", row->id);
        return BH_OK;
    }
    bh_claim_key(key, row->kind, row->id);
    name = bh_claim_add(claims, &claims->names, key, sizeof *name);
    if (!name)
        return bh_claims_full(err);
    if (name->claim.seen)
        bh_claims_report(claims, "%s %" PRIu32 " stands twice", bh_binding_kinds[row->kind], row->id);
    name->claim.seen = true;
    return claims_rows_read_row(claims, name, row, err);
}

const char *
bh_claims_name_of(const struct bh_claims *claims, uint32_t kind, uint32_t id)
{
    const struct name_claim *name;
    uint8_t key[32];

    bh_claim_key(key, kind, id);
    name = bh_claim_find(&claims->names, key);
    return name ? name->name : NULL;
}

/* ---- jobs ---- */

enum { TENANT, SKU, PRINCIPAL };

/* Whether the row's text is the name of that id, as far as that is known. */
static bool
claims_rows_is_named(const struct bh_claims *claims, uint32_t kind, uint32_t id, const char *text)
{
    const char *name = bh_claims_name_of(claims, kind, id);

    return !name || strcmp(name, text) == 0;
}

/* The same of a name that can be erased: an export may be made, and the API asked, while it is. */
static bool
rows_is_named_or_erased(const struct bh_claims *claims, const struct bh_claimed_job *row, uint32_t kind,
                        const char *text)
{
    uint32_t id = kind == TENANT ? row->tenant_id : row->principal_id;

    return claims_rows_is_named(claims, kind, id, text) || (row->exported && strcmp(text, erased_text) == 0);
}

/* What of the submission the row says otherwise; NULL: nothing. */
static const char *
rows_differs_in_submission(const struct bh_claims *claims, const struct job_claim *job,
                           const struct bh_claimed_job *row)
{
    if (row->tenant_id != job->said.tenant || !rows_is_named_or_erased(claims, row, TENANT, row->tenant))
        return "tenant";
    if (row->principal_id != job->said.principal
        || !rows_is_named_or_erased(claims, row, PRINCIPAL, row->principal))
        return "principal";
    if (!claims_rows_is_named(claims, SKU, job->said.sku, row->sku))
        return "SKU";
    if (row->count != job->said.count)
        return "count";
    if (row->submitted_ns != job->said.submitted_ns)
        return "time of submission";
    return memcmp(row->spec, job->said.spec, 32) == 0 ? NULL : "specification";
}

/* What of the submission's other columns. */
static const char *
rows_differs_in_columns(const struct job_claim *job, const struct bh_claimed_job *row)
{
    const struct {
        const char *name;
        uint64_t found, claimed;
    } columns[] = {
        { "priority", row->priority, job->said.priority },
        { "gang", row->gang, job->said.gang },
        { "signal for checkpoints", row->checkpoint_signal, job->said.checkpoint_signal },
        { "time limit", row->time_limit_ns, job->said.time_limit_ns },
        { "deadline", row->deadline_ns, job->said.deadline_ns },
    };

    if (!job->filled)
        return NULL;
    for (size_t i = 0; i < BH_COUNT(columns); i++)
        if (columns[i].found != columns[i].claimed)
            return columns[i].name;
    if (strcmp(row->kind, job->said.kind) != 0)
        return "kind";
    return strcmp(row->contract, job->said.contract) == 0 ? NULL : "contract";
}

static const char *
claims_rows_differs_in_placement(const struct bh_claims *claims, const struct job_claim *job,
                                 const struct bh_claimed_job *row)
{
    uint8_t digest[32];

    if (!job->placed)
        return NULL;
    bh_job_placement_digest(claims->crypto, &row->place, digest);
    return memcmp(digest, job->place, sizeof digest) == 0
               ? NULL
               : "node, pieces, grade, lease or number of restarts";
}

static int32_t
rows_status_of(const struct bh_job_status *state)
{
    bool reported = strcmp(state->cause, "exited") == 0 || strcmp(state->cause, "signalled") == 0;

    return reported ? state->exit_status : -1;
}

/* What of its state; a reason to wait changes without a record. */
static const char *
rows_differs_in_state(const struct job_claim *job, const struct bh_claimed_job *row)
{
    if (strcmp(row->state, job->state.state) != 0)
        return "state";
    if (job->started_ns != UINT64_MAX && row->started_ns != job->started_ns)
        return "start";
    if (row->ended_ns != job->state.ended_ns)
        return "end";
    if (job->state.ended_ns && strcmp(row->reason, job->state.cause) != 0)
        return "cause of the end";
    if (row->ended_by && row->ended_by != (job->state.ended_ns ? job->stated_by : 0))
        return "record of the end";
    return row->exit_status == rows_status_of(&job->state) ? NULL : "exit status";
}

static void
claims_rows_check_unknown(struct bh_claims *claims, const struct bh_claimed_job *row)
{
    if (bh_claims_has_lost(claims) && row->job < claims->first_job)
        claims->result.jobs.unbound++;
    else
        bh_claims_report(claims, "job %" PRIu64 " is in the table, and no record submitted it", row->job);
}

/* Whether the row is what records say; else the first difference is reported. */
static bool
claims_rows_is_as_recorded(struct bh_claims *claims, const struct job_claim *job,
                           const struct bh_claimed_job *row)
{
    const struct {
        const char *what;
        uint64_t record;
    } parts[] = {
        { job->submitted ? rows_differs_in_submission(claims, job, row) : NULL, job->claim.record },
        { rows_differs_in_columns(job, row), job->claim.record },
        { job->stated ? rows_differs_in_state(job, row) : NULL, job->stated_by },
        { claims_rows_differs_in_placement(claims, job, row), job->placed_by },
    };

    for (size_t i = 0; i < BH_COUNT(parts); i++)
        if (parts[i].what) {
            bh_claims_report(claims, "job %" PRIu64 ": its %s is not what record %" PRIu64 " says", row->job,
                             parts[i].what, parts[i].record);
            return false;
        }
    return true;
}

void
bh_claims_job(struct bh_claims *claims, const struct bh_claimed_job *row)
{
    struct job_claim *job;
    uint8_t key[32];

    bh_claim_key(key, row->job, 0);
    job = bh_claim_find(&claims->jobs, key);
    if (!job) {
        claims_rows_check_unknown(claims, row);
        return;
    }
    if (job->claim.seen && row->exported)
        bh_claims_report(claims, "job %" PRIu64 " stands twice", row->job);
    job->claim.seen = true;
    if (!claims_rows_is_as_recorded(claims, job, row))
        return;
    if (job->stated && job->submitted)
        claims->result.jobs.good++;
    else
        claims->result.jobs.unbound++;
}

/* ---- what is missing ---- */

void
bh_claims_end_names(struct bh_claims *claims)
{
    for (size_t i = 0; i < claims->names.capacity; i++) {
        const struct name_claim *name = claims->names.slots[i];
        uint64_t of[2];

        if (!name || name->claim.seen)
            continue;
        memcpy(of, name->claim.key, sizeof of);
        bh_claims_report(claims, "%s %" PRIu64 " is missing in the table; record %" PRIu64 " %s it",
                         bh_binding_kinds[of[0]], of[1], name->bound ? name->claim.record : name->erased_by,
                         name->bound ? "bound" : "erased");
    }
}

/* Whether its row must have been given. */
bool
bh_claims_is_wanted(const struct bh_claims *claims, const struct job_claim *job, bool ended_alone)
{
    return !ended_alone || (job->stated && job->state.ended_ns && job->state.ended_ns < claims->last_ts_ns);
}

void
bh_claims_end_jobs(struct bh_claims *claims, bool ended_alone)
{
    for (size_t i = 0; i < claims->jobs.capacity; i++) {
        const struct job_claim *job = claims->jobs.slots[i];
        uint64_t number;

        if (!job || job->claim.seen || !bh_claims_is_wanted(claims, job, ended_alone))
            continue;
        memcpy(&number, job->claim.key, sizeof number);
        bh_claims_report(claims, "job %" PRIu64 " is missing in the table; record %" PRIu64 " speaks of it",
                         number, job->submitted ? job->claim.record : job->stated_by);
    }
}
