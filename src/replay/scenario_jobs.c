/* Statements on jobs: submit, cancel, release, and how they end by themselves. */
#include <string.h>

#include "base/num.h"
#include "base/time.h"
#include "replay/scenario_option.h"

static const struct bh_choice priorities = { "priority", bh_priority_names, BH_PRIORITIES };
static const struct bh_choice contracts = { "contract", bh_contract_names, BH_CONTRACTS };
static const struct bh_choice job_kinds = { "kind", bh_job_kind_names, BH_JOB_KINDS };

/* So long after it is submitted. */
static bh_rc
jobs_read_deadline(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                   const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_submit *submit = into;
    bh_rc rc = bh_parse_span(values[0], &submit->deadline_ns, err);

    submit->deadline_ns += bh_world_now_ns(run->world);
    return rc;
}

static bh_rc
jobs_read_cores(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                const char *const *values, void *into, struct bh_err *err)
{
    uint64_t milli = 0;
    bh_rc rc = bh_parse_parts(values[0], 1000, &milli, err);

    ((struct bh_ev_submit *)into)->cpu_milli = (uint32_t)milli;
    return rc;
}

static bh_rc
jobs_read_memory(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                 const char *const *values, void *into, struct bh_err *err)
{
    uint64_t bytes = 0;
    bh_rc rc = bh_parse_bytes(values[0], &bytes, err);

    ((struct bh_ev_submit *)into)->memory_mib = (uint32_t)(bytes >> 20);
    return rc;
}

#define FIELD(name) offsetof(struct bh_ev_submit, name)
static const struct bh_scenario_option submit_options[] = {
    { "count", 1, bh_scenario_read_number, FIELD(count), .most = 1000 },
    { "gang", 1, bh_scenario_read_number, FIELD(gang), .most = 1000 },
    { "priority", 1, bh_scenario_read_word, FIELD(priority), .choice = &priorities },
    { "on-preempt", 1, bh_scenario_read_word, FIELD(contract), .choice = &contracts },
    { "kind", 1, bh_scenario_read_word, FIELD(kind), .choice = &job_kinds },
    { "time-limit", 1, bh_scenario_read_span, FIELD(time_limit_ns) },
    { "hold", 0, bh_scenario_read_switch, FIELD(hold) },
    { "deadline", 1, jobs_read_deadline },
    { "grace", 1, bh_scenario_read_span, FIELD(grace_ns) },
    { "user", 1, bh_scenario_read_number, FIELD(principal.v), .least = 1, .most = 1000000 },
    { "cpu", 1, jobs_read_cores },
    { "memory", 1, jobs_read_memory },
};

static bh_rc
jobs_play_submit(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 4, submit_options, BH_COUNT(submit_options) };
    struct bh_ev_submit submit = { .count = 1, .priority = BH_PRIORITY_NORMAL, .grace_ns = 10 * BH_NS_PER_S };
    char name[BH_WORD_MAX];
    uint32_t cursor = 0, id;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_TENANT, words->at[2], &submit.tenant.v, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_names_find(run->names, BH_NAMED_SKU, words->at[3], &submit.sku.v, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_options_read(run, words, &options, &submit, err);
    while (rc == BH_OK && bh_word_next_name(words->at[1], &cursor, name)) {
        struct bh_event event = { .kind = BH_EV_SUBMIT, .u.submit = submit };

        rc = bh_names_add(run->names, BH_NAMED_JOB, name, &id, err);
        event.u.submit.job.v = id;
        if (rc == BH_OK)
            rc = bh_scenario_run_send(run, &event, err);
        if (rc == BH_OK)
            rc = bh_world_advance(run->world, 0, err);
    }
    return rc;
}

/* Send the same event about each job that a word names. */
static bh_rc
ask_jobs(struct bh_scenario_run *run, const char *word, enum bh_event_kind kind, struct bh_err *err)
{
    char name[BH_WORD_MAX];
    uint32_t cursor = 0, id;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_word_next_name(word, &cursor, name)) {
        struct bh_event event = { .kind = kind };

        rc = bh_names_find(run->names, BH_NAMED_JOB, name, &id, err);
        event.u.job.job.v = id;
        if (rc == BH_OK)
            rc = bh_scenario_run_send(run, &event, err);
    }
    return rc;
}

static bh_rc
jobs_play_cancel(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    return ask_jobs(run, words->at[1], BH_EV_CANCEL, err);
}

static bh_rc
jobs_play_release(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    return ask_jobs(run, words->at[1], BH_EV_RELEASE, err);
}

/* finish a; finish a 3; finish a signalled 9; finish a member 2 out_of_memory */
struct finish {
    struct bh_ev_ended end;
    uint32_t member; /* EVERY: all that run */
};

enum { EVERY = UINT32_MAX };

static bh_rc
jobs_parse_finish(const struct bh_words *words, struct finish *ret_finish, struct bh_err *err)
{
    static const struct bh_choice causes = { "end cause", bh_end_cause_names, BH_END_CAUSES };
    uint32_t cause = BH_END_EXITED, status = 0, member = EVERY;
    uint32_t at = 2;
    bh_rc rc = BH_OK;

    if (at + 1 < words->count && strcmp(words->at[at], "member") == 0) {
        rc = bh_parse_u32(words->at[at + 1], 0, BH_JOB_GANG_MAX - 1, &member, err);
        at += 2;
    }
    if (rc != BH_OK)
        return rc;
    if (at < words->count && (words->at[at][0] < '0' || words->at[at][0] > '9'))
        rc = bh_word_choose(&causes, words->at[at++], &cause, err);
    if (rc != BH_OK)
        return rc;
    if (at < words->count)
        rc = bh_parse_u32(words->at[at], 0, 255, &status, err);
    if (rc != BH_OK)
        return rc;
    *ret_finish =
        (struct finish){ { .cause = (enum bh_end_cause)cause, .exit_status = (int32_t)status }, member };
    return BH_OK;
}

/* Those of a job that are meant and run end by themselves. */
static bh_rc
jobs_finish_members(struct bh_scenario_run *run, const struct bh_reported_job *reported,
                    const struct finish *finish, struct bh_err *err)
{
    bh_rc rc = bh_err_set(err, BH_NOT_FOUND, "it has no such member that runs");

    for (uint32_t i = 0; i < reported->gang; i++) {
        struct bh_ev_ended end = finish->end;
        bh_rc one;

        if (finish->member != EVERY && finish->member != i)
            continue;
        end.lease.v = reported->lease.v + i;
        one = bh_world_exit(run->world, &end, err);
        if (one == BH_BUG || finish->member == i)
            return one;
        rc = one == BH_OK ? BH_OK : rc;
    }
    return rc;
}

static bh_rc
jobs_play_finish(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct finish finish;
    char name[BH_WORD_MAX];
    uint32_t cursor = 0;
    bh_rc rc = jobs_parse_finish(words, &finish, err);

    while (rc == BH_OK && bh_word_next_name(words->at[1], &cursor, name)) {
        struct bh_reported_job reported;
        uint32_t id;

        rc = bh_names_find(run->names, BH_NAMED_JOB, name, &id, err);
        if (rc != BH_OK)
            return rc;
        if (!bh_world_reported(run->world, (bh_job_id){ id }, &reported) || !reported.lease.v)
            return bh_err_set(err, BH_NOT_FOUND, "job %s has no lease", name);
        rc = jobs_finish_members(run, &reported, &finish, err);
        if (rc != BH_OK)
            bh_err_wrap(err, "job %s", name);
    }
    return rc;
}

const struct bh_statement bh_job_statements[] = {
    { "submit", 3, 28,
      "JOB TENANT SKU [count N] [gang N] [priority P] "
      "[on-preempt suspend|requeue|checkpoint|never] [kind K] [time-limit SPAN] "
      "[deadline SPAN] [grace SPAN] [user N] [hold]",
      jobs_play_submit },
    { "cancel", 1, 1, "JOB", jobs_play_cancel },
    { "release", 1, 1, "JOB", jobs_play_release },
    { "finish", 1, 5, "JOB [member N] [STATUS] | JOB [member N] CAUSE [STATUS]", jobs_play_finish },
    { NULL, 0, 0, NULL, NULL },
};
