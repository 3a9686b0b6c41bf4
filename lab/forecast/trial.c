#include "lab/forecast/trial.h"

#include <string.h>

#include "base/assert.h"

enum { DAY_S = 86400 };

/* What was said of one slot to come; count 0: nothing. */
struct said {
    struct bh_forecast_bound bounds[BH_TRIAL_BOUNDS_MAX];
    bool spoken;
};

struct trial_run {
    const struct bh_series *series;
    const struct bh_trial_question *question;
    struct bh_trial *trial;
    struct bh_forecast forecast;
    struct said said[BH_FORECAST_STEPS_MAX]; /* by slot modulo steps */
    uint32_t from;                           /* the first slot that is judged */
    double room[BH_TRIAL_BOUNDS_MAX], sum, error, smape;
    bh_trial_see *see;
    void *self;
};

static double
trial_distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* Mean of |value - value a day before| over the first slots; < 0 without any. */
static double
trial_yesterdays_error(const struct bh_series *series, uint32_t end)
{
    uint64_t day = DAY_S * BH_NS_PER_S / series->slot_ns;
    const uint32_t *values = series->values;
    uint32_t count = 0;
    double sum = 0;

    if (day == 0 || DAY_S * BH_NS_PER_S % series->slot_ns != 0)
        return -1;
    for (uint64_t i = day; i < end; i++) {
        if (values[i] == BH_SERIES_NONE || values[i - day] == BH_SERIES_NONE)
            continue;
        sum += trial_distance(values[i], values[i - day]);
        count++;
    }
    return count ? sum / count : -1;
}

static void
trial_judge_bounds(struct trial_run *run, const struct said *said, uint32_t came)
{
    for (uint32_t i = 0; i < run->question->count; i++) {
        const struct bh_forecast_bound *bound = &said->bounds[i];
        struct bh_trial_bound *result = &run->trial->bounds[i];

        if (!bound->firm)
            continue;
        result->judged++;
        result->kept += came <= bound->value;
        run->room[i] += came < bound->value ? bound->value - came : 0;
    }
}

static void
trial_judge(struct trial_run *run, uint32_t at)
{
    const struct said *said = &run->said[at % run->question->steps];
    uint32_t came = run->series->values[at], last = said->bounds[0].level;
    struct bh_trial_moment moment = { run->series->first + at, came, said->bounds };

    if (!said->spoken || at < run->from)
        return;
    run->trial->judged++;
    run->sum += came;
    run->error += trial_distance(last, came);
    if (last != came)
        run->smape += 200 * trial_distance(last, came) / ((double)last + came);
    trial_judge_bounds(run, said, came);
    if (run->see)
        run->see(run->self, &moment);
}

/* The bounds as they stand, for the slot that is `steps` away. */
static void
trial_speak(struct trial_run *run, struct said *said)
{
    const struct bh_trial_question *question = run->question;

    for (uint32_t i = 0; i < question->count; i++)
        said->bounds[i] = bh_forecast_bound(&run->forecast, question->steps, question->q_bp[i]);
    said->spoken = true;
}

static void
trial_play(struct trial_run *run)
{
    const struct bh_series *series = run->series;

    for (uint32_t at = 0; at < series->count; at++) {
        struct said *said = &run->said[at % run->question->steps];
        bool seen = series->values[at] != BH_SERIES_NONE;

        if (seen) {
            bh_forecast_put(&run->forecast, (series->first + at) * series->slot_ns, series->values[at]);
            trial_judge(run, at);
        }
        said->spoken = false;
        if (seen && at + run->question->steps >= run->from)
            trial_speak(run, said);
    }
}

static void
trial_conclude(struct trial_run *run)
{
    struct bh_trial *trial = run->trial;
    double usual = trial_yesterdays_error(run->series, run->from);

    trial->mean = run->sum / trial->judged / BH_SERIES_WHOLE;
    trial->error = run->error / trial->judged / BH_SERIES_WHOLE;
    trial->scaled = usual > 0 ? trial->error * BH_SERIES_WHOLE / usual : -1;
    trial->smape = run->smape / trial->judged;
    for (uint32_t i = 0; i < run->question->count; i++) {
        struct bh_trial_bound *bound = &trial->bounds[i];

        if (bound->judged > 0 && run->sum > 0)
            bound->headroom = run->room[i] / bound->judged / (run->sum / trial->judged);
        bound->next = bh_forecast_bound(&run->forecast, run->question->steps, run->question->q_bp[i]);
        bound->coverage = bh_forecast_coverage(&run->forecast, i);
    }
}

void
bh_trial_run(const struct bh_series *series, const struct bh_trial_question *question,
             struct bh_trial *ret_trial, bh_trial_see *see, void *self)
{
    struct trial_run run = {
        .series = series, .question = question, .trial = ret_trial, .see = see, .self = self
    };

    BH_ASSERT(question->count > 0 && question->count <= BH_TRIAL_BOUNDS_MAX);
    memset(ret_trial, 0, sizeof *ret_trial);
    run.from = (uint32_t)((uint64_t)series->count * 6 / 10);
    bh_forecast_init(&run.forecast, series->slot_ns, question->window);
    for (uint32_t i = 0; i < question->count; i++)
        bh_forecast_promise(&run.forecast, question->steps, question->q_bp[i]);
    trial_play(&run);
    if (ret_trial->judged > 0)
        trial_conclude(&run);
}
