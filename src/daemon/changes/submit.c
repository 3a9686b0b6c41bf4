#include "daemon/changes/submit.h"

#include <inttypes.h>
#include <string.h>

#include "api/state/admit.h"
#include "api/state/submission.h"
#include "base/assert.h"
#include "daemon/authorization/allowance.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/access.h"
#include "daemon/batch/record.h"
#include "daemon/batch/step.h"
#include "daemon/state/texts.h"

static bh_rc
submit_read_spec(const struct bh_directory *dir, const struct bh_command *command, uint64_t now_ns,
                 struct bh_ev_submit *ret_submit, struct bh_err *err)
{
    const struct bh_job_spec *spec = command->spec;
    const struct bh_job_numbers *numbers = &command->numbers;
    const struct bh_dir_tenant *tenant = spec->tenant ? bh_directory_tenant_named(dir, spec->tenant) : NULL;
    const struct bh_dir_sku *sku = bh_directory_sku_named(dir, spec->sku);

    if (!spec->tenant)
        return bh_err_set(err, BH_INVALID, "tenant: the job names no tenant");
    if (!tenant)
        return bh_err_set(err, BH_NOT_FOUND, "tenant: no tenant \"%.80s\"", spec->tenant);
    ret_submit->tenant = tenant->id;
    if (!sku) {
        bh_err_set(err, BH_NOT_FOUND, "sku: no SKU \"%.60s\"", spec->sku);
        return bh_err_hint(err, "`bulkhead get skus` lists them");
    }
    bh_submission_fill(spec, numbers, sku, now_ns, ret_submit);
    return BH_OK;
}

/* So long a job that ignores SIGTERM keeps what is another's guarantee. */
static bh_rc
submit_check_grace(const struct bh_core *core, const struct bh_ev_submit *submit, struct bh_err *err)
{
    uint64_t most_ns = core->config->grace_max;

    if (submit->grace_ns <= most_ns)
        return BH_OK;
    bh_err_set(err, BH_RANGE, "grace: %" PRIu64 " s is more than the %" PRIu64 " s that this site allows",
               submit->grace_ns / BH_NS_PER_S, most_ns / BH_NS_PER_S);
    return bh_err_hint(err, "grace_max in bulkheadd.conf sets it");
}

/* The permissions a submission needs; the message of a denial is the caller's. */
static bool
submit_permitted(struct bh_core *core, const struct bh_command *command, bh_tenant_id tenant,
                 struct bh_denial *ret_check)
{
    ret_check->verb = "job.submit";
    ret_check->reach = BH_REACH_OBJECT;
    ret_check->verdict = bh_command_authz(core, command, ret_check->verb, tenant);
    if (!ret_check->verdict.allow || command->spec->priority < BH_PRIORITY_HIGH)
        return ret_check->verdict.allow;
    struct bh_denial high = { "priority.high", { 0 }, BH_REACH_OBJECT };

    high.verdict = bh_command_holds(core, command, high.verb, tenant);
    if (!high.verdict.allow)
        *ret_check = high;
    return high.verdict.allow;
}

static void
submit_sign(const struct bh_core *core, const struct bh_command *command, struct bh_ev_submit *submit)
{
    submit->job.v = core->next_job;
    submit->principal = command->caller.subject.principal;
}

/* By the key that is there now; one that has to be made has sealed nothing yet. */
static struct bh_same_spec
submit_same_spec(struct bh_core *core, const struct bh_command *command, const struct bh_ev_submit *submit)
{
    const struct bh_key_use use = { BH_KEY_AUDIT, submit->tenant, bh_core_now(core) };
    uint8_t plain[32];

    core->crypto->sha256(command->text, command->text_length, "", 0, plain);
    return bh_same_spec_of(bh_keys_number(core->ring.keys, &use), submit->tenant, submit->principal, plain);
}

/* What people wrote is sealed before anything names it: the digest of the item is what
 * stands in the log for ever.  `item` stays empty when the store has it. */
static bh_rc
submit_seal_spec(struct bh_core *core, const struct bh_command *command, struct bh_ev_submit *submit,
                 struct bh_buf *item, struct bh_err *err)
{
    const struct bh_slice plain = { command->text, command->text_length };
    struct bh_same_spec spec = submit_same_spec(core, command, submit);
    bh_rc rc = BH_OK;

    if (!bh_same_specs_find(&core->same_specs, &spec)) {
        rc = bh_core_seal(core, submit->tenant, plain, item, err);
        if (rc != BH_OK)
            return rc;
        core->crypto->sha256(item->bytes, item->length, "", 0, spec.sealed);
    }
    memcpy(submit->spec, spec.sealed, sizeof submit->spec);
    return BH_OK;
}

/* The store has the item, as soon as it has the record. */
static void
submit_store_spec(struct bh_core *core, const struct bh_command *command, const struct bh_ev_submit *submit)
{
    struct bh_same_spec spec = submit_same_spec(core, command, submit);

    memcpy(spec.sealed, submit->spec, sizeof spec.sealed);
    bh_same_specs_put(&core->same_specs, &spec);
}

static void
submit_answer_from_view(struct bh_core *core, bh_job_id job, struct bh_answer *ret_answer)
{
    struct bh_job_view view;

    ret_answer->job = job;
    if (!bh_view_job(core->state.engine, job, &view))
        return;
    ret_answer->state = view.state;
}

static bh_rc
record_submit(struct bh_core *core, struct bh_event *event, const struct bh_buf *item, struct bh_entry *entry,
              struct bh_err *err)
{
    struct bh_text_row text = { .tenant_id = event->u.submit.tenant.v,
                                .text = { item->bytes, item->length } };
    bh_rc rc = bh_core_step(core, entry, event, err);

    if (rc == BH_QUOTA || rc == BH_NOT_FOUND || rc == BH_RANGE || rc == BH_CONFLICT)
        return bh_command_refusal(core, entry, rc, &core->step.verdict, err);
    if (rc != BH_OK)
        return rc;
    core->next_job++;
    if (item->length == 0)
        return BH_OK;
    memcpy(text.digest.bytes, event->u.submit.spec, sizeof text.digest.bytes);
    return bh_texts_put(core, &text, err);
}

static bh_rc
submit_seal_and_record(struct bh_core *core, const struct bh_command *command, struct bh_event *event,
                       struct bh_entry *entry, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf item = { .max = 2 * (size_t)BH_SEALED_PLAIN_MAX };
    bh_rc rc = submit_seal_spec(core, command, &event->u.submit, &item, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_allowance_check_text(core, command, event->u.submit.tenant, item.length, err);
    if (rc != BH_OK)
        return rc;
    bh_access_expect(core, event->u.submit.spec, command->spec);
    rc = record_submit(core, event, &item, entry, err);
    if (rc != BH_OK)
        return rc;
    if (item.length > 0)
        submit_store_spec(core, command, &event->u.submit);
    return BH_OK;
}

/* Whether the site's nodes could ever run it, as far as they are known: a job that waits for ever
 * is refused. */
static bh_rc
submit_check_ever(struct bh_core *core, const struct bh_command *command, const struct bh_event *event,
                  const struct bh_entry *entry, struct bh_err *err)
{
    const struct bh_engine *engine = core->state.engine;
    struct bh_reason *why = &core->step.verdict;

    if (bh_engine_hosts_ever(engine, &event->u.submit, why)
        && bh_engine_shapes_ever(engine, &event->u.submit, why))
        return BH_OK;
    if (!command->dry_run)
        return bh_command_refusal(core, entry, BH_RANGE, why, err);
    bh_command_explain(core, BH_RANGE, why, err);
    return BH_RANGE;
}

/* What would happen, on a copy: nothing is recorded. */
static bh_rc
submit_rehearse(struct bh_core *core, struct bh_event *event, struct bh_answer *ret_answer,
                struct bh_err *err)
{
    struct bh_state copy, kept = core->state;
    bh_rc rc;

    bh_state_copy(&core->state, &copy);
    event->now_ns = bh_core_now(core);
    event->seq = core->journal.next_seq;
    rc = bh_state_step(&copy, event, &core->step);
    if (rc == BH_OK) {
        core->state = copy;
        submit_answer_from_view(core, event->u.submit.job, ret_answer);
        bh_engine_why(copy.engine, event->u.submit.job, event->now_ns, &ret_answer->reason);
        copy = core->state;
        core->state = kept;
        ret_answer->job.v = 0;
    } else {
        bh_command_explain(core, rc, &core->step.verdict, err);
    }
    bh_state_fini(&copy);
    return rc;
}

static bh_rc
submit_prepare(struct bh_core *core, const struct bh_command *command, struct bh_event *event,
               struct bh_err *err)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    bh_rc rc = submit_read_spec(dir, command, bh_core_now(core), &event->u.submit, err);

    bh_catalog_put(core->catalog, dir);
    if (rc == BH_OK)
        rc = submit_check_grace(core, &event->u.submit, err);
    submit_sign(core, command, &event->u.submit);
    return rc;
}

/* What the policies of the site file say; a denial is recorded with its rule. */
static bh_rc
submit_admit(struct bh_core *core, const struct bh_command *command, const struct bh_ev_submit *submit,
             struct bh_err *err)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    struct bh_admit question = { .admission = &dir->admission,
                                 .dir = dir,
                                 .engine = core->state.engine,
                                 .tenant = command->spec->tenant,
                                 .spec = command->spec,
                                 .submit = submit,
                                 .models = bh_directory_sku(dir, submit->sku)->models,
                                 .now_ns = bh_core_now(core) };
    struct bh_admit_denial denial = { .rule = BH_ADMISSION_NONE };
    bh_rc rc = bh_admit_check(&question, &denial, err);
    struct bh_entry entry;
    struct bh_err ignored;

    bh_catalog_put(core->catalog, dir);
    if (rc != BH_DENIED)
        return rc;
    entry = bh_command_entry(&command->caller, command->op, submit->tenant,
                             (struct bh_verdict){ false, bh_admission_number(denial.rule) });
    entry.phase = BH_PHASE_EVENT;
    if (bh_core_record(core, &entry, BH_DENIED, &ignored) != BH_OK)
        return bh_err_set(err, ignored.rc, "the denial could not be recorded: %.160s", ignored.msg);
    return BH_DENIED;
}

/* All that is asked of a submission before it comes to the queue; `ret_entry` is its record. */
static bh_rc
submit_check(struct bh_core *core, const struct bh_command *command, struct bh_event *event,
             struct bh_entry *ret_entry, struct bh_err *err)
{
    struct bh_denial check;
    bh_rc rc = submit_prepare(core, command, event, err);

    if (rc != BH_OK)
        return rc;
    if (!submit_permitted(core, command, event->u.submit.tenant, &check))
        return bh_command_deny(core, command, event->u.submit.tenant, check, err);
    *ret_entry = bh_command_entry(&command->caller, command->op, event->u.submit.tenant, check.verdict);
    rc = submit_admit(core, command, &event->u.submit, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_access_submit(core, command, ret_entry, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_allowance_check_job(core, command, event->u.submit.tenant, err);
    if (rc != BH_OK)
        return rc;
    ret_entry->obj = (struct bh_record_object){ .type = "job", .id = event->u.submit.job.v };
    ret_entry->submitter = &command->caller;
    ret_entry->job_name = command->spec->name;
    return submit_check_ever(core, command, event, ret_entry, err);
}

bh_rc
bh_submit_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    struct bh_entry entry;
    bh_rc rc;

    core->step.verdict = (struct bh_reason){ .code = BH_REASON_NONE };
    rc = submit_check(core, command, &event, &entry, err);
    if (rc == BH_OK && !command->dry_run)
        rc = submit_seal_and_record(core, command, &event, &entry, err);
    else if (rc == BH_OK && !command->admission_only)
        rc = submit_rehearse(core, &event, ret_answer, err);
    if (rc != BH_OK) { /* in earnest, on trial and in a what-if question alike */
        ret_answer->reason = core->step.verdict;
        return rc;
    }
    if (command->dry_run)
        return BH_OK;
    bh_allowance_add_job(core, command->caller.subject.principal.v);
    submit_answer_from_view(core, event.u.submit.job, ret_answer);
    ret_answer->reason = core->added_reason;
    return BH_OK;
}
