#include "engine/forecast/defrag_judge.h"

#include "engine/preempt/move.h"
#include "engine/state/slots.h"

/* When it starts, as far as was played. */
static uint64_t
start_of(const struct bh_job_forecast *row, uint64_t until_ns)
{
    return row && row->start_ns ? row->start_ns : until_ns;
}

static uint64_t
parts_of(const struct bh_engine *engine, bh_job_id id)
{
    const struct job *job = job_at(engine, job_find(engine, id.v));

    return job->id ? bh_quota_least(engine, job->sku, (uint32_t)job->count * job->gang) : 0;
}

void
bh_defrag_judge(const struct bh_engine *engine, const struct bh_ev_move *move,
                const struct bh_job_forecasts *before, const struct bh_job_forecasts *after,
                struct bh_defrag_verdict *ret_verdict)
{
    uint64_t until_ns = before->until_ns > after->until_ns ? before->until_ns : after->until_ns;
    uint64_t percent = engine->core.settings.defrag.gain_percent;
    struct bh_defrag_verdict verdict = { .joined_gpu_ms = move->for_job.v ? 0 : move->gain_gpu_ms };
    bh_part_ns won = 0, lost = 0;

    for (uint32_t i = 0; i < before->count; i++) {
        const struct bh_job_forecast *row = &before->rows[i];
        uint64_t was_ns = start_of(row, until_ns);
        uint64_t is_ns = start_of(bh_job_forecasts_find(after, row->job), until_ns);

        if (row->state != BH_JOB_PENDING || was_ns == is_ns)
            continue;
        verdict.sooner += is_ns < was_ns;
        verdict.later += is_ns > was_ns;
        if (is_ns < was_ns)
            won += (bh_part_ns)parts_of(engine, row->job) * (was_ns - is_ns);
        else
            lost += (bh_part_ns)parts_of(engine, row->job) * (is_ns - was_ns);
    }
    verdict.saved_gpu_ms = (int64_t)bh_move_gpu_ms(won) - (int64_t)bh_move_gpu_ms(lost);
    verdict.sound = ((__int128)verdict.saved_gpu_ms + verdict.joined_gpu_ms) * 100
                    >= (__int128)move->cost_gpu_ms * (__int128)percent;
    *ret_verdict = verdict;
}
