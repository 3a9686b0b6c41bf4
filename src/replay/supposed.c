/* Suppositions, and the statement that looks at them. */
#include "replay/supposed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/state/simulation.h"
#include "base/assert.h"
#include "base/num.h"
#include "replay/scenario_run.h"

struct bh_supposed {
    struct bh_simulation before, after;
};

void
bh_supposed_free(struct bh_supposed *supposed)
{
    if (!supposed)
        return;
    bh_simulation_free(&supposed->before);
    bh_simulation_free(&supposed->after);
    free(supposed);
}

void
bh_supposed_begin(struct bh_scenario_run *run)
{
    struct bh_supposed *supposed = calloc(1, sizeof *supposed);
    uint64_t now_ns = bh_world_now_ns(run->world);

    BH_ASSERT(supposed);
    bh_supposed_free(run->supposed);
    bh_simulation_copy(bh_world_engine(run->world), &supposed->before);
    bh_simulation_clone(&supposed->before, &supposed->after);
    bh_simulation_begin(&supposed->before, now_ns);
    bh_simulation_begin(&supposed->after, now_ns);
    run->supposed = supposed;
    run->supposing = true;
}

bh_rc
bh_supposed_send(struct bh_scenario_run *run, const struct bh_event *event, struct bh_err *err)
{
    struct bh_simulation *after = &run->supposed->after;
    bh_rc rc = bh_simulation_send(after, event);

    if (rc == BH_OK)
        return rc;
    run->refused = true;
    run->refusal = after->future->step.verdict.code;
    return bh_err_set(err, rc, "refused: %s (%s)", bh_reason_names[run->refusal], bh_rc_name(rc));
}

void
bh_supposed_play(struct bh_scenario_run *run)
{
    bh_simulation_run(&run->supposed->before);
    bh_simulation_run(&run->supposed->after);
    run->supposing = false;
}

/* ---- expect-whatif ---- */

/* What is found: a word, and when it is. */
struct supposed_found {
    const char *word;
    uint64_t at_ns;
};

static struct supposed_found
supposed_look(const struct bh_supposed *supposed, bh_job_id job, struct bh_difference *rows)
{
    const struct bh_job_forecast *row = bh_job_forecasts_find(&supposed->after.forecasts, job);
    uint32_t max = supposed->before.forecasts.count;
    uint32_t count = bh_whatif_compare(&supposed->before.forecasts, &supposed->after.forecasts, 1, rows, max);

    for (uint32_t i = 0; i < count; i++)
        if (bh_same(rows[i].job, job))
            return (struct supposed_found){ bh_difference_names[rows[i].kind], rows[i].after_ns };
    if (bh_job_forecasts_find(&supposed->before.forecasts, job))
        return (struct supposed_found){ "same", row ? row->start_ns : 0 };
    if (row && row->start_ns == supposed->after.future->begin_ns)
        return (struct supposed_found){ "starts", row->start_ns };
    return (struct supposed_found){ "waits", row ? row->start_ns : 0 };
}

static bh_rc
supposed_check(const struct bh_scenario_run *run, const struct bh_words *words,
               const struct supposed_found *found, struct bh_err *err)
{
    uint64_t begin_ns = run->supposed->after.future->begin_ns, span_ns = 0;
    uint64_t in_ns = found->at_ns > begin_ns ? found->at_ns - begin_ns : 0;
    bh_rc rc = words->count > 3 ? bh_parse_span(words->at[3], &span_ns, err) : BH_OK;

    if (rc != BH_OK)
        return rc;
    if (strcmp(found->word, words->at[2]) == 0 && (words->count < 4 || span_ns == in_ns))
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT, "job %s: %s in %" PRIu64 " s, expected %s %s", words->at[1],
                      found->word, in_ns / 1000000000, words->at[2], words->count > 3 ? words->at[3] : "");
}

/* expect-whatif a later 2h */
static bh_rc
play_expect_whatif(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_difference *rows;
    struct supposed_found found;
    uint32_t id;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_JOB, words->at[1], &id, err);

    if (rc != BH_OK)
        return rc;
    if (!run->supposed)
        return bh_err_set(err, BH_INVALID, "nothing was supposed before");
    rows = calloc((size_t)run->supposed->before.forecasts.count + 1, sizeof *rows);
    BH_ASSERT(rows);
    found = supposed_look(run->supposed, (bh_job_id){ id }, rows);
    free(rows);
    return supposed_check(run, words, &found, err);
}

const struct bh_statement bh_whatif_statements[] = {
    { "expect-whatif", 2, 3,
      "JOB starts|waits|same|later|earlier|never|suspended|requeued|cancelled|spared [SPAN]",
      play_expect_whatif },
    { NULL, 0, 0, NULL, NULL },
};
